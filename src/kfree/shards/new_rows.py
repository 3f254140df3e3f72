"""New rows among the training rows of all shards.

A new row finds its neighbors, and the points whose neighborhoods it enters, shard by shard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kfree.averaging import Average
from kfree.likelihood.training_sum import TrainingSum
from kfree.neighbors.graph import NEVER
from kfree.neighbors.search import Arrivals
from kfree.neighbors.structures import STRUCTURES, NewPoints
from kfree.shards.lists import NOBODY, Found, Lists, ShardGraph, merge
from kfree.shards.rows import MARGIN, Boxes, Plan, Shard, label_of
from kfree.shards.small_model import Knowledge, SmallGraph, average_rows
from kfree.shards.tables import Described, describe, join_tables
from kfree.training import KnownPosteriors


@dataclass(frozen=True)
class Meeting:
    """What some new rows met in one shard."""

    found: Found  # their nearest points there
    pair_row: np.ndarray  # (n_pairs,) which new row
    pair_code: np.ndarray  # (n_pairs,) the point whose neighborhood it enters,
    pair_cell: np.ndarray  # (n_pairs,) from which candidate on
    described: Described | None  # these points, where nobody else has to be known
    touched: np.ndarray  # (n,) else these points once each,
    last: np.ndarray  # (n, n_k) and their K-th neighbors, whom they push out


@dataclass(frozen=True)
class Arrived:
    """Where new rows stand among the points of all shards."""

    forward: np.ndarray  # (n_rows, k[-1]) codes
    pair_row: np.ndarray  # (n_pairs,)
    pair_code: np.ndarray  # (n_pairs,)
    pair_cell: np.ndarray  # (n_pairs,)
    described: list[Described]  # the points that are known already
    wanted: np.ndarray  # (n,) codes, rising: the points that have to be described


def home_of(points: np.ndarray, boxes: Boxes, plan: Plan) -> np.ndarray:
    """The shard in which each new row begins: the nearest, and of equally near ones the first."""
    gaps = np.stack(
        [
            boxes.gap(plan.space, points, s) if boxes.n_points[s] else np.full(len(points), np.inf)
            for s in range(plan.n_shards)
        ]
    )
    if boxes.low is None:  # without boxes rows are spread evenly
        full = np.flatnonzero(boxes.n_points)
        return full[np.arange(len(points)) % len(full)]
    return gaps.argmin(axis=0)


def widest(graph: ShardGraph) -> float:
    """How far the neighborhoods of a shard's points reach at most."""
    return float(graph.radii[:, -1].max(initial=-np.inf))


def meet(
    shard: Shard,
    graph: ShardGraph,
    knowledge: Knowledge,
    points: np.ndarray,
    rows: np.ndarray,
    reach: np.ndarray,
) -> Meeting:
    """What new rows meet in a shard: points (n, n_features), of which `rows` look into it.

    `reach` (n,) is how far their neighbors are at most, infinite as long as it is not known.
    """
    n_k, k = len(graph.k), min(int(graph.k[-1]), shard.n_points)
    if not len(rows) or not k:
        empty, last = Found(NOBODY, NOBODY, NOBODY, np.empty(0)), np.empty((0, n_k), dtype=np.int64)
        return Meeting(empty, NOBODY, NOBODY, NOBODY, None, NOBODY, last)
    queries, reach = points[rows], reach[rows]
    radii = graph.radii if knowledge.enters else None
    near = shard.search.arrivals(queries, np.arange(1, k + 1), radii)
    flat = near.forward.ravel()
    distances = shard.search.between(queries, np.repeat(np.arange(len(rows)), k), flat)
    distances = distances.reshape(-1, k)
    inside = distances <= reach[:, None] * (1.0 + MARGIN)
    found = Found(rows, inside.sum(axis=1), shard.codes[near.forward[inside]], distances[inside])
    touched, described = np.unique(near.reverse_point), None
    if knowledge.nearest:
        codes, touched = shard.codes[touched], NOBODY
        described = describe(shard, graph, None, None, codes, knowledge.structure, False)
    return Meeting(
        found,
        rows[near.reverse_row].astype(np.int32),
        shard.codes[near.reverse_point],
        near.reverse_cell.astype(np.min_scalar_type(n_k)),
        described,
        shard.codes[touched],
        graph.codes[touched][:, graph.k - 1],
    )


def meet_at_home(
    shard: Shard,
    graph: ShardGraph,
    knowledge: Knowledge,
    points: np.ndarray,
    boxes: Boxes,
) -> Meeting:
    """What the new rows whose home this shard is meet in it."""
    rows = np.flatnonzero(home_of(points, boxes, shard.plan) == shard.number)
    return meet(shard, graph, knowledge, points, rows, np.full(len(points), np.inf))


def reach_after(points: np.ndarray, met: Sequence[Meeting], k: int) -> np.ndarray:
    """How far the k-th neighbor of each new row is at most, after it was at home: (n,)."""
    reach = np.full(len(points), np.inf)
    for meeting in met:
        found = meeting.found
        full = found.length >= k
        end = np.cumsum(found.length)
        reach[found.row[full]] = found.distances[end[full] - 1]
    return reach


def meet_elsewhere(
    shard: Shard,
    graph: ShardGraph,
    knowledge: Knowledge,
    points: np.ndarray,
    boxes: Boxes,
    reach: np.ndarray,
) -> Meeting:
    """What the other new rows meet in a shard that is near enough to matter to them."""
    if not shard.n_points:
        rows = NOBODY
    else:
        gap = boxes.gap(shard.plan.space, points, shard.number)
        near = gap <= reach
        if knowledge.enters:
            near |= gap <= widest(graph)
        near &= home_of(points, boxes, shard.plan) != shard.number
        rows = np.flatnonzero(near)
    return meet(shard, graph, knowledge, points, rows, reach)


def arrive(points: np.ndarray, met: Sequence[Meeting], knowledge: Knowledge) -> Arrived:
    """All meetings of new rows put together."""
    k = int(knowledge.candidates.k[-1])
    n = len(points)
    none = Lists(np.empty((n, 0), dtype=np.int64), np.empty((n, 0)))
    forward = merge(none, [meeting.found for meeting in met], k).codes
    row, code, cell = (
        np.concatenate([getattr(meeting, name) for meeting in met])
        for name in ("pair_row", "pair_code", "pair_cell")
    )
    order = np.lexsort((code, row))
    wanted = [NOBODY]
    if not knowledge.nearest:
        wanted = [code, forward.ravel()]
        wanted += [part for meeting in met for part in (meeting.touched, meeting.last.ravel())]
    return Arrived(
        forward,
        row[order].astype(np.int64),
        code[order],
        cell[order].astype(np.int64),
        [meeting.described for meeting in met if meeting.described is not None],
        np.unique(np.concatenate(wanted)),
    )


def average_new(
    arrived: Arrived,
    described: Sequence[Described],
    knowledge: Knowledge,
    likelihood: TrainingSum | KnownPosteriors,
) -> Average:
    """Class probabilities and all else that is known of new rows.

    `described` are the points that `arrived` wants to be.
    """
    plan, k = knowledge.plan, knowledge.candidates.k
    # A point that rows of its shard and of others met is there twice, and taken once.
    described = [*arrived.described, *described]
    codes = np.concatenate([NOBODY, *(part.codes for part in described)])
    order = np.argsort(codes)
    n, n_classes = len(codes), len(plan.classes)
    labels = np.concatenate([label_of(codes, plan), np.arange(n_classes)])
    table = join_tables([part.table(k) for part in described], n, n_classes, k)

    def place(of: np.ndarray) -> np.ndarray:
        """Where points stand; those that were not described are only labels."""
        at = order[np.minimum(np.searchsorted(codes, of, sorter=order), n - 1)] if n else None
        other = n + label_of(of, plan)
        return other if at is None else np.where(codes[at] == of, at, other)

    if knowledge.nearest:
        lists, mutual = table.neighbors.reshape(-1, int(k[-1])), None
    else:
        lists = np.full((n + n_classes, int(k[-1])), n, dtype=np.int64)
        lists[:n, k - 1] = place(np.concatenate([part.last for part in described]))
        mutual = None
        if STRUCTURES[knowledge.structure].needs_both:
            mutual = np.full(lists.shape, NEVER, dtype=np.int64)
            mutual[:n, k - 1] = np.concatenate([part.mutual for part in described])
    graph = SmallGraph(k, lists, np.empty((0, 0)), mutual_cell=mutual)
    point = place(arrived.pair_code)
    by_point = np.lexsort((point, arrived.pair_row))
    arrivals = Arrivals(
        place(arrived.forward),
        arrived.pair_row[by_point],
        point[by_point],
        arrived.pair_cell[by_point],
    )
    rows = NewPoints(knowledge.structure, graph, arrivals)
    return average_rows(knowledge, likelihood, graph, table, labels, rows, None)
