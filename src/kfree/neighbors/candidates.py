"""Pairs of rows and points that a search proposed, measured, put in order and cut to what counts.

The tie rule is decided here and nowhere else: by distance, then by index, and a new point after
every training point at its distance.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kfree.neighbors.metric import Minkowski

# How many coordinates are gathered at a time to compare pairs of rows.
PAIR_COORDINATES = 1 << 16


def measure_pairs(
    space: Minkowski, queries: np.ndarray, points: np.ndarray, row: np.ndarray, point: np.ndarray
) -> np.ndarray:
    """The distance of each pair (queries[row], points[point])."""
    n_coordinates = max(1, points.shape[1])
    if 2 * len(row) > len(queries) * len(points):  # then all pairs cost less than picking some
        step = max(1, PAIR_COORDINATES // (len(points) * n_coordinates))
        starts = range(0, len(queries), step)
        parts = [space.between(queries[a : a + step, None], points) for a in starts]
        return np.concatenate(parts)[row, point]
    out = np.empty(len(row))
    step = max(1, PAIR_COORDINATES // n_coordinates)
    for start in range(0, len(row), step):
        part = slice(start, start + step)
        out[part] = space.between(queries[row[part]], points[point[part]])
    return out


def in_order(indices: np.ndarray, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each row sorted by distance, then index."""
    if (distances[:, 1:] < distances[:, :-1]).any():
        order = np.argsort(distances, axis=1)
        indices = np.take_along_axis(indices, order, axis=1)
        distances = np.take_along_axis(distances, order, axis=1)
    tied = np.flatnonzero((distances[:, 1:] == distances[:, :-1]).any(axis=1))
    if len(tied):
        order = np.lexsort((indices[tied], distances[tied]), axis=1)
        indices[tied] = np.take_along_axis(indices[tied], order, axis=1)
    return indices, distances


def nearest_first(
    row: np.ndarray, point: np.ndarray, distance: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Of flat candidates, at least k in every row, the k nearest of each row."""
    number = np.bincount(row)
    starts = np.cumsum(number) - number
    place = np.arange(len(row)) - starts[row]
    # Rows of equal length sort faster than one flat list; not a number comes last.
    wide = np.full((len(number), int(number.max())), np.nan)
    wide[row, place] = distance
    index = np.zeros(wide.shape, dtype=point.dtype)
    index[row, place] = point
    index, wide = in_order(index, wide)
    return index[:, :k], wide[:, :k]


def closer(
    row: np.ndarray, point: np.ndarray, distance: np.ndarray, radii: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pairs strictly within the training point's radius, ordered by row and point.

    Strictly: the new point comes after every training point at its distance.
    """
    inside = np.flatnonzero(distance < radii[point])
    key = row[inside] * np.int64(len(radii)) + point[inside]
    if (key[1:] < key[:-1]).any():
        inside = inside[np.argsort(key)]
    return row[inside], point[inside], distance[inside]


def ranks_ahead(table: np.ndarray, point: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """How many of each training point's neighbors are at most as far as the new point."""
    # A binary search in every row at once.
    low = np.zeros(len(point), dtype=np.int32)
    high = np.full(len(point), table.shape[1], dtype=np.int32)
    while (low < high).any():
        middle = (low + high) // 2
        nearer = table[point, np.minimum(middle, table.shape[1] - 1)] <= distance
        low = np.where(nearer & (low < high), middle + 1, low)
        high = np.where(nearer, high, np.minimum(high, middle))
    return low


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
    """No pairs: rows, points, distances."""
    return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)
