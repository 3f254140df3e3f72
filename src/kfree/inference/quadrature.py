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

from kfree.inference.gauss import jacobi_matrices
from kfree.inference.mode import Newton
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
# How far from the mode, in widths of the posterior, the search may end, and how long its last step
# may be. Modes need not be sharp, least of all those of hopeless models: there the log evidence may
# be wrong by so much, or the step so long.
MODE_ERROR = 2e-3
LARGEST_MODE_STEP = 1.0
HOPELESS_ERROR = 1.0
HOPELESS_STEP = 1.0
MODE_STEPS = 100
# How far in log(beta) the nodes may go on a guess.
LARGEST_LEAP = 1.0
TINY = 1e-300
# Largest relative error of the test integrals that a Gauss rule may have, for a K of probability
# 1e-3 or more; less probable K may have more.
GAUSS_TOLERANCE = 1e-8
# The same for the posterior without its worst term, the extreme of what one label can do.
LIFT_TOLERANCE = 1e-7
# How many terms as bad as the worst one label may silence, for the range of the nodes.
SILENCED = 8.0
# For how many of these a Gauss rule is made; rows that go beyond are found out (`Rule.doubt`).
LARGEST_REACH = 3.0
# The sizes of Gauss rules that are tried.
GAUSS_NODES = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24)
# Two or three nodes see little of a function; they are taken only where they err much less than
# others may.
FEWEST_NODES_STRICTNESS = 0.1
# Most K need no more than this.
FEW_NODES = 8
# Log densities this far below the maximum are left out of the trimmed rule (e^-26 < 1e-11).
TRIMMED_NEGLIGIBLE = 26.0


@dataclass(frozen=True)
class Rule:
    """Nodes and log weights for each K; the weights of all K add up to one.

    A K that needs fewer nodes than others has -inf as the log weight of the rest.
    """

    k: np.ndarray  # (n_k,) rising
    beta: np.ndarray  # (n_k, n_nodes)
    log_weight: np.ndarray  # (n_k, n_nodes)
    # (n_k, 2, n_nodes) the last two orthogonal polynomials that a Gauss rule resolves; None if the
    # nodes serve any function.
    probe: np.ndarray | None = None

    def doubt(self, i: int, weight: np.ndarray) -> np.ndarray:
        """About how wrong the i-th K's integrals are under weights (n_rows, n_nodes): (n_rows,).

        A Gauss rule of n nodes errs by a function's coefficients beyond the degree 2 n - 1. Those
        of degree n - 2 and n - 1 can be seen, and the coefficients of a smooth function fall off
        like a power, so the unseen ones are about the square of those.
        """
        if self.probe is None:
            return np.zeros(len(weight))
        used = self.log_weight[i] > -np.inf
        if weight.shape[1] == len(used):
            used = slice(None)
        return (np.abs(weight @ self.probe[i][:, used].T).max(axis=1)) ** 2

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

    def near(self) -> slice:
        """The stretch of K - 1 in which all K are that are not hopeless."""
        near = np.flatnonzero(self.log_evidence > self.log_evidence.max() - HOPELESS_EVIDENCE)
        return slice(int(near[0]), int(near[-1]) + 1)


@dataclass(frozen=True)
class TrainingPosterior:
    """The posterior of K and beta given the training labels."""

    modes: Modes
    log_evidence: np.ndarray  # (n_k,) log p(z | K)
    k_probabilities: np.ndarray  # (n_k,)
    log_normalizer: float  # log p(z) under the uniform prior of K
    dense: Rule
    log_lift: np.ndarray  # (n_rows, n_nodes) less the worst term's logarithm
    log_headroom: np.ndarray  # (n_rows, n_nodes) how far one more label can raise the density

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


def find_modes(
    log_likelihood: Callable, n_k: int, prior: GammaPrior, near: Modes | None = None
) -> Modes:
    """The modes for K = 1..n_k.

    Parameters
    ----------
    log_likelihood : takes beta (n, n_beta), whether derivatives are wanted, and the slice of the
        n values of K - 1; gives value, slope, curvature, each (n, n_beta)
    near : modes of the first few K, to start from
    """
    start = np.full(n_k, min(5.0, prior.shape * prior.scale))
    if near is not None:
        start = np.pad(near.beta, (0, n_k - len(near.beta)), mode="edge")
    search = Newton(start)
    at, log_maximum, curvature = start.copy(), np.empty(n_k), np.empty(n_k)
    span = slice(0, n_k)
    done = np.zeros(n_k, dtype=bool)
    for _ in range(MODE_STEPS):
        at[span] = beta = search.beta[span].copy()
        likelihood = log_likelihood(beta[:, None], True, span)
        value, slope, curvature[span] = (
            of_data[:, 0] + of_prior
            for of_data, of_prior in zip(
                likelihood, prior.derivatives(beta, log_scale=True), strict=True
            )
        )
        # The rest of the way is short, so a parabola tells how high the maximum is.
        bent = np.minimum(curvature[span], -TINY)
        log_maximum[span] = value - np.where(curvature[span] < 0, 0.5 * slope**2 / bent, 0.0)
        width = 1.0 / np.sqrt(np.maximum(-curvature, TINY))
        log_evidence = log_maximum + np.log(width / at) + 0.5 * np.log(2.0 * np.pi)
        hopeless = log_evidence < log_evidence.max() - 2.0 * HOPELESS_EVIDENCE
        # The parabola errs by about (step / width)^3 (width / beta) / 6 there, and after a step the
        # mode is (step / width)^2 (width / beta) widths away.
        rough = np.maximum(HOPELESS_STEP, np.cbrt(6.0 * HOPELESS_ERROR * at / width))
        sharp = np.minimum(LARGEST_MODE_STEP, np.sqrt(MODE_ERROR * at / width))
        enough = np.where(hopeless, rough, sharp) * width / at
        done[span] = search.step(slope, curvature[span], enough[span], span)
        wanting = np.flatnonzero(~done)
        if not len(wanting):
            break
        span = slice(int(wanting[0]), int(wanting[-1]) + 1)
    return Modes(search.beta, width / search.beta, log_evidence)


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
    span = modes.near()
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
    low, high, n_more = -14.0, 14.0, 8
    while len(wanting := np.flatnonzero(nodes[1, :, 0] > top - NEGLIGIBLE)):
        # The likelihood levels off towards zero, where the prior falls like beta^shape.
        left = (nodes[1, :, 0] - top + NEGLIGIBLE) / (prior.shape * step)
        n_more = min(n_more, int(np.ceil(left.max())) + 1)
        nodes = extended(nodes, np.arange(low - n_more, low), wanting)
        low -= n_more
        n_more *= 2
    first = np.argmax((nodes[1] > top[:, None] - NEGLIGIBLE).any(axis=0))
    nodes, n_more = nodes[:, :, max(0, first - 1) :], 8
    while len(wanting := np.flatnonzero(_ceiling(nodes[:, :, -1], prior) > top - NEGLIGIBLE)):
        foreseen = _steps_down(_ceiling(nodes[:, :, -3:], prior), top - NEGLIGIBLE)
        n_more = max(n_more, min(foreseen, int(LARGEST_LEAP / step.max())))
        nodes = extended(nodes, np.arange(high + 1.0, high + n_more + 1.0), wanting)
        high += n_more
        n_more *= 2
    beta, log_p, log_lift = nodes
    with np.errstate(invalid="ignore"):  # nodes that were not wanted
        log_headroom = np.nan_to_num(_ceiling(nodes, prior) - log_p)
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
        Rule(np.arange(span.start, span.stop) + 1, beta, log_mass - log_sum),
        log_lift,
        log_headroom,
    )


def _ceiling(node: np.ndarray, prior: GammaPrior) -> np.ndarray:
    """How large one more label can make the log density at nodes (beta, log density, log lift).

    It may silence a few of the worst terms; no likelihood is above one, so the prior always bounds.
    """
    beta, log_p, log_lift = node
    return np.minimum(log_p + SILENCED * log_lift, prior.log_density(beta) + np.log(beta))


def _steps_down(last: np.ndarray, bottom: np.ndarray) -> int:
    """After how many more nodes parabolas through the last three (n_k, 3) are at the bottom."""
    known = np.isfinite(last).all(axis=1) & (last[:, 2] > bottom)
    last, left = last[known], last[known, 2] - bottom[known]
    bend = last[:, 2] - 2.0 * last[:, 1] + last[:, 0]
    fall = last[:, 2] - last[:, 1] + 0.5 * bend
    falls = bend < 0
    fall, bend, left = fall[falls], bend[falls], left[falls]
    n_steps = (fall + np.sqrt(fall * fall - 2.0 * bend * left)) / -bend
    return int(np.ceil(n_steps.max(initial=0.0)))


def all_nodes(posterior: TrainingPosterior) -> Rule:
    """The trapezoidal rule as it is, for each K that matters."""
    rows = posterior.active() + 1 - posterior.dense.k[0]
    dense = posterior.dense
    return Rule(dense.k[rows], dense.beta[rows], dense.log_weight[rows])


def trimmed(posterior: TrainingPosterior) -> Rule:
    """The nodes of the trapezoidal rule that can matter, whatever an open label does."""
    rows = posterior.active() + 1 - posterior.dense.k[0]
    beta, log_weight = posterior.dense.beta[rows], posterior.dense.log_weight[rows]
    log_reach = log_weight + posterior.log_headroom[rows]
    matters = log_reach > log_weight.max(axis=1, keepdims=True) - TRIMMED_NEGLIGIBLE
    return Rule(posterior.dense.k[rows], beta, np.where(matters, log_weight, -np.inf))


def reduced(
    posterior: TrainingPosterior, log_worst: Callable, n_classes: int, reach: Callable
) -> Rule:
    """A Gauss rule of few nodes for each K that matters.

    `reach` says for K how many of its worst terms an open label may take from the posterior. A K
    for which no small Gauss rule is good enough keeps its trapezoidal rule.
    """
    active = posterior.active()
    rows = active + 1 - posterior.dense.k[0]
    part = np.minimum(reach(active + 1.0), LARGEST_REACH)[:, None]
    dense, log_weight = posterior.dense.beta[rows], posterior.dense.log_weight[rows]
    log_total = _log_sum(log_weight)
    log_p = log_weight - log_total
    last = log_p.shape[1] - 1 - np.argmax(log_p[:, ::-1] > -np.inf, axis=1)
    # Without its worst terms the posterior may no longer die out within the nodes: then less is
    # taken away.
    while (rises := (log_p + part * posterior.log_lift[rows]).argmax(axis=1) > last - 2).any():
        part[rises] *= 0.5
    log_lift = part * posterior.log_lift[rows]
    log_lifted = _log_sum(log_p + log_lift)
    log_half = _log_sum(log_p + 0.5 * log_lift)
    exact = [(np.exp(log_p) * f).sum(axis=1) for f in _tests(dense, n_classes)]
    slack = np.maximum(1.0, 1e-3 / posterior.k_probabilities[active])
    measure = np.log(dense), np.exp(log_p + 0.5 * log_lift - log_half)
    jacobi = jacobi_matrices(*measure, FEW_NODES)
    found: list[tuple | None] = [None] * len(active)
    todo = np.arange(len(active))
    for n_nodes in GAUSS_NODES:
        if n_nodes > jacobi.diagonal.shape[1]:
            jacobi = jacobi_matrices(measure[0][todo], measure[1][todo], GAUSS_NODES[-1])
        node, weight, probe = jacobi.rule(n_nodes)
        node = np.exp(node)
        lift = part[todo] * _at_active(log_worst, node, active[todo])
        with np.errstate(divide="ignore"):  # an outermost weight may underflow
            log_gauss = np.log(weight) + log_half[todo] - 0.5 * lift
        weight = np.exp(log_gauss)
        ratio = [
            (weight * f).sum(axis=1) / e[todo]
            for f, e in zip(_tests(node, n_classes), exact, strict=True)
        ]
        error = np.max([np.abs(r - 1.0) for r in ratio], axis=0)
        lifted = np.abs(np.exp(log_gauss + lift - log_lifted[todo]).sum(axis=1) - 1.0)
        allowed = slack[todo] * (1.0 if n_nodes > 3 else FEWEST_NODES_STRICTNESS)
        good = (error < allowed * GAUSS_TOLERANCE) & (lifted < allowed * LIFT_TOLERANCE)
        for i in np.flatnonzero(good):
            found[todo[i]] = node[i], log_gauss[i] + log_total[todo[i]], probe[i]
        todo, jacobi = todo[~good], jacobi.take(~good)
        if not len(todo):
            break
    if len(todo):
        rest = trimmed(posterior)
        for i in todo:
            node, log_node = rest.of(int(i))
            found[i] = node, log_node, np.zeros((2, len(node)))
    return _padded(active + 1, found)


def _padded(k: np.ndarray, rules: list) -> Rule:
    width = max(len(node) for node, _, _ in rules)
    beta = np.ones((len(rules), width))
    log_weight = np.full((len(rules), width), -np.inf)
    probe = np.zeros((len(rules), 2, width))
    for i, (node, log_w, last) in enumerate(rules):
        beta[i, : len(node)], log_weight[i, : len(node)] = node, log_w
        probe[i, :, : len(node)] = last
    return Rule(k, beta, log_weight, probe)


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
