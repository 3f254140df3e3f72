"""Terms of the pseudo-likelihood that take up an open label, evaluated for many points at once.

A point with m_c neighbors of class c, once those that it loses are gone, takes up the open label w
times, and its log term becomes

    V(c) = b (m_z + w [c = z]) - log(sum_c' exp(b m_c') - exp(b m_c) + exp(b (m_c + w)))

where z is its own class and b is beta over its divisor. Only the counts, z, w and the losses
matter, so that few states serve all points. Exponents are taken relative to the largest count, so
that none overflows and none is lost before it is compared.
"""

from __future__ import annotations

import numpy as np

from kfree.neighbors.flat import distinct, distinct_hashes

# Above this, exp overflows.
LARGEST_EXPONENT = 700.0
# How many numbers are held while states are evaluated.
BLOCK_NUMBERS = 1 << 19
# A random word for each class: of a neighbor, of the point itself; and one for the weight.
WORDS = np.random.default_rng(20131).integers(0, 1 << 64, (3, 256), dtype=np.uint64) | np.uint64(1)


def hashes(count: np.ndarray, label: np.ndarray) -> np.ndarray:
    """A hash of the counts (n_classes, n) and the own class of each point."""
    key = WORDS[1][label]
    for c, row in enumerate(count):
        key += row.astype(np.uint64) * WORDS[0, c]
    return key


def states(
    count: np.ndarray, label: np.ndarray, gone: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct states of points that exchange one neighbor of a class for the open label.

    Parameters
    ----------
    count : (n_classes, n), the classes of the points' neighbors
    label, gone : (n,) the own class, and that of the neighbor that goes

    Returns
    -------
    shown_by, gone : (n_states,) a point that shows each state, and the class that goes
    state : (n,)
    """
    n_classes = len(count)
    shown_by, of_point, _ = distinct_hashes(hashes(count, label))
    code = of_point * np.int64(n_classes) + gone
    codes, state = distinct(code, len(shown_by) * n_classes)
    which, gone = np.divmod(codes, n_classes)
    return shown_by[which], gone, state


def exchanged(count: np.ndarray, own: np.ndarray, gone: np.ndarray, b: np.ndarray) -> np.ndarray:
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
        value = joined(rest, own[part], np.ones(len(each), dtype=np.int64), b)
        value -= value[gone[part], each]
        out[part] = value.transpose(1, 0, 2).reshape(len(each), -1)
    return out


def joined(count: np.ndarray, own: np.ndarray, weight: np.ndarray, b: np.ndarray) -> np.ndarray:
    """V(c) for counts (n_classes, n) and b (n or 1, n_beta): (n_classes, n, n_beta)."""
    top = count.max(axis=0)
    value = _powers(top - count, b)
    total, rise = value.sum(axis=0), weight[:, None] * b
    if rise.max(initial=0.0) < LARGEST_EXPONENT:
        value *= np.expm1(rise)
        value += total
        np.log(value, out=value)
    else:
        with np.errstate(divide="ignore"):  # no other class may be left
            rest = np.log(np.maximum(total - value, 0.0))
        value = np.logaddexp(rest, (count - top)[:, :, None] * b + rise)
    each = np.arange(len(own))
    np.subtract((count[own, each] - top)[:, None] * b, value, out=value)
    value[own, each] += rise
    return value


def present(count: np.ndarray, own: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The log terms of points with counts (n_classes, n) at b (n or 1, n_beta): (n, n_beta)."""
    n_classes, n = count.shape
    out = np.empty((n, b.shape[1]))
    step = max(1, BLOCK_NUMBERS // (n_classes * b.shape[1]))
    for start in range(0, n, step):
        part = slice(start, min(start + step, n))
        below = count[:, part].max(axis=0) - count[:, part]
        own_below, some_b = (
            below[own[part], np.arange(part.stop - start)],
            b if len(b) == 1 else b[part],
        )
        out[part] = -own_below[:, None] * some_b - np.log(_powers(below, some_b).sum(axis=0))
    return out


def _powers(below: np.ndarray, b: np.ndarray) -> np.ndarray:
    """exp(-b below) of integers (n_classes, n), for b (n or 1, n_beta): (n_classes, n, n_beta)."""
    if len(b) > 1:
        return np.exp(-below[:, :, None] * b)
    # One b for all: few distinct powers, read off a table in half the time.
    return np.take(np.exp(-np.arange(below.max(initial=0) + 1)[:, None] * b), below, axis=0)
