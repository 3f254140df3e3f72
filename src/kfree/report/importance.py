"""Which columns matter: how much worse the probabilities become when a column is shuffled."""

from __future__ import annotations

import time
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
    """

    columns: NDArray[np.intp]
    rise: NDArray[np.float64]
    error: NDArray[np.float64]
    n_rows: int
    n_not_measured: int


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
    used = [j for j in range(X.shape[1]) if j not in unused]
    known = fold.rows[np.isin(labels[fold.rows], fold.classifier.classes_)]
    if not used or len(known) < 2:
        return None
    most = int(np.clip(MOST_PREDICTIONS // len(used), LEAST_ROWS, MOST_ROWS))
    rows = generator.permutation(known)[:most]
    own = np.searchsorted(fold.classifier.classes_, labels[rows])

    def losses(table: Any) -> NDArray[np.float64]:
        return log_losses(fold.classifier.predict_proba(prepared(fold.preparation, table)), own)

    start = time.perf_counter()
    before = losses(rows_of(X, rows))
    # No row keeps its own cell: all move on by one place in a random order, and by two.
    order = generator.permutation(len(rows))
    moved = [np.empty(len(rows), dtype=np.intp) for _ in range(min(N_REPEATS, len(rows) - 1))]
    for shift, places in enumerate(moved, start=1):
        places[order] = np.roll(order, shift)
    measured, rises = [], []
    for j in used:
        if time.perf_counter() - start > most_seconds:
            break
        after = [losses(_with_cells(X, rows, j, rows[places])) for places in moved]
        rises.append(np.mean(after, axis=0) - before)
        measured.append(j)
    rise = np.array([part.mean() for part in rises])
    error = np.array([part.std(ddof=1) / np.sqrt(len(rows)) for part in rises])
    first = np.argsort(-rise, kind="stable")
    return Importance(
        columns=np.array(measured, dtype=np.intp)[first],
        rise=rise[first],
        error=error[first],
        n_rows=len(rows),
        n_not_measured=len(used) - len(measured),
    )


def _with_cells(X: Any, rows: NDArray[np.intp], column: int, others: NDArray[np.intp]) -> Any:
    """Some rows, but one column has the cells of other rows."""
    if not hasattr(X, "iloc"):
        table = X[rows]
        table[:, column] = X[others, column]
        return table
    table = X.iloc[rows].copy()
    table.isetitem(column, X.iloc[others, column].array)
    return table
