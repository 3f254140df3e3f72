"""How distances are to be measured, and whether rows suit that."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from kfree.neighbors.metric import METRICS, PAIRWISE
from kfree.neighbors.search import ALGORITHMS
from kfree.validation.scalars import is_number, one_of

# What the metrics take that take anything; a callable is given everything.
METRIC_PARAMS = {
    "minkowski": {"p", "w"},
    "seuclidean": {"V"},
    "mahalanobis": {"V", "VI"},
    **{name: {"w"} for name in PAIRWISE - {"haversine", "nan_euclidean"}},
}
# Eigenvalues of a matrix that is positive semidefinite may be so far below zero by rounding,
# relative to the largest.
ROUNDING = 1e-10
# Metrics that are a Euclidean distance after a fixed map of the rows.
EUCLIDEAN = (
    "minkowski",
    "euclidean",
    "l2",
    "sqeuclidean",
    "seuclidean",
    "mahalanobis",
    "cosine",
    "correlation",
)


def check_metric(metric: Any, p: Any, metric_params: Any, algorithm: str) -> None:
    """Judge how distances are to be measured."""
    if not callable(metric):
        one_of("metric", metric, METRICS)
    positive_or_infinite = is_number(p) and p > 0.0
    if not positive_or_infinite:
        raise ValueError(f"p, the power of the Minkowski metric, must be positive; got {p!r}.")
    if metric_params is not None and not isinstance(metric_params, dict):
        raise ValueError(f"metric_params must be a dict or None; got {metric_params!r}.")
    one_of("algorithm", algorithm, ALGORITHMS)
    params = metric_params or {}
    known = METRIC_PARAMS.get(metric, set()) if isinstance(metric, str) else set(params)
    unknown = set(params) - known
    if unknown:
        names = ", ".join(sorted(map(repr, unknown)))
        takes = ", ".join(sorted(map(repr, known))) or "none"
        raise ValueError(f"metric={metric!r} has no parameter {names}; it takes {takes}.")
    power = params.get("p", p) if metric == "minkowski" else p
    if not (is_number(power) and power > 0.0):
        raise ValueError(f"metric_params['p'] must be positive; got {power!r}.")
    slow = callable(metric) or metric in PAIRWISE or metric == "precomputed"
    if algorithm == "kd_tree" and (slow or (metric == "minkowski" and power < 1.0)):
        raise ValueError(
            f"algorithm='kd_tree' cannot search metric={metric!r} with p={power!r}; "
            "use algorithm='brute' or 'auto'."
        )
    if algorithm == "faiss":
        _check_faiss(metric, power if metric == "minkowski" else 2)


def _check_faiss(metric: Any, power: Any) -> None:
    if metric not in EUCLIDEAN or power != 2:
        shown = f"{metric!r} with p={power!r}" if metric == "minkowski" else repr(metric)
        raise ValueError(
            "algorithm='faiss' searches Euclidean distances only "
            f"(metric={', '.join(map(repr, EUCLIDEAN))}, with p=2); got metric={shown}."
        )
    if find_spec("faiss") is None:
        raise ImportError(
            "algorithm='faiss' needs the package faiss-cpu; install it with pip install "
            "'kfree[faiss]', or use algorithm='auto'."
        )


def check_features_of_metric(estimator: Any, n_features: int) -> None:
    """Raise unless the metric and its parameters suit rows of so many features."""
    if isinstance(estimator.metric, str):
        for name, value in (estimator.metric_params or {}).items():
            if name != "p":
                check_metric_param(f"metric_params[{name!r}]", value, estimator.metric, n_features)
    if estimator.metric == "haversine" and n_features != 2:
        raise ValueError(
            "metric='haversine' needs 2 features, latitude and longitude in radians; "
            f"X has {n_features}."
        )


def check_metric_param(name: str, value: Any, metric: str, n: int) -> None:
    """Judge weights, variances, or a matrix of (inverse) covariances, for `n` features."""
    try:
        values = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers; got {value!r}.") from None
    wanted = (n, n) if metric == "mahalanobis" else (n,)
    if values.shape != wanted:
        raise ValueError(
            f"{name} has shape {values.shape}; X has {n} features, so it must have shape {wanted}."
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{name} contains NaN or infinity; all of it must be finite.")
    if metric == "mahalanobis":
        # Of a matrix only the symmetric part enters x^T M x.
        eigenvalues = np.linalg.eigvalsh((values + values.T) / 2.0)
        if eigenvalues[0] < -ROUNDING * np.abs(eigenvalues).max():
            raise ValueError(
                f"{name} must be positive semidefinite, or squared distances would be negative; "
                f"its smallest eigenvalue is {eigenvalues[0]:.3g}."
            )
    elif values.min() < 0.0:
        raise ValueError(f"{name} must have no negative number; got {values.min():g}.")


def takes_sparse(estimator: Any) -> bool:
    """Whether rows may be sparse: distances that are given, or Euclidean and cosine ones."""
    metric, params = estimator.metric, estimator.metric_params
    if metric == "precomputed":
        return True
    searched = getattr(estimator, "algorithm", None) in ("auto", "brute")
    if params or not searched or not isinstance(metric, str):
        return False
    euclidean = metric in ("euclidean", "l2", "sqeuclidean", "cosine")
    return euclidean or (metric == "minkowski" and estimator.p == 2)
