"""kfree beside the commonest class and a kNN with a searched k, on the same folds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from kfree.evaluation.baseline import SearchedKNN
from kfree.evaluation.protocol import splitter
from kfree.evaluation.scores import Scores, score

KFREE, KNN, COMMONEST = "kfree", "kNN, k by cross validation", "always the commonest class"
N_SPLITS = 4


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
        train, test = _prepared(preparation, X, labels[rest], rest, fold)
        n_unknown += int((~np.isin(labels[fold], labels[rest])).sum())

        start = time.perf_counter()
        fitted = _fresh(classifier, len(rest)).fit(train, labels[rest])
        known = fitted.predict_proba(test)
        seconds[KFREE] += time.perf_counter() - start
        probabilities[KFREE][np.ix_(fold, fitted.classes_)] = known

        start = time.perf_counter()
        knn = _baseline(classifier).fit(train, labels[rest])
        shares = knn.predict_proba(test)
        seconds[KNN] += time.perf_counter() - start
        probabilities[KNN][np.ix_(fold, knn.classes_)] = shares
        knn_k.append(knn.k_)

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


def _baseline(like: Any) -> SearchedKNN:
    """The kNN that `kfree evaluate` compares with too, under the metric of a classifier."""
    return SearchedKNN(metric=like.metric, p=like.p, metric_params=like.metric_params)


def _fresh(classifier: Any, n_rows: int) -> Any:
    """The classifier unfitted; a k_max that suits all rows may be too large for fewer."""
    fresh = clone(classifier)
    return fresh if fresh.k_max == "auto" else fresh.set_params(k_max=min(fresh.k_max, n_rows - 1))


def _prepared(
    preparation: Any, X: Any, labels: NDArray, rest: NDArray, fold: NDArray
) -> tuple[NDArray, NDArray]:
    train, test = (X.iloc[part] if hasattr(X, "iloc") else X[part] for part in (rest, fold))
    if preparation is not None:
        fresh = clone(preparation)
        # Columns may be judged otherwise by fewer rows; what was done to the whole table is said.
        train = fresh.fit_transform(train, labels)
        test = fresh.transform(test)
    return np.asarray(train, dtype=float), np.asarray(test, dtype=float)
