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
from scipy import sparse

from kfree.neighbors.graph import NeighborGraph
from kfree.neighbors.metric import Minkowski, Space
from kfree.neighbors.ordering import in_cells, measure_pairs
from kfree.neighbors.threads import run

ALGORITHMS = ("auto", "kd_tree", "brute", "faiss")


@dataclass(frozen=True)
class Arrivals:
    """Where new points stand among the training points.

    `forward` are the nearest training points of each new point. The reverse triple lists, ordered
    by new point and then training point, the training points that the new point comes near to: it
    is one of their K nearest from the candidate `reverse_cell` on.
    """

    forward: np.ndarray  # (n_new, k[-1]), as all of them int32
    reverse_row: np.ndarray  # (n_pairs,) which new point
    reverse_point: np.ndarray  # (n_pairs,) which training point
    reverse_cell: np.ndarray  # (n_pairs,)

    def take(self, rows: np.ndarray) -> Arrivals:
        """The arrivals of some of the new points, given by increasing index."""
        position = np.full(len(self.forward), -1, dtype=np.int32)
        position[rows] = np.arange(len(rows))
        ends = np.array([rows[0], rows[-1] + 1], dtype=np.int32)  # or all rows would be converted
        first, last = np.searchsorted(self.reverse_row, ends)
        span = position[self.reverse_row[first:last]]
        kept = span >= 0
        return Arrivals(
            self.forward[rows],
            span[kept],
            self.reverse_point[first:last][kept],
            self.reverse_cell[first:last][kept],
        )


class Search(ABC):
    """What all searches share; `points` are the training points as the space prepared them."""

    def __init__(self, space: Any, points: Any) -> None:
        self.space = space
        self.points = points

    @property
    def n_points(self) -> int:
        return self.points.shape[0]

    @property
    def most_neighbors(self) -> int:
        """How many neighbors can be asked for."""
        return self.n_points - 1

    def graph(
        self, k: np.ndarray, n_jobs: int | None = None, rows: np.ndarray | None = None
    ) -> NeighborGraph:
        """The nearest others of the training points, for the candidates `k` (n_k,), rising.

        Of all of them, or of some `rows`.
        """
        n = self.n_points if rows is None else len(rows)
        indices = np.empty((n, int(k[-1])), dtype=np.int32)
        radii = np.empty((n, len(k)))
        which = np.arange(n) if rows is None else rows

        def fill(block: np.ndarray) -> None:
            of = which[block]
            indices[block], radii[block] = self._nearest_in_cells(self.points[of], k, of)

        run(fill, self._row_blocks() if rows is None else self._query_blocks(n), n_jobs)
        return NeighborGraph(k, indices, radii)

    def nearest(
        self, queries: Any, k: int, exclude: np.ndarray | None = None, n_jobs: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Indices and distances of the k nearest points of each query, nearest first: (n, k).

        Parameters
        ----------
        queries : rows as the space prepared them
        exclude : (n,) a training point for each query that is left out, or -1
        """

        def find(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return self._nearest(queries[rows], k, None if exclude is None else exclude[rows])

        found = run(find, self._query_blocks(queries.shape[0]), n_jobs)
        if not found:
            return np.empty((0, k), dtype=np.int64), np.empty((0, k))
        indices, distances = (np.concatenate(part) for part in zip(*found, strict=True))
        return indices, distances

    def arrivals(
        self, queries: Any, k: np.ndarray, radii: np.ndarray | None, n_jobs: int | None = None
    ) -> Arrivals:
        """Where `queries` stand, for the candidates `k` (n_k,).

        `radii` (n_points, n_k) are the distances of the training points' own K-th neighbors;
        without them no reverse neighbors are sought.
        """

        def arrive(rows: np.ndarray) -> Arrivals:
            found = self._arrive(queries[rows], k, radii)
            forward, row, point, cell = (part.astype(np.int32) for part in found)  # they are long
            return Arrivals(forward, np.int32(rows[0]) + row, point, cell)

        found = run(arrive, self._query_blocks(queries.shape[0]), n_jobs)
        names = [field.name for field in fields(Arrivals)]
        return Arrivals(*(np.concatenate([getattr(f, name) for f in found]) for name in names))

    def between(self, queries: Any, row: np.ndarray, point: np.ndarray) -> np.ndarray:
        """The distances of the pairs (queries[row], points[point])."""
        return measure_pairs(self.space, queries, self.points, row, point)

    def _nearest_in_cells(
        self, queries: Any, k: np.ndarray, exclude: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Lists in cells of the candidates `k`, and the distances of the K-th."""
        indices, distances = self._nearest(queries, int(k[-1]), exclude)
        return in_cells(indices, k), distances[:, k - 1]

    @abstractmethod
    def _nearest(
        self, queries: Any, k: int, exclude: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Indices and distances of the k nearest points, leaving out one point for each query."""

    @abstractmethod
    def _arrive(
        self, queries: Any, k: np.ndarray, radii: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The k[-1] nearest points, then (query, point, cell) of all pairs within `radii`."""

    @abstractmethod
    def _row_blocks(self) -> Iterator[np.ndarray]:
        """The training points in the order in which they are best searched."""

    @abstractmethod
    def _query_blocks(self, n_queries: int) -> Iterator[np.ndarray]:
        """New points by blocks of bounded memory."""


def make_search(space: Space, points: Any, algorithm: str) -> Search:
    """The search that `algorithm` names, or for "auto" the one that suits the points."""
    from kfree.neighbors.brute import BruteSearch
    from kfree.neighbors.given_graph import GivenGraph, NeighborLists
    from kfree.neighbors.tree import TreeSearch
    from kfree.neighbors.tree_or_products import TreeOrProducts

    if isinstance(points, NeighborLists):
        return GivenGraph(space, points)
    if algorithm == "auto" and _tree_pays(space, points):
        assert isinstance(space, Minkowski)
        return TreeOrProducts(space, points) if space.p == 2.0 else TreeSearch(space, points)
    if algorithm == "kd_tree":
        assert isinstance(space, Minkowski)
        return TreeSearch(space, points)
    if algorithm == "faiss":
        from kfree.neighbors.faiss_search import FaissSearch

        assert isinstance(space, Minkowski)
        return FaissSearch(space, points)
    return BruteSearch(space, points)


def _tree_pays(space: Space, points: Any) -> bool:
    """Whether a tree beats all pairs, by measurement (docs/performance.md).

    Each further dimension has a tree look at more of the points, so it takes more of them until it
    pays. Without a matrix product, pairs cost more, and trees pay sooner.
    """
    if not isinstance(space, Minkowski) or sparse.issparse(points):
        return False
    n_points, n_features = points.shape
    if n_features > 15:
        return False
    if space.p != 2.0:
        return space.p >= 1.0 and n_points > 500
    return n_points > points_for_a_tree(n_features)


def points_for_a_tree(n_features: int) -> float:
    """From how many points on a tree beats products, for a few dozen neighbors."""
    return 500 * 20 ** max(0.0, (n_features - 3) / 3)
