"""The column that is to be predicted, apart from the others."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from kfree.plain_text import quoted
from kfree.tables.cells import Cells, as_frame, cells_of_column, composed, stands_below
from kfree.tables.kinds import CODE
from kfree.tables.messages import TableError, TableWarning, cells_of, count, listed, nearest
from kfree.tables.numbers import POINT, WRITTEN, read_columns, signs_of

# From how many different values on, and from which share of the rows on, a column of whole numbers
# or texts is something other than classes.
MANY_VALUES = 20
MANY_SHARE = 0.5
# Whole numbers beyond this are not exact.
LARGEST_LABEL = 2.0**53
# Arrays of text give every row the room of the longest.
LONGEST_LABEL = 1_000

warn = partial(warnings.warn, category=TableWarning, stacklevel=3)


def split_target(
    frame: Any, target: str, *, say: Callable[[str], Any] = warn
) -> tuple[Any, np.ndarray]:
    """The features and the labels of a table.

    Parameters
    ----------
    frame : pandas.DataFrame, or a table with `to_pandas`
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
    frame, target = as_frame(frame), str(target)
    if target not in frame.columns:
        raise TableError(_no_such_column(target, frame))
    cells = cells_of_column(frame[target])
    if cells.strange:
        raise TableError(f"The column {quoted(target)} cannot be predicted: {cells.strange}.")
    labels, there = _labels_of(cells, frame, target, say)
    if not there.any():
        raise TableError(f"The column {quoted(target)} has no labels: all its cells are empty.")
    values, counts = np.unique(labels, return_counts=True)
    if len(values) > MANY_VALUES and labels.dtype.kind == "i":
        say(
            f"The {count(len(values), 'different number')} of {quoted(target)} were taken as "
            "classes without an order; if they are a quantity, put them into a few classes, or use "
            "a regression."
        )
    words = _words_for_missing(frame.loc[~there, target])
    if len(values) == 1:
        raise TableError(
            f"The column {quoted(target)} has only one class, {quoted(values[0])}; "
            f"at least two are needed{words}."
        )
    if not there.all():
        n_without = int((~there).sum())
        say(
            f"{count(n_without, 'row has', 'rows have')} no label in {quoted(target)} and "
            f"{'was' if n_without == 1 else 'were'} left out{words}."
        )
    single = values[counts == 1]
    if len(single):
        say(
            f"The class {listed(single)} has a single row."
            if len(single) == 1
            else f"The classes {listed(single)} have a single row each."
        )
    return frame.loc[there].drop(columns=target), labels


def _words_for_missing(column: Any) -> str:
    """What stands in cells that count as missing: None may be a class to the owner of the table."""
    counts = Counter(cell.strip() for cell in column if isinstance(cell, str) and cell.strip())
    if not counts:
        return ""
    return f"; {cells_of(dict(counts.most_common()))} counts as missing: write a class another way"


def _no_such_column(target: str, frame: Any) -> str:
    columns = frame.columns
    if stands_below(target, frame):
        return (
            f"There is no column {quoted(target)} in the first line, but a cell below it is called "
            "so: if the names of the columns stand there, remove the lines above."
        )
    if len(columns) == 1:
        return (
            f"There is no column {quoted(target)}: the table has a single column, "
            f"{quoted(columns[0])}; commas, semicolons, tabs or bars separate columns."
        )
    if sum(WRITTEN.fullmatch(name) is not None for name in columns) > 0.5 * len(columns):
        return (
            f"There is no column {quoted(target)}: the first line, {listed(columns)}, looks like "
            "data; put a line with the names of the columns above it."
        )
    close = nearest(target, columns)
    advice = f"did you mean {listed(close)}" if close else f"there are {listed(columns, 12)}"
    return f"There is no column {quoted(target)}; {advice}{'?' if close else '.'}"


def _labels_of(
    cells: Cells, frame: Any, target: str, say: Callable[[str], Any]
) -> tuple[np.ndarray, np.ndarray]:
    """The labels of the rows that have one, of one plain kind, and which rows these are."""
    from pandas.api.types import is_bool_dtype

    column = frame[target]
    if is_bool_dtype(column.dtype):
        there = column.notna().to_numpy(dtype=bool)
        return column[there].to_numpy(dtype=bool), there
    if cells.numbers is not None:
        there = ~np.isnan(cells.numbers)
        return _whole(cells.numbers[there], target), there
    if cells.texts is None:  # dates
        there = column.notna().to_numpy(dtype=bool)
        return np.array([str(label) for label in column[there]], dtype=str), there
    texts = cells.texts
    there = np.array([text is not None for text in texts])
    _say_alike(column, there, target, say)
    hints = {target: frame.attrs.get("decimal", POINT)}
    numbers = read_columns({target: texts}, None, hints)[target][0][there]
    # Classes called 10% and 20% are names, as $5 and 007 are.
    are_names = not set(signs_of(texts)) <= {""} or any(
        CODE.fullmatch(text or "") for text in texts
    )
    if there.any() and not np.isnan(numbers).any() and not are_names:
        return _whole(numbers, target), there
    longest = max((text for text in texts if text is not None), key=len, default="")
    if len(longest) > LONGEST_LABEL:
        raise TableError(
            f"The column {quoted(target)} holds a text of {len(longest):,} characters, "
            f"{quoted(longest)}, which is no name of a class."
        )
    labels = np.array([text for text in texts if text is not None], dtype=str)
    _refuse_too_many(labels, target, "almost every row has a value of its own")
    return labels, there


def _say_alike(column: Any, there: np.ndarray, target: str, say: Callable[[str], Any]) -> None:
    """Say which labels differ by surrounding spaces only, or by capital letters only.

    The first are one class, as are those whose accents are encoded in two ways. The others are not:
    nobody but the owner knows whether they should be.
    """
    labels = {label for label in column.to_numpy(dtype=object)[there] if isinstance(label, str)}
    stripped = {label.strip() for label in labels}
    alike = {composed(label) for label in stripped}
    for spelled, by, verdict in (
        (_spellings(labels, str.strip), "surrounding spaces", "were taken as one class"),
        (_spellings(stripped, composed), "how accents are encoded", "were taken as one class"),
        (_spellings(alike, str.casefold), "capital letters", "are classes of their own"),
    ):
        if spelled:
            more = f", and so on for {len(spelled) - 1:,} more" if len(spelled) > 1 else ""
            say(
                f"Labels of {quoted(target)} that differ by {by} only {verdict}: "
                f"{listed(spelled[0])}{more}."
            )


def _spellings(labels: set[str], plain: Callable[[str], str]) -> list[list[str]]:
    """Groups of labels that become the same."""
    groups: dict[str, list[str]] = {}
    for label in sorted(labels):
        groups.setdefault(plain(label), []).append(label)
    return [group for group in groups.values() if len(group) > 1]


def _whole(numbers: np.ndarray, target: str) -> np.ndarray:
    """Labels that are numbers, which must be whole."""
    if not np.isfinite(numbers).all():
        raise TableError(f"The column {quoted(target)} holds infinity; labels must be classes.")
    fractions = numbers[numbers != np.round(numbers)]
    if len(fractions):
        raise TableError(
            f"The column {quoted(target)} holds continuous numbers, such as {fractions[0]:g}; "
            "kfree predicts classes: put the numbers into classes first, or choose another column."
        )
    if (np.abs(numbers) > LARGEST_LABEL).any():
        raise TableError(
            f"The column {quoted(target)} holds numbers as large as {np.abs(numbers).max():g}, "
            "which are no classes."
        )
    _refuse_too_many(numbers, target, "they look like a quantity and not like classes")
    return numbers.astype(np.int64)


def _refuse_too_many(labels: np.ndarray, target: str, why: str) -> None:
    n_values = len(np.unique(labels))
    if n_values > MANY_VALUES and n_values > MANY_SHARE * len(labels):
        raise TableError(
            f"The column {quoted(target)} has {count(n_values, 'different value')} in "
            f"{count(len(labels), 'row')}: {why}; choose a column of classes as the target."
        )
