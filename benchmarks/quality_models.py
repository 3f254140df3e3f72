"""The classifiers that `make quality` compares, all at their defaults and with equal threads.

A further one is one more line in MODELS.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelEncoder, StandardScaler
from sklearn.svm import SVC

from kfree import FieldClassifier, KFreeClassifier

LARGEST_K = 50
GRID_FOLDS = 4


@dataclass(frozen=True)
class Model:
    """One line of the comparison; `make` takes the number of threads and of training rows."""

    title: str  # as code, for the report
    make: Callable[[int, int], BaseEstimator]
    package: str  # whose version the results depend on
    ours: bool = False  # whether the results depend on kfree's own source


class Encoded(ClassifierMixin, BaseEstimator):
    """A classifier that wants labels 0, 1, 2, ... without a gap (XGBoost)."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> Encoded:
        encoder = LabelEncoder().fit(y)
        self.classes_ = encoder.classes_
        self.estimator.fit(X, encoder.transform(y))
        return self

    def predict_proba(self, X: Any) -> Any:
        return self.estimator.predict_proba(X)

    def predict(self, X: Any) -> Any:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _grid(jobs: int, n_rows: int) -> BaseEstimator:
    most = min(LARGEST_K, n_rows - -(-n_rows // GRID_FOLDS))
    folds = StratifiedKFold(GRID_FOLDS)
    grid = {"n_neighbors": list(range(1, most + 1))}
    return make_pipeline(
        StandardScaler(), GridSearchCV(KNeighborsClassifier(), grid, cv=folds, n_jobs=jobs)
    )


def _lightgbm(jobs: int, n_rows: int) -> BaseEstimator:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=jobs, verbose=-1)


def _xgboost(jobs: int, n_rows: int) -> BaseEstimator:
    from xgboost import XGBClassifier

    return Encoded(XGBClassifier(n_jobs=jobs))


def _catboost(jobs: int, n_rows: int) -> BaseEstimator:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        thread_count=jobs, verbose=False, allow_writing_files=False, random_seed=0
    )


def _k_free(jobs: int, n_rows: int, **settings: Any) -> BaseEstimator:
    return make_pipeline(StandardScaler(), KFreeClassifier(n_jobs=jobs, **settings))


MODELS: dict[str, Model] = {
    "field": Model(
        "FieldClassifier()",
        lambda jobs, n: FieldClassifier(n_jobs=jobs, random_state=0),
        "kfree",
        ours=True,
    ),
    "kfree": Model("KFreeClassifier()", _k_free, "kfree", ours=True),
    "grid search": Model(
        "GridSearchCV(KNeighborsClassifier(), {'n_neighbors': 1..50}, cv=4)", _grid, "scikit-learn"
    ),
    "random forest": Model(
        "RandomForestClassifier(300)",
        lambda jobs, n: RandomForestClassifier(300, n_jobs=jobs, random_state=0),
        "scikit-learn",
    ),
    "histogram boosting": Model(
        "HistGradientBoostingClassifier(early_stopping=False)",
        lambda jobs, n: HistGradientBoostingClassifier(early_stopping=False, random_state=0),
        "scikit-learn",
    ),
    "lightgbm": Model("LGBMClassifier()", _lightgbm, "lightgbm"),
    "xgboost": Model("XGBClassifier()", _xgboost, "xgboost"),
    "catboost": Model("CatBoostClassifier()", _catboost, "catboost"),
    "logistic": Model(
        "LogisticRegression(max_iter=1000)",
        lambda jobs, n: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "scikit-learn",
    ),
    "svm": Model(
        "CalibratedClassifierCV(SVC(), ensemble=False)",
        lambda jobs, n: make_pipeline(
            StandardScaler(), CalibratedClassifierCV(SVC(), ensemble=False, n_jobs=jobs)
        ),
        "scikit-learn",
    ),
}
if "k_values" in inspect.signature(KFreeClassifier).parameters:
    MODELS["kfree, all k"] = Model(
        'KFreeClassifier(k_values="all")',
        lambda jobs, n: _k_free(jobs, n, k_values="all"),
        "kfree",
        ours=True,
    )


def installed(name: str) -> str | None:
    """The version of the package that a model needs; None if it is not there."""
    try:
        return version(MODELS[name].package)
    except PackageNotFoundError:
        return None
