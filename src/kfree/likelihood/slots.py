"""A place for each class that can occur at each point, and what is known of the classes there.

Up to 16 classes every point has a slot for every class. With more, a point has slots only for the
classes that occur around it, so that time and memory do not grow with the number of classes: all
others have the same value, and share one slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kfree.likelihood.segments import segment_max, segment_sum
from kfree.neighbors.flat import distinct, expand

DENSE_CLASSES = 16


@dataclass(frozen=True)
class ClassSlots:
    """Slots `indptr[i]:indptr[i + 1]` belong to point i, one for each of `classes` there.

    Unless every class has a slot at every point, the last slot of a point, of "class" n_classes,
    stands for all classes that have none there.
    """

    indptr: np.ndarray  # (n_points + 1,)
    classes: np.ndarray  # (n_slots,) increasing within a point, where slots are to be found
    n_classes: int
    every: bool  # whether every class has a slot at every point

    @property
    def n_points(self) -> int:
        return len(self.indptr) - 1

    @cached_property
    def owner(self) -> np.ndarray:
        """The point of each slot."""
        return self.spread(np.arange(self.n_points))

    @property
    def last(self) -> np.ndarray:
        """The last slot of each point."""
        return self.indptr[1:] - 1

    @cached_property
    def number(self) -> np.ndarray:
        """How many classes each slot stands for, which may be none: (n_slots, 1)."""
        number = np.ones((len(self.classes), 1))
        if not self.every:
            number[self.last, 0] = self.n_classes + 1 - np.diff(self.indptr)
        return number

    def find(self, points: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """The slot of each (point, class), which must be there."""
        if self.every:
            return points * self.n_classes + classes
        return np.searchsorted(self._keys, points * np.int64(self.n_classes + 1) + classes)

    @cached_property
    def _keys(self) -> np.ndarray:
        return self.owner * np.int64(self.n_classes + 1) + self.classes

    def take(self, points: np.ndarray) -> tuple[ClassSlots, np.ndarray]:
        """The slots of some of the points, and which of these slots they are."""
        _, slot = expand(self.indptr, points)
        indptr = np.concatenate([[0], np.cumsum(np.diff(self.indptr)[points])])
        return ClassSlots(indptr, self.classes[slot], self.n_classes, self.every), slot

    def spread(self, values: np.ndarray) -> np.ndarray:
        """The value of its point for each slot: (n_slots, ...) from (n_points, ...)."""
        return np.repeat(values, self.n_classes if self.every else np.diff(self.indptr), axis=0)

    def sum(self, values: np.ndarray) -> np.ndarray:
        """The sum over all classes of each point: (n_points, n) from (n_slots, n)."""
        return segment_sum(values if self.every else values * self.number, self.indptr)

    def table(self, values: np.ndarray) -> np.ndarray:
        """The values (n_slots, ...) of all classes of all points: (n_points, n_classes, ...)."""
        if self.every:
            return values.reshape(self.n_points, self.n_classes, *values.shape[1:])
        table = np.repeat(values[self.last][:, None], self.n_classes + 1, axis=1)
        table[self.owner, self.classes] = values
        return table[:, :-1]


@dataclass(frozen=True)
class Conditional:
    """p(z' = c | beta, K, Y) of a block of rows at some betas, for each class c."""

    slots: ClassSlots
    share: np.ndarray  # (n_slots, n_beta) of each class that a slot stands for
    log_total: np.ndarray  # (n_rows, n_beta) log p(z | beta, K) more than before, whatever z' is

    def table(self) -> np.ndarray:
        """All classes of all rows: (n_rows, n_classes, n_beta)."""
        return self.slots.table(self.share)


@dataclass(frozen=True)
class ByLabel:
    """log p(z, z' = c | beta, K) - log p(z | beta, K) at some betas, for each class c.

    For rows that are held out p(z) is without their own terms.
    """

    slots: ClassSlots
    value: np.ndarray  # (n_slots, n_beta)

    def part(self, betas: slice) -> ByLabel:
        """The same at some of the betas."""
        return ByLabel(self.slots, self.value[:, betas])

    def conditional(self) -> Conditional:
        """Divided by the sum over all classes."""
        slots, value = self.slots, self.value
        if not slots.every:  # a slot that stands for no class may have any value
            value = np.where(slots.number > 0, value, -np.inf)
        high = segment_max(value, slots.indptr, -np.inf)
        share = np.exp(value - slots.spread(high))
        total = slots.sum(share)
        share /= slots.spread(total)
        return Conditional(slots, share, np.log(total) + high)


def make_slots(
    n_points: int, n_classes: int, points: np.ndarray, classes: np.ndarray
) -> tuple[ClassSlots, np.ndarray]:
    """Slots for all (point, class) given, every class's if these are few; and the slot of each."""
    if n_classes <= DENSE_CLASSES:
        slots = every_class(n_points, n_classes)
        return slots, slots.find(points, classes)
    width = n_classes + 1
    keys = np.concatenate([points, np.arange(n_points)]) * np.int64(width)
    keys[: len(points)] += classes
    keys[len(points) :] += n_classes
    keys, slot = distinct(keys, n_points * width)
    owner, label = np.divmod(keys, width)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n_points))])
    return ClassSlots(indptr, label, n_classes, every=False), slot[: len(points)]


def every_class(n_points: int, n_classes: int) -> ClassSlots:
    """Slots for every class of every point."""
    indptr = np.arange(0, n_points * n_classes + 1, n_classes)
    return ClassSlots(indptr, np.tile(np.arange(n_classes), n_points), n_classes, every=True)
