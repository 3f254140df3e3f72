"""One point's term of the pseudo-likelihood, from the class counts in its neighborhood.

With m_c neighbors of class c, own class z and divisor D (K, or the size of the neighborhood):

    log term = b m_z - log sum_c exp(b m_c),    b = beta / D.

Classes without a neighbor all contribute exp(0), so only their number matters. Sums are taken
relative to the largest count, so that no beta overflows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kfree.neighbors.flat import expand


@dataclass(frozen=True)
class Counts:
    """Class counts of many points, compressed: point i has entries `indptr[i]:indptr[i + 1]`."""

    indptr: np.ndarray  # (n_points + 1,)
    value: np.ndarray  # (n_entries,) m_c for the classes that are listed
    n_absent: np.ndarray  # (n_points,) classes that are not listed
    own: np.ndarray  # (n_points,) m_z
    divisor: np.ndarray  # (n_points,) D

    @property
    def owner(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.own)), np.diff(self.indptr))


def segment_sum(values: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """Sums over `indptr[i]:indptr[i + 1]` along the first axis; empty segments give zero."""
    n = len(indptr) - 1
    if n == 0 or len(values) == 0:
        return np.zeros((n, *values.shape[1:]), dtype=values.dtype)
    length = np.diff(indptr)
    if length.min() == length.max():
        return values.reshape(n, length[0], *values.shape[1:]).sum(axis=1)
    filled = length > 0
    out = np.zeros((n, *values.shape[1:]), dtype=values.dtype)
    out[filled] = np.add.reduceat(values, indptr[:-1][filled], axis=0)
    return out


def segment_max(values: np.ndarray, indptr: np.ndarray, empty: float) -> np.ndarray:
    """Maxima over `indptr[i]:indptr[i + 1]` along the first axis; `empty` where nothing is."""
    n = len(indptr) - 1
    length = np.diff(indptr)
    if n and length.min() == length.max() > 0:
        return values.reshape(n, length[0], *values.shape[1:]).max(axis=1)
    filled = length > 0
    out = np.full((n, *values.shape[1:]), empty, dtype=float)
    if filled.any():
        out[filled] = np.maximum.reduceat(values, indptr[:-1][filled], axis=0)
    return out


def take(counts: Counts, points: np.ndarray) -> Counts:
    """The counts of some of the points, in the given order."""
    _, entry = expand(counts.indptr, points)
    length = np.diff(counts.indptr)[points]
    return Counts(
        np.concatenate([[0], np.cumsum(length)]),
        counts.value[entry],
        counts.n_absent[points],
        counts.own[points],
        counts.divisor[points],
    )


def log_terms(counts: Counts, beta: np.ndarray) -> np.ndarray:
    """The log term of each point: (n, n_beta).

    Parameters
    ----------
    counts : Counts of n points
    beta : (n, n_beta) or (1, n_beta)
    """
    b, top, log_total = _log_totals(counts, beta)
    return b * (counts.own - top)[:, None] - log_total


def log_terms_of_classes(counts: Counts, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The log term that each point would have with each class as its own.

    Parameters as in `log_terms`. Returns (n_entries, n_beta) for the listed classes, and
    (n, n_beta) for any other.
    """
    b, top, log_total = _log_totals(counts, beta)
    owner = counts.owner
    listed = b[owner] * (counts.value - top[owner])[:, None] - log_total[owner]
    return listed, -b * top[:, None] - log_total


def _log_totals(counts: Counts, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """b; the largest count; log of the sum over all classes of exp(b (m_c - largest))."""
    owner = counts.owner
    b = beta / counts.divisor[:, None]  # (n, n_beta)
    top = segment_max(counts.value, counts.indptr, 0.0)
    present = np.exp(b[owner] * (counts.value - top[owner])[:, None])  # (n_entries, n_beta)
    rest = counts.n_absent[:, None] * np.exp(-b * top[:, None])
    return b, top, np.log(segment_sum(present, counts.indptr) + rest)


def log_terms_joined(
    counts: Counts, own_entry: np.ndarray, weight: np.ndarray, beta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The log term of each point after one more neighbor, of each possible class, was added.

    Parameters
    ----------
    counts : Counts before; `divisor` as it is afterwards
    own_entry : (n,) the entry of the point's own class, which must be listed
    weight : (n,) how often the neighbor counts
    beta : (n, n_beta) or (1, n_beta)

    Returns
    -------
    (n_entries, n_beta), the class that joins is the entry's;
    (n, n_beta), the class that joins is not listed
    """
    owner = counts.owner
    b = beta / counts.divisor[:, None]
    top = segment_max(counts.value, counts.indptr, 0.0)
    below = (counts.value - top[owner])[:, None]
    present = np.exp(b[owner] * below)  # (n_entries, n_beta)
    zero = np.exp(-b * top[:, None])
    total = segment_sum(present, counts.indptr) + counts.n_absent[:, None] * zero
    own_below = (counts.own - top)[:, None]
    joins_own = np.zeros((len(counts.value), 1))
    joins_own[own_entry, 0] = weight
    entry = _joined(
        b[owner], below + weight[owner, None], own_below[owner] + joins_own, total[owner] - present
    )
    return entry, _joined(b, (weight - top)[:, None], own_below, total - zero)


def _joined(b: np.ndarray, rise: np.ndarray, own: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The log term after the count of one class has risen.

    `rise` is what that count has become and `own` that of the point's own class, less the largest
    count before; `others` is the sum of exp(b (m_c - largest)) over all other classes. That is a
    difference, but the class's new part is larger than the old one that was taken away, so that no
    digits are lost. It may be larger than all before: `high` keeps it from overflowing.
    """
    high = b * np.maximum(rise, 0.0)
    total = others * np.exp(-high) + np.exp(b * np.minimum(rise, 0.0))
    return b * own - high - np.log(total)
