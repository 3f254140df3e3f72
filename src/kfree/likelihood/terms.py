"""One point's term of the pseudo-likelihood, from the class counts in its neighborhood.

With m_c neighbors of class c, own class z and divisor D (K, or the size of the neighborhood):

    log term = b m_z - log sum_c exp(b m_c),    b = beta / D.

A point that takes up an open label w times, once the neighbors that it loses are gone, has

    V(c) = b (m_z + w [c = z]) - log(sum_c' exp(b m_c') - exp(b m_c) + exp(b (m_c + w))).

Exponents are taken relative to the largest count, so that none overflows and none is lost before it
is compared. b is (n or 1, n_beta).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kfree.likelihood.counts import PointCounts
from kfree.likelihood.segments import segment_max
from kfree.likelihood.slots import ClassSlots

# Above this, exp overflows.
LARGEST_EXPONENT = 700.0
# About how many numbers are held while terms are evaluated.
BLOCK_NUMBERS = 1 << 19


def log_terms(points: PointCounts, b: np.ndarray) -> np.ndarray:
    """The log term of each point: (n, n_beta)."""
    top, log_total = _log_totals(points, b)
    return (points.count[points.own] - top)[:, None] * b - log_total


def log_terms_of_classes(points: PointCounts, b: np.ndarray) -> np.ndarray:
    """The log term that each point would have with each slot's class as its own."""
    top, log_total = _log_totals(points, b)
    slots, margin = points.slots, points.count - points.slots.spread(top)
    return margin[:, None] * (b if len(b) == 1 else slots.spread(b)) - slots.spread(log_total)


def _log_totals(points: PointCounts, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest count of each point; log of the sum over classes of exp(b (m_c - largest))."""
    slots, count = points.slots, points.count
    top, log_total = np.empty(slots.n_points, count.dtype), np.empty((slots.n_points, b.shape[1]))
    for some, part, those in _blocks(slots, b):
        top[some], value = _powers(those, count[part], _of(b, some))
        log_total[some] = np.log(those.sum(value))
    return top, log_total


def log_terms_joined(points: PointCounts, weight: np.ndarray, b: np.ndarray) -> np.ndarray:
    """V(c) of points that take up a label `weight` (n,) times: (n_slots, n_beta)."""
    slots, out = points.slots, np.empty((len(points.count), b.shape[1]))
    for some, part, those in _blocks(slots, b):
        own = points.own[some] - part.start
        out[part] = _joined(those, points.count[part], own, weight[some], _of(b, some))
    return out


def _joined(
    slots: ClassSlots, count: np.ndarray, own: np.ndarray, weight: np.ndarray, b: np.ndarray
) -> np.ndarray:
    top, value = _powers(slots, count, b)
    total, gain = slots.spread(slots.sum(value)), weight[:, None] * b
    if gain.max(initial=0.0) < LARGEST_EXPONENT:
        value *= slots.spread(np.expm1(gain))
        value += total
        np.log(value, out=value)
    else:
        with np.errstate(divide="ignore"):  # no other class may be left
            rest = np.log(np.maximum(total - value, 0.0))
        below = (count - slots.spread(top))[:, None] * (b if len(b) == 1 else slots.spread(b))
        value = np.logaddexp(rest, below + slots.spread(gain))
    np.subtract(slots.spread((count[own] - top)[:, None] * b), value, out=value)
    value[own] += gain
    return value


def _powers(slots: ClassSlots, count: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest count of each point; exp(b (m_c - largest)): (n_slots, n_beta)."""
    top = segment_max(count, slots.indptr, 0)
    below = slots.spread(top) - count
    if len(b) > 1:
        return top, np.exp(-below[:, None] * slots.spread(b))
    # One b for all: few distinct powers, read off a table in half the time.
    return top, np.take(np.exp(-np.arange(below.max(initial=0) + 1)[:, None] * b), below, axis=0)


def _of(b: np.ndarray, points: np.ndarray | slice) -> np.ndarray:
    return b if len(b) == 1 else b[points]


def _blocks(slots: ClassSlots, b: np.ndarray) -> Iterator[tuple[slice, slice, ClassSlots]]:
    """Points in blocks: which points, which slots, and these slots alone."""
    n, indptr = slots.n_points, slots.indptr
    step = max(1, BLOCK_NUMBERS * n // max(1, len(slots.classes) * b.shape[1]))
    for start in range(0, n, step):
        points = slice(start, min(start + step, n))
        part = slice(indptr[start], indptr[points.stop])
        those = indptr[start : points.stop + 1] - part.start, slots.classes[part]
        yield points, part, ClassSlots(*those, slots.n_classes, slots.every)
