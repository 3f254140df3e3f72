"""Rows and labels: training data, new data, parts of a table."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names, validate_data

from kfree.neighbors.given_graph import NeighborLists, lists_of
from kfree.validation.metrics import check_features_of_metric, takes_sparse

Rows = np.ndarray | NeighborLists


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
        only = encoder.classes_[:1].tolist()[0]  # 0 and not np.int64(0)
        raise ValueError(f"y has only one class, {only!r}; a classifier needs at least 2 classes.")
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


def check_given(estimator: Any, X: Any) -> None:
    """Raise if there are no rows where leave-one-out is not offered."""
    if X is None:
        raise ValueError(
            f"{type(estimator).__name__} needs rows here, but X is None; leave-one-out by X=None "
            "is offered by predict_proba of KFreeClassifier, FieldClassifier and PKNNClassifier."
        )


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


def check_part(estimator: Any, X: Any) -> Any:
    """Some rows of a table that is read in parts, as float64 or float32."""
    return _features(estimator, X, _feature_names(X))


def check_labels_of_part(y: Any) -> np.ndarray:
    """The labels of these rows."""
    return _labels(y)


def check_names(estimator: Any, X: Any) -> None:
    """Raise unless X has the feature names that the estimator was fitted with."""
    _check_feature_names(estimator, X, reset=False)


def remember_features(estimator: Any, X: Any) -> None:
    """Keep the number and the names of the features; the last step of a fit that succeeded."""
    validate_data(estimator, X, skip_check_array=True)


def _features(estimator: Any, X: Any, names: Any) -> Rows:
    twice = [name for name, n in Counter(map(str, _feature_names(X) or ())).items() if n > 1]
    if twice:
        raise ValueError(
            f"X has more than one column named {twice[0]!r}; every column needs its own name."
        )
    dates = _column_of_dates(X)
    if dates is not None:
        raise ValueError(
            f"X has dates or durations in column {_column(names, dates)}; all features must be "
            "numbers: take what matters of them first, such as the days since the first of them."
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


def _column_of_dates(X: Any) -> int | None:
    """The first column of dates or durations: numpy's own words on them name no column."""
    if hasattr(X, "iloc"):
        kinds = [getattr(dtype, "kind", "") for dtype in X.dtypes]
        return next((i for i, kind in enumerate(kinds) if kind in ("M", "m")), None)
    return 0 if getattr(getattr(X, "dtype", None), "kind", "") in ("M", "m") else None


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
        if y.dtype.kind == "O":
            np.unique(y)
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


def _feature_names(X: Any) -> Any:
    return list(X.columns) if hasattr(X, "columns") else None


def _column(names: Any, column: int) -> str:
    return repr(str(names[column])) if names is not None else str(column)
