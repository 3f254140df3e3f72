"""A k-d tree, for Minkowski spaces of few dimensions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.spatial import cKDTree

from kfree.neighbors.balls import Balls
from kfree.neighbors.metric import Minkowski
from kfree.neighbors.ordering import (
    closer,
    flatten,
    in_order,
    measure_pairs,
    nearest_first,
    nothing,
    slices,
)
from kfree.neighbors.search import Search

# Relative margin that covers the rounding of any order of summation.
MARGIN = 1e-9
# How many rows go through a tree at a time.
BLOCK_ROWS = 1024
# With the tree's own 16 queries take up to 1.15 times as long (2 to 8 dimensions).
LEAF_SIZE = 48


class TreeSearch(Search):
    """Candidates by scipy's tree, in float64; the metric's own distances decide."""

    def __init__(self, space: Minkowski, points: np.ndarray) -> None:
        super().__init__(space, space.prepared(points))
        self._plant()

    def _plant(self) -> None:
        self.tree = cKDTree(self.points, balanced_tree=False, leafsize=LEAF_SIZE)
        self._place = np.empty(len(self.points), dtype=np.int64)
        self._place[self.tree.indices] = np.arange(len(self.points))
        self._latest: tuple[int, Balls] | None = None

    def __getstate__(self) -> dict:
        return {"space": self.space, "points": self.points}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self._plant()

    def _row_blocks(self) -> Iterator[np.ndarray]:
        # Rows that lie together in the tree walk the same branches.
        order = self.tree.indices
        for start in range(0, len(order), BLOCK_ROWS):
            yield order[start : start + BLOCK_ROWS]

    def _query_blocks(self, n_queries: int) -> Iterator[np.ndarray]:
        for start in range(0, n_queries, BLOCK_ROWS):
            yield np.arange(start, min(start + BLOCK_ROWS, n_queries))

    def _nearest(
        self, queries: np.ndarray, k: int, exclude: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        queries = self.space.prepared(queries)
        n = len(self.points)
        # One more than needed shows whether the k-th neighbor is tied with a point left out.
        n_asked = min(n, k + 1 + (exclude is not None))
        reach, indices = self.tree.query(queries, k=np.arange(1, n_asked + 1), p=self.space.p)
        farthest = reach[:, -1]
        if exclude is not None:
            itself = indices == exclude[:, None]
            # Among many duplicates a point may be missing from its own list, and where nothing is
            # excluded the last one goes.
            itself[~itself.any(axis=1), -1] = True
            indices = indices[~itself].reshape(len(queries), n_asked - 1)
        row = np.repeat(np.arange(len(queries)), indices.shape[1])
        distances = measure_pairs(self.space, queries, self.points, row, indices.ravel())
        indices, distances = in_order(indices, distances.reshape(indices.shape))
        if n_asked < n:
            unsure = np.flatnonzero(~(farthest * (1.0 - MARGIN) > distances[:, k - 1]))
            if len(unsure):
                own = None if exclude is None else exclude[unsure]
                indices[unsure, :k], distances[unsure, :k] = self._within(
                    queries[unsure], distances[unsure, k - 1], k, own
                )
        return indices[:, :k], distances[:, :k]

    def _within(
        self, queries: np.ndarray, radii: np.ndarray, k: int, exclude: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest out of all points up to a radius: settles ties at the border."""
        reach = radii * (1.0 + MARGIN) + np.finfo(float).tiny
        counts = self.tree.query_ball_point(queries, reach, p=self.space.p, return_length=True)
        indices = np.empty((len(queries), k), dtype=np.int64)
        distances = np.empty((len(queries), k))
        for part in slices(counts):
            row, point = flatten(
                self.tree.query_ball_point(
                    queries[part], reach[part], p=self.space.p, return_sorted=False
                )
            )
            if exclude is not None:
                others = point != exclude[part][row]
                row, point = row[others], point[others]
            distance = measure_pairs(self.space, queries[part], self.points, row, point)
            indices[part], distances[part] = nearest_first(row, point, distance, k)
        return indices, distances

    def _arrive(
        self, queries: np.ndarray, k: np.ndarray, radii: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        queries = self.space.prepared(queries)
        indices, distances = self._nearest(queries, int(k[-1]), None)
        if radii is None:
            return indices, *nothing()
        # Queries whose nearest points lie together lie together.
        order = np.argsort(self._place[indices[:, 0]])
        last = distances[:, -1]
        row, point = self._balls(int(k[-1]), radii[:, -1]).around(queries[order], last[order])
        row = order[row]
        distance = measure_pairs(self.space, queries, self.points, row, point)
        # Whoever is nearer than the last of the nearest is one of them, ties apart.
        others = np.flatnonzero(distance >= last[row] * (1.0 - MARGIN))
        others = others[(indices[row[others]] != point[others, None]).all(axis=1)]
        row = np.concatenate([np.repeat(np.arange(len(queries)), indices.shape[1]), row[others]])
        point = np.concatenate([indices.ravel(), point[others]])
        distance = np.concatenate([distances.ravel(), distance[others]])
        return indices, *closer(row, point, distance, radii)

    def _balls(self, k: int, radii: np.ndarray) -> Balls:
        """The balls that reach to the k-th neighbors; kept, for new points come again and again."""
        latest = self._latest
        if latest is None or latest[0] != k:
            latest = k, Balls(self.space, self.points, radii, self.tree.indices)
            self._latest = latest
        return latest[1]
