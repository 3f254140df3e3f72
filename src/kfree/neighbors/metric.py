"""From a metric's name to distances that do not depend on how they are computed.

Whether two points are equally far from a third decides neighborhoods, so every distance that
decides something is one number per pair of rows: the same in a tree, in a block of a matrix
product or alone, and the same in both directions. A matrix product does not give that (its
rounding changes with the shape of the block), so it only proposes candidates.

Metrics that are a Minkowski distance after a fixed map of the rows become one (`Minkowski`), which
trees and matrix products can search. All others are computed block by block (`Pairwise`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

# Up to so many numbers in single precision (128 MiB in double) are put on the unit sphere once and
# for all; more of them whenever they are compared, which takes longer but no memory.
PREPARED_NUMBERS = 1 << 24
# Rows whose largest number is outside of this range are scaled before they are squared.
PLAIN_SIZES = (1e-60, 1e60)
BOOLEAN = {"dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"}
PAIRWISE = BOOLEAN | {"braycurtis", "canberra", "hamming", "haversine", "nan_euclidean"}
POWER = {
    "euclidean": 2.0,
    "l2": 2.0,
    "sqeuclidean": 2.0,
    "manhattan": 1.0,
    "cityblock": 1.0,
    "l1": 1.0,
    "chebyshev": np.inf,
    "infinity": np.inf,
}
METRICS = sorted(
    PAIRWISE
    | set(POWER)
    | {"minkowski", "seuclidean", "mahalanobis", "cosine", "correlation", "precomputed"}
)

Map = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Scale:
    """Multiplies each column by its own factor."""

    factors: np.ndarray  # (n_features,)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return X * self.factors


@dataclass(frozen=True)
class Linear:
    """Multiplies the rows by a matrix, one column after the other.

    `X @ matrix` would round differently for one row than for a thousand.
    """

    matrix: np.ndarray  # (n_features, n_features)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        out = np.zeros((X.shape[0], self.matrix.shape[1]))
        for column, row in zip(X.T, self.matrix, strict=True):
            out += column[:, None] * row
        return out


@dataclass(frozen=True)
class Direction:
    """Puts every row on the unit sphere, where the Euclidean distance orders like the cosine.

    |u - v|^2 = 2 (1 - cos). A row of zeros has no direction and gets an axis of its own, so that
    it is at cosine distance 1 from every other direction.
    """

    center: bool = False

    def __call__(self, X: Any) -> Any:
        if sparse.issparse(X):
            norm = np.sqrt(X.multiply(X).sum(axis=1))
            zero = norm == 0.0
            unit = sparse.diags_array(1.0 / np.where(zero, 1.0, norm)) @ X
            axis = sparse.csr_array(zero.astype(float)[:, None])
            return sparse.hstack([unit, axis], format="csr")
        # Scaled by a power of two, which rounds nothing: no sum overflows, no square is lost.
        X = np.ldexp(X, -np.frexp(np.abs(X).max(axis=1, initial=0.0))[1][:, None])
        if self.center:
            X = X - X.mean(axis=1, keepdims=True)
        norm = np.sqrt((X * X).sum(axis=1))
        zero = norm == 0.0
        unit = X / np.where(zero, 1.0, norm)[:, None]
        return np.column_stack([unit, zero.astype(float)])


@dataclass(frozen=True)
class Minkowski:
    """(sum_f |a_f - b_f|^p)^(1/p) between rows that `map` has prepared.

    Rows in single precision stay as they are and are prepared when they are compared, so that no
    copy of all of them is made in double precision, unless they are few and take long to prepare.
    `exponent` scales rows by a power of two, which changes nothing but keeps squares from
    overflowing, or from being lost.
    """

    p: float
    map: Map | None = None
    exponent: int = 0

    def points(self, X: Any) -> Any:
        """Rows as a search keeps them: (n_samples, n_features), C-contiguous, or CSR if sparse."""
        if sparse.issparse(X):
            rows = X.tocsr().astype(np.float64)
            return rows if self.map is None else self.map(rows)
        if X.dtype == np.float32 and self.late and (self.map is None or X.size > PREPARED_NUMBERS):
            return np.ascontiguousarray(X)
        X = np.asarray(X, dtype=np.float64)
        if self.exponent:
            X = np.ldexp(X, -self.exponent)
        return np.ascontiguousarray(X if self.map is None else self.map(X))

    @property
    def late(self) -> bool:
        """Whether rows in single precision may be prepared when they are compared."""
        return self.map is None or isinstance(self.map, Direction)

    def prepared(self, rows: np.ndarray) -> np.ndarray:
        """Some rows of `points` in double precision, as they are compared."""
        if rows.dtype != np.float32:
            return rows
        rows = rows.astype(np.float64)
        return rows if self.map is None else self.map(rows)

    def between(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The distance of each row of `a` from the row of `b` at the same place."""
        difference = a - b
        if self.p == 2.0:
            np.multiply(difference, difference, out=difference)
            return np.sqrt(difference.sum(axis=-1))
        np.abs(difference, out=difference)
        if self.p == 1.0:
            return difference.sum(axis=-1)
        if np.isinf(self.p):
            return difference.max(axis=-1)
        return (difference**self.p).sum(axis=-1) ** (1.0 / self.p)

    def block(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """All distances of the rows of `a` from the rows of `b`, up to rounding."""
        if self.p == 2.0:
            return cdist(a, b, "euclidean")
        if np.isinf(self.p):
            return cdist(a, b, "chebyshev")
        return cdist(a, b, "minkowski", p=self.p)


@dataclass(frozen=True)
class Pairwise:
    """A metric that is evaluated for blocks of rows; its values are final."""

    metric: str | Callable
    params: dict

    def points(self, X: Any) -> Any:
        """Rows as they are compared; neighbors that are given stay as they are."""
        if self.metric in BOOLEAN:
            return X.astype(bool)
        return np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X

    def block(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """All distances of the rows of `a` from the rows of `b`: (len(a), len(b))."""
        if self.metric == "precomputed":
            return a
        if self.metric == "nan_euclidean":
            return _nan_euclidean(a, b)
        block = pairwise_distances(a, b, metric=self.metric, ensure_all_finite=False, **self.params)
        # 0 / 0 in a metric: such rows are not comparable, so never near.
        return np.where(np.isnan(block), np.inf, block)


Space = Minkowski | Pairwise


def _nan_euclidean(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Euclidean over the features that both rows have, scaled up; infinite if there are none."""
    total = np.zeros((len(a), len(b)))
    present = np.zeros((len(a), len(b)))
    for column_a, column_b in zip(a.T, b.T, strict=True):
        difference = column_a[:, None] - column_b
        known = ~np.isnan(difference)
        total += np.where(known, difference * difference, 0.0)
        present += known
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.sqrt(total * (a.shape[1] / present))
    return np.where(present > 0, distance, np.inf)


def make_space(metric: str | Callable, p: float, params: dict | None, X: np.ndarray) -> Space:
    """The space that a metric's name and parameters mean for the training rows `X`."""
    params = dict(params or {})
    if callable(metric) or metric in PAIRWISE or metric == "precomputed":
        return Pairwise(metric, params)
    if metric == "cosine":
        return Minkowski(2.0, Direction())
    if metric == "correlation":
        return Minkowski(2.0, Direction(center=True))
    if metric == "seuclidean":
        variance = np.asarray(
            params["V"] if "V" in params else X.var(axis=0, ddof=1, dtype=float), dtype=float
        )
        return Minkowski(2.0, Scale(1.0 / np.sqrt(np.where(variance > 0, variance, 1.0))))
    if metric == "mahalanobis":
        inverse = params["VI"] if "VI" in params else np.linalg.pinv(params.get("V", np.cov(X.T)))
        return Minkowski(2.0, Linear(_root(np.atleast_2d(np.asarray(inverse, dtype=float)))))
    power = float(params.get("p", p)) if metric == "minkowski" else POWER[metric]
    if params.get("w") is not None:
        weight = np.asarray(params["w"], dtype=float)
        # As in scipy: w^(1/p) of an infinite p is 1, or 0 for a weight of zero.
        factors = (weight != 0).astype(float) if np.isinf(power) else weight ** (1.0 / power)
        return Minkowski(power, Scale(factors))
    return Minkowski(power, exponent=_exponent(X))


def _exponent(X: Any) -> int:
    """The power of two that brings the largest number of X near one, where that is needed."""
    if sparse.issparse(X) or X.dtype == np.float32:
        return 0
    largest = max(float(X.max(initial=0.0)), -float(X.min(initial=0.0)))
    plain = largest == 0.0 or PLAIN_SIZES[0] < largest < PLAIN_SIZES[1]
    return 0 if plain else int(np.frexp(largest)[1])


def _root(matrix: np.ndarray) -> np.ndarray:
    """R with R R^T = matrix, for a symmetric matrix that may be singular."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
    return vectors * np.sqrt(np.maximum(values, 0.0))
