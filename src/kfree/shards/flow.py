"""Which function of this package runs on what: the flow of a fit and of predictions over shards.

Somebody else carries it out (`Engine`), here or on many machines. The flow hands names, functions
and results that it has not seen from one task to the next; what it asks to see are counts, sums and
the posterior. Rows come from the tasks that read them and all else follows from them, so that
whatever a lost machine held can be computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import getitem
from typing import Any, Protocol

import numpy as np

from kfree import validation
from kfree.candidates import Candidates, make_candidates, thin_candidates
from kfree.inference.prior import GammaPrior
from kfree.inference.quadrature import BetaPosterior, TrainingPosterior, integrate
from kfree.inference.rules import training_posterior
from kfree.neighbors.graph import NeighborGraph
from kfree.neighbors.search import make_search
from kfree.shards import counting, lists, open_rows, rows, tables
from kfree.training import (
    TAIL,
    KnownPosteriors,
    Model,
    assemble,
    auto_limit,
    beta_posterior,
    pilot_rows,
    tail_mass,
    together,
    warn_of_tail,
)

# Up to so many neighbors in all (8 MB as labels), the training sum is made in one place.
FEW_NEIGHBORS = 1 << 20
# Up to so many patterns, over all shards, are added up on one worker; with more of them each shard
# evaluates its own part of the sum.
MOST_PATTERNS = 1 << 22
# Up to so many go along with the rows to be predicted (about 20 MB).
TRAVELING_PATTERNS = 1 << 17
# Else what goes along is a posterior of beta that allows for open labels of this slope: rows that
# enter the neighborhoods of some hundred points at once.
LARGE_SLOPE = 300.0
# How many training rows are held out at a time.
HELD_OUT_ROWS = 4096


class Engine(Protocol):
    """Who carries out the flow."""

    def task(self, name: str, function: Callable, *args: Any) -> Any:
        """A call, now or later; tasks among the arguments stand for their results."""

    def keep(self, tasks: Sequence[Any]) -> list:
        """The same tasks, whose results will be wanted again."""

    def fetch(self, tasks: Sequence[Any], what: str) -> list:
        """The results of tasks, which are small; `what` names them if they are lost."""

    def tell(self, stage: str) -> None:
        """Say what comes next."""


@dataclass(frozen=True)
class Shards:
    """The training rows."""

    plan: rows.Plan
    plan_task: Any
    shards: list  # tasks
    n_points: list  # of each shard
    boxes: Any  # task
    first: np.ndarray  # (n_parts + 1,) where each part begins in the whole


@dataclass(frozen=True)
class Neighbors:
    """The neighbors of all training rows, for some candidates: tasks."""

    graphs: list
    incoming: list
    tables: list
    around: list  # neighborhoods with labels in place of points


@dataclass(frozen=True)
class Fitted:
    """All that a fit leaves: tasks, and what was asked to be seen."""

    shards: Shards
    neighbors: Neighbors
    candidates: Candidates
    prior: GammaPrior
    posterior: TrainingPosterior
    knowledge: Any  # task
    likelihood: Any  # task
    structure: str
    joint: bool

    @property
    def lengths(self) -> list:
        """How many training rows each part had."""
        return np.diff(self.shards.first).tolist()


def fit(engine: Engine, settings: Any, X: list, y: list, n_shards: int, by_space: bool) -> Fitted:
    """The model of the parts `X` with the labels `y`; `settings` is a kfree.KFreeClassifier."""
    engine.tell("reading")
    parts = engine.keep(
        [engine.task("read", rows.read_part, settings, *pair) for pair in zip(X, y, strict=True)]
    )
    found = engine.fetch([engine.task("check", rows.summarize, p) for p in parts], "partitions")
    plan = rows.make_plan(settings, found, n_shards, by_space)
    n_features = plan.n_features
    several = np.broadcast_to(0.0, (plan.n_points, n_features))
    k_values, k_max = validation.check_candidates(settings, several)
    engine.tell(f"{plan.n_points} rows into {plan.n_shards} shards")
    shards = spread(engine, parts, plan, np.cumsum([0, *(part.n_rows for part in found)]))
    return train(engine, shards, settings, k_values, k_max)


def spread(engine: Engine, parts: list, plan: rows.Plan, first: np.ndarray) -> Shards:
    """Bring the rows of all parts to their shards."""
    task = engine.task
    known = task("plan", as_it_is, plan)
    cuts = None
    if plan.by_space:
        samples = [task("sample", rows.sample_rows, part, known) for part in parts]
        cuts = task("cuts", rows.make_cuts, samples, plan.n_shards)
    split = [
        task("split", rows.split_part, part, known, int(start), cuts)
        for part, start in zip(parts, first, strict=False)
    ]
    number = range(plan.n_shards)
    shards = engine.keep(
        [
            task("shard", rows.make_shard, s, known, [task("piece", getitem, p, s) for p in split])
            for s in number
        ]
    )
    n_points = engine.fetch([task("count-rows", _n_points, shard) for shard in shards], "shards")
    each = [task("box", rows.box_of, shard) for shard in shards]
    (boxes,) = engine.keep([task("boxes", rows.make_boxes, n_points, each)])
    return Shards(plan, known, shards, n_points, boxes, first)


def merged_lists(engine: Engine, shards: Shards, k: int, chosen: list | None = None) -> list:
    """Tasks for the k nearest others of all rows, or of the rows `chosen` in each shard."""
    task, number = engine.task, range(len(shards.shards))
    picked = [None] * len(number) if chosen is None else chosen
    own = [task("own-lists", lists.own_lists, shards.shards[s], k, picked[s]) for s in number]
    merged = []
    for s in number:
        found = []
        for t in number:
            if t != s and shards.n_points[t] and shards.n_points[s]:
                home = shards.shards[s]
                guests = task(
                    "visitors", lists.visitors, home, own[s], shards.boxes, k, t, picked[s]
                )
                found.append(task("visit", lists.receive, shards.shards[t], guests, k))
        merged.append(task("merge-lists", lists.merge, own[s], found, k))
    return merged


def likely_k_max(engine: Engine, shards: Shards, limit: int, prior: GammaPrior) -> int:
    """The guess at k_max that one machine makes, from the same rows."""
    task, pilots = engine.task, pilot_rows(shards.plan.n_points)
    if pilots is None:
        return limit
    engine.tell("a first guess at k_max")
    k = thin_candidates(limit)
    chosen = [task("pilot-rows", _places, shard, pilots) for shard in shards.shards]
    found = merged_lists(engine, shards, limit, chosen)
    own = [task("pilot-codes", _codes, *pair) for pair in zip(shards.shards, chosen, strict=True)]
    guess = task("pilot", counting.guess_k_max, found, own, shards.plan_task, k, prior)
    return engine.fetch([guess], "the pilot")[0]


def find_neighbors(engine: Engine, shards: Shards, k: np.ndarray, structure: str) -> Neighbors:
    """The neighbors of all rows for the candidates `k`."""
    task = engine.task
    found = merged_lists(engine, shards, int(k[-1]))
    graphs = engine.keep([task("graph", lists.make_graph, part, k) for part in found])
    incoming: list = [None] * len(graphs)
    sides: list = [None] * len(graphs)
    if structure != "asymmetric":
        incoming = engine.keep(_incoming(engine, shards, graphs))
        sides = engine.keep(
            [
                task("both-sides", tables.both_sides, *of_shard, structure)
                for of_shard in zip(shards.shards, graphs, incoming, strict=True)
            ]
        )
    around = [
        task("neighborhoods", tables.label_table, shards.plan_task, graph, side, structure)
        for graph, side in zip(graphs, sides, strict=True)
    ]
    return Neighbors(graphs, incoming, sides, around)


def _incoming(engine: Engine, shards: Shards, graphs: list) -> list:
    task = engine.task
    sent = [
        task("outgoing", tables.outgoing, *pair) for pair in zip(shards.shards, graphs, strict=True)
    ]
    edges = [[task("edges", getitem, out, s) for out in sent] for s in range(len(graphs))]
    return [
        task("incoming", tables.make_incoming, *pair)
        for pair in zip(shards.shards, edges, strict=True)
    ]


def train(
    engine: Engine, shards: Shards, settings: Any, k_values: Any, k_max: int | None
) -> Fitted:
    """The posterior of K and beta, as `kfree.training.train` finds it."""
    n_points, n_classes = shards.plan.n_points, len(shards.plan.classes)
    prior = GammaPrior(float(settings.prior_shape), float(settings.prior_scale))
    structure, average = settings.structure, bool(settings.average)
    limit = auto_limit(n_points, n_points - 1)
    auto = isinstance(k_values, str) and k_max is None
    k = likely_k_max(engine, shards, limit, prior) if k_max is None else k_max
    while True:
        candidates = make_candidates(k_values, k)
        engine.tell(f"the {k} nearest neighbors of all rows")
        neighbors = find_neighbors(engine, shards, candidates.k, structure)
        curves, known = _posteriors(engine, shards, neighbors, candidates, prior, average)
        posterior = training_posterior(curves, candidates.log_prior, n_classes, n_points)
        if not auto:
            break
        tail = tail_mass(posterior, candidates)
        if tail < TAIL or k >= n_points - 1:
            break
        if k == limit:
            warn_of_tail(k, tail, stacklevel=5)
            break
        k = min(2 * k, limit)
    joint = settings.update == "joint"
    knowledge = open_rows.Knowledge(
        shards.plan, structure, candidates, prior, posterior, joint, average
    )
    likelihood, know = engine.keep([known, engine.task("knowledge", as_it_is, knowledge)])
    return Fitted(
        shards, neighbors, candidates, prior, posterior, know, likelihood, structure, joint
    )


def _posteriors(
    engine: Engine,
    shards: Shards,
    neighbors: Neighbors,
    candidates: Candidates,
    prior: GammaPrior,
    average: bool,
) -> tuple[BetaPosterior, Any]:
    """The posteriors of beta, and a task for what predictions know of the training labels."""
    task, n_classes = engine.task, len(shards.plan.classes)
    each = list(zip(shards.shards, neighbors.around, strict=True))

    def integrated(likelihood: Any, slope: float | None = None) -> BetaPosterior:
        tilt = None if slope is None else np.full(len(candidates), slope)
        curves = task("integrate", beta_posterior, likelihood, prior, None, tilt)
        return engine.fetch([curves], "the posterior")[0]

    if shards.plan.n_points * int(candidates.k[-1]) <= FEW_NEIGHBORS:
        engine.tell("the posterior of K and beta")
        args = shards.shards, neighbors.around, n_classes
        (likelihood,) = engine.keep([task("likelihood", counting.whole_sum, *args)])
        return integrated(likelihood), likelihood
    if counting.few(n_classes):
        engine.tell("patterns of labels")
        terms = engine.keep([task("count-patterns", counting.count_shard, *pair) for pair in each])
        numbers = [task("n-patterns", counting.n_terms, part) for part in terms]
        number = sum(engine.fetch(numbers, "shards"))
        if number <= MOST_PATTERNS:
            engine.tell("the posterior of K and beta")
            whole, n_k = task("add-patterns", counting.add_up, terms), len(candidates)
            (likelihood,) = engine.keep([task("likelihood", counting.MergedSum, whole, n_k)])
            curves = integrated(likelihood)
            if number <= TRAVELING_PATTERNS or not average:
                return curves, likelihood
            known = KnownPosteriors((curves, integrated(likelihood, LARGE_SLOPE)))
            return curves, task("likelihood", as_it_is, known)
    if not average:
        raise ValueError(
            "average=False is offered on Dask where the patterns of labels can be carried along; "
            f"{n_classes} classes in {shards.plan.n_points} rows show too many."
        )
    engine.tell("the posterior of K and beta, by sums over shards")
    known = _by_shards(engine, each, candidates, prior, n_classes, max(shards.n_points))
    return known.each[0], task("likelihood", as_it_is, known)


def _by_shards(
    engine: Engine,
    each: list,
    candidates: Candidates,
    prior: GammaPrior,
    n_classes: int,
    largest: int,
) -> KnownPosteriors:
    """The posteriors of beta, where each shard sums its own terms."""
    task, parts = engine.task, []
    for which in counting.groups_of_candidates(candidates.k, n_classes, largest):
        curves = engine.keep([task("curves", counting.shard_curves, *pair, which) for pair in each])

        def log_likelihood(
            beta: np.ndarray, derivatives: bool, some: np.ndarray, curves: list = curves
        ) -> tuple:
            values = [
                task("log-likelihood", counting.evaluate, part, beta, derivatives, some)
                for part in curves
            ]
            return engine.fetch([task("sum", counting.sum_of_shards, values)], "shards")[0]

        tilts = None, np.full(len(which), LARGE_SLOPE)
        parts.append([integrate(log_likelihood, len(which), prior, tilt) for tilt in tilts])
    return KnownPosteriors(tuple(together(list(part)) for part in zip(*parts, strict=True)))


def average_of_new(engine: Engine, fitted: Fitted, settings: Any, parts: list) -> list:
    """Tasks for what is known of the new rows of each part."""
    task, shards, know = engine.task, fitted.shards, fitted.knowledge
    each = list(zip(shards.shards, fitted.neighbors.graphs, strict=True))
    k, boxes = int(fitted.candidates.k[-1]), shards.boxes
    found = []
    for i, part in enumerate(parts):
        points = task("read-new", rows.read_new, settings, part, shards.plan_task, i)
        home = [
            task("meet-at-home", open_rows.meet_at_home, *pair, know, points, boxes)
            for pair in each
        ]
        reach = task("reach", open_rows.reach_after, points, home, k)
        away = [
            task("meet", open_rows.meet_elsewhere, *pair, know, points, boxes, reach)
            for pair in each
        ]
        arrived = task("arrive", open_rows.arrive, points, [*home, *away], know)
        last = fitted.structure != "asymmetric"
        described = _describe(engine, fitted, fitted.neighbors.incoming, arrived, last)
        found.append(
            task("average", open_rows.average_new, arrived, described, know, fitted.likelihood)
        )
    return found


def average_of_held_out(engine: Engine, fitted: Fitted) -> list:
    """The same of the training rows, each with its label unknown, by their own parts."""
    task, shards, know, near = engine.task, fitted.shards, fitted.knowledge, fitted.neighbors
    incoming = near.incoming
    if fitted.structure == "asymmetric" and fitted.joint:
        incoming = _incoming(engine, shards, near.graphs)
    of_shards = []
    for s, n in enumerate(shards.n_points):
        shard, side, into = shards.shards[s], near.tables[s], incoming[s]
        blocks = []
        for a in range(0, n, HELD_OUT_ROWS):
            chosen = np.arange(a, min(a + HELD_OUT_ROWS, n))
            block = task("hold-out", open_rows.hold_out, chosen, side, into, know)
            described = _describe(engine, fitted, incoming, block, False)
            args = block, shard, near.around[s], side, into, described, know, fitted.likelihood
            blocks.append(task("average", open_rows.average_held_out, *args))
        if n:
            ids = task("ids", getattr, shard, "ids")
            of_shards.append((ids, task("join", open_rows.join_averages, blocks)))
    return [
        task(
            "whole-order",
            open_rows.in_whole_order,
            [task("part", open_rows.part_of_average, *pair, int(a), int(b)) for pair in of_shards],
        )
        for a, b in zip(shards.first[:-1], shards.first[1:], strict=True)
    ]


def _describe(engine: Engine, fitted: Fitted, incoming: list, asking: Any, with_last: bool) -> list:
    near, wanted = fitted.neighbors, engine.task("wanted", getattr, asking, "wanted")
    of_shards = zip(fitted.shards.shards, near.graphs, near.tables, incoming, strict=True)
    return [
        engine.task("around-points", tables.describe, *each, fitted.structure, wanted, with_last)
        for each in of_shards
    ]


def bring_home(engine: Engine, fitted: Fitted, algorithm: str) -> Model:
    """The model of all rows in one place."""
    tasks = [
        engine.task("bring-home", _rows_and_lists, *pair)
        for pair in zip(fitted.shards.shards, fitted.neighbors.graphs, strict=True)
    ]
    found = [part for part in engine.fetch(tasks, "shards") if len(part[0])]
    order = np.argsort(np.concatenate([part[0] for part in found]))
    points, labels, indices, radii = (
        np.concatenate([part[i] for part in found])[order] for i in range(1, 5)
    )
    plan, candidates = fitted.shards.plan, fitted.candidates
    search = make_search(plan.space, points, algorithm)
    graph = NeighborGraph(candidates.k, indices, radii)
    args = len(plan.classes), fitted.structure, candidates, fitted.prior, fitted.posterior.curves
    return assemble(search, graph, labels, *args)


def as_it_is(value: Any) -> Any:
    """The value: data that goes into a flow once, however many tasks need it."""
    return value


def _n_points(shard: rows.Shard) -> int:
    return shard.n_points


def _places(shard: rows.Shard, ids: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.isin(shard.ids, ids))


def _codes(shard: rows.Shard, places: np.ndarray) -> np.ndarray:
    return shard.codes[places]


def _rows_and_lists(shard: rows.Shard, graph: lists.ShardGraph) -> tuple:
    indices = rows.id_of(graph.codes, shard.plan).astype(np.int32)
    return shard.ids, shard.points, shard.labels, indices, graph.radii
