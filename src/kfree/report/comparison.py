"""kfree beside the commonest class and a kNN with a searched k, on the same folds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.base import clone

from kfree.evaluation.baseline import SearchedKNN
from kfree.evaluation.protocol import splitter
from kfree.evaluation.scores import Scores, score
from kfree.tables import TableError

KFREE, KNN, COMMONEST = "kfree", "kNN, k by cross validation", "always the commonest class"
N_SPLITS = 4
#: As scikit-learn clips probabilities in the log loss.
EPS = np.finfo(np.float64).eps


@dataclass(frozen=True)
class Comparison:
    """What each classifier achieved on rows that it was not fitted on.

    Attributes
    ----------
    n_splits : int
        Number of folds.
    scores : dict of str to Scores
        Of all rows, each predicted when its fold was left out.
    log_losses : dict of str to ndarray of shape (n_samples,)
        Of each row.
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
    log_losses: dict[str, NDArray[np.float64]]
    seconds: dict[str, float]
    knn_k: tuple[int, ...]
    n_only_kfree: int
    n_only_knn: int
    n_unknown: int

    @property
    def p_value(self) -> float:
        """Of the sign test: chance makes such a difference in accuracy to the kNN so often."""
        n = self.n_only_kfree + self.n_only_knn
        return float(binomtest(self.n_only_kfree, n).pvalue) if n else 1.0


@dataclass(frozen=True)
class FittedFold:
    """A model that was fitted without some rows."""

    preparation: Any
    classifier: Any  # its classes are indices
    rows: NDArray[np.intp]  # those it was fitted without


def compare(
    preparation: Any, classifier: Any, X: Any, y: NDArray, step: Callable[[str], Any]
) -> tuple[Comparison, FittedFold] | None:
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

    Returns
    -------
    Comparison, and kfree as it was fitted for the last fold.
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
        fresh = None if preparation is None else clone(preparation)
        # Columns may be judged otherwise by fewer rows; what was done to the whole table is said.
        try:
            train = prepared(fresh, rows_of(X, rest), fit_to=labels[rest])
        except TableError:  # without the fold no column is left to learn from
            return None
        test = prepared(fresh, rows_of(X, fold))
        n_unknown += int((~np.isin(labels[fold], labels[rest])).sum())

        start = time.perf_counter()
        fitted = _fresh(classifier, len(rest)).fit(train, labels[rest])
        known = fitted.predict_proba(test)
        seconds[KFREE] += time.perf_counter() - start
        probabilities[KFREE][np.ix_(fold, fitted.classes_)] = known

        start = time.perf_counter()
        votes, k = searched_knn(train, labels[rest], test, len(classes), classifier)
        seconds[KNN] += time.perf_counter() - start
        probabilities[KNN][fold] = votes
        knn_k.append(k)

        start = time.perf_counter()
        counts = np.bincount(labels[rest], minlength=len(classes))
        probabilities[COMMONEST][fold] = counts / counts.sum()
        seconds[COMMONEST] += time.perf_counter() - start
    predicted = {name: table.argmax(axis=1) for name, table in probabilities.items()}
    right = {name: labels == answer for name, answer in predicted.items()}
    found = Comparison(
        n_splits=n_splits,
        scores={
            name: score(y, classes[predicted[name]], table, classes)
            for name, table in probabilities.items()
        },
        log_losses={name: log_losses(table, labels) for name, table in probabilities.items()},
        seconds=seconds,
        knn_k=tuple(knn_k),
        n_only_kfree=int((right[KFREE] & ~right[KNN]).sum()),
        n_only_knn=int((right[KNN] & ~right[KFREE]).sum()),
        n_unknown=n_unknown,
    )
    return found, FittedFold(fresh, fitted, fold)


def searched_knn(
    rows: NDArray, labels: NDArray, queries: NDArray, n_classes: int, like: Any
) -> tuple[NDArray[np.float64], int]:
    """The kNN that kfree is compared with: class probabilities of the queries, and its k."""
    given = {
        name: getattr(like, name)
        for name in ("metric", "p", "metric_params")
        if hasattr(like, name)
    }
    knn = SearchedKNN(**given).fit(rows, labels)
    shares = np.zeros((len(queries), n_classes))
    shares[:, knn.classes_] = knn.predict_proba(queries)
    return shares, knn.k_


def log_losses(probabilities: NDArray, labels: NDArray[np.integer]) -> NDArray[np.float64]:
    """Minus the log of the probability of its own class, for each row."""
    own = probabilities[np.arange(len(labels)), labels]
    return -np.log(np.clip(own, EPS, 1.0 - EPS))


def rows_of(X: Any, rows: NDArray[np.intp]) -> Any:
    """Some rows of a data frame or an array."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def prepared(preparation: Any, X: Any, fit_to: NDArray | None = None) -> NDArray[np.float64]:
    """The rows as the classifier takes them; with labels the preparation learns from them first."""
    if preparation is not None and fit_to is not None:
        X = preparation.fit_transform(X, fit_to)
    elif preparation is not None:
        X = preparation.transform(X)
    return np.asarray(X, dtype=float)


def _fresh(classifier: Any, n_rows: int) -> Any:
    """The classifier unfitted; a number of neighbors that suits all rows may not suit fewer."""
    fresh = clone(classifier)
    settings = fresh.get_params(deep=False)
    if isinstance(settings.get("k_max"), int | np.integer):
        fresh.set_params(k_max=min(settings["k_max"], n_rows - 1))
    if not isinstance(settings.get("k_values", "auto"), str):
        few = sorted({min(int(k), n_rows - 1) for k in settings["k_values"]})
        fresh.set_params(k_values=few)
    return fresh
