"""The usual way to choose k, to compare with: what is right most often in cross validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted

from kfree.evaluation.protocol import splitter

#: The k that are tried are 1 to this.
LARGEST_K = 50
N_SPLITS = 4
# About how many numbers the votes of a block of rows may hold (32 MiB).
BLOCK_NUMBERS = 1 << 22


class SearchedKNN(ClassifierMixin, BaseEstimator):
    """A kNN vote with the k of a grid search.

    Chooses and predicts as ``GridSearchCV(KNeighborsClassifier(), {"n_neighbors": 1..50}, cv=4
    shuffled folds)`` does, but neighbors are searched once for all k. The folds are stratified
    unless a class has fewer rows than there are folds; where there are too few rows for the largest
    k, fewer are tried.

    Parameters
    ----------
    metric, p, metric_params
        As in `KNeighborsClassifier`.
    n_jobs : int, default=None

    Attributes
    ----------
    k_ : int
        The k chosen, the smallest of those that are equally good.
    classes_ : ndarray of shape (n_classes,)
    """

    def __init__(
        self,
        *,
        metric: Any = "minkowski",
        p: float = 2,
        metric_params: dict | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.metric = metric
        self.p = p
        self.metric_params = metric_params
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike) -> SearchedKNN:
        """Choose k and keep the rows."""
        self._rows = np.asarray(X)
        self.classes_, self._labels = np.unique(np.asarray(y), return_inverse=True)
        n_splits = min(N_SPLITS, len(self._rows))
        folds = list(splitter(self._labels, n_splits).split(self._rows, self._labels))
        k = np.arange(1, min(LARGEST_K, *(len(rest) for rest, _ in folds)) + 1)
        shares = []
        for rest, fold in folds:
            votes = self._votes(self._rows[rest], self._labels[rest], self._rows[fold], k)
            right = votes.argmax(axis=2) == self._labels[fold][:, None]  # (n_rows, n_k)
            shares.append(right.mean(axis=0))
        self.k_ = int(k[np.mean(shares, axis=0).argmax()])
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """The shares (n_rows, n_classes) of the classes among the k nearest rows."""
        check_is_fitted(self)
        votes = self._votes(self._rows, self._labels, np.asarray(X), np.array([self.k_]))
        return votes[:, 0] / self.k_

    def predict(self, X: ArrayLike) -> NDArray:
        """The class with the most votes, the first of those that have equally many."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _votes(
        self, rows: NDArray, labels: NDArray, queries: NDArray, k: NDArray
    ) -> NDArray[np.int32]:
        """How many of the k nearest rows have each class: (n_queries, n_k, n_classes)."""
        n_classes, k_most = len(self.classes_), int(k[-1])
        search = NearestNeighbors(
            n_neighbors=k_most,
            metric=self.metric,
            p=self.p,
            metric_params=self.metric_params,
            n_jobs=self.n_jobs,
        ).fit(rows)
        votes = np.empty((len(queries), len(k), n_classes), dtype=np.int32)
        size = max(1, BLOCK_NUMBERS // (k_most * n_classes))
        for first in range(0, len(queries), size):
            near = search.kneighbors(queries[first : first + size], return_distance=False)
            has = labels[near][:, :, None] == np.arange(n_classes)
            votes[first : first + size] = has.cumsum(axis=1)[:, k - 1]
        return votes
