"""The pseudo-likelihood at any K and beta of many rows at once, for samplers.

All that the evaluation of a row at one candidate of K needs is laid out once, for every candidate,
in flat arrays; a step of a sampler then evaluates one of these for each of its states, each at a
beta of its own, without a loop over K. Memory grows with rows times the sum of all K.
"""

from __future__ import annotations

import numpy as np

from kfree.likelihood.counts import PointCounts, of_every_class
from kfree.likelihood.open_labels import OpenLabels, own_terms
from kfree.likelihood.segments import segment_sum
from kfree.likelihood.slots import ByLabel
from kfree.likelihood.terms import log_terms, log_terms_joined
from kfree.likelihood.training_sum import Curves
from kfree.neighbors.flat import expand


class TrainingStates:
    """log p(z | beta, K) for states that each have their own candidate of K and beta."""

    def __init__(self, curves: Curves) -> None:
        classes, starts = curves.classes, curves.starts
        self._pattern_start = starts
        self._pattern_entry = classes.indptr  # first entry of each pattern
        self._entry_start = classes.indptr[starts]  # first entry of each K
        self._rate = curves.rate[classes.indices]
        self._number = classes.data
        self._own_rate = curves.own_rate
        self._n_points = curves.n_points

    def at(self, candidate: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """(n_states,) from candidates (n_states,) and beta (n_states,)."""
        state, entry = expand(self._entry_start, candidate)
        weight = self._number[entry] * np.exp(-self._rate[entry] * beta[state])
        owner, pattern = expand(self._pattern_start, candidate)
        length = self._entry_start[candidate + 1] - self._entry_start[candidate]
        first = np.cumsum(length) - length - self._entry_start[candidate]
        total = np.add.reduceat(weight, self._pattern_entry[pattern] + first[owner])
        term = -self._own_rate[pattern] * beta[owner] - np.log(total)
        return np.bincount(owner, term * self._n_points[pattern], minlength=len(candidate))


class RowStates:
    """log p(z, z' = c | beta, K) - log p(z | beta, K) for states with their own row, K and beta."""

    def __init__(self, rows: OpenLabels, n_k: int) -> None:
        self.n_rows, self._known, self._table = rows.n_rows, rows.own_labels is not None, rows.table
        fields = [rows.at(i) for i in range(n_k)]
        touched = [field.touched(shared=False) for field in fields]
        pair_row = [field.changes.pair_row for field in fields]
        n_pairs = [np.bincount(row, minlength=self.n_rows) for row in pair_row]
        self._indptr = np.concatenate([[0], np.cumsum(np.concatenate(n_pairs))])
        self._own = _tables([rows.own_counts(field.changes) for field in fields])
        self._before = _tables([points.before.take(points.of) for points in touched])
        self._after = _tables([points.after for points in touched])
        self._weight = np.concatenate([points.weight for points in touched])

    def at(
        self, row: np.ndarray, candidate: np.ndarray, beta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The log of the sum over classes (n_states,) and each class's share (n_states, n_classes).

        For rows that are held out the sum is taken without their own term.
        """
        cell = candidate * self.n_rows + row
        own = _take(self._own, cell)
        b = own.b(self._table, candidate, beta[:, None])
        value = own_terms(own, b, self._known)
        state, pair = expand(self._indptr, cell)
        if len(pair):
            change = self._change(pair, candidate[state], beta[state, None])
            indptr = np.concatenate([[0], np.cumsum(np.bincount(state, minlength=len(cell)))])
            value += segment_sum(change, indptr).reshape(value.shape)
        known = ByLabel(own.slots, value).conditional()
        return known.log_total[:, 0], known.table()[:, :, 0]

    def _change(self, pair: np.ndarray, candidate: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """New log term less old, by the class of the open label: (n_pairs, n_classes)."""
        before, after = _take(self._before, pair), _take(self._after, pair)
        weight = self._weight[pair]
        old = log_terms(before, before.b(self._table, candidate, beta))
        b = after.b(self._table, candidate, beta, weight)
        return log_terms_joined(after, weight, b).reshape(len(pair), -1) - old


def _tables(parts: list[PointCounts]) -> tuple[np.ndarray, np.ndarray]:
    """Counts (n, n_classes) and own classes (n,) of points, one after the other."""
    count = [part.slots.table(part.count).astype(np.int32) for part in parts]
    return np.concatenate(count), np.concatenate([part.slots.classes[part.own] for part in parts])


def _take(tables: tuple[np.ndarray, np.ndarray], points: np.ndarray) -> PointCounts:
    return of_every_class(*(table[points] for table in tables))
