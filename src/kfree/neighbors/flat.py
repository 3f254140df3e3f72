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

    Like `np.unique(values, return_inverse=True)` for integers in 0..limit-1, without sorting
    where the values are many.
    """
    if limit > 8 * len(values):
        return np.unique(values, return_inverse=True)
    there = np.zeros(limit, dtype=bool)
    there[values] = True
    found = np.flatnonzero(there)
    position = np.empty(limit, dtype=np.int64)
    position[found] = np.arange(len(found))
    return found, position[values]
