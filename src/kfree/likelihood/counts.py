"""Class counts around points, for one candidate of K after the other."""

from __future__ import annotations

import numpy as np

from kfree.neighbors.structures import Neighborhoods


class RisingCounts:
    """How many neighbors of each class points have, for rising candidates of K.

    `count` (n_classes, n_points) belongs to the candidate that `rise_to` was last called with.
    """

    def __init__(self, table: Neighborhoods, labels: np.ndarray, n_classes: int) -> None:
        """`table` has the neighborhoods of the points, `labels` the labels of all points."""
        self.count = np.zeros((n_classes, table.n_points), dtype=np.int32)
        self._table = table
        self._labels = labels.astype(np.int64)
        self._next = 0

    def rise_to(self, i: int) -> np.ndarray:
        """The counts at the i-th candidate, which is not below the one before."""
        n_classes, n = self.count.shape
        for j in range(self._next, i + 1):
            owner, neighbor = self._table.joining(j)
            slot = self._labels[neighbor] * n + owner
            more = np.bincount(slot, minlength=n_classes * n)
            self.count += more.reshape(n_classes, n).astype(np.int32)
        self._next = max(self._next, i + 1)
        return self.count

    def divisor(self, i: int) -> np.ndarray:
        """What counts are divided by to become shares, at the i-th candidate: (n_points,)."""
        if self._table.by_size:
            return self.count.sum(axis=0).astype(float)
        return np.full(self.count.shape[1], float(self._table.k[i]))
