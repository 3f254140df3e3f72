"""What a column of a table is: numbers, categories, dates, or nothing to learn from."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

Kind = Literal["number", "category", "date", "left out"]

# A column of text is taken as numbers or dates if so many of its cells can be read as such.
MOST = 0.95
# A column of more different texts than this, and than half of its rows, is free text.
MANY_VALUES = 20
MANY_SHARE = 0.5
# Whole numbers that are all different and lie this densely count the rows. With few rows chance may
# do that too, unless they are in order.
DENSE = 2.0
FEWEST_ROWS = 20
FEWEST_ROWS_IN_ORDER = 8
IDENTIFIER = re.compile(
    r"(.*[\s_.-])?(id|uid|uuid|guid|key|index|idx|nr|no|number|nummer|row names)\.?"
    r"|id([\s_.-].*|\d*)|.*[a-z](ID|Id|Nr|No)|column 1|Unnamed: 0",
)
# How dates are written, with a pattern that keeps numbers from being read as dates.
DATES = {
    "ISO8601": re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?"),
    "%d.%m.%Y": re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}"),
    "%d.%m.%Y %H:%M": re.compile(r"\d{1,2}\.\d{1,2}\.\d{4} \d{1,2}:\d{2}"),
    "%d.%m.%y": re.compile(r"\d{1,2}\.\d{1,2}\.\d{2}"),
    "%Y/%m/%d": re.compile(r"\d{4}/\d{1,2}/\d{1,2}"),
    "%d/%m/%Y": re.compile(r"\d{1,2}/\d{1,2}/\d{4}"),
    "%m/%d/%Y": re.compile(r"\d{1,2}/\d{1,2}/\d{4}"),
    "%d-%m-%Y": re.compile(r"\d{1,2}-\d{1,2}-\d{4}"),
}


@dataclass(frozen=True)
class Column:
    """What was found out about a column."""

    name: str
    kind: Kind
    why: str = ""  # it is left out, for people
    identifier: bool = False  # it is left out as one
    date_format: str = ""  # of dates that are text
    n_missing: int = 0
    n_values: int = 0  # different ones
    unreadable: str = ""  # an example of a cell that is neither a number nor missing


def judge(column: Any, *, keep: bool = False, category: bool = False) -> Column:
    """Find out what a column (a pandas.Series) is.

    `keep`: it is not to be left out as an identifier or free text. `category`: it is categorical.
    """
    from pandas.api import types

    name, dtype = str(column.name), column.dtype
    n_missing = int(column.isna().sum())
    if n_missing == len(column):
        return Column(name, "left out", "it is empty")
    if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        return _unless_constant(column, Column(name, "date"), as_days(column, ""))
    if category or types.is_bool_dtype(dtype):
        return _unless_constant(column, Column(name, "category"), as_text(column))
    if types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype):
        numbers = as_numbers(column)
        if not keep and _counts_rows(name, numbers):
            return Column(name, "left out", "it numbers the rows: an identifier", identifier=True)
        return _unless_constant(column, Column(name, "number"), numbers)
    return _judge_text(column, keep)


def _judge_text(column: Any, keep: bool) -> Column:
    name = str(column.name)
    first = column.dropna().iloc[0]
    if hasattr(first, "toordinal"):  # a date as Parquet keeps it
        return _unless_constant(column, Column(name, "date"), as_days(column, ""))
    if not isinstance(first, str | bool | int | float | np.generic) and not hasattr(
        first, "as_tuple"
    ):
        return Column(name, "left out", f"its cells are of the type {type(first).__name__}")
    text = as_text(column)
    if isinstance(first, bool | np.bool_):  # with missing cells, else the column had its own dtype
        return _unless_constant(column, Column(name, "category"), text)
    present = text[text != None]  # noqa: E711 - elementwise
    numbers = as_numbers(column)
    readable = np.isfinite(numbers)
    if readable.sum() >= MOST * len(present):
        unread = [value for value, fine in zip(text, readable, strict=True) if value and not fine]
        found = Column(name, "number", unreadable=unread[0] if unread else "")
        return _unless_constant(column, found, numbers)
    for date_format, pattern in DATES.items():
        if sum(pattern.fullmatch(value) is not None for value in present) >= MOST * len(present):
            days = as_days(column, date_format)
            if np.isfinite(days).sum() >= MOST * len(present):
                found = Column(name, "date", date_format=date_format)
                return _unless_constant(column, found, days)
    n_values = len(set(present))
    if not keep:
        if n_values == len(present) and len(present) >= FEWEST_ROWS_IN_ORDER:
            why = "every row has a value of its own: an identifier"
            return Column(name, "left out", why, identifier=True)
        if n_values > MANY_VALUES and n_values > MANY_SHARE * len(present):
            return Column(name, "left out", "nearly every row has a value of its own: free text")
    return _unless_constant(column, Column(name, "category"), text)


def as_numbers(column: Any) -> np.ndarray:
    """The cells as float64; what is not a finite number is NaN."""
    import pandas as pd

    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def as_days(column: Any, date_format: str) -> np.ndarray:
    """Dates as days since 1970 (durations as days); what is not a date is NaN."""
    import pandas as pd

    if pd.api.types.is_timedelta64_dtype(column.dtype):
        return (column / pd.Timedelta(days=1)).to_numpy(dtype=float)
    text = column.astype(object).where(column.notna(), None)
    dates = pd.to_datetime(text, format=date_format or None, errors="coerce", utc=True)
    epoch = pd.Timestamp(0, tz="UTC")
    return ((dates - epoch) / pd.Timedelta(days=1)).to_numpy(dtype=float)


def as_text(column: Any) -> np.ndarray:
    """The cells as str objects, missing ones as None.

    5 and 5.0 are the same text, as are true, TRUE and True: which of them a reader sees depends on
    the other cells of the column.
    """
    values = column.astype(object).to_numpy()
    text = np.empty(len(values), dtype=object)
    for i, (value, missing) in enumerate(zip(values, column.isna(), strict=True)):
        text[i] = None if missing else _one_text(value)
    return text


def _one_text(value: Any) -> str:
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    text = str(value).strip()
    return text.capitalize() if text.lower() in ("true", "false") else text


def _unless_constant(column: Any, found: Column, values: np.ndarray) -> Column:
    """What was found, with its counts; but a column with one value tells nothing."""
    text = values.dtype == object
    present = values[values != None] if text else values[np.isfinite(values)]  # noqa: E711
    n_missing = len(values) - len(present)
    n_values = len(set(present.tolist()))
    if n_values == 0:
        return Column(found.name, "left out", "it has no finite number")
    # A missing category is a category of its own; a missing number becomes the median.
    if n_values == 1 and not (text and n_missing):
        shown = present[0] if text else column.dropna().iloc[0]
        return Column(found.name, "left out", f"it is always {str(shown)!r}")
    return replace(found, n_missing=n_missing, n_values=n_values)


def _counts_rows(name: str, numbers: np.ndarray) -> bool:
    """Whether whole numbers are all different, and are named or lie like the numbers of rows."""
    n_rows = len(numbers)
    if np.isnan(numbers).any() or (numbers != np.round(numbers)).any():
        return False
    if len(np.unique(numbers)) < n_rows or n_rows < 2:
        return False
    if IDENTIFIER.fullmatch(name) or IDENTIFIER.fullmatch(name.lower()):
        return True
    in_order = bool((np.diff(numbers) > 0).all())
    enough = n_rows >= (FEWEST_ROWS_IN_ORDER if in_order else FEWEST_ROWS)
    return enough and bool(np.ptp(numbers) + 1 <= DENSE * n_rows)
