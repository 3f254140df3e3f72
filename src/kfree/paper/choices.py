"""What the paper leaves open, one choice changed at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.metrics import f1_score
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from kfree.baselines import PKNNClassifier, StructuredKNNClassifier
from kfree.classifier import KFreeClassifier
from kfree.evaluation.data import Dataset
from kfree.evaluation.protocol import splitter
from kfree.paper.settings import Settings
from kfree.paper.unit import Unit

NAME = "choices"

METHODS = ("KNN", "PKNN", "average", "optimal")


@dataclass(frozen=True)
class Choice:
    """One way to read the paper. What is not named is as in the rest of the page."""

    name: str
    folds: str = "stratified"
    standardized: bool = True
    absent_classes_count: bool = False
    first_feature_only: bool = False
    k_max: int | None = None
    prior_scale: float = 10.0
    update: str = "joint"

    @property
    def concerns_fixed_k(self) -> bool:
        """Whether KNN and PKNN can change by it."""
        return self.k_max is None and self.update == "joint"


CHOICES = (
    Choice("as on this page"),
    Choice("features not standardized", standardized=False),
    Choice("shuffled, not stratified", folds="shuffled"),
    Choice("folds in file order", folds="file order"),
    Choice(
        "file order; absent classes count as 0",
        folds="file order",
        absent_classes_count=True,
    ),
    Choice("learn from one fold, test on the rest", folds="swapped"),
    Choice("first feature only", first_feature_only=True),
    Choice("K at most 10", k_max=10),
    Choice("K at most 20", k_max=20),
    Choice("prior of beta: 10 is a rate", prior_scale=0.1),
    Choice("update from training labels only", update="conditional"),
)


def units(settings: Settings, dataset: Dataset) -> list[Unit]:
    """One piece of work for each choice."""
    return [
        Unit(NAME, (dataset.name, choice.name), partial(measure, settings, dataset, choice))
        for choice in CHOICES
    ]


def measure(settings: Settings, dataset: Dataset, choice: Choice) -> dict[str, list[float]]:
    """F-measures of each fold by method."""
    X = dataset.X[:, :1] if choice.first_feature_only else dataset.X
    labels = np.unique(dataset.y) if choice.absent_classes_count else None
    found: dict[str, list[float]] = {}
    for train, test in folds(settings, dataset.y, choice.folds):
        X_train, X_test = X[train], X[test]
        if choice.standardized:
            scaler = StandardScaler().fit(X_train)
            X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
        for name, model in _models(settings, len(train), choice).items():
            predicted = model.fit(X_train, dataset.y[train]).predict(X_test)
            f = f1_score(
                dataset.y[test], predicted, labels=labels, average="macro", zero_division=0
            )
            found.setdefault(name, []).append(float(f))
    return found


def folds(settings: Settings, y: np.ndarray, kind: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Training and test rows of each fold."""
    n, seed = settings.n_splits, settings.random_state
    if kind == "file order":
        yield from KFold(n).split(y)
    elif kind == "shuffled":
        yield from KFold(n, shuffle=True, random_state=seed).split(y)
    else:
        for train, test in splitter(y, n, seed).split(y, y):
            yield (test, train) if kind == "swapped" else (train, test)


def _models(settings: Settings, n_train: int, choice: Choice) -> dict:
    k_max = settings.k_most(n_train) if choice.k_max is None else min(choice.k_max, n_train - 1)
    found: dict = {}
    if choice.concerns_fixed_k:
        found["KNN"] = StructuredKNNClassifier(settings.n_neighbors)
        found["PKNN"] = PKNNClassifier(settings.n_neighbors, prior_scale=choice.prior_scale)
    for name, average in (("average", True), ("optimal", False)):
        found[name] = KFreeClassifier(
            k_values="all",
            k_max=k_max,
            update=choice.update,
            average=average,
            prior_scale=choice.prior_scale,
        )
    return found
