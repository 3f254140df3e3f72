"""Columns that speak linearly: standardized, and as normal scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kfree.field.columns import Columns

# With more columns than this, the weights' prior is narrower, so that their sum does not grow.
MANY_COLUMNS = 50


@dataclass(frozen=True)
class Projection:
    """Columns onto the leading directions of the training rows, where they are too many."""

    directions: np.ndarray | None  # (n_features, n_kept), None: all columns as they are
    factor: float

    def __call__(self, columns: np.ndarray) -> np.ndarray:
        """(n_samples, n_kept)."""
        kept = columns if self.directions is None else columns @ self.directions
        return kept * self.factor


def learn_projection(columns: np.ndarray) -> Projection:
    """All columns, or as many leading singular vectors as half of the rows where d > n / 2."""
    n_samples, n_features = columns.shape
    factor = float(np.sqrt(min(1.0, MANY_COLUMNS / n_features)))
    if n_features <= n_samples / 2:
        return Projection(None, factor)
    _, _, right = np.linalg.svd(columns, full_matrices=False)
    return Projection(np.ascontiguousarray(right[: max(1, n_samples // 2)].T), factor)


def learn_linear(X: np.ndarray, columns: Columns) -> tuple[Projection, Projection]:
    """How the standardized columns and the normal scores enter the logit."""
    return (
        learn_projection(columns.standardized(X)),
        learn_projection(columns.normal_scores(X)),
    )


def linear_part(
    X: np.ndarray, columns: Columns, projections: tuple[Projection, Projection]
) -> tuple[np.ndarray, np.ndarray]:
    """The two linear blocks of rows."""
    return projections[0](columns.standardized(X)), projections[1](columns.normal_scores(X))
