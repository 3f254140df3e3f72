"""What an open label does among few classes, for new and held-out rows and every structure.

Points in the same state (`exchange`) change alike: each state is evaluated once, and the sum over
the pairs of a row is a product. For new rows among lists of nearest neighbors the changes depend on
the point alone, and those that most rows need are known beforehand (`entering`).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy import sparse

from kfree.likelihood.counts import RisingCounts, of_every_class
from kfree.likelihood.exchange import WORDS, exchanged, hashes, states
from kfree.likelihood.open_labels import OpenLabels, own_terms
from kfree.likelihood.slots import ByLabel
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
            own = rows.any_labels()
            self._own = RisingCounts(rows.rows.own_lists(), rows.labels, own, rows.n_classes)
            if rows.joint:
                row, point, cell = rows.rows.exchanges()
                order = np.argsort(cell.astype(np.int16), kind="stable")
                self._pairs = row[order], point[order]  # by the first candidate that has them
                self._n_pairs = np.bincount(cell, minlength=len(rows.table.k)).cumsum()

    def by_label(self, i: int, beta: np.ndarray) -> ByLabel:
        """Values at the i-th candidate and the betas (n_beta,)."""
        rows, beta = self._open, beta[None]
        if rows.table.nearest:
            own = of_every_class(self._own.by_class(i), rows.any_labels())
            changes = self._exchanges(i, beta) if rows.joint and self._n_pairs[i] else None
        else:
            touched = rows.rows.touched(i, rows.joint)
            own = rows.own_counts(touched)
            changes = self._changes(touched, i, beta) if len(touched.pair_row) else None
        value = own_terms(own, own.b(rows.table, i, beta), rows.own_labels is not None)
        if changes is not None:
            value += changes.reshape(value.shape)
        return ByLabel(own.slots, value)

    def _around(self, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The points that the rows touch, or all points if the classes around these are known.

        Where each of all points stands among them, and these classes: (n, n_classes).
        """
        rows = self._open
        if rows.around is not None and i in rows.around:
            every = np.arange(len(rows.labels))
            return every, every, rows.around[i]
        points, place, counts = self._touched_points
        return points, place, counts.by_class(i)

    @cached_property
    def _touched_points(self) -> tuple[np.ndarray, np.ndarray, RisingCounts]:
        rows = self._open
        points = rows.rows.points()
        place = np.zeros(len(rows.labels), dtype=np.int32)
        place[points] = np.arange(len(points))
        table, own = rows.table.take(points), rows.labels[points]
        return points, place, RisingCounts(table, rows.labels, own, rows.n_classes)

    def _exchanges(self, i: int, beta: np.ndarray) -> np.ndarray:
        """What becomes of the points in whose lists a row is: (n_rows, n_classes * n_beta).

        Each exchanges one neighbor: its last one for a new point, the row itself if that is held
        out.
        """
        rows = self._open
        row, point = (part[: self._n_pairs[i]] for part in self._pairs)
        known = None if rows.entering is None else rows.entering.at(i, beta[0])
        if known is not None:
            state, change = known[0][point], known[1]
        else:
            points, place, count = self._around(i)
            if rows.own_labels is not None:
                points, gone = point, rows.own_labels[row]
                count = np.take(count, place[point], axis=0)  # in a tenth of the time of an index
            else:
                last = rows.rows.graph.last(i)[points]  # type: ignore[attr-defined]
                gone = rows.labels[last]
            label = rows.labels[points]
            shown_by, gone, state = states(count, label, gone)
            change = exchanged(count[shown_by], label[shown_by], gone, beta / rows.table.k[i])
            if rows.own_labels is None:
                state = state[place[point]]
        return _sum_over_pairs(row, state, change, rows.n_rows)

    def _changes(self, touched: Touched, i: int, beta: np.ndarray) -> np.ndarray:
        """New log terms less old ones, summed over the pairs: (n_rows, n_classes * n_beta)."""
        rows, (points, place, counts) = self._open, self._around(i)
        label, place = rows.labels[points], place[touched.pair_point]
        key = hashes(counts, label)
        shown_by, state, _ = distinct_hashes(key)
        before = of_every_class(counts[shown_by], label[shown_by])
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
        count = counts[place]
        first = np.searchsorted(touched.lost_pair, np.arange(len(state) + 1))
        owner, loss = expand(first, shown_by)
        slot = owner * np.int64(rows.n_classes) + rows.labels[touched.lost_neighbor[loss]]
        count = count - np.bincount(slot, minlength=count.size).reshape(count.shape)
        after = of_every_class(count, label[place])
        new = log_terms_joined(after, weight, after.b(rows.table, i, beta, weight))
        new = new.reshape(len(shown_by), -1)
        new = _sum_over_pairs(touched.pair_row, state, new, rows.n_rows)
        return new - np.tile(old, rows.n_classes)


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
