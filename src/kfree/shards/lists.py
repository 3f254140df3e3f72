"""The nearest neighbors of each training row among the rows of all shards.

A shard finds the neighbors of its rows in itself. A row whose list could hold a point of another
shard, because that shard's box is nearer than its last neighbor so far, visits it. The lists are
then put together by the one rule for ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from kfree.neighbors.balls import Balls
from kfree.neighbors.graph import cells
from kfree.neighbors.metric import Minkowski
from kfree.neighbors.ordering import ORDERED, in_order, measure_pairs, nearest_first
from kfree.neighbors.threads import run
from kfree.shards.rows import MARGIN, Boxes, Shard, together

# How many rows are looked for at a time, and merged at a time.
SEARCHED = 4096
MERGED = 1024
# Visitors that have so many times k points within their reach, judged by so many points, have the
# k nearest searched for, lest there be too many pairs.
FAR_MORE = 8
JUDGED_BY = 256
_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Lists:
    """The nearest rows found so far, nearest first."""

    codes: np.ndarray  # (n, k)
    distances: np.ndarray  # (n, k)


@dataclass(frozen=True)
class Visitors:
    """Rows that have to look into another shard."""

    row: np.ndarray  # (n,) places in their own shard, rising
    points: np.ndarray  # (n, n_features)
    reach: np.ndarray  # (n,) the distance of their last neighbor so far


@dataclass(frozen=True)
class Found:
    """What visitors found within their reach: row i has `length[i]` entries."""

    row: np.ndarray  # (n,)
    length: np.ndarray  # (n,)
    codes: np.ndarray  # (n_entries,)
    distances: np.ndarray  # (n_entries,)


@dataclass(frozen=True)
class ShardGraph:
    """For each row of a shard its nearest others, in cells of the candidates `k`."""

    k: np.ndarray  # (n_k,) rising
    codes: np.ndarray  # (n, k[-1])
    radii: np.ndarray  # (n, n_k) the distance of the K-th neighbor

    def up_to(self, n_k: int) -> ShardGraph:
        """The same at the first n_k candidates."""
        codes = np.ascontiguousarray(self.codes[:, : self.k[n_k - 1]])
        return ShardGraph(self.k[:n_k], codes, np.ascontiguousarray(self.radii[:, :n_k]))


def own_lists(shard: Shard, k: int, rows: np.ndarray | None = None) -> Lists:
    """The k nearest others of a shard's rows (of some `rows`) inside it, fewer if it is small."""
    which = np.arange(shard.n_points) if rows is None else rows
    k = min(k, shard.n_points - 1)
    code_type = shard.plan.code_type
    if k < 1 or not len(which):
        return Lists(np.empty((len(which), 0), dtype=code_type), np.empty((len(which), 0)))
    codes: np.ndarray = np.empty((len(which), k), dtype=code_type)
    distances = np.empty((len(which), k))
    # Rows that lie together are searched for together, and memory holds little besides the lists.
    order = together(shard.points[which])
    for a in range(0, len(which), SEARCHED):
        part = order[a : a + SEARCHED]
        of = which[part]
        indices, distances[part] = shard.search.nearest(shard.points[of], k, of)
        codes[part] = shard.codes[indices]
    return Lists(codes, distances)


def reach_of(lists: Lists, k: int) -> np.ndarray:
    """The distance of the k-th neighbor so far; infinite for whoever has fewer: (n,)."""
    if lists.codes.shape[1] < k:
        return np.full(len(lists.codes), np.inf)
    return lists.distances[:, k - 1]


def visitors(
    shard: Shard, lists: Lists, boxes: Boxes, k: int, other: int, rows: np.ndarray | None = None
) -> Visitors:
    """The rows of a shard (of some `rows`) that have to visit another."""
    points = shard.points if rows is None else shard.points[rows]
    reach = reach_of(lists, k)
    if other == shard.number or not boxes.n_points[other] or not len(points):
        go = np.empty(0, dtype=np.int64)
    else:
        go = np.flatnonzero(boxes.gap(shard.plan.space, points, other) <= reach)
    return Visitors(go, points[go], reach[go])


def lists_and_visitors(
    shard: Shard, boxes: Boxes, k: int, rows: Sequence[int] | None, _after: object = None
) -> list:
    """What a shard's rows (some `rows`) find in it, then those that have to visit each shard.

    Tasks may be given what they have to wait for.
    """
    which = None if rows is None else np.asarray(rows, dtype=np.int64)
    own = own_lists(shard, k, which)
    others = range(shard.plan.n_shards)
    return [own, *(visitors(shard, own, boxes, k, other, which) for other in others)]


def receive(shard: Shard, guests: Visitors, k: int) -> Found:
    """What the rows that visit a shard find there: at most the k nearest within their reach."""
    k = min(k, shard.n_points)
    if not len(guests.row) or k < 1:
        none = np.empty(0, dtype=np.int64)
        return Found(none, none, none, np.empty(0))
    far = _reach_far(shard, guests, k)
    found = [_find_nearest(shard, guests, far, k)]
    near = np.setdiff1d(np.arange(len(guests.row)), far)
    if len(near):
        near = near[together(guests.points[near])]
        blocks = [near[a : a + SEARCHED] for a in range(0, len(near), SEARCHED)]
        found += run(partial(_find_within, shard, guests, k), blocks, None)
    row, point, distance = (np.concatenate(part) for part in zip(*found, strict=True))
    order = np.argsort(row, kind="stable")
    length = np.bincount(row, minlength=len(guests.row))
    return Found(guests.row, length, shard.codes[point[order]], distance[order])


def _reach_far(shard: Shard, guests: Visitors, k: int) -> np.ndarray:
    """The guests that have far more than k points within their reach, judged by some points."""
    space = shard.plan.space
    if not isinstance(space, Minkowski):
        return np.arange(len(guests.row))
    some = space.prepared(shard.points[:: max(1, shard.n_points // JUDGED_BY)])
    most = FAR_MORE * (1.0 + k * len(some) / shard.n_points)
    far = np.isinf(guests.reach)
    for a in range(0, len(far), SEARCHED):
        part = slice(a, a + SEARCHED)
        block = space.block(space.prepared(guests.points[part]), some)
        far[part] |= (block <= guests.reach[part, None]).sum(axis=1) > most
    return np.flatnonzero(far)


def _find_nearest(shard: Shard, guests: Visitors, some: np.ndarray, k: int) -> tuple:
    """(guest, point, distance) of the k nearest points of some guests."""
    indices, distances = shard.search.nearest(guests.points[some], k)
    near = distances <= guests.reach[some, None] * (1.0 + MARGIN)
    return some[np.nonzero(near)[0]], indices[near], distances[near]


def _find_within(shard: Shard, guests: Visitors, k: int, some: np.ndarray) -> tuple:
    """The same of guests that lie together: the points that lie in the balls around them."""
    space = cast(Minkowski, shard.plan.space)
    centers, reach = space.prepared(guests.points[some]), guests.reach[some]
    balls = Balls(space, centers, reach, np.arange(len(some)))
    points = space.prepared(shard.points)
    at, guest = balls.around(points[shard.together], np.full(shard.n_points, -1.0))
    point = shard.together[at]
    distance = measure_pairs(space, centers, points, guest, point)
    near = np.flatnonzero(distance <= reach[guest] * (1.0 + MARGIN))
    guest, point, distance = guest[near], point[near], distance[near]
    many = np.bincount(guest, minlength=len(some)) > k
    if not many.any():
        return some[guest], point, distance
    few, over = np.flatnonzero(~many[guest]), np.flatnonzero(many[guest])
    over = over[np.argsort(guest[over], kind="stable")]
    place = np.cumsum(many) - 1
    nearest = nearest_first(place[guest[over]], point[over], distance[over], k)
    return (
        np.concatenate([some[guest[few]], np.repeat(some[many], k)]),
        np.concatenate([point[few], nearest[0].ravel()]),
        np.concatenate([distance[few], nearest[1].ravel()]),
    )


def merge(lists: Lists, found: Sequence[Found], k: int) -> Lists:
    """The k nearest of what rows found at home and elsewhere; every row has at least k entries."""
    n, at_home = lists.codes.shape
    row = np.concatenate([_NONE, *(np.repeat(f.row, f.length) for f in found)])
    code = np.concatenate([lists.codes[:0].ravel(), *(f.codes for f in found)])
    distance = np.concatenate([np.empty(0), *(f.distances for f in found)])
    number = np.bincount(row, minlength=n)
    end = np.cumsum(number)
    order = np.argsort(row, kind="stable")
    code, distance = code[order], distance[order]
    codes, distances = np.empty((n, k), dtype=code.dtype), np.empty((n, k))
    # Rows that found about as much elsewhere are put in order together.
    by_number = np.argsort(number, kind="stable")
    for a in range(0, n, MERGED):
        some = by_number[a : a + MERGED]
        more = int(number[some[-1]])
        if not more:
            codes[some], distances[some] = lists.codes[some, :k], lists.distances[some, :k]
            continue
        wide = np.zeros((len(some), at_home + more), dtype=code.dtype)
        value = np.full(wide.shape, np.nan)
        wide[:, :at_home], value[:, :at_home] = lists.codes[some], lists.distances[some]
        place = np.arange(more)
        there = place < number[some, None]
        entry = (end - number)[some, None] + place
        wide[:, at_home:][there] = code[entry[there]]
        value[:, at_home:][there] = distance[entry[there]]
        wide, value = in_order(wide, value)
        codes[some], distances[some] = wide[:, :k], value[:, :k]
    return Lists(codes, distances)


def merge_found(own: Sequence, found: Sequence[Found], k: int) -> Lists:
    """The same of what `lists_and_visitors` gave."""
    return merge(own[0], found, k)


def merge_in_cells(
    own: Sequence, found: Sequence[Found], k: int, candidates: np.ndarray
) -> ShardGraph:
    """The same in cells of the candidates, whose last is k."""
    lists: Lists = own[0]
    n = len(lists.codes)
    codes, radii = np.empty((n, k), dtype=lists.codes.dtype), np.empty((n, len(candidates)))
    # Some rows at a time, so that memory holds little besides the lists and what they become.
    for a in range(0, n, SEARCHED):
        part = slice(a, min(a + SEARCHED, n))
        some = Lists(lists.codes[part], lists.distances[part])
        merged = merge(some, [_of_rows(f, part.start, part.stop) for f in found], k)
        graph = make_graph(merged, candidates)
        codes[part], radii[part] = graph.codes, graph.radii
    return ShardGraph(candidates, codes, radii)


def join_graphs(first: ShardGraph, second: ShardGraph) -> ShardGraph:
    """The lists of some rows of a shard and of those that come after them."""
    codes, radii = (
        np.concatenate([getattr(first, name), getattr(second, name)]) for name in ("codes", "radii")
    )
    return ShardGraph(first.k, codes, radii)


def _of_rows(found: Found, first: int, last: int) -> Found:
    """What the rows first..last-1 found, counted from the first; `found.row` rises."""
    a, b = np.searchsorted(found.row, [first, last])
    entries = slice(int(found.length[:a].sum()), int(found.length[:b].sum()))
    length, codes, distances = found.length[a:b], found.codes[entries], found.distances[entries]
    return Found(found.row[a:b] - first, length, codes, distances)


def make_graph(lists: Lists, k: np.ndarray) -> ShardGraph:
    """Merged lists, which are used up, in cells of the candidates `k` (n_k,)."""
    return ShardGraph(k, _in_cells(lists.codes, k), lists.distances[:, k - 1])


def _in_cells(codes: np.ndarray, k: np.ndarray) -> np.ndarray:
    """As `kfree.neighbors.ordering.in_cells`, for codes: each cell sorted, its last apart."""
    cell = cells(k)
    free = np.flatnonzero((np.append(cell[1:], -1) == cell) & (np.arange(len(cell)) >= ORDERED))
    for i in np.unique(cell[free]):
        of_cell = free[cell[free] == i]
        codes[:, of_cell] = np.sort(codes[:, of_cell], axis=1)
    return codes
