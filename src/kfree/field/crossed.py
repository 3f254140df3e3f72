"""What the neighbors say for all classes, as features of every class.

A row between two classes has fewer neighbors of a third: the own-class features of all classes
together, centered, enter the logit of each class. They go along with each other, so their leading
directions are enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# How many directions.
LEADING = 25


@dataclass(frozen=True)
class Crossed:
    """Own-class features of all classes -> their leading directions."""

    center: np.ndarray  # (n_classes * n_shared,)
    directions: np.ndarray  # (n_classes * n_shared, n_kept)

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """(n_rows, n_kept) from (n_classes, n_rows, n_shared)."""
        return (_by_row(values) - self.center) @ self.directions


def learn_crossed(values: np.ndarray) -> Crossed:
    """The leading directions of the training rows' features (n_classes, n_rows, n_shared)."""
    rows = _by_row(values)
    center = rows.mean(axis=0)
    rows = rows - center
    most = min(LEADING, *rows.shape)
    _, vectors = np.linalg.eigh(rows.T @ rows)
    return Crossed(center, np.ascontiguousarray(vectors[:, ::-1][:, :most]))


def _by_row(values: np.ndarray) -> np.ndarray:
    n_classes, n_rows, n_shared = values.shape
    return values.transpose(1, 0, 2).reshape(n_rows, n_classes * n_shared)
