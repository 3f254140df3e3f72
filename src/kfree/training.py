"""What is learned from the training data: neighbors, pattern histogram, posterior of K and beta."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kfree.inference.laplace import Gaussians, gaussians
from kfree.inference.mode import maximize
from kfree.inference.prior import GammaPrior
from kfree.inference.quadrature import (
    Modes,
    Rule,
    TrainingPosterior,
    all_nodes,
    find_modes,
    reduced,
    training_posterior,
    trimmed,
)
from kfree.likelihood.entering import Entered, entered_tables
from kfree.likelihood.joining import Around, Kinds, around, edge_slots, kinds
from kfree.likelihood.lists import ListSums
from kfree.likelihood.open_labels import OpenLabels
from kfree.likelihood.patterns import Histogram, Histograms, as_function, histogram
from kfree.likelihood.slots import DENSE_CLASSES
from kfree.neighbors.flat import distinct
from kfree.neighbors.graph import NeighborGraph
from kfree.neighbors.search import Arrivals, Search
from kfree.neighbors.structures import (
    HeldOut,
    Neighborhoods,
    NewPoints,
    nearest_table,
    neighborhoods,
)
from kfree.screening import Screening, screen

# The smallest k_max that "auto" takes for many rows, where it stops at the latest, and how much of
# the posterior the last quarter of the K may hold at the end.
FIRST_K_MAX = 32
LAST_K_MAX = 512
TAIL = 1e-6
# How many rows the first guess at k_max looks at, and how far below the best a K may then be. The
# few rows speak for themselves only: to multiply what they say would multiply their noise.
PILOT_ROWS = 500
PILOT_NEGLIGIBLE = 5.0
# With so many terms, points times K, a sample of the points first tells which K can matter; sooner
# where there are many classes.
MANY_TERMS = 1 << 22
MANY_TERMS_OF_MANY_CLASSES = 1 << 20
# With fewer points one label matters so much that no node is spared; with somewhat more, under the
# symmetric structures, none that can matter. Rows that are held out change more than new points do.
VERY_FEW_POINTS = 40
FEW_POINTS = 100
FEW_POINTS_HELD_OUT = 200
# With more classes than this, only those that occur near a point are looked at. Tables of at most
# so many numbers (256 MiB) are kept between predictions.
TABLE_CLASSES = 64
TABLE_NUMBERS = 1 << 25

_making = threading.Lock()


@dataclass(frozen=True)
class Model:
    """The training points with their labels, and the density of (K, beta) that they give."""

    structure: str
    search: Search
    graph: NeighborGraph
    table: Neighborhoods
    labels: np.ndarray  # (n,) integers from 0
    n_classes: int
    histogram: Histograms | ListSums
    prior: GammaPrior
    modes: Modes
    exact: TrainingPosterior | None = None  # made when asked for, if not given

    @property
    def n_k(self) -> int:
        return self.histogram.n_k

    @cached_property
    def posterior(self) -> TrainingPosterior:
        """The exact posterior of K and beta."""
        if self.exact is not None:
            return self.exact
        log_worst = self.histogram.log_worst
        return training_posterior(as_function(self.histogram), log_worst, self.modes, self.prior)

    @cached_property
    def rule_held_out(self) -> Rule:
        """Nodes that serve when a training row's own term leaves the sum."""
        if len(self.labels) < FEW_POINTS_HELD_OUT:
            return all_nodes(self.posterior)
        return reduced(
            self.posterior, self.histogram.log_worst, self.n_classes, self._reach_held_out
        )

    @cached_property
    def rule(self) -> Rule:
        """Nodes that serve every new point."""
        if len(self.labels) < VERY_FEW_POINTS:
            return all_nodes(self.posterior)
        if len(self.labels) < FEW_POINTS and self.structure != "asymmetric":
            return trimmed(self.posterior)
        log_worst = self.histogram.log_worst
        return reduced(self.posterior, log_worst, self.n_classes, _reach_new)

    @cached_property
    def fine_rule(self) -> Rule:
        """Nodes that serve rows for which the others may not."""
        return all_nodes(self.posterior)

    def entered(self, arrivals: Arrivals, rule: Rule) -> tuple[Iterator[Entered], Arrivals]:
        """What entering neighborhoods changes at each K of the rule, by point or table row.

        The tables of all points are kept where they are small; else they are made, one at a time,
        for the points that are entered, and the arrivals that come back name those by their place
        in the tables.
        """
        n_numbers = len(self.labels) * self.n_classes * (rule.log_weight > -np.inf).sum()
        if rule is self.rule and n_numbers <= TABLE_NUMBERS:
            return iter(self._all_entered), arrivals
        point, place = distinct(arrivals.reverse_point, len(self.labels))
        return self._entered(point, rule), replace(arrivals, reverse_point=place)

    @cached_property
    def _all_entered(self) -> list[Entered]:
        return list(self._entered(np.arange(len(self.labels)), self.rule))

    def _entered(self, points: np.ndarray, rule: Rule) -> Iterator[Entered]:
        nearest = self.graph.indices[points, : rule.k[-1]]
        betas = [rule.of(i)[0] for i in range(len(rule.k))]
        return entered_tables(
            nearest, self.labels[points], self.labels, self.n_classes, rule.k, betas
        )

    def around(self, i: int, rule: Rule) -> Around:
        """What is around the training points at the i-th K that matters; kept where small."""

        def make() -> Around:
            k, beta = int(rule.k[i]), rule.of(i)[0]
            return around(self.table, self._edge_slots, self.labels, self.n_classes, k, beta)

        if rule is not self.rule:
            return make()
        with _making:  # threads that come at the same time would all make it
            found = self._all_around.get(i)
            if found is None:
                found = make()
                if (len(self._all_around) + 1) * found.n_numbers <= TABLE_NUMBERS:
                    self._all_around[i] = found
            return found

    def kinds(self, i: int, rule: Rule, near: Around, n_rows: int) -> Kinds | None:
        """What mostly becomes of training points at the i-th K that matters, for so many rows.

        None where it is not known, and the rows touch too few points to make it worth knowing.
        """
        if rule is not self.rule:
            return None
        n_points, k, beta = len(self.labels), int(rule.k[i]), rule.of(i)[0]
        n_numbers = 4 * n_points * self.n_classes * len(beta)
        with _making:
            found = self._all_kinds.get(i)
            if found is None and n_rows * k > n_points and len(rule.k) * n_numbers <= TABLE_NUMBERS:
                last = self.labels[self.graph.indices[:, k - 1]]
                found = self._all_kinds[i] = kinds(near, self.labels, last, k, beta)
            return found

    @cached_property
    def _edge_slots(self) -> np.ndarray:
        return edge_slots(self.table, self.labels)

    @cached_property
    def _all_around(self) -> dict[int, Around]:
        return {}

    @cached_property
    def _all_kinds(self) -> dict[int, Kinds]:
        return {}

    def _reach_held_out(self, k: np.ndarray) -> np.ndarray:
        """A held-out row takes its own term away, and 1 / K from each point that it touches.

        The row that touches most decides: in many dimensions some rows are neighbors of very many.
        """
        in_lists = [np.bincount(self.graph.indices[:, : int(n)].ravel()).max() for n in k]
        in_its_own = np.zeros_like(k) if self.structure == "asymmetric" else k
        return 1.0 + (in_lists + in_its_own) / k

    def log_density(self, k: int, beta: np.ndarray, derivatives: bool = False) -> tuple:
        """log p(z | beta, K) + log p(beta) at the betas (n_beta,); slope and curvature if asked."""
        one = slice(k - 1, k)
        likelihood = self.histogram.log_pseudo_likelihood(beta[None, :], derivatives, one)
        if not derivatives:
            return (likelihood.value[0] + self.prior.log_density(beta),)
        assert likelihood.slope is not None and likelihood.curvature is not None
        value, slope, curvature = self.prior.derivatives(beta)
        return (
            likelihood.value[0] + value,
            likelihood.slope[0] + slope,
            likelihood.curvature[0] + curvature,
        )

    def density(self, beta: np.ndarray) -> np.ndarray:
        """p(K, beta | z) at the betas (n_beta,): (n_k, n_beta)."""
        nodes = np.broadcast_to(beta, (self.n_k, len(beta)))
        value = self.histogram.log_pseudo_likelihood(nodes).value
        log_sum = self.posterior.log_normalizer + np.log(self.n_k)
        return np.exp(value + self.prior.log_density(beta) - log_sum)

    def new_points(
        self, queries: np.ndarray, joint: bool, k: int, n_jobs: int | None
    ) -> OpenLabels:
        """New points, to be looked at for any K up to k."""
        reverse = joint or self.structure != "asymmetric"
        table = self.graph.distances if reverse else None
        arrivals = self.search.arrivals(queries, k, table, n_jobs)
        visit = NewPoints(self.structure, self.graph, arrivals)
        return OpenLabels(visit, self.table, self.labels, self.n_classes, joint)

    def held_out(self, rows: np.ndarray, joint: bool) -> OpenLabels:
        """Training rows, each with its label unknown."""
        visit = HeldOut(self.structure, self.graph, self.table, rows)
        return OpenLabels(visit, self.table, self.labels, self.n_classes, joint, self.labels[rows])

    @cached_property
    def gaussians(self) -> Gaussians:
        """Algorithm 1's approximation, for the training labels alone: n_rows = 1."""

        def function(beta: np.ndarray) -> tuple:
            likelihood = self.histogram.log_pseudo_likelihood(beta[:, None], derivatives=True)
            assert likelihood.slope is not None and likelihood.curvature is not None
            value, slope, curvature = self.prior.derivatives(beta)
            return (
                likelihood.value[:, 0] + value,
                likelihood.slope[:, 0] + slope,
                likelihood.curvature[:, 0] + curvature,
            )

        mode = maximize(function, self.modes.beta)
        value, _, curvature = function(mode)
        return gaussians(value[None], mode[None], curvature[None])


def train(
    search: Search,
    labels: np.ndarray,
    n_classes: int,
    structure: str,
    k_max: int | None,
    prior: GammaPrior,
    n_jobs: int | None,
    every_k: bool = False,
) -> Model:
    """The model of labeled points; k_max None: as many neighbors as the posterior asks for.

    `every_k` says that all K will be looked at, whether they matter or not.
    """
    limit = min(search.most_neighbors, LAST_K_MAX)
    k = _likely_k_max(search, labels, n_classes, limit, prior, n_jobs) if k_max is None else k_max
    if k_max is None and structure == "boltzmann":
        # Edges count twice there, and the posterior lies at larger K than in the pilot.
        k = min(k * 4 // 3, limit)
    modes = None
    while True:
        graph = search.graph(k, n_jobs)
        table = neighborhoods(structure, graph)
        if not every_k and _are_many(len(labels) * k, n_classes):
            screened = screen(table, labels, n_classes, k, prior, n_jobs)
            counted = _counted(table, labels, n_classes, k, n_jobs, screened.span)
            modes = _modes_near(counted, prior, screened)
        else:
            counted = _counted(table, labels, n_classes, k, n_jobs)
            modes = find_modes(as_function(counted), k, prior, modes)
        if k_max is not None or k == limit or _has_ended(modes):
            break
        k = min(2 * k, limit)
    return assemble(search, graph, labels, n_classes, structure, prior, modes, table, counted)


def assemble(
    search: Search,
    graph: NeighborGraph,
    labels: np.ndarray,
    n_classes: int,
    structure: str,
    prior: GammaPrior,
    modes: Modes,
    table: Neighborhoods | None = None,
    counted: Histograms | ListSums | None = None,
    every_k: bool = False,
) -> Model:
    """The model of a neighbor graph and the modes of beta; what else follows is made if absent."""
    if table is None:
        table = neighborhoods(structure, graph)
    if counted is None:
        many = not every_k and _are_many(len(labels) * graph.k_max, n_classes)
        near = modes.near() if many else None
        counted = _counted(table, labels, n_classes, graph.k_max, None, near)
    return Model(structure, search, graph, table, labels, n_classes, counted, prior, modes)


def _likely_k_max(
    search: Search,
    labels: np.ndarray,
    n_classes: int,
    limit: int,
    prior: GammaPrior,
    n_jobs: int | None,
) -> int:
    """A first guess at the table's size, from a few rows that stand for all."""
    n_rows = len(labels)
    k = min(4 * FIRST_K_MAX, limit)
    if n_rows < 4 * PILOT_ROWS:
        return k
    rows = np.linspace(0, n_rows - 1, PILOT_ROWS).astype(np.int64)
    modes = None
    while True:
        indices = search.nearest_of(rows, k, n_jobs)
        table = nearest_table(indices)
        counted: Histogram | ListSums
        if n_classes > DENSE_CLASSES:
            counted = ListSums(table, labels, n_classes, k, n_jobs, rows)
        else:
            counted = histogram(table, labels, n_classes, k, rows)
        modes = find_modes(as_function(counted), k, prior, modes)
        log_evidence = modes.log_evidence
        last = int(np.flatnonzero(log_evidence > log_evidence.max() - PILOT_NEGLIGIBLE)[-1]) + 1
        wanted = max(last * 4 // 3 + 2, min(FIRST_K_MAX, limit))
        if wanted <= k:
            return wanted
        if k == limit:
            return k
        k = min(2 * k, limit)


def _has_ended(modes: Modes) -> bool:
    """Whether the last quarter of the K holds next to nothing of the posterior."""
    n_k = len(modes.beta)
    return bool(modes.k_probabilities[n_k - n_k // 4 :].sum() < TAIL)


def _reach_new(k: np.ndarray) -> np.ndarray:
    """A new point changes at most three of the K counts of a point that it touches."""
    return np.minimum(1.0, 3.0 / k)


def _counted(
    table: Neighborhoods,
    labels: np.ndarray,
    n_classes: int,
    n_k: int,
    n_jobs: int | None,
    near: slice | None = None,
) -> Histograms | ListSums:
    """The training sum; if there are many terms, the K of `near` will mostly be asked for."""
    if near is not None and n_classes > DENSE_CLASSES:
        return ListSums(table, labels, n_classes, n_k, n_jobs)
    return Histograms(table, labels, n_classes, n_k, n_jobs, near)


def _are_many(n_terms: int, n_classes: int) -> bool:
    many = MANY_TERMS if n_classes <= DENSE_CLASSES else MANY_TERMS_OF_MANY_CLASSES
    return n_terms >= many


def _modes_near(counted: Histograms | ListSums, prior: GammaPrior, screened: Screening) -> Modes:
    """The modes for the K that may matter, and the sample's estimates for all others."""
    span, about = screened.span, screened.modes
    start = replace(about, beta=about.beta[span])
    near = find_modes(as_function(counted, span.start), span.stop - span.start, prior, start)
    best = near.log_evidence.max()
    found = Modes(about.beta.copy(), about.std.copy(), best + about.log_evidence)
    found.beta[span], found.std[span] = near.beta, near.std
    found.log_evidence[span] = near.log_evidence
    return found
