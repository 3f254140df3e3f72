"""The classifier inside what a picture is asked to draw, and the rows as it takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted


def last_step(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The fitted classifier, and X after the steps before it; X=None, the training rows, stays."""
    check_is_fitted(estimator)
    if not isinstance(estimator, Pipeline):
        return estimator, X
    if X is not None and len(estimator) > 1:
        X = estimator[:-1].transform(X)
    return estimator[-1], X


def candidates(estimator: Any) -> NDArray[np.integer]:
    """The numbers of neighbors that `k_posterior_` is about, ascending."""
    n_k = len(estimator.k_posterior_)
    return np.asarray(getattr(estimator, "k_values_", np.arange(1, n_k + 1)))


def one_row(X: Any, row: int | None) -> Any:
    """The row of X that is to be drawn, as rows; None for X=None."""
    if X is None:
        if row is not None:
            raise ValueError(f"row={row} picks a row of X, but X is None.")
        return None
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    row = row_number(row, n_rows, "X")
    # pandas would read [row:row + 1] as labels where its index is not an integer range.
    return X.iloc[row : row + 1] if hasattr(X, "iloc") else X[row : row + 1]


def row_number(row: int | None, n_rows: int, name: str) -> int:
    """The row from 0 on; it need not be given where there is only one."""
    if row is None:
        if n_rows != 1:
            raise ValueError(f"{name} has {n_rows} rows: say with row= which one to draw.")
        row = 0
    if not -n_rows <= row < n_rows:
        raise ValueError(f"row={row} is out of range: {name} has {n_rows} rows.")
    return row % n_rows
