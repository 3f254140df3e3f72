"""What an open label does among few classes, for new and held-out rows and every structure.

Points in the same state (`exchange`) change alike: each state is evaluated once, and the sum over
the pairs of a row is a product. For new rows among lists of nearest neighbors the changes depend on
the point alone, and those that most rows need are known beforehand (`entering`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from kfree.likelihood.counts import PointCounts, RisingCounts, of_every_class
from kfree.likelihood.exchange import WORDS, exchanged, hashes, states
from kfree.likelihood.open_labels import OpenLabels
from kfree.likelihood.terms import log_terms, log_terms_joined
from kfree.neighbors.flat import distinct_hashes, expand
from kfree.neighbors.structures import Touched

# Up to so many classes all of them are looked at for every touched point.
FEW_CLASSES = 32
# A table of rows and states that is counted out in full and multiplied is faster than adding up the
# pairs one by one while it has up to so many cells for each pair: 1 where 10 columns are summed, 4
# where there are 40 or more (measured with 10 to 160 columns and 50 to 500 pairs a row).
COLUMNS_PER_CELL = 10
MOST_CELLS = 4


class FewClasses:
    """log p(z, z' = c | beta, K) - log p(z | beta, K) of a block of rows, for rising candidates.

    For held-out rows p(z) is without their own terms.
    """

    def __init__(self, rows: OpenLabels) -> None:
        self._open = rows
        if rows.table.nearest:
            # New rows have no class yet: any will do.
            own = np.zeros(rows.n_rows, dtype=np.int64)
            self._own = RisingCounts(rows.rows.own_lists(), rows.labels, own, rows.n_classes)
            if rows.joint:
                row, point, cell = rows.rows.exchanges()
                order = np.argsort(cell.astype(np.int16), kind="stable")
                self._pairs = row[order], point[order]  # by the first candidate that has them
                self._n_pairs = np.bincount(cell, minlength=len(rows.table.k)).cumsum()

    def at(self, i: int, beta: np.ndarray) -> np.ndarray:
        """Values at the i-th candidate and the betas (n_beta,): (n_rows, n_classes, n_beta)."""
        rows = self._open
        if rows.table.nearest:
            own = of_every_class(self._own.by_class(i), np.zeros(rows.n_rows, dtype=np.int64))
            log_class = self._own_terms(own, i, beta[None])
            if rows.joint:
                self._add_exchanges(log_class, i, beta)
            return log_class
        touched = rows.rows.touched(i, rows.joint)
        log_class = self._own_terms(rows.own_counts(touched), i, beta[None])
        if len(touched.pair_row):
            log_class += self._changes(touched, i, beta[None])
        return log_class

    def _points_at(self, i: int) -> _Points:
        """The points that the rows touch, at the i-th candidate; all points if these are known."""
        rows = self._open
        if rows.around is not None and i in rows.around:
            every = np.arange(len(rows.labels))
            return _Points(every, every, rows.labels, rows.around[i])
        points, place, counts = self._touched_points
        return _Points(points, place, rows.labels[points], counts.by_class(i))

    @cached_property
    def _touched_points(self) -> tuple[np.ndarray, np.ndarray, RisingCounts]:
        rows = self._open
        points = rows.rows.points()
        place = np.zeros(len(rows.labels), dtype=np.int32)
        place[points] = np.arange(len(points))
        table, own = rows.table.take(points), rows.labels[points]
        return points, place, RisingCounts(table, rows.labels, own, rows.n_classes)

    def _own_terms(self, counts: PointCounts, i: int, beta: np.ndarray) -> np.ndarray:
        """The rows' own terms: (n_rows, n_classes, n_beta)."""
        log_class = log_terms(counts, counts.b(self._open.table, i, beta), slice(None))
        log_class = log_class.reshape(self._open.n_rows, self._open.n_classes, -1)
        own = self._open.own_labels
        if own is not None:
            log_class -= log_class[np.arange(len(own)), own][:, None, :]
        return log_class

    def _add_exchanges(self, log_class: np.ndarray, i: int, beta: np.ndarray) -> None:
        """Add what becomes of the points in whose lists a row is: each exchanges one neighbor.

        Its last one for a new point, the row itself if that is held out.
        """
        rows = self._open
        if not self._n_pairs[i]:
            return
        row, point = self._up_to(i)
        known = None if rows.entering is None else rows.entering.at(i, beta)
        if known is not None:
            state, change = known[0][point], known[1]
        else:
            points, b = self._points_at(i), beta[None] / rows.table.k[i]
            count, label, place = points.count, points.label, points.place[point]
            if rows.own_labels is not None:
                count, label, gone = count[place], label[place], rows.own_labels[row]
            else:
                last = rows.rows.graph.last(i)[points.points]  # type: ignore[attr-defined]
                gone = rows.labels[last]
            shown_by, gone, state = states(count, label, gone)
            change = exchanged(count[shown_by], label[shown_by], gone, b)
            if rows.own_labels is None:
                state = state[place]
        log_class += _sum_over_pairs(row, state, change, rows.n_rows).reshape(log_class.shape)

    def _up_to(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows and points of the pairs that count at the i-th candidate."""
        row, point = self._pairs
        return row[: self._n_pairs[i]], point[: self._n_pairs[i]]

    def _changes(self, touched: Touched, i: int, beta: np.ndarray) -> np.ndarray:
        """New log terms less old ones, summed over the pairs: (n_rows, n_classes, n_beta)."""
        rows, points = self._open, self._points_at(i)
        place = points.place[touched.pair_point]
        key = hashes(points.count, points.label)
        shown_by, state, _ = distinct_hashes(key)
        before = of_every_class(points.count[shown_by], points.label[shown_by])
        old = log_terms(before, before.b(rows.table, i, beta))
        old = _sum_over_pairs(touched.pair_row, state[place], old, rows.n_rows)
        # What a point becomes depends on what is left of its counts. A hash is a sum over
        # neighbors, so that those that go are taken away from it.
        key = key[place] + touched.weight.astype(np.uint64) * WORDS[2, 0]
        if len(touched.lost_pair):
            first = np.flatnonzero(np.diff(touched.lost_pair, prepend=-1))
            lost = WORDS[0][rows.labels[touched.lost_neighbor]]
            key[touched.lost_pair[first]] -= np.add.reduceat(lost, first)
        shown_by, state, _ = distinct_hashes(key)
        place, weight = place[shown_by], touched.weight[shown_by]
        count = points.count[place]
        first = np.searchsorted(touched.lost_pair, np.arange(len(state) + 1))
        owner, loss = expand(first, shown_by)
        slot = owner * np.int64(rows.n_classes) + rows.labels[touched.lost_neighbor[loss]]
        count = count - np.bincount(slot, minlength=count.size).reshape(count.shape)
        after = of_every_class(count, points.label[place])
        new = log_terms_joined(after, weight, after.b(rows.table, i, beta, weight))
        new = new.reshape(len(shown_by), -1)
        new = _sum_over_pairs(touched.pair_row, state, new, rows.n_rows)
        return new.reshape(rows.n_rows, rows.n_classes, -1) - old[:, None, :]


@dataclass(frozen=True)
class _Points:
    """Training points and the classes around them at one candidate."""

    points: np.ndarray  # (n,)
    place: np.ndarray  # where each of all training points stands among these
    label: np.ndarray  # (n,)
    count: np.ndarray  # (n, n_classes)


def _sum_over_pairs(
    row: np.ndarray, state: np.ndarray, value: np.ndarray, n_rows: int
) -> np.ndarray:
    """The sum of `value[state]` over the pairs of each row: (n_rows, n_columns)."""
    n_states, n_columns = value.shape
    if n_rows * n_states <= min(MOST_CELLS, n_columns / COLUMNS_PER_CELL) * len(row):
        number = np.bincount(row * np.int64(n_states) + state, minlength=n_rows * n_states)
        return number.reshape(n_rows, n_states).astype(float) @ value
    # Not made a compressed table first, which would sort all pairs.
    return sparse.coo_array((np.ones(len(row)), (row, state)), shape=(n_rows, n_states)) @ value
