"""p(z' = c | beta, K, Y): the class of a row whose label is open, given the strength and K.

There are two ways to it:

| way | where | when |
|---|---|---|
| few classes: states | `few_classes` | up to `FEW_CLASSES` |
| in general: classes near a row | `open_labels` | more, and where each row has its own beta |

With few classes the first takes a half to a quarter of the time of the second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kfree.likelihood.few_classes import FEW_CLASSES, FewClasses
from kfree.likelihood.open_labels import Conditional, OpenLabels, Predictive
from kfree.likelihood.slots import ClassSlots, every_class
from kfree.likelihood.terms import Log


@dataclass(frozen=True)
class ByLabel:
    """log p(z, z' = c | beta, K) - log p(z | beta, K) at some betas, for each class c."""

    slots: ClassSlots
    listed: np.ndarray  # (n_slots, n_beta)
    absent: np.ndarray | None  # (n_rows, n_beta) of classes in no slot; None if all are in slots

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
        if self.absent is not None:
            return Predictive(self.slots, Log(self.listed), Log(self.absent)).conditional()
        log_class = self.listed.reshape(-1, self.slots.n_classes, self.listed.shape[1])
        high = log_class.max(axis=1)
        share = np.exp(log_class - high[:, None, :])
        total = share.sum(axis=1)
        share /= total[:, None, :]
        listed = share.reshape(self.listed.shape)
        return Conditional(self.slots, listed, np.zeros_like(total), np.log(total) + high)


def by_label(rows: OpenLabels) -> Callable[[int, np.ndarray], ByLabel]:
    """A function of a candidate, rising from call to call, and betas (n_beta,)."""
    if rows.n_classes <= FEW_CLASSES:
        few, slots = FewClasses(rows), every_class(rows.n_rows, rows.n_classes)

        def of_every_class(i: int, beta: np.ndarray) -> ByLabel:
            return ByLabel(slots, few.at(i, beta).reshape(-1, len(beta)), None)

        return of_every_class

    def in_general(i: int, beta: np.ndarray) -> ByLabel:
        predictive, leaves = rows.at(i).predictive(beta)
        listed, absent = predictive.listed.value, predictive.absent.value
        if leaves is not None:
            listed, absent = listed + leaves.value[predictive.slots.owner], absent + leaves.value
        return ByLabel(predictive.slots, listed, absent)

    return in_general
