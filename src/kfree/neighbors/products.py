"""Squared distances of all pairs from one matrix product, with a bound for their rounding.

|x - y|^2 = |x|^2 - 2 x.y + |y|^2 for all pairs is one product. Its rounding has a bound, so points
whose values differ by more than twice the bound are told apart for certain, and only the others
have to be measured, pair by pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

# Points share a group, so that the k-th smallest value need not be sought among all of them: among
# k different groups whose smallest values are at most t there are k points at most t away.
GROUP = 16
# Above this, squares overflow in single precision; below it, they are lost.
LARGEST = 1e36
SMALLEST = 1e-36
# A bound that is a larger part of the squared radii calls for double precision.
ROUGH = 0.02
# Rows that are prepared at a time.
BLOCK_ROWS = 4096


def rounding(n_features: int, size: np.ndarray, kind: Any) -> np.ndarray:
    """How far |x|^2 - 2 x.y + |y|^2 may be off, computed in `kind`, where |x|^2 + |y|^2 = size."""
    return 4.0 * (n_features + 8) * float(np.finfo(kind).eps) * size


class Products:
    """Squared distances from fixed points, in single or double precision.

    Parameters
    ----------
    space : Minkowski
    points : (n_points, n_features) as the space keeps them
    kind : np.float32 or np.float64
    """

    def __init__(self, space: Any, points: np.ndarray, kind: Any) -> None:
        n = len(points)
        self.n_points, self.kind, self._space = n, kind, space
        # A group holds the points width, 2 width, ... apart.
        self.width = -(-n // GROUP)
        starts = range(0, n, BLOCK_ROWS)
        # Near the origin the product loses fewest digits.
        total = sum(space.prepared(points[a : a + BLOCK_ROWS]).sum(axis=0) for a in starts)
        self._center = total / n
        n_features = len(self._center)
        self._right = np.zeros((n_features + 2, GROUP * self.width), dtype=kind)
        self._largest = 0.0
        for a in starts:
            centered = space.prepared(points[a : a + BLOCK_ROWS]) - self._center
            square = np.einsum("ij,ij->i", centered, centered)
            self._largest = max(self._largest, float(square.max()))
            with np.errstate(over="ignore"):  # found out before any product is made
                self._right[:-2, a : a + len(centered)] = -2.0 * centered.T
                self._right[-2, a : a + len(centered)] = square
        self._right[-2, n:] = np.inf
        self._right[-1] = 1.0

    def room(self, n_queries: int) -> np.ndarray:
        """Memory for the products of so many queries: to fill it anew is faster than to get it."""
        return np.empty((n_queries, self._right.shape[1]), dtype=self.kind)

    def squares(
        self, queries: np.ndarray, room: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Squared distances (n_queries, n_points and more) and how far off a row's may be.

        They are written to `room`. None if they are too large for single precision.
        """
        centered = self._space.prepared(queries) - self._center
        square = np.einsum("ij,ij->i", centered, centered)
        size = square + self._largest
        if self.kind == np.float32 and not size.max() < LARGEST:
            return None
        left = np.empty((len(queries), len(self._right)), dtype=self.kind)
        left[:, :-2], left[:, -2], left[:, -1] = centered, 1.0, square
        margin = rounding(centered.shape[1], size, self.kind) + SMALLEST * (self.kind == np.float32)
        return np.matmul(left, self._right, out=room[: len(queries)]), margin


class SparseProducts:
    """The same for sparse points, in double precision and without a center."""

    def __init__(self, points: Any) -> None:
        self.n_points, self.width = points.shape[0], points.shape[0]
        self._right = points.T.tocsc()
        self._square = points.multiply(points).sum(axis=1)
        self._n_terms = int(np.diff(points.indptr).max(initial=0))

    def room(self, n_queries: int) -> None:
        """No memory is needed beforehand."""

    def squares(self, queries: Any, room: None) -> tuple[np.ndarray, np.ndarray]:
        square = queries.multiply(queries).sum(axis=1)
        block = (queries @ self._right).toarray()
        block *= -2.0
        block += square[:, None]
        block += self._square
        size = square + self._square.max()
        n_terms = max(self._n_terms, int(np.diff(queries.indptr).max(initial=0)))
        return block, rounding(n_terms, size, np.float64)


def make_products(space: Any, points: Any, kind: Any) -> Products | SparseProducts:
    """Products with points, dense or sparse."""
    return SparseProducts(points) if sparse.issparse(points) else Products(space, points, kind)
