"""What an open label does among many classes, for new and held-out rows of nearest neighbors.

A row that is in the list of n exchanges one neighbor of class l for the open label. With m_c the
counts around n before, b = beta / K and S the sum of exp(b m) over all classes once one neighbor of
class l is gone,

    V(c) = b [c is n's class] - log(S + exp(b m_c) (exp(b) - 1)),    c other than l,

so all classes that do not occur there, but n's own, have the same V. S depends on n and on m_l
alone: one item serves all pairs of n in which as many neighbors have the class that goes. What the
few classes near n have besides is one row of a sparse matrix, and the sum over all points touched
is a sparse product, each entry of which holds the values at all betas. Class l itself has one
neighbor less than the item says; what that changes is added for each pair.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from kfree.likelihood.class_lists import ClassLists, class_lists
from kfree.likelihood.open_labels import OpenLabels, Predictive
from kfree.likelihood.slots import ClassSlots
from kfree.likelihood.terms import Log
from kfree.neighbors.flat import distinct, expand

# Above this, exp overflows.
LARGEST_EXPONENT = 600.0
# Up to here, taking one neighbor away from a sum of exponentials leaves all but three digits.
LARGEST_STEP = 7.0


class ManyClasses:
    """The predictive of a block of rows among lists of nearest neighbors."""

    def __init__(self, rows: OpenLabels) -> None:
        self._open, labels = rows, rows.labels
        points = rows.rows.points()
        self._place = np.zeros(len(labels), dtype=np.int64)
        self._place[points] = np.arange(len(points))
        self._label = labels[points]
        self._lists = class_lists(rows.table.take(points), labels, self._label, rows.n_classes)
        own = np.full(rows.n_rows, -1) if rows.own_labels is None else rows.own_labels
        self._own = class_lists(rows.rows.own_lists(), labels, own, rows.n_classes)

    def predictive(self, i: int, beta: np.ndarray) -> tuple[Predictive, Log | None] | None:
        """The predictive at the i-th candidate and the betas (n_beta,), and what leaves the sum.

        None if numbers would overflow or too many digits would be lost.
        """
        rows, k = self._open, int(self._open.table.k[i])
        b = beta / k
        if b.max() > LARGEST_STEP or beta.max() > LARGEST_EXPONENT:
            return None
        touched = rows.rows.touched(i, joint=True)
        row, place = touched.pair_row, self._place[touched.pair_point]
        lost = rows.labels[touched.lost_neighbor]
        lists, n_rows, n_classes = self._lists, touched.n_rows, rows.n_classes
        powers, gain = np.exp(np.arange(k + 1)[:, None] * b), np.expm1(b)
        extra = (powers - 1.0) * gain
        speaks, indptr = lists.at(i)
        total = _totals(lists, speaks, indptr, k, b)
        # How many neighbors of the class that goes the touched point has.
        owner = np.repeat(np.arange(lists.n_points), np.diff(indptr))
        keys = owner * np.int64(n_classes) + lists.classes[speaks]
        found = np.searchsorted(keys, place * np.int64(n_classes) + lost)
        number = lists.number[speaks[found]].astype(np.int64)
        items, item = distinct(place * np.int64(k + 1) + number, len(total) * (k + 1))
        item_place, item_number = np.divmod(items, k + 1)
        total = total[item_place]
        unit = 1.0 / (total - powers[item_number] + powers[item_number - 1] + gain)
        owner, entry = expand(indptr, item_place)
        entry = speaks[entry]
        own_unit = unit[item]
        less = np.log1p(extra[number] * own_unit) - np.log1p(extra[number - 1] * own_unit)
        # The entries of the items come first, then for each row those of its own neighbors, of the
        # points that it touches and of the classes that these lose.
        n_touched = np.bincount(row, minlength=n_rows)
        first = np.cumsum(n_touched) - n_touched
        start = len(entry) + k * np.arange(n_rows) + 2 * first
        length = len(entry) + k * n_rows + 2 * len(row)
        values, label = np.empty((length, len(b))), np.empty(length, dtype=np.int32)
        of_items = values[: len(entry)]
        np.take(extra, lists.number[entry], axis=0, out=of_items, mode="clip")
        of_items *= unit[owner]
        np.negative(np.log1p(of_items, out=of_items), out=of_items)
        label[: len(entry)] = lists.classes[entry]
        values[len(entry) :] = b
        neighbor = touched.own_neighbor.reshape(n_rows, k)
        label[start[:, None] + np.arange(k)] = rows.labels[neighbor]
        where = (start + k)[row] + np.arange(len(row)) - first[row]
        label[where] = self._label[place]
        where += n_touched[row]
        label[where], values[where] = lost, less
        starts = np.concatenate([[0], np.cumsum(np.diff(indptr)[item_place]), start[1:], [length]])
        own_total = np.log(_totals(self._own, *self._own.at(i), k, b))
        agreeing = np.bincount(row, lost == self._label[place], minlength=n_rows)[:, None]
        rest = np.concatenate([np.log(total * unit), -own_total - agreeing * b])
        predictive = _summed(values, label, starts, rest, row, item, n_rows, n_classes)
        if rows.own_labels is None:
            return predictive, None
        own_number = (rows.labels[neighbor] == rows.own_labels[:, None]).sum(axis=1)[:, None]
        return predictive, Log(own_total - own_number * b)


def _totals(
    lists: ClassLists, edge: np.ndarray, indptr: np.ndarray, k: int, b: np.ndarray
) -> np.ndarray:
    """The sums of exp(b m) over all classes, m their counts at K = k: (n, n_beta)."""
    powers = np.exp(np.arange(k + 1)[:, None] * b)
    classes = sparse.csr_array((lists.n_points, k + 1))
    classes.data, classes.indices = np.ones(len(edge)), lists.number[edge].astype(np.int32)
    classes.indptr = indptr.astype(np.int32)
    return classes @ powers + (lists.n_classes - np.diff(indptr))[:, None]


def _summed(
    values: np.ndarray,
    label: np.ndarray,
    indptr: np.ndarray,
    rest: np.ndarray,
    row: np.ndarray,
    item: np.ndarray,
    n_rows: int,
    n_classes: int,
) -> Predictive:
    """The predictive of rows, each the sum of what it has itself and of the items it touches.

    Parameters
    ----------
    values, label, indptr : values (n_entries, n_beta) of some classes, compressed: those of the
        items first, then those of the rows themselves; a class may be there several times
    rest : (n_items + n_rows, n_beta) the values of all other classes, to which the former add
    row, item : which row touches which item, ordered by row
    """
    n_items = len(rest) - n_rows
    n_touched = np.bincount(row, minlength=n_rows)
    own = np.arange(n_rows) + np.cumsum(n_touched) - n_touched
    which = np.empty(n_rows + len(row), dtype=np.int32)
    which[own] = n_items + np.arange(n_rows)
    which[row + 1 + np.arange(len(row))] = item
    sums = _matrix(np.ones((len(which), 1)), which, np.append(own, len(which)), len(rest))
    found = sums @ _matrix(values, label, indptr, n_classes)
    others = sums @ rest
    slots = ClassSlots(found.indptr, found.indices, n_classes, every=False)
    listed = found.data[:, 0]
    listed += np.repeat(others, np.diff(found.indptr), axis=0)
    return Predictive(slots, Log(listed), Log(others))


def _matrix(
    values: np.ndarray, column: np.ndarray, indptr: np.ndarray, n_columns: int
) -> sparse.bsr_array:
    """A sparse matrix whose entries are rows of values (n_entries, n); columns may repeat."""
    n = values.shape[1]
    matrix = sparse.bsr_array((len(indptr) - 1, n_columns * n), blocksize=(1, n))
    matrix.data = values[:, None, :]
    matrix.indices, matrix.indptr = column.astype(np.int32), indptr.astype(np.int32)
    return matrix
