"""Exact nearest neighbors with the tie rule, forward and reverse.

The tie rule: of two training points at the same distance the one with the lower index is nearer;
a new point is farther than every training point at its distance; a point is never its own
neighbor, by index and not by a distance of zero.

A search proposes candidates quickly (a tree, or one matrix product for a block of rows) with a
margin for rounding, and the metric's own distances decide among them, so the answer does not
depend on the search.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from kfree.neighbors.balls import Balls
from kfree.neighbors.candidates import (
    closer,
    flatten,
    in_order,
    measure_pairs,
    nearest_first,
    nothing,
    ranks_ahead,
    slices,
)
from kfree.neighbors.graph import NeighborGraph
from kfree.neighbors.metric import Minkowski, Space
from kfree.neighbors.products import Products, Reach, rounding
from kfree.neighbors.threads import run

ALGORITHMS = ("auto", "kd_tree", "brute", "faiss")
# Relative margin that covers the rounding of any order of summation.
MARGIN = 1e-9
# How many candidates beyond k a block's search takes along.
SPARE = 4
# How many distances one block of a brute-force search may hold (8 MiB in single precision), and how
# many rows at most.
BLOCK_DISTANCES = 1 << 21
LARGEST_BLOCK = 1024
# How many rows go through a tree at a time.
BLOCK_ROWS = 1024


@dataclass(frozen=True)
class Arrivals:
    """Where new points stand among the training points.

    `forward` are the nearest training points of each new point. The reverse triple lists, ordered
    by new point and then training point, the training points that the new point comes near to:
    `rank` training neighbors of that point stay ahead of the new point, so that the new point
    belongs to its K nearest when rank < K.
    """

    forward: np.ndarray  # (n_new, k)
    forward_distances: np.ndarray  # (n_new, k)
    reverse_row: np.ndarray  # (n_pairs,) which new point
    reverse_point: np.ndarray  # (n_pairs,) which training point
    reverse_rank: np.ndarray  # (n_pairs,)
    reverse_distances: np.ndarray  # (n_pairs,)

    def take(self, rows: np.ndarray) -> Arrivals:
        """The arrivals of some of the new points, given by increasing index."""
        position = np.full(len(self.forward), -1)
        position[rows] = np.arange(len(rows))
        first, last = np.searchsorted(self.reverse_row, [rows[0], rows[-1] + 1])
        span = position[self.reverse_row[first:last]]
        kept = span >= 0
        return Arrivals(
            self.forward[rows],
            self.forward_distances[rows],
            span[kept],
            self.reverse_point[first:last][kept],
            self.reverse_rank[first:last][kept],
            self.reverse_distances[first:last][kept],
        )


class Search(ABC):
    """What both searches share; `points` are the training points as the space prepared them."""

    def __init__(self, space: Any, points: Any) -> None:
        self.space = space
        self.points = points

    @property
    def most_neighbors(self) -> int:
        """How many neighbors can be asked for."""
        return len(self.points) - 1

    def graph(self, k: int, n_jobs: int | None) -> NeighborGraph:
        """The `k` nearest others of every training point."""
        n = len(self.points)
        indices = np.empty((n, k), dtype=np.int32)
        distances = np.empty((n, k))

        def fill(rows: np.ndarray) -> None:
            indices[rows], distances[rows] = self._nearest(self.points[rows], k, rows)

        run(fill, self._row_blocks(), n_jobs)
        return NeighborGraph(indices, distances)

    def nearest_of(self, rows: np.ndarray, k: int, n_jobs: int | None) -> np.ndarray:
        """Indices of the `k` nearest others of some training points: (n_rows, k)."""

        def find(block: np.ndarray) -> np.ndarray:
            return self._nearest(self.points[rows[block]], k, rows[block])[0]

        return np.concatenate(run(find, self._query_blocks(len(rows)), n_jobs))

    def arrivals(
        self, queries: np.ndarray, k: int, table: np.ndarray | None, n_jobs: int | None = None
    ) -> Arrivals:
        """Where `queries` stand; `table` (n_points, k) are the training points' own distances.

        Without a table no reverse neighbors are sought.
        """
        blocks = list(self._query_blocks(len(queries)))
        radii = None if table is None else table[:, k - 1]

        def arrive(rows: np.ndarray) -> Arrivals:
            nearest, distances, row, point, distance = self._arrive(queries[rows], k, radii)
            rank = point if table is None else ranks_ahead(table[:, :k], point, distance)
            return Arrivals(nearest, distances, rows[0] + row, point, rank, distance)

        found = run(arrive, blocks, n_jobs)
        names = [field.name for field in fields(Arrivals)]
        return Arrivals(*(np.concatenate([getattr(f, name) for f in found]) for name in names))

    @abstractmethod
    def _nearest(
        self, queries: np.ndarray, k: int, exclude: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Indices and distances of the k nearest points, leaving out one point for each query."""

    @abstractmethod
    def _arrive(
        self, queries: np.ndarray, k: int, radii: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The k nearest points, then (query, point, distance) of all pairs within `radii`."""

    @abstractmethod
    def _row_blocks(self) -> Iterator[np.ndarray]:
        """The training points in the order in which they are best searched."""

    @abstractmethod
    def _query_blocks(self, n_queries: int) -> Iterator[np.ndarray]:
        """New points by blocks of bounded memory."""


class TreeSearch(Search):
    """A k-d tree, for Minkowski spaces of few dimensions."""

    def __init__(self, space: Minkowski, points: np.ndarray) -> None:
        super().__init__(space, points)
        self._plant()

    def _plant(self) -> None:
        self.tree = cKDTree(self.points, balanced_tree=False, compact_nodes=False, leafsize=24)
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
        n = len(self.points)
        # One more than needed shows whether the k-th neighbor is tied with a point left out.
        n_asked = min(n, k + 1 + (exclude is not None))
        reach, indices = self.tree.query(queries, k=np.arange(1, n_asked + 1), p=self.space.p)
        farthest = reach[:, -1]
        if exclude is not None:
            itself = indices == exclude[:, None]
            # Among many duplicates a point may be missing from its own list.
            itself[~itself.any(axis=1), -1] = True
            indices = indices[~itself].reshape(len(queries), n_asked - 1)
        distances = self._measure(queries, indices)
        indices, distances = in_order(indices, distances)
        if n_asked < n:
            unsure = np.flatnonzero(farthest * (1.0 - MARGIN) <= distances[:, k - 1])
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
        self, queries: np.ndarray, k: int, radii: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        indices, distances = self._nearest(queries, k, None)
        if radii is None:
            return indices, distances, *nothing()
        # Queries whose nearest points lie together lie together.
        order = np.argsort(self._place[indices[:, 0]])
        last = distances[:, -1]
        row, point = self._balls(k, radii).around(queries[order], last[order])
        row = order[row]
        distance = measure_pairs(self.space, queries, self.points, row, point)
        # Whoever is nearer than the last of the nearest is one of them.
        others = np.flatnonzero(distance >= last[row])
        others = others[(indices[row[others]] != point[others, None]).all(axis=1)]
        row = np.concatenate([np.repeat(np.arange(len(queries)), k), row[others]])
        point = np.concatenate([indices.ravel(), point[others]])
        distance = np.concatenate([distances.ravel(), distance[others]])
        return indices, distances, *closer(row, point, distance, radii)

    def _balls(self, k: int, radii: np.ndarray) -> Balls:
        """The balls that reach to the k-th neighbors; kept, for new points come again and again."""
        latest = self._latest
        if latest is None or latest[0] != k:
            latest = k, Balls(self.space, self.points, radii, self.tree.indices)
            self._latest = latest
        return latest[1]

    def _measure(self, queries: np.ndarray, indices: np.ndarray) -> np.ndarray:
        row = np.repeat(np.arange(len(queries)), indices.shape[1])
        flat = measure_pairs(self.space, queries, self.points, row, indices.ravel())
        return flat.reshape(indices.shape)


class BruteSearch(Search):
    """Blocks of all distances, for any space. One block serves both directions."""

    def __init__(self, space: Space, points: np.ndarray) -> None:
        super().__init__(space, points)
        self.product = isinstance(space, Minkowski) and space.p == 2.0
        if self.product:
            # Near the origin the matrix product loses fewest digits.
            self.center = points.mean(axis=0)
            self.centered = points - self.center
            self.squares = np.einsum("ij,ij->i", self.centered, self.centered)
            self.products = Products(points)
            self._latest: tuple[int, Reach] | None = None

    def _block_rows(self) -> int:
        return min(LARGEST_BLOCK, max(1, BLOCK_DISTANCES // max(1, len(self.points))))

    def _row_blocks(self) -> Iterator[np.ndarray]:
        yield from self._query_blocks(len(self.points))

    def _query_blocks(self, n_queries: int) -> Iterator[np.ndarray]:
        step = self._block_rows()
        for start in range(0, n_queries, step):
            yield np.arange(start, min(start + step, n_queries))

    def _propose(self, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Distances (squared where a product makes them) and how far off each row's may be."""
        if not self.product:
            block = self.space.block(queries, self.points)
            return block, MARGIN * block.max(axis=1, initial=0.0, where=np.isfinite(block))
        centered = queries - self.center
        squares = np.einsum("ij,ij->i", centered, centered)
        block = centered @ self.centered.T
        block *= -2.0
        block += squares[:, None]
        block += self.squares
        return block, rounding(queries.shape[1], squares + self.squares.max(), float)

    def _decide(
        self, queries: np.ndarray, block: np.ndarray, row: np.ndarray, point: np.ndarray
    ) -> np.ndarray:
        """The final distances of some pairs."""
        if isinstance(self.space, Minkowski):
            return measure_pairs(self.space, queries, self.points, row, point)
        return block[row, point]

    def _nearest(
        self, queries: np.ndarray, k: int, exclude: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        quick = self._quickly(queries, k, exclude, None)
        if quick is not None:
            return quick[:2]
        block, error = self._propose(queries)
        return self._nearest_in(queries, block, error, k, exclude)

    def _quickly(
        self,
        queries: np.ndarray,
        k: int,
        exclude: np.ndarray | None,
        radii: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
        """As `_arrive`, by way of single precision, where that is sharp enough."""
        if not self.product:
            return None
        found = self.products.squares(queries)
        if found is None:
            return None
        if exclude is not None:
            found[0][np.arange(len(queries)), exclude] = np.inf
        nearest = self.products.nearest(*found, k)
        if nearest is None:
            return None
        row, point = nearest
        distance = measure_pairs(self.space, queries, self.points, row, point)
        indices, distances = nearest_first(row, point, distance, k)
        if radii is None:
            return indices, distances, *nothing()
        latest = self._latest
        if latest is None or latest[0] != k:
            latest = self._latest = k, self.products.reach(radii)
        pairs = self.products.within(*found, latest[1])
        if pairs is None:
            return None
        row, point = pairs
        distance = measure_pairs(self.space, queries, self.points, row, point)
        return indices, distances, *closer(row, point, distance, radii)

    def _nearest_in(
        self,
        queries: np.ndarray,
        block: np.ndarray,
        error: np.ndarray,
        k: int,
        exclude: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        n_others = block.shape[1] - (exclude is not None)
        if exclude is not None:
            block = block.copy() if block is queries else block
            # Not a number comes after everything, even after points that are infinitely far.
            block[np.arange(len(block)), exclude] = np.nan
        n_asked = min(k + SPARE, n_others)
        indices = np.argpartition(block, n_asked - 1, axis=1)[:, :n_asked]
        border = np.take_along_axis(block, indices[:, -1:], axis=1)[:, 0]
        row = np.repeat(np.arange(len(block)), n_asked)
        flat = self._decide(queries, block, row, indices.ravel())
        indices, distances = in_order(indices, flat.reshape(indices.shape))
        indices, distances = indices[:, :k], distances[:, :k]
        if n_asked < n_others:
            last = distances[:, -1] ** 2 if self.product else distances[:, -1]
            # Points left out are at the border or beyond it, up to rounding.
            unsure = np.flatnonzero(~(border - error > last * (1.0 + MARGIN)))
            if len(unsure):
                reach = last[unsure] * (1.0 + MARGIN) + error[unsure]
                row, point = np.nonzero(block[unsure] <= reach[:, None])
                flat = self._decide(queries, block, unsure[row], point)
                indices[unsure], distances[unsure] = nearest_first(row, point, flat, k)
        return indices, distances

    def _arrive(
        self, queries: np.ndarray, k: int, radii: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        quick = self._quickly(queries, k, None, radii)
        if quick is not None:
            return quick
        block, error = self._propose(queries)
        indices, distances = self._nearest_in(queries, block, error, k, None)
        if radii is None:
            return indices, distances, *nothing()
        reach = radii * radii if self.product else radii
        row, point = np.nonzero(block <= reach * (1.0 + MARGIN) + error[:, None])
        distance = self._decide(queries, block, row, point)
        return indices, distances, *closer(row, point, distance, radii)


def make_search(space: Space, points: Any, algorithm: str) -> Search:
    """The search that `algorithm` names, or for "auto" the one that suits the points."""
    from kfree.neighbors.given_graph import GivenGraph, NeighborLists

    if isinstance(points, NeighborLists):
        return GivenGraph(space, points)
    if algorithm == "auto":
        n_points, n_features = points.shape
        tree = isinstance(space, Minkowski) and _tree_pays(n_points, n_features, space.p)
        algorithm = "kd_tree" if tree else "brute"
    if algorithm == "kd_tree":
        assert isinstance(space, Minkowski)
        return TreeSearch(space, points)
    if algorithm == "faiss":
        from kfree.neighbors.faiss_search import FaissSearch

        assert isinstance(space, Minkowski)
        return FaissSearch(space, points)
    return BruteSearch(space, points)


def _tree_pays(n_points: int, n_features: int, p: float) -> bool:
    """Whether a tree beats all pairs, by measurement (docs/performance.md).

    Each further dimension has a tree look at more of the points, so it takes more of them until it
    pays. Without a matrix product, pairs cost more, and trees pay sooner.
    """
    if n_features > 15:
        return False
    if p != 2.0:
        return p >= 1.0 and n_points > 500
    return n_points > 500 * 20 ** max(0.0, (n_features - 3) / 3)
