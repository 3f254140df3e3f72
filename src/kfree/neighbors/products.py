"""Candidates for neighbors from one matrix product in single precision.

|x - y|^2 = |x|^2 - 2 x.y + |y|^2 for all pairs is one product. Its rounding has a bound, so the
points within the k-th smallest value and twice that bound are certain to hold the k nearest, and
double precision need only be spent on those. The k-th smallest value itself is not sought among all
points: they are put into groups, and among k different groups whose smallest values are at most t
there are k points at most t away. Points beyond t by more than the bound are then left out without
ever being sorted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# How many points share a group.
GROUP = 16
# Above this, squares overflow in single precision; below it, they are lost.
LARGEST = 1e36
SMALLEST = 1e-36
# So many candidates for each neighbor, or a bound that is a larger part of the squared radii, call
# for double precision.
MANY = 4
ROUGH = 0.02


def rounding(n_features: int, size: np.ndarray, kind: type) -> np.ndarray:
    """How far |x|^2 - 2 x.y + |y|^2 may be off, computed in `kind`, where |x|^2 + |y|^2 = size."""
    return 4.0 * (n_features + 8) * np.finfo(kind).eps * size


@dataclass(frozen=True)
class Reach:
    """Squared radii around points."""

    square: np.ndarray  # (n_points and more,) single precision
    usual: float  # the median


class Products:
    """Squared distances from fixed points, in single precision.

    Parameters
    ----------
    points : (n_points, n_features)
    """

    def __init__(self, points: np.ndarray) -> None:
        n, n_features = points.shape
        self.n_points = n
        # Near the origin the product loses fewest digits.
        self._center = points.mean(axis=0)
        centered = points - self._center
        square = np.einsum("ij,ij->i", centered, centered)
        self._largest = float(square.max())
        self._width = -(-n // GROUP)  # groups; a group holds the points width, 2 width, ... apart
        self._right = np.zeros((n_features + 2, GROUP * self._width), dtype=np.float32)
        with np.errstate(over="ignore"):
            self._right[:-2, :n] = -2.0 * centered.T
            self._right[-2, :n] = square
        self._right[-2, n:] = np.inf
        self._right[-1] = 1.0

    def squares(self, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Squared distances (n_queries, n_points and more) and how far off a row's may be.

        None if they are too large for single precision.
        """
        centered = queries - self._center
        square = np.einsum("ij,ij->i", centered, centered)
        size = square + self._largest
        if not size.max() < LARGEST:
            return None
        left = np.empty((len(queries), len(self._right)), dtype=np.float32)
        left[:, :-2], left[:, -2], left[:, -1] = centered, 1.0, square
        margin = rounding(queries.shape[1], size, np.float32) + SMALLEST
        return left @ self._right, margin

    def nearest(
        self, squares: np.ndarray, margin: np.ndarray, k: int
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Flat (row, point) that hold the k nearest points of each row, ordered by row.

        None if the margin is too wide for that to be of use.
        """
        n_rows, width = len(squares), self._width
        grouped = 4 * k < width
        low = squares.reshape(n_rows, GROUP, width).min(axis=1) if grouped else squares
        bound = np.partition(low, k - 1, axis=1)[:, k - 1].astype(float)
        # Rounded up, for single precision decides.
        limit = np.nextafter((bound + 2.0 * margin).astype(np.float32), np.float32(np.inf))
        found = np.flatnonzero(low <= limit[:, None])
        if len(found) > MANY * k * n_rows:
            return None
        row, column = np.divmod(found, low.shape[1])
        if not grouped:
            return row, column
        flat = (row * (GROUP * width) + column)[:, None] + np.arange(0, GROUP * width, width)
        hit, member = np.nonzero(squares.ravel()[flat] <= limit[row, None])
        return row[hit], column[hit] + width * member

    def reach(self, radii: np.ndarray) -> Reach:
        """The radii of the points (n_points,) in the form that `within` wants."""
        square = np.full(GROUP * self._width, -np.inf, dtype=np.float32)
        with np.errstate(over="ignore"):
            square[: self.n_points] = radii * radii * (1.0 + 1e-6)
        return Reach(square, float(np.median(radii)) ** 2)

    def within(
        self, squares: np.ndarray, margin: np.ndarray, reach: Reach
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Flat (row, point) that hold all pairs within the points' radii, ordered by row.

        None if the margin is too wide for that to be of use.
        """
        if not margin.max() <= ROUGH * reach.usual:
            return None
        found = np.flatnonzero(squares <= reach.square + np.float32(margin.max() * (1.0 + 1e-6)))
        row, column = np.divmod(found, squares.shape[1])
        return row, column
