"""A place for each class that can occur at each point, and what is known of the classes there.

With few classes every point has a slot for every class. With many, a point has slots only for the
classes that occur around it, so that time and memory do not grow with the number of classes: all
others have the same value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kfree.likelihood.terms import segment_max, segment_sum
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


@dataclass(frozen=True)
class Conditional:
    """p(z' = c | beta, K, Y) of a block of rows at some betas, for each class c."""

    slots: ClassSlots
    listed: np.ndarray  # (n_slots, n_beta)
    absent: np.ndarray | None  # (n_rows, n_beta) of each class in no slot; None if all are in slots
    log_total: np.ndarray  # (n_rows, n_beta) log p(z | beta, K) more than before, whatever z' is

    def table(self) -> np.ndarray:
        """All classes of all rows: (n_rows, n_classes, n_beta)."""
        slots = self.slots
        if self.absent is None:
            return self.listed.reshape(slots.n_points, slots.n_classes, -1)
        table = np.repeat(self.absent[:, None, :], slots.n_classes, axis=1)
        table[slots.owner, slots.classes] = self.listed
        return table


@dataclass(frozen=True)
class ByLabel:
    """log p(z, z' = c | beta, K) - log p(z | beta, K) at some betas, for each class c.

    For rows that are held out p(z) is without their own terms.
    """

    slots: ClassSlots
    listed: np.ndarray  # (n_slots, n_beta)
    absent: np.ndarray | None  # (n_rows, n_beta) of each class in no slot; None if all are in slots

    def part(self, betas: slice) -> ByLabel:
        """The same at some of the betas."""
        absent = None if self.absent is None else self.absent[:, betas]
        return ByLabel(self.slots, self.listed[:, betas], absent)

    def each(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rows (n,) and the values (n, n_beta) of their labels."""
        found = [(self.slots.owner, self.listed)]
        if self.absent is not None:
            found.append((np.arange(len(self.absent)), self.absent))
        return found

    def conditional(self) -> Conditional:
        """Divided by the sum over all classes."""
        slots = self.slots
        if self.absent is None:
            log_class = self.listed.reshape(slots.n_points, slots.n_classes, -1)
            high = log_class.max(axis=1)
            share = np.exp(log_class - high[:, None, :])
            total = share.sum(axis=1)
            share /= total[:, None, :]
            share = share.reshape(self.listed.shape)
            return Conditional(slots, share, None, np.log(total) + high)
        # Where no class is absent, the value of an absent one may be anything.
        n_absent = (slots.n_classes - np.diff(slots.indptr))[:, None]
        absent = np.where(n_absent > 0, self.absent, -np.inf)
        high = np.maximum(segment_max(self.listed, slots.indptr, -np.inf), absent)
        share, absent = np.exp(self.listed - high[slots.owner]), np.exp(absent - high)
        total = segment_sum(share, slots.indptr) + n_absent * absent
        share /= total[slots.owner]
        return Conditional(slots, share, absent / total, np.log(total) + high)


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
