"""Which function of this package runs on what: the flow of a fit and of predictions over shards.

An `Engine` carries it out, here or on many machines. The flow hands results that it has not seen
from one task to the next; what it asks to see are counts, sums and the posterior. Rows come from
the tasks that read them and all else follows from them, so that whatever a lost machine held can be
computed again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import getitem
from typing import Any

import numpy as np

from kfree import validation
from kfree.candidates import Candidates, make_candidates, thin_candidates
from kfree.inference.prior import GammaPrior
from kfree.inference.quadrature import TrainingPosterior
from kfree.inference.rules import training_posterior
from kfree.neighbors.graph import NeighborGraph
from kfree.neighbors.search import make_search
from kfree.neighbors.structures import STRUCTURES
from kfree.shards import counting, held_out_rows, lists, new_rows, rows, small_model, tables
from kfree.shards.engine import Engine, as_it_is
from kfree.shards.posteriors import find_posteriors
from kfree.training import (
    TAIL,
    Model,
    assemble,
    auto_limit,
    n_that_count,
    pilots,
    tail_mass,
    warn_of_tail,
)

# How many training rows are held out at a time.
HELD_OUT_ROWS = 4096


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
    found = engine.fetch([engine.task("check", rows.summarize, p) for p in parts])
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
    pieces = [[task("piece", getitem, part, s) for part in split] for s in range(plan.n_shards)]
    shards = engine.keep(
        [task("shard", rows.make_shard, s, known, of, at=s) for s, of in enumerate(pieces)]
    )
    n_points = engine.fetch(_each(engine, "count-rows", _n_points, shards))
    engine.forget(parts)
    each = _each(engine, "box", rows.box_of, shards)
    (boxes,) = engine.keep([task("boxes", rows.make_boxes, n_points, each)])
    return Shards(plan, known, shards, n_points, boxes, first)


def merged_lists(
    engine: Engine, shards: Shards, k: np.ndarray, chosen: list, after: list | None = None
) -> list:
    """Tasks for the neighbors of the rows `chosen` in each shard, for the candidates `k`.

    Nothing is begun in a shard before what `after` has for it is there.
    """
    task, number, k_max = engine.task, range(len(shards.shards)), int(k[-1])
    merged = []
    for s in number:
        args = shards.shards[s], shards.boxes, k_max, chosen[s], after[s] if after else None
        # One task, so that what is long stays where it was found.
        both = task("own-lists", lists.lists_and_visitors, *args, at=s)
        found = []
        for t in number:
            if t != s and shards.n_points[t] and shards.n_points[s]:
                guests = task("visitors", getitem, both, t + 1, at=s)
                found.append(task("visit", lists.receive, shards.shards[t], guests, k_max, at=t))
        merged.append(task("merge-lists", lists.merge_in_cells, both, found, k, at=s))
    return merged


def likely_k_max(engine: Engine, shards: Shards, limit: int, prior: GammaPrior) -> int:
    """The guess at k_max that one machine makes, from the same rows."""
    k_max, n_points = limit, shards.plan.n_points
    for ids in pilots(n_points):
        engine.tell("a first guess at k_max")
        chosen = _each(engine, "pilot-rows", partial(_places, ids=ids), shards.shards)
        found = merged_lists(engine, shards, thin_candidates(k_max), chosen)
        own = _each(engine, "pilot-codes", _codes, shards.shards, chosen)
        args = found, own, shards.plan_task, prior, n_points
        k_max = engine.fetch([engine.task("pilot", counting.guess_k_max, *args)])[0]
    return k_max


def find_neighbors(engine: Engine, shards: Shards, k: np.ndarray, structure: str) -> Neighbors:
    """The neighbors of all rows for the candidates `k`."""
    parts: list[list] = []
    # One half of the rows after the other: lists with distances take much more memory than what is
    # kept of them.
    for half in range(2):
        chosen = [range(half * n // 2, (half + 1) * n // 2) for n in shards.n_points]
        parts.append(merged_lists(engine, shards, k, chosen, *parts))
    graphs = engine.keep(_each(engine, "join-lists", lists.join_graphs, *parts))
    return _around(engine, shards, graphs, structure)


def _around(engine: Engine, shards: Shards, graphs: list, structure: str) -> Neighbors:
    """The neighborhoods that follow from the lists of all rows."""
    incoming: list = [None] * len(graphs)
    sides: list = [None] * len(graphs)
    if not STRUCTURES[structure].nearest:
        incoming = engine.keep(_incoming(engine, shards, graphs))
        join = partial(tables.both_sides, structure=structure)
        sides = engine.keep(_each(engine, "both-sides", join, shards.shards, graphs, incoming))
    label = partial(tables.label_table, structure=structure)
    plans = [shards.plan_task] * len(graphs)
    around = _each(engine, "neighborhoods", label, plans, graphs, sides)
    return Neighbors(graphs, incoming, sides, around)


def _incoming(engine: Engine, shards: Shards, graphs: list) -> list:
    sent = _each(engine, "outgoing", tables.outgoing, shards.shards, graphs)
    edges = [
        [engine.task("edges", getitem, out, t, at=s) for s, out in enumerate(sent)]
        for t in range(len(graphs))
    ]
    return _each(engine, "incoming", tables.make_incoming, shards.shards, edges)


def train(
    engine: Engine, shards: Shards, settings: Any, k_values: Any, k_max: int | None
) -> Fitted:
    """The posterior of K and beta, as `kfree.training.train` finds it."""
    n_points = shards.plan.n_points
    prior = GammaPrior(float(settings.prior_shape), float(settings.prior_scale))
    structure, average = settings.structure, bool(settings.average)
    limit = auto_limit(n_points, n_points - 1)
    auto = isinstance(k_values, str) and k_max is None
    k = likely_k_max(engine, shards, limit, prior) if k_max is None else k_max
    while True:
        candidates = make_candidates(k_values, k)
        engine.tell(f"the {k} nearest neighbors of all rows")
        neighbors = find_neighbors(engine, shards, candidates.k, structure)
        each = list(zip(shards.shards, neighbors.around, strict=True))
        curves, known = find_posteriors(engine, each, shards.plan, candidates, prior, average)
        posterior = training_posterior(curves, candidates.log_prior, n_points)
        if not auto:
            break
        tail = tail_mass(posterior, candidates)
        if tail < TAIL or k >= n_points - 1:
            break
        if k == limit:
            warn_of_tail(k, tail, stacklevel=5)
            break
        engine.forget([*neighbors.graphs, *neighbors.incoming, *neighbors.tables, known])
        k = min(2 * k, limit)
    n_k = n_that_count(posterior) if auto else len(candidates)
    if n_k < len(candidates):
        candidates = make_candidates(k_values, int(candidates.k[n_k - 1]))
        (fewer,) = engine.keep([engine.task("likelihood", _up_to, known, n_k)])
        graphs = engine.keep(_each(engine, "cut-lists", partial(_up_to, n_k=n_k), neighbors.graphs))
        engine.forget([*neighbors.graphs, *neighbors.incoming, *neighbors.tables, known])
        neighbors, known = _around(engine, shards, graphs, structure), fewer
        curves = curves.take(np.arange(n_k))
        posterior = training_posterior(curves, candidates.log_prior, n_points)
    joint = settings.update == "joint"
    knowledge = small_model.Knowledge(
        shards.plan, structure, candidates, prior, posterior, joint, average
    )
    likelihood, know = engine.keep([known, engine.task("knowledge", as_it_is, knowledge)])
    return Fitted(
        shards,
        neighbors,
        candidates,
        prior,
        posterior,
        know,
        likelihood,
        structure,
        joint,
    )


def average_of_new(engine: Engine, fitted: Fitted, settings: Any, parts: list) -> list:
    """Tasks for what is known of the new rows of each part."""
    task, shards, know = engine.task, fitted.shards, fitted.knowledge
    boxes, k = shards.boxes, int(fitted.candidates.k[-1])
    found = []
    for i, part in enumerate(parts):
        points = task("read-new", rows.read_new, settings, part, shards.plan_task, i)
        home = _met(engine, fitted, "meet-at-home", new_rows.meet_at_home, points, boxes)
        reach = task("reach", new_rows.reach_after, points, home, k)
        away = _met(engine, fitted, "meet", new_rows.meet_elsewhere, points, boxes, reach)
        known = _known(engine, fitted, points, [*home, *away])
        found.append(task("average", new_rows.average_new, *known, know, fitted.likelihood))
    return found


def _met(engine: Engine, fitted: Fitted, name: str, meet: Callable, *args: Any) -> list:
    """Tasks for what new rows meet in each shard."""
    each = enumerate(zip(fitted.shards.shards, fitted.neighbors.graphs, strict=True))
    return [engine.task(name, meet, *pair, fitted.knowledge, *args, at=s) for s, pair in each]


def _known(engine: Engine, fitted: Fitted, points: Any, met: list) -> tuple[Any, list]:
    """Tasks for where new rows stand, and for the points that have yet to be described for it."""
    arrived = engine.task("arrive", new_rows.arrive, points, met, fitted.knowledge)
    if STRUCTURES[fitted.structure].nearest:
        return arrived, []
    return arrived, _describe(engine, fitted, fitted.neighbors.incoming, arrived, True)


def average_of_held_out(engine: Engine, fitted: Fitted) -> list:
    """The same of the training rows, each with its label unknown, by their own parts."""
    task, shards, know, near = engine.task, fitted.shards, fitted.knowledge, fitted.neighbors
    incoming = near.incoming
    if STRUCTURES[fitted.structure].nearest and fitted.joint:
        incoming = _incoming(engine, shards, near.graphs)
    of_shards = []
    for s, n in enumerate(shards.n_points):
        shard, side, into = shards.shards[s], near.tables[s], incoming[s]
        blocks = []
        for a in range(0, n, HELD_OUT_ROWS):
            chosen = np.arange(a, min(a + HELD_OUT_ROWS, n))
            block = task("hold-out", held_out_rows.hold_out, chosen, side, into, know, at=s)
            described = _describe(engine, fitted, incoming, block, False)
            args = block, shard, near.around[s], side, into, described, know, fitted.likelihood
            blocks.append(task("average", held_out_rows.average_held_out, *args, at=s))
        if n:
            ids = task("ids", getattr, shard, "ids", at=s)
            of_shards.append((ids, task("join", small_model.join_averages, blocks, at=s)))
    return [
        task(
            "whole-order",
            held_out_rows.in_whole_order,
            [
                task("part", held_out_rows.part_of_average, *pair, int(a), int(b))
                for pair in of_shards
            ],
        )
        for a, b in zip(shards.first[:-1], shards.first[1:], strict=True)
    ]


def _describe(engine: Engine, fitted: Fitted, incoming: list, asking: Any, with_last: bool) -> list:
    near, wanted = fitted.neighbors, engine.task("wanted", getattr, asking, "wanted")
    describe = partial(tables.describe, structure=fitted.structure, with_last=with_last)
    asked = [wanted] * len(near.graphs)
    args = fitted.shards.shards, near.graphs, near.tables, incoming, asked
    return _each(engine, "around-points", describe, *args)


def _each(engine: Engine, name: str, function: Callable, *args: list) -> list:
    """A task for each shard; of each of `args` it gets what belongs to the shard."""
    of_shards = enumerate(zip(*args, strict=True))
    return [engine.task(name, function, *of_shard, at=s) for s, of_shard in of_shards]


def bring_home(engine: Engine, fitted: Fitted, algorithm: str) -> Model:
    """The model of all rows in one place."""
    of_shards = fitted.shards.shards, fitted.neighbors.graphs
    tasks = _each(engine, "bring-home", _rows_and_lists, *of_shards)
    found = [part for part in engine.fetch(tasks) if len(part[0])]
    order = np.argsort(np.concatenate([part[0] for part in found]))
    points, labels, indices, radii = (
        np.concatenate([part[i] for part in found])[order] for i in range(1, 5)
    )
    plan, candidates = fitted.shards.plan, fitted.candidates
    search = make_search(plan.space, points, algorithm)
    graph = NeighborGraph(candidates.k, indices, radii)
    args = len(plan.classes), fitted.structure, candidates, fitted.prior, fitted.posterior.curves
    return assemble(search, graph, labels, *args)


def _up_to(known: Any, n_k: int) -> Any:
    """The same at the first n_k candidates."""
    return known.up_to(n_k)


def _n_points(shard: rows.Shard) -> int:
    return shard.n_points


def _places(shard: rows.Shard, ids: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.isin(shard.ids, ids))


def _codes(shard: rows.Shard, places: np.ndarray) -> np.ndarray:
    return shard.codes[places]


def _rows_and_lists(shard: rows.Shard, graph: lists.ShardGraph) -> tuple:
    indices = rows.id_of(graph.codes, shard.plan).astype(np.int32)
    return shard.ids, shard.points, shard.labels, indices, graph.radii
