"""Sums and maxima over segments of flat arrays, along the first axis."""

from __future__ import annotations

import numpy as np


def segment_sum(values: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """Sums over `indptr[i]:indptr[i + 1]` along the first axis; empty segments give zero."""
    n = len(indptr) - 1
    if n == 0 or len(values) == 0:
        return np.zeros((n, *values.shape[1:]), dtype=values.dtype)
    length = np.diff(indptr)
    if length.min() == length.max():
        # Takes a third of the time of `sum`.
        return np.einsum("ij...->i...", values.reshape(n, length[0], *values.shape[1:]))
    filled = length > 0
    out = np.zeros((n, *values.shape[1:]), dtype=values.dtype)
    out[filled] = np.add.reduceat(values, indptr[:-1][filled], axis=0)
    return out


def segment_max(values: np.ndarray, indptr: np.ndarray, empty: float) -> np.ndarray:
    """Maxima over `indptr[i]:indptr[i + 1]` along the first axis; `empty` where nothing is."""
    n = len(indptr) - 1
    length = np.diff(indptr)
    if n and values.ndim > 1 and length.min() == length.max() > 0:
        return values.reshape(n, length[0], *values.shape[1:]).max(axis=1)
    filled = length > 0
    out = np.full((n, *values.shape[1:]), empty, dtype=values.dtype)
    if filled.any():
        out[filled] = np.maximum.reduceat(values, indptr[:-1][filled], axis=0)
    return out
