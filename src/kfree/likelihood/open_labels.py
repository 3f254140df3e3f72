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

from kfree.likelihood.entering import Entering
from kfree.likelihood.slots import DENSE_CLASSES, ByLabel, ClassSlots, make_slots
from kfree.likelihood.terms import (
    Counts,
    log_terms,
    log_terms_joined,
    log_terms_of_classes,
    take,
)
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
    # candidates, each (n_classes, n), and what becomes of those that new rows enter.
    around: dict[int, np.ndarray] | None = None
    entering: Entering | None = None

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows

    def take(self, rows: np.ndarray) -> OpenLabels:
        """The same for some of the rows, given by increasing index."""
        own = None if self.own_labels is None else self.own_labels[rows]
        return replace(self, rows=self.rows.take(rows), own_labels=own)

    def at(self, i: int) -> Field:
        """The rows among their neighbors at the i-th candidate of K."""
        return Field(self, i)


class Field:
    """Rows with open labels among their neighbors at one candidate of K: the general way."""

    def __init__(self, open_labels: OpenLabels, i: int) -> None:
        self.open = open_labels
        self.candidate = i
        self.k = int(open_labels.table.k[i])
        self.changes = open_labels.rows.touched(i, open_labels.joint)
        self._cached: dict[bool, tuple[_Touched | None, _RowSlots]] = {}

    def by_label(self, beta: np.ndarray) -> ByLabel:
        """What each label gives at betas (n_beta,), or (n_rows, n_beta) if each row has its own."""
        # Held-out rows and points that only enter lists change a touched point in few ways.
        alike = self.changes.by_point or self.open.own_labels is not None
        shared = alike and beta.ndim == 1
        beta = np.atleast_2d(beta)
        if shared not in self._cached:
            touched = self._touched(shared) if len(self.changes.pair_row) else None
            self._cached[shared] = touched, self._row_slots(touched)
        touched, at = self._cached[shared]
        listed, absent = self._own(at, beta)
        if touched is not None:
            more_listed, more_absent = _changed(touched, self.changes, at, beta)
            listed += more_listed
            absent += more_absent
        return ByLabel(at.slots, listed, None if at.slots.every else absent)

    def own_counts(self) -> tuple[np.ndarray, np.ndarray]:
        """Class counts of the rows' own neighborhoods (n_rows, n_classes), and their divisors."""
        n_rows, n_classes = self.open.n_rows, self.open.n_classes
        slot = self.changes.own_row * n_classes + self.open.labels[self.changes.own_neighbor]
        counts = np.bincount(slot, minlength=n_rows * n_classes).reshape(n_rows, n_classes)
        return counts, self._divisor(np.bincount(self.changes.own_row, minlength=n_rows))

    def touched_counts(self) -> TouchedCounts:
        """Class counts of the touched points in each pair with a row, before and after."""
        n_classes = self.open.n_classes
        if not len(self.changes.pair_row):
            none, table = np.empty(0, dtype=np.int64), np.empty((0, n_classes), dtype=np.int64)
            return TouchedCounts(none, none, none, table, none, table, none)
        touched = self._touched(shared=False)
        before = np.zeros((len(touched.before.own), n_classes), dtype=np.int32)
        before[touched.slots.owner, touched.slots.classes] = touched.before.value
        after = np.zeros((len(touched.of), n_classes), dtype=np.int32)
        after[touched.after.owner, touched.slots.classes[touched.entry_slot]] = touched.after.value
        return TouchedCounts(
            self.changes.pair_row,
            self.open.labels[self.changes.pair_point],
            touched.weight,
            before[touched.of],
            touched.before.divisor[touched.of],
            after,
            touched.after.divisor,
        )

    def _row_slots(self, touched: _Touched | None) -> _RowSlots:
        """Slots of the classes that occur near each row."""
        changes, n_rows, n_classes = self.changes, self.open.n_rows, self.open.n_classes
        row = [changes.own_row, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)]
        label = [self.open.labels[changes.own_neighbor], *row[1:]]
        if self.open.own_labels is not None:
            row[1], label[1] = np.arange(n_rows), self.open.own_labels
        if touched is not None and n_classes > DENSE_CLASSES:
            row[2], label[2] = touched.spread(changes)
        slots, slot = make_slots(n_rows, n_classes, np.concatenate(row), np.concatenate(label))
        return _RowSlots(slots, *np.split(slot, np.cumsum([len(row[0]), len(row[1])])))

    def _own(self, at: _RowSlots, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The open row's own log term, for each listed class and for any other.

        Less what it was among the training labels, if it was among them.
        """
        slots = at.slots
        value = np.bincount(at.of_neighbor, minlength=len(slots.classes))
        divisor = self._divisor(np.bincount(self.changes.own_row, minlength=self.open.n_rows))
        n_absent = self.open.n_classes - np.diff(slots.indptr)
        counts = Counts(slots.indptr, value, n_absent, np.zeros(self.open.n_rows), divisor)
        listed, absent = log_terms_of_classes(counts, beta)
        if self.open.own_labels is not None:
            before = listed[at.of_label]
            listed -= before[slots.owner]
            absent -= before
        return listed, absent

    def _touched(self, shared: bool) -> _Touched:
        """The class counts of the touched points before and after, the open label apart."""
        changes = self.changes
        point, at = distinct(changes.pair_point, len(self.open.labels))
        at = at.astype(np.int64)  # keys are made of it
        before, slots, own_slot = self._counts(point)
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
        of = at[pair]
        _, entry_slot = expand(slots.indptr, of)
        indptr = np.concatenate([[0], np.cumsum(np.diff(slots.indptr)[of])])
        shift = indptr[:-1] - slots.indptr[of]  # from a point's slot to its item's entry
        value = before.value[entry_slot]
        representative = np.zeros(len(at), dtype=bool)
        representative[pair] = True
        lost = representative[changes.lost_pair]
        item = item_of_pair[changes.lost_pair[lost]]
        label = self.open.labels[changes.lost_neighbor[lost]]
        np.subtract.at(value, slots.find(of[item], label) + shift[item], 1)
        weight = changes.weight[pair]
        own_entry = own_slot[of] + shift
        size = before.divisor[of] - np.bincount(item, minlength=len(of)) + weight
        after = Counts(indptr, value, before.n_absent[of], value[own_entry], self._divisor(size))
        return _Touched(before, after, of, slots, entry_slot, own_entry, weight, pair, item_of_pair)

    def _counts(self, point: np.ndarray) -> tuple[Counts, ClassSlots, np.ndarray]:
        """Class counts of some training points."""
        owner, neighbor = self.open.table.of(point, self.candidate)
        label, own_label = self.open.labels[neighbor], self.open.labels[point]
        own = np.arange(len(point))
        slots, slot = make_slots(
            len(point),
            self.open.n_classes,
            np.concatenate([own, owner]),
            np.concatenate([own_label, label]),
        )
        own_slot, slot = np.split(slot, [len(point)])
        value = np.bincount(slot, minlength=len(slots.classes))
        divisor = self._divisor(np.bincount(owner, minlength=len(point)))
        n_absent = self.open.n_classes - np.diff(slots.indptr)
        return Counts(slots.indptr, value, n_absent, value[own_slot], divisor), slots, own_slot

    def _divisor(self, size: np.ndarray) -> np.ndarray:
        return size.astype(float) if self.open.table.by_size else np.full(len(size), float(self.k))


@dataclass(frozen=True)
class TouchedCounts:
    """Class counts of touched points in each pair with a row, the open label apart."""

    row: np.ndarray  # (n_pairs,)
    label: np.ndarray  # (n_pairs,) of the touched point
    weight: np.ndarray  # (n_pairs,) how often the open label will count
    before: np.ndarray  # (n_pairs, n_classes)
    before_divisor: np.ndarray  # (n_pairs,)
    after: np.ndarray  # (n_pairs, n_classes)
    after_divisor: np.ndarray  # (n_pairs,)


@dataclass(frozen=True)
class _Touched:
    """Touched points before and after; an item is a point, or a pair if the row matters."""

    before: Counts  # of the points
    after: Counts  # of the items
    of: np.ndarray  # (n_items,) the item's point
    slots: ClassSlots  # of the points
    entry_slot: np.ndarray  # (n_entries,) the slot that an item's entry comes from
    own_entry: np.ndarray  # (n_items,)
    weight: np.ndarray  # (n_items,)
    pair: np.ndarray  # (n_items,) a pair that the item stands for
    item_of_pair: np.ndarray  # (n_pairs,)

    def spread(self, changes: Touched) -> tuple[np.ndarray, np.ndarray]:
        """Every entry of every pair: its row and its class."""
        pair, entry = self.entries
        return changes.pair_row[pair], self.slots.classes[self.entry_slot[entry]]

    @cached_property
    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Every entry of every pair: which pair, and which entry it is."""
        return expand(self.after.indptr, self.item_of_pair)


@dataclass(frozen=True)
class _RowSlots:
    """Slots of the classes near each row, and where what occurs there has its slot."""

    slots: ClassSlots
    of_neighbor: np.ndarray  # the classes of the rows' own neighbors
    of_label: np.ndarray  # the rows' own labels, where these are known
    of_entry: np.ndarray  # the entries of touched points, if not every class has a slot


def _changed(
    touched: _Touched, changes: Touched, at: _RowSlots, beta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The summed changes of the touched points' terms: for listed classes, for any other."""
    n_items, n_rows, slots = len(touched.of), changes.n_rows, at.slots
    if len(beta) == 1:
        old = log_terms(touched.before, beta)[touched.of]
        item_beta = beta
    else:
        item_beta = beta[changes.pair_row[touched.pair]]
        old = log_terms(take(touched.before, touched.of), item_beta)
    entry, absent = log_terms_joined(touched.after, touched.own_entry, touched.weight, item_beta)
    n_pairs = np.bincount(changes.pair_row, minlength=n_rows)
    indptr = np.concatenate([[0], np.cumsum(n_pairs)])
    gather = sparse.csr_array(
        (np.ones(len(changes.pair_row)), touched.item_of_pair, indptr), shape=(n_rows, n_items)
    )
    absent_sum = gather @ (absent - old)
    if slots.every:  # every class is listed, in the same order everywhere
        entry -= old[touched.after.owner]
        shape = (n_items, slots.n_classes * beta.shape[1])
        return (gather @ entry.reshape(shape)).reshape(-1, beta.shape[1]), absent_sum
    _, entries = touched.entries
    place = sparse.coo_array(
        (np.ones(len(entries)), (at.of_entry, entries)),
        shape=(len(slots.classes), len(touched.entry_slot)),
    ).tocsr()
    entry -= absent[touched.after.owner]  # what a listed class has on top of any other
    return place @ entry + absent_sum[slots.owner], absent_sum
