"""Whose neighborhoods a new point enters: the training points in whose ball it lies.

Around each training point is a ball that reaches to its last neighbor. The points nearest to a new
point are known, so a ball no wider than they are far need not be looked at. A tree that looks for
the others around a new point walks many branches, because a few balls are wide. There are two ways
instead, both by matrix products in single precision with a margin for their rounding. In few
dimensions the points are cut into cells of points that lie together, and cells too far from a group
of new points, seen from the widest ball in them, are passed over as a whole. In more dimensions
hardly a cell is too far, and all balls that are wide enough are compared, the widest first. What
comes out are candidates, for the metric's own distances to decide.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from kfree.neighbors.metric import Minkowski
from kfree.neighbors.products import LARGEST, ROUGH, SMALLEST, rounding

# Points in a cell, and new points in a group.
CELL = 128
GROUP = 256
# Candidates that go through one product at a time.
CHUNK = 1 << 14
# New points and balls that are compared at a time when all wide balls are: they fit the cache.
FEW = 64
STRIP = 2048
# How many of those comparisons are worth one of a cell's, which have to be gathered first.
WORTH = 2.0
# Relative margin that covers the rounding of any order of summation in double precision.
MARGIN = 1e-9
_NONE = np.empty(0, dtype=np.int64)


class Balls:
    """The balls around training points.

    Parameters
    ----------
    space : where the points lie
    points : (n_points, n_features)
    radii : (n_points,)
    order : (n_points,) the points in an order in which those that lie together come together
    """

    def __init__(
        self, space: Minkowski, points: np.ndarray, radii: np.ndarray, order: np.ndarray
    ) -> None:
        self.space = space
        self.order = order
        self.points = points[order]
        self.radii = radii[order] * (1.0 + MARGIN)
        starts = np.arange(0, len(order), CELL)
        self._low = np.minimum.reduceat(self.points, starts)  # (n_cells, n_features)
        self._high = np.maximum.reduceat(self.points, starts)
        self._reach = np.maximum.reduceat(self.radii, starts)
        self._widest = np.argsort(-self.radii)
        self._narrowing = -self.radii[self._widest]

    def around(self, queries: np.ndarray, beyond: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Candidates for (query, point) pairs, the query in the point's ball.

        Only balls wider than the query's `beyond` need come out. Queries that follow each other
        should lie together.
        """
        starts = range(0, len(queries), GROUP)
        near = [self._near(queries[start : start + GROUP]) for start in starts]
        n_wider = np.searchsorted(self._narrowing, -beyond)
        order = np.argsort(n_wider)
        n_compared = FEW * n_wider[order[FEW - 1 :: FEW]].sum() + FEW * n_wider.max(initial=0)
        if n_compared < WORTH * sum(GROUP * len(cells) for cells in near):
            found = self._among_the_widest(queries, n_wider, order)
            if found is not None:
                return found
        rows, points = [_NONE], [_NONE]
        for start, cells in zip(starts, near, strict=True):
            group = queries[start : start + GROUP]
            cells = cells[self.radii[cells] > beyond[start : start + GROUP].min()]
            for first in range(0, len(cells), CHUNK):
                part = cells[first : first + CHUNK]
                row, column = self._compare(group, part)
                rows.append(start + row)
                points.append(self.order[part[column]])
        return np.concatenate(rows), np.concatenate(points)

    def _among_the_widest(
        self, queries: np.ndarray, n_wider: np.ndarray, order: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """As `around`; None if single precision is too rough for it."""
        if self.space.p != 2.0:
            return None
        center, right, largest = self._factors
        y = queries - center
        square = np.einsum("ij,ij->i", y, y)
        margin = self._margin(largest + square)
        if not self._sharp(largest + square.max(), margin.max(), self._usual):
            return None
        left = _left(y, square - margin)
        rows, points = [_NONE], [_NONE]
        for start in range(0, len(order), FEW):
            group = order[start : start + FEW]
            n_balls, few = n_wider[group[-1]], left[group]
            for first in range(0, n_balls, STRIP):
                inside = few @ right[:, first : min(first + STRIP, n_balls)] <= 0.0
                hit = np.flatnonzero(inside)
                if len(hit):
                    row, column = np.divmod(hit, inside.shape[1])
                    rows.append(group[row])
                    points.append(first + column)
        return np.concatenate(rows), self.order[self._widest[np.concatenate(points)]]

    @cached_property
    def _factors(self) -> tuple[np.ndarray, np.ndarray, float]:
        """A center, the right side of the products for all balls, and the largest square in it."""
        center = self.points.mean(axis=0)
        x, radii = self.points[self._widest] - center, self.radii[self._widest]
        square = np.einsum("ij,ij->i", x, x)
        return center, _right(x, square, radii), float(square.max() + radii[0] ** 2)

    @cached_property
    def _usual(self) -> float:
        return float(np.median(self.radii))

    def _near(self, group: np.ndarray) -> np.ndarray:
        """Positions of the points in cells that may hold a ball around one of the group."""
        low, high = group.min(axis=0), group.max(axis=0)
        gap = np.maximum(np.maximum(self._low - high, low - self._high), 0.0)
        near = np.flatnonzero(self.space.between(gap, np.zeros(1)) <= self._reach)
        position = (near[:, None] * CELL + np.arange(CELL)).ravel()
        if len(near) and near[-1] == len(self._low) - 1:
            position = position[: len(position) - (len(self._low) * CELL - len(self.order))]
        return position

    def _compare(self, group: np.ndarray, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        radii = self.radii[part]
        # Near the group the product loses fewest digits.
        x, y = self.points[part] - group[0], group - group[0]
        x_square, y_square = np.einsum("ij,ij->i", x, x), np.einsum("ij,ij->i", y, y)
        size = x_square.max() + y_square + radii.max() ** 2
        margin = self._margin(size)
        if self.space.p != 2.0 or not self._sharp(size.max(), margin.max(), np.median(radii)):
            row, column = np.nonzero(self.space.block(group, self.points[part]) <= radii)
            return row, column
        inside = _left(y, y_square - margin) @ _right(x, x_square, radii) <= 0.0
        row, column = np.divmod(np.flatnonzero(inside), inside.shape[1])
        return row, column

    def _margin(self, size: np.ndarray) -> np.ndarray:
        """How far off sums of squares may be that are of this size."""
        return rounding(self.points.shape[1], size, np.float32) + SMALLEST

    def _sharp(self, size: float, margin: float, radius: float) -> bool:
        return bool(size < LARGEST and margin <= ROUGH * radius**2)


# |x - y|^2 - r^2 <= 0 as one product of (y, 1, |y|^2) and (-2 x, |x|^2 - r^2, 1).


def _left(y: np.ndarray, square: np.ndarray) -> np.ndarray:
    left = np.empty((len(y), y.shape[1] + 2), dtype=np.float32)
    left[:, :-2], left[:, -2], left[:, -1] = y, 1.0, square
    return left


def _right(x: np.ndarray, square: np.ndarray, radii: np.ndarray) -> np.ndarray:
    right = np.empty((x.shape[1] + 2, len(x)), dtype=np.float32)
    with np.errstate(over="ignore"):  # what is too large is found out afterwards
        right[:-2], right[-2], right[-1] = -2.0 * x.T, square - radii * radii, 1.0
    return right
