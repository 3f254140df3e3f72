"""Which columns matter: how much worse the probabilities become when a column is shuffled."""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfree.report.comparison import FittedFold, log_losses, prepared, rows_of

#: How often each row gets the cell of another row.
N_REPEATS = 2
#: Rows are predicted anew for each column: fewer of them where there are many columns.
MOST_ROWS, LEAST_ROWS, MOST_PREDICTIONS = 400, 80, 16_000
#: Columns that are not done by then are left out.
MOST_SECONDS = 30.0
#: A table of many columns takes long to prepare, be it of few rows or many: so several columns are
#: shuffled in one table, each in rows of its own. This many cells and columns at most.
MOST_CELLS, MOST_TOGETHER = 2_000_000, 32


@dataclass(frozen=True)
class Importance:
    """What shuffling a column costs, the worst first.

    Attributes
    ----------
    columns : ndarray of shape (n_columns,) of int
        Places of the columns in the table.
    rise : ndarray of shape (n_columns,)
        How much the log loss rises, mean over the rows.
    error : ndarray of shape (n_columns,)
        Standard error of that.
    n_rows : int
        Rows that were predicted; the model was fitted without them.
    n_not_measured : int
        Columns for which the time did not suffice.
    by_promise : bool
        Whether these are the columns in which the means of the classes differ least; otherwise they
        are picked at random.
    """

    columns: NDArray[np.intp]
    rise: NDArray[np.float64]
    error: NDArray[np.float64]
    n_rows: int
    n_not_measured: int
    by_promise: bool = False


def column_importance(
    fold: FittedFold,
    X: Any,
    labels: NDArray[np.integer],
    unused: Collection[int] = (),
    most_seconds: float = MOST_SECONDS,
) -> Importance | None:
    """Shuffle one column after the other in rows that the model has not seen.

    Parameters
    ----------
    fold : FittedFold
    X : DataFrame or ndarray of shape (n_samples, n_columns)
        The whole table.
    labels : ndarray of shape (n_samples,) of int
    unused : collection of int
        Columns that the model leaves out.
    most_seconds : float
        No column is begun later than that.

    Returns
    -------
    Importance, or None where there is no column or hardly a row to tell it from.
    """
    generator = np.random.default_rng(0)
    used = np.array([j for j in range(X.shape[1]) if j not in set(unused)], dtype=np.intp)
    known = fold.rows[np.isin(labels[fold.rows], fold.classifier.classes_)]
    if not len(used) or len(known) < 2:
        return None
    most = int(np.clip(MOST_PREDICTIONS // len(used), LEAST_ROWS, MOST_ROWS))
    rows = generator.permutation(known)[:most]
    own = np.searchsorted(fold.classifier.classes_, labels[rows])

    def losses(table: Any, labels: NDArray[np.integer]) -> NDArray[np.float64]:
        return log_losses(fold.classifier.predict_proba(prepared(fold.preparation, table)), labels)

    start = time.perf_counter()
    before = losses(rows_of(X, rows), own)
    # No row keeps its own cell: all move on by one place in a random order, and by two.
    order = generator.permutation(len(rows))
    moved = []
    for shift in range(1, min(N_REPEATS, len(rows) - 1) + 1):
        places = np.empty(len(rows), dtype=np.intp)
        places[order] = np.roll(order, shift)
        moved.append(rows[places])
    others = np.concatenate(moved)
    again = np.tile(rows, len(moved))
    # In random order, or what promises most first: the time may not suffice for all.
    used = generator.permutation(used)
    promise = _promise(fold, X, labels, used)
    if promise is not None:
        used = used[np.argsort(-promise, kind="stable")]
    together = int(np.clip(MOST_CELLS // (len(again) * X.shape[1]), 1, MOST_TOGETHER))
    measured: list[int] = []
    rises: list[NDArray[np.float64]] = []
    for begin in range(0, len(used), together):
        if time.perf_counter() - start > most_seconds:
            break
        part = used[begin : begin + together]
        table = _shuffled(X, again, others, part)
        after = losses(table, np.tile(own, len(moved) * len(part)))
        rises += list(after.reshape(len(part), len(moved), len(rows)).mean(axis=1) - before)
        measured += part.tolist()
    rise = np.array([part.mean() for part in rises])
    error = np.array([part.std(ddof=1) / np.sqrt(len(rows)) for part in rises])
    first = np.argsort(-rise, kind="stable")
    return Importance(
        columns=np.array(measured, dtype=np.intp)[first],
        rise=rise[first],
        error=error[first],
        n_rows=len(rows),
        n_not_measured=len(used) - len(measured),
        by_promise=promise is not None,
    )


def _promise(
    fold: FittedFold, X: Any, labels: NDArray[np.integer], used: NDArray[np.intp]
) -> NDArray[np.float64] | None:
    """How much the classes differ in each column (F), by the rows that the model has seen.

    None if the columns are not all numbers, so that features of other columns stand between them.
    """
    from sklearn.feature_selection import f_classif

    seen = np.setdiff1d(np.arange(len(labels)), fold.rows)
    features = prepared(fold.preparation, rows_of(X, seen))
    if features.shape[1] != len(used) or len(used) <= MOST_TOGETHER:
        return None
    with warnings.catch_warnings():
        # Of features that are constant.
        warnings.simplefilter("ignore")
        differences = np.nan_to_num(f_classif(features, labels[seen])[0], posinf=np.inf)
    # Features are in the order of the table.
    return differences[np.argsort(np.argsort(used))]


def _shuffled(
    X: Any, rows: NDArray[np.intp], others: NDArray[np.intp], columns: NDArray[np.intp]
) -> Any:
    """The rows once for each column, which there has the cells of the other rows."""
    n_rows = len(rows)
    every = np.tile(rows, len(columns))
    table = rows_of(X, every).copy()
    for i, column in enumerate(columns):
        here = slice(i * n_rows, (i + 1) * n_rows)
        if not hasattr(X, "iloc"):
            table[here, column] = X[others, column]
            continue
        source = every.copy()
        source[here] = others
        table.isetitem(column, X.iloc[source, column].array)
    return table
