"""The table of times, and how much longer the sampler takes than the two deterministic ways."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial

from sklearn.exceptions import ConvergenceWarning

from kfree.baselines import PKNNClassifier, StructuredKNNClassifier
from kfree.classifier import KFreeClassifier
from kfree.evaluation.data import Dataset
from kfree.paper.settings import Settings
from kfree.paper.unit import Unit, first_fold

NAME = "times"

METHODS = ("KNN", "PKNN", "MCMC", "KOREA", "exact")
# This takes long, and one measurement of it is steady enough.
ONCE = ("MCMC",)


def units(settings: Settings, dataset: Dataset) -> list[Unit]:
    """One piece of work for each method."""
    return [
        Unit(NAME, (dataset.name, method), partial(measure, settings, dataset, method))
        for method in METHODS
    ]


def measure(settings: Settings, dataset: Dataset, method: str) -> dict[str, float]:
    """Seconds for the whole test part of the first fold."""
    fold = first_fold(settings, dataset)
    k_max = settings.k_most(len(fold.y_train))
    makers: dict[str, Callable] = {
        "KNN": lambda: StructuredKNNClassifier(settings.n_neighbors),
        "PKNN": lambda: PKNNClassifier(settings.n_neighbors),
        "KOREA": lambda: KFreeClassifier(k_values="all", inference="laplace", k_max=k_max),
        "exact": lambda: KFreeClassifier(k_values="all", k_max=k_max),
        "MCMC": lambda: KFreeClassifier(
            k_values="all",
            inference="metropolis",
            k_max=k_max,
            n_chains=1,
            n_draws=settings.n_iterations - settings.n_burn_in,
            n_burn_in=settings.n_burn_in,
            random_state=settings.random_state,
        ),
    }
    taken = []
    for _ in range(1 if method in ONCE else settings.repeats):
        model = makers[method]()
        with warnings.catch_warnings():
            # Whether the chains agree is not the question here.
            warnings.simplefilter("ignore", ConvergenceWarning)
            start = time.perf_counter()
            model.fit(fold.X_train, fold.y_train)
            fitted = time.perf_counter()
            model.predict_proba(fold.X_test)
            done = time.perf_counter()
        # fit of the sampler makes a walk over the training labels, which the paper's does not.
        taken.append(done - (fitted if method == "MCMC" else start))
    return {"seconds": min(taken), "n_train": len(fold.y_train), "n_test": len(fold.y_test)}
