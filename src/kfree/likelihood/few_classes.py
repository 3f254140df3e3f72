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
# Up to how many numbers (64 MiB) such a matrix is kept for a block of rows.
FULL_NUMBERS = 1 << 23
# Above this, exp overflows. Classes that do not come to draw level are then below e^-700.
LARGEST_EXPONENT = 700.0
# How many numbers are held while states are evaluated.
BLOCK_NUMBERS = 1 << 19
_WORDS = np.random.default_rng(20131).integers(0, 1 << 64, (4, 256), dtype=np.uint64) | np.uint64(1)


class FewClasses:
    """log p(z, z' = c | beta, K) - log p(z | beta, K) of a block of rows, for rising candidates.

    For held-out rows p(z) is without their own terms.
    """

    def __init__(self, rows: OpenLabels) -> None:
        self._open = rows
        self._points = rows.rows.points() if rows.joint else np.empty(0, dtype=np.int64)
        self._place = np.zeros(len(rows.labels), dtype=np.int32)
        self._place[self._points] = np.arange(len(self._points))
        self._label = rows.labels[self._points]
        table = rows.table.take(self._points)
        self._counts = RisingCounts(table, rows.labels, rows.n_classes)
        self._exchanges = None
        if rows.table.nearest:
            self._own = RisingCounts(rows.rows.own_lists(), rows.labels, rows.n_classes)
            if rows.joint:
                self._exchanges = _Exchanges(rows, self._place, len(self._points))

    def at(self, i: int, beta: np.ndarray) -> np.ndarray:
        """Values at the i-th candidate and the betas (n_beta,): (n_rows, n_classes, n_beta)."""
        rows = self._open
        if rows.table.nearest:
            log_class = self._own_terms(self._own.rise_to(i), float(rows.table.k[i]), beta)
            if self._exchanges is not None and self._exchanges.n_pairs(i):
                self._exchanges.add_to(log_class, self._counts.rise_to(i), self._label, i, beta)
            return log_class
        touched = rows.rows.touched(i, rows.joint)
        slot = rows.labels[touched.own_neighbor] * np.int64(rows.n_rows) + touched.own_row
        count = np.bincount(slot, minlength=rows.n_rows * rows.n_classes)
        count = count.reshape(rows.n_classes, rows.n_rows)
        divisor = count.sum(axis=0)[:, None] if rows.table.by_size else float(rows.table.k[i])
        log_class = self._own_terms(count, divisor, beta)
        if len(touched.pair_row):
            self._counts.rise_to(i)
            place = self._place[touched.pair_point]
            shown_by, state = self._states(touched, place)
            change = self._changes(touched, shown_by, place[shown_by], i, beta)
            summed = _sum_over_pairs(touched.pair_row, state, change, rows.n_rows)
            log_class += summed.reshape(log_class.shape)
        return log_class

    def _own_terms(
        self, count: np.ndarray, divisor: np.ndarray | float, beta: np.ndarray
    ) -> np.ndarray:
        """The rows' own terms from counts (n_classes, n_rows)."""
        b = np.atleast_2d(beta / divisor)  # (n_rows or 1, n_beta)
        log_class = (count - count.max(axis=0)).T[:, :, None] * b[:, None, :]
        log_class -= np.log(np.exp(log_class).sum(axis=1, keepdims=True))
        own = self._open.own_labels
        if own is not None:
            log_class -= log_class[np.arange(len(own)), own][:, None, :]
        return log_class

    def _states(self, touched: Touched, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A pair that shows each state (n_states,), and the state of each pair (n_pairs,)."""
        key = _hashes(self._counts.count, self._label)[place]
        key += touched.weight.astype(np.uint64) * _WORDS[2, 0]
        if len(touched.lost_pair):
            first = np.flatnonzero(np.diff(touched.lost_pair, prepend=-1))
            label = self._open.labels[touched.lost_neighbor]
            key[touched.lost_pair[first]] += np.add.reduceat(_WORDS[3][label], first)
        shown_by, state, _ = distinct_hashes(key)
        return shown_by, state

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
            before, own = self._counts.count[:, point], self._label[point]
            owner, loss = expand(first, pair)
            slot = self._open.labels[touched.lost_neighbor[loss]] * np.int64(len(pair)) + owner
            lost = np.bincount(slot, minlength=before.size).reshape(before.shape)
            weight, size = touched.weight[pair], divisor[point]
            if self._open.table.by_size:
                size = size - lost.sum(axis=0) + weight
            change = _joined(before - lost, own, weight, beta / size[:, None])
            change -= _present(before, own, beta / divisor[point][:, None])
            out[start : start + step] = change.transpose(1, 0, 2).reshape(len(pair), -1)
        return out


class _Exchanges:
    """Pairs of rows and points in whose lists they are, among lists of nearest neighbors.

    The point exchanges one neighbor for the row: its last one for a new point, the row itself if
    that is held out. So its counts and the class that goes say what becomes of it. Pairs stand in
    the order of the candidate from which on they count.
    """

    def __init__(self, rows: OpenLabels, place: np.ndarray, n_points: int) -> None:
        row, point, cell = rows.rows.exchanges()
        order = np.argsort(cell.astype(np.uint16), kind="stable")  # which numpy sorts by counting
        self._row, self._place = row[order], place[point[order]]
        self._starts = np.searchsorted(cell[order], np.arange(len(rows.table.k) + 1))
        self._shape = rows.n_rows, n_points
        self._open = rows
        self._points = np.flatnonzero(np.bincount(point, minlength=len(rows.labels)))
        self._gone = None if rows.own_labels is None else rows.own_labels[self._row]
        # For few points, all pairs as a matrix, which grows with K.
        self._matrix: np.ndarray | None = None
        if self._gone is None and rows.n_rows * n_points <= FULL_NUMBERS:
            self._matrix = np.zeros(self._shape)
            self._filled = 0

    def n_pairs(self, i: int) -> int:
        """How many pairs there are at the i-th candidate."""
        return int(self._starts[i + 1])

    def add_to(
        self, log_class: np.ndarray, count: np.ndarray, label: np.ndarray, i: int, beta: np.ndarray
    ) -> None:
        """Add what becomes of the points of all pairs to values (n_rows, n_classes, n_beta)."""
        n_classes, n = len(count), self.n_pairs(i)
        b = (beta / self._open.table.k[i])[None]
        row, place = self._row[:n], self._place[:n]
        shown_by, of_point, _ = distinct_hashes(_hashes(count, label))
        if self._gone is None:
            last = self._open.rows.graph.last(i)[self._points]  # type: ignore[attr-defined]
            code = of_point * np.int64(n_classes) + self._open.labels[last]
            codes, state = distinct(code, len(shown_by) * n_classes)
            state_of_pair = state
        else:
            code = of_point[place] * np.int64(n_classes) + self._gone[:n]
            codes, state_of_pair = distinct(code, len(shown_by) * n_classes)
        which, gone = np.divmod(codes, n_classes)
        change = _exchanged(count[:, shown_by[which]], label[shown_by[which]], gone, b)
        n_rows, n_points = self._shape
        if self._gone is None:
            # With about as many states as points, counting pairs by state would gain nothing.
            full = self._matrix is not None and n_rows * n_points <= DENSE_GAIN * n
            if full and 2 * len(change) > n_points:
                self._fill(n)
                log_class += (self._matrix @ change[state]).reshape(log_class.shape)
                return
            state_of_pair = state[place]
        log_class += _sum_over_pairs(row, state_of_pair, change, n_rows).reshape(log_class.shape)

    def _fill(self, n: int) -> None:
        assert self._matrix is not None
        self._matrix[self._row[self._filled : n], self._place[self._filled : n]] = 1.0
        self._filled = n


def _hashes(count: np.ndarray, label: np.ndarray) -> np.ndarray:
    """A hash of the counts (n_classes, n) and the own class of each point."""
    key = _WORDS[1][label]
    for c, row in enumerate(count):
        key += row.astype(np.uint64) * _WORDS[0, c]
    return key


def _exchanged(count: np.ndarray, own: np.ndarray, gone: np.ndarray, b: np.ndarray) -> np.ndarray:
    """V(c) - V(l) where one neighbor of class l = gone goes: (n, n_classes * n_beta).

    To get back a neighbor of the class that went is to be as before, so V(l) is the present term.
    """
    n_classes, n = count.shape
    out = np.empty((n, n_classes * b.shape[1]))
    step = max(1, BLOCK_NUMBERS // (n_classes * b.shape[1]))
    for start in range(0, n, step):
        part = slice(start, min(start + step, n))
        each = np.arange(part.stop - start)
        rest = count[:, part].copy()
        rest[gone[part], each] -= 1
        value = _joined(rest, own[part], np.ones(len(each), dtype=np.int64), b)
        value -= value[gone[part], each]
        out[part] = value.transpose(1, 0, 2).reshape(len(each), -1)
    return out


def _joined(count: np.ndarray, own: np.ndarray, weight: np.ndarray, b: np.ndarray) -> np.ndarray:
    """V(c) for counts (n_classes, n) and b (n or 1, n_beta): (n_classes, n, n_beta)."""
    top = count.max(axis=0)
    value = np.exp((count - top)[:, :, None] * b)
    rest = value.sum(axis=0) - value
    # The new part of the class: one where it comes to lead or draw, and then all else fades.
    rise = count + weight - top  # (n_classes, n)
    gain = np.exp(np.minimum(weight[:, None] * b, LARGEST_EXPONENT))
    value *= gain
    np.minimum(value, 1.0, out=value)
    leads, point = np.nonzero(rise >= 0)
    fade = rise[leads, point][:, None] * (b if len(b) == 1 else b[point])
    rest[leads, point] *= np.exp(-fade)
    value[leads, point] = 1.0
    value += rest
    np.log(np.maximum(value, np.finfo(float).tiny, out=value), out=value)
    value[leads, point] += fade
    each = np.arange(len(own))
    np.subtract((count[own, each] - top)[:, None] * b, value, out=value)
    value[own, each] += weight[:, None] * b
    return value


def _present(count: np.ndarray, own: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The log terms of points with counts (n_classes, n) at b (n, n_beta): (n, n_beta)."""
    top = count.max(axis=0)
    total = np.exp((count - top)[:, :, None] * b).sum(axis=0)
    return (count[own, np.arange(len(own))] - top)[:, None] * b - np.log(total)


def _sum_over_pairs(
    row: np.ndarray, state: np.ndarray, change: np.ndarray, n_rows: int
) -> np.ndarray:
    """The sum of `change[state]` over the pairs of each row: (n_rows, n_classes * n_beta)."""
    n_states = len(change)
    if n_rows * n_states <= DENSE_GAIN * len(row):
        number = np.bincount(row * np.int64(n_states) + state, minlength=n_rows * n_states)
        return number.reshape(n_rows, n_states).astype(float) @ change
    pairs = sparse.coo_array((np.ones(len(row)), (row, state)), shape=(n_rows, n_states))
    return pairs.tocsr() @ change
