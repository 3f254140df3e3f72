"""The parameters of estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfree.neighbors.given_graph import NeighborLists
from kfree.neighbors.structures import STRUCTURES
from kfree.validation.metrics import check_metric
from kfree.validation.rows import Rows
from kfree.validation.scalars import check_jobs, one_of, positive, whole

INFERENCES = ("quadrature", "laplace", "metropolis")
UPDATES = ("joint", "conditional")
PRIOR_BOUNDS = {"prior_shape": (0.1, 1e6), "prior_scale": (1e-50, 1e50)}


def check_classifier(estimator: Any) -> None:
    """Judge the parameters of a KFreeClassifier."""
    one_of("structure", estimator.structure, STRUCTURES)
    one_of("inference", estimator.inference, INFERENCES)
    one_of("update", estimator.update, UPDATES)
    if not isinstance(estimator.average, (bool, np.bool_)):
        raise ValueError(f"average must be True or False; got {estimator.average!r}.")
    check_prior(estimator)
    needs_mode = estimator.inference == "laplace" or (
        estimator.inference == "quadrature" and not estimator.average
    )
    if estimator.prior_shape <= 1.0 and needs_mode:
        raise ValueError(
            "prior_shape must be above 1 for inference='laplace' and for average=False, which need "
            f"a mode of beta above zero; got {estimator.prior_shape!r}."
        )
    if not (isinstance(estimator.k_max, str) and estimator.k_max == "auto"):
        whole("k_max", estimator.k_max, "'auto' or ")
    check_metric(estimator.metric, estimator.p, estimator.metric_params, estimator.algorithm)
    check_jobs(estimator.n_jobs)
    whole("n_draws", estimator.n_draws)
    whole("n_chains", estimator.n_chains)
    whole("n_burn_in", estimator.n_burn_in, least=0)
    positive("proposal_variance", estimator.proposal_variance)


def check_candidates(estimator: Any, rows: Rows) -> tuple[Any, int | None]:
    """The candidates of K: "auto", "all" or distinct numbers; and the largest, if known."""
    k_values, auto = estimator.k_values, isinstance(estimator.k_max, str)
    if isinstance(k_values, str):
        one_of("k_values", k_values, ("auto", "all"))
        k_max = None if auto else int(estimator.k_max)
        if k_max is not None:
            check_n_neighbors("k_max", k_max, rows)
        return k_values, k_max
    values = np.asarray(k_values)
    if values.ndim != 1 or len(values) == 0 or values.dtype.kind not in "iu" or values.min() < 1:
        raise ValueError(
            "k_values must be 'auto', 'all' or a list of whole numbers of at least 1; "
            f"got {k_values!r}."
        )
    if not auto:
        raise ValueError(
            f"k_max={estimator.k_max} has no meaning beside a list of k_values, whose largest "
            f"number is {values.max()}; leave k_max at 'auto'."
        )
    check_n_neighbors("The largest of k_values", int(values.max()), rows)
    return np.unique(values), int(values.max())


def check_prior(estimator: Any) -> None:
    """Judge the Gamma prior of beta: beyond these bounds beta leaves the range of numbers."""
    for name, (low, high) in PRIOR_BOUNDS.items():
        value = getattr(estimator, name)
        positive(name, value)
        if not low <= value <= high:
            raise ValueError(f"{name} must be between {low:g} and {high:g}; got {value!r}.")


def check_fixed(estimator: Any) -> None:
    """Judge the parameters of a classifier with a given number of neighbors."""
    one_of("structure", estimator.structure, STRUCTURES)
    whole("n_neighbors", estimator.n_neighbors)
    check_metric(estimator.metric, estimator.p, estimator.metric_params, estimator.algorithm)
    check_jobs(estimator.n_jobs)


def check_strength(estimator: Any) -> None:
    """Judge how a PKNNClassifier gets its beta."""
    check_prior(estimator)
    if estimator.beta is not None:
        positive("beta", estimator.beta)
    elif estimator.prior_shape <= 1.0:
        raise ValueError(
            "prior_shape must be above 1 for beta to have a mode above zero; "
            f"got {estimator.prior_shape!r}. Or give beta."
        )


def check_n_neighbors(name: str, value: int, rows: Rows) -> None:
    """Raise if more neighbors are asked for than there are."""
    n_samples = rows.shape[0]
    if value > n_samples - 1:
        raise ValueError(
            f"{name}={value} is more than the {n_samples - 1} neighbors that each of "
            f"{n_samples} training rows has; give at most {n_samples - 1}."
        )
    if isinstance(rows, NeighborLists) and value > rows.lengths.min():
        shortest = int(rows.lengths.argmin())
        raise ValueError(
            f"{name}={value} is more than the {rows.lengths[shortest]} neighbors that the sparse X "
            f"stores for row {shortest}; give at most {rows.lengths[shortest]}, or store more."
        )


def check_sampler(estimator: Any) -> None:
    """Raise unless the estimator samples."""
    if estimator.inference != "metropolis":
        raise ValueError(
            "sample needs inference='metropolis'; the classifier was made with "
            f"inference={estimator.inference!r}."
        )


def check_n_listed(n_neighbors: Any) -> None:
    """Judge how many neighbors an audit is to name for each row."""
    whole("n_neighbors", n_neighbors)
