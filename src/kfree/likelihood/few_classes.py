"""What an open label does among few classes, for new and held-out rows and every structure.

The touched point n of a pair has m_c neighbors of class c once the neighbors that it loses are
gone, takes up the open label w times, and becomes

    V(c) = b (m_z + w [c = z]) - log(sum_c' exp(b m_c') - exp(b m_c) + exp(b (m_c + w)))

where z is its own class and b is beta over its divisor. Only the counts, z, w and the losses
matter, so that few states serve all pairs: each state is evaluated once, and the sum over the pairs
of a row is a product. Exponents are taken relative to the largest count, so that none overflows and
none is lost before it is compared.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from kfree.likelihood.counts import RisingCounts
from kfree.likelihood.open_labels import OpenLabels
from kfree.neighbors.flat import distinct, distinct_hashes, expand
from kfree.neighbors.structures import Touched

# A product of full matrices takes this part of the time that sparse entries take.
DENSE_GAIN = 8
# How many numbers are held while states are evaluated.
BLOCK_NUMBERS = 1 << 19
_WORDS = np.random.default_rng(20131).integers(0, 1 << 64, (4, 256), dtype=np.uint64) | np.uint64(1)


class FewClasses:
    """log p(z, z' = c | beta, K) - log p(z | beta, K) of a block of rows, for rising candidates."""

    def __init__(self, rows: OpenLabels) -> None:
        self._open = rows
        self._points = rows.rows.points() if rows.joint else np.empty(0, dtype=np.int64)
        self._place = np.zeros(len(rows.labels), dtype=np.int64)
        self._place[self._points] = np.arange(len(self._points))
        table = rows.table.take(self._points)
        self._counts = RisingCounts(table, rows.labels, rows.n_classes)
        self._label = rows.labels[self._points]

    def at(self, i: int, beta: np.ndarray) -> np.ndarray:
        """Values at the i-th candidate and the betas (n_beta,): (n_rows, n_classes, n_beta).

        For held-out rows p(z) is without their own terms.
        """
        rows = self._open
        touched = rows.rows.touched(i, rows.joint)
        log_class = self._own_terms(touched, i, beta)
        if len(touched.pair_row):
            count = self._counts.rise_to(i)
            place = self._place[touched.pair_point]
            state, shown_by = self._states(touched, count, place)
            change = self._changes(touched, shown_by, place[shown_by], i, beta)
            summed = _sum_over_pairs(touched.pair_row, state, change, touched.n_rows)
            log_class += summed.reshape(log_class.shape)
        return log_class

    def _own_terms(self, touched: Touched, i: int, beta: np.ndarray) -> np.ndarray:
        rows, n_rows = self._open, touched.n_rows
        slot = touched.own_row * np.int64(rows.n_classes) + rows.labels[touched.own_neighbor]
        count = np.bincount(slot, minlength=n_rows * rows.n_classes).reshape(n_rows, -1)
        divisor = count.sum(axis=1)[:, None] if rows.table.by_size else rows.table.k[i]
        b = np.atleast_2d(beta / divisor)  # (n_rows or 1, n_beta)
        log_class = (count - count.max(axis=1, keepdims=True))[:, :, None] * b[:, None, :]
        log_class -= np.log(np.exp(log_class).sum(axis=1, keepdims=True))
        if rows.own_labels is not None:
            log_class -= log_class[np.arange(n_rows), rows.own_labels][:, None, :]
        return log_class

    def _states(
        self, touched: Touched, count: np.ndarray, place: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The state of each pair (n_pairs,), and a pair that shows each state (n_states,)."""
        labels, n_classes = self._open.labels, len(count)
        key = _WORDS[1][self._label]
        for c in range(n_classes):
            key += count[c].astype(np.uint64) * _WORDS[0, c]
        if not touched.exchange:
            key = key[place] + touched.weight.astype(np.uint64) * _WORDS[2, 0]
            if len(touched.lost_pair):
                first = np.flatnonzero(np.diff(touched.lost_pair, prepend=-1))
                lost = np.add.reduceat(_WORDS[3][labels[touched.lost_neighbor]], first)
                key[touched.lost_pair[first]] += lost
            shown_by, state, _ = distinct_hashes(key)
            return state, shown_by
        # One neighbor goes and the row comes: the point's counts and the class that goes say all.
        _, of_point, _ = distinct_hashes(key)
        lost = labels[touched.lost_neighbor]
        if touched.by_point:  # in all pairs of a point the same
            lost_of_point = np.zeros(len(of_point), dtype=np.int64)
            lost_of_point[place] = lost
            code = of_point * np.int64(n_classes) + lost_of_point
            _, state = distinct(code, (int(of_point.max()) + 1) * n_classes)
            state = state[place]
        else:
            code = of_point[place] * np.int64(n_classes) + lost
            _, state = distinct(code, (int(of_point.max()) + 1) * n_classes)
        shown_by = np.full(int(state.max()) + 1, -1)
        shown_by[state] = np.arange(len(state))
        if touched.by_point and (shown_by < 0).any():  # points that no pair has at this candidate
            used = np.flatnonzero(shown_by >= 0)
            position = np.cumsum(shown_by >= 0) - 1
            state, shown_by = position[state], shown_by[used]
        return state, shown_by

    def _changes(
        self, touched: Touched, shown_by: np.ndarray, place: np.ndarray, i: int, beta: np.ndarray
    ) -> np.ndarray:
        """New log term less old, by the class of the open label: (n_states, n_classes * n_beta)."""
        n_classes = len(self._counts.count)
        out = np.empty((len(shown_by), n_classes * len(beta)))
        step = max(1, BLOCK_NUMBERS // (n_classes * len(beta)))
        divisor = self._counts.divisor(i)
        first = np.searchsorted(touched.lost_pair, np.arange(len(touched.pair_row) + 1))
        for start in range(0, len(shown_by), step):
            pair, point = shown_by[start : start + step], place[start : start + step]
            before = self._counts.count[:, point]
            owner, loss = expand(first, pair)
            slot = self._open.labels[touched.lost_neighbor[loss]] * np.int64(len(pair)) + owner
            lost = np.bincount(slot, minlength=before.size).reshape(before.shape)
            weight = touched.weight[pair]
            size = divisor[point]
            if self._open.table.by_size:
                size = size - lost.sum(axis=0) + weight
            after = _joined(before - lost, self._label[point], weight, beta / size[:, None])
            now = _present(before, self._label[point], beta / divisor[point][:, None])
            after -= now
            out[start : start + step] = after.transpose(1, 0, 2).reshape(len(pair), -1)
        return out


def _joined(count: np.ndarray, own: np.ndarray, weight: np.ndarray, b: np.ndarray) -> np.ndarray:
    """V(c) for counts (n_classes, n) and b (n, n_beta): (n_classes, n, n_beta)."""
    top = count.max(axis=0)
    value = np.exp((count - top)[:, :, None] * b)
    total = value.sum(axis=0)
    rise = count + weight - top  # (n_classes, n) above zero where the class comes to lead
    leads = np.maximum(rise, 0)[:, :, None] * b
    rest = np.maximum(total - value, 0.0)
    rest *= np.exp(-leads)
    rest += np.exp(np.minimum(rise, 0)[:, :, None] * b)
    np.log(rest, out=rest)
    each = np.arange(len(own))
    new = ((count[own, each] - top)[:, None] * b) - leads - rest
    new[own, each] += weight[:, None] * b
    return new


def _present(count: np.ndarray, own: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The log terms of points with counts (n_classes, n) at b (n, n_beta): (n, n_beta)."""
    top = count.max(axis=0)
    total = np.exp((count - top)[:, :, None] * b).sum(axis=0)
    return (count[own, np.arange(len(own))] - top)[:, None] * b - np.log(total)


def _sum_over_pairs(
    row: np.ndarray, state: np.ndarray, change: np.ndarray, n_rows: int
) -> np.ndarray:
    """The sum of `change[state]` over the pairs of each row: (n_rows, ...)."""
    n_states = len(change)
    if n_rows * n_states <= DENSE_GAIN * len(row):
        number = np.bincount(row * np.int64(n_states) + state, minlength=n_rows * n_states)
        return number.reshape(n_rows, n_states).astype(float) @ change
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n_rows))])
    # The format is right as it is made, and checking it would take longer than small products do.
    matrix = sparse.csr_array((n_rows, n_states))
    matrix.data, matrix.indices = np.ones(len(row)), state.astype(np.int32)
    matrix.indptr = indptr.astype(np.int32)
    return matrix @ change
