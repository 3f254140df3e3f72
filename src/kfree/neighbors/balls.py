"""Whose neighborhoods a new point enters: the training points in whose ball it lies.

Around each training point is a ball that reaches to its last neighbor. A tree that looks for all
balls around a new point walks many branches, because a few balls are wide. Here the points are cut
into cells of points that lie together. Cells too far from a group of new points, seen from the
widest ball in them, are passed over as a whole; the rest is compared in one matrix product in
single precision, with a margin for its rounding. What comes out are candidates, for the metric's
own distances to decide.
"""

from __future__ import annotations

import numpy as np

from kfree.neighbors.metric import Minkowski

# Points in a cell, and new points in a group.
CELL = 128
GROUP = 256
# Candidates that go through one product at a time.
CHUNK = 1 << 14
# Relative margin that covers the rounding of any order of summation in double precision.
MARGIN = 1e-9
# Squares that single precision holds without overflow, and what it loses to underflow.
LARGEST_SQUARE = 1e36
SMALLEST_SQUARE = 1e-36
# A margin that is a larger part of the usual squared radius calls for double precision.
ROUGH = 0.02


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

    def around(self, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Candidates for (query, point) pairs, the query in the point's ball.

        Queries that follow each other should lie together.
        """
        none = np.empty(0, dtype=np.int64)
        rows, points = [none], [none]
        for start in range(0, len(queries), GROUP):
            group = queries[start : start + GROUP]
            near = self._near(group)
            for first in range(0, len(near), CHUNK):
                part = near[first : first + CHUNK]
                row, column = self._compare(group, part)
                rows.append(start + row)
                points.append(self.order[part[column]])
        return np.concatenate(rows), np.concatenate(points)

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
        n_features = x.shape[1]
        size = x_square.max() + y_square + radii.max() ** 2
        margin = 4.0 * (n_features + 8) * np.finfo(np.float32).eps * size + SMALLEST_SQUARE
        rough = not size.max() < LARGEST_SQUARE or margin.max() > ROUGH * np.median(radii) ** 2
        if self.space.p != 2.0 or rough:
            row, column = np.nonzero(self.space.block(group, self.points[part]) <= radii)
            return row, column
        # |x - y|^2 - r^2 <= 0 as one product of (y, 1, |y|^2) and (-2 x, |x|^2 - r^2, 1).
        left = np.empty((len(y), n_features + 2), dtype=np.float32)
        left[:, :-2], left[:, -2], left[:, -1] = y, 1.0, y_square - margin
        right = np.empty((n_features + 2, len(x)), dtype=np.float32)
        right[:-2], right[-2], right[-1] = -2.0 * x.T, x_square - radii * radii, 1.0
        inside = left @ right <= 0.0
        row, column = np.divmod(np.flatnonzero(inside), inside.shape[1])
        return row, column
