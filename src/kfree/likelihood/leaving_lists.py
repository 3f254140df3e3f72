"""The predictive of held-out training rows under the asymmetric structure, with many classes.

As in `leaving`, a row i of label l that is held out stays in the lists of its neighbors' neighbors;
only its label is open. A point n that has i among its K nearest, m of which are of class l, becomes

    V(c) = b [c is n's class] - log(S + exp(b m_c) (exp(b) - 1)),    b = beta / K,

with S the sum of exp(b m') over the counts m' without i. S depends on n and on m alone, so that one
item, a row of a sparse matrix as in `entering_lists`, serves all rows in n's list that have as many
of their own class there. Only class l itself has one neighbor less than the item says; what that
changes belongs to one class of the row, and is added there.
"""

from __future__ import annotations

import numpy as np

from kfree.likelihood.entering import LARGEST_EXPONENT
from kfree.likelihood.entering_lists import summed, totals
from kfree.likelihood.lists import class_lists
from kfree.likelihood.open_labels import Predictive
from kfree.likelihood.terms import Log
from kfree.neighbors.flat import distinct, expand
from kfree.neighbors.structures import HeldOut, nearest_table

# Up to here, taking one neighbor away from a sum of exponentials leaves all but three digits.
LARGEST_STEP = 7.0


class LeavingLists:
    """Held-out rows and the lists that they are in, for any K up to `k_max`."""

    def __init__(self, visit: HeldOut, labels: np.ndarray, n_classes: int, k_max: int) -> None:
        nearest = visit.graph.indices[:, :k_max]
        indptr, source, rank = visit.graph.reverse
        row, edge = expand(indptr, visit.rows)
        kept = rank[edge] < k_max
        self._row, edge = row[kept], edge[kept]
        self._rank = rank[edge]
        point, self._place = distinct(source[edge], len(labels))
        self._label = labels[point]
        self._row_label = labels[visit.rows]
        self._lists = class_lists(nearest_table(nearest[point]), labels, self._label, n_classes)
        # Where each place of the lists stands when they are sorted by class.
        start = np.arange(len(point)) * nearest.shape[1]
        by_place = np.empty(nearest.shape[1] * len(point), dtype=np.int64)
        by_place[np.repeat(start, nearest.shape[1]) + self._lists.rank] = np.arange(len(by_place))
        self._edge = by_place[start[self._place] + self._rank]
        near = nearest[visit.rows]
        self._near = labels[near]
        self._own = class_lists(nearest_table(near), labels, self._row_label, n_classes)
        self._n_classes = n_classes

    def predictive(self, k: int, beta: np.ndarray) -> tuple[Predictive, Log] | None:
        """The predictive at K = k and the betas (n_beta,), and what leaves the training sum.

        None if too many digits would be lost.
        """
        b = beta / k
        if b.max() > LARGEST_STEP or beta.max() > LARGEST_EXPONENT:
            return None
        inside = self._rank < k
        row, place, edge = self._row[inside], self._place[inside], self._edge[inside]
        lists, n_rows = self._lists, len(self._near)
        powers, gain = np.exp(np.arange(k + 1)[:, None] * b), np.expm1(b)
        extra = (powers - 1.0) * gain
        speaks, indptr = lists.at(k)
        total = totals(lists, speaks, indptr, k, b)
        # How many of the row's class are in the point's list: the last of them speaks for it.
        number = lists.number[speaks[np.searchsorted(speaks, edge)]].astype(np.int64)
        items, item = distinct(place * np.int64(k + 1) + number, len(total) * (k + 1))
        item_place, item_number = np.divmod(items, k + 1)
        total = total[item_place]
        with_absent = total - powers[item_number] + powers[item_number - 1] + gain
        unit = 1.0 / with_absent  # (n_items, n_beta)
        owner, entry = expand(indptr, item_place)
        entry = speaks[entry]
        # The class of the row itself has one neighbor less than its item says.
        own_unit = unit[item]
        less = np.log1p(extra[number] * own_unit) - np.log1p(extra[number - 1] * own_unit)
        n_touched = np.bincount(row, minlength=n_rows)
        first = np.cumsum(n_touched) - n_touched
        start = len(entry) + (k + 1) * np.arange(n_rows) + first
        length = len(entry) + (k + 1) * n_rows + len(row)
        values, label = np.empty((length, len(b))), np.empty(length, dtype=np.int32)
        of_items = values[: len(entry)]
        np.take(extra, lists.number[entry], axis=0, out=of_items, mode="clip")
        of_items *= unit[owner]
        np.negative(np.log1p(of_items, out=of_items), out=of_items)
        label[: len(entry)] = lists.classes[entry]
        # The rows' own entries: neighbors, points touched, and the class itself.
        values[len(entry) :] = b
        label[start[:, None] + np.arange(k)] = self._near[:, :k]
        label[(start + k - first)[row] + np.arange(len(row))] = self._label[place]
        last = start + k + n_touched
        label[last], values[last] = self._row_label, _row_sums(less, row, n_rows)
        starts = np.concatenate([[0], np.cumsum(np.diff(indptr)[item_place]), start[1:], [length]])
        own_edge, own_indptr = self._own.at(k)
        own_total = np.log(totals(self._own, own_edge, own_indptr, k, b))
        agreeing = np.bincount(row, lists.own[edge], minlength=n_rows)[:, None]
        rest = np.concatenate([np.log(total * unit), -own_total - agreeing * b])
        found = summed(values, label, starts, rest, row, item, n_rows, self._n_classes)
        own_number = (self._near[:, :k] == self._row_label[:, None]).sum(axis=1)[:, None]
        return found, Log(own_total - own_number * b)


def _row_sums(values: np.ndarray, row: np.ndarray, n_rows: int) -> np.ndarray:
    columns = [np.bincount(row, column, minlength=n_rows) for column in values.T]
    return np.stack(columns, axis=1)
