"""Exact integrals over the strength beta, for every K.

For each K a trapezoidal rule in u = log(beta) around the mode of the training posterior converges
exponentially, and is refined far below every tolerance, for it costs only evaluations of the
pattern histogram. One open label barely moves the posterior of beta, so the same nodes would serve
every new point; but what a new point needs is less: integrals of smooth functions against the
training posterior. A Gauss rule of that posterior (Golub & Welsch, from the trapezoidal nodes by
Lanczos' recurrence) gives them with a handful of nodes. How many is decided by integrating
functions of the kind that occur.

With few points one label matters: where only a single point speaks against a large beta, a label
that silences it opens the posterior's upper tail. The range of the nodes and the measure of the
Gauss rule allow for that: it lies halfway, in logarithms, between the posterior and the posterior
without its worst term.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kfree.inference.mode import maximize
from kfree.inference.prior import GammaPrior

# Log densities this far below the maximum do not count (e^-37 < 1e-16).
NEGLIGIBLE = 37.0
# Steps of the trapezoidal rule: half a standard deviation, and at most this in log(beta), which
# keeps the poles of the softmax far away even when the data say nothing about beta.
LARGEST_STEP = 0.15
# Models whose evidence is this far below the best are left out of predictions: e^-25 < 2e-11, of
# which a new point's own evidence may take back a part.
NEGLIGIBLE_EVIDENCE = 25.0
# Models that Laplace's formula puts this far below the best are not integrated at all.
HOPELESS_EVIDENCE = 45.0
# Largest relative error of the test integrals that a Gauss rule may have, for a K of probability
# 1e-3 or more; less probable K may have more.
GAUSS_TOLERANCE = 1e-8
# The same for the posterior without its worst term, the extreme of what one label can do.
LIFT_TOLERANCE = 1e-7


@dataclass(frozen=True)
class Rule:
    """Nodes and log weights for each K; the weights of all K add up to one.

    A K that needs fewer nodes than others has -inf as the log weight of the rest.
    """

    beta: np.ndarray  # (n_k, n_nodes)
    log_weight: np.ndarray  # (n_k, n_nodes)

    def of(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and log weights of the i-th K."""
        used = self.log_weight[i] > -np.inf
        return self.beta[i, used], self.log_weight[i, used]


@dataclass(frozen=True)
class Modes:
    """Where the posterior of log(beta) peaks for each K, and how widely."""

    beta: np.ndarray  # (n_k,)
    std: np.ndarray  # (n_k,) of log(beta)
    log_evidence: np.ndarray  # (n_k,) by Laplace's formula

    @property
    def k_probabilities(self) -> np.ndarray:
        weight = np.exp(self.log_evidence - self.log_evidence.max())
        return weight / weight.sum()


@dataclass(frozen=True)
class TrainingPosterior:
    """The posterior of K and beta given the training labels."""

    modes: Modes
    log_evidence: np.ndarray  # (n_k,) log p(z | K)
    k_probabilities: np.ndarray  # (n_k,)
    log_normalizer: float  # log p(z) under the uniform prior of K
    first: int  # the rows of the following belong to K = first + 1, first + 2, ...
    dense: Rule
    log_lift: np.ndarray  # (n_rows, n_nodes) less the worst term's logarithm

    @property
    def beta_mean(self) -> float:
        return float((np.exp(self.dense.log_weight) * self.dense.beta).sum())

    @property
    def beta_std(self) -> float:
        weight = np.exp(self.dense.log_weight)
        return float(np.sqrt((weight * (self.dense.beta - self.beta_mean) ** 2).sum()))

    def active(self) -> np.ndarray:
        """The K that matter for predictions: indices from 0."""
        return np.flatnonzero(self.log_evidence > self.log_evidence.max() - NEGLIGIBLE_EVIDENCE)


def find_modes(log_likelihood: Callable, n_k: int, prior: GammaPrior) -> Modes:
    """The modes for K = 1..n_k.

    Parameters
    ----------
    log_likelihood : takes beta (n, n_beta), whether derivatives are wanted, and the slice of the
        n values of K - 1; gives value, slope, curvature, each (n, n_beta)
    """

    def tilted(beta: np.ndarray) -> tuple:
        value, slope, curvature = log_likelihood(beta[:, None], True, slice(None))
        log_prior = prior.derivatives(beta, log_scale=True)
        return (
            value[:, 0] + log_prior[0],
            slope[:, 0] + log_prior[1],
            curvature[:, 0] + log_prior[2],
        )

    mode = maximize(tilted, np.full(n_k, min(5.0, prior.shape * prior.scale)), tolerance=1e-6)
    value, _, curvature = tilted(mode)
    std = 1.0 / (mode * np.sqrt(-curvature))
    return Modes(mode, std, value + np.log(std) + 0.5 * np.log(2.0 * np.pi))


def training_posterior(
    log_likelihood: Callable, log_worst: Callable, modes: Modes, prior: GammaPrior
) -> TrainingPosterior:
    """The posterior of K (uniform prior) and beta.

    Parameters
    ----------
    log_likelihood : as in `find_modes`
    log_worst : takes beta (n, n_beta) and the slice of K - 1; gives the smallest log term
    """
    n_k = len(modes.beta)
    near = np.flatnonzero(modes.log_evidence > modes.log_evidence.max() - HOPELESS_EVIDENCE)
    span = slice(int(near[0]), int(near[-1]) + 1)
    mode, step = modes.beta[span], np.minimum(0.5 * modes.std[span], LARGEST_STEP)

    def log_density(offsets: np.ndarray, rows: slice) -> np.ndarray:
        beta = mode[rows, None] * np.exp(step[rows, None] * offsets)
        ks = slice(span.start + rows.start, span.start + rows.stop)
        value = log_likelihood(beta, False, ks)[0]
        log_p = value + prior.log_density(beta) + np.log(beta)
        return np.stack([beta, log_p, -log_worst(beta, ks)])

    def extended(nodes: np.ndarray, offsets: np.ndarray, wanting: np.ndarray) -> np.ndarray:
        """Further nodes, for the K that still want them; nothing for the others."""
        more = np.stack([np.ones((len(mode), len(offsets)))] * 3) * [[[1.0]], [[-np.inf]], [[0.0]]]
        rows = slice(int(wanting[0]), int(wanting[-1]) + 1)
        more[:, rows] = log_density(offsets, rows)
        parts = [more, nodes] if offsets[0] < 0 else [nodes, more]
        return np.concatenate(parts, axis=2)

    # Outward from the mode on both sides until nothing is left for any K.
    nodes = log_density(np.arange(-14.0, 15.0), slice(0, len(mode)))  # beta, log density, log lift
    top = nodes[1].max(axis=1)
    low, high = -14.0, 14.0
    while len(wanting := np.flatnonzero(nodes[1, :, 0] > top - NEGLIGIBLE)):
        nodes = extended(nodes, np.arange(low - 8.0, low), wanting)
        low -= 8.0
    while len(wanting := np.flatnonzero(_ceiling(nodes[:, :, -1], prior) > top - NEGLIGIBLE)):
        nodes = extended(nodes, np.arange(high + 1.0, high + 9.0), wanting)
        high += 8.0
    beta, log_p, log_lift = nodes
    log_mass = log_p + np.log(step)[:, None]
    log_evidence = modes.log_evidence.copy()
    log_evidence[span] = _log_sum(log_mass)[:, 0]
    best = log_evidence.max()
    k_probabilities = np.exp(log_evidence - best)
    total = k_probabilities.sum()
    log_sum = best + np.log(total)
    return TrainingPosterior(
        modes,
        log_evidence,
        k_probabilities / total,
        float(log_sum - np.log(n_k)),
        span.start,
        Rule(beta, log_mass - log_sum),
        log_lift,
    )


def _ceiling(node: np.ndarray, prior: GammaPrior) -> np.ndarray:
    """How large one more label can make the log density at a node: (n_k,).

    It may silence two of the worst terms; no likelihood is above one, so the prior always bounds.
    """
    beta, log_p, log_lift = node
    return np.minimum(log_p + 2.0 * log_lift, prior.log_density(beta) + np.log(beta))


def reduced(
    posterior: TrainingPosterior, log_worst: Callable, n_classes: int, reach: Callable
) -> Rule:
    """A Gauss rule of few nodes for each K that matters.

    `reach` says for K how many of its worst terms an open label may take from the posterior.
    """
    active = posterior.active()
    rows = active - posterior.first
    part = reach(active + 1.0)[:, None]
    beta, log_weight = posterior.dense.beta[rows], posterior.dense.log_weight[rows]
    log_total = _log_sum(log_weight)
    log_p = log_weight - log_total
    log_lift = part * posterior.log_lift[rows]
    log_lifted = _log_sum(log_p + log_lift)
    log_half = _log_sum(log_p + 0.5 * log_lift)
    measure = np.exp(log_p + 0.5 * log_lift - log_half)
    exact = [(np.exp(log_p) * f).sum(axis=1) for f in _tests(beta, n_classes)]
    slack = np.maximum(1.0, 1e-3 / posterior.k_probabilities[active])
    open_rows = np.ones(len(active), dtype=bool)
    width = 0
    for n_nodes in (4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48):
        if n_nodes >= beta.shape[1]:
            break
        node, weight = gauss_rule(np.log(posterior.dense.beta[rows]), measure, n_nodes)
        node = np.exp(node)
        lift = part * _at_active(log_worst, node, active)
        with np.errstate(divide="ignore"):  # an outermost weight may underflow
            log_gauss = np.log(weight) + log_half - 0.5 * lift
        weight = np.exp(log_gauss)
        found = [
            (weight * f).sum(axis=1) / e
            for f, e in zip(_tests(node, n_classes), exact, strict=True)
        ]
        error = np.max([np.abs(f - 1.0) for f in found], axis=0)
        lifted = np.abs(np.exp(log_gauss + lift - log_lifted).sum(axis=1) - 1.0)
        good = open_rows & (error < slack * GAUSS_TOLERANCE) & (lifted < slack * LIFT_TOLERANCE)
        beta[good, :n_nodes] = node[good]
        log_weight[good, :n_nodes] = (log_gauss + log_total)[good]
        log_weight[good, n_nodes:] = -np.inf
        open_rows &= ~good
        width = n_nodes if good.any() else width
        if not open_rows.any():
            return Rule(beta[:, :width], log_weight[:, :width])
    return Rule(beta, log_weight)


def _log_sum(values: np.ndarray) -> np.ndarray:
    top = values.max(axis=1, keepdims=True)
    return top + np.log(np.exp(values - top).sum(axis=1, keepdims=True))


def _at_active(log_worst: Callable, beta: np.ndarray, active: np.ndarray) -> np.ndarray:
    span = slice(int(active[0]), int(active[-1]) + 1)
    every = np.ones((span.stop - span.start, beta.shape[1]))
    every[active - span.start] = beta
    return -log_worst(every, span)[active - span.start]


def _tests(beta: np.ndarray, n_classes: int) -> list[np.ndarray]:
    """What an open label multiplies the posterior with, at its extremes.

    A term with all its neighbors in the class (squared: the points that it touches say about as
    much again) and one with none of them.
    """
    agree = 1.0 / (1.0 + (n_classes - 1) * np.exp(-beta))
    return [agree, agree**2, agree * np.exp(-beta), beta, beta**2]


def gauss_rule(node: np.ndarray, weight: np.ndarray, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """The n-point Gauss rules of discrete measures.

    Parameters
    ----------
    node, weight : (n_measures, n_points), weights of each measure add up to one

    Returns
    -------
    nodes and weights : (n_measures, n_nodes), exact for polynomials up to degree 2 n_nodes - 1
    """
    center = (node * weight).sum(axis=1, keepdims=True)
    spread = np.sqrt((weight * (node - center) ** 2).sum(axis=1, keepdims=True))
    x = (node - center) / spread
    vector = np.sqrt(weight)
    basis = [vector]
    jacobi = np.zeros((len(x), n_nodes, n_nodes))
    for j in range(n_nodes):
        image = x * vector
        jacobi[:, j, j] = (image * vector).sum(axis=1)
        if j + 1 == n_nodes:
            break
        # Orthogonalised twice against all before: the recurrence alone loses orthogonality.
        for _ in range(2):
            for other in basis:
                image = image - (image * other).sum(axis=1, keepdims=True) * other
        length = np.sqrt((image * image).sum(axis=1))
        jacobi[:, j, j + 1] = jacobi[:, j + 1, j] = length
        vector = image / length[:, None]
        basis.append(vector)
    values, vectors = np.linalg.eigh(jacobi)
    return center + spread * values, vectors[:, 0, :] ** 2
