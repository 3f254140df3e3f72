"""kfree beside the commonest class and a kNN with a searched k, on the same folds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors

from kfree.evaluation.protocol import splitter
from kfree.evaluation.scores import Scores, score

KFREE, KNN, COMMONEST = "kfree", "kNN, k by cross validation", "always the commonest class"
N_SPLITS = 4
#: The k that the kNN may choose from are 1 to this.
K_MOST = 50
# About how many numbers the votes of a block of rows may hold (32 MiB).
BLOCK_NUMBERS = 1 << 22


@dataclass(frozen=True)
class Comparison:
    """What each classifier achieved on rows that it was not fitted on.

    Attributes
    ----------
    n_splits : int
        Number of folds.
    scores : dict of str to Scores
        Of all rows, each predicted when its fold was left out.
    seconds : dict of str to float
        Time for all folds, fit and prediction; the preparation of the columns is not counted.
    knn_k : tuple of int
        The k that the kNN chose, for each fold.
    n_only_kfree, n_only_knn : int
        Rows that only kfree, or only the kNN, predicted correctly.
    n_unknown : int
        Rows whose class the rest of the folds did not have, so that nobody could predict them.
    """

    n_splits: int
    scores: dict[str, Scores]
    seconds: dict[str, float]
    knn_k: tuple[int, ...]
    n_only_kfree: int
    n_only_knn: int
    n_unknown: int


def compare(
    preparation: Any, classifier: Any, X: Any, y: NDArray, step: Callable[[str], Any]
) -> Comparison | None:
    """Measure all on the same folds; None if there are too few rows for that.

    Parameters
    ----------
    preparation : transformer or None
        Fitted anew on the rest of each fold.
    classifier : KFreeClassifier
        Cloned. The kNN uses its metric.
    X : DataFrame or ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    step : callable
        Is told what comes next.
    """
    classes, labels = np.unique(y, return_inverse=True)
    n_splits = min(N_SPLITS, len(y))
    folds = list(splitter(y, n_splits).split(labels, labels))
    if any(len(rest) < 3 or len(np.unique(labels[rest])) < 2 for rest, _ in folds):
        return None
    probabilities = {name: np.zeros((len(y), len(classes))) for name in (KFREE, KNN, COMMONEST)}
    seconds = dict.fromkeys(probabilities, 0.0)
    knn_k, n_unknown = [], 0
    for number, (rest, fold) in enumerate(folds, start=1):
        step(f"comparing with other classifiers, fold {number} of {n_splits}")
        train, test = _prepared(preparation, X, rest, fold)
        n_unknown += int((~np.isin(labels[fold], labels[rest])).sum())

        start = time.perf_counter()
        fitted = _fresh(classifier, len(rest)).fit(train, labels[rest])
        known = fitted.predict_proba(test)
        seconds[KFREE] += time.perf_counter() - start
        probabilities[KFREE][np.ix_(fold, fitted.classes_)] = known

        start = time.perf_counter()
        k = best_k(train, labels[rest], len(classes), classifier)
        votes = count_votes(train, labels[rest], test, len(classes), np.array([k]), classifier)
        seconds[KNN] += time.perf_counter() - start
        probabilities[KNN][fold] = votes[:, 0] / k
        knn_k.append(k)

        start = time.perf_counter()
        counts = np.bincount(labels[rest], minlength=len(classes))
        probabilities[COMMONEST][fold] = counts / counts.sum()
        seconds[COMMONEST] += time.perf_counter() - start
    predicted = {name: table.argmax(axis=1) for name, table in probabilities.items()}
    right = {name: labels == answer for name, answer in predicted.items()}
    return Comparison(
        n_splits=n_splits,
        scores={
            name: score(y, classes[predicted[name]], table, classes)
            for name, table in probabilities.items()
        },
        seconds=seconds,
        knn_k=tuple(knn_k),
        n_only_kfree=int((right[KFREE] & ~right[KNN]).sum()),
        n_only_knn=int((right[KNN] & ~right[KFREE]).sum()),
        n_unknown=n_unknown,
    )


def best_k(rows: NDArray, labels: NDArray, n_classes: int, like: Any) -> int:
    """The k with the most rows right in 4 folds, the smallest of those that are equally good.

    As `GridSearchCV` would choose it, but neighbors are searched once for all k.
    """
    n_splits = min(N_SPLITS, len(rows))
    folds = list(splitter(labels, n_splits).split(rows, labels))
    k = np.arange(1, min(K_MOST, *(len(rest) for rest, _ in folds)) + 1)
    n_right = np.zeros(len(k))
    for rest, fold in folds:
        votes = count_votes(rows[rest], labels[rest], rows[fold], n_classes, k, like)
        n_right += (votes.argmax(axis=2) == labels[fold][:, None]).sum(axis=0)
    return int(k[n_right.argmax()])


def count_votes(
    rows: NDArray, labels: NDArray, queries: NDArray, n_classes: int, k: NDArray, like: Any
) -> NDArray[np.int32]:
    """How many of the k nearest rows have each class: (n_queries, n_k, n_classes)."""
    search = NearestNeighbors(
        n_neighbors=int(k[-1]), metric=like.metric, p=like.p, metric_params=like.metric_params
    ).fit(rows)
    votes = np.empty((len(queries), len(k), n_classes), dtype=np.int32)
    size = max(1, BLOCK_NUMBERS // (int(k[-1]) * n_classes))
    for first in range(0, len(queries), size):
        near = search.kneighbors(queries[first : first + size], return_distance=False)
        has = labels[near][:, :, None] == np.arange(n_classes)
        votes[first : first + size] = has.cumsum(axis=1)[:, k - 1]
    return votes


def _fresh(classifier: Any, n_rows: int) -> Any:
    """The classifier unfitted; a k_max that suits all rows may be too large for fewer."""
    fresh = clone(classifier)
    return fresh if fresh.k_max == "auto" else fresh.set_params(k_max=min(fresh.k_max, n_rows - 1))


def _prepared(preparation: Any, X: Any, rest: NDArray, fold: NDArray) -> tuple[NDArray, NDArray]:
    train, test = (X.iloc[part] if hasattr(X, "iloc") else X[part] for part in (rest, fold))
    if preparation is not None:
        fresh = clone(preparation)
        # Columns may be judged otherwise by fewer rows; what was done to the whole table is said.
        train = fresh.fit_transform(train, None)
        test = fresh.transform(test)
    return np.asarray(train, dtype=float), np.asarray(test, dtype=float)
