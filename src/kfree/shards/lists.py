"""The nearest neighbors of each training row among the rows of all shards.

A shard finds the neighbors of its rows in itself. A row whose list could hold a point of another
shard, because that shard's box is nearer than its last neighbor so far, visits it. The lists are
then put together by the one rule for ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kfree.neighbors.graph import cells
from kfree.neighbors.ordering import ORDERED, in_order, in_rows
from kfree.shards.rows import MARGIN, Boxes, Shard


@dataclass(frozen=True)
class Lists:
    """The nearest rows found so far, nearest first."""

    codes: np.ndarray  # (n, k) int64
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
    codes: np.ndarray  # (n, k[-1]) int64
    radii: np.ndarray  # (n, n_k) the distance of the K-th neighbor


def own_lists(shard: Shard, k: int, rows: np.ndarray | None = None) -> Lists:
    """The k nearest others of a shard's rows (of some `rows`) inside it, fewer if it is small."""
    which = np.arange(shard.n_points) if rows is None else rows
    k = min(k, shard.n_points - 1)
    if k < 1 or not len(which):
        return Lists(np.empty((len(which), 0), dtype=np.int64), np.empty((len(which), 0)))
    indices, distances = shard.search.nearest(shard.points[which], k, which)
    return Lists(shard.codes[indices], distances)


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
    if not boxes.n_points[other] or not len(points):
        go = np.empty(0, dtype=np.int64)
    else:
        go = np.flatnonzero(boxes.gap(shard.plan.space, points, other) <= reach)
    return Visitors(go, points[go], reach[go])


def receive(shard: Shard, guests: Visitors, k: int) -> Found:
    """What the rows that visit a shard find there."""
    k = min(k, shard.n_points)
    if not len(guests.row) or k < 1:
        none = np.empty(0, dtype=np.int64)
        return Found(none, none, none, np.empty(0))
    indices, distances = shard.search.nearest(guests.points, k)
    near = distances <= guests.reach[:, None] * (1.0 + MARGIN)
    return Found(guests.row, near.sum(axis=1), shard.codes[indices[near]], distances[near])


def merge(lists: Lists, found: Sequence[Found], k: int) -> Lists:
    """The k nearest of what rows found at home and elsewhere; every row has at least k entries."""
    n, at_home = lists.codes.shape
    met = [f for f in found if len(f.codes)]
    none = [np.empty(0, dtype=np.int64)]
    again = np.unique(np.concatenate(none + [f.row[f.length > 0] for f in met]))
    codes, distances = np.empty((n, k), dtype=np.int64), np.empty((n, k))
    same = np.setdiff1d(np.arange(n), again)
    if len(same):
        codes[same], distances[same] = lists.codes[same, :k], lists.distances[same, :k]
    if len(again):
        row = np.concatenate(
            [
                np.repeat(np.arange(len(again)), at_home),
                *(np.repeat(np.searchsorted(again, f.row), f.length) for f in met),
            ]
        )
        code = np.concatenate([lists.codes[again].ravel(), *(f.codes for f in met)])
        distance = np.concatenate([lists.distances[again].ravel(), *(f.distances for f in met)])
        order = np.argsort(row, kind="stable")
        wide, value = in_order(*in_rows(row[order], code[order], distance[order]))
        codes[again], distances[again] = wide[:, :k], value[:, :k]
    return Lists(codes, distances)


def make_graph(lists: Lists, k: np.ndarray) -> ShardGraph:
    """Merged lists in cells of the candidates `k` (n_k,)."""
    return ShardGraph(k, _in_cells(lists.codes, k), lists.distances[:, k - 1])


def _in_cells(codes: np.ndarray, k: np.ndarray) -> np.ndarray:
    """As `kfree.neighbors.ordering.in_cells`, for codes: each cell sorted, its last apart."""
    codes = codes.copy()
    cell = cells(k)
    free = np.flatnonzero((np.append(cell[1:], -1) == cell) & (np.arange(len(cell)) >= ORDERED))
    for i in np.unique(cell[free]):
        of_cell = free[cell[free] == i]
        codes[:, of_cell] = np.sort(codes[:, of_cell], axis=1)
    return codes
