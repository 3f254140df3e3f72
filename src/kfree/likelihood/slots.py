"""A place to count each class that can occur at each point.

With few classes every point has a slot for every class. With many, a point has slots only for the
classes that occur around it, so that time and memory do not grow with the number of classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kfree.neighbors.flat import distinct

DENSE_CLASSES = 16


@dataclass(frozen=True)
class ClassSlots:
    """Slots `indptr[i]:indptr[i + 1]` belong to point i, one for each of `classes` there."""

    indptr: np.ndarray  # (n_points + 1,)
    classes: np.ndarray  # (n_slots,) increasing within a point, where slots are to be found
    n_classes: int
    every: bool  # whether every class has a slot at every point

    @property
    def n_points(self) -> int:
        return len(self.indptr) - 1

    @property
    def owner(self) -> np.ndarray:
        """The point of each slot."""
        return np.repeat(np.arange(self.n_points), np.diff(self.indptr))

    def find(self, points: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """The slot of each (point, class), which must be there."""
        if self.every:
            return points * self.n_classes + classes
        return np.searchsorted(self._keys, points * np.int64(self.n_classes) + classes)

    @cached_property
    def _keys(self) -> np.ndarray:
        return self.owner * np.int64(self.n_classes) + self.classes


def make_slots(
    n_points: int, n_classes: int, points: np.ndarray, classes: np.ndarray
) -> tuple[ClassSlots, np.ndarray]:
    """Slots for all (point, class) given, every class's if these are few; and the slot of each."""
    if n_classes <= DENSE_CLASSES:
        slots = every_class(n_points, n_classes)
        return slots, slots.find(points, classes)
    keys, slot = distinct(points * np.int64(n_classes) + classes, n_points * n_classes)
    owner, label = np.divmod(keys, n_classes)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n_points))])
    return ClassSlots(indptr, label, n_classes, every=False), slot


def every_class(n_points: int, n_classes: int) -> ClassSlots:
    """Slots for every class of every point."""
    indptr = np.arange(0, n_points * n_classes + 1, n_classes)
    return ClassSlots(indptr, np.tile(np.arange(n_classes), n_points), n_classes, every=True)
