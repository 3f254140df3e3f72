"""What an open label does among few classes, for new and held-out rows and every structure.

Points in the same state (`exchange`) change alike: each state is evaluated once, and the sum over
the pairs of a row is a product. For new rows among lists of nearest neighbors the changes depend on
the point alone, and those that most rows need are known beforehand (`entering`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from scipy import sparse

from kfree.likelihood.counts import RisingCounts, of_every_class
from kfree.likelihood.exchange import (
    WORDS,
    exchanged,
    exchanged_for_any,
    hashes,
    states,
    states_of_pairs,
)
from kfree.likelihood.open_labels import OpenLabels, own_terms
from kfree.likelihood.slots import ByLabel
from kfree.likelihood.terms import log_terms, log_terms_joined
from kfree.neighbors.flat import distinct_hashes, expand
from kfree.neighbors.structures import Touched

# Up to so many classes, or so many for each neighbor looked at, all of them count as few and are
# looked at for every touched point; else those that occur around it are. 34 separated classes of
# 3,000 embeddings, k_max = 380: 0.4 s for 300 rows, 4.5 s in the general way; 128 classes drawn by
# lot: 0.7, 1.4 and 3.8 times as fast as the general way with k_max = 32, 64 and 128.
FEW_CLASSES = 32
CLASSES_PER_NEIGHBOR = 2
MOST_CLASSES = 1024
# About how many numbers of states are held at a time (128 MiB): of as many states as that allows.
STATE_NUMBERS = 1 << 24
# A table of rows and states that is counted out in full and multiplied is faster than adding up the
# pairs one by one while it has up to so many cells for each pair: 1 where 10 columns are summed, 4
# where there are 40 or more (measured with 10 to 160 columns and 50 to 500 pairs a row).
COLUMNS_PER_CELL = 10
MOST_CELLS = 4


def are_few(n_classes: int, k_max: int) -> bool:
    """Whether all classes are looked at for every touched point."""
    return n_classes <= min(MOST_CLASSES, max(FEW_CLASSES, CLASSES_PER_NEIGHBOR * k_max))


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
                order = np.argsort(cell.astype(np.uint16), kind="stable")
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
        """What becomes of the points in whose lists a row is: (n_rows, n_classes, n_beta).

        Each exchanges one neighbor: its last one for a new point, the row itself if that is held
        out.
        """
        rows = self._open
        row, point = (part[: self._n_pairs[i]] for part in self._pairs)
        known = None if rows.entering is None else rows.entering.at(i, beta[0])
        if known is not None:
            change = _sum_over_pairs(row, known[0][point], known[1], rows.n_rows)
            return change.reshape(rows.n_rows, rows.n_classes, -1)
        points, place, count = self._around(i)
        label, way = rows.labels[points], exchanged
        if rows.own_labels is None:
            last = rows.rows.graph.last(i)[points]  # type: ignore[attr-defined]
            shown_by, gone, state = states(count, label, rows.labels[last])
            state = state[place[point]]
        else:
            gone, way = rows.own_labels[row], exchanged_for_any
            shown_by, gone, state = states_of_pairs(count, label, place[point], gone)
        b = beta / rows.table.k[i]

        def of_states(part: slice) -> np.ndarray:
            some = shown_by[part]
            return way(count[some], label[some], gone[part], b).reshape(len(some), -1)

        change = self._sum(row, state, len(shown_by), beta.shape[1], of_states)
        if rows.own_labels is not None:  # with its own label a row is what it was
            change[np.arange(rows.n_rows), rows.own_labels] = 0.0
        return change

    def _sum(
        self,
        row: np.ndarray,
        state: np.ndarray,
        n_states: int,
        n_beta: int,
        of_states: Callable[[slice], np.ndarray],
    ) -> np.ndarray:
        """What states give, summed over the pairs of each row: (n_rows, n_classes, n_beta).

        As many states at a time as memory allows.
        """
        n_rows, n_classes = self._open.n_rows, self._open.n_classes
        step = max(1, STATE_NUMBERS // (n_classes * n_beta))
        if n_states <= step:
            total = _sum_over_pairs(row, state, of_states(slice(None)), n_rows)
            return total.reshape(n_rows, n_classes, n_beta)
        order = np.argsort(state, kind="stable")
        row, state = row[order], state[order]
        total = np.zeros((n_rows, n_classes * n_beta))
        for start in range(0, n_states, step):
            part = slice(*np.searchsorted(state, [start, start + step]))
            value = of_states(slice(start, start + step))
            total += _sum_over_pairs(row[part], state[part] - start, value, n_rows)
        return total.reshape(n_rows, n_classes, n_beta)

    def _changes(self, touched: Touched, i: int, beta: np.ndarray) -> np.ndarray:
        """New log terms less old ones, summed over the pairs: (n_rows, n_classes, n_beta)."""
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
        first = np.searchsorted(touched.lost_pair, np.arange(len(state) + 1))

        def joined(part: slice) -> np.ndarray:
            pair = shown_by[part]
            count, weight = counts[place[pair]], touched.weight[pair]
            owner, loss = expand(first, pair)
            slot = owner * np.int64(rows.n_classes) + rows.labels[touched.lost_neighbor[loss]]
            count = count - np.bincount(slot, minlength=count.size).reshape(count.shape)
            after = of_every_class(count, label[place[pair]])
            b = after.b(rows.table, i, beta, weight)
            return log_terms_joined(after, weight, b).reshape(len(pair), -1)

        new = self._sum(touched.pair_row, state, len(shown_by), beta.shape[1], joined)
        return new - old[:, None, :]


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
