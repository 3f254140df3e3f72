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
from itertools import pairwise

import numpy as np
from scipy import sparse

from kfree.likelihood.slots import DENSE_CLASSES
from kfree.likelihood.terms import Counts, Log, log_terms, segment_max, take
from kfree.neighbors.flat import distinct, distinct_hashes, expand
from kfree.neighbors.structures import Neighborhoods
from kfree.neighbors.threads import run

# How many (pattern, beta) values one evaluation holds.
BLOCK_TERMS = 1 << 22
# How many edges of the neighbor table are counted at a time.
PART_EDGES = 1 << 19
# Patterns of parts of the data are only looked through for equals if they are fewer than this share
# of all terms.
SPARING = 0.2
# About how many class counts are held at a time (a GiB or two while they are made).
STRETCH_ENTRIES = 1 << 24
# As many patterns as are enough to see about where modes are.
FEW_PATTERNS = 1 << 16
# The strength at which points are compared to find the one that fits least.
WORST_BETA = 20.0


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
        self._first = first
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

    def log_worst(self, beta: np.ndarray, ks: slice) -> np.ndarray:
        """The log term of the point that fits least, the same point for all beta: (n_k, n_beta)."""
        return log_terms(take(self.worst, np.arange(self.n_k)[ks]), beta).value

    @cached_property
    def worst(self) -> Counts:
        """For each K the pattern that is least probable when neighbors count for much."""
        total = self.classes @ np.exp(-WORST_BETA * self.rate)
        terms = -WORST_BETA * self.own_rate - np.log(total)
        least = np.minimum.reduceat(terms, self.starts[:-1])
        shown_by = np.flatnonzero(terms == least[self.k - 1])
        return take(self.counts, shown_by[np.searchsorted(shown_by, self.starts[:-1])])

    def thinned(self) -> Histogram:
        """About `FEW_PATTERNS` of the patterns, which stand for all."""
        step = -(-len(self.k) // FEW_PATTERNS)
        place = np.arange(len(self.k)) - self.starts[self.k - 1]
        few = np.flatnonzero(place % step == 0)  # each K keeps its first
        return Histogram(
            take(self.counts, few), self.k[few], step * self.n_points[few], self.n_k, self._first
        )


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
    words = _words(table, k_max)

    def count(part: slice) -> _Patterns:
        return _count(table, labels, own[part], part, n_classes, first, k_max, words)

    n_terms = len(own) * (k_max - first)
    found = _added_up(run(count, _parts(table), n_jobs), n_terms)
    return Histogram(found.counts, found.k - first, found.n_points, k_max - first, first)


class Histograms:
    """The histogram for all K, made in stretches of K that memory can hold.

    With few classes it is one stretch. With many classes and large K hardly two points show the
    same pattern, and the patterns of all K would take many times the memory of the neighbor table.
    """

    def __init__(
        self,
        table: Neighborhoods,
        labels: np.ndarray,
        n_classes: int,
        n_k: int,
        n_jobs: int | None = None,
    ) -> None:
        self.n_k = n_k
        self._of = (table, labels, n_classes)
        self._n_jobs = n_jobs
        parts = _parts(table)
        n_stretches = 1
        if len(table.neighbors) * min(n_classes, n_k) > STRETCH_ENTRIES:  # as many as there can be
            sample = _count(
                *self._of[:2], labels[parts[0]], parts[0], n_classes, 0, n_k, _words(table, n_k)
            )
            n_stretches = -(-len(sample.counts.value) * len(parts) // STRETCH_ENTRIES)
        ends = np.linspace(0, n_k, min(n_k, n_stretches) + 1).astype(int)
        self.stretches = [slice(int(a), int(b)) for a, b in pairwise(ends)]
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


def _words(table: Neighborhoods, k_max: int) -> np.ndarray:
    longest = int(np.diff(table.indptr).max())
    random = np.random.default_rng(20130)
    return random.integers(0, 1 << 64, (3, max(longest, k_max) + 2), dtype=np.uint64)


def _parts(table: Neighborhoods) -> list[slice]:
    """The points, so many at a time as have about `PART_EDGES` neighbors."""
    n = len(table.indptr) - 1
    step = max(1, PART_EDGES // max(1, len(table.neighbors) // n))
    return [slice(a, min(a + step, n)) for a in range(0, n, step)]


@dataclass(frozen=True)
class _Patterns:
    """The patterns that the points of a part of the data show, and how many show each.

    They are ordered by K.
    """

    key: np.ndarray  # (n_patterns,) a hash of K and the pattern
    k: np.ndarray  # (n_patterns,)
    counts: Counts
    n_points: np.ndarray  # (n_patterns,)


def _added_up(parts: list[_Patterns], n_terms: int) -> _Patterns:
    """The patterns of all parts, ordered by K."""
    if len(parts) == 1:
        return parts[0]
    found = _side_by_side(parts)
    if len(found.key) > SPARING * n_terms:  # so many that few will be the same in two parts
        return found
    _, first, where = np.unique(found.key, return_index=True, return_inverse=True)
    n_points = np.bincount(where, found.n_points).astype(np.int64)
    order = np.argsort(first)
    first = first[order]
    return _Patterns(found.key[first], found.k[first], take(found.counts, first), n_points[order])


def _side_by_side(parts: list[_Patterns]) -> _Patterns:
    """For each K the patterns of all parts, one part after the other."""
    n_k = max(int(part.k[-1]) for part in parts)
    starts = [np.searchsorted(part.k, np.arange(n_k + 2)) for part in parts]
    entries = [part.counts.indptr[start] for part, start in zip(parts, starts, strict=True)]

    def joined(arrays: list[np.ndarray], bounds: list[np.ndarray]) -> np.ndarray:
        return np.concatenate(
            [
                array[bound[k] : bound[k + 1]]
                for k in range(n_k + 1)
                for array, bound in zip(arrays, bounds, strict=True)
            ]
        )

    length = joined([np.diff(part.counts.indptr) for part in parts], starts)
    counts = Counts(
        np.concatenate([[0], np.cumsum(length)]),
        joined([part.counts.value for part in parts], entries),
        *(
            joined([getattr(part.counts, name) for part in parts], starts)
            for name in ("n_absent", "own", "divisor")
        ),
    )
    key, k, n_points = (
        joined([getattr(part, name) for part in parts], starts) for name in ("key", "k", "n_points")
    )
    return _Patterns(key, k, counts, n_points)


def _count(
    table: Neighborhoods,
    labels: np.ndarray,
    own: np.ndarray,
    part: slice,
    n_classes: int,
    first_k: int,
    k_max: int,
    words: np.ndarray,
) -> _Patterns:
    """The patterns of some of the points, for all K at once.

    A multiset of counts is hashed as the sum of a random word for each count, so each neighbor
    changes the hash by a difference of two words, and the hashes for all K are one cumulative sum.
    Two of 10^5 patterns share a 64-bit hash with probability below 10^-9.
    """
    n = part.stop - part.start
    first, last = table.indptr[part.start], table.indptr[part.stop]
    indptr = table.indptr[part.start : part.stop + 1] - first
    label = labels[table.neighbors[first:last]].astype(np.int64)
    owner = np.repeat(np.arange(n), np.diff(indptr))
    # Sorted by point, class and place in the point's list, all in one word.
    bits = int(np.diff(indptr).max()).bit_length()
    place = np.arange(len(owner)) - indptr[owner]
    packed = np.sort(((owner * n_classes + label) << bits) | place)
    group = packed >> bits
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    n_before = np.arange(len(packed)) - np.repeat(starts, np.diff(starts, append=len(packed)))
    step = np.empty(len(packed), dtype=np.uint64)
    edge = indptr[owner] + (packed & ((1 << bits) - 1))
    step[edge] = (words[0, 1:] - words[0, :-1])[n_before]

    end = _list_ends(table, part, k_max)[:, first_k:]  # (n, n_k)
    key = _running_sum(step, indptr, end)
    own_count = _running_sum(label == own[owner], indptr, end)
    key += words[1][own_count]
    key += words[2][first_k + 1 : k_max + 1]
    key = key.T.ravel()
    shown_by, _, n_points = distinct_hashes(key)
    k, point = np.divmod(shown_by, n)
    own_count = own_count[point, k]
    length = end[point, k] - indptr[point]
    k += first_k + 1

    # The counts of each pattern, read off a point that shows it.
    if n_classes <= DENSE_CLASSES:
        count = np.empty((len(point), n_classes), dtype=np.int64)
        for c in range(n_classes):
            count[:, c] = _between(label == c, indptr[point], indptr[point] + length)
        present = count > 0
        value, n_present = count[present], present.sum(axis=1)
    else:
        first_group = np.searchsorted(starts, indptr)
        owner, which = expand(first_group, point)
        first_place = packed[starts] & ((1 << bits) - 1)
        present = first_place[which] < length[owner]
        owner, which = owner[present], which[present]
        until = (group[starts[which]] << bits) + length[owner]
        value = np.searchsorted(packed, until) - starts[which]
        n_present = np.bincount(owner, minlength=len(point))
    counts = Counts(
        np.concatenate([[0], np.cumsum(n_present)]),
        value,
        n_classes - n_present,
        own_count,
        (length if table.by_size else k).astype(float),
    )
    return _Patterns(key[shown_by], k, counts, n_points)


def _list_ends(table: Neighborhoods, part: slice, k_max: int) -> np.ndarray:
    """Where the neighborhood at each K ends in the flat lists of a part: (n, k_max)."""
    n = part.stop - part.start
    first, last = table.indptr[part.start], table.indptr[part.stop]
    start = (table.indptr[part.start : part.stop] - first)[:, None]
    if table.k_max is not None:
        return start + np.arange(1, k_max + 1)
    owner = np.repeat(np.arange(n), np.diff(table.indptr[part.start : part.stop + 1]))
    ranks = table.ranks[first:last]
    inside = ranks < k_max
    joined = np.bincount(owner[inside] * k_max + ranks[inside], minlength=n * k_max)
    return start + joined.reshape(n, k_max).cumsum(axis=1)


def _running_sum(values: np.ndarray, indptr: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Sums from the start of each list up to `end`: (n, k_max)."""
    return _between(values, indptr[:-1, None], end)


def _between(values: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Sums of the values from `start` up to `end`."""
    dtype = values.dtype if values.dtype == np.uint64 else np.int64
    total = np.zeros(len(values) + 1, dtype=dtype)
    np.cumsum(values, out=total[1:])
    return total[end] - total[start]
