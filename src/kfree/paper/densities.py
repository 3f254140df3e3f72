"""The figure of p(K, beta | Y) and p(K | Y) of one test row of each data set."""

from __future__ import annotations

from functools import partial

from kfree.classifier import KFreeClassifier
from kfree.displays import beta_grid
from kfree.evaluation.data import Dataset
from kfree.paper.settings import Settings
from kfree.paper.unit import Unit, first_fold

NAME = "densities"


def units(settings: Settings, dataset: Dataset) -> list[Unit]:
    """One piece of work for each data set."""
    return [Unit(NAME, (dataset.name,), partial(measure, settings, dataset))]


def measure(settings: Settings, dataset: Dataset) -> dict[str, list]:
    """KOREA's density on a grid, and p(K | Y) by KOREA and exactly."""
    fold = first_fold(settings, dataset)
    k_max = settings.k_most(len(fold.y_train))
    row = fold.X_test[:1]
    exact = (
        KFreeClassifier(k_values="all", k_max=k_max).fit(fold.X_train, fold.y_train).posterior(row)
    )
    korea = KFreeClassifier(k_values="all", inference="laplace", k_max=k_max).fit(
        fold.X_train, fold.y_train
    )
    posterior = korea.posterior(row)
    beta = beta_grid(posterior.beta_mean[0], posterior.beta_std[0])
    return {
        "k": posterior.k.tolist(),
        "beta": beta.tolist(),
        "density": posterior.density(beta)[0].tolist(),
        "korea": posterior.k_probabilities[0].tolist(),
        "exact": exact.k_probabilities[0].tolist(),
    }
