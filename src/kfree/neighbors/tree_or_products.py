"""A k-d tree where few neighbors are wanted, products where many are: few Euclidean dimensions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kfree.neighbors.brute import BruteSearch
from kfree.neighbors.metric import Minkowski
from kfree.neighbors.search import Search, points_for_a_tree
from kfree.neighbors.tree import TreeSearch

# A tree takes longer with each neighbor, products hardly do. They overtake it at about 37 neighbors
# among 100,000 points in 8 dimensions, 100 and 230 among 20,000 and 100,000 in 6, 250 and 600 in 4:
# about where k is this times the root of how many points there are for each that a tree needs to
# pay. New points among 20,000 in 5 dimensions, k = 1,024: 2.4 ms each by a tree, 0.5 by products.
MOST_NEIGHBORS = 48


class TreeOrProducts(Search):
    """Asks one of two searches, which give the same answers."""

    def __init__(self, space: Minkowski, points: np.ndarray) -> None:
        self._tree = TreeSearch(space, points)
        super().__init__(space, self._tree.points)
        self._products = BruteSearch(space, self.points)
        n_points, n_features = self.points.shape
        self._most = MOST_NEIGHBORS * np.sqrt(n_points / points_for_a_tree(n_features))

    def _row_blocks(self) -> Iterator[np.ndarray]:
        return self._tree._row_blocks()

    def _query_blocks(self, n_queries: int) -> Iterator[np.ndarray]:
        return self._tree._query_blocks(n_queries)

    def _for(self, k: int) -> Search:
        return self._products if k > self._most else self._tree

    def _nearest(
        self, queries: np.ndarray, k: int, exclude: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._for(k)._nearest(queries, k, exclude)

    def _nearest_in_cells(
        self, queries: np.ndarray, k: np.ndarray, exclude: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._for(int(k[-1]))._nearest_in_cells(queries, k, exclude)

    def _arrive(
        self, queries: np.ndarray, k: np.ndarray, radii: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self._for(int(k[-1]))._arrive(queries, k, radii)
