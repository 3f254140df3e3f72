"""The column that is to be predicted, apart from the others."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from kfree.tables.messages import TableError, TableWarning, count, listed, nearest

# From how many different values on, and from which share of the rows on, a column of whole numbers
# or texts is something other than classes.
MANY_VALUES = 20
MANY_SHARE = 0.5

warn = partial(warnings.warn, category=TableWarning, stacklevel=3)


def split_target(
    frame: Any, target: str, *, say: Callable[[str], Any] = warn
) -> tuple[Any, np.ndarray]:
    """The features and the labels of a table.

    Parameters
    ----------
    frame : pandas.DataFrame
    target : str
        The column of the labels.
    say : callable, default: a `TableWarning`
        Is given a sentence for each thing worth knowing: rows without a label that were left out,
        classes with a single row.

    Returns
    -------
    features : pandas.DataFrame
        The other columns of the rows that have a label. Their index is that of `frame`.
    labels : ndarray of shape (n_rows,)
        Text, whole numbers or booleans.

    Raises
    ------
    TableError
        If there is no such column, or if it does not hold classes.

    Examples
    --------
    >>> import pandas as pd
    >>> from kfree.tables import split_target
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 8.0], "kind": ["a", "a", "b"]})
    >>> features, labels = split_target(frame, "kind", say=print)
    The class 'b' has a single row.
    >>> labels
    array(['a', 'a', 'b'], dtype='<U1')
    """
    if target not in frame.columns:
        raise TableError(_no_such_column(target, frame.columns))
    column = frame[target]
    there = column.notna().to_numpy(dtype=bool)
    if not there.any():
        raise TableError(f"The column {target!r} has no labels: all its cells are empty.")
    labels = _as_labels(column[there], target)
    values, counts = np.unique(labels, return_counts=True)
    if len(values) == 1:
        raise TableError(
            f"The column {target!r} has only one class, {str(values[0])!r}; "
            "at least two are needed."
        )
    if not there.all():
        n_without = int((~there).sum())
        say(
            f"{count(n_without, 'row has', 'rows have')} no label in {target!r} and "
            f"{'was' if n_without == 1 else 'were'} left out."
        )
    single = values[counts == 1]
    if len(single):
        say(
            f"The class {listed(single)} has a single row."
            if len(single) == 1
            else f"The classes {listed(single)} have a single row each."
        )
    return frame.loc[there].drop(columns=target), labels


def _no_such_column(target: str, columns: Any) -> str:
    close = nearest(target, columns)
    advice = f"did you mean {listed(close)}" if close else f"there are {listed(columns, 12)}"
    return f"There is no column {target!r}; {advice}{'?' if close else '.'}"


def _as_labels(column: Any, target: str) -> np.ndarray:
    """Labels without missing values as an array of one plain kind."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    if is_bool_dtype(column.dtype):
        return column.to_numpy(dtype=bool)
    if not is_numeric_dtype(column.dtype):
        labels = np.array([str(label) for label in column], dtype=str)
        _refuse_too_many(labels, target, "almost every row has a value of its own")
        return labels
    numbers = column.to_numpy(dtype=float)
    if not np.isfinite(numbers).all():
        raise TableError(f"The column {target!r} holds infinity; labels must be classes.")
    fractions = numbers[numbers != np.round(numbers)]
    if len(fractions):
        raise TableError(
            f"The column {target!r} holds continuous numbers, such as {fractions[0]:g}; kfree "
            "predicts classes: put the numbers into classes first, or choose another column."
        )
    _refuse_too_many(numbers, target, "they look like a quantity and not like classes")
    return column.to_numpy(dtype=np.int64)


def _refuse_too_many(labels: np.ndarray, target: str, why: str) -> None:
    n_values = len(np.unique(labels))
    if n_values > MANY_VALUES and n_values > MANY_SHARE * len(labels):
        raise TableError(
            f"The column {target!r} has {count(n_values, 'different value')} in "
            f"{count(len(labels), 'row')}: {why}; choose a column of classes as the target."
        )
