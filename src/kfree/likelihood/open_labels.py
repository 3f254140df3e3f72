"""The pseudo-likelihood when one point's label is open: only what that label touches changes.

    log p(z, z' = c | beta, K) = log p(z | beta, K) + own(c) + sum over touched n of change_n(c)

`own` is the open row's own term, change_n the new log term of n less its old one. A new point
touches the points whose neighborhoods it enters and, under the symmetric structures, its own
neighbors and the points that it pushes out: about K or 3K of them. A training row that is held
out touches the points that have it as a neighbor, and its own term leaves the sum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from kfree.likelihood.counts import PointCounts, of_every_class
from kfree.likelihood.entering import Entering
from kfree.likelihood.slots import ByLabel, ClassSlots, make_slots
from kfree.likelihood.terms import log_terms, log_terms_joined, log_terms_of_classes
from kfree.neighbors.flat import distinct, expand
from kfree.neighbors.structures import Neighborhoods, OpenRows, Touched


@dataclass(frozen=True)
class OpenLabels:
    """Rows with open labels among labeled training points."""

    rows: OpenRows  # the rows and whom they touch
    table: Neighborhoods  # of the n training points
    labels: np.ndarray  # (n,) integers from 0
    n_classes: int
    joint: bool  # whether the open label enters its neighbors' terms too, or only its own
    own_labels: np.ndarray | None = None  # (n_rows,) where the training sum has the rows' terms
    # What is known of all training points beforehand, if it is: the classes around them at some
    # candidates, each (n, n_classes), and what becomes of those that new rows enter.
    around: dict[int, np.ndarray] | None = None
    entering: Entering | None = None

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows

    def take(self, rows: np.ndarray) -> OpenLabels:
        """The same for some of the rows, given by increasing index."""
        own = None if self.own_labels is None else self.own_labels[rows]
        return replace(self, rows=self.rows.take(rows), own_labels=own)

    def any_labels(self) -> np.ndarray:
        """The labels that the rows had; where they had none, any will do."""
        return np.zeros(self.n_rows, np.int64) if self.own_labels is None else self.own_labels

    def own_counts(self, touched: Touched) -> PointCounts:
        """The classes in the rows' own neighborhoods, of every class."""
        slot = touched.own_row * np.int64(self.n_classes) + self.labels[touched.own_neighbor]
        count = np.bincount(slot, minlength=self.n_rows * self.n_classes)
        return of_every_class(count.reshape(self.n_rows, self.n_classes), self.any_labels())

    def at(self, i: int) -> Field:
        """The rows among their neighbors at the i-th candidate of K."""
        return Field(self, i)


class Field:
    """Rows with open labels among their neighbors at one candidate of K: the general way."""

    def __init__(self, open_labels: OpenLabels, i: int) -> None:
        self.open = open_labels
        self._place = open_labels.table, i
        self.changes = open_labels.rows.touched(i, open_labels.joint)
        self._cached: dict[bool, tuple[TouchedPoints | None, PointCounts, np.ndarray]] = {}

    def by_label(self, beta: np.ndarray) -> ByLabel:
        """What each label gives at betas (n_beta,), or (n_rows, n_beta) if each row has its own."""
        # Held-out rows and points that only enter lists change a touched point in few ways.
        alike = self.changes.by_point or self.open.own_labels is not None
        shared = alike and beta.ndim == 1
        beta = np.atleast_2d(beta)
        if shared not in self._cached:
            touched = self.touched(shared) if len(self.changes.pair_row) else None
            self._cached[shared] = touched, *self._around_rows(touched)
        touched, own, of_entry = self._cached[shared]
        value = own_terms(own, own.b(*self._place, beta), self.open.own_labels is not None)
        if touched is not None:
            value += self._changed(touched, own.slots, of_entry, beta)
        return ByLabel(own.slots, value)

    def _around_rows(self, touched: TouchedPoints | None) -> tuple[PointCounts, np.ndarray]:
        """The classes in the rows' own neighborhoods, with slots for all that occur near each row.

        And the slots of what occurs around touched points, unless every class has one.
        """
        changes, n_rows, n_classes = self.changes, self.open.n_rows, self.open.n_classes
        row = [np.arange(n_rows), changes.own_row]
        label = [self.open.any_labels(), self.open.labels[changes.own_neighbor]]
        if touched is not None and not touched.after.slots.every:
            pair, entry = touched.entries
            row.append(changes.pair_row[pair])
            label.append(touched.after.slots.classes[entry])
        slots, slot = make_slots(n_rows, n_classes, np.concatenate(row), np.concatenate(label))
        own, near, of_entry = np.split(slot, [n_rows, n_rows + len(changes.own_row)])
        return PointCounts(slots, np.bincount(near, minlength=len(slots.classes)), own), of_entry

    def _changed(
        self, touched: TouchedPoints, slots: ClassSlots, of_entry: np.ndarray, beta: np.ndarray
    ) -> np.ndarray:
        """The summed changes of the touched points' terms, by the slots of the rows."""
        changes, before, after = self.changes, touched.before, touched.after
        place = self._place
        if len(beta) == 1:
            old = log_terms(before, before.b(*place, beta))[touched.of]
        else:
            beta, before = beta[changes.pair_row[touched.pair]], before.take(touched.of)
            old = log_terms(before, before.b(*place, beta))
        b = after.b(*place, beta, touched.weight)
        value = log_terms_joined(after, touched.weight, b)
        indptr = np.searchsorted(changes.pair_row, np.arange(changes.n_rows + 1))
        gather = sparse.csr_array(
            (np.ones(len(changes.pair_row)), touched.item_of_pair, indptr),
            shape=(changes.n_rows, len(touched.of)),
        )
        if slots.every:  # in the same order everywhere
            value -= after.slots.spread(old)
            return (gather @ value.reshape(len(old), -1)).reshape(-1, beta.shape[1])
        _, entries = touched.entries
        spread = sparse.coo_array(
            (np.ones(len(entries)), (of_entry, entries)),
            shape=(len(slots.classes), len(value)),
        ).tocsr()
        others = value[after.slots.last]
        value -= after.slots.spread(others)  # what a class has on top of those without a slot
        return spread @ value + slots.spread(gather @ (others - old))

    def touched(self, shared: bool) -> TouchedPoints:
        """The class counts of the touched points before and after, the open label apart."""
        changes = self.changes
        point, at = distinct(changes.pair_point, len(self.open.labels))
        at = at.astype(np.int64)  # keys are made of it
        pair = item_of_pair = np.arange(len(at))
        if shared:
            # What a point's term becomes does not depend on the row, or only on the row's label:
            # one item for each way.
            key, n_ways = at, 1
            if not changes.by_point:
                assert self.open.own_labels is not None
                label = self.open.own_labels[changes.pair_row]
                n_ways = self.open.n_classes * (int(changes.weight.max()) + 1)
                key = at * n_ways + label * (n_ways // self.open.n_classes) + changes.weight
            items, item_of_pair = distinct(key, len(point) * n_ways)
            pair = np.empty(len(items), dtype=np.int64)
            pair[item_of_pair] = np.arange(len(at))
        before, of, weight = self._counts(point), at[pair], changes.weight[pair]
        after = before.take(of)
        representative = np.zeros(len(at), dtype=bool)
        representative[pair] = True
        lost = representative[changes.lost_pair]
        item = item_of_pair[changes.lost_pair[lost]]
        slot = after.slots.find(item, self.open.labels[changes.lost_neighbor[lost]])
        np.subtract.at(after.count, slot, 1)
        return TouchedPoints(before, after, of, weight, pair, item_of_pair)

    def _counts(self, point: np.ndarray) -> PointCounts:
        """Class counts of some training points."""
        owner, neighbor = self.open.table.of(point, self._place[1])
        points = np.concatenate([np.arange(len(point)), owner])
        labels = self.open.labels[np.concatenate([point, neighbor])]
        slots, slot = make_slots(len(point), self.open.n_classes, points, labels)
        own, slot = np.split(slot, [len(point)])
        count = np.bincount(slot, minlength=len(slots.classes))
        return PointCounts(slots, count, own)


@dataclass(frozen=True)
class TouchedPoints:
    """Touched points before and after; an item is a point, or a pair if the row matters."""

    before: PointCounts  # of the points
    after: PointCounts  # of the items, the open label apart
    of: np.ndarray  # (n_items,) the item's point
    weight: np.ndarray  # (n_items,) how often the open label counts
    pair: np.ndarray  # (n_items,) a pair that the item stands for
    item_of_pair: np.ndarray  # (n_pairs,)

    @cached_property
    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Every slot of every pair: which pair, and which of the items' slots it is."""
        return expand(self.after.slots.indptr, self.item_of_pair)


def own_terms(rows: PointCounts, b: np.ndarray, known: bool) -> np.ndarray:
    """The rows' own log terms: (n_slots, n_beta).

    Less what they were among the training labels, if they were `known` to be there.
    """
    value = log_terms_of_classes(rows, b)
    return value - rows.slots.spread(value[rows.own]) if known else value
