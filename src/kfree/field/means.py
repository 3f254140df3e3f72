"""How far a row is from the mean of each class, whitened within classes: one voice of "within".

With D the squared distance from a class's mean in d columns, two features say the same as a normal
density and as one with long tails:

    -1/2 D / sqrt(d)    and    -1/2 sqrt(d) log(1 + D / d)

A training row is measured without itself: its class's mean loses it, and so does the whitening.
"""

from __future__ import annotations

import numpy as np

from kfree.field.within import Whitening, own_pull

FEATURES = 2


def training_squares(points: np.ndarray, labels: np.ndarray, whitening: Whitening) -> np.ndarray:
    """D of whitened training rows, each left out: (n_points, n_classes)."""
    sizes = np.bincount(labels)[labels].astype(float)
    rows = np.arange(len(labels))
    z, kappa = own_pull(points, labels, whitening)
    away = np.einsum("ij,ij->i", z, points)[:, None] - z @ whitening.means.T
    squares = new_squares(points, whitening)
    # The mean of the row's class without the row is farther off by n_c / (n_c - 1).
    farther = sizes / np.maximum(sizes - 1.0, 1.0)
    squares[rows, labels] *= farther**2
    away[rows, labels] *= farther
    squares += kappa[:, None] * away**2
    # A class of one row has no mean without it: as far off as the farthest.
    alone = sizes == 1.0
    squares[rows[alone], labels[alone]] = squares[alone].max(axis=1)
    return squares


def new_squares(points: np.ndarray, whitening: Whitening) -> np.ndarray:
    """D of whitened new rows: (n_points, n_classes)."""
    means = whitening.means
    squares = np.empty((len(points), len(means)))
    for c, mean in enumerate(means):
        squares[:, c] = ((points - mean) ** 2).sum(axis=1)
    return squares


def speak(squares: np.ndarray, n_columns: int) -> np.ndarray:
    """(n_classes, n_rows, FEATURES)."""
    root = np.sqrt(n_columns)
    normal, tailed = -0.5 * squares / root, -0.5 * root * np.log1p(squares / n_columns)
    return np.stack([normal.T, tailed.T], axis=2)
