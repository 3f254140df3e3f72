"""Class counts around points, at one candidate of K or for one after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kfree.likelihood.segments import segment_sum
from kfree.likelihood.slots import DENSE_CLASSES, ClassSlots, every_class, make_slots
from kfree.neighbors.structures import Neighborhoods


@dataclass(frozen=True)
class PointCounts:
    """How many neighbors of each class points have."""

    slots: ClassSlots
    count: np.ndarray  # (n_slots,)
    own: np.ndarray  # (n_points,) the slot of a point's own class

    def take(self, points: np.ndarray) -> PointCounts:
        """The same of some of the points."""
        slots, slot = self.slots.take(points)
        own = self.own[points] - self.slots.indptr[points] + slots.indptr[:-1]
        return PointCounts(slots, self.count[slot], own)

    def b(
        self,
        table: Neighborhoods,
        i: int | np.ndarray,
        beta: np.ndarray,
        weight: np.ndarray | int = 0,
    ) -> np.ndarray:
        """Beta (n or 1, n_beta) over the divisor at the i-th candidate: (n or 1, n_beta).

        Where it is the size of the neighborhood, a label that it takes up counts `weight` times.
        """
        if not table.by_size:
            return beta / np.reshape(table.k[i], (-1, 1))
        # A shard knows the neighbors of touched points only; nobody asks for the terms of others.
        size = segment_sum(self.count, self.slots.indptr) + weight
        return beta / np.maximum(size, 1)[:, None]


def of_every_class(count: np.ndarray, own: np.ndarray) -> PointCounts:
    """From counts (n_points, n_classes) and the own classes of the points."""
    slots = every_class(*count.shape)
    return PointCounts(slots, count.ravel(), slots.find(np.arange(len(own)), own))


class RisingCounts:
    """How many neighbors of each class points have, for rising candidates of K.

    `count` (n_slots,) belongs to the candidate that `rise_to` was last called with: one number for
    each of the `slots`, of which each point has one for its own class, at `own`, and one for every
    class around it.
    """

    def __init__(
        self, table: Neighborhoods, labels: np.ndarray, own: np.ndarray, n_classes: int
    ) -> None:
        """`table` has the neighborhoods of points with labels `own`; `labels` are all points'."""
        self._table, self._next = table, 0
        self._labels = labels.astype(np.int64)
        each = np.arange(table.n_points)
        if n_classes <= DENSE_CLASSES:
            self.slots = every_class(table.n_points, n_classes)
        else:
            owner = np.repeat(each, np.diff(table.indptr))
            near = self._labels[table.neighbors]
            points, classes = np.concatenate([each, owner]), np.concatenate([own, near])
            self.slots, slot = make_slots(table.n_points, n_classes, points, classes)
            self._slot = slot[table.n_points :]
        self.own = self.slots.find(each, own)
        self.count = np.zeros(len(self.slots.classes), dtype=np.int32)

    def rise_to(self, i: int) -> np.ndarray:
        """The counts at the i-th candidate, which is not below the one before."""
        for j in range(self._next, i + 1):
            if self.slots.every:
                owner, neighbor = self._table.joining(j, self._table.neighbors)
                slot = self.slots.find(owner, self._labels[neighbor])
            else:
                _, slot = self._table.joining(j, self._slot)
            self.count += np.bincount(slot, minlength=len(self.count)).astype(np.int32)
        self._next = max(self._next, i + 1)
        return self.count

    def by_class(self, i: int) -> np.ndarray:
        """A copy of the counts of all classes at the i-th candidate: (n_points, n_classes)."""
        return self.slots.table(self.rise_to(i)).copy()

    def divisor(self, i: int) -> np.ndarray:
        """What counts are divided by to become shares, at the i-th candidate: (n_points,)."""
        if self._table.by_size:
            return segment_sum(self.count, self.slots.indptr).astype(float)
        return np.full(self.slots.n_points, float(self._table.k[i]))
