"""Rows whitened by the covariance within classes, each training row measured without itself.

S = (1 - rho) * scatter / n + rho * mu * I, the Ledoit-Wolf covariance of rows minus their class's
mean. A training row that helped to make S finds itself too near to its own class. Without row i

    d_-i(i, j)^2 = d(i, j)^2 + kappa_i (z_i' S^-1 (x_i - x_j))^2

with z_i = x_i minus the mean of its class of n_c rows, k_i = (1 - rho) / n * n_c / (n_c - 1) and
kappa_i = k_i / (1 - k_i z_i' S^-1 z_i): S loses k_i z_i z_i', which Sherman and Morrison invert.

With more columns than rows all of this happens in the span of the training rows, which has no more
dimensions than there are rows: across it S is rho * mu * I, so that a new row's distance from the
span is one more coordinate. No distance changes, and cost follows the rows and not the columns
squared.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kfree.field.features import Lists


@dataclass(frozen=True)
class Whitening:
    """Rows -> coordinates in which Euclidean distances are those by S^-1.

    The columns of `basis` are eigenvectors of S: all of them, or those in the span of the training
    rows. Then what is left of a row outside of the span has the length of one more coordinate.
    """

    basis: np.ndarray  # (n_features, n_kept), orthonormal
    scale: np.ndarray  # (n_kept,) 1 / sqrt of the eigenvalues
    outside: float  # the same across the span
    means: np.ndarray  # (n_classes, n_coordinates), of whitened rows
    shrinkage: float  # rho

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Rows as they are compared: (n_samples, n_coordinates)."""
        return _coordinates(X, self.basis, self.scale, self.outside)


def class_means(X: np.ndarray, labels: np.ndarray, n_classes: int) -> np.ndarray:
    """The mean row of each class: (n_classes, n_features)."""
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(n_classes))
    sums = np.add.reduceat(X[order], starts, axis=0)
    return sums / np.bincount(labels, minlength=n_classes)[:, None]


def learn_whitening(X: np.ndarray, labels: np.ndarray, n_classes: int) -> Whitening:
    """The whitening by S of standardized training rows."""
    n_samples, n_features = X.shape
    means = class_means(X, labels, n_classes)
    z = X - means[labels]
    shrinkage, variance = shrinkage_of(z)
    basis = None
    if n_features > n_samples:
        basis, _ = np.linalg.qr(X.T)  # (n_features, n_samples)
        z = z @ basis
    covariance = (1.0 - shrinkage) / n_samples * (z.T @ z)
    covariance[np.diag_indices_from(covariance)] += shrinkage * variance
    values, vectors = np.linalg.eigh(covariance)
    # Rows that do not differ within their classes leave S at 0: then it is the identity.
    lowest = 1e-12 * values[-1] if values[-1] > 0.0 else 1.0
    scale = 1.0 / np.sqrt(np.maximum(values, lowest))
    outside = float(1.0 / np.sqrt(max(shrinkage * variance, lowest)))
    basis = vectors if basis is None else basis @ vectors
    means = _coordinates(means, basis, scale, outside)
    return Whitening(basis, scale, outside, means, shrinkage)


def shrinkage_of(z: np.ndarray) -> tuple[float, float]:
    """Ledoit and Wolf's rho for centered rows, and mu, the mean variance of the columns.

    As scikit-learn's `ledoit_wolf_shrinkage`, but from products of rows where columns are more.
    """
    n_samples, n_features = z.shape
    squares = np.einsum("ij,ij->i", z, z)
    mu = squares.sum() / (n_samples * n_features)
    if n_features == 1:
        return 0.0, float(mu)
    product = z @ z.T if n_features > n_samples else z.T @ z
    total = (product**2).sum() / n_samples**2  # of the squared entries of the covariance
    spread = total / n_features - mu**2
    error = ((squares**2).sum() / n_samples - total) / (n_samples * n_features)
    error = min(error, spread)
    return (float(error / spread) if error > 0.0 else 0.0), float(mu)


def _coordinates(X: np.ndarray, basis: np.ndarray, scale: np.ndarray, outside: float) -> np.ndarray:
    inside = X @ basis
    if basis.shape[0] == basis.shape[1]:
        return inside * scale
    rest = X - inside @ basis.T
    length = np.sqrt(np.einsum("ij,ij->i", rest, rest))
    return np.column_stack([inside * scale, length * outside])


@dataclass(frozen=True)
class Within:
    """Whitened training rows, and what each of them has to do with S."""

    whitening: Whitening
    points: np.ndarray  # (n_points, n_coordinates)
    labels: np.ndarray  # (n_points,)

    @cached_property
    def sizes(self) -> np.ndarray:
        """How many rows each class has: (n_classes,)."""
        return np.bincount(self.labels, minlength=len(self.whitening.means)).astype(float)

    @cached_property
    def z(self) -> np.ndarray:
        """Rows minus the mean of their class: (n_points, n_coordinates)."""
        return np.asarray(self.points - self.whitening.means[self.labels])

    @cached_property
    def share(self) -> np.ndarray:
        """How much of z z' S loses without each row: k (n_points,)."""
        sizes = self.sizes[self.labels]
        shrinkage = self.whitening.shrinkage
        return (1.0 - shrinkage) / len(sizes) * sizes / np.maximum(sizes - 1.0, 1.0)

    @cached_property
    def kappa(self) -> np.ndarray:
        """How much each row drew S along itself: (n_points,)."""
        spread = np.einsum("ij,ij->i", self.z, self.z)
        # A row that alone spans a direction of S: 1 - k z'S^-1 z is 0 but for rounding.
        return self.share / np.maximum(1.0 - self.share * spread, 1e-6)


def without_themselves(lists: Lists, length: int, within: Within) -> Lists:
    """The lists of whitened training rows as S without the row has them, cut to `length`."""
    points, z, kappa = within.points, within.z, within.kappa
    n_points = len(points)
    along = np.einsum("ij,ij->i", z, points)
    # z_i' x_j for the listed j, without (n_points, length, n_features) at once.
    product = np.empty(lists.indices.shape)
    step = max(1, (1 << 22) // max(1, lists.indices.shape[1] * points.shape[1]))
    for first in range(0, n_points, step):
        rows = slice(first, first + step)
        product[rows] = np.einsum("id,ijd->ij", z[rows], points[lists.indices[rows]])
    away = along[:, None] - product
    squares = lists.distances**2 + kappa[:, None] * away**2
    order = np.lexsort((lists.indices, squares), axis=1)[:, :length]
    return Lists(
        np.take_along_axis(lists.indices, order, axis=1),
        np.sqrt(np.take_along_axis(squares, order, axis=1)),
    )
