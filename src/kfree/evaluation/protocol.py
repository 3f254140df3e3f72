"""Cross validation of several estimators on the same folds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing

from kfree import candidates
from kfree.evaluation.scores import Scores, score


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and standard deviation (divisor n) over the folds."""

    mean: float
    std: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What one estimator achieved over the folds of a cross validation.

    `fit_seconds` includes the standardization, and whatever search the estimator does in `fit`.
    `predict_seconds` is one call of `predict_proba`.
    """

    f_measure: Spread
    accuracy: Spread
    log_loss: Spread
    brier: Spread
    calibration_error: Spread
    fit_seconds: Spread
    predict_seconds: Spread


@dataclass(frozen=True, slots=True)
class _Fold:
    scores: Scores
    fit_seconds: float
    predict_seconds: float


def cross_validate(
    estimators: Mapping[str, BaseEstimator],
    X: ArrayLike,
    y: ArrayLike,
    n_splits: int = 4,
    random_state: int | None = 0,
    most_probable: bool = False,
    preparation: BaseEstimator | None = None,
    done: Callable[[str], object] = lambda name: None,
) -> dict[str, Evaluation]:
    """Judge every estimator on the same shuffled folds.

    Features are standardized, or otherwise prepared, by what the training part of a fold says,
    never by its test part.

    Folds are stratified. Where a class has fewer rows than there are folds this cannot be done, and
    plain folds are taken: then a class may be absent from a training part. The estimator knows
    nothing of that class, so its probability is taken as 0, which log loss clips to the eps of
    float64; every such test row costs 36.04, to every estimator alike.

    Parameters
    ----------
    estimators : mapping of str to classifier
        Unfitted classifiers with `predict_proba`. They are cloned, not changed.
    X : array-like of shape (n_samples, n_features)
        Or what `preparation` takes, such as a data frame.
    y : array-like of shape (n_samples,)
    n_splits : int, default=4
        Number of folds.
    random_state : int or None, default=0
        Seed of the shuffle.
    most_probable : bool, default=False
        Whether the most probable class is taken as the label, which saves the call of `predict`.
        For estimators whose `predict` gives just that.
    preparation : transformer, default=None
        What comes before each estimator; None: `StandardScaler()`.
    done : callable, default: nothing is told
        Is given the name of an estimator after each of its folds.

    Returns
    -------
    dict of str to Evaluation
        In the order of `estimators`.
    """
    if preparation is None:
        X, preparation = np.asarray(X), StandardScaler()
    y = np.asarray(y)
    classes = np.unique(y)
    folds = list(splitter(y, n_splits, random_state).split(X, y))
    evaluations = {}
    for name, estimator in estimators.items():
        parts = []
        for train, test in folds:
            model = make_pipeline(clone(preparation), clone(estimator))
            parts.append(_run(model, X, y, classes, train, test, most_probable))
            done(name)
        evaluations[name] = _summary(parts)
    return evaluations


def splitter(
    y: NDArray, n_splits: int = 4, random_state: int | None = 0
) -> StratifiedKFold | KFold:
    """Stratified folds, or plain ones where a class has fewer rows than there are folds."""
    _, counts = np.unique(y, return_counts=True)
    kind = StratifiedKFold if counts.min() >= n_splits else KFold
    return kind(n_splits=n_splits, shuffle=True, random_state=random_state)


def _run(
    model: Pipeline,
    X: Any,
    y: NDArray,
    classes: NDArray,
    train: NDArray[np.intp],
    test: NDArray[np.intp],
    most_probable: bool,
) -> _Fold:
    rows, new = _safe_indexing(X, train), _safe_indexing(X, test)
    start = time.perf_counter()
    model.fit(rows, y[train])
    fitted = time.perf_counter()
    probabilities = model.predict_proba(new)
    done = time.perf_counter()
    # Labels are the estimator's own and not the argmax, unless asked for: the two may differ. Not
    # timed, since they come from the same search.
    if most_probable:
        predicted = model.classes_[candidates.most_probable(probabilities)]
    else:
        predicted = model.predict(new)
    probabilities = _over_all_classes(probabilities, model.classes_, classes)
    return _Fold(
        scores=score(y[test], predicted, probabilities, classes),
        fit_seconds=fitted - start,
        predict_seconds=done - fitted,
    )


def _over_all_classes(
    probabilities: NDArray, known: NDArray, classes: NDArray
) -> NDArray[np.float64]:
    """Probability 0 for the classes that the training part did not have."""
    everywhere = np.zeros((len(probabilities), len(classes)))
    everywhere[:, np.searchsorted(classes, known)] = probabilities
    return everywhere


def _summary(folds: list[_Fold]) -> Evaluation:
    values = {
        field.name: [getattr(fold.scores, field.name) for fold in folds] for field in fields(Scores)
    }
    values["fit_seconds"] = [fold.fit_seconds for fold in folds]
    values["predict_seconds"] = [fold.predict_seconds for fold in folds]
    return Evaluation(
        **{name: Spread(float(np.mean(v)), float(np.std(v))) for name, v in values.items()}
    )
