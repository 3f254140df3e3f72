"""Columns that speak linearly, as normal scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# With more columns than this, the weights' prior is narrower, so that their sum does not grow.
MANY_COLUMNS = 50
# A direction along which the rows differ by less than this, compared with the first, is none.
NO_DIRECTION = 1e-10


@dataclass(frozen=True)
class Projection:
    """Normal scores onto the leading directions of the training rows, where they are too many.

    The directions are sums of training rows, so that `of_rows` is all that a file has to keep.
    """

    of_rows: np.ndarray | None  # (n_samples, n_kept), None: all columns as they are
    directions: np.ndarray | None  # (n_features, n_kept)
    factor: float

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """(n_samples, n_kept)."""
        kept = scores if self.directions is None else scores @ self.directions
        return kept * self.factor


def make_projection(of_rows: np.ndarray | None, scores: np.ndarray) -> Projection:
    """The projection onto sums of the training rows' `scores`."""
    factor = float(np.sqrt(min(1.0, MANY_COLUMNS / scores.shape[1])))
    directions = None if of_rows is None else np.ascontiguousarray(scores.T @ of_rows)
    return Projection(of_rows, directions, factor)


def learn_projection(scores: np.ndarray) -> Projection:
    """All columns, or as many leading singular vectors as half of the rows where d > n / 2."""
    n_samples, n_features = scores.shape
    if n_features <= n_samples / 2:
        return make_projection(None, scores)
    left, lengths, _ = np.linalg.svd(scores, full_matrices=False)
    lengths = np.where(lengths > NO_DIRECTION * lengths[0], lengths, np.inf)
    kept = slice(max(1, n_samples // 2))
    return make_projection(np.ascontiguousarray(left[:, kept] / lengths[kept]), scores)
