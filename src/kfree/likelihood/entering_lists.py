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

    def predictive(self, k: int, beta: np.ndarray) -> Predictive | None:
        """The predictive at K = k and the betas (n_beta,); None if numbers would overflow."""
        b = beta / k
        if beta.max() > LARGEST_EXPONENT:
            return None
        entered = self._rank < k
        row, place = self._row[entered], self._place[entered]
        n_rows, n_points = len(self._near), len(self._label)
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
        classes = _matrix(
            values, label, np.concatenate([indptr, start[1:], [length]]), self._n_classes
        )
        # A row sums up its own and those of the points that it enters.
        which = np.empty(n_rows + len(row), dtype=np.int32)
        own = np.arange(n_rows) + first
        which[own] = n_points + np.arange(n_rows)
        which[row + 1 + np.arange(len(row))] = place
        sums = _matrix(
            np.ones((len(which), 1)), which, np.append(own, len(which)), n_points + n_rows
        )
        found = sums @ classes
        near, ends = self._own.at(k)
        rest = sums @ np.concatenate([absent, -np.log(self._totals(self._own, near, ends, k, b))])
        slots = ClassSlots(found.indptr, found.indices, self._n_classes, every=False)
        listed = found.data[:, 0]
        listed += np.repeat(rest, np.diff(found.indptr), axis=0)
        return Predictive(slots, Log(listed), Log(rest))

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
        total = self._totals(lists, edge, indptr, k - 1, b)
        with_absent = total + gain
        np.take((powers - 1.0) * gain, lists.number[edge], axis=0, out=out, mode="clip")
        out *= np.repeat(1.0 / with_absent, np.diff(indptr), axis=0)
        out += 1.0
        np.negative(np.log(out, out=out), out=out)
        last = np.flatnonzero(lists.rank == k - 1)
        present = np.log(total + powers[lists.number[last].astype(np.int32) - 1] * gain)
        return present - lists.own[last][:, None] * b - np.log(with_absent)

    def _totals(
        self, lists: ClassLists, edge: np.ndarray, indptr: np.ndarray, k: int, b: np.ndarray
    ) -> np.ndarray:
        """The sums of exp(b m) over all classes, m their counts at K = k: (n, n_beta)."""
        powers = np.exp(np.arange(k + 1)[:, None] * b)
        classes = sparse.csr_array((lists.n_points, k + 1))
        classes.data, classes.indices = np.ones(len(edge)), lists.number[edge].astype(np.int32)
        classes.indptr = indptr.astype(np.int32)
        return classes @ powers + (self._n_classes - np.diff(indptr))[:, None]


def _matrix(
    values: np.ndarray, column: np.ndarray, indptr: np.ndarray, n_columns: int
) -> sparse.bsr_array:
    """A sparse matrix whose entries are rows of values (n_entries, n); columns may repeat."""
    n = values.shape[1]
    matrix = sparse.bsr_array((len(indptr) - 1, n_columns * n), blocksize=(1, n))
    matrix.data = values[:, None, :]
    matrix.indices, matrix.indptr = column.astype(np.int32), indptr.astype(np.int32)
    return matrix
