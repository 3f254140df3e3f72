"""The model in which nothing speaks but the classes' frequencies, and how much it is believed.

Where labels are noise, some block seems to have something to tell all the same. The evidence of the
field is therefore compared with that of offsets alone, and the field's logits are drawn towards
theirs by the posterior probability that it says more:

    trust = 1 / (1 + exp(-(log evidence - log evidence of nothing) / 2 + 3))

The evidence is halved since a pair of neighbors is counted from both sides in a pseudo-likelihood;
e^-3 are the prior odds of a field that says something, against one that does not.

Both saw every training row. Without row i, of weight w_i, the frequencies are those of the others,
and the odds of the field lose the factor by which the row spoke for it:

    log odds(-i) = log odds - w_i (log p_i(-i) - log q_i(-i))

with p_i(-i) what the field without the row gives to the row's label and q_i(-i) what the others'
frequencies give.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import expit, log_softmax

from kfree.field.design import Design, Weights
from kfree.field.evidence import OFFSET_PRECISION
from kfree.field.logit import Rows, softmax

PAIRS_ARE_COUNTED_TWICE = 0.5
# With -2 the worst of ten draws of noise (200 x 5) had a log loss of 0.728 instead of 0.707.
LOG_PRIOR_ODDS = -3.0
# Newton's method for the offsets: the most steps, and how far one goes at most.
MOST_STEPS = 100
LONGEST_STEP = 1.0


def offsets_alone(count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The offsets at their mode and the log evidence, from the weight of each class's rows.

    (..., n_classes) and (...,) from counts of shape (..., n_classes).
    """
    n_classes, total = count.shape[-1], count.sum(axis=-1, keepdims=True)
    offset = np.log((count + 0.5) / (total + 0.5 * n_classes))
    offset -= offset.mean(axis=-1, keepdims=True)
    for _ in range(MOST_STEPS):
        share = np.exp(log_softmax(offset, axis=-1))
        slope = total * share - count + OFFSET_PRECISION * offset
        # H = diag(a) - total share share', inverted by Sherman and Morrison.
        a = total * share + OFFSET_PRECISION
        pull = (share * slope / a).sum(axis=-1, keepdims=True)
        left = (share * OFFSET_PRECISION / a).sum(axis=-1, keepdims=True)
        step = (slope + total * share * pull / left) / a
        offset = offset - np.clip(step, -LONGEST_STEP, LONGEST_STEP)
        if np.abs(step).max() < 1e-9:
            break
    log_share = log_softmax(offset, axis=-1)
    share = np.exp(log_share)
    log_posterior = (count * log_share - 0.5 * OFFSET_PRECISION * offset**2).sum(axis=-1)
    bend = total * share * (1.0 - share) * n_classes / (n_classes - 1) + OFFSET_PRECISION
    volume = 0.5 * (np.log(OFFSET_PRECISION) - np.log(bend)).sum(axis=-1)
    return offset, log_posterior + volume * (n_classes - 1) / n_classes


def log_odds_of(log_evidence: float, log_evidence_of_nothing: float) -> float:
    """The log odds that the field says more than the classes' frequencies."""
    gain = log_evidence - log_evidence_of_nothing
    return float(PAIRS_ARE_COUNTED_TWICE * gain + LOG_PRIOR_ODDS)


def drawn_to(weights: Weights, offset: np.ndarray, trust: float) -> Weights:
    """Weights whose logits are `trust` of the way from the offsets alone to those of `weights`."""
    return replace(
        weights,
        shared=weights.shared * trust,
        linear=weights.linear * trust,
        offset=offset + trust * (weights.offset - offset),
    )


def drawn_without_rows(
    design: Design, rows: Rows, eta: np.ndarray, offset: np.ndarray, log_odds: float
) -> np.ndarray:
    """The same for logits of pairs (n_pairs,) with their row left out.

    `offset` are the logits of classes that are not near, `log_odds` those of the field with all
    rows.
    """
    count = np.bincount(rows.labels, rows.weights, design.n_classes)
    kinds, kind = np.unique(
        np.column_stack([rows.labels, rows.weights]), axis=0, return_inverse=True
    )
    left = np.tile(count, (len(kinds), 1))
    left[np.arange(len(kinds)), kinds[:, 0].astype(int)] -= kinds[:, 1]
    nothing, _ = offsets_alone(np.maximum(left, 0.0))  # (n_kinds, n_classes)
    log_q = log_softmax(nothing, axis=1)[kind, rows.labels]
    at_label = np.where(rows.pair >= 0, eta[rows.pair], offset[rows.labels])
    log_p = at_label - softmax(design, eta, offset).log_normalizer
    trust = expit(log_odds - rows.weights * (log_p - log_q))  # (n_rows,)
    base = nothing[kind[design.row], design.label]
    return base + trust[design.row] * (eta - base)
