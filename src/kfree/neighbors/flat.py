"""Rows of unequal length in one flat array."""

from __future__ import annotations

import numpy as np


def expand(indptr: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The entries of some rows of a compressed table: flat (position in `rows`, entry)."""
    start = indptr[rows]
    length = indptr[np.asarray(rows) + 1] - start
    owner = np.repeat(np.arange(len(length)), length)
    offset = np.arange(len(owner)) - np.repeat(np.cumsum(length) - length, length)
    return owner, np.repeat(start, length) + offset


def distinct(values: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values, in order, and where each value stands among them.

    Like `np.unique(values, return_inverse=True)` for integers in 0..limit-1, in a fraction of its
    time: without sorting where the values are many, and else by merging, for they rise in parts.
    """
    if limit <= 8 * len(values):
        there = np.zeros(limit, dtype=bool)
        there[values] = True
        found = np.flatnonzero(there)
        position = np.empty(limit, dtype=np.int32 if limit < 1 << 31 else np.int64)
        position[found] = np.arange(len(found))
        return found, position[values]
    order = np.argsort(values, kind="stable")
    rising = values[order]
    first = np.concatenate([[True], rising[1:] != rising[:-1]])[: len(values)]
    position = np.empty(len(values), dtype=np.int64)
    position[order] = np.cumsum(first) - 1
    return rising[first], position


def distinct_hashes(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct 64-bit hashes: an index that shows each, which of them each key is, their numbers.

    The top bits of a key name a bucket, the last key written there stands for its equals, and
    what else fell into the bucket goes on with other bits. Nothing is sorted.
    """
    n_bits = min(18, max(10, len(keys).bit_length()))
    table = np.empty(1 << n_bits, dtype=np.int32)
    stands_for = np.empty(len(keys), dtype=np.int32)
    left, word = np.arange(len(keys), dtype=np.int32), keys
    while len(left):
        bucket = (word >> np.uint64(64 - n_bits)).astype(np.int64)
        table[bucket] = left
        chosen = table[bucket]
        same = keys[chosen] == keys[left]
        stands_for[left[same]] = chosen[same]
        left = left[~same]
        word = word[~same] * np.uint64(0x9E3779B97F4A7C15)
    number = np.bincount(stands_for, minlength=len(keys))
    found = np.flatnonzero(number)
    position = np.empty(len(keys), dtype=np.int32)
    position[found] = np.arange(len(found))
    return found, position[stands_for], number[found]
