"""The one place where what users give is judged.

Every check raises before anything of an estimator has changed, with one sentence that says what
was wrong and what is expected.
"""

from __future__ import annotations

import numbers
from collections import Counter
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names, validate_data

from kfree.neighbors.given_graph import NeighborLists, lists_of
from kfree.neighbors.metric import METRICS, PAIRWISE
from kfree.neighbors.search import ALGORITHMS
from kfree.neighbors.structures import STRUCTURES

Rows = np.ndarray | NeighborLists

INFERENCES = ("quadrature", "laplace", "metropolis")
UPDATES = ("joint", "conditional")
PRIOR_BOUNDS = {"prior_shape": (0.1, 1e6), "prior_scale": (1e-50, 1e50)}
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


def one_of(name: str, value: Any, choices: Any) -> None:
    """Raise unless a parameter is one of the known names."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")


def positive(name: str, value: Any) -> None:
    """Raise unless a parameter is a finite number above zero."""
    if not _is_number(value) or not 0.0 < value < np.inf:
        raise ValueError(f"{name} must be a positive finite number; got {value!r}.")


def check_prior(estimator: Any) -> None:
    """Judge the Gamma prior of beta: beyond these bounds beta leaves the range of numbers."""
    for name, (low, high) in PRIOR_BOUNDS.items():
        value = getattr(estimator, name)
        positive(name, value)
        if not low <= value <= high:
            raise ValueError(f"{name} must be between {low:g} and {high:g}; got {value!r}.")


def check_metric(metric: Any, p: Any, metric_params: Any, algorithm: str) -> None:
    """Judge how distances are to be measured."""
    if not callable(metric):
        one_of("metric", metric, METRICS)
    positive_or_infinite = _is_number(p) and p > 0.0
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
    if not (_is_number(power) and power > 0.0):
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


def check_jobs(n_jobs: Any) -> None:
    """Raise unless the number of threads is one that joblib knows."""
    whole = isinstance(n_jobs, numbers.Integral) and not isinstance(n_jobs, (bool, np.bool_))
    if n_jobs is not None and (not whole or n_jobs == 0):
        raise ValueError(
            "n_jobs must be None or a whole number other than 0, where -1 means all cores; "
            f"got {n_jobs!r}."
        )


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
        _whole("k_max", estimator.k_max, "'auto' or ")
    check_metric(estimator.metric, estimator.p, estimator.metric_params, estimator.algorithm)
    check_jobs(estimator.n_jobs)
    _whole("n_draws", estimator.n_draws)
    _whole("n_chains", estimator.n_chains)
    _whole("n_burn_in", estimator.n_burn_in, least=0)
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


def check_sampler(estimator: Any) -> None:
    """Raise unless the estimator samples."""
    if estimator.inference != "metropolis":
        raise ValueError(
            "sample needs inference='metropolis'; the classifier was made with "
            f"inference={estimator.inference!r}."
        )


def check_fixed(estimator: Any) -> None:
    """Judge the parameters of a classifier with a given number of neighbors."""
    one_of("structure", estimator.structure, STRUCTURES)
    _whole("n_neighbors", estimator.n_neighbors)
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


def check_field(estimator: Any, names: tuple[str, ...]) -> list[tuple[str, Any, dict | None]]:
    """Judge the parameters of a FieldClassifier; its views as (name, metric, params)."""
    if not isinstance(estimator.linear, (bool, np.bool_)):
        raise ValueError(f"linear must be True or False; got {estimator.linear!r}.")
    _whole("n_neighbors", estimator.n_neighbors, least=2)
    _whole("max_iter", estimator.max_iter)
    positive("tol", estimator.tol)
    check_jobs(estimator.n_jobs)
    views = [_view(view, names) for view in _views(estimator.views)]
    taken = [name for name, _, _ in views]
    twice = sorted({name for name in taken if taken.count(name) > 1})
    if twice:
        raise ValueError(f"Every view needs a name of its own; views has {twice[0]!r} twice.")
    if any(metric == "precomputed" for _, metric, _ in views):
        if len(views) > 1:
            raise ValueError(
                "A 'precomputed' view must be the only one, as X holds distances and no columns; "
                f"views has {len(views)}."
            )
        if estimator.linear:
            raise ValueError(
                "A 'precomputed' view needs linear=False, as X holds distances and no columns."
            )
    return views


def _views(views: Any) -> list[Any]:
    if isinstance(views, str) or not isinstance(views, (tuple, list)) or len(views) == 0:
        raise ValueError(
            "views must be a list or tuple of at least one view, such as ('scores', 'within'); "
            f"got {views!r}."
        )
    return list(views)


def _view(view: Any, names: tuple[str, ...]) -> tuple[str, Any, dict | None]:
    known = ", ".join(map(repr, names))
    if isinstance(view, str):
        if view not in names:
            raise ValueError(
                f"There is no view {view!r}; a view is one of {known}, or a tuple "
                "(name, metric, params)."
            )
        return view, None, None
    if not isinstance(view, (tuple, list)) or len(view) != 3 or not isinstance(view[0], str):
        raise ValueError(
            f"A view is one of {known}, or a tuple (name, metric, params); got {view!r}."
        )
    name, metric, params = view
    if name in names:
        raise ValueError(f"{name!r} is a view of its own; give the view of a metric another name.")
    try:
        check_metric(metric, 2, params, "auto")
    except ValueError as error:
        raise ValueError(f"The view {name!r}: {error}") from None
    return name, metric, params


def check_field_rows(estimator: Any, views: Any, rows: Rows) -> None:
    """Judge the training rows by what each view's metric asks of them."""
    for view in views:
        if view.metric == "haversine" and rows.shape[1] != 2:
            raise ValueError(
                f"The view {view.name!r}: metric='haversine' needs 2 features, latitude and "
                f"longitude in radians; X has {rows.shape[1]}."
            )
        if isinstance(view.metric, str):
            for name, value in (view.params or {}).items():
                if name != "p":
                    label = f"The view {view.name!r}: params[{name!r}]"
                    _check_metric_param(label, value, view.metric, rows.shape[1])


def check_sample_weight(weights: Any, n_samples: int) -> np.ndarray:
    """Weights of rows, 1 for each where none are given."""
    if weights is None:
        return np.ones(n_samples)
    if isinstance(weights, numbers.Real):
        weights = np.full(n_samples, float(weights))
    try:
        checked = np.asarray(weights, dtype=float)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must hold numbers.") from None
    if checked.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has shape {checked.shape}; it needs one weight for each of the "
            f"{n_samples} rows."
        )
    if not np.isfinite(checked).all():
        row = int((~np.isfinite(checked)).argmax())
        raise ValueError(
            f"sample_weight contains NaN or infinity, first in row {row}; all must be finite."
        )
    if checked.min() < 0.0:
        row = int((checked < 0.0).argmax())
        raise ValueError(
            f"sample_weight contains a negative weight, {checked[row]:g} in row {row}; weights "
            "must be zero or positive."
        )
    if checked.sum() == 0.0:
        raise ValueError("sample_weight is zero for every row; at least one must be positive.")
    return checked


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


def check_training(estimator: Any, X: Any, y: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Training rows as float64 or lists, labels as integers from 0, and the classes."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    names = _feature_names(X)
    X = _features(estimator, X, names)
    y = _labels(y)
    if len(y) != X.shape[0]:
        raise ValueError(
            f"X has {X.shape[0]} rows but y has {len(y)} labels; every row needs one label."
        )
    if X.shape[0] < 2:
        raise ValueError(
            f"X has n_samples = {X.shape[0]}; at least 2 rows, of 2 classes, are needed for "
            "neighbors."
        )
    encoder = LabelEncoder().fit(y)
    if len(encoder.classes_) < 2:
        raise ValueError(
            f"y has only one class, {encoder.classes_[0]!r}; a classifier needs at least 2 classes."
        )
    if estimator.metric == "precomputed" and X.shape[0] != X.shape[1]:
        raise ValueError(
            "With metric='precomputed' X must be the square matrix of distances between the "
            f"training rows; got shape {X.shape}."
        )
    _check_distances(estimator, X)
    if isinstance(X, NeighborLists):
        X = X.without_itself()
        if X.lengths.min() == 0:
            raise ValueError(
                f"The sparse X stores no neighbor of row {X.lengths.argmin()} other than itself; "
                "every training row needs at least 1."
            )
    check_features_of_metric(estimator, X.shape[1])
    return X, encoder.transform(y), encoder.classes_


def check_features_of_metric(estimator: Any, n_features: int) -> None:
    """Raise unless the metric and its parameters suit rows of so many features."""
    if isinstance(estimator.metric, str):
        for name, value in (estimator.metric_params or {}).items():
            if name != "p":
                _check_metric_param(f"metric_params[{name!r}]", value, estimator.metric, n_features)
    if estimator.metric == "haversine" and n_features != 2:
        raise ValueError(
            "metric='haversine' needs 2 features, latitude and longitude in radians; "
            f"X has {n_features}."
        )


def _check_metric_param(name: str, value: Any, metric: str, n: int) -> None:
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


def remember_features(estimator: Any, X: Any) -> None:
    """Keep the number and the names of the features; the last step of a fit that succeeded."""
    validate_data(estimator, X, skip_check_array=True)


def check_new(estimator: Any, X: Any, training: Rows, n_neighbors: int) -> Any:
    """New rows as float64, with the features of the training rows, or lists of neighbors."""
    _check_feature_names(estimator, X, reset=False)
    X = _features(estimator, X, getattr(estimator, "feature_names_in_", None))
    if X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    _check_distances(estimator, X)
    if isinstance(X, NeighborLists) != isinstance(training, NeighborLists):
        kinds = ("a sparse graph", "a dense matrix")
        first, second = kinds if isinstance(training, NeighborLists) else kinds[::-1]
        raise ValueError(
            f"{type(estimator).__name__} was fitted on {first} of distances; X must be one too, "
            f"but is {second}."
        )
    if isinstance(X, NeighborLists) and X.lengths.min() < n_neighbors:
        shortest = int(X.lengths.argmin())
        raise ValueError(
            f"The sparse X stores {X.lengths[shortest]} neighbors for row {shortest}, but "
            f"{type(estimator).__name__} needs the {n_neighbors} nearest training rows of each row."
        )
    if not isinstance(X, NeighborLists) and issparse(X) != issparse(training):
        return X.toarray() if issparse(X) else csr_array(X)
    return X


def check_n_listed(n_neighbors: Any) -> None:
    """Judge how many neighbors an audit is to name for each row."""
    _whole("n_neighbors", n_neighbors)


def check_held_out(probabilities: Any, shape: tuple[int, int]) -> np.ndarray:
    """Leave-one-out probabilities that were computed before."""
    probabilities = np.asarray(probabilities, dtype=float)
    if probabilities.shape != shape:
        raise ValueError(
            f"probabilities must have shape {shape}, one row for each training row and one column "
            f"for each class; got {probabilities.shape}."
        )
    if not (np.isfinite(probabilities) & (probabilities > 0.0)).all():
        raise ValueError("probabilities must all be positive and finite.")
    return probabilities


def check_given(estimator: Any, X: Any) -> None:
    """Raise if there are no rows where leave-one-out is not offered."""
    if X is None:
        raise ValueError(
            f"{type(estimator).__name__} needs rows here, but X is None; leave-one-out by X=None "
            "is offered by predict_proba of KFreeClassifier, FieldClassifier and PKNNClassifier."
        )


def check_beta(beta: Any) -> np.ndarray:
    """A grid of betas."""
    beta = np.asarray(beta, dtype=float)
    if beta.ndim != 1 or len(beta) == 0 or not (np.isfinite(beta).all() and (beta > 0).all()):
        raise ValueError("beta must be a one-dimensional array of positive finite numbers.")
    return beta


def check_part(estimator: Any, X: Any) -> Any:
    """Some rows of a table that is read in parts, as float64 or float32."""
    return _features(estimator, X, _feature_names(X))


def check_labels_of_part(y: Any) -> np.ndarray:
    """The labels of these rows."""
    return _labels(y)


def check_names(estimator: Any, X: Any) -> None:
    """Raise unless X has the feature names that the estimator was fitted with."""
    _check_feature_names(estimator, X, reset=False)


def _features(estimator: Any, X: Any, names: Any) -> Rows:
    twice = [name for name, n in Counter(map(str, _feature_names(X) or ())).items() if n > 1]
    if twice:
        raise ValueError(
            f"X has more than one column named {twice[0]!r}; every column needs its own name."
        )
    try:
        checked = check_array(
            X,
            accept_sparse="csr" if takes_sparse(estimator) else False,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            estimator=estimator,
            input_name="X",
        )
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        raise ValueError(_text_message(X, names)) from None
    if issparse(checked):
        if estimator.metric == "precomputed":
            return _lists(checked)
        if not np.isfinite(checked.data).all():
            entry = int(np.flatnonzero(~np.isfinite(checked.data))[0])
            row = int(np.searchsorted(checked.indptr, entry, side="right")) - 1
            kind = "NaN" if np.isnan(checked.data[entry]) else "infinity"
            raise ValueError(
                f"Input X contains {kind} in column {_column(names, checked.indices[entry])} "
                f"(first in row {row}); all features must be finite (no inf)."
            )
        return csr_array(checked)
    allow_nan = estimator.metric == "nan_euclidean"
    bad = np.isinf(checked) if allow_nan else ~np.isfinite(checked)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        kind = "NaN" if np.isnan(checked[row, column]) else "infinity"
        advice = "fill in or drop missing values first"
        if "metric" in estimator.get_params(deep=False):
            advice += ", or use metric='nan_euclidean'"
        raise ValueError(
            f"Input X contains {kind} in column {_column(names, column)} (first in row {row}); "
            + (advice if kind == "NaN" else "all features must be finite (no inf)")
            + "."
        )
    return checked


def _lists(graph: Any) -> NeighborLists:
    if not np.isfinite(graph.data).all():
        raise ValueError(
            "The sparse X has NaN or infinity among its distances; all must be finite."
        )
    if not graph.has_canonical_format and _has_twins(graph):
        raise ValueError("The sparse X stores a distance twice; every pair of rows may have one.")
    return lists_of(graph)


def _has_twins(graph: Any) -> bool:
    row = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    pair = np.sort(row * np.int64(graph.shape[1]) + graph.indices)
    return bool((pair[1:] == pair[:-1]).any())


def _check_distances(estimator: Any, X: Rows) -> None:
    stored = X.distances if isinstance(X, NeighborLists) else X
    if estimator.metric == "precomputed" and stored.min(initial=0.0) < 0.0:
        raise ValueError(
            "Negative values in data: with metric='precomputed' X must hold distances, which are "
            "never negative."
        )


def _labels(y: Any) -> np.ndarray:
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "O":
        bad = np.array([_is_missing(label) for label in y], dtype=bool)
    else:
        bad = ~np.isfinite(y) if y.dtype.kind == "f" else np.zeros(len(y), dtype=bool)
    if bad.any():
        row = int(bad.argmax())
        kind = "infinity" if y.dtype.kind == "f" and np.isinf(y[row]) else "NaN or None"
        raise ValueError(
            f"Input y contains {kind}, first in row {row}; every training row needs a label."
        )
    try:
        check_classification_targets(y)
    except TypeError:
        raise ValueError(
            "y mixes labels that cannot be ordered, such as text and numbers; use one kind."
        ) from None
    return y


def _is_missing(label: Any) -> bool:
    if label is None:
        return True
    try:
        return bool(label != label)
    except TypeError:  # pandas.NA does not say whether it differs
        return True


def _whole(name: str, value: Any, before: str = "", least: int = 1) -> None:
    whole = isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))
    if not whole or value < least:
        raise ValueError(
            f"{name} must be {before}a whole number of at least {least}; got {value!r}."
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def _feature_names(X: Any) -> Any:
    return list(X.columns) if hasattr(X, "columns") else None


def _column(names: Any, column: int) -> str:
    return repr(str(names[column])) if names is not None else str(column)


def _text_message(X: Any, names: Any) -> str:
    rows = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X, dtype=object)
    for (_, column), value in np.ndenumerate(np.atleast_2d(np.asarray(rows, dtype=object))):
        try:
            float(value)
        except (TypeError, ValueError):
            return (
                f"X has text in column {_column(names, column)}, such as {value!r}; "
                "all features must be numbers: encode text first, for example with OneHotEncoder."
            )
    return "X has text among its features; all features must be numbers."
