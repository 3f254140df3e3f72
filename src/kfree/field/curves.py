"""Columns that speak in smooth curves: the leading directions of a kernel between rows.

    k(a, b) = exp(-|a - b| / r)

with the Manhattan distance between normal scores and r its median. Its features are those of
Nystroem's method on up to 300 training rows, spread evenly over all: linear weights for them with
a normal prior are a Gaussian process whose covariance is k. Labels have no part in them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist, pdist

from kfree.field.crossed import LEADING

MOST_LANDMARKS = 300


@dataclass(frozen=True)
class Curves:
    """Normal scores -> features, of mean 0 on the training rows."""

    landmarks: np.ndarray  # (n_landmarks, n_features) normal scores
    unit: float  # r
    matrix: np.ndarray  # (n_landmarks, n_kept)
    center: np.ndarray  # (n_kept,)

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """(n_rows, n_kept)."""
        return _kernel(scores, self.landmarks, self.unit) @ self.matrix - self.center


def learn_curves(scores: np.ndarray) -> Curves:
    """The curves that the training rows' normal scores suggest."""
    landmarks = landmarks_of(scores, min(len(scores), MOST_LANDMARKS))
    unit = float(np.median(pdist(landmarks, "cityblock")))
    unit = unit if unit > 0.0 else 1.0
    values, vectors = np.linalg.eigh(_kernel(landmarks, landmarks, unit))
    values, vectors = values[::-1][:LEADING], vectors[:, ::-1][:, :LEADING]
    kept = values > 1e-6 * values[0]
    matrix = vectors[:, kept] / np.sqrt(values[kept])
    features = _kernel(scores, landmarks, unit) @ matrix
    return Curves(landmarks, unit, matrix, features.mean(axis=0))


def landmarks_of(scores: np.ndarray, n_landmarks: int) -> np.ndarray:
    """Training rows spread evenly over all: (n_landmarks, n_features)."""
    return scores[np.arange(n_landmarks) * len(scores) // n_landmarks]


def _kernel(rows: np.ndarray, landmarks: np.ndarray, unit: float) -> np.ndarray:
    return np.exp(-cdist(rows, landmarks, "cityblock") / unit)
