"""The training sum as a histogram (all K at once).

A point's term depends only on its own class's count and on the multiset of the counts of all
classes in its neighborhood. Few such patterns occur: 100,000 points of 4 classes have about a
thousand for each K. Counting them turns every later evaluation of the log pseudo-likelihood, its
derivatives, Newton's method, all quadrature nodes and every step of a sampler, from a sum over
points into a sum over patterns. Histograms of parts of the data add up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from kfree.likelihood.slots import ClassSlots, make_slots
from kfree.likelihood.terms import Counts, Log, log_terms, segment_max, take
from kfree.neighbors.flat import distinct, expand
from kfree.neighbors.structures import Neighborhoods

# How many (pattern, beta) values one evaluation holds.
BLOCK_TERMS = 1 << 22
# The strength at which points are compared to find the one that fits least.
WORST_BETA = 20.0


class Histogram:
    """The distinct patterns of K = 1..n_k, ordered by K, and how many points show each.

    A pattern with counts m_c, own count m and divisor D has the log term

        -beta (top - m) / D - log sum_c exp(-beta (top - m_c) / D),    top = max_c m_c.

    The few distinct (top - m_c) / D, the `rates`, are exponentiated once for all patterns; the sums
    over classes are then one sparse product.
    """

    def __init__(self, counts: Counts, k: np.ndarray, n_points: np.ndarray, n_k: int) -> None:
        self.counts = counts
        self.k = k  # (n_patterns,)
        self.n_points = n_points  # (n_patterns,)
        self.n_k = n_k
        self.starts = np.searchsorted(k, np.arange(1, n_k + 2))
        n = len(k)
        top = segment_max(counts.value, counts.indptr, 0.0)
        self.own_rate = (top - counts.own) / counts.divisor
        # Classes without a neighbor make one more entry of each pattern.
        owner = np.concatenate([counts.owner, np.arange(n)])
        below = np.concatenate([top[counts.owner] - counts.value, top])
        number = np.concatenate([np.ones(len(counts.value)), counts.n_absent])
        n_below = int(below.max()) + 1
        n_divisor = int(counts.divisor.max()) + 1
        by_k = (counts.divisor == k).all()  # then K says what the divisor is
        group = k if by_k else k * n_divisor + counts.divisor.astype(np.int64)
        limit = (n_k + 1) * n_below * (1 if by_k else n_divisor)
        key, column = distinct(group[owner] * n_below + below.astype(np.int64), limit)
        group, below = np.divmod(key, n_below)
        self.rate_k = group if by_k else group // n_divisor
        self.rate = below / (group if by_k else group % n_divisor)
        self.classes = sparse.csr_array(
            (number, (owner, column)), shape=(n, len(self.rate)), dtype=float
        )
        self._points = sparse.csr_array((n_points.astype(float), np.arange(n), self.starts))

    def log_pseudo_likelihood(
        self, beta: np.ndarray, derivatives: bool = False, ks: slice = slice(None)
    ) -> Log:
        """log p(z | beta, K) for K = 1..n_k, or for the slice `ks` of them.

        Parameters
        ----------
        beta : (n_k, n_beta), each K has its own nodes

        Returns
        -------
        Log of (n_k, n_beta)
        """
        first, last, _ = ks.indices(self.n_k)
        step = max(1, BLOCK_TERMS // max(1, self.starts[last] - self.starts[first]))
        parts = [
            self._sum(beta[:, start : start + step], derivatives, first, last)
            for start in range(0, beta.shape[1], step)
        ]
        if len(parts) == 1:
            return parts[0]
        names = ("value", "slope", "curvature") if derivatives else ("value",)
        return Log(*(np.concatenate([getattr(p, n) for p in parts], axis=1) for n in names))

    def _sum(self, beta: np.ndarray, derivatives: bool, first: int, last: int) -> Log:
        part = slice(self.starts[first], self.starts[last])
        columns = slice(*np.searchsorted(self.rate_k, [first + 1, last + 1]))
        classes, points = self.classes, self._points
        if (first, last) != (0, self.n_k):
            classes, points = classes[part, columns], points[first:last, part]
        rate = self.rate[columns, None]
        own_rate = self.own_rate[part, None]
        weight = np.exp(-rate * beta[self.rate_k[columns] - 1 - first])
        total = classes @ weight
        value = points @ (-own_rate * beta[self.k[part] - 1 - first] - np.log(total))
        if not derivatives:
            return Log(value)
        mean = (classes @ (rate * weight)) / total
        square = (classes @ (rate * rate * weight)) / total
        return Log(value, points @ (mean - own_rate), points @ (mean * mean - square))

    def log_worst(self, beta: np.ndarray, ks: slice) -> np.ndarray:
        """The log term of the point that fits least, the same point for all beta: (n_k, n_beta)."""
        return log_terms(take(self._worst, np.arange(self.n_k)[ks]), beta).value

    @cached_property
    def _worst(self) -> Counts:
        """For each K the pattern that is least probable when neighbors count for much."""
        terms = log_terms(self.counts, np.full((1, 1), WORST_BETA)).value[:, 0]
        order = np.lexsort((terms, self.k))
        return take(self.counts, order[self.starts[:-1]])


def histogram(
    table: Neighborhoods,
    labels: np.ndarray,
    n_classes: int,
    k_max: int,
    rows: np.ndarray | None = None,
) -> Histogram:
    """The histogram of the training points' patterns for K = 1..k_max.

    Parameters
    ----------
    table : Neighborhoods of the points, or of those in `rows`
    labels : (n,) integers from 0, of all points
    rows : the points whose terms are counted, all if None
    """
    own = labels if rows is None else labels[rows]
    found = [_patterns(state, k) for k, state in _count_up(table, labels, own, n_classes, k_max)]
    length = np.concatenate([np.diff(c.indptr) for c, _ in found])
    counts = Counts(
        np.concatenate([[0], np.cumsum(length)]),
        np.concatenate([c.value for c, _ in found]),
        np.concatenate([c.n_absent for c, _ in found]),
        np.concatenate([c.own for c, _ in found]),
        np.concatenate([c.divisor for c, _ in found]),
    )
    k = np.repeat(np.arange(1, k_max + 1), [len(n) for _, n in found])
    return Histogram(counts, k, np.concatenate([n for _, n in found]), k_max)


@dataclass(frozen=True)
class _State:
    """Class counts of all points at one K, and a hash of each point's pattern."""

    slots: ClassSlots
    own_slot: np.ndarray  # (n,)
    value: np.ndarray  # (n_slots,)
    size: np.ndarray  # (n,) size of the neighborhood
    key: np.ndarray  # (n,) uint64
    by_size: bool


def _count_up(
    table: Neighborhoods, labels: np.ndarray, own: np.ndarray, n_classes: int, k_max: int
) -> Iterator[tuple[int, _State]]:
    """The state at K = 1, 2, ..., each from the one before."""
    n = len(own)
    points = np.arange(n)
    owners = table.owners
    slots = make_slots(
        n,
        n_classes,
        np.concatenate([points, owners]),
        np.concatenate([own, labels[table.neighbors]]),
    )
    edge_slot = slots.find(owners, labels[table.neighbors])
    own_slot = slots.find(points, own)
    small = np.uint16 if k_max <= 1 << 16 else np.int64  # 16 bits are sorted by radix
    order = np.argsort(table.ranks.astype(small), kind="stable")
    ends = np.searchsorted(table.ranks[order], np.arange(k_max), side="right")
    value = np.zeros(len(slots.classes), dtype=np.int64)
    size = np.zeros(n, dtype=np.int64)
    # A multiset of counts is hashed as the sum of a random word for each count, so adding a
    # neighbor changes the hash by a difference of two words. Two of 10^5 patterns share a 64-bit
    # hash with probability below 10^-9.
    longest = int(np.diff(table.indptr).max()) + 2
    words = np.random.default_rng(20130).integers(0, 1 << 64, (3, longest), dtype=np.uint64)
    key = words[1][value[own_slot]] + words[2][size]
    start = 0
    for k, end in enumerate(ends, start=1):
        edges = order[start:end]
        start = end
        # A slot may gain several neighbors at once.
        touched, gain = np.unique(edge_slot[edges], return_counts=True)
        owner = np.searchsorted(slots.indptr, touched, side="right") - 1
        old = value[touched]
        value[touched] += gain
        np.add.at(key, owner, words[0][old + gain] - words[0][old])
        own = touched == own_slot[owner]
        key[owner[own]] += words[1][(old + gain)[own]] - words[1][old[own]]
        if table.by_size:
            joined = np.bincount(owners[edges], minlength=n)
            key += words[2][size + joined] - words[2][size]
            size += joined
        yield k, _State(slots, own_slot, value, size, key, table.by_size)


def _patterns(state: _State, k: int) -> tuple[Counts, np.ndarray]:
    """The distinct patterns, each read off one point that shows it, and their frequencies."""
    _, shown_by, n_points = np.unique(state.key, return_index=True, return_counts=True)
    owner, slot = expand(state.slots.indptr, shown_by)
    present = state.value[slot] > 0
    length = np.bincount(owner[present], minlength=len(shown_by))
    divisor = state.size[shown_by] if state.by_size else np.full(len(shown_by), k)
    counts = Counts(
        np.concatenate([[0], np.cumsum(length)]),
        state.value[slot[present]],
        state.slots.n_classes - length,
        state.value[state.own_slot[shown_by]],
        divisor.astype(float),
    )
    return counts, n_points
