"""Exact nearest neighbors with faiss: flat search in float32, put right in float64.

faiss compares points in float32, so its answer is taken as a proposal. A bound on its error tells
for each row whether a point that it left out could belong to the nearest after all. Where it
could, faiss is asked for more points, and where float32 cannot tell, float64 does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from kfree.neighbors.brute import BruteSearch
from kfree.neighbors.metric import Minkowski
from kfree.neighbors.ordering import closer, in_order, measure_pairs, nothing
from kfree.neighbors.search import Search

# Relative margin that covers the rounding of any order of summation, and how many candidates
# beyond k are asked for.
MARGIN = 1e-9
SPARE = 4

# How many rows are given to faiss at a time, and how often it is asked for more points, with how
# many times as many each time.
BLOCK_ROWS = 1024
ROUNDS = 3
MORE = 4
# A new point so many times as far out (squared) as the corners of the cube that holds the training
# points goes to float64 directly: its rounding errors would drown those of others.
FAR = 4.0


class FaissSearch(Search):
    """Flat search in float32, for Euclidean spaces. The answers are those of `BruteSearch`."""

    def __init__(self, space: Minkowski, points: np.ndarray) -> None:
        points = space.prepared(points)
        super().__init__(space, points)
        # Near the origin float32 loses fewest digits, and between -1 and 1 nothing overflows.
        self.center = points.mean(axis=0)
        largest = np.abs(points - self.center).max()
        self.scale = 1.0 / largest if largest > np.finfo(float).tiny else 1.0
        self._fill()

    def _fill(self) -> None:
        self.small, self.squares, _ = self._rounded(self.points)
        self.index = _flat(self.small)

    def __getstate__(self) -> dict:
        kept = ("space", "points", "center", "scale")
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self._fill()

    @cached_property
    def exact(self) -> BruteSearch:
        """Whoever answers where float32 cannot tell points apart."""
        return BruteSearch(self.space, self.points)

    def _rounded(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Centered and scaled rows in float32, their squared norms, and which are far out."""
        scaled = (rows - self.center) * self.scale
        squares = np.einsum("ij,ij->i", scaled, scaled)
        far = squares > FAR * rows.shape[1]  # training points are in the unit cube
        scaled[far] = 0.0
        return scaled.astype(np.float32), squares, far

    def _error(self, squares: np.ndarray, largest: float) -> np.ndarray:
        """How far off a squared distance in float32 may be: (n_rows,).

        Rounding the coordinates, two norms and a product of d terms in any order, and their sum
        add up to less than (2 d + 16) half units of float32, relative to |x|^2 + |y|^2.
        """
        n_terms, single = self.points.shape[1] + 16, np.finfo(np.float32)
        return n_terms * (float(single.eps) * (squares + largest) + float(single.tiny))

    def _row_blocks(self) -> Iterator[np.ndarray]:
        yield from self._query_blocks(len(self.points))

    def _query_blocks(self, n_queries: int) -> Iterator[np.ndarray]:
        for start in range(0, n_queries, BLOCK_ROWS):
            yield np.arange(start, min(start + BLOCK_ROWS, n_queries))

    def _nearest(
        self, queries: np.ndarray, k: int, exclude: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        queries = self.space.prepared(queries)
        small, squares, far = self._rounded(queries)
        error = self._error(squares, self.squares.max())
        indices = np.empty((len(queries), k), dtype=np.int64)
        distances = np.empty((len(queries), k))
        left = np.flatnonzero(~far)
        n_asked = k + SPARE
        for _ in range(ROUNDS):
            if not len(left):
                break
            own = None if exclude is None else exclude[left]
            near, away, sure = self._attempt(
                queries[left], small[left], error[left], k, own, n_asked
            )
            indices[left[sure]], distances[left[sure]] = near[sure], away[sure]
            left = left[~sure]
            n_asked *= MORE
        for part in self._exact_blocks(np.concatenate([left, np.flatnonzero(far)])):
            own = None if exclude is None else exclude[part]
            indices[part], distances[part] = self.exact._nearest(queries[part], k, own)
        return indices, distances

    def _exact_blocks(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        if len(rows):
            for block in self.exact._query_blocks(len(rows)):
                yield rows[block]

    def _attempt(
        self,
        queries: np.ndarray,
        small: np.ndarray,
        error: np.ndarray,
        k: int,
        exclude: np.ndarray | None,
        n_asked: int,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The k nearest of faiss's n_asked, and of which rows that is certain."""
        n = len(self.points)
        n_asked = min(n_asked + (exclude is not None), n)
        proposed, indices = _search(self.index, small, n_asked)
        border = proposed[:, -1].astype(np.float64)
        if exclude is not None:
            itself = indices == exclude[:, None]
            # Among many duplicates a point may be missing from its own list.
            itself[~itself.any(axis=1), -1] = True
            indices = indices[~itself].reshape(len(queries), n_asked - 1)
        row = np.repeat(np.arange(len(queries)), indices.shape[1])
        flat = measure_pairs(self.space, queries, self.points, row, indices.ravel())
        indices, distances = in_order(indices, flat.reshape(indices.shape))
        indices, distances = indices[:, :k], distances[:, :k]
        # Points left out are at the border or beyond it, up to rounding.
        last = (self.scale * distances[:, -1]) ** 2 * (1.0 + MARGIN)
        sure = (border - error > last) | (n_asked == n)
        return indices, distances, sure

    def _arrive(
        self, queries: np.ndarray, k: np.ndarray, radii: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        indices, _ = self._nearest(queries, int(k[-1]), None)
        if radii is None:
            return indices, *nothing()
        queries = self.space.prepared(queries)
        row, point = self._within(queries, int(k[-1]), radii[:, -1])
        distance = measure_pairs(self.space, queries, self.points, row, point)
        return indices, *closer(row, point, distance, radii)

    def _within(
        self, queries: np.ndarray, k: int, radii: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pairs (query, point) among which are all that lie within the point's radius.

        The roles are swapped: each training point looks for the new points nearest to it, and for
        more of them as long as the last may still be within its radius.
        """
        small, squares, far = self._rounded(queries)
        pairs = [nothing()[:2]]
        for part in self._exact_blocks(np.flatnonzero(far)):
            _, row, point, _ = self.exact._arrive(queries[part], np.array([k]), radii[:, None])
            pairs.append((part[row], point))
        near = np.flatnonzero(~far)
        left = np.arange(len(self.points) if len(near) else 0)
        index = _flat(small[near])
        reach = (self.scale * radii) ** 2 * (1.0 + MARGIN)
        reach += self._error(self.squares, squares[near].max(initial=0.0))
        n_asked = min(2 + 2 * k * len(near) // len(self.points), len(near))
        while len(left):
            more = []
            for start in range(0, len(left), BLOCK_ROWS):
                point = left[start : start + BLOCK_ROWS]
                proposed, row = _search(index, self.small[point], n_asked)
                inside = proposed <= reach[point, None]
                open_ended = inside[:, -1] & (n_asked < len(near))
                inside[open_ended] = False
                which, place = np.nonzero(inside)
                pairs.append((near[row[which, place]], point[which]))
                more.append(point[open_ended])
            left = np.concatenate(more)
            n_asked = min(MORE * n_asked, len(near))
        row, point = (np.concatenate(part) for part in zip(*pairs, strict=True))
        return row, point


def _flat(small: np.ndarray) -> Any:
    import faiss

    index = faiss.IndexFlatL2(small.shape[1])
    index.add(small)
    return index


def _search(index: Any, small: np.ndarray, n_asked: int) -> tuple[np.ndarray, np.ndarray]:
    """Squared distances in float32 and indices of the nearest, as faiss sees them."""
    with _one_thread():
        return index.search(np.ascontiguousarray(small), n_asked)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Blocks of rows are shared among threads already, so faiss itself shall not add any."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
