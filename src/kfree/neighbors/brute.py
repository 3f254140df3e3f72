"""All distances, block by block, for any space. One block serves both directions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from kfree.neighbors.metric import Minkowski, Space
from kfree.neighbors.ordering import (
    ORDERED,
    TIE,
    by_row_and_point,
    closer,
    in_cells,
    in_order,
    in_rows,
    measure_pairs,
    n_within,
    nothing,
)
from kfree.neighbors.products import GROUP, ROUGH, make_products
from kfree.neighbors.search import Search

# How many distances one block may hold (8 MiB in single precision), and how many rows at most.
BLOCK_DISTANCES = 1 << 21
LARGEST_BLOCK = 1024
# With fewer points products are made in double precision: they take twice as long, but hardly a
# pair then has to be measured once more, which costs as much as 75 pairs of a product.
SINGLE_POINTS = 1 << 14
# So many candidates for each neighbor call for double precision.
MANY = 4


class BruteSearch(Search):
    """Blocks of all distances, by matrix products where the metric is Euclidean."""

    def __init__(self, space: Space, points: Any) -> None:
        super().__init__(space, points)
        self._product = isinstance(space, Minkowski) and space.p == 2.0
        self._exact: dict[Any, Any] = {}

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_exact": {}}

    def _products(self, kind: Any) -> Any:
        """The points ready for products, which are made when they are first needed."""
        found = self._exact.get(kind)
        if found is None:
            found = self._exact[kind] = make_products(self.space, self.points, kind)
        return found

    def _row_blocks(self) -> Iterator[np.ndarray]:
        yield from self._query_blocks(self.n_points)

    def _query_blocks(self, n_queries: int) -> Iterator[np.ndarray]:
        step = min(LARGEST_BLOCK, max(1, BLOCK_DISTANCES // max(1, self.n_points)))
        for start in range(0, n_queries, step):
            yield np.arange(start, min(start + step, n_queries))

    def _kinds(self) -> tuple:
        """The precisions to try, one after the other."""
        single = self._product and self.n_points >= SINGLE_POINTS
        return (np.float32, np.float64) if single else (np.float64,)

    def _block(
        self, queries: Any, kind: Any, exclude: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Distances, squared where a product makes them, and how far off each row's may be."""
        if not self._product:
            block = self._distances(queries)
            margin = np.zeros(len(block))
        else:
            found = self._products(kind).squares(queries)
            if found is None:
                return None
            block, margin = found
        if exclude is not None:
            row = np.flatnonzero(exclude >= 0)
            # Not a number comes after everything, even after points that are infinitely far.
            block[row, exclude[row]] = np.inf if self._product else np.nan
        return block, margin

    def _distances(self, queries: Any) -> np.ndarray:
        if isinstance(self.space, Minkowski):
            block = self.space.block(self.space.prepared(queries), self.space.prepared(self.points))
            return block
        block = self.space.block(queries, self.points)
        return block.copy() if block is queries else block

    def between(self, queries: Any, row: np.ndarray, point: np.ndarray) -> np.ndarray:
        if isinstance(self.space, Minkowski):
            return super().between(queries, row, point)
        out = np.empty(len(row))
        for block in self._query_blocks(queries.shape[0]):
            chosen = np.flatnonzero((row >= block[0]) & (row <= block[-1]))
            distances = self._distances(queries[block])
            out[chosen] = distances[row[chosen] - block[0], point[chosen]]
        return out

    def _nearest(
        self, queries: Any, k: int, exclude: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._ordered(queries, np.arange(1, k + 1), exclude, None)[:2]

    def _nearest_in_cells(
        self, queries: Any, k: np.ndarray, exclude: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        indices, distances, *_ = self._ordered(queries, k, exclude, None)
        return in_cells(indices, k), distances[:, k - 1]

    def _arrive(
        self, queries: Any, k: np.ndarray, radii: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        indices, _, *pairs = self._ordered(queries, k, None, radii, exact=False)
        return indices, *pairs

    def _ordered(
        self,
        queries: Any,
        k: np.ndarray,
        exclude: np.ndarray | None,
        radii: np.ndarray | None,
        exact: bool = True,
    ) -> tuple:
        """The k[-1] nearest, in order across the candidates `k`; their distances, there `exact`.

        Then (query, point, cell) of all pairs within `radii`.
        """
        for kind in self._kinds():
            last = kind == np.float64
            found = self._block(queries, kind, exclude)
            if found is None:
                continue
            nearest = self._nearest_in(queries, *found, k, last, exact)
            if nearest is None:
                continue
            if radii is None:
                return *nearest, *nothing()
            pairs = self._within(queries, *found, radii, last)
            if pairs is not None:
                return *nearest, *pairs
        raise AssertionError("double precision serves everything")

    def _nearest_in(
        self,
        queries: Any,
        block: np.ndarray,
        margin: np.ndarray,
        k: np.ndarray,
        last: bool,
        exact: bool,
    ) -> tuple[np.ndarray, np.ndarray] | None:
        k_max = int(k[-1])
        proposed = self._propose(block, margin, k_max, last)
        if proposed is None:
            return None
        row, point = proposed
        index, value = in_rows(row, point, block[row, point])
        order = np.argsort(value, axis=1)
        index = np.take_along_axis(index, order, axis=1)
        value = np.take_along_axis(value, order, axis=1)
        if not isinstance(self.space, Minkowski):
            index, value = in_order(index, value)
            return index[:, :k_max], value[:, :k_max]
        if self._product:
            # Only what lies within twice the margin of a border can be on either side of it.
            border = np.union1d(k, np.arange(1, min(ORDERED, k_max) + 1))
            apart = 2.0 * margin + 4.0 * TIE * value[:, k_max - 1]
            near = _near_borders(value, border, apart, exact)
            np.sqrt(np.maximum(value, 0.0, out=value), out=value)
        else:
            near = ~np.isnan(value)
        which, place = np.nonzero(near)
        value[which, place] = measure_pairs(
            self.space, queries, self.points, which, index[which, place]
        )
        index, value = in_order(index, value)
        return index[:, :k_max], value[:, :k_max]

    def _propose(
        self, block: np.ndarray, margin: np.ndarray, k: int, last: bool
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Flat (row, point) that hold the k nearest points of each row, ordered by row."""
        n_rows, n_columns = block.shape
        width = n_columns // GROUP
        grouped = self._product and not sparse.issparse(self.points) and 4 * k < width
        low = block.reshape(n_rows, GROUP, width).min(axis=1) if grouped else block
        bound = np.partition(low, k - 1, axis=1)[:, k - 1].astype(float)
        slack = 2.0 * margin + 1e-9 * np.abs(bound)  # far more than chains of ties reach
        with np.errstate(invalid="ignore"):  # infinitely far
            limit = np.where(np.isinf(bound), bound, bound + slack).astype(block.dtype)
        # Rounded up, for single precision may decide.
        limit = np.nextafter(limit, np.array(np.inf, dtype=block.dtype))
        found = np.flatnonzero(low <= limit[:, None])
        if not last and len(found) > MANY * k * n_rows:
            return None
        row, column = np.divmod(found, low.shape[1])
        if grouped:
            flat = (row * n_columns + column)[:, None] + np.arange(0, n_columns, width)
            hit, member = np.nonzero(block.ravel()[flat] <= limit[row, None])
            row, column = row[hit], column[hit] + width * member
        if n_columns > self.n_points:  # columns that fill up the last group
            real = column < self.n_points
            row, column = row[real], column[real]
        return row, column

    def _within(
        self,
        queries: Any,
        block: np.ndarray,
        margin: np.ndarray,
        radii: np.ndarray,
        last: bool,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """(query, point, cell) of the pairs in which the query is nearer than the K-th neighbor."""
        if not self._product:
            row, point = np.nonzero(block <= radii[:, -1] * (1.0 + 1e-9))
            value = block[row, point]
            if isinstance(self.space, Minkowski):
                value = measure_pairs(self.space, queries, self.points, row, point)
            return closer(row, point, value, radii)
        reach = radii[:, -1] ** 2
        if not last and not margin.max() <= ROUGH * np.median(reach):
            return None
        widest = np.full(block.shape[1], -np.inf, dtype=block.dtype)
        with np.errstate(over="ignore"):
            widest[: self.n_points] = (reach + margin.max()) * (1.0 + 1e-6)
        row, point = np.divmod(np.flatnonzero(block <= widest), block.shape[1])
        # Between two radii, with a margin on both sides, the cell is certain.
        value, off = block[row, point].astype(float), margin[row]
        high = np.sqrt(np.maximum(value + off, 0.0)) * (1.0 + 2.0 * TIE)
        low = np.sqrt(np.maximum(value - off, 0.0))
        cell = n_within(radii, point, low)
        unsure = np.flatnonzero(cell < radii.shape[1])
        following = radii[point[unsure], cell[unsure]]
        unsure = unsure[following <= high[unsure]]
        if len(unsure):
            distance = measure_pairs(self.space, queries, self.points, row[unsure], point[unsure])
            cell[unsure] = n_within(radii, point[unsure], distance * (1.0 + TIE))
        inside = np.flatnonzero(cell < radii.shape[1])
        return by_row_and_point(row[inside], point[inside], cell[inside], self.n_points)


def _near_borders(
    value: np.ndarray, border: np.ndarray, margin: np.ndarray, itself: bool
) -> np.ndarray:
    """Which of sorted values (n_rows, n) lie within a margin of the border-th smallest of a row.

    That one only if another does, unless `itself` is wanted in any case.
    """
    near = np.zeros(value.shape, dtype=bool)
    near[:, border - 1] = True
    if not itself:
        close = np.zeros((len(value), value.shape[1] + 1), dtype=bool)
        close[:, 1:-1] = np.diff(value, axis=1) <= margin[:, None]
        near[:, border - 1] = (close[:, :-1] | close[:, 1:])[:, border - 1]
    for step in (-1, 1):
        row, place = np.nonzero(np.broadcast_to(True, (len(value), len(border))))
        place = border[place] - 1
        edge = value[row, place]
        while len(row):
            place = place + step
            inside = (place >= 0) & (place < value.shape[1])
            row, place, edge = row[inside], place[inside], edge[inside]
            close = np.abs(value[row, place] - edge) <= margin[row]
            row, place, edge = row[close], place[close], edge[close]
            near[row, place] = True
    return near
