"""The cells of a table in the form that columns are judged and used in."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kfree.tables import dates
from kfree.tables.messages import TableError, listed
from kfree.tables.numbers import MISSING

# From so many columns on they are taken out of a table together.
WIDE = 500
# How many lines above the names of the columns are looked for.
N_TITLES = 10


@dataclass(frozen=True)
class Cells:
    """A column in the form that it is judged and used in: one of these is there.

    Attributes
    ----------
    texts : list of (str or None)
        Without surrounding blanks; None where the cell is empty.
    numbers : ndarray of shape (n_rows,)
    days : ndarray of shape (n_rows,)
    durations : bool
        The days are how long something took, not when it was.
    strange : str
        Why the cells can be none of these.
    """

    name: str
    texts: list[str | None] | None = None
    numbers: np.ndarray | None = None
    days: np.ndarray | None = None
    durations: bool = False
    strange: str = ""

    @property
    def values(self) -> Any:
        """The cells, whichever form they have."""
        for values in (self.numbers, self.days, self.texts):
            if values is not None:
                return values
        return ()


def as_frame(X: Any) -> Any:
    """The table as a pandas.DataFrame whose columns have names of their own."""
    frame = X.to_pandas() if hasattr(X, "to_pandas") else X
    if not hasattr(frame, "columns") or not hasattr(frame, "iloc"):
        raise TableError(
            "A table whose columns have names is needed, such as a pandas.DataFrame; "
            f"got {type(X).__name__}."
        )
    names = [str(name) for name in frame.columns]
    twice = sorted(name for name, n in Counter(names).items() if n > 1)
    if twice:
        raise TableError(f"The table has more than one column named {listed(twice)}.")
    return frame if names == list(frame.columns) else frame.set_axis(names, axis=1)


def cells_of_frame(
    frame: Any, names: Sequence[str], codes: Collection[str] = ()
) -> dict[str, Cells]:
    """Columns of a pandas.DataFrame by name; `codes`: those that hold codes for categories."""
    if len(names) < WIDE or any(dtype.kind != "O" for dtype in frame.dtypes):
        return {name: cells_of_column(frame[name], category=name in codes) for name in names}
    # Thousands of columns are taken out at once: one by one would take longer than all the rest.
    table = frame[list(names)].to_numpy()
    found = {}
    for name, values in zip(names, table.T, strict=True):
        if all(isinstance(value, str) for value in values):
            found[name] = Cells(name, texts=[_one_text(value) for value in values])
        else:
            found[name] = cells_of_column(frame[name], category=name in codes)
    return found


def cells_of_column(column: Any, *, category: bool = False) -> Cells:
    """A pandas.Series as texts, numbers or days; as texts if it holds codes for categories."""
    from pandas.api import types

    name, dtype = str(column.name), column.dtype
    if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        durations = types.is_timedelta64_dtype(dtype)
        return Cells(name, days=dates.days_of_values(column), durations=durations)
    if category or types.is_bool_dtype(dtype):
        return Cells(name, texts=as_texts(column))
    if types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype):
        return Cells(name, numbers=column.to_numpy(dtype=float, na_value=np.nan))
    if not types.is_string_dtype(dtype) or types.is_object_dtype(dtype):
        there = column.dropna()
        first = there.iloc[0] if len(there) else ""
        if hasattr(first, "toordinal"):  # a date as Parquet keeps it
            return Cells(name, days=dates.days_of_values(column))
        if hasattr(first, "hour"):  # a time of day
            return Cells(name, numbers=np.array([dates.hours(cell) for cell in column]))
        if not isinstance(first, str | bool | int | float | np.generic) and not hasattr(
            first, "as_tuple"
        ):
            kind = "list" if isinstance(first, np.ndarray) else type(first).__name__
            return Cells(name, strange=f"its cells, of the type {kind}, are no numbers or texts")
    return Cells(name, texts=as_texts(column))


def as_texts(column: Any) -> list[str | None]:
    """The cells of a pandas.Series as texts without surrounding blanks, None where they are empty.

    5 and 5.0 are the same text, as are true, TRUE and True: which of them a reader sees depends on
    the other cells of the column. So are the two ways to encode a letter with an accent, which look
    alike.
    """
    values = column.to_numpy(dtype=object, na_value=None)
    return [_one_text(value) for value in values]


def composed(text: str) -> str:
    """The text with ü as one letter, as most programs write it, and not as u with dots after it."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _one_text(value: Any) -> str | None:
    if isinstance(value, str):
        text = composed(value.strip())
        if text in MISSING:
            return None
        return text.capitalize() if text.lower() in ("true", "false") else text
    if value is None:
        return None
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def stands_below(name: str, frame: Any) -> bool:
    """Whether a cell of the first rows is a name: then that of a column may stand below a title."""
    first = frame.iloc[:N_TITLES].to_numpy(dtype=object).ravel()
    return any(isinstance(cell, str) and cell.strip() == name for cell in first)


def unreadable(texts: Sequence[str | None], values: np.ndarray) -> list[str]:
    """The texts that are there, but were not read as a finite number or date."""
    there = np.isfinite(values)
    return [t for t, fine in zip(texts, there, strict=True) if t is not None and not fine]


def plain_numbers(frame: Any, names: Sequence[str]) -> np.ndarray | None:
    """Columns that are text, as numbers (n_rows, n_names), if a computer wrote them.

    NaN for empty cells. None if a cell is anything else: then each column has to be looked at by
    itself, which for thousands of them takes longer than all the rest of a prediction.
    """
    cells = frame[list(names)].to_numpy(dtype=object)
    if any(type(cell) is not str for cell in cells.flat):
        return None
    texts = (cell.strip() for cell in cells.flat)
    try:
        numbers = [np.nan if text in MISSING else float(text) for text in texts]
    except ValueError:
        return None
    table = np.array(numbers, dtype=float).reshape(cells.shape)
    return None if np.isinf(table).any() else table
