"""Columns that speak linearly: standardized, and as normal scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# With more columns than this, the weights' prior is narrower, so that their sum does not grow.
MANY_COLUMNS = 50
# A direction along which the rows differ by less than this, compared with the first, is none.
NO_DIRECTION = 1e-10


@dataclass(frozen=True)
class Projection:
    """Columns onto the leading directions of the training rows, where they are too many.

    The directions are sums of training rows, so that `of_rows` is all that a file has to keep.
    """

    of_rows: np.ndarray | None  # (n_samples, n_kept), None: all columns as they are
    directions: np.ndarray | None  # (n_features, n_kept)
    factor: float

    def __call__(self, columns: np.ndarray) -> np.ndarray:
        """(n_samples, n_kept)."""
        kept = columns if self.directions is None else columns @ self.directions
        return kept * self.factor


def make_projection(of_rows: np.ndarray | None, columns: np.ndarray) -> Projection:
    """The projection onto sums of the training rows' `columns`."""
    factor = float(np.sqrt(min(1.0, MANY_COLUMNS / columns.shape[1])))
    directions = None if of_rows is None else np.ascontiguousarray(columns.T @ of_rows)
    return Projection(of_rows, directions, factor)


def learn_projection(columns: np.ndarray) -> Projection:
    """All columns, or as many leading singular vectors as half of the rows where d > n / 2."""
    n_samples, n_features = columns.shape
    if n_features <= n_samples / 2:
        return make_projection(None, columns)
    left, lengths, _ = np.linalg.svd(columns, full_matrices=False)
    lengths = np.where(lengths > NO_DIRECTION * lengths[0], lengths, np.inf)
    kept = slice(max(1, n_samples // 2))
    return make_projection(np.ascontiguousarray(left[:, kept] / lengths[kept]), columns)
