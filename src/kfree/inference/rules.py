"""Few nodes for the integrals over beta that predictions need.

What an open label needs are integrals of smooth functions against the training posterior of beta. A
Gauss rule of that posterior (Golub & Welsch, from the trapezoidal nodes by Lanczos' recurrence)
gives them with a handful of nodes. How many is decided by integrating functions of the kind that
occur; rows for which they do not suffice are found out (`Rule.doubt`) and done with all nodes.
"""

from __future__ import annotations

import numpy as np

from kfree.inference.gauss import jacobi_matrices
from kfree.inference.quadrature import BetaPosterior, Rule, TrainingPosterior, log_sum

# Weights this far below the rest do not count (e^-18 < 2e-8).
NEGLIGIBLE = 18.0
# Candidates whose posterior is this far below the best are looked at only for rows whose label can
# bring them back. That is a bound, which is loose where beta is known badly: at 30 all rows of
# separated embeddings looked at three more candidates.
LEFT_OUT = 50.0
# Largest error of the test integrals, whose size is about one.
TOLERANCE = 1e-8
# With fewer points one label matters so much that few nodes leave half of the rows in doubt, and
# probabilities of up to 150 points off by 1e-6; with the largest rule they are off by 3e-11
# (`python benchmarks/nodes.py`).
FEW_POINTS = 1000
# The sizes of Gauss rules that are tried. Two to four nodes serve the test integrals as well, but
# among hubs (64 columns, 6 of which matter) one row in fifty or in a hundred needs more.
SIZES = (5, 6, 7, 8, 10, 12, 16, 20, 24)


def training_posterior(
    curves: BetaPosterior, log_prior: np.ndarray, n_classes: int, n_points: int
) -> TrainingPosterior:
    """The posterior of K and beta from the posteriors of beta at each K."""
    log_mass = curves.log_evidence + log_prior
    log_normalizer = float(log_sum(log_mass))
    k_probabilities = np.exp(log_mass - log_normalizer)
    active = np.flatnonzero(log_mass > log_mass.max() - LEFT_OUT)
    log_weight = curves.log_mass + log_prior[:, None] - log_normalizer
    fine = Rule(np.arange(len(log_prior)), curves.beta, log_weight)
    few = _reduced(fine, n_classes, SIZES if n_points >= FEW_POINTS else SIZES[-1:])
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


def _reduced(dense: Rule, n_classes: int, sizes: tuple[int, ...]) -> Rule:
    """A Gauss rule of few nodes for each candidate; all nodes where no small one is good enough."""
    log_total = log_sum(dense.log_weight)
    weight = np.exp(dense.log_weight - log_total[:, None])
    exact = [(weight * f).sum(axis=1) for f in _tests(dense.beta, n_classes)]
    found: list[tuple | None] = [None] * len(weight)
    todo = np.arange(len(weight))
    # In arcsinh(beta / 2), which is linear near zero and a logarithm beyond: what labels do is far
    # from any singularity there (`interpolation`), so that broad posteriors need a fifth of the
    # nodes that they need in log(beta).
    x = np.arcsinh(0.5 * dense.beta)
    jacobi = jacobi_matrices(x, weight, min(sizes[-1], weight.shape[1]))
    n_there = (weight > 0).sum(axis=1)
    for n_nodes in sizes:
        more = n_there[todo] > n_nodes  # the others have nothing to gain
        todo, jacobi = todo[more], jacobi.take(more)
        if not len(todo):
            break
        x, share, probe = jacobi.rule(n_nodes)
        node = 2.0 * np.sinh(np.maximum(x, np.finfo(float).tiny))  # may be zero but for rounding
        error = np.max(
            [
                np.abs((share * f).sum(axis=1) - e[todo]) / np.maximum(1.0, e[todo])
                for f, e in zip(_tests(node, n_classes), exact, strict=True)
            ],
            axis=0,
        )
        good = error < TOLERANCE
        with np.errstate(divide="ignore"):  # an outermost weight may underflow
            log_share = np.log(share) + log_total[todo, None]
        for i in np.flatnonzero(good):
            found[todo[i]] = node[i], log_share[i], probe[i]
        todo, jacobi = todo[~good], jacobi.take(~good)
    for j in [j for j, rule in enumerate(found) if rule is None]:
        beta, log_weight = dense.of(j)
        found[j] = beta, log_weight, np.zeros((2, len(beta)))
    return _padded(dense.candidate, found)


def _padded(candidate: np.ndarray, rules: list) -> Rule:
    """The rules (nodes, log weights, probe or None) of all candidates in one table."""
    width = max(len(node) for node, _, _ in rules)
    beta = np.ones((len(rules), width))
    log_weight = np.full((len(rules), width), -np.inf)
    probe = np.zeros((len(rules), 2, width))
    for i, (node, log_w, last) in enumerate(rules):
        beta[i, : len(node)], log_weight[i, : len(node)] = node, log_w
        if last is not None:
            probe[i, :, : len(node)] = last
    return Rule(candidate, beta, log_weight, probe if rules[0][2] is not None else None)


def _tests(beta: np.ndarray, n_classes: int) -> list[np.ndarray]:
    """What an open label multiplies the posterior with, at its extremes; and the moments of beta.

    A term with all its neighbors in the class (squared: the points that it touches say about as
    much again) and one with none of them.
    """
    agree = 1.0 / (1.0 + (n_classes - 1) * np.exp(-beta))
    return [agree, agree**2, agree * np.exp(-beta), beta, beta**2]
