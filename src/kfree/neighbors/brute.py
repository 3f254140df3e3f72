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

# How many distances are held at a time (8 MiB in single precision).
BLOCK_DISTANCES = 1 << 21
# Of how many rows what came out of them is put in order together: among 100,000 points those are 20
# rows, for which NumPy's calls would take a fifth of the time. Threads share the blocks: there are
# some of them, unless they are very small.
BLOCK_ROWS = 512
LEAST_ROWS, LEAST_BLOCKS = 64, 4
# With more features so many times as many: a product of few rows takes up to twice the time for
# each (100,000 points of 64 or 384 features, 20 rows against 100).
WIDE, LARGER = 32, 4
# With fewer points products are made in double precision: they take twice as long, but hardly a
# pair then has to be measured once more, which costs as much as 75 pairs of a product.
SINGLE_POINTS = 1 << 14
# So many candidates for each neighbor call for double precision.
MANY = 4
# The k-th smallest of the smallest in two to four groups for each neighbor is 1.16 to 1.34 times as
# far as the k-th smallest of all, and found in a fortieth of the time (20,000 points, k = 22 to
# 300); with more groups what is saved afterwards is lost here.
GROUPS = 2
# With so many groups for each neighbor those that hold a neighbor are looked through; with fewer it
# is faster to look at all points (0.2 against 0.4 ms for k = 22, 0.9 against 0.55 for k = 100).
FEW_GROUPS = 32


# Which row, which point, and their distance, squared where a product makes it.
Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]


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
        step = min(BLOCK_ROWS, max(LEAST_ROWS, -(-n_queries // LEAST_BLOCKS)))
        for start in range(0, n_queries, step):
            yield np.arange(start, min(start + step, n_queries))

    def _parts(self, n_queries: int) -> Iterator[slice]:
        """Queries by as many as are compared with all points at a time."""
        most = BLOCK_DISTANCES * (LARGER if self.points.shape[1] > WIDE else 1)
        step = max(1, most // max(1, self.n_points))
        for start in range(0, n_queries, step):
            yield slice(start, min(start + step, n_queries))

    def _kinds(self) -> tuple:
        """The precisions to try, one after the other."""
        single = self._product and self.n_points >= SINGLE_POINTS
        return (np.float32, np.float64) if single else (np.float64,)

    def _block(
        self, queries: Any, kind: Any, exclude: np.ndarray | None, room: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Distances, squared where a product makes them, and how far off each row's may be."""
        if not self._product:
            block = self._distances(queries)
            margin = np.zeros(len(block))
        else:
            found = self._products(kind).squares(queries, room)
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
        for part in self._parts(queries.shape[0]):
            chosen = np.flatnonzero((row >= part.start) & (row < part.stop))
            distances = self._distances(queries[part])
            out[chosen] = distances[row[chosen] - part.start, point[chosen]]
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
            found = self._proposals(queries, kind, int(k[-1]), exclude, radii)
            if found is not None:
                near, inside, margin = found
                nearest = self._nearest_of(queries, near, margin, k, exact)
                pairs = nothing() if radii is None else self._within(queries, inside, margin, radii)
                return *nearest, *pairs
        raise AssertionError("double precision serves everything")

    def _proposals(
        self,
        queries: Any,
        kind: Any,
        k: int,
        exclude: np.ndarray | None,
        radii: np.ndarray | None,
    ) -> tuple[Pairs, Pairs, np.ndarray] | None:
        """Pairs that hold the k nearest points of each row, pairs that hold those within `radii`.

        With their values, ordered by row. And how far off the values of each row may be. None if
        the precision is too low.
        """
        near, inside, margins = [], [], []
        last = kind == np.float64
        parts = list(self._parts(queries.shape[0]))
        room = self._products(kind).room(parts[0].stop) if self._product else None
        for part in parts:
            own = None if exclude is None else exclude[part]
            found = self._block(queries[part], kind, own, room)
            if found is None:
                return None
            block, margin = found
            margins.append(margin)
            place = self._nearest_in(block, margin, k)
            if not last and len(place) > MANY * k * len(block):
                return None
            near.append(self._pairs(block, place, part.start))
            if radii is None:
                continue
            reach = radii[:, -1] * (1.0 + 1e-9)
            if self._product:
                reach **= 2
                if not last and not margin.max() <= ROUGH * np.median(reach):
                    return None
            inside.append(self._pairs(block, _within_reach(block, reach, margin), part.start))
        inside = inside or [nothing()]
        return _joined(near), _joined(inside), np.concatenate(margins)

    def _pairs(self, block: np.ndarray, place: np.ndarray, first: int) -> Pairs:
        """(row, point, value) at some places of a block, the first row of which has a number."""
        row, column = np.divmod(place, block.shape[1])
        if block.shape[1] > self.n_points:  # columns that fill up the last group
            real = column < self.n_points
            row, column, place = row[real], column[real], place[real]
        return first + row, column, block.ravel().take(place)

    def _nearest_in(self, block: np.ndarray, margin: np.ndarray, k: int) -> np.ndarray:
        """Places in a block, rising, among which are the k nearest points of each row."""
        n_rows, n_columns = block.shape
        width = n_columns // GROUP
        grouped = self._product and not sparse.issparse(self.points) and 2 * k <= width
        low = block.reshape(n_rows, GROUP, width).min(axis=1) if grouped else block
        bound = _kth_smallest_or_more(low, k)
        slack = 2.0 * margin + 1e-9 * np.abs(bound)  # far more than chains of ties reach
        with np.errstate(invalid="ignore"):  # infinitely far
            limit = np.where(np.isinf(bound), bound, bound + slack).astype(block.dtype)
        # Rounded up, for single precision may decide.
        limit = np.nextafter(limit, np.array(np.inf, dtype=block.dtype))
        if not grouped or FEW_GROUPS * k > width:
            return np.flatnonzero(block <= limit[:, None])
        row, column = np.divmod(np.flatnonzero(low <= limit[:, None]), width)
        members = (row * n_columns + column)[:, None] + np.arange(0, n_columns, width)
        return members[block.ravel().take(members) <= limit[row, None]]

    def _nearest_of(
        self, queries: Any, pairs: Pairs, margin: np.ndarray, k: np.ndarray, exact: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of pairs, the k[-1] nearest points of each row and their distances."""
        k_max = int(k[-1])
        # What is not a number would make the sort five times as slow.
        index, value = in_rows(*pairs, fill=np.inf if self._product else np.nan)
        near = ~np.isnan(value)
        if self._product:
            order = np.argsort(value, axis=1)
            index = np.take_along_axis(index, order, axis=1)
            value = np.take_along_axis(value, order, axis=1)
            # Only what lies within twice the margin of a border can be on either side of it.
            border = np.union1d(k, np.arange(1, min(ORDERED, k_max) + 1))
            apart = 2.0 * margin + 4.0 * TIE * value[:, k_max - 1]
            with np.errstate(invalid="ignore"):  # infinitely far minus infinitely far
                near = _near_borders(value, border, apart, exact)
            np.sqrt(np.maximum(value, 0.0, out=value), out=value)
        if isinstance(self.space, Minkowski):
            which, place = np.nonzero(near)
            value[which, place] = measure_pairs(
                self.space, queries, self.points, which, index[which, place]
            )
        index, value = in_order(index, value)
        return index[:, :k_max], value[:, :k_max]

    def _within(
        self, queries: Any, pairs: Pairs, margin: np.ndarray, radii: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(query, point, cell) of the pairs in which the query is nearer than the K-th neighbor."""
        row, point, value = pairs
        if not self._product:
            if isinstance(self.space, Minkowski):
                value = measure_pairs(self.space, queries, self.points, row, point)
            return closer(row, point, value, radii)
        # Between two radii, with a margin on both sides, the cell is certain.
        off = margin[row]
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


def _joined(parts: list[Pairs]) -> Pairs:
    """Pairs, one part after the other."""
    row, point, value = (np.concatenate(part) for part in zip(*parts, strict=True))
    return row, point, value


def _within_reach(block: np.ndarray, reach: np.ndarray, margin: np.ndarray) -> np.ndarray:
    """Places in a block that are, up to the margin, within the reach of their column."""
    widest = np.full(block.shape[1], -np.inf, dtype=block.dtype)
    with np.errstate(over="ignore"):
        widest[: len(reach)] = (reach + margin.max()) * (1.0 + 1e-6)
    return np.flatnonzero(block <= widest)


def _kth_smallest_or_more(values: np.ndarray, k: int) -> np.ndarray:
    """At least the k-th smallest of each row of values (n_rows, n): the k-th of groups' smallest.

    Among k groups whose smallest values are at most t there are k values that are.
    """
    while values.shape[1] >= 2 * GROUPS * k:
        half = values.shape[1] // 2
        values = np.fmin(values[:, :half], values[:, half : 2 * half])
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)  # which is partitioned in half the time
    bound = np.partition(single, k - 1, axis=1)[:, k - 1]
    return np.nextafter(bound, np.float32(np.inf)).astype(float)


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
