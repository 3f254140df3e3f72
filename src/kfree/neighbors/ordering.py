"""Pairs of rows and points that a search proposed, measured, put in order and cut to what counts.

The tie rule is decided here and nowhere else. Distances that agree to a relative 1e-12 are ties:
equal in truth, they may differ by rounding, and then the order of the columns would decide who is a
neighbor. Of tied training points the one with the lower index is nearer, and a new point comes
after every training point at its distance.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.lib.stride_tricks import as_strided
from scipy import sparse

from kfree.neighbors.graph import cells
from kfree.neighbors.metric import Minkowski

TIE = 1e-12
# How many coordinates are gathered at a time to compare pairs of rows.
PAIR_COORDINATES = 1 << 16
# So many neighbors stand in the order of their distance; beyond them only the candidates of K
# decide what has to be told apart.
ORDERED = 32
# For how many pairs cells are looked up at a time.
SEARCHED = 1 << 15


def measure_pairs(
    space: Minkowski, queries: np.ndarray, points: np.ndarray, row: np.ndarray, point: np.ndarray
) -> np.ndarray:
    """The distance of each pair (queries[row], points[point])."""
    if sparse.issparse(points):
        return _measure_sparse_pairs(queries, points, row, point)
    out = np.empty(len(row))
    step = max(1, PAIR_COORDINATES // max(1, points.shape[1]))
    for start in range(0, len(row), step):
        part = slice(start, start + step)
        a, b = space.prepared(queries[row[part]]), space.prepared(points[point[part]])
        out[part] = space.between(a, b)
    return out


def _measure_sparse_pairs(queries, points, row: np.ndarray, point: np.ndarray) -> np.ndarray:
    """The same for rows that are sparse: |x - y| from the entries that either has."""
    out = np.empty(len(row))
    for start in range(0, len(row), PAIR_COORDINATES):
        part = slice(start, start + PAIR_COORDINATES)
        difference = queries[row[part]] - points[point[part]]
        out[part] = np.sqrt(difference.multiply(difference).sum(axis=1))
    return out


def in_order(indices: np.ndarray, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each row sorted by distance, ties by index; what is not a number comes last."""
    unsorted = np.flatnonzero(~(distances[:, 1:] >= distances[:, :-1]).all(axis=1))
    if len(unsorted):
        order = np.argsort(distances[unsorted], axis=1, kind="stable")  # hardly any is unsorted
        indices[unsorted] = np.take_along_axis(indices[unsorted], order, axis=1)
        distances[unsorted] = np.take_along_axis(distances[unsorted], order, axis=1)
    with np.errstate(invalid="ignore"):  # infinitely far minus infinitely far
        tied = distances[:, 1:] <= distances[:, :-1] * (1.0 + TIE)
    affected = np.flatnonzero((tied & (indices[:, 1:] < indices[:, :-1])).any(axis=1))
    if len(affected):
        group = np.zeros((len(affected), indices.shape[1]), dtype=np.int64)
        np.cumsum(~tied[affected], axis=1, out=group[:, 1:])
        order = np.lexsort((indices[affected], group), axis=1)
        indices[affected] = np.take_along_axis(indices[affected], order, axis=1)
        distances[affected] = np.take_along_axis(distances[affected], order, axis=1)
        # Rounding must not undo the order.
        distances[affected] = np.fmax.accumulate(distances[affected], axis=1)
    return indices, distances


def nearest_first(
    row: np.ndarray, point: np.ndarray, distance: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Of flat candidates, at least k in every row and ordered by row, the k nearest of each."""
    index, wide = in_rows(row, point, distance)
    index, wide = in_order(index, wide)
    return index[:, :k], wide[:, :k]


def in_rows(
    row: np.ndarray, point: np.ndarray, value: np.ndarray, fill: float = np.nan
) -> tuple[np.ndarray, np.ndarray]:
    """Flat candidates, ordered by row, as tables (n_rows, longest) of points and values.

    Rows of equal length sort faster than one flat list. What a row lacks is `fill`, which sorts
    last.
    """
    number = np.bincount(row)
    starts = np.cumsum(number) - number
    place = np.arange(len(row)) - starts[row]
    wide = np.full((len(number), int(number.max())), fill)
    wide[row, place] = value
    index = np.zeros(wide.shape, dtype=point.dtype)
    index[row, place] = point
    return index, wide


def in_cells(indices: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Lists (n, k[-1]), nearest first, with each cell of the candidates `k` sorted by index.

    The K-th neighbor stays the last of its cell. So lists are the same whoever found them, however
    far a search tells distances apart within a cell. The first few stay in order.
    """
    cell = cells(k)
    free = np.flatnonzero((np.append(cell[1:], -1) == cell) & (np.arange(len(cell)) >= ORDERED))
    for i in np.unique(cell[free]):
        of_cell = free[cell[free] == i]
        indices[:, of_cell] = np.sort(indices[:, of_cell], axis=1)
    return indices


def closer(
    row: np.ndarray, point: np.ndarray, distance: np.ndarray, radii: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pairs in which the row is nearer to the point than its last neighbor is.

    Parameters
    ----------
    radii : (n_points, n_k) the distances of the points' K-th neighbors

    Returns
    -------
    row, point, cell : ordered by row and point; the row is one of the point's K nearest from the
        candidate `cell` on
    """
    cell = n_within(radii, point, distance * (1.0 + TIE))
    inside = np.flatnonzero(cell < radii.shape[1])
    return by_row_and_point(row[inside], point[inside], cell[inside], len(radii))


def by_row_and_point(
    row: np.ndarray, point: np.ndarray, cell: np.ndarray, n_points: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same pairs ordered by row and point."""
    key = row * np.int64(n_points) + point
    if (key[1:] < key[:-1]).any():
        order = np.argsort(key, kind="stable")  # they rise in parts
        return row[order], point[order], cell[order]
    return row, point, cell


def n_within(table: np.ndarray, point: np.ndarray, value: np.ndarray) -> np.ndarray:
    """How many numbers of row `point` of a table, rising in each row, are at most `value`."""
    # A binary search in many rows at once, so many that what it holds stays in the cache.
    if not len(point):
        return np.empty(0, dtype=np.int32)
    if table.strides[1] != table.itemsize:
        table = np.ascontiguousarray(table)
    n, width = table.shape[1], table.strides[0] // table.itemsize
    flat = as_strided(table, ((len(table) - 1) * width + n,), (table.itemsize,), writeable=False)
    found = np.empty(len(point), dtype=np.int32)
    for a in range(0, len(point), SEARCHED):
        before, limit = point[a : a + SEARCHED] * np.int64(width) - 1, value[a : a + SEARCHED]
        low = np.zeros(len(before), dtype=np.int64)
        step = 1 << max(0, n.bit_length() - 1)
        while step:
            probe = low + step
            nearer = probe <= n
            np.minimum(probe, n, out=probe)
            nearer &= flat.take(before + probe) <= limit
            low += step * nearer
            step >>= 1
        found[a : a + SEARCHED] = low
    return found


def flatten(lists: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An array of lists as flat (which list, which item)."""
    lengths = np.fromiter((len(items) for items in lists), dtype=np.int64, count=len(lists))
    owner = np.repeat(np.arange(len(lists)), lengths)
    items = [np.asarray(items, dtype=np.int64) for items in lists if items]
    return owner, np.concatenate(items) if items else np.empty(0, dtype=np.int64)


def slices(counts: np.ndarray) -> Iterator[slice]:
    """Slices of rows with `counts` candidates each, for about `PAIR_COORDINATES` at a time."""
    start, total = 0, 0
    for i, count in enumerate(counts):
        total += int(count)
        if total >= PAIR_COORDINATES:
            yield slice(start, i + 1)
            start, total = i + 1, 0
    if start < len(counts):
        yield slice(start, len(counts))


def nothing() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """No pairs: rows, points, cells."""
    none = np.empty(0, dtype=np.int64)
    return none, none, none
