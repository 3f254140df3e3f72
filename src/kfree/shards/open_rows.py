"""Rows with open labels among the training rows of all shards.

A new row finds its neighbors, and the points whose neighborhoods it enters, shard by shard. What is
then known of the touched points is all that the library's own averaging needs: it runs on a small
model of these points, in which whoever is not touched is no more than a label. As on one machine,
new rows are first searched for with the candidates of K that usually count, and those that ask for
more are searched for again with all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, cast

import numpy as np

from kfree.averaging import Average, average_by_quadrature, optimal_by_quadrature
from kfree.blocks import block_rows
from kfree.candidates import Candidates
from kfree.inference.prior import GammaPrior
from kfree.inference.quadrature import TrainingPosterior
from kfree.likelihood.open_labels import OpenLabels
from kfree.likelihood.training_sum import TrainingSum
from kfree.neighbors.flat import expand
from kfree.neighbors.graph import NEVER, NeighborGraph
from kfree.neighbors.search import Arrivals, Search
from kfree.neighbors.structures import STRUCTURES, HeldOut, Neighborhoods, NewPoints, OpenRows
from kfree.reach import n_usual_candidates
from kfree.shards.lists import Found, Lists, ShardGraph, merge
from kfree.shards.rows import MARGIN, Boxes, Plan, Shard, label_of
from kfree.shards.tables import Described, ShardTable, describe, join_tables
from kfree.training import KnownPosteriors, Model

# How many rows are averaged at a time: memory is shared with a shard here.
AVERAGED = 256
_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Knowledge:
    """What all shards together have found out about K and beta, and how it is used."""

    plan: Plan
    structure: str
    candidates: Candidates
    prior: GammaPrior
    posterior: TrainingPosterior
    joint: bool
    average: bool

    @property
    def nearest(self) -> bool:
        """Whether neighborhoods are the lists of nearest neighbors."""
        return STRUCTURES[self.structure].nearest

    @property
    def enters(self) -> bool:
        """Whether it matters whose neighborhoods a new row enters."""
        return self.joint or not self.nearest


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

    n_k: int  # for how many of the candidates, the first ones, they were searched for
    forward: np.ndarray  # (n_rows, k[n_k - 1]) codes
    pair_row: np.ndarray  # (n_pairs,)
    pair_code: np.ndarray  # (n_pairs,)
    pair_cell: np.ndarray  # (n_pairs,)
    described: list[Described]  # the points that are known already
    wanted: np.ndarray  # (n,) codes, rising: the points that have to be described


@dataclass(frozen=True)
class Answer:
    """What is known of new rows, and which of them ask to be searched for farther."""

    average: Average
    asking: np.ndarray  # (n,) rising


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


def n_usual(knowledge: Knowledge) -> int:
    """With how many of the candidates new rows are searched for at first."""
    return n_usual_candidates(_model(knowledge, None, None, None, None))


def widest(graph: ShardGraph, n_k: int) -> float:
    """How far the neighborhoods of a shard's points reach at most, at n_k candidates."""
    return float(graph.radii[:, n_k - 1].max(initial=-np.inf))


def meet(
    shard: Shard,
    graph: ShardGraph,
    knowledge: Knowledge,
    points: np.ndarray,
    rows: np.ndarray,
    reach: np.ndarray,
    n_k: int,
) -> Meeting:
    """What new rows meet in a shard: points (n, n_features), of which `rows` look into it.

    `reach` (n,) is how far their neighbors are at most, infinite as long as it is not known. Only
    the first n_k candidates are looked at.
    """
    k = min(int(graph.k[n_k - 1]), shard.n_points)
    none = np.empty(0, dtype=np.int64)
    if not len(rows) or not k:
        empty = Found(none, none, none, np.empty(0))
        return Meeting(empty, none, none, none, None, none, np.empty((0, n_k), dtype=np.int64))
    queries, reach = points[rows], reach[rows]
    radii = graph.radii[:, :n_k] if knowledge.enters else None
    near = shard.search.arrivals(queries, np.arange(1, k + 1), radii)
    flat = near.forward.ravel()
    distances = shard.search.between(queries, np.repeat(np.arange(len(rows)), k), flat)
    distances = distances.reshape(-1, k)
    inside = distances <= reach[:, None] * (1.0 + MARGIN)
    found = Found(rows, inside.sum(axis=1), shard.codes[near.forward[inside]], distances[inside])
    touched, described = np.unique(near.reverse_point), None
    if knowledge.nearest:
        codes, touched = shard.codes[touched], none
        described = describe(shard, graph, None, None, codes, knowledge.structure, False, n_k)
    return Meeting(
        found,
        rows[near.reverse_row].astype(np.int32),
        shard.codes[near.reverse_point],
        near.reverse_cell.astype(np.min_scalar_type(n_k)),
        described,
        shard.codes[touched],
        graph.codes[touched][:, graph.k[:n_k] - 1],
    )


def meet_at_home(
    shard: Shard,
    graph: ShardGraph,
    knowledge: Knowledge,
    points: np.ndarray,
    boxes: Boxes,
    n_k: int,
) -> Meeting:
    """What the new rows whose home this shard is meet in it."""
    rows = np.flatnonzero(home_of(points, boxes, shard.plan) == shard.number)
    return meet(shard, graph, knowledge, points, rows, np.full(len(points), np.inf), n_k)


def meet_again(
    shard: Shard, graph: ShardGraph, knowledge: Knowledge, points: np.ndarray
) -> Meeting:
    """What the few new rows that ask for more meet in a shard at all candidates."""
    rows, reach = np.arange(len(points)), np.full(len(points), np.inf)
    return meet(shard, graph, knowledge, points, rows, reach, len(graph.k))


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
    n_k: int,
) -> Meeting:
    """What the other new rows meet in a shard that is near enough to matter to them."""
    if not shard.n_points:
        rows = np.empty(0, dtype=np.int64)
    else:
        gap = boxes.gap(shard.plan.space, points, shard.number)
        near = gap <= reach
        if knowledge.enters:
            near |= gap <= widest(graph, n_k)
        near &= home_of(points, boxes, shard.plan) != shard.number
        rows = np.flatnonzero(near)
    return meet(shard, graph, knowledge, points, rows, reach, n_k)


def arrive(points: np.ndarray, met: Sequence[Meeting], knowledge: Knowledge, n_k: int) -> Arrived:
    """All meetings of new rows put together."""
    k = int(knowledge.candidates.k[n_k - 1])
    n = len(points)
    none = Lists(np.empty((n, 0), dtype=np.int64), np.empty((n, 0)))
    forward = merge(none, [meeting.found for meeting in met], k).codes
    row, code, cell = (
        np.concatenate([getattr(meeting, name) for meeting in met])
        for name in ("pair_row", "pair_code", "pair_cell")
    )
    order = np.lexsort((code, row))
    wanted = [np.empty(0, dtype=np.int64)]
    if not knowledge.nearest:
        wanted = [code, forward.ravel()]
        wanted += [part for meeting in met for part in (meeting.touched, meeting.last.ravel())]
    return Arrived(
        n_k,
        forward,
        row[order].astype(np.int64),
        code[order],
        cell[order].astype(np.int64),
        [meeting.described for meeting in met if meeting.described is not None],
        np.unique(np.concatenate(wanted)),
    )


@dataclass(frozen=True)
class SmallGraph(NeighborGraph):
    """The lists of a few points, with what cannot be read off these lists given besides."""

    reverse: tuple | None = None  # type: ignore[assignment]
    mutual_cell: np.ndarray | None = None  # type: ignore[assignment]


def average_new(
    arrived: Arrived,
    described: Sequence[Described],
    knowledge: Knowledge,
    likelihood: TrainingSum | KnownPosteriors,
) -> Answer:
    """Class probabilities and all else that is known of new rows.

    `described` are the points that `arrived` wants to be.
    """
    plan, k = knowledge.plan, knowledge.candidates.k[: arrived.n_k]
    # A point that rows of its shard and of others met is there twice, and taken once.
    described = [*arrived.described, *described]
    codes = np.concatenate([_NONE, *(part.codes for part in described)])
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
    graph = SmallGraph(knowledge.candidates.k, lists, np.empty((0, 0)), mutual_cell=mutual)
    point = place(arrived.pair_code)
    by_point = np.lexsort((point, arrived.pair_row))
    arrivals = Arrivals(
        place(arrived.forward),
        arrived.pair_row[by_point],
        point[by_point],
        arrived.pair_cell[by_point],
    )
    rows = NewPoints(knowledge.structure, graph, arrivals)
    return _average(knowledge, likelihood, graph, table, labels, rows, None)


def points_asking(points: np.ndarray, answer: Answer) -> np.ndarray:
    """The new rows that have to be searched for again."""
    return points[answer.asking]


def average_farther(
    answer: Answer,
    arrived: Arrived,
    described: Sequence[Described],
    knowledge: Knowledge,
    likelihood: TrainingSum | KnownPosteriors,
) -> Answer:
    """The answer with what is known of the rows that asked, searched for again (`arrived`)."""
    if not len(answer.asking):
        return answer
    better, whole = average_new(arrived, described, knowledge, likelihood).average, {}
    for name in (field.name for field in fields(Average)):
        whole[name] = getattr(answer.average, name).copy()
        whole[name][answer.asking] = getattr(better, name)
    return Answer(Average(**whole), _NONE)


@dataclass(frozen=True)
class Block:
    """Training rows of a shard whose labels are held out, and whom they touch."""

    rows: np.ndarray  # (n,) places in the shard
    wanted: np.ndarray  # codes, rising: the points that have to be described


def hold_out(
    rows: np.ndarray,
    table: ShardTable | None,
    incoming: ShardTable | None,
    knowledge: Knowledge,
) -> Block:
    """Some rows of a shard, held out."""
    touching = incoming if knowledge.nearest else table
    if not knowledge.joint or touching is None:
        return Block(rows, np.empty(0, dtype=np.int64))
    return Block(rows, np.unique(touching.codes[expand(touching.indptr, rows)[1]]))


def average_held_out(
    block: Block,
    shard: Shard,
    own: Neighborhoods,
    table: ShardTable | None,
    incoming: ShardTable | None,
    described: Sequence[Described],
    knowledge: Knowledge,
    likelihood: TrainingSum | KnownPosteriors,
) -> Average:
    """The same of training rows, each with its own label unknown.

    Parameters
    ----------
    own : the neighborhoods of all rows of the shard, with labels in place of points
    """
    plan, k = knowledge.plan, knowledge.candidates.k
    codes = np.concatenate([part.codes for part in described])
    order = np.argsort(codes)
    n_rows, n_classes = len(block.rows), len(plan.classes)
    n = n_rows + len(codes)  # then come the labels
    labels = np.concatenate([shard.labels[block.rows], label_of(codes, plan), np.arange(n_classes)])
    mine = own.take(block.rows)
    joined = join_tables([mine, *(part.table(k) for part in described)], n, n_classes, k)
    reverse = None
    if knowledge.joint and knowledge.nearest:
        assert incoming is not None
        owner, edge = expand(incoming.indptr, block.rows)
        at = order[np.searchsorted(codes, incoming.codes[edge], sorter=order)]
        indptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n_rows))])
        reverse = indptr, n_rows + at, incoming.cell[edge]
    elif not knowledge.nearest and knowledge.joint:
        assert table is not None
        _, edge = expand(table.indptr, block.rows)
        at = order[np.searchsorted(codes, table.codes[edge], sorter=order)]
        joined.neighbors[: len(edge)] = n_rows + at
    elif knowledge.nearest:
        none = np.empty(0, dtype=np.int64)
        reverse = np.zeros(n_rows + 1, dtype=np.int64), none, none
    graph = SmallGraph(
        k, np.empty((n + n_classes, 0), dtype=np.int64), np.empty((0, 0)), reverse=reverse
    )
    rows = HeldOut(knowledge.structure, graph, joined, np.arange(n_rows))
    own_labels = shard.labels[block.rows]
    return _average(knowledge, likelihood, graph, joined, labels, rows, own_labels).average


def _average(
    knowledge: Knowledge,
    likelihood: TrainingSum | KnownPosteriors,
    graph: NeighborGraph,
    table: Neighborhoods,
    labels: np.ndarray,
    rows: OpenRows,
    own_labels: np.ndarray | None,
) -> Answer:
    """The library's own averages, of blocks of rows."""
    n_classes, asked = len(knowledge.plan.classes), [_NONE]
    model = _model(knowledge, graph, table, labels, likelihood)
    work: Callable = average_by_quadrature if knowledge.average else optimal_by_quadrature
    every = OpenLabels(rows, table, labels, n_classes, knowledge.joint, own_labels)

    def note(which: np.ndarray) -> OpenLabels:
        """Rows that ask to be searched for farther: not here, where only tables are known."""
        asked.append(which)
        return known.take(which)

    known = every
    if rows.n_candidates < model.n_k:
        every = replace(every, farther=note)
    step = min(AVERAGED, block_rows(model, knowledge.joint, "quadrature"))
    starts = range(0, rows.n_rows, step)
    if not len(starts):
        n_k = model.n_k
        shapes = ((0, n_k), (0, n_classes), (0, n_classes), (0,), (0,))
        return Answer(Average(*(np.empty(shape) for shape in shapes)), _NONE)
    parts = [every.take(np.arange(a, min(a + step, rows.n_rows))) for a in starts]
    average = join_averages([work(model, part) for part in parts])
    return Answer(average, np.unique(np.concatenate(asked)))


def _model(knowledge: Knowledge, graph: Any, table: Any, labels: Any, likelihood: Any) -> Model:
    """The model of a few points, among which everybody was found before."""
    return Model(
        knowledge.structure,
        cast(Search, None),
        graph,
        table,
        labels,
        len(knowledge.plan.classes),
        knowledge.candidates,
        knowledge.prior,
        knowledge.posterior,
        likelihood,
    )


def join_averages(parts: Sequence[Average]) -> Average:
    """What is known of several blocks of rows, one after the other."""
    return Average(
        *(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Average))
    )


def in_whole_order(parts: Sequence[tuple[np.ndarray, Average]]) -> Average:
    """Averages of rows (their ids, what is known) from several shards in the order of the whole."""
    joined = join_averages([part for _, part in parts])
    order = np.argsort(np.concatenate([ids for ids, _ in parts]))
    return Average(*(getattr(joined, f.name)[order] for f in fields(Average)))


def part_of_average(
    ids: np.ndarray, average: Average, first: int, last: int
) -> tuple[np.ndarray, Average]:
    """What is known of the rows first..last-1 of the whole; `ids` (n,) rise."""
    a, b = np.searchsorted(ids, [first, last])
    return ids[a:b], Average(*(getattr(average, f.name)[a:b] for f in fields(Average)))
