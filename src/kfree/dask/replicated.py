"""One model for many new rows: the model goes to every worker, the rows stay where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kfree.dask.engine import collection_of, rows_of, task
from kfree.shards.engine import as_it_is


def predict_proba(model: Any, X: Any) -> Any:
    """The class probabilities of the rows of a Dask collection, by a model from one machine.

    Parameters
    ----------
    model : a fitted classifier or pipeline
        Any that has `classes_` and `predict_proba`. Each worker gets a copy.
    X : dask array or dataframe of shape (n_samples, n_features)
        Chunks may be sparse if the model takes sparse rows.

    Returns
    -------
    dask array or dataframe of shape (n_samples, n_classes)
        Lazy, in the partitions of X.
    """
    check_is_fitted(model)
    return _of_each_part(model, X, "predict_proba", list(model.classes_), np.dtype(float))


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
    return _of_each_part(model, X, "predict", None, np.asarray(model.classes_).dtype)


def _of_each_part(model: Any, X: Any, method: str, columns: list | None, dtype: Any) -> Any:
    rows, model_task = rows_of(X), task("model", as_it_is, model)
    name, none = method.replace("_", "-"), np.empty((0, len(columns)) if columns else 0, dtype)
    parts = [task(name, _answer, model_task, method, part, none) for part in rows.parts]
    return collection_of(parts, rows, columns, dtype)


def _answer(model: Any, method: str, X: Any, none: np.ndarray) -> np.ndarray:
    return np.asarray(getattr(model, method)(X)) if X.shape[0] else none
