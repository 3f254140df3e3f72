"""One point's term of the pseudo-likelihood, from the class counts in its neighborhood.

With m_c neighbors of class c, own class z and divisor D (K, or the size of the neighborhood):

    log term = b m_z - log sum_c exp(b m_c),    b = beta / D.

Classes without a neighbor all contribute exp(0), so only their number matters. Sums are taken
relative to the largest count, so that no beta overflows.
"""

from __future__ import annotations

from collections.abc import Callable
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


@dataclass(frozen=True)
class Log:
    """A log quantity with, where asked for, its first two derivatives in beta."""

    value: np.ndarray
    slope: np.ndarray | None = None
    curvature: np.ndarray | None = None

    def __add__(self, other: Log) -> Log:
        if self.slope is None or other.slope is None:
            return Log(self.value + other.value)
        assert self.curvature is not None and other.curvature is not None
        return Log(
            self.value + other.value, self.slope + other.slope, self.curvature + other.curvature
        )

    def __neg__(self) -> Log:
        if self.slope is None or self.curvature is None:
            return Log(-self.value)
        return Log(-self.value, -self.slope, -self.curvature)

    def __getitem__(self, index: np.ndarray) -> Log:
        if self.slope is None or self.curvature is None:
            return Log(self.value[index])
        return Log(self.value[index], self.slope[index], self.curvature[index])

    def map(self, function: Callable[[np.ndarray], np.ndarray]) -> Log:
        """The same linear function of the value and of the derivatives."""
        if self.slope is None or self.curvature is None:
            return Log(function(self.value))
        return Log(function(self.value), function(self.slope), function(self.curvature))


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


def log_terms(counts: Counts, beta: np.ndarray, derivatives: bool = False) -> Log:
    """The log term of each point.

    Parameters
    ----------
    counts : Counts of n points
    beta : (n, n_beta) or (1, n_beta)

    Returns
    -------
    Log of (n, n_beta)
    """
    owner = counts.owner
    b = beta / counts.divisor[:, None]  # (n, n_beta)
    top = segment_max(counts.value, counts.indptr, 0.0)
    weight = np.exp(b[owner] * (counts.value - top[owner])[:, None])  # (n_entries, n_beta)
    rest = counts.n_absent[:, None] * np.exp(-b * top[:, None])
    total = segment_sum(weight, counts.indptr) + rest
    value = b * (counts.own - top)[:, None] - np.log(total)
    if not derivatives:
        return Log(value)
    m = counts.value[:, None].astype(float)
    mean = segment_sum(weight * m, counts.indptr) / total
    square = segment_sum(weight * m * m, counts.indptr) / total
    scale = 1.0 / counts.divisor[:, None]
    slope = (counts.own[:, None] - mean) * scale
    return Log(value, slope, (mean * mean - square) * scale * scale)


def log_terms_joined(
    counts: Counts,
    own_entry: np.ndarray,
    weight: np.ndarray,
    beta: np.ndarray,
    derivatives: bool = False,
) -> tuple[Log, Log]:
    """The log term of each point after one more neighbor, of each possible class, was added.

    Parameters
    ----------
    counts : Counts before; `divisor` as it is afterwards
    own_entry : (n,) the entry of the point's own class, which must be listed
    weight : (n,) how often the neighbor counts
    beta : (n, n_beta) or (1, n_beta)

    Returns
    -------
    Log of (n_entries, n_beta), the class that joins is the entry's;
    Log of (n, n_beta), the class that joins is not listed
    """
    owner = counts.owner
    b = beta / counts.divisor[:, None]
    m = counts.value[:, None].astype(float)
    gain = weight[:, None].astype(float)
    top = segment_max(counts.value, counts.indptr, 0.0)[:, None]
    present = np.exp(b[owner] * (m - top[owner]))  # (n_entries, n_beta)
    zero = np.exp(-b * top)
    n_absent = counts.n_absent[:, None]
    sums = [segment_sum(present, counts.indptr) + n_absent * zero]
    if derivatives:
        sums += [
            segment_sum(present * m, counts.indptr),
            segment_sum(present * m * m, counts.indptr),
        ]
    own = counts.own[:, None].astype(float)
    is_own = np.zeros((len(counts.value), 1))
    is_own[own_entry] = 1.0
    entry = _joined(
        b[owner],
        m,
        present,
        gain[owner],
        top[owner],
        own[owner] + is_own * gain[owner],
        [total[owner] for total in sums],
        1.0 / counts.divisor[owner, None],
    )
    absent = _joined(b, 0.0, zero, gain, top, own, sums, 1.0 / counts.divisor[:, None])
    return entry, absent


def _joined(b, m, present, gain, top, own, sums, scale) -> Log:
    """The log term after the count `m` of one class has become `m + gain`.

    `sums` are those of exp(b (m_c - top)), and of its products with m_c and m_c^2, before. The
    class's old part `present` is taken away from them and its new part is larger, so that no
    digits are lost; `high` keeps the new part from overflowing.
    """
    rise = b * (m + gain - top)
    high = np.maximum(rise, 0.0)
    fade = np.exp(-high)
    new = np.exp(rise - high)
    total = (sums[0] - present) * fade + new
    value = b * (own - top) - high - np.log(total)
    if len(sums) == 1:
        return Log(value)
    mean = ((sums[1] - present * m) * fade + new * (m + gain)) / total
    square = ((sums[2] - present * m * m) * fade + new * (m + gain) ** 2) / total
    return Log(value, (own - mean) * scale, (mean * mean - square) * scale * scale)
