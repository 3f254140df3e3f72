"""Numbers on one scale: gaps filled in with the median, then mean 0 and standard deviation 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kfree.plain_text import quoted
from kfree.tables.messages import TableError

# Larger numbers have no square that a computer can hold with their differences.
LARGEST = 1e150


def learn_scales(table: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The median of each column (n_rows, n_columns), then center and scale once gaps are filled."""
    # Every used column has two values at least.
    median = np.nanmedian(table, axis=0) if table.size else np.empty(0)
    filled = np.where(np.isnan(table), median, table)
    scale = filled.std(axis=0)
    # Two numbers that differ in their last digit only may have no spread that can be seen.
    return median, filled.mean(axis=0), np.where(scale > 0.0, scale, 1.0)


def usable(names: Sequence[str], table: np.ndarray) -> np.ndarray:
    """The columns (n_rows, n_names) with NaN for infinity; raises if a number is too large."""
    there = np.isfinite(table)
    large = there & (np.abs(np.where(there, table, 0.0)) > LARGEST)
    if large.any():
        row, column = np.argwhere(large)[0]
        raise TableError(
            f"The column {quoted(names[column])} holds {table[row, column]:g}, which is too large "
            f"to measure distances with; numbers up to {LARGEST:g} can be used."
        )
    return np.where(there, table, np.nan)
