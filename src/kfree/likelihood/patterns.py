"""The training sum as a histogram (all K at once).

A point's term depends only on its own class's count and on the multiset of the counts of all
classes in its neighborhood. Few such patterns occur: 100,000 points of 4 classes have about a
thousand for each K. Counting them turns every later evaluation of the log pseudo-likelihood, its
derivatives, Newton's method, all quadrature nodes and every step of a sampler, from a sum over
points into a sum over patterns. Histograms of parts of the data add up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np
from scipy import sparse

from kfree.likelihood.counting import (
    Patterns,
    added_up,
    count_patterns,
    parts_of,
    words_for,
)
from kfree.likelihood.slots import DENSE_CLASSES
from kfree.likelihood.terms import Counts, Log, log_terms, segment_max, take
from kfree.neighbors.flat import distinct
from kfree.neighbors.structures import Neighborhoods
from kfree.neighbors.threads import run

# How many (pattern, beta) values one evaluation holds.
BLOCK_TERMS = 1 << 22
# About how many class counts are held at a time (a GiB or two while they are made).
STRETCH_ENTRIES = 1 << 24
# How many points tell how many that will be.
SAMPLE_POINTS = 256
# The strength at which points are compared to find the one that fits least.
WORST_BETA = 20.0


class Likelihood(Protocol):
    """Whatever gives log p(z | beta, K) of the training labels."""

    def log_pseudo_likelihood(
        self, beta: np.ndarray, derivatives: bool = False, ks: slice = slice(None)
    ) -> Log:
        """Values (n_k, n_beta) for the slice `ks` of K - 1, with derivatives if wanted."""


class Histogram:
    """The distinct patterns of K = 1..n_k, ordered by K, and how many points show each.

    A pattern with counts m_c, own count m and divisor D has the log term

        -beta (top - m) / D - log sum_c exp(-beta (top - m_c) / D),    top = max_c m_c.

    The few distinct (top - m_c) / D, the `rates`, are exponentiated once for all patterns; the sums
    over classes are then one sparse product.
    """

    def __init__(
        self, counts: Counts, k: np.ndarray, n_points: np.ndarray, n_k: int, first: int = 0
    ) -> None:
        self.counts = counts
        self.k = k  # (n_patterns,) from 1 on, for K = first + 1, first + 2, ...
        self.n_points = n_points  # (n_patterns,)
        self.n_k = n_k
        self.starts = np.searchsorted(k, np.arange(1, n_k + 2))
        n = len(k)
        top = segment_max(counts.value, counts.indptr, 0.0)
        self.own_rate = (top - counts.own) / counts.divisor
        # Classes without a neighbor make one more entry of each pattern, its last.
        owner = counts.owner
        indptr = counts.indptr + np.arange(n + 1)
        listed = np.arange(len(owner)) + owner
        below = np.empty(len(owner) + n, dtype=np.int64)
        below[listed] = top[owner] - counts.value
        below[indptr[1:] - 1] = top
        number = np.ones(len(below))
        number[indptr[1:] - 1] = counts.n_absent
        n_below = int(below.max()) + 1
        n_divisor = int(counts.divisor.max()) + 1
        by_k = (counts.divisor == k + first).all()  # then K says what the divisor is
        group = k if by_k else k * n_divisor + counts.divisor.astype(np.int64)
        limit = (n_k + 1) * n_below * (1 if by_k else n_divisor)
        below += np.repeat(group * n_below, np.diff(indptr))
        key, column = distinct(below, limit)
        group, below = np.divmod(key, n_below)
        self.rate_k = group if by_k else group // n_divisor
        self.rate = below / (group + first if by_k else group % n_divisor)
        self.classes = sparse.csr_array((number, column, indptr), shape=(n, len(self.rate)))
        self.classes.sum_duplicates()
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

    def terms(self, beta: np.ndarray) -> np.ndarray:
        """The log term of each pattern, with a beta (n_k,) for each K: (n_patterns,)."""
        total = self.classes @ np.exp(-self.rate * beta[self.rate_k - 1])
        return -self.own_rate * beta[self.k - 1] - np.log(total)

    def log_worst(self, beta: np.ndarray, ks: slice) -> np.ndarray:
        """The log term of the point that fits least, the same point for all beta: (n_k, n_beta)."""
        return log_terms(take(self.worst, np.arange(self.n_k)[ks]), beta).value

    @cached_property
    def worst(self) -> Counts:
        """For each K the pattern that is least probable when neighbors count for much."""
        terms = self.terms(np.full(self.n_k, WORST_BETA))
        least = np.minimum.reduceat(terms, self.starts[:-1])
        shown_by = np.flatnonzero(terms == least[self.k - 1])
        return take(self.counts, shown_by[np.searchsorted(shown_by, self.starts[:-1])])


def histogram(
    table: Neighborhoods,
    labels: np.ndarray,
    n_classes: int,
    k_max: int,
    rows: np.ndarray | None = None,
    n_jobs: int | None = None,
    first: int = 0,
) -> Histogram:
    """The histogram of the training points' patterns for K = first + 1..k_max.

    Parameters
    ----------
    table : Neighborhoods of the points, or of those in `rows`
    labels : (n,) integers from 0, of all points
    rows : the points whose terms are counted, all if None
    """
    own = labels if rows is None else labels[rows]
    words = words_for(table, k_max)

    def count(part: slice) -> Patterns:
        return count_patterns(table, labels, own[part], part, n_classes, first, k_max, words)

    n_terms = len(own) * (k_max - first)
    found = added_up(run(count, parts_of(table), n_jobs), n_terms)
    return Histogram(found.counts, found.k - first, found.n_points, k_max - first, first)


class Histograms:
    """The histogram for all K, made in stretches of K that memory can hold.

    With few classes it is one stretch, or three where only the K of `near` are expected to be asked
    for. With many classes and large K hardly two points show the same pattern, and the patterns of
    all K would take many times the memory of the neighbor table.
    """

    def __init__(
        self,
        table: Neighborhoods,
        labels: np.ndarray,
        n_classes: int,
        n_k: int,
        n_jobs: int | None = None,
        near: slice | None = None,
    ) -> None:
        self.n_k = n_k
        self._of = (table, labels, n_classes)
        self._n_jobs = n_jobs
        entries = np.zeros(n_k)
        if len(table.neighbors) * min(n_classes, n_k) > STRETCH_ENTRIES:  # as many as there can be
            entries = _expected_entries(table, labels, n_classes, n_k)
        ends = {0, n_k} if near is None else {0, near.start, near.stop, n_k}
        self.stretches = [
            slice(a + int(i), a + int(j))
            for a, b in pairwise(sorted(ends))
            for i, j in pairwise(_cuts(entries[a:b]))
        ]
        self._kept: dict[int, Histogram] = {}
        self._worst: dict[int, Counts] = {}

    def stretch(self, i: int) -> Histogram:
        """The histogram of the i-th stretch of K."""
        found = self._kept.get(i)  # looked up once: another thread may drop it
        if found is None:
            span = self.stretches[i]
            found = histogram(*self._of, span.stop, n_jobs=self._n_jobs, first=span.start)
            self._worst[i] = found.worst
            n_kept = sum(len(kept.counts.value) for kept in list(self._kept.values()))
            if n_kept + len(found.counts.value) > 6 * STRETCH_ENTRIES:
                self._kept = {}
            self._kept[i] = found
        return found

    def whole(self) -> Histogram:
        """The histogram of all K at once, whatever memory that takes."""
        return self.stretch(0) if len(self.stretches) == 1 else histogram(*self._of, self.n_k)

    def log_pseudo_likelihood(
        self, beta: np.ndarray, derivatives: bool = False, ks: slice = slice(None)
    ) -> Log:
        """log p(z | beta, K) as `Histogram` gives it."""
        found = [
            self.stretch(i).log_pseudo_likelihood(beta[rows], derivatives, part)
            for i, rows, part in self._touched(ks)
        ]
        if len(found) == 1:
            return found[0]
        names = ("value", "slope", "curvature") if derivatives else ("value",)
        return Log(*(np.concatenate([getattr(f, name) for f in found]) for name in names))

    def log_worst(self, beta: np.ndarray, ks: slice) -> np.ndarray:
        """The log term of the point that fits least, as `Histogram` gives it."""
        found = []
        for i, rows, part in self._touched(ks):
            if i not in self._worst:
                self.stretch(i)
            worst = take(self._worst[i], np.arange(part.start, part.stop))
            found.append(log_terms(worst, beta[rows]).value)
        return np.concatenate(found)

    def _touched(self, ks: slice) -> Iterator[tuple[int, slice, slice]]:
        """Stretches that have some of the `ks`: which, their rows of a table of ks, and their K."""
        first, last, _ = ks.indices(self.n_k)
        for i, span in enumerate(self.stretches):
            a, b = max(first, span.start), min(last, span.stop)
            if a < b:
                yield i, slice(a - first, b - first), slice(a - span.start, b - span.start)


def _expected_entries(
    table: Neighborhoods, labels: np.ndarray, n_classes: int, n_k: int
) -> np.ndarray:
    """About how many class counts the patterns of each K have: (n_k,)."""
    part = parts_of(table)[0]
    if n_classes > DENSE_CLASSES:  # hardly two points show the same pattern: fewer will do
        part = slice(0, min(part.stop, SAMPLE_POINTS))
    words = words_for(table, n_k)
    sample = count_patterns(table, labels, labels[part], part, n_classes, 0, n_k, words)
    found = np.bincount(sample.k - 1, np.diff(sample.counts.indptr), minlength=n_k)
    return found * len(labels) / part.stop


def _cuts(entries: np.ndarray) -> np.ndarray:
    """Where to cut K into stretches of about `STRETCH_ENTRIES`, the two ends included."""
    before = np.concatenate([[0.0], np.cumsum(entries)])
    n_stretches = max(1, int(np.ceil(before[-1] / STRETCH_ENTRIES)))
    inner = np.searchsorted(before, before[-1] * np.arange(1, n_stretches) / n_stretches)
    return np.unique(np.concatenate([[0], inner, [len(entries)]]))


def as_function(counted: Likelihood, first: int = 0) -> Callable:
    """log p(z | beta, K) and its derivatives as a function, of K from first + 1 on.

    It takes beta (n, n_beta), whether derivatives are wanted, and the slice of the n values of K,
    and gives value, slope and curvature, each (n, n_beta).
    """

    def log_likelihood(beta: np.ndarray, derivatives: bool, ks: slice) -> tuple:
        within = slice(first + ks.start, first + ks.stop)
        log = counted.log_pseudo_likelihood(beta, derivatives, within)
        return log.value, log.slope, log.curvature

    return log_likelihood
