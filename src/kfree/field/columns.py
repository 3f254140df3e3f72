"""Columns on common scales: standardized, and as normal scores of their ranks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

# How far beyond the training rows a value counts. A logit that grows with every step, and densities
# that grow by its square, know nothing out there. Over 16 draws of 80 or 300 rows of heavy tails
# the mean log loss is 0.387 (without a limit 0.396, with 1 0.388, with 0 0.386). On normal columns
# it is the same with and without (0.1659), but 0.1673 with 0.
BEYOND = 0.5


@dataclass(frozen=True)
class Columns:
    """What the training rows say of each column.

    Normal scores: the mid-rank r of a value among n becomes the normal quantile of (r - 1/2) / n,
    divided by the column's standard deviation of these. `values` and `scores` hold, column after
    column, the distinct training values and their scores; new values lie between them by linear
    interpolation, and beyond the ends have the score of the end.
    """

    mean: np.ndarray  # (n_features,)
    scale: np.ndarray  # (n_features,), 1 for a constant column
    indptr: np.ndarray  # (n_features + 1,)
    values: np.ndarray  # (indptr[-1],) increasing within a column
    scores: np.ndarray  # (indptr[-1],)

    def standardized(self, X: np.ndarray) -> np.ndarray:
        """Mean 0 and variance 1 on the training rows: (n_samples, n_features).

        Values count as no farther out than `BEYOND` times the range of the training rows.
        """
        lowest = (self.values[self.indptr[:-1]] - self.mean) / self.scale
        highest = (self.values[self.indptr[1:] - 1] - self.mean) / self.scale
        beyond = BEYOND * (highest - lowest)
        return np.clip((X - self.mean) / self.scale, lowest - beyond, highest + beyond)

    def normal_scores(self, X: np.ndarray) -> np.ndarray:
        """The normal scores of each column: (n_samples, n_features)."""
        out = np.empty(X.shape)
        for column, (first, last) in enumerate(zip(self.indptr[:-1], self.indptr[1:], strict=True)):
            part = slice(first, last)
            out[:, column] = np.interp(X[:, column], self.values[part], self.scores[part])
        return out


def learn_columns(X: np.ndarray) -> Columns:
    """The scales of the training rows' columns."""
    n_samples = len(X)
    # In units of the largest value: squares of very large or small numbers do not fit.
    largest = np.abs(X).max(axis=0)
    largest = np.where(largest > 0.0, largest, 1.0)
    relative = X / largest
    mean, scale = relative.mean(axis=0) * largest, relative.std(axis=0) * largest
    # A column of one value has a standard deviation of rounding errors only.
    constant = X.max(axis=0) == X.min(axis=0)
    mean = np.where(constant, X[0], mean)
    scale = np.where(constant | (scale == 0.0), 1.0, scale)
    ordered = np.sort(X.T, axis=1)  # (n_features, n_samples)
    starts = np.ones(ordered.shape, dtype=bool)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.flatnonzero(starts)
    column, below = np.divmod(first, n_samples)
    counts = np.diff(np.append(first, ordered.size))
    score = ndtri((below + 0.5 * counts) / n_samples)
    n_features = X.shape[1]
    center = np.bincount(column, counts * score, n_features) / n_samples
    squares = counts * (score - center[column]) ** 2
    spread = np.sqrt(np.bincount(column, squares, n_features) / n_samples)
    score /= np.where(spread > 0.0, spread, np.inf)[column]
    indptr = np.searchsorted(column, np.arange(n_features + 1))
    return Columns(mean, scale, indptr, ordered.ravel()[first], score)


@dataclass(frozen=True)
class Scaled:
    """Rows on both scales; each is made when it is first asked for, and once."""

    rows: np.ndarray  # (n_samples, n_features)
    columns: Columns

    @cached_property
    def standardized(self) -> np.ndarray:
        return self.columns.standardized(self.rows)

    @cached_property
    def scores(self) -> np.ndarray:
        return self.columns.normal_scores(self.rows)
