"""What the neighbors say for all classes, as features of every class.

A row between two classes has fewer neighbors of a third: the own-class features of all classes
together, centered, enter the logit of each class. They go along with each other, so their leading
directions are enough.

Their weights may have any sign, which lets them tell too much: equal rows have the same neighbors
but for themselves, so the one that misses a neighbor of class c is itself of class c. Whether that
happens is seen with labels dealt out by lot: if the directions, together with curves, explain them
even so, the rows give themselves away, and nothing is crossed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# How many directions; more brought nothing.
LEADING = 25
# The share of the variance of labels by lot that may be explained, beyond what so many features
# explain of any labels. With 200 rows of three yes-no columns it is 1, and noise would cost 0.45 in
# the log loss; on the shared data sets it is up to 0.49, where crossed features bring 1 %.
MOST_EXPLAINED = 0.5
# Features that differ by less, in their units, do not differ.
NO_SPREAD = 1e-6


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


def explained(values: np.ndarray, smooth: np.ndarray, labels: np.ndarray) -> float:
    """How much of the labels' variance is explained (adjusted R squared).

    By the leading directions of features (n_classes, n_rows, n_shared) that belong to these labels,
    together with features of the rows (n_rows, n_smooth) that do not.
    """
    n_classes, n_rows, _ = values.shape
    most = max(1, n_rows // 8)
    features = np.hstack([smooth[:, :most], learn_crossed(values)(values)[:, :most]])
    features = features - features.mean(axis=0)
    features /= np.maximum(features.std(axis=0), NO_SPREAD)
    span, lengths, _ = np.linalg.svd(features, full_matrices=False)
    span = span[:, lengths > NO_SPREAD * np.sqrt(n_rows)]
    wanted = np.eye(n_classes)[labels]
    wanted -= wanted.mean(axis=0)
    if span.shape[1] >= n_rows - 1:
        return 0.0  # so few rows that any labels would be explained
    by_chance = span.shape[1] / (n_rows - 1)
    share = ((span.T @ wanted) ** 2).sum() / (wanted**2).sum()
    return float((share - by_chance) / (1.0 - by_chance))


def _by_row(values: np.ndarray) -> np.ndarray:
    n_classes, n_rows, n_shared = values.shape
    return values.transpose(1, 0, 2).reshape(n_rows, n_classes * n_shared)
