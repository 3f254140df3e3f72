"""The functions of `kfree.shards` as tasks: which runs where on what, and nothing else.

Nothing is ever scattered. Rows come from the tasks that read them and all else follows from them,
so that whatever a lost worker held is computed again. The client hears of counts, sums and the
posterior.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import getitem
from typing import Any

import numpy as np

from kfree.candidates import Candidates, make_candidates, thin_candidates
from kfree.dask.collections import Rows, as_it_is, task
from kfree.dask.work import Work
from kfree.inference.prior import GammaPrior
from kfree.inference.quadrature import BetaPosterior, TrainingPosterior, integrate
from kfree.inference.rules import training_posterior
from kfree.shards import counting, lists, open_rows, rows, tables
from kfree.training import (
    TAIL,
    KnownPosteriors,
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
# How many training rows are held out at a time.
HELD_OUT_ROWS = 4096


@dataclass(frozen=True)
class Shards:
    """The training rows on the workers."""

    plan: rows.Plan
    plan_task: Any
    shards: list  # tasks
    n_points: list  # of each shard
    boxes: Any  # task
    first: np.ndarray  # (n_partitions + 1,) where each partition begins in the whole


@dataclass(frozen=True)
class Neighbors:
    """The neighbors of all training rows on the workers, for some candidates: tasks."""

    graphs: list
    incoming: list
    tables: list
    around: list  # neighborhoods with labels in place of points


@dataclass(frozen=True)
class Fitted:
    """All that a fit leaves: tasks on the workers, and what the client knows."""

    shards: Shards
    neighbors: Neighbors
    candidates: Candidates
    posterior: TrainingPosterior
    knowledge: Any  # task
    likelihood: Any  # task
    structure: str
    joint: bool


def spread(work: Work, parts: list, plan: rows.Plan, first: np.ndarray) -> Shards:
    """Bring the rows of all partitions to their shards."""
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
    shards = work.keep(
        [
            task("shard", rows.make_shard, s, known, [task("piece", getitem, p, s) for p in split])
            for s in number
        ]
    )
    n_points = work.fetch([task("count-rows", _n_points, shard) for shard in shards], "shards")
    boxes = task(
        "boxes", rows.make_boxes, n_points, [task("box", rows.box_of, shard) for shard in shards]
    )
    (kept_boxes,) = work.keep([boxes])
    return Shards(plan, known, shards, n_points, kept_boxes, first)


def merged_lists(shards: Shards, k: int, chosen: list | None = None) -> list:
    """Tasks for the k nearest others of all rows, or of the rows `chosen` in each shard."""
    number = range(len(shards.shards))
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


def likely_k_max(work: Work, shards: Shards, limit: int, prior: GammaPrior) -> int:
    """The guess at k_max that one machine makes, from the same rows."""
    pilots = pilot_rows(shards.plan.n_points)
    if pilots is None:
        return limit
    k = thin_candidates(limit)
    chosen = [task("pilot-rows", _places, shard, pilots) for shard in shards.shards]
    found = merged_lists(shards, limit, chosen)
    own = [
        task("pilot-codes", _codes, shard, rows_)
        for shard, rows_ in zip(shards.shards, chosen, strict=True)
    ]
    guess = task("pilot", counting.guess_k_max, found, own, shards.plan_task, k, prior)
    return work.fetch_one(guess, "the pilot")


def find_neighbors(work: Work, shards: Shards, k: np.ndarray, structure: str) -> Neighbors:
    """The neighbors of all rows for the candidates `k`, kept on the workers."""
    found = merged_lists(shards, int(k[-1]))
    graphs = work.keep([task("graph", lists.make_graph, part, k) for part in found])
    both = structure != "asymmetric"
    incoming: list = [None] * len(graphs)
    sides: list = [None] * len(graphs)
    if both:
        incoming = work.keep(_incoming(shards, graphs))
        sides = work.keep(
            [
                task("both-sides", tables.both_sides, shard, graph, part, structure)
                for shard, graph, part in zip(shards.shards, graphs, incoming, strict=True)
            ]
        )
    around = [
        task("neighborhoods", tables.label_table, shards.plan_task, graph, side, structure)
        for graph, side in zip(graphs, sides, strict=True)
    ]
    return Neighbors(graphs, incoming, sides, around)


def _incoming(shards: Shards, graphs: list) -> list:
    sent = [
        task("outgoing", tables.outgoing, shard, graph)
        for shard, graph in zip(shards.shards, graphs, strict=True)
    ]
    return [
        task(
            "incoming",
            tables.make_incoming,
            shard,
            [task("edges", getitem, out, s) for out in sent],
        )
        for s, shard in enumerate(shards.shards)
    ]


def train(
    work: Work,
    shards: Shards,
    structure: str,
    k_values: Any,
    k_max: int | None,
    prior: GammaPrior,
    joint: bool,
    average: bool,
) -> Fitted:
    """The posterior of K and beta, as `kfree.training.train` finds it."""
    n_points, n_classes = shards.plan.n_points, len(shards.plan.classes)
    limit = auto_limit(n_points, n_points - 1)
    auto = isinstance(k_values, str) and k_max is None
    if k_max is not None:
        k = k_max
    else:
        work.tell("a first guess at k_max")
        k = likely_k_max(work, shards, limit, prior)
    while True:
        candidates = make_candidates(k_values, k)
        work.tell(f"the {k} nearest neighbors of all rows")
        neighbors = find_neighbors(work, shards, candidates.k, structure)
        curves, known = _posteriors(work, shards, neighbors, candidates, prior, average)
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
    knowledge = open_rows.Knowledge(
        shards.plan, structure, candidates, prior, posterior, joint, average
    )
    likelihood, know = work.keep([known, task("knowledge", as_it_is, knowledge)])
    return Fitted(shards, neighbors, candidates, posterior, know, likelihood, structure, joint)


def _posteriors(
    work: Work,
    shards: Shards,
    neighbors: Neighbors,
    candidates: Candidates,
    prior: GammaPrior,
    average: bool,
) -> tuple[BetaPosterior, Any]:
    """The posteriors of beta, and a task for what predictions know of the training labels."""
    n_k, n_classes = len(candidates), len(shards.plan.classes)
    each = list(zip(shards.shards, neighbors.around, strict=True))
    if shards.plan.n_points * int(candidates.k[-1]) <= FEW_NEIGHBORS:
        work.tell("the posterior of K and beta")
        args = shards.shards, neighbors.around, n_classes
        (likelihood,) = work.keep([task("likelihood", counting.whole_sum, *args)])
        return work.fetch_one(
            task("integrate", beta_posterior, likelihood, prior), "it"
        ), likelihood
    if counting.few(n_classes):
        work.tell("patterns of labels")
        terms = work.keep([task("count-patterns", counting.count_shard, *pair) for pair in each])
        numbers = [task("n-patterns", counting.n_terms, part) for part in terms]
        number = sum(work.fetch(numbers, "shards"))
        if number <= MOST_PATTERNS:
            work.tell("the posterior of K and beta")
            whole = task("add-patterns", counting.add_up, terms)
            (likelihood,) = work.keep([task("likelihood", counting.MergedSum, whole, n_k)])
            curves = work.fetch_one(task("integrate", beta_posterior, likelihood, prior), "it")
            if number <= TRAVELING_PATTERNS or not average:
                return curves, likelihood
            return curves, task("likelihood", as_it_is, KnownPosteriors((curves,)))
    if not average:
        raise ValueError(
            "average=False is offered on Dask where the patterns of labels can be carried along; "
            f"{n_classes} classes in {shards.plan.n_points} rows show too many."
        )
    work.tell("the posterior of K and beta, by sums over shards")
    curves = _by_shards(work, each, candidates, prior, n_classes, max(shards.n_points))
    return curves, task("likelihood", as_it_is, KnownPosteriors((curves,)))


def _by_shards(
    work: Work,
    each: list,
    candidates: Candidates,
    prior: GammaPrior,
    n_classes: int,
    largest: int,
) -> BetaPosterior:
    """The posteriors of beta, where each shard sums its own terms."""
    parts = []
    for which in counting.groups_of_candidates(candidates.k, n_classes, largest):
        curves = work.keep([task("curves", counting.shard_curves, *pair, which) for pair in each])

        def log_likelihood(
            beta: np.ndarray, derivatives: bool, some: np.ndarray, curves: list = curves
        ) -> tuple:
            values = [
                task("log-likelihood", counting.evaluate, part, beta, derivatives, some)
                for part in curves
            ]
            return work.fetch_one(task("sum", counting.sum_of_shards, values), "shards")

        parts.append(integrate(log_likelihood, len(which), prior))
    return together(parts)


def average_of_new(fitted: Fitted, read: Callable, given: Rows) -> list:
    """Tasks for what is known of the new rows of each partition."""
    shards, know, near = fitted.shards, fitted.knowledge, fitted.neighbors
    each = list(zip(shards.shards, near.graphs, strict=True))
    k = int(fitted.candidates.k[-1])
    found = []
    for i, part in enumerate(given.parts):
        points = task("read-new", read, part, i, shards.plan_task)
        home = [
            task("meet-at-home", open_rows.meet_at_home, *pair, know, points, shards.boxes)
            for pair in each
        ]
        reach = task("reach", open_rows.reach_after, points, home, k)
        away = [
            task("meet", open_rows.meet_elsewhere, *pair, know, points, shards.boxes, reach)
            for pair in each
        ]
        arrived = task("arrive", open_rows.arrive, points, [*home, *away], know)
        wanted = task("wanted", getattr, arrived, "wanted")
        described = _describe(fitted, near.incoming, wanted, fitted.structure != "asymmetric")
        found.append(
            task("average", open_rows.average_new, arrived, described, know, fitted.likelihood)
        )
    return found


def average_of_held_out(fitted: Fitted) -> list:
    """The same of the training rows, each with its label unknown, by their own partitions."""
    shards, know, near = fitted.shards, fitted.knowledge, fitted.neighbors
    incoming = near.incoming
    if fitted.structure == "asymmetric" and fitted.joint:
        incoming = _incoming(shards, near.graphs)
    of_shards = []
    for s, n in enumerate(shards.n_points):
        shard, side, into = shards.shards[s], near.tables[s], incoming[s]
        blocks = []
        for a in range(0, n, HELD_OUT_ROWS):
            chosen = np.arange(a, min(a + HELD_OUT_ROWS, n))
            block = task("hold-out", open_rows.hold_out, chosen, side, into, know)
            wanted = task("wanted", getattr, block, "wanted")
            described = _describe(fitted, incoming, wanted, False)
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


def _describe(fitted: Fitted, incoming: list, wanted: Any, with_last: bool) -> list:
    near = fitted.neighbors
    of_shards = zip(fitted.shards.shards, near.graphs, near.tables, incoming, strict=True)
    return [
        task("around-points", tables.describe, *of_shard, fitted.structure, wanted, with_last)
        for of_shard in of_shards
    ]


def _n_points(shard: rows.Shard) -> int:
    return shard.n_points


def _places(shard: rows.Shard, ids: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.isin(shard.ids, ids))


def _codes(shard: rows.Shard, places: np.ndarray) -> np.ndarray:
    return shard.codes[places]


def local_parts(fitted: Fitted) -> Sequence[Any]:
    """Tasks for all rows and lists, shard by shard, to be brought to one machine."""
    return [
        task("bring-home", _bring_home, shard, graph)
        for shard, graph in zip(fitted.shards.shards, fitted.neighbors.graphs, strict=True)
    ]


def _bring_home(shard: rows.Shard, graph: lists.ShardGraph) -> tuple:
    indices = rows.id_of(graph.codes, shard.plan).astype(np.int32)
    return shard.ids, shard.points, shard.labels, indices, graph.radii
