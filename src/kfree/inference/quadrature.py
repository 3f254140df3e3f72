"""Exact integrals over the strength beta, for each candidate of K.

For each K a trapezoidal rule in u = log(beta) around the mode of the training posterior converges
exponentially. Its step is halved until two levels agree, which also serves densities that are far
from a Gaussian: where classes are separated, the density is a cliff.

The nodes reach as far as any open label can carry the posterior, to either side: one label
multiplies the likelihood by something between exp(-g beta) and exp(g beta), with a slope g that is
known for each row, and no likelihood is above one. Most rows have a small g; nodes that allow for
more are made for those that need them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from kfree.inference.mode import Newton
from kfree.inference.prior import GammaPrior

# Log densities this far below the maximum do not count (e^-37 < 1e-16).
NEGLIGIBLE = 37.0
# Nodes reach far enough if the last of them holds less than e^-20 of the whole.
COVERED = 20.0
# How far one open label may lower the whole, so that what is left counts for more.
LOWERED = 6.0
# The first step of the trapezoidal rule, in standard deviations and at most.
FIRST_STEP = 0.6
LARGEST_STEP = 0.3
# Candidates whose maximum is this far below the best have a coarser rule, good to a few digits; if
# a label brings one back that is half as far below, it is integrated again.
HOPELESS = 300.0
# Two levels agree if their evidence and mean of beta differ by so much: halving the step squares
# the error at least, so that the finer level is good to 1e-11.
AGREEMENT = 3e-6
MOST_LEVELS = 8
# How far from the mode, in widths of the posterior, the search may end.
MODE_ERROR = 1e-2
MODE_STEPS = 200
TINY = 1e-300
# The slope that nodes allow for at first: a new row enters twice as many lists as it has neighbors.
# With 1 half of the rows among separated embeddings have to look at the ends of the nodes.
FIRST_TILT = 4.0

LogLikelihood = Callable[[np.ndarray, bool, np.ndarray], tuple]


@dataclass(frozen=True)
class Rule:
    """Nodes and log weights for some candidates of K; the weights of all add up to one.

    A candidate that needs fewer nodes than others has -inf as the log weight of the rest.
    """

    candidate: np.ndarray  # (n,) which candidates, rising
    beta: np.ndarray  # (n, n_nodes)
    log_weight: np.ndarray  # (n, n_nodes)
    # (n, 2, n_nodes) the last two orthogonal polynomials that a Gauss rule resolves; None if the
    # nodes serve any function.
    probe: np.ndarray | None = None

    def doubt(self, i: int, weight: np.ndarray) -> np.ndarray:
        """About how wrong the i-th integrals are under weights (n_rows, n_nodes): (n_rows,).

        A Gauss rule of n nodes errs by a function's coefficients beyond the degree 2 n - 1. Those
        of degree n - 2 and n - 1 can be seen, and the coefficients of a smooth function fall off
        like a power, so the unseen ones are about the square of those.
        """
        if self.probe is None:
            return np.full(len(weight), -np.inf)
        used = self.log_weight[i] > -np.inf
        return (np.abs(weight @ self.probe[i][:, used].T).max(axis=1)) ** 2

    def of(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and log weights of the i-th candidate of the rule."""
        used = self.log_weight[i] > -np.inf
        return self.beta[i, used], self.log_weight[i, used]

    def take(self, rows: np.ndarray) -> Rule:
        """The rule for some of its candidates."""
        probe = None if self.probe is None else self.probe[rows]
        return Rule(self.candidate[rows], self.beta[rows], self.log_weight[rows], probe)


@dataclass(frozen=True)
class BetaPosterior:
    """p(beta, z | K) for some candidates: where it peaks, and nodes to integrate it with."""

    mode: np.ndarray  # (n_k,) of the density of log(beta)
    std: np.ndarray  # (n_k,) of log(beta), by the curvature at the mode
    log_evidence: np.ndarray  # (n_k,) log p(z | K)
    beta: np.ndarray  # (n_k, n_nodes)
    log_mass: np.ndarray  # (n_k, n_nodes) log of density times step; -inf for what is not a node
    # (n_k,) whether the nodes end where the prior itself has died out, far enough for any label.
    bounded: np.ndarray

    def covers(self, slope: np.ndarray) -> np.ndarray:
        """Whether the nodes reach far enough for factors exp(slope beta), slopes (n_k,): (n_k,)."""
        last = (self.log_mass > -np.inf).sum(axis=1) - 1
        each = np.arange(len(last))
        end = self.log_mass[each, last] + slope * self.beta[each, last]
        start = self.log_mass[:, 0] - slope * self.beta[:, 0]
        reaches = self.bounded | (end < self.log_tilted(slope) - COVERED)
        return reaches & (start < self.log_tilted(-slope) - COVERED)

    def log_tilted(self, slope: np.ndarray) -> np.ndarray:
        """Log of the integral of p(beta, z | K) exp(slope beta), slopes (n_k,): (n_k,)."""
        return log_sum(self.log_mass + slope[:, None] * self.beta)

    def log_beyond(self, slope: np.ndarray | float) -> np.ndarray:
        """At most the part of that integral which lies beyond the last nodes: (n_k,).

        The log likelihood is concave in beta, as that of an exponential family, and so is the log
        prior but for a part of a slope below 1 / beta: beyond the last node the log density falls
        at least as fast as it did before it.
        """
        each, last = np.arange(len(self.mode)), (self.log_mass > -np.inf).sum(axis=1) - 1
        place = each, np.stack([last - 1, last])
        beta = self.beta[place]
        return np.where(self.bounded, -np.inf, _tail(beta, self.log_mass[place] + slope * beta))

    def log_before(self, slope: np.ndarray | float, shape: float) -> np.ndarray:
        """At most the part of the integral of p(beta, z | K) exp(-slope beta) before the nodes."""
        beta = self.beta[:, :2].T
        return _head(beta, self.log_mass[:, :2].T - slope * beta, shape)

    def ends(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """The first two nodes of the i-th candidate and its last two, and their log masses.

        Only the first two where the prior has died out at the last ones.
        """
        last = int((self.log_mass[i] > -np.inf).sum()) - 1
        place = [0, 1] if self.bounded[i] else [0, 1, last - 1, last]
        return self.beta[i, place], self.log_mass[i, place]

    def log_outside(
        self, i: int, beta: np.ndarray, log_mass: np.ndarray, shape: float
    ) -> np.ndarray:
        """At most the log mass outside the nodes of the i-th candidate.

        Parameters
        ----------
        beta : (2 or 4,) the `ends`
        log_mass : (n, 2 or 4) there, of functions whose logarithm is concave but for the prior's
        shape : of the prior, which rises as a power of beta
        """
        before = _head(beta[:2, None], log_mass[:, :2].T, shape)
        if self.bounded[i]:
            return before
        return np.logaddexp(before, _tail(beta[2:, None], log_mass[:, 2:].T))

    def take(self, which: np.ndarray) -> BetaPosterior:
        """The posteriors of some candidates."""
        return BetaPosterior(*(getattr(self, field.name)[which] for field in fields(self)))


def _head(beta: np.ndarray, log_mass: np.ndarray, shape: float) -> np.ndarray:
    """Log of the integral before the first of two nodes, at most, from (2, n) log masses there.

    The density of log(beta) is beta ** shape times a function with a concave logarithm, which
    toward zero rises at most as fast as it does from the second node to the first.
    """
    width = np.log(beta[1] / beta[0])
    fall = (log_mass[0] - log_mass[1] + shape * width) / (beta[1] - beta[0])
    return log_mass[0] - np.log(width * shape) + np.maximum(fall, 0.0) * beta[0]


def _tail(beta: np.ndarray, log_mass: np.ndarray) -> np.ndarray:
    """Log of the integral beyond the last of two nodes, at most, from (2, n) log masses there."""
    log_p = log_mass - np.log(beta)
    fall = (log_p[0] - log_p[1]) / (beta[1] - beta[0]) - 1.0 / beta[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = log_p[1] - np.log(np.log(beta[1] / beta[0])) - np.log(fall)
    return np.where(fall > 0.0, tail, np.inf)


def log_sum(values: np.ndarray) -> np.ndarray:
    """Log of the sum of exponentials over the last axis."""
    top = values.max(axis=-1)
    return top + np.log(np.exp(values - top[..., None]).sum(axis=-1))


def integrate(
    log_likelihood: LogLikelihood,
    n_k: int,
    prior: GammaPrior,
    tilt: np.ndarray | None = None,
    start: np.ndarray | None = None,
) -> BetaPosterior:
    """The posterior of beta for each of n_k candidates.

    Parameters
    ----------
    log_likelihood : takes beta (n, n_beta), whether derivatives are wanted, and the n candidates by
        rising index; gives value, slope, curvature, each (n, n_beta)
    tilt : (n_k,) slopes of open labels that the nodes allow for, where a label is known to bring
        the candidates back
    start : (n_k,) where to look for the modes first
    """
    mode, std, log_maximum = find_modes(log_likelihood, n_k, prior, start)
    # Of those that hardly a label brings back only about where they stand is needed.
    hopeless = log_maximum < log_maximum.max() - HOPELESS
    if tilt is not None:
        hopeless[:], lower = False, tilt
    else:
        # To the left the nodes end where those of reduced rules do, or nobody would notice a row
        # whose posterior lies between these and the first node.
        tilt, lower = np.full(n_k, FIRST_TILT), np.zeros(n_k)

    def log_density(u: np.ndarray, which: np.ndarray) -> np.ndarray:
        beta = np.exp(u)
        (value,) = log_likelihood(beta, False, which)
        return value + prior.log_density(beta) + u

    step = np.minimum(FIRST_STEP * std, LARGEST_STEP) * np.where(hopeless, 2.0, 1.0)
    low, high, top, lowered_top = _range(log_density, np.log(mode), step, prior, tilt, lower)
    # Ends in whole steps from the mode.
    left, right = np.ceil((np.log(mode) - low) / step), np.ceil((high - np.log(mode)) / step)
    found: list[tuple] = [()] * n_k
    todo = np.arange(n_k)
    for _ in range(MOST_LEVELS):
        n_nodes = int((left[todo] + right[todo]).max()) + 1
        place = np.arange(n_nodes) - left[todo, None]
        inside = place <= right[todo, None]
        u = np.log(mode[todo])[:, None] + np.where(inside, place, 0.0) * step[todo, None]
        log_p = np.where(inside, log_density(u, todo), -np.inf)
        counts = _reached(log_p, u, prior, tilt[todo, None]) > top[todo, None] - NEGLIGIBLE
        counts |= log_p - lower[todo, None] * np.exp(u) > lowered_top[todo, None] - NEGLIGIBLE
        # All in between count, for labels of less slope.
        any_before, any_after = (
            np.logical_or.accumulate(c, axis=1) for c in (counts, counts[:, ::-1])
        )
        counts = any_before & any_after[:, ::-1]
        log_p[~counts] = -np.inf
        log_mass = log_p + np.log(step[todo])[:, None]
        fine = _moments(log_mass, u)
        # Every other node makes the rule of twice the step.
        coarse = _moments(np.where(place % 2 == 0, log_mass + np.log(2.0), -np.inf), u)
        done = hopeless[todo] | (np.abs(fine - coarse) < AGREEMENT).all(axis=0)
        for i, j in enumerate(todo.tolist()):
            used = log_mass[i] > -np.inf
            beyond = u[i, used][-1] + step[j]
            ceiling = prior.log_density(np.exp(beyond)) + beyond + LOWERED
            bounded = ceiling <= top[j] - NEGLIGIBLE
            found[j] = np.exp(u[i, used]), log_mass[i, used], fine[0, i], bounded
        todo = todo[~done]
        if not len(todo):
            break
        step, left, right = 0.5 * step, 2.0 * left, 2.0 * right
    width = max(len(node) for node, _, _, _ in found)
    beta, log_mass = np.ones((n_k, width)), np.full((n_k, width), -np.inf)
    for j, (node, mass, _, _) in enumerate(found):
        beta[j, : len(node)], log_mass[j, : len(node)] = node, mass
    evidence, ends_with_prior = (np.array(part) for part in list(zip(*found, strict=True))[2:])
    return BetaPosterior(mode, std, evidence, beta, log_mass, ends_with_prior)


def _moments(log_mass: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The logarithms of the evidence and of the mean of beta: (2, n_k)."""
    evidence = log_sum(log_mass)
    return np.stack([evidence, log_sum(log_mass + u) - evidence])


def _reached(log_p: np.ndarray, u: np.ndarray, prior: GammaPrior, tilt: np.ndarray) -> np.ndarray:
    """How large one open label can make a log density at u = log(beta)."""
    beta = np.exp(u)
    ceiling = prior.log_density(beta) + u  # no likelihood is above one
    return np.minimum(log_p + tilt * beta, np.maximum(ceiling, log_p)) + LOWERED


def _range(
    log_density: Callable,
    mode: np.ndarray,
    step: np.ndarray,
    prior: GammaPrior,
    tilt: np.ndarray,
    lower: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Between which log(beta) the densities count, whatever one label does, and how high they are.

    Looked for by coarse steps, which grow. To the right a label raises the density by at most
    exp(tilt beta), to the left it may have lowered all by exp(-lower beta) but what is there. The
    last of the four is the height of the densities that are lowered so.
    """
    every = np.arange(len(mode))
    top = log_density(mode[:, None], every)[:, 0]
    lowered_top = top - lower * np.exp(mode)
    ends = []
    for sign in (-1.0, 1.0):
        end, stride, todo = mode.copy(), 4.0 * step, every
        while len(todo):
            end[todo] += sign * stride[todo]
            u = end[todo]
            log_p = log_density(u[:, None], todo)[:, 0]
            top[todo] = np.maximum(top[todo], log_p)
            counts = _reached(log_p, u, prior, tilt[todo]) > top[todo] - NEGLIGIBLE
            if sign < 0:
                lowered = log_p - lower[todo] * np.exp(u)
                lowered_top[todo] = np.maximum(lowered_top[todo], lowered)
                counts |= lowered > lowered_top[todo] - NEGLIGIBLE
            todo = todo[counts]
            stride[todo] *= 1.5
        ends.append(end)
    return ends[0], ends[1], top, lowered_top


def find_modes(
    log_likelihood: LogLikelihood, n_k: int, prior: GammaPrior, start: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the density of log(beta) peaks, how wide it is there and how high: (n_k,) each."""
    if start is None:
        start = np.full(n_k, min(5.0, prior.shape * prior.scale))
    search = Newton(start)
    width, height, todo = np.ones(n_k), np.zeros(n_k), np.arange(n_k)
    for _ in range(MODE_STEPS):
        beta = search.beta[todo]
        of_data = log_likelihood(beta[:, None], True, todo)
        of_prior = prior.derivatives(beta, log_scale=True)
        height[todo] = of_data[0][:, 0] + of_prior[0]
        slope = of_data[1][:, 0] + of_prior[1]
        curvature = of_data[2][:, 0] + of_prior[2]
        # In log(beta): the slope of the density there is beta times this one.
        width[todo] = 1.0 / np.sqrt(np.maximum(-curvature * beta - slope, TINY) * beta)
        # Away from the mode the density need not be concave, and its width says nothing.
        done = search.step(slope, curvature, MODE_ERROR * np.minimum(width[todo], 1.0), todo)
        todo = todo[~done]
        if not len(todo):
            break
    return search.beta, width, height


@dataclass(frozen=True)
class TrainingPosterior:
    """The posterior of K and beta given the training labels."""

    log_prior: np.ndarray  # (n_k,) of the candidates of K
    curves: BetaPosterior
    log_mass: np.ndarray  # (n_k,) log p(z, K)
    k_probabilities: np.ndarray  # (n_k,)
    log_normalizer: float  # log p(z)
    few: Rule  # the nodes that serve most rows
    fine: Rule  # the nodes that serve any row
    rule: Rule  # `few` of the candidates that matter to most rows

    def coarse(self, candidates: np.ndarray) -> np.ndarray:
        """Those of the candidates whose nodes may be the coarse ones of hopeless candidates."""
        return candidates[self.log_mass.max() - self.log_mass[candidates] > 0.5 * HOPELESS]

    def with_nodes_of(self, curves: BetaPosterior, candidates: np.ndarray) -> Rule:
        """A rule for some candidates with the nodes of posteriors that reach farther."""
        shift = self.log_prior[candidates] - self.log_normalizer
        return Rule(candidates, curves.beta, curves.log_mass + shift[:, None])

    @property
    def beta_mean(self) -> float:
        return float((np.exp(self.fine.log_weight) * self.fine.beta).sum())

    @property
    def beta_std(self) -> float:
        away = (self.fine.beta - self.beta_mean) ** 2
        return float(np.sqrt((np.exp(self.fine.log_weight) * away).sum()))
