"""KOREA against the exact posterior of K, and the exact one against a dense integral."""

from __future__ import annotations

from functools import partial

import numpy as np

from kfree.classifier import KFreeClassifier
from kfree.evaluation.data import Dataset
from kfree.paper.settings import Settings
from kfree.paper.unit import Unit, divergence, first_fold

NAME = "exactness"

# The trapezoidal rule in log(beta). Its step is a tenth of the narrowest posterior seen here, where
# its error is far below rounding, and its ends lie where nothing is left of the posterior.
DENSE = np.linspace(np.log(0.01), np.log(500.0), 1001)
# How many of these are evaluated at a time.
AT_ONCE = 143


def units(settings: Settings, dataset: Dataset) -> list[Unit]:
    """One piece of work for each structure."""
    return [
        Unit(NAME, (dataset.name, structure), partial(measure, settings, dataset, structure))
        for structure in settings.structures
    ]


def measure(settings: Settings, dataset: Dataset, structure: str) -> dict[str, list[float]]:
    """Distances of p(K | Y) for test rows of the first fold."""
    fold = first_fold(settings, dataset)
    k_max = settings.k_most(len(fold.y_train))
    exact = KFreeClassifier(k_values="all", structure=structure, k_max=k_max).fit(
        fold.X_train, fold.y_train
    )
    korea = KFreeClassifier(k_values="all", structure=structure, k_max=k_max, inference="laplace")
    korea.fit(fold.X_train, fold.y_train)
    true = exact.posterior(fold.X_test)
    approximate = korea.posterior(fold.X_test)
    few = exact.posterior(fold.X_test[: settings.n_dense_rows])
    dense = integral(few)
    gap = np.abs(approximate.class_probabilities - true.class_probabilities).max(axis=1)
    return {
        "korea": divergence(true.k_probabilities, approximate.k_probabilities).tolist(),
        "quadrature": divergence(dense, few.k_probabilities).tolist(),
        "class_gap": gap.tolist(),
    }


def integral(posterior) -> np.ndarray:
    """p(K | Y) by a dense trapezoidal rule over log(beta): (n_rows, n_k)."""
    total = np.zeros_like(posterior.k_probabilities)
    for log_beta in np.array_split(DENSE, -(-len(DENSE) // AT_ONCE)):
        beta = np.exp(log_beta)
        total += posterior.density(beta) @ beta  # d beta = beta d log(beta)
    return total / total.sum(axis=1, keepdims=True)
