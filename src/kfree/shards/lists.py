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
from kfree.neighbors.metric import Minkowski
from kfree.neighbors.ordering import in_cells, in_order, measure_pairs
from kfree.neighbors.threads import run
from kfree.shards.rows import MARGIN, Boxes, Shard, spatial_order

# How many rows are looked for at a time, and merged at a time.
SEARCHED = 4096
MERGED = 1024
# Visitors that have so many times k points within their reach, judged by so many points, have the
# k nearest searched for, lest there be too many pairs.
FAR_MORE = 2
JUDGED_BY = 256
NOBODY = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Lists:
    """The nearest rows found so far, nearest first."""

    codes: np.ndarray  # (n, k)
    distances: np.ndarray  # (n, k)


@dataclass(frozen=True)
class Visitors:
    """Rows that have to look into another shard."""

    row: np.ndarray  # (n,) places among the rows that were searched for, rising
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


def own_lists(shard: Shard, k: int, rows: np.ndarray) -> Lists:
    """The k nearest others of some of a shard's rows inside it, fewer if it is small."""
    k = max(0, min(k, shard.n_points - 1))
    codes: np.ndarray = np.empty((len(rows), k), dtype=shard.plan.code_type)
    distances = np.empty((len(rows), k))
    if not codes.size:
        return Lists(codes, distances)
    # Rows that lie together are searched for together, and memory holds little besides the lists.
    order = spatial_order(shard.points[rows])
    for a in range(0, len(rows), SEARCHED):
        part = order[a : a + SEARCHED]
        of = rows[part]
        indices, distances[part] = shard.search.nearest(shard.points[of], k, of)
        codes[part] = shard.codes[indices]
    return Lists(codes, distances)


def reach_of(lists: Lists, k: int) -> np.ndarray:
    """The distance of the k-th neighbor so far; infinite for whoever has fewer: (n,)."""
    if lists.codes.shape[1] < k:
        return np.full(len(lists.codes), np.inf)
    return lists.distances[:, k - 1]


def visitors(
    shard: Shard, lists: Lists, boxes: Boxes, k: int, other: int, rows: np.ndarray
) -> Visitors:
    """Those of a shard's rows, whose lists are known, that have to visit another shard."""
    points, reach = shard.points[rows], reach_of(lists, k)
    go = NOBODY
    if other != shard.number and boxes.n_points[other] and len(points):
        go = np.flatnonzero(boxes.gap(shard.plan.space, points, other) <= reach)
    return Visitors(go, points[go], reach[go])


def lists_and_visitors(
    shard: Shard, boxes: Boxes, k: int, chosen: Sequence[int], _after: object = None
) -> list:
    """What some of a shard's rows find in it, then those of them that have to visit each shard.

    `_after` is what has to be there before this is begun.
    """
    rows = np.asarray(chosen, dtype=np.int64)
    own = own_lists(shard, k, rows)
    others = range(shard.plan.n_shards)
    return [own, *(visitors(shard, own, boxes, k, other, rows) for other in others)]


def receive(shard: Shard, guests: Visitors, k: int) -> Found:
    """What the rows that visit a shard find there within their reach; of far more the k nearest."""
    k = min(k, shard.n_points)
    if not len(guests.row) or k < 1:
        return Found(NOBODY, NOBODY, NOBODY, np.empty(0))
    far = _reach_far(shard, guests, k)
    found = [_find_nearest(shard, guests, far, k)]
    near = np.setdiff1d(np.arange(len(guests.row)), far)
    if len(near):
        near = near[spatial_order(guests.points[near])]
        blocks = [near[a : a + SEARCHED] for a in range(0, len(near), SEARCHED)]
        found += run(partial(_find_within, shard, guests), blocks, None)
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


def _find_within(shard: Shard, guests: Visitors, some: np.ndarray) -> tuple:
    """The same of guests that lie together: all points that lie in the balls around them."""
    space = cast(Minkowski, shard.plan.space)
    centers, reach = space.prepared(guests.points[some]), guests.reach[some]
    balls = Balls(space, centers, reach, np.arange(len(some)))
    points = space.prepared(shard.points)
    at, guest = balls.around(points[shard.spatial_order], np.full(shard.n_points, -1.0))
    point = shard.spatial_order[at]
    distance = measure_pairs(space, centers, points, guest, point)
    near = distance <= reach[guest] * (1.0 + MARGIN)
    return some[guest[near]], point[near], distance[near]


def merge(lists: Lists, found: Sequence[Found], k: int) -> Lists:
    """The k nearest of what rows found at home and elsewhere; every row has at least k entries."""
    n, at_home = lists.codes.shape
    row = np.concatenate([NOBODY, *(np.repeat(f.row, f.length) for f in found)])
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


def merge_in_cells(own: Sequence, found: Sequence[Found], candidates: np.ndarray) -> ShardGraph:
    """The same of what `lists_and_visitors` gave, in cells of the candidates, whose last is k."""
    lists: Lists = own[0]
    n, k = len(lists.codes), int(candidates[-1])
    codes, radii = np.empty((n, k), dtype=lists.codes.dtype), np.empty((n, len(candidates)))
    # Some rows at a time, so that memory holds little besides the lists and what they become.
    for a in range(0, n, SEARCHED):
        part = slice(a, min(a + SEARCHED, n))
        some = Lists(lists.codes[part], lists.distances[part])
        merged = merge(some, [_of_rows(f, part.start, part.stop) for f in found], k)
        codes[part] = in_cells(merged.codes, candidates)
        radii[part] = merged.distances[:, candidates - 1]
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
