"""The predictive of new points under the asymmetric structure, with many classes.

As in `entering`, a new point of class c that enters the list of n makes of it V(c), the log term of
n with its first K - 1 neighbors and one of class c. With S the sum of exp(b m) over the counts m
among those K - 1,

    V(c) = b [c is n's class] - log(S + exp(b m_c) (exp(b) - 1)),    b = beta / K,

so all classes that do not occur there, but n's own, have the same V. What the few others have
besides is one row of a sparse matrix, and the sum over all n entered is a sparse product. Each
entry of the matrix holds the values at all betas.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from kfree.likelihood.entering import LARGEST_EXPONENT
from kfree.likelihood.lists import ClassLists, class_lists
from kfree.likelihood.open_labels import Predictive
from kfree.likelihood.slots import ClassSlots
from kfree.likelihood.terms import Log
from kfree.neighbors.flat import distinct
from kfree.neighbors.search import Arrivals
from kfree.neighbors.structures import nearest_table


class EnteredLists:
    """New points and the lists that they enter, for any K up to `k_max`."""

    def __init__(
        self,
        arrivals: Arrivals,
        nearest: np.ndarray,
        labels: np.ndarray,
        n_classes: int,
        k_max: int,
    ) -> None:
        """`nearest` (n_points, ...) has the neighbors of the training points, nearest first."""
        point, self._place = distinct(arrivals.reverse_point, len(labels))
        self._row, self._rank = arrivals.reverse_row, arrivals.reverse_rank
        self._label = labels[point]
        self._lists = class_lists(
            nearest_table(nearest[point, :k_max]), labels, self._label, n_classes
        )
        self._near = labels[arrivals.forward[:, :k_max]]
        none = np.full(len(self._near), -1)
        self._own = class_lists(nearest_table(arrivals.forward[:, :k_max]), labels, none, n_classes)
        self._n_classes = n_classes

    def predictive(self, k: int, beta: np.ndarray) -> tuple[Predictive, None] | None:
        """The predictive at K = k and the betas (n_beta,); None if numbers would overflow.

        Nothing leaves the training sum.
        """
        b = beta / k
        if beta.max() > LARGEST_EXPONENT:
            return None
        entered = self._rank < k
        row, place = self._row[entered], self._place[entered]
        n_rows = len(self._near)
        n_entered = np.bincount(row, minlength=n_rows)
        first = np.cumsum(n_entered) - n_entered
        # The rows' own terms follow the points: every neighbor adds b to its class, and so does
        # every point entered.
        edge, indptr = self._lists.at(k - 1)
        start = indptr[-1] + k * np.arange(n_rows) + first
        length = indptr[-1] + k * n_rows + len(row)
        values, label = np.empty((length, len(b))), np.empty(length, dtype=np.int32)
        absent = self._changes(k, b, edge, indptr, values[: len(edge)])
        values[len(edge) :] = b
        label[: len(edge)] = self._lists.classes[edge]
        label[start[:, None] + np.arange(k)] = self._near[:, :k]
        label[(start + k - first)[row] + np.arange(len(row))] = self._label[place]
        starts = np.concatenate([indptr, start[1:], [length]])
        own = -np.log(totals(self._own, *self._own.at(k), k, b))
        rest = np.concatenate([absent, own])
        return summed(values, label, starts, rest, row, place, n_rows, self._n_classes), None

    def _changes(
        self, k: int, b: np.ndarray, edge: np.ndarray, indptr: np.ndarray, out: np.ndarray
    ) -> np.ndarray:
        """What entering the points' lists changes.

        Puts into `out` (n_entries, n_beta) V of the classes that occur near each point, as `edge`
        and `indptr` tell, less V of a class that does not occur; gives the latter less the present
        log term: (n_points, n_beta).
        """
        lists = self._lists
        powers, gain = np.exp(np.arange(k + 1)[:, None] * b), np.expm1(b)
        total = totals(lists, edge, indptr, k - 1, b)
        with_absent = total + gain
        np.take((powers - 1.0) * gain, lists.number[edge], axis=0, out=out, mode="clip")
        out *= np.repeat(1.0 / with_absent, np.diff(indptr), axis=0)
        out += 1.0
        np.negative(np.log(out, out=out), out=out)
        last = np.flatnonzero(lists.rank == k - 1)
        present = np.log(total + powers[lists.number[last].astype(np.int32) - 1] * gain)
        return present - lists.own[last][:, None] * b - np.log(with_absent)


def totals(
    lists: ClassLists, edge: np.ndarray, indptr: np.ndarray, k: int, b: np.ndarray
) -> np.ndarray:
    """The sums of exp(b m) over all classes, m their counts at K = k: (n, n_beta).

    `edge` and `indptr` are the classes that occur, as `lists.at(k)` gives them.
    """
    powers = np.exp(np.arange(k + 1)[:, None] * b)
    classes = sparse.csr_array((lists.n_points, k + 1))
    classes.data, classes.indices = np.ones(len(edge)), lists.number[edge].astype(np.int32)
    classes.indptr = indptr.astype(np.int32)
    return classes @ powers + (lists.n_classes - np.diff(indptr))[:, None]


def summed(
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
