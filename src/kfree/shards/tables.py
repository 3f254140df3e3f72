"""Neighborhoods that cross shards: who has a row as a neighbor, and what others need to know.

A row's neighbors may be in any shard, and so may the points that have it as theirs. The latter are
told to the row's shard (`outgoing`, `make_incoming`). Whoever needs to know what is around a point
asks the point's shard to describe it: labels, not rows, travel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kfree.neighbors.flat import expand
from kfree.neighbors.graph import NEVER, cells
from kfree.neighbors.structures import STRUCTURES, Neighborhoods, nearest_lists
from kfree.shards.lists import ShardGraph
from kfree.shards.rows import Plan, Shard, label_of, shard_of


@dataclass(frozen=True)
class Edges:
    """Rows of one shard that are neighbors of rows of another."""

    target: np.ndarray  # (n_edges,) codes: who is the neighbor,
    source: np.ndarray  # (n_edges,) codes: of whom,
    cell: np.ndarray  # (n_edges,) from which candidate on


@dataclass(frozen=True)
class ShardTable:
    """Who belongs to whose neighborhood in a shard, by codes, ordered by row and cell."""

    indptr: np.ndarray  # (n + 1,)
    codes: np.ndarray  # (n_edges,)
    cell: np.ndarray  # (n_edges,)


@dataclass(frozen=True)
class Described:
    """Points of a shard as others need to know them."""

    codes: np.ndarray  # (n,) rising
    labels: np.ndarray  # (n, k[-1]) of their nearest neighbors, where these are all that counts;
    sides: Neighborhoods | None  # else their neighborhoods, with labels in place of points
    last: np.ndarray  # (n, n_k) codes of the K-th neighbors; (n, 0) where nobody needs them
    mutual: np.ndarray  # (n, n_k) cell of the point in the list of its K-th neighbor; or (n, 0)

    def table(self, k: np.ndarray) -> Neighborhoods:
        """Their neighborhoods for the candidates `k`, with labels in place of points."""
        return nearest_lists(k, self.labels) if self.sides is None else self.sides


def outgoing(shard: Shard, graph: ShardGraph) -> list[Edges]:
    """The edges that go out from a shard's rows, for the shards of their targets."""
    n, k_max = graph.codes.shape
    target, source = graph.codes.ravel(), np.repeat(shard.codes, k_max)
    cell = np.tile(cells(graph.k), n)
    to = shard_of(target, shard.plan)
    chosen = [np.flatnonzero(to == s) for s in range(shard.plan.n_shards)]
    return [Edges(target[edge], source[edge], cell[edge]) for edge in chosen]


def make_incoming(shard: Shard, edges: Sequence[Edges]) -> ShardTable:
    """For each row of a shard the points, in any shard, that have it as a neighbor."""
    target, source, cell = (
        np.concatenate([getattr(part, name) for part in edges])
        for name in ("target", "source", "cell")
    )
    return _by_row(shard, np.searchsorted(shard.codes, target), source, cell)


def both_sides(shard: Shard, graph: ShardGraph, incoming: ShardTable, structure: str) -> ShardTable:
    """Neighbors, and the points that have a row as a neighbor, as often as the structure says."""
    n, k_max = graph.codes.shape
    row = np.concatenate([np.repeat(np.arange(n), k_max), _owner(incoming)])
    codes = np.concatenate([graph.codes.ravel(), incoming.codes])
    cell = np.concatenate([np.tile(cells(graph.k), n), incoming.cell])
    counted = STRUCTURES[structure]
    if counted.needs_both:
        # Each pair is there once: from the smaller of its two cells on, or from the larger.
        order = np.lexsort((cell, codes, row))
        row, codes, cell = row[order], codes[order], cell[order]
        again = (row[1:] == row[:-1]) & (codes[1:] == codes[:-1])
        kept = np.append(True, ~again) if counted.forward else np.append(False, again)
        kept = kept[: len(row)]
        row, codes, cell = row[kept], codes[kept], cell[kept]
    return _by_row(shard, row, codes, cell)


def label_table(
    plan: Plan, graph: ShardGraph, table: ShardTable | None, structure: str
) -> Neighborhoods:
    """The neighborhoods of a shard's rows, with labels in place of points."""
    small = np.min_scalar_type(len(plan.classes))
    if table is None:
        return nearest_lists(graph.k, label_of(graph.codes, plan).astype(small))
    by_size = STRUCTURES[structure].by_size
    labels = label_of(table.codes, plan).astype(small)
    return Neighborhoods(graph.k, table.indptr, labels, table.cell, by_size, nearest=False)


def describe(
    shard: Shard,
    graph: ShardGraph,
    table: ShardTable | None,
    incoming: ShardTable | None,
    wanted: np.ndarray,
    structure: str,
    with_last: bool,
) -> Described:
    """The points of this shard among the `wanted` codes (n,), rising."""
    wanted = wanted[shard_of(wanted, shard.plan) == shard.number]
    points = np.searchsorted(shard.codes, wanted)
    some = ShardGraph(graph.k, graph.codes[points], graph.radii[points])
    none = np.empty((len(points), 0), dtype=np.int64)
    if table is None:
        around = label_table(shard.plan, some, None, structure)
        labels = around.neighbors.reshape(len(points), some.codes.shape[1])
        return Described(wanted, labels, None, none, none)
    around = label_table(shard.plan, some, _take(table, points), structure)
    if not with_last:
        return Described(wanted, none, around, none, none)
    last = some.codes[:, graph.k - 1]
    if not STRUCTURES[structure].needs_both or incoming is None:
        return Described(wanted, none, around, last, none)
    # Where the K-th neighbor has the point as a neighbor too, an edge comes in from it.
    key, cell = _keys(incoming, shard.plan), incoming.cell
    order = np.argsort(key)
    key, cell = key[order], cell[order]
    asked = _key(points[:, None], last, shard.plan)
    at = np.minimum(np.searchsorted(key, asked), max(0, len(key) - 1))
    there = key[at] == asked if len(key) else np.zeros(asked.shape, dtype=bool)
    mutual = np.where(there, cell[at] if len(key) else NEVER, NEVER)
    return Described(wanted, none, around, last, mutual)


def join_tables(
    tables: Sequence[Neighborhoods], shift: int, n_empty: int, k: np.ndarray
) -> Neighborhoods:
    """Tables one after the other, `shift` added to what they list, and rows of nobody after them.

    Where every list is the nearest neighbors, these rows list the first label over and over.
    """
    first = tables[0] if tables else nearest_lists(k, np.empty((0, int(k[-1])), dtype=np.int64))
    if first.nearest:
        k_max = int(first.k[-1])
        lists = [table.neighbors.reshape(-1, k_max) for table in tables]
        nobody = np.zeros((n_empty, k_max), dtype=np.int64)
        return nearest_lists(first.k, np.concatenate([*lists, nobody]).astype(np.int64) + shift)
    length = [np.diff(table.indptr) for table in tables]
    indptr = np.cumsum(np.concatenate([[0], *length, np.zeros(n_empty, dtype=np.int64)]))
    return Neighborhoods(
        first.k,
        indptr,
        np.concatenate([table.neighbors for table in tables]).astype(np.int64) + shift,
        np.concatenate([table.cell for table in tables]),
        first.by_size,
        nearest=False,
    )


def _take(table: ShardTable, points: np.ndarray) -> ShardTable:
    """The neighborhoods of some of the points."""
    owner, edge = expand(table.indptr, points)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(points)))])
    return ShardTable(indptr, table.codes[edge], table.cell[edge])


def _owner(table: ShardTable) -> np.ndarray:
    return np.repeat(np.arange(len(table.indptr) - 1), np.diff(table.indptr))


def _key(row: np.ndarray, codes: np.ndarray, plan: Plan) -> np.ndarray:
    n_codes = np.int64(plan.n_points) * plan.n_shards * len(plan.classes)
    return row * n_codes + codes


def _keys(table: ShardTable, plan: Plan) -> np.ndarray:
    return _key(_owner(table), table.codes, plan)


def _by_row(shard: Shard, row: np.ndarray, codes: np.ndarray, cell: np.ndarray) -> ShardTable:
    order = np.lexsort((codes, cell, row))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=shard.n_points))])
    return ShardTable(indptr, codes[order], cell[order])
