"""Neighbors that are given: sparse graphs of distances, as approximate searches make them.

What a list does not hold is not known. A new point's list holds its own nearest training points,
and reverse neighbors are read off from it: the new point enters the neighborhood of a training
point of its list if it is nearer than that point's K-th neighbor. Training points that would take
up the new point but are not in its list are not seen, so the lists should be somewhat longer than
K. With complete lists nothing is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kfree.neighbors.flat import expand
from kfree.neighbors.ordering import closer, nothing
from kfree.neighbors.search import Search

# How many rows are looked at at a time.
BLOCK_ROWS = 8192


@dataclass(frozen=True)
class NeighborLists:
    """For each row some training points and their distances, nearest first, ties by index.

    `indices[indptr[i]:indptr[i + 1]]` are those of row i. Like an array it has rows, which can be
    taken, and as many columns as there are training points.
    """

    indptr: np.ndarray  # (n_rows + 1,)
    indices: np.ndarray
    distances: np.ndarray
    n_points: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self.n_points

    @property
    def lengths(self) -> np.ndarray:
        """How many points each row lists: (n_rows,)."""
        return np.diff(self.indptr)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, rows: Any) -> NeighborLists:
        rows = np.arange(len(self))[rows]
        _, entry = expand(self.indptr, rows)
        indptr = np.concatenate([[0], np.cumsum(self.lengths[rows])])
        return NeighborLists(indptr, self.indices[entry], self.distances[entry], self.n_points)

    def first(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Indices and distances of the k nearest of each row, which lists at least as many."""
        entry = self.indptr[:-1, None] + np.arange(k)
        return self.indices[entry], self.distances[entry]

    def without_itself(self) -> NeighborLists:
        """The lists of training points, none of which is its own neighbor."""
        row = np.repeat(np.arange(len(self)), self.lengths)
        others = np.flatnonzero(self.indices != row)
        lengths = np.bincount(row[others], minlength=len(self))
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        return NeighborLists(indptr, self.indices[others], self.distances[others], self.n_points)


def lists_of(graph: Any) -> NeighborLists:
    """The lists that a matrix in CSR format stores; a stored zero is a distance of zero."""
    row = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    order = np.lexsort((graph.indices, graph.data, row))
    indptr = graph.indptr.astype(np.int64)
    return NeighborLists(
        indptr, graph.indices[order].astype(np.int64), graph.data[order], graph.shape[1]
    )


class GivenGraph(Search):
    """Looks up what is given; `points` are the training points' lists, queries are lists too."""

    points: Any  # NeighborLists

    @property
    def most_neighbors(self) -> int:
        return int(self.points.lengths.min())

    def _row_blocks(self) -> Iterator[np.ndarray]:
        yield from self._query_blocks(len(self.points))

    def _query_blocks(self, n_queries: int) -> Iterator[np.ndarray]:
        for start in range(0, n_queries, BLOCK_ROWS):
            yield np.arange(start, min(start + BLOCK_ROWS, n_queries))

    def between(self, queries: Any, row: np.ndarray, point: np.ndarray) -> np.ndarray:
        owner = np.repeat(np.arange(len(queries)), queries.lengths)
        key = owner * np.int64(queries.n_points) + queries.indices
        order = np.argsort(key)
        wanted = row * np.int64(queries.n_points) + point
        return queries.distances[order[np.searchsorted(key[order], wanted)]]

    def _nearest(
        self, queries: Any, k: int, exclude: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        return queries.first(k)

    def _arrive(
        self, queries: Any, k: np.ndarray, radii: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        indices, _ = queries.first(int(k[-1]))
        if radii is None:
            return indices, *nothing()
        row = np.repeat(np.arange(len(queries)), queries.lengths)
        return indices, *closer(row, queries.indices, queries.distances, radii)
