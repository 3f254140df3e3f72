"""How far a row is from the mean of each class, whitened within classes: one voice of "within".

With D the squared distance from a class's mean in d columns, two features say the same as a normal
density and as one with long tails:

    -1/2 D / sqrt(d)    and    -1/2 sqrt(d) log(1 + D / d)

A training row is measured without itself: its class's mean loses it, and so does the whitening.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from kfree.field.design import Design
from kfree.field.within import Whitening, Within

FEATURES = 2


def training_squares(within: Within, pairs: Design) -> np.ndarray:
    """D of whitened training rows, each left out: (n_pairs,)."""
    out = np.empty(len(pairs.row))
    for c, mean in enumerate(within.whitening.means):
        part = pairs.of_class(c)
        rows = pairs.row[part]
        away = within.points[rows] - mean
        # The mean of the row's class without the row is farther off by n_c / (n_c - 1).
        n_c = within.sizes[c]
        away[within.labels[rows] == c] *= n_c / max(n_c - 1.0, 1.0)
        along = np.einsum("ij,ij->i", within.z[rows], away)
        out[part] = np.einsum("ij,ij->i", away, away) + within.kappa[rows] * along**2
    return out


def squares_without(within: Within, c: int, gone: np.ndarray) -> np.ndarray:
    """D from the mean of class c of training rows, each left out, and without one of its rows more.

    (n_gone, n_points), for each of the rows `gone`. The whitening stays as it was.
    """
    left = within.sizes[c] - 1.0
    mean = within.whitening.means[c] - within.z[gone] / left  # (n_gone, n_coordinates)
    squares = cdist(mean, within.points, "sqeuclidean")
    along = np.einsum("ij,ij->i", within.z, within.points) - mean @ within.z.T
    squares += within.kappa * along**2
    return np.where(within.labels == c, (left / max(left - 1.0, 1.0)) ** 2, 1.0) * squares


def new_squares(points: np.ndarray, whitening: Whitening, pairs: Design) -> np.ndarray:
    """D of whitened new rows: (n_pairs,)."""
    out = np.empty(len(pairs.row))
    for c, mean in enumerate(whitening.means):
        part = pairs.of_class(c)
        away = points[pairs.row[part]] - mean
        out[part] = np.einsum("ij,ij->i", away, away)
    return out


def speak(squares: np.ndarray, n_columns: int) -> np.ndarray:
    """(..., FEATURES)."""
    root = np.sqrt(n_columns)
    normal, tailed = -0.5 * squares / root, -0.5 * root * np.log1p(squares / n_columns)
    return np.stack([normal, tailed], axis=-1)
