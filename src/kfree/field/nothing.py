"""The model in which nothing speaks but the classes' frequencies, and how much it is believed.

Where labels are noise, some block seems to have something to tell all the same. The evidence of the
field is therefore compared with that of offsets alone, and the field's logits are drawn towards
theirs by the posterior probability that it says more:

    trust = 1 / (1 + exp(-(log evidence - log evidence of nothing) / 2 + 3))

The evidence is halved since a pair of neighbors is counted from both sides in a pseudo-likelihood;
e^-3 are the prior odds of a field that says something, against one that does not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from kfree.field.design import Weights
from kfree.field.evidence import OFFSET_PRECISION

PAIRS_ARE_COUNTED_TWICE = 0.5
LOG_PRIOR_ODDS = -3.0


def offsets_alone(count: np.ndarray) -> tuple[np.ndarray, float]:
    """The offsets at their mode and the log evidence, from the weight of each class's rows."""
    n_classes, total = len(count), count.sum()

    def objective(gamma: np.ndarray) -> tuple[float, np.ndarray]:
        top = gamma.max()
        log_sum = top + np.log(np.exp(gamma - top).sum())
        share = np.exp(gamma - log_sum)
        loss = total * log_sum - count @ gamma + 0.5 * OFFSET_PRECISION * (gamma @ gamma)
        return loss, total * share - count + OFFSET_PRECISION * gamma

    start = np.log((count + 0.5) / (total + 0.5 * n_classes))
    found = minimize(objective, start - start.mean(), jac=True, method="L-BFGS-B")
    share = np.exp(found.x - found.x.max())
    share /= share.sum()
    bend = total * share * (1.0 - share) * n_classes / (n_classes - 1) + OFFSET_PRECISION
    volume = 0.5 * (np.log(OFFSET_PRECISION) - np.log(bend)).sum() * (n_classes - 1) / n_classes
    return found.x, float(-found.fun + volume)


def trust_in(log_evidence: float, log_evidence_of_nothing: float) -> float:
    """The probability that the field says more than the classes' frequencies."""
    gain = log_evidence - log_evidence_of_nothing
    return float(expit(PAIRS_ARE_COUNTED_TWICE * gain + LOG_PRIOR_ODDS))


def drawn_to(weights: Weights, offset: np.ndarray, trust: float) -> Weights:
    """Weights whose logits are `trust` of the way from the offsets alone to those of `weights`."""
    return replace(
        weights,
        shared=weights.shared * trust,
        own=weights.own * trust,
        linear=weights.linear * trust,
        offset=offset + trust * (weights.offset - offset),
    )
