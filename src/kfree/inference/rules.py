"""Few nodes for the integrals over beta that predictions need.

What an open label needs are integrals of smooth functions against the training posterior of beta. A
Gauss rule of that posterior (Golub & Welsch, from the trapezoidal nodes by Lanczos' recurrence)
gives them with a handful of nodes. Rows for which they do not suffice are found out (`Rule.doubt`)
and done with all nodes.
"""

from __future__ import annotations

import numpy as np

from kfree.inference.gauss import gauss_rules
from kfree.inference.quadrature import BetaPosterior, Rule, TrainingPosterior, log_sum

# Weights this far below the rest do not count (e^-18 < 2e-8).
NEGLIGIBLE = 18.0
# Candidates whose posterior is this far below the best are looked at only for rows whose label can
# bring them back. That is a bound, which is loose where beta is known badly: at 30 all rows of
# separated embeddings looked at three more candidates.
LEFT_OUT = 50.0
# How many nodes, by the width of the posterior of log(beta). Where it is narrow, as with most data
# of 10,000 rows, 5 are good to 3e-10. Where it is as broad as the prior, since separated classes
# leave beta free, 8 would leave class probabilities off by 1.5e-7, 12 by 1e-10. In between 8 are
# good to 1e-8, and 6 would be to 3e-7, in nine tenths of the time.
WIDTHS = (0.05, 0.5)
N_NODES = (5, 8, 12)
# With fewer points one label matters more: of up to 150 points 8 nodes would have a twelfth of the
# rows done again and leave the others off by 2e-6; with 16 it is one in thirty, and 3e-9
# (`python benchmarks/nodes.py`).
FEW_POINTS = 1000
N_NODES_OF_FEW = 16


def training_posterior(
    curves: BetaPosterior, log_prior: np.ndarray, n_points: int
) -> TrainingPosterior:
    """The posterior of K and beta from the posteriors of beta at each K."""
    log_mass = curves.log_evidence + log_prior
    log_normalizer = float(log_sum(log_mass))
    k_probabilities = np.exp(log_mass - log_normalizer)
    active = np.flatnonzero(log_mass > log_mass.max() - LEFT_OUT)
    log_weight = curves.log_mass + log_prior[:, None] - log_normalizer
    fine = Rule(np.arange(len(log_prior)), curves.beta, log_weight)
    n_nodes = np.array(N_NODES)[np.searchsorted(WIDTHS, curves.std)]
    if n_points < FEW_POINTS:
        n_nodes[:] = N_NODES_OF_FEW
    few = _reduced(fine, n_nodes)
    return TrainingPosterior(
        log_prior,
        curves,
        log_mass,
        k_probabilities,
        log_normalizer,
        few,
        fine,
        rule=few.take(active),
    )


def _reduced(dense: Rule, n_nodes: np.ndarray) -> Rule:
    """A Gauss rule of n_nodes (n,) for each candidate; all nodes of those that have no more."""
    log_total = log_sum(dense.log_weight)[:, None]
    weight = np.exp(dense.log_weight - log_total)
    # In arcsinh(beta / 2), which is linear near zero and a logarithm beyond: what labels do is far
    # from any singularity there (`interpolation`), so that broad posteriors need a fifth of the
    # nodes that they need in log(beta).
    x, width = np.arcsinh(0.5 * dense.beta), int(n_nodes.max())
    beta, probe = np.ones((len(weight), width)), np.zeros((len(weight), 2, width))
    log_weight = np.full(beta.shape, -np.inf)
    more = (weight > 0).sum(axis=1) > n_nodes
    for n in np.unique(n_nodes[more]):
        those = np.flatnonzero(more & (n_nodes == n))
        node, share, probe[those, :, :n] = gauss_rules(x[those], weight[those], int(n))
        node = np.maximum(node, np.finfo(float).tiny)  # may be zero but for rounding
        beta[those, :n] = 2.0 * np.sinh(node)
        with np.errstate(divide="ignore"):  # an outermost weight may underflow
            log_weight[those, :n] = np.log(share) + log_total[those]
    for i in np.flatnonzero(~more):
        there = weight[i] > 0
        n_there = int(there.sum())
        beta[i, :n_there] = dense.beta[i, there]
        log_weight[i, :n_there] = dense.log_weight[i, there]
    return Rule(dense.candidate, beta, log_weight, probe)
