"""The patterns that points show at each K, and how often: what goes into a histogram.

They are counted for parts of the data, which are then put together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kfree.likelihood.slots import DENSE_CLASSES
from kfree.likelihood.terms import Counts, take
from kfree.neighbors.flat import distinct_hashes, expand
from kfree.neighbors.structures import Neighborhoods

# How many edges of the neighbor table are counted at a time.
PART_EDGES = 1 << 19
# Patterns of parts of the data are only looked through for equals if they are fewer than this share
# of all terms.
SPARING = 0.2


def words_for(table: Neighborhoods, k_max: int) -> np.ndarray:
    """Random words to hash patterns with: for class counts, for a point's own count, for K."""
    longest = int(np.diff(table.indptr).max())
    random = np.random.default_rng(20130)
    return random.integers(0, 1 << 64, (3, max(longest, k_max) + 2), dtype=np.uint64)


def parts_of(table: Neighborhoods, n_edges: int | None = None) -> list[slice]:
    """The points, so many at a time as have about `n_edges` neighbors (`PART_EDGES` if None)."""
    n = len(table.indptr) - 1
    step = max(1, (n_edges or PART_EDGES) // max(1, len(table.neighbors) // max(1, n)))
    return [slice(a, min(a + step, n)) for a in range(0, n, step)]


@dataclass(frozen=True)
class Patterns:
    """The patterns that the points of a part of the data show, and how many show each.

    They are ordered by K.
    """

    key: np.ndarray  # (n_patterns,) a hash of K and the pattern
    k: np.ndarray  # (n_patterns,)
    counts: Counts
    n_points: np.ndarray  # (n_patterns,)


def added_up(parts: list[Patterns], n_terms: int) -> Patterns:
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
    return Patterns(found.key[first], found.k[first], take(found.counts, first), n_points[order])


def _side_by_side(parts: list[Patterns]) -> Patterns:
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
    return Patterns(key, k, counts, n_points)


def count_patterns(
    table: Neighborhoods,
    labels: np.ndarray,
    own: np.ndarray,
    part: slice,
    n_classes: int,
    first_k: int,
    k_max: int,
    words: np.ndarray,
) -> Patterns:
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
    return Patterns(key[shown_by], k, counts, n_points)


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
