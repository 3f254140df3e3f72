"""The table of F-measures, and what the paper lacks: a search over k, accuracy and log loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial

from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier

from kfree.baselines import PKNNClassifier, StructuredKNNClassifier
from kfree.classifier import KFreeClassifier
from kfree.evaluation.data import Dataset
from kfree.evaluation.protocol import cross_validate
from kfree.paper.settings import Settings
from kfree.paper.unit import Unit

NAME = "scores"

KOREA = {"KOREA average": ("laplace", True), "KOREA optimal": ("laplace", False)}
EXACT = {"exact average": ("quadrature", True), "exact optimal": ("quadrature", False)}
SEARCH = "KNN, k by search"


def units(settings: Settings, dataset: Dataset) -> list[Unit]:
    """Work by structure and method; the methods of a given K are quick and go together."""
    found = []
    for structure in settings.structures:
        groups: list[tuple[str, ...]] = [("fixed K",), ("exact",), *((name,) for name in KOREA)]
        if structure == "asymmetric":
            groups.append((SEARCH,))
        for (group,) in groups:
            work = partial(measure, settings, dataset, structure, group)
            found.append(Unit(NAME, (dataset.name, structure, group), work))
    return found


def measure(settings: Settings, dataset: Dataset, structure: str, group: str) -> dict[str, dict]:
    """The scores of a group of methods by cross validation."""
    results = cross_validate(
        estimators(settings, len(dataset.y), structure, group),
        dataset.X,
        dataset.y,
        n_splits=settings.n_splits,
        random_state=settings.random_state,
        most_probable=group != SEARCH,
    )
    return {name: asdict(result) for name, result in results.items()}


def estimators(
    settings: Settings, n_samples: int, structure: str, group: str
) -> Mapping[str, BaseEstimator]:
    """The classifiers of a group of methods by their names."""
    n_train = n_samples - -(-n_samples // settings.n_splits)
    if group == "fixed K":
        numbers = sorted({settings.n_neighbors, *settings.other_neighbors})
        voting = {named("KNN", k): StructuredKNNClassifier(k, structure=structure) for k in numbers}
        return voting | {named("PKNN", k): PKNNClassifier(k, structure=structure) for k in numbers}
    if group == SEARCH:
        # No k can exceed the rows of the search's own smallest training part.
        most = min(settings.n_candidates, n_train - -(-n_train // settings.n_splits))
        candidates = {"n_neighbors": list(range(1, most + 1))}
        return {SEARCH: GridSearchCV(KNeighborsClassifier(), candidates, cv=settings.n_splits)}
    kinds = EXACT if group == "exact" else {group: KOREA[group]}
    return {
        name: KFreeClassifier(
            k_values="all",
            structure=structure,
            inference=inference,
            average=average,
            k_max=settings.k_most(n_train),
        )
        for name, (inference, average) in kinds.items()
    }


def named(method: str, k: int) -> str:
    """The name of a method with a given K."""
    return f"{method}, K = {k}"
