"""Columns on common scales: standardized, and as normal scores of their ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata


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
        """Mean 0 and variance 1 on the training rows: (n_samples, n_features)."""
        return (X - self.mean) / self.scale

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
    values, scores = [], []
    for column in X.T:
        distinct, first, counts = np.unique(column, return_index=True, return_counts=True)
        ranks = rankdata(column)[first]
        score = ndtri((ranks - 0.5) / n_samples)
        center = (counts @ score) / n_samples
        spread = np.sqrt(counts @ (score - center) ** 2 / n_samples)
        values.append(distinct)
        scores.append(score / spread if spread > 0.0 else np.zeros(len(score)))
    indptr = np.concatenate([[0], np.cumsum([len(part) for part in values])])
    return Columns(mean, scale, indptr, np.concatenate(values), np.concatenate(scores))
