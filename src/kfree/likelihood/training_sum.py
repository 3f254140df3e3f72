"""The log pseudo-likelihood of the training labels as a curve in beta, for each candidate of K.

    log p(z | beta, K) = sum over points of b m_z - log sum_c exp(b m_c),    b = beta / divisor

A point's term depends only on its own class's count and on how often each count occurs. The same
pattern of counts occurs at many points, however many classes there are: 20,000 points show 66
patterns for K = 8 and about 3,000 for K = 32, with 16 classes as with 64. So patterns are counted,
once, and every later evaluation is a sum over patterns.

Patterns of parts of the data add up (`together`), which is how they are counted in threads and on
several machines. They stand in the order of K and of their hash, so that the sums do not depend on
the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from kfree.likelihood.counts import RisingCounts
from kfree.likelihood.segments import segment_max, segment_sum
from kfree.neighbors.flat import distinct, distinct_hashes, expand
from kfree.neighbors.structures import Neighborhoods
from kfree.neighbors.threads import run

# How many neighbors are looked at at a time while patterns are counted: with a quarter as many it
# takes nearly half as much time again.
PART_EDGES = 1 << 22
# So many parts are counted before they are added up. All at once they would take four times as much
# memory as the rows and their neighbors do.
PARTS_AT_A_TIME = 4
# How many class counts of patterns are evaluated at a time (about 100 MiB).
GROUP_ENTRIES = 1 << 21
# How many (term, beta) values one evaluation holds.
BLOCK_TERMS = 1 << 21

LogLikelihood = Callable[[np.ndarray, bool, np.ndarray], tuple]


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

    def take(self, points: np.ndarray) -> Counts:
        """The counts of some of the points, in the given order."""
        _, entry = expand(self.indptr, points)
        indptr = np.concatenate([[0], np.cumsum(np.diff(self.indptr)[points])])
        others = self.n_absent[points], self.own[points], self.divisor[points]
        return Counts(indptr, self.value[entry], *others)


@dataclass(frozen=True)
class Terms:
    """Distinct terms of the sum, ordered by K and by hash, and how many points have each."""

    candidate: np.ndarray  # (n_terms,) which candidate of K
    key: np.ndarray  # (n_terms,) a hash of the pattern
    counts: Counts  # of n_terms
    n_points: np.ndarray  # (n_terms,)

    def take(self, chosen: np.ndarray) -> Terms:
        """Some of the terms."""
        those = self.counts.take(chosen), self.n_points[chosen]
        return Terms(self.candidate[chosen], self.key[chosen], *those)


class Curves:
    """log p(z | beta, K) and its derivatives in beta, for the candidates `which` of some terms.

    A term with counts m_c, own count m and divisor D is, with top = max_c m_c,

        -beta (top - m) / D - log sum_c exp(-beta (top - m_c) / D).

    The few distinct (top - m_c) / D of each K, the `rates`, are exponentiated once for all terms;
    the sums over classes are then one sparse product.
    """

    def __init__(self, terms: Terms, which: np.ndarray, held: int = BLOCK_TERMS) -> None:
        """`held` is how many (term, beta) values one evaluation holds."""
        counts, self._held = terms.counts, held
        self.candidate = np.searchsorted(which, terms.candidate)  # place in `which`
        self.starts = np.searchsorted(self.candidate, np.arange(len(which) + 1))
        n = len(self.candidate)
        owner = counts.owner
        top = segment_max(counts.value, counts.indptr, 0).astype(np.int64)
        self.own_rate = (top - counts.own) / counts.divisor
        # Classes without a neighbor make one more entry of each term, its last.
        indptr = counts.indptr + np.arange(n + 1)
        below = np.empty(len(owner) + n, dtype=np.int64)
        below[np.arange(len(owner)) + owner] = top[owner] - counts.value
        below[indptr[1:] - 1] = top
        number = np.ones(len(below))
        number[indptr[1:] - 1] = counts.n_absent
        n_below, n_divisor = int(below.max()) + 1, int(counts.divisor.max()) + 1
        group = self.candidate * n_divisor + counts.divisor.astype(np.int64)
        groups, group = np.unique(group, return_inverse=True)
        key = np.repeat(group * n_below, np.diff(indptr)) + below
        rates, column = distinct(key, len(groups) * n_below)
        of_group, below = np.divmod(rates, n_below)
        self.rate_candidate, divisor = np.divmod(groups[of_group], n_divisor)
        self.rate = below / divisor
        if len(below) < 1 << 31:  # else scipy keeps all of them in 64 bits
            column, indptr = column.astype(np.int32), indptr.astype(np.int32)
        self.classes = sparse.csr_array((number, column, indptr), shape=(n, len(self.rate)))
        self.n_points = terms.n_points.astype(float)
        self._points = sparse.csr_array((self.n_points, np.arange(n), self.starts))

    def __call__(self, beta: np.ndarray, derivatives: bool, which: np.ndarray) -> tuple:
        """Value, slope and curvature, each (n, n_beta); the latter only if asked for.

        Parameters
        ----------
        beta : (n, n_beta), each K has its own
        which : (n,) places among the candidates, rising
        """
        first, last = int(which[0]), int(which[-1]) + 1
        every = np.ones((last - first, beta.shape[1]))
        every[which - first] = beta
        part = slice(self.starts[first], self.starts[last])
        columns = slice(*np.searchsorted(self.rate_candidate, [first, last]))
        classes, points = self.classes, self._points
        if (first, last) != (0, len(self.starts) - 1):
            classes, points = classes[part, columns], points[first:last, part]
        rate, own_rate = self.rate[columns, None], self.own_rate[part, None]
        of_rate, of_term = self.rate_candidate[columns] - first, self.candidate[part] - first

        def sums(beta: np.ndarray) -> tuple:
            weight = np.exp(-rate * beta[of_rate])
            total = classes @ weight
            value = np.log(total)
            value += own_rate * beta[of_term]
            value = -(points @ value)
            if not derivatives:
                return (value,)
            mean = (classes @ (rate * weight)) / total
            square = (classes @ (rate * rate * weight)) / total
            return value, points @ (mean - own_rate), points @ (mean * mean - square)

        step = max(1, self._held // max(1, len(of_term)))
        parts = [sums(every[:, a : a + step]) for a in range(0, beta.shape[1], step)]
        return tuple(
            np.concatenate(part, axis=1)[which - first] for part in zip(*parts, strict=True)
        )

    def terms(self, beta: np.ndarray) -> np.ndarray:
        """Each log term, with a beta (n_k,) for each candidate: (n_terms,)."""
        total = self.classes @ np.exp(-self.rate * beta[self.rate_candidate])
        return -self.own_rate * beta[self.candidate] - np.log(total)


class TrainingSum:
    """The training sum of labeled points; patterns are counted when they are first asked for.

    Parameters
    ----------
    table : Neighborhoods of the points, or of those in `rows`
    labels : (n,) integers from 0, of all points
    rows : the points whose terms are summed, all if None
    by_point : keep the terms of the points apart
    """

    def __init__(
        self,
        table: Neighborhoods,
        labels: np.ndarray,
        n_classes: int,
        n_jobs: int | None = None,
        rows: np.ndarray | None = None,
        by_point: bool = False,
    ) -> None:
        self.n_k = len(table.k)
        self._table = table
        self._arguments = labels, n_classes, n_jobs, rows, by_point

    def groups(self) -> list[np.ndarray]:
        """The candidates in groups whose terms memory can hold at the same time."""
        length = np.diff(self.terms.counts.indptr)
        size = np.bincount(self.terms.candidate, length, minlength=self.n_k)
        group = np.cumsum(size) // GROUP_ENTRIES
        return [np.flatnonzero(group == g) for g in np.unique(group)]

    def curves(self, which: np.ndarray) -> Curves:
        """log p(z | beta, K) of some candidates, by rising index."""
        terms = self.terms
        if len(which) < self.n_k:
            terms = terms.take(np.flatnonzero(np.isin(terms.candidate, which)))
        return Curves(terms, which)

    def each(self) -> Iterator[tuple[np.ndarray, Curves]]:
        """All groups, one after the other, each with its curves."""
        for which in self.groups():
            yield which, self.curves(which)

    def up_to(self, n_k: int) -> TrainingSum:
        """The same at the first n_k candidates."""
        return TrainingSum(self._table.up_to(n_k), *self._arguments)

    @cached_property
    def terms(self) -> Terms:
        """The patterns of all candidates; the terms of all points if these are kept apart."""
        table, (labels, n_classes, n_jobs, rows, by_point) = self._table, self._arguments
        own = labels if rows is None else labels[rows]
        n = len(own)
        step = n if by_point else max(1, PART_EDGES // max(1, len(table.neighbors) // max(1, n)))
        parts = [np.arange(a, min(a + step, n)) for a in range(0, n, max(1, step))]

        def count(part: np.ndarray) -> list[Terms]:
            some = table if len(part) == n else table.take(part)
            return count_patterns(some, labels, own[part], n_classes, by_point)

        merged: list[Terms] = []
        for first in range(0, len(parts), PARTS_AT_A_TIME):
            found = run(count, parts[first : first + PARTS_AT_A_TIME], n_jobs)
            found += [merged] if merged else []
            merged = found[0]
            if len(found) > 1:
                merged = [together(list(of_parts)) for of_parts in zip(*found, strict=True)]
        del found
        return one_after_the_other(merged)


def count_patterns(
    table: Neighborhoods, labels: np.ndarray, own: np.ndarray, n_classes: int, by_point: bool
) -> list[Terms]:
    """The patterns that points show at each candidate of K, ordered by hash; or all their terms."""
    counts = RisingCounts(table, labels, own, n_classes)
    return [_patterns(i, counts, by_point) for i in range(len(table.k))]


def _patterns(i: int, counts: RisingCounts, by_point: bool) -> Terms:
    """The distinct patterns of the i-th candidate, or the term of each point.

    A multiset of counts is hashed as the sum of a random word for each count. Two of 10^5 patterns
    share a 64-bit hash with probability below 10^-9.
    """
    count, slots = counts.rise_to(i), counts.slots
    there = np.flatnonzero(count)
    indptr, value = np.searchsorted(there, slots.indptr), count[there]
    word = _word(np.arange(int(value.max(initial=0)) + 1))
    key = segment_sum(word[value], indptr) + _word(count[counts.own] + (np.int64(1) << 40))
    if by_point:
        shown_by, n_points = np.arange(slots.n_points), np.ones(slots.n_points, dtype=np.int64)
    else:
        shown_by, _, n_points = distinct_hashes(key)
        order = np.argsort(key[shown_by])
        shown_by, n_points = shown_by[order], n_points[order]
    owner, entry = expand(indptr, shown_by)
    n_there = np.diff(indptr)[shown_by]
    # Whoever shows a pattern, its counts stand in the same order. Merging takes a fifth of the time
    # of other sorts here, where all but the order within each point is sorted.
    packed = np.sort(owner * np.int64(len(word)) + value[entry], kind="stable")
    shown = Counts(
        np.concatenate([[0], np.cumsum(n_there)]),
        (packed % len(word)).astype(np.int32),  # there are many
        (slots.n_classes - n_there).astype(np.int32),
        count[counts.own[shown_by]],
        counts.divisor(i)[shown_by],
    )
    candidate = np.full(len(shown_by), i, dtype=np.int32)
    return Terms(candidate, key[shown_by], shown, n_points.astype(np.int32))


def together(parts: list[Terms]) -> Terms:
    """The terms of all parts of the data, in an order that does not depend on the parts."""
    found = one_after_the_other(parts)
    order = np.lexsort((found.key, found.candidate))
    key, candidate = found.key[order], found.candidate[order]
    first = np.append(True, (key[1:] != key[:-1]) | (candidate[1:] != candidate[:-1]))
    starts = np.flatnonzero(first)
    n_points = np.add.reduceat(found.n_points[order], starts, dtype=found.n_points.dtype)
    return Terms(candidate[starts], key[starts], found.counts.take(order[starts]), n_points)


def one_after_the_other(parts: list[Terms]) -> Terms:
    """Terms in the order of the parts."""
    length = np.concatenate([np.diff(part.counts.indptr) for part in parts])
    counts = Counts(
        np.concatenate([[0], np.cumsum(length)]),
        *(
            np.concatenate([getattr(part.counts, name) for part in parts])
            for name in ("value", "n_absent", "own", "divisor")
        ),
    )
    return Terms(
        np.concatenate([part.candidate for part in parts]),
        np.concatenate([part.key for part in parts]),
        counts,
        np.concatenate([part.n_points for part in parts]),
    )


def _word(value: np.ndarray) -> np.ndarray:
    """A random-looking 64-bit word for each small integer (the finalizer of splitmix64)."""
    with np.errstate(over="ignore"):
        x = (value.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))
