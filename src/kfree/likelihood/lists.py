"""Class counts at any K, read off lists of neighbors that are sorted by class.

With many classes hardly two points show the same pattern, so there is nothing to gain from counting
patterns. But a point has few classes near it. Each neighbor knows here how many nearer ones have
its class and from which K on the next of its class counts; at K, the last of each class that counts
speaks for its class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse

from kfree.likelihood.counting import parts_of
from kfree.likelihood.patterns import WORST_BETA, Histogram, histogram
from kfree.likelihood.terms import Counts, Log, log_terms
from kfree.neighbors.structures import Neighborhoods
from kfree.neighbors.threads import run

# How many neighbors are looked at at a time: enough for threads not to wait for each other.
SMALLEST_PART = 1 << 18
LARGEST_PART = 1 << 21
# How many are sorted at a time: so many fit the cache.
SORTED_EDGES = 1 << 17


@dataclass(frozen=True)
class ClassLists:
    """The neighbors of n points: point i has `indptr[i]:indptr[i + 1]`, sorted by class and rank.

    A neighbor counts for K > its rank.
    """

    indptr: np.ndarray  # (n + 1,)
    classes: np.ndarray  # (n_edges,)
    own: np.ndarray  # (n_edges,) whether it is the point's own class
    rank: np.ndarray  # (n_edges,)
    number: np.ndarray  # (n_edges,) neighbors of this class up to this one
    again: np.ndarray  # (n_edges,) the rank of the next of this class, beyond all K if none follows
    n_classes: int
    by_size: bool

    @property
    def n_points(self) -> int:
        return len(self.indptr) - 1

    def at(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The classes around each point at K = k.

        Returns
        -------
        edge : (n_entries,) the edges that speak for their classes, increasing
        indptr : (n + 1,) point i has `edge[indptr[i]:indptr[i + 1]]`
        """
        edge = np.flatnonzero((self.rank < k) & (self.again >= k))
        return edge, np.searchsorted(edge, self.indptr)

    def counts(self, k: int) -> Counts:
        """The class counts around each point at K = k, which must be at least 1."""
        indptr, value, own = self._counted(k)
        value, own = value.astype(np.int64), own.astype(np.int64)
        divisor = np.add.reduceat(value, indptr[:-1]) if self.by_size else np.full(len(own), k)
        n_absent = self.n_classes - np.diff(indptr)
        return Counts(indptr, value, n_absent, own, divisor.astype(float))

    def _counted(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Each point's first entry, the entries' class counts, and each point's own class's."""
        edge, indptr = self.at(k)
        value = self.number[edge]
        mine = np.flatnonzero(self.own[edge])
        own = np.zeros(self.n_points, dtype=value.dtype)
        own[np.searchsorted(indptr, mine, side="right") - 1] = value[mine]
        return indptr, value, own

    def counts_of(self, point: int, k: int) -> Counts:
        """The class counts around one point at K = k."""
        part = slice(self.indptr[point], self.indptr[point + 1])
        names = ("classes", "own", "rank", "number", "again")
        edges = {name: getattr(self, name)[part] for name in names}
        return replace(self, indptr=np.array([0, part.stop - part.start]), **edges).counts(k)

    def log_terms(self, k: int, beta: np.ndarray, derivatives: bool = False) -> Log:
        """The points' log terms at K = k and the betas (n_beta,): Log of (n, n_beta)."""
        if self.by_size:
            return log_terms(self.counts(k), beta[None], derivatives)
        # All counts are divided by K, so that few exponentials are needed.
        indptr, value, own = self._counted(k)
        top = np.maximum.reduceat(value, indptr[:-1])
        below = np.repeat(top, np.diff(indptr)) - value
        rate = np.arange(int(top.max()) + 1)[:, None] / k
        weight = np.exp(-rate * beta)  # (n_rates, n_beta)
        tables = [weight, rate * weight, rate * rate * weight] if derivatives else [weight]
        together = np.hstack(tables)
        classes = sparse.csr_array(
            (np.ones(len(below)), below.astype(np.int32), indptr.astype(np.int32)),
            shape=(self.n_points, len(rate)),
        )
        n_absent = self.n_classes - np.diff(indptr)
        sums = classes @ together + n_absent[:, None] * together[top]
        total, *others = np.split(sums, len(tables), axis=1)
        own_rate = (top - own)[:, None] / k
        logarithm = -own_rate * beta - np.log(total)
        if not derivatives:
            return Log(logarithm)
        mean, square = (other / total for other in others)
        return Log(logarithm, mean - own_rate, mean * mean - square)


def class_lists(
    table: Neighborhoods, labels: np.ndarray, own: np.ndarray, n_classes: int
) -> ClassLists:
    """The lists of a table.

    Parameters
    ----------
    table : Neighborhoods of some points
    labels : (n,) integers from 0, of all points
    own : labels of the points of the table
    """
    n_edges = len(table.neighbors)
    longest = int(np.diff(table.indptr).max(initial=0))
    last = longest if table.k_max is not None else int(table.ranks.max(initial=0)) + 1
    class_type, rank_type = np.min_scalar_type(n_classes), np.min_scalar_type(last)
    lists = ClassLists(
        table.indptr,
        np.empty(n_edges, dtype=class_type),
        np.empty(n_edges, dtype=bool),
        np.empty(n_edges, dtype=rank_type),
        np.empty(n_edges, dtype=np.min_scalar_type(longest)),
        np.empty(n_edges, dtype=rank_type),
        n_classes,
        table.by_size,
    )
    for part in parts_of(table, SORTED_EDGES):
        _sort(table, labels, own, part, lists)
    return lists


def _sort(
    table: Neighborhoods, labels: np.ndarray, own: np.ndarray, part: slice, lists: ClassLists
) -> None:
    """Fill in the lists of a part of the points."""
    edges = slice(table.indptr[part.start], table.indptr[part.stop])
    indptr = table.indptr[part.start : part.stop + 1] - edges.start
    length = np.diff(indptr)
    bits = int(length.max()).bit_length()
    near = labels[table.neighbors[edges]]
    if table.k_max is not None:
        # Short rows sort faster than all edges together.
        wide = np.int32 if lists.n_classes << bits < 1 << 31 else np.int64
        packed = near.reshape(len(length), -1).astype(wide) << bits
        packed |= np.arange(packed.shape[1], dtype=wide)
        packed.sort(axis=1)
        packed = packed.ravel()
        classes, rank = packed >> bits, packed & ((1 << bits) - 1)
    else:
        owner = np.repeat(np.arange(len(length)), length)
        place = np.arange(len(near)) - indptr[owner]
        packed = np.sort(((owner * lists.n_classes + near) << bits) | place)
        classes = (packed >> bits) - owner * lists.n_classes
        rank = table.ranks[edges][indptr[owner] + (packed & ((1 << bits) - 1))]
    begins = np.empty(len(classes), dtype=bool)
    np.not_equal(classes[1:], classes[:-1], out=begins[1:])
    begins[indptr[:-1]] = True
    first = np.flatnonzero(begins)
    number = np.arange(1, len(classes) + 1)
    number -= np.repeat(first, np.diff(first, append=len(classes)))
    lists.classes[edges] = classes
    lists.own[edges] = classes == np.repeat(own[part], length)
    lists.rank[edges] = rank
    lists.number[edges] = number
    again = lists.again[edges]
    again[:] = np.iinfo(again.dtype).max
    np.copyto(again[:-1], rank[1:], where=~begins[1:], casting="unsafe")


class ListSums:
    """The training sum for K = 1..n_k, point by point.

    It answers as `Histograms` does, and takes less time and memory where patterns hardly repeat.
    """

    def __init__(
        self,
        table: Neighborhoods,
        labels: np.ndarray,
        n_classes: int,
        n_k: int,
        n_jobs: int | None = None,
        rows: np.ndarray | None = None,
    ) -> None:
        """`rows` says whose neighborhoods are in the table, all points' if None."""
        self.n_k = n_k
        self.n_points = len(table.indptr) - 1
        self._of = table, labels, labels if rows is None else labels[rows], n_classes
        self._n_jobs = n_jobs
        self._worst: dict[int, Counts] = {}

    @cached_property
    def parts(self) -> list[ClassLists]:
        """The lists, in parts of the data that are looked at on their own and added up."""
        table, labels, own, n_classes = self._of

        def make(part: slice) -> ClassLists:
            points = np.arange(part.start, part.stop)
            return class_lists(table.take(points), labels, own[part], n_classes)

        share = -(-len(table.neighbors) // effective_n_jobs(self._n_jobs))
        n_edges = min(LARGEST_PART, max(SMALLEST_PART, share))
        return run(make, parts_of(table, n_edges), self._n_jobs)

    def log_pseudo_likelihood(
        self, beta: np.ndarray, derivatives: bool = False, ks: slice = slice(None)
    ) -> Log:
        """log p(z | beta, K) for the slice `ks` of K - 1, as `Histogram` gives it."""
        every = range(*ks.indices(self.n_k))

        def add_up(lists: ClassLists) -> np.ndarray:
            found = np.empty((3 if derivatives else 1, len(every), beta.shape[1]))
            for i, k in enumerate(every):
                log = lists.log_terms(k + 1, beta[i], derivatives)
                summed = log.map(lambda values: values.sum(axis=0))
                found[:, i] = [summed.value, summed.slope, summed.curvature][: len(found)]
            return found

        return Log(*sum(self._of_parts(add_up)))

    def compared(
        self, beta: np.ndarray, ks: slice, reference: tuple[int, float]
    ) -> tuple[Log, np.ndarray]:
        """The sums with one beta for each of the `ks`, and how they vary from point to point.

        Parameters
        ----------
        beta : (n_ks,)
        reference : a K and a beta

        Returns
        -------
        Log of (n_ks,)
        (n_ks,) the standard deviation of the differences of the points' log terms from those at
        the reference
        """
        every = range(*ks.indices(self.n_k))

        def add_up(lists: ClassLists) -> np.ndarray:
            found = np.empty((4, len(every)))
            there = lists.log_terms(reference[0], np.array(reference[1:])).value
            for i, k in enumerate(every):
                log = lists.log_terms(k + 1, beta[i : i + 1], derivatives=True)
                summed = log.map(np.sum)
                square = np.square(log.value - there).sum()
                found[:, i] = summed.value, summed.slope, summed.curvature, square
            return np.vstack([found, np.full(len(every), there.sum())])

        value, slope, curvature, square, there = sum(self._of_parts(add_up))
        n = self.n_points
        variance = square / n - ((value - there) / n) ** 2
        return Log(value, slope, curvature), np.sqrt(np.maximum(variance, 0.0))

    def log_worst(self, beta: np.ndarray, ks: slice) -> np.ndarray:
        """The log term of the point that fits least, as `Histogram` gives it."""
        every = range(*ks.indices(self.n_k))
        unknown = [k for k in every if k not in self._worst]

        def least(lists: ClassLists) -> list[tuple[float, Counts]]:
            found = []
            for k in unknown:
                term = lists.log_terms(k + 1, np.array([WORST_BETA])).value[:, 0]
                found.append((float(term.min()), lists.counts_of(int(term.argmin()), k + 1)))
            return found

        if unknown:
            for k, *candidates in zip(unknown, *self._of_parts(least), strict=True):
                self._worst[k] = min(candidates, key=lambda candidate: candidate[0])[1]
        return np.concatenate(
            [log_terms(self._worst[k], beta[i : i + 1]).value for i, k in enumerate(every)]
        )

    def whole(self) -> Histogram:
        """The histogram of all K at once, whatever memory that takes."""
        table, labels, _, n_classes = self._of
        return histogram(table, labels, n_classes, self.n_k, n_jobs=self._n_jobs)

    def _of_parts(self, work: Callable) -> list:
        return run(work, self.parts, self._n_jobs)
