"""One model for many new rows: the model goes to every worker, the rows stay where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kfree.dask.collections import as_it_is, collection_of, rows_of, task


def predict_proba(model: Any, X: Any) -> Any:
    """The class probabilities of the rows of a Dask collection, by a model from one machine.

    Parameters
    ----------
    model : a fitted classifier or pipeline
        Any that has `classes_` and `predict_proba`. Each worker gets a copy.
    X : dask array or dataframe of shape (n_samples, n_features)

    Returns
    -------
    dask array or dataframe of shape (n_samples, n_classes)
        Lazy, in the partitions of X.
    """
    check_is_fitted(model)
    rows, model_task = rows_of(X), task("model", as_it_is, model)
    n_classes = len(model.classes_)
    parts = [task("predict-proba", _probabilities, model_task, part) for part in rows.parts]
    columns = list(model.classes_) if rows.frame else list(range(n_classes))
    return collection_of(parts, rows, columns, np.float64)


def predict(model: Any, X: Any) -> Any:
    """The classes of the rows of a Dask collection, by a model from one machine.

    Parameters
    ----------
    model : a fitted classifier or pipeline
    X : dask array or dataframe of shape (n_samples, n_features)

    Returns
    -------
    dask array or series of shape (n_samples,)
        Lazy, in the partitions of X.
    """
    check_is_fitted(model)
    rows, model_task = rows_of(X), task("model", as_it_is, model)
    parts = [task("predict", _classes, model_task, part) for part in rows.parts]
    return collection_of(parts, rows, None, np.asarray(model.classes_).dtype)


def _probabilities(model: Any, X: Any) -> np.ndarray:
    if not len(X):
        return np.empty((0, len(model.classes_)))
    return np.asarray(model.predict_proba(X))


def _classes(model: Any, X: Any) -> np.ndarray:
    if not len(X):
        return np.empty(0, dtype=np.asarray(model.classes_).dtype)
    return np.asarray(model.predict(X))
