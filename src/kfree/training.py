"""From labeled points to the posterior of K and beta."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from kfree.candidates import EVERY_UP_TO, Candidates, make_candidates, thin_candidates
from kfree.inference.prior import GammaPrior
from kfree.inference.quadrature import BetaPosterior, TrainingPosterior, find_modes, integrate
from kfree.inference.rules import NEGLIGIBLE, training_posterior
from kfree.likelihood.training_sum import TrainingSum
from kfree.neighbors.graph import NeighborGraph
from kfree.neighbors.search import Search
from kfree.neighbors.structures import Neighborhoods, nearest_lists, neighborhoods
from kfree.neighbors.threads import run

# Where "auto" stops at the latest; sooner if the lists would take more than so many entries (each
# 4 bytes, and about 3 more for the radii).
LAST_K_MAX = 1024
MOST_ENTRIES = 1 << 28
# How much of the posterior the last quarter octave of candidates may hold at the end.
TAIL = 1e-6
# "auto" then ends at the last K that a label of this slope could make count: a new row that enters
# twice as many lists as it has neighbors. Predictions search no farther.
USUAL_SLOPE = 4.0
# The first guess at k_max is made by some rows that look as far as "auto" goes, and corrected by
# one row in so many (no more than MOST_PILOTS) that look as far as the first say. They rule out the
# K that are so many standard errors behind the best, and would be so far behind with all rows. On
# the data of docs/performance.md and ten of docs/quality.md fit then looks 1 to 3 times as far as
# `k_max_`; with 2.5 standard errors up to 3.6 times, with 1.5 some would be searched twice. The
# second pilot costs a sixteenth of a search; without it fit looked up to 6 times as far.
FIRST_PILOTS = 500
PILOT_SHARE = 16
MOST_PILOTS = 8192
STANDARD_ERRORS = 2.0
FAR_BEHIND = 20.0
# The guess is so much larger than the last K that is not ruled out, and never below the other.
SPARE = 1.25
LEAST_GUESS = 8


@dataclass(frozen=True)
class KnownPosteriors:
    """Posteriors of beta that were integrated before, in place of a likelihood.

    Each allows for larger slopes of open labels than the one before. This is what is known of the
    training labels where they are spread over several machines.
    """

    each: tuple[BetaPosterior, ...]

    def up_to(self, n_k: int) -> KnownPosteriors:
        """The same at the first n_k candidates."""
        return KnownPosteriors(tuple(curves.take(np.arange(n_k)) for curves in self.each))

    def allowing(self, tilt: np.ndarray, which: np.ndarray) -> BetaPosterior:
        """Some candidates of the first that allows for the slopes (n_k,) there."""
        for curves in self.each:
            if curves.covers(tilt)[which].all():
                return curves.take(which)
        raise ValueError(
            f"A row enters so many neighborhoods (slope {tilt.max():.3g}) that no posterior of "
            "beta made in fit reaches far enough for it; predict it on one machine."
        )


@dataclass(frozen=True)
class Model:
    """The training points with their labels, and the posterior of (K, beta) that they give."""

    structure: str
    search: Search
    graph: NeighborGraph
    table: Neighborhoods
    labels: np.ndarray  # (n,) integers from 0
    n_classes: int
    candidates: Candidates
    prior: GammaPrior
    posterior: TrainingPosterior
    likelihood: TrainingSum  # counts nothing until it is asked

    @property
    def n_k(self) -> int:
        return len(self.candidates)


def train(
    search: Search,
    labels: np.ndarray,
    n_classes: int,
    structure: str,
    k_values: str | np.ndarray,
    k_max: int | None,
    prior: GammaPrior,
    n_jobs: int | None,
) -> Model:
    """The model of labeled points; k_max None: as many neighbors as the posterior asks for."""
    limit = auto_limit(len(labels), search.most_neighbors)
    auto = isinstance(k_values, str) and k_max is None
    if not isinstance(k_values, str):
        k = int(np.max(k_values))
    elif k_max is not None:
        k = k_max
    else:
        k = _likely_k_max(search, labels, n_classes, limit, prior, n_jobs)
    while True:
        candidates = make_candidates(k_values, k)
        graph = search.graph(candidates.k, n_jobs)
        table = neighborhoods(structure, graph)
        likelihood = TrainingSum(table, labels, n_classes, n_jobs)
        curves = beta_posterior(likelihood, prior, n_jobs)
        posterior = training_posterior(curves, candidates.log_prior, len(labels))
        if not auto:
            break
        tail = tail_mass(posterior, candidates)
        if tail < TAIL or k >= search.most_neighbors:
            break
        if k == limit:
            warn_of_tail(k, tail, stacklevel=4)
            break
        k = min(2 * k, limit)
    n_k = n_that_count(posterior) if auto else len(candidates)
    if n_k < len(candidates):
        candidates = make_candidates(k_values, int(candidates.k[n_k - 1]))
        graph, table, curves = graph.up_to(n_k), table.up_to(n_k), curves.take(np.arange(n_k))
        posterior = training_posterior(curves, candidates.log_prior, len(labels))
    fresh = TrainingSum(table, labels, n_classes, n_jobs)
    return Model(
        structure, search, graph, table, labels, n_classes, candidates, prior, posterior, fresh
    )


def auto_limit(n_points: int, most_neighbors: int) -> int:
    """How many neighbors k_max="auto" looks at, at most."""
    return int(min(most_neighbors, LAST_K_MAX, max(EVERY_UP_TO, MOST_ENTRIES // n_points)))


def tail_mass(posterior: TrainingPosterior, candidates: Candidates) -> float:
    """How much of the posterior the last quarter octave of the candidates holds."""
    last = candidates.k > candidates.k[-1] * 2.0**-0.25
    return float(posterior.k_probabilities[last].sum())


def n_that_count(posterior: TrainingPosterior) -> int:
    """How many candidates, from the first, a label of the usual slope can make count."""
    slope = np.full(len(posterior.log_prior), USUAL_SLOPE)
    reached = posterior.curves.log_tilted(slope) + posterior.log_prior
    last = int(np.flatnonzero(reached > posterior.log_mass.max() - NEGLIGIBLE)[-1])
    return max(last, int(posterior.rule.candidate[-1])) + 1


def warn_of_tail(k: int, tail: float, stacklevel: int) -> None:
    """Say that k_max="auto" had to stop before the posterior died out."""
    warnings.warn(
        f"k_max='auto' stopped at {k} neighbors, where the posterior of k still has a "
        f"mass of {tail:.2g} near its end; give a larger k_max to look further.",
        UserWarning,
        stacklevel=stacklevel,
    )


def assemble(
    search: Search,
    graph: NeighborGraph,
    labels: np.ndarray,
    n_classes: int,
    structure: str,
    candidates: Candidates,
    prior: GammaPrior,
    curves: BetaPosterior,
) -> Model:
    """The model of a neighbor graph and the posteriors of beta, both found before."""
    table = neighborhoods(structure, graph)
    posterior = training_posterior(curves, candidates.log_prior, len(labels))
    likelihood = TrainingSum(table, labels, n_classes)
    return Model(
        structure, search, graph, table, labels, n_classes, candidates, prior, posterior, likelihood
    )


def beta_posterior(
    likelihood: TrainingSum | KnownPosteriors,
    prior: GammaPrior,
    n_jobs: int | None = None,
    tilt: np.ndarray | None = None,
    which: np.ndarray | None = None,
) -> BetaPosterior:
    """The posteriors of beta of all candidates or of some, a group of them at a time.

    `tilt` (n_k,) are slopes that they allow for.
    """
    if isinstance(likelihood, KnownPosteriors):
        assert tilt is not None and which is not None
        return likelihood.allowing(tilt, which)
    groups = likelihood.groups()
    if which is not None:
        groups = [part for group in groups if len(part := np.intersect1d(group, which))]

    def of_group(group: np.ndarray) -> BetaPosterior:
        slope = None if tilt is None else tilt[group]
        return integrate(likelihood.curves(group), len(group), prior, slope)

    return together(run(of_group, groups, n_jobs))


def together(parts: list[BetaPosterior]) -> BetaPosterior:
    """The posteriors of beta of groups of candidates as one."""
    if len(parts) == 1:
        return parts[0]
    width = max(part.beta.shape[1] for part in parts)

    def wide(values: np.ndarray, fill: float) -> np.ndarray:
        return np.pad(values, ((0, 0), (0, width - values.shape[1])), constant_values=fill)

    return BetaPosterior(
        np.concatenate([part.mode for part in parts]),
        np.concatenate([part.std for part in parts]),
        np.concatenate([part.log_evidence for part in parts]),
        np.concatenate([wide(part.beta, 1.0) for part in parts]),
        np.concatenate([wide(part.log_mass, -np.inf) for part in parts]),
        np.concatenate([part.bounded for part in parts]),
    )


def _likely_k_max(
    search: Search,
    labels: np.ndarray,
    n_classes: int,
    limit: int,
    prior: GammaPrior,
    n_jobs: int | None,
) -> int:
    """How far the posterior of K is likely to go. It is then computed from all rows."""
    k_max = limit
    for rows in pilots(len(labels)):
        k = thin_candidates(k_max)
        table = nearest_lists(k, search.graph(k, n_jobs, rows).indices)
        pilot = TrainingSum(table, labels, n_classes, n_jobs, rows, by_point=True)
        k_max = guessed_k_max(pilot, k, prior, len(rows), len(labels))
    return k_max


def pilots(n_points: int) -> list[np.ndarray]:
    """The rows that guess at k_max, first a few and then more; none if that is not worth while."""
    numbers = [FIRST_PILOTS, min(MOST_PILOTS, n_points // PILOT_SHARE)]
    if n_points <= 2 * FIRST_PILOTS:
        return []
    if numbers[1] < numbers[0]:
        del numbers[1]
    # By lot, always the same: rows at equal steps may all come from one of several sources.
    order = np.random.default_rng(0).permutation(n_points)
    return [np.sort(order[:number]) for number in numbers]


def guessed_k_max(
    pilot: TrainingSum, k: np.ndarray, prior: GammaPrior, n_rows: int, n_points: int
) -> int:
    """The guess that the terms of n_rows of n_points give, each known for the candidates `k`."""
    term = np.empty((len(k), n_rows))
    for which, curves in pilot.each():
        mode = find_modes(curves, len(which), prior)[0]
        term[which] = curves.terms(mode).reshape(len(which), n_rows)
    behind = term[term.sum(axis=1).argmax()] - term
    error = behind.std(axis=1) / np.sqrt(n_rows)
    possible = n_points * (behind.mean(axis=1) - STANDARD_ERRORS * error) < FAR_BEHIND
    last = int(k[np.flatnonzero(possible)[-1]])
    return min(int(k[-1]), max(LEAST_GUESS, int(np.ceil(SPARE * last))))
