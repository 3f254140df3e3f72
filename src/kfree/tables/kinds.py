"""What a column of a table is: numbers, categories, dates, free text, or nothing to learn from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from kfree.plain_text import quoted
from kfree.tables import dates
from kfree.tables.messages import TableError, listed
from kfree.tables.numbers import EITHER, MISSING, Reading, Style

Kind = Literal["number", "date", "category", "text", "left out"]

# A column of text is taken as numbers or dates if so many of its cells can be read as such.
MOST = 0.95
# And so many if the cells have decimal points as well as decimal commas.
MOST_MIXED = 0.5
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
# From so many columns on they are taken out of a table together.
WIDE = 500
# Larger numbers have no square that a computer can hold with their differences.
LARGEST = 1e150


@dataclass(frozen=True)
class Column:
    """What was found out about a column."""

    name: str
    kind: Kind
    why: str = ""  # it is left out, for people
    identifier: bool = False  # it is left out as one
    date_format: str = ""  # of dates that are text
    either_date: bool = False  # its dates could be read month first too
    n_missing: int = 0
    n_values: int = 0  # different ones
    n_unreadable: int = 0  # cells that are neither a number (or date) nor missing
    unreadable: str = ""  # an example
    style: Style | None = None  # of numbers that are text
    reading: Reading | None = None
    example: str = ""  # a number that is not written as a computer writes it
    example_value: float = 0.0


@dataclass(frozen=True)
class Cells:
    """A column in the form that it is judged and used in: one of these is there.

    Attributes
    ----------
    texts : list of (str or None)
        Without surrounding blanks; None where the cell is empty.
    numbers : ndarray of shape (n_rows,)
    days : ndarray of shape (n_rows,)
    strange : str
        Why the cells can be none of these.
    """

    name: str
    texts: list[str | None] | None = None
    numbers: np.ndarray | None = None
    days: np.ndarray | None = None
    strange: str = ""


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
        return Cells(name, days=dates.days_of_values(column))
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
            kind = type(first).__name__
            return Cells(name, strange=f"its cells, of the type {kind}, are no numbers or texts")
    return Cells(name, texts=as_texts(column))


def as_texts(column: Any) -> list[str | None]:
    """The cells of a pandas.Series as texts without surrounding blanks, None where they are empty.

    5 and 5.0 are the same text, as are true, TRUE and True: which of them a reader sees depends on
    the other cells of the column.
    """
    values = column.to_numpy(dtype=object, na_value=None)
    return [_one_text(value) for value in values]


def _one_text(value: Any) -> str | None:
    if isinstance(value, str):
        text = value.strip()
        if text in MISSING:
            return None
        return text.capitalize() if text.lower() in ("true", "false") else text
    if value is None:
        return None
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def judge(
    cells: Cells,
    read: tuple[np.ndarray, Reading] | None,
    *,
    keep: bool = False,
    category: bool = False,
) -> Column:
    """Find out what a column is.

    Parameters
    ----------
    cells : Cells
    read : pair or None
        Of texts: the numbers that they are, NaN where they are none, and in which style.
    keep : bool
        It is not to be left out as an identifier.
    category : bool
        It is categorical.
    """
    name = cells.name
    if cells.strange:
        return Column(name, "left out", cells.strange)
    if cells.days is not None:
        return _unless_constant(Column(name, "date"), cells.days)
    if cells.numbers is not None:
        if np.isnan(cells.numbers).all():
            return Column(name, "left out", "it is empty")
        return _judge_numbers(cells.numbers, Column(name, "number"), keep)
    texts = cells.texts or []
    present = [text for text in texts if text is not None]
    if not present:
        return Column(name, "left out", "it is empty")
    if category:
        return _judge_category(present, texts, name)
    if read is not None and _are_numbers(*read, len(present)):
        numbers, reading = read
        found = Column(name, "number", style=reading.style, reading=reading)
        found = replace(found, **_wrong(texts, numbers), **_example(texts, numbers, reading))
        return _judge_numbers(numbers, found, keep)
    dated = dates.find_format(present, MOST)
    if dated is not None:
        date_format, days = dated
        days = dates.days_of_texts(texts, date_format)
        found = Column(name, "date", date_format=date_format, **_wrong(texts, days))
        found = replace(found, either_date=dates.reads_both_ways(present, date_format))
        return _unless_constant(found, days)
    n_values = len(set(present))
    own = n_values == len(present) and len(present) >= FEWEST_ROWS_IN_ORDER
    if own and _is_one_word(present) and not keep:
        why = "every row has a value of its own: an identifier"
        return Column(name, "left out", why, identifier=True)
    if own or (n_values > MANY_VALUES and n_values > MANY_SHARE * len(present)):
        n_missing = len(texts) - len(present)
        return Column(name, "text", n_missing=n_missing, n_values=n_values)
    return _judge_category(present, texts, name)


def refuse_too_large(names: Sequence[str], table: np.ndarray) -> None:
    """Raise if a number of a column of a table (n_rows, n_columns) is too large to be squared."""
    with np.errstate(invalid="ignore"):
        large = np.isfinite(table) & (np.abs(table) > LARGEST)
    if large.any():
        row, column = np.argwhere(large)[0]
        raise TableError(
            f"The column {quoted(names[column])} holds {table[row, column]:g}, which is too large "
            f"to measure distances with; numbers up to {LARGEST:g} can be used."
        )


def finite(numbers: np.ndarray) -> np.ndarray:
    """NaN for infinity."""
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _is_one_word(texts: Sequence[str]) -> bool:
    """Whether most texts have no blank inside, as codes have none and sentences have."""
    return sum(" " not in text for text in texts) > MANY_SHARE * len(texts)


def _judge_category(present: list[str], texts: list[str | None], name: str) -> Column:
    n_missing, n_values = len(texts) - len(present), len(set(present))
    # A missing category is a category of its own.
    if n_values == 1 and not n_missing:
        return Column(name, "left out", f"it is always {quoted(present[0])}")
    return Column(name, "category", n_missing=n_missing, n_values=n_values)


def _judge_numbers(numbers: np.ndarray, found: Column, keep: bool) -> Column:
    if not keep and _counts_rows(found.name, numbers):
        why = "it numbers the rows: an identifier"
        return Column(found.name, "left out", why, identifier=True)
    return _unless_constant(found, numbers)


def _unless_constant(found: Column, values: np.ndarray) -> Column:
    """What was found, with its counts; but a column with one value tells nothing."""
    present = values[np.isfinite(values)]
    n_values = len(np.unique(present))
    if n_values == 0:
        return Column(found.name, "left out", "it has no finite number")
    if n_values == 1:
        what = f"{present[0]:g}" if found.kind == "number" else "the same date"
        return Column(found.name, "left out", f"it is always {what}")
    return replace(found, n_missing=len(values) - len(present), n_values=n_values)


def _wrong(texts: list[str | None], values: np.ndarray) -> dict[str, Any]:
    wrong = [
        text
        for text, fine in zip(texts, np.isfinite(values), strict=True)
        if text is not None and not fine
    ]
    return {"n_unreadable": len(wrong), "unreadable": wrong[0] if wrong else ""}


def _are_numbers(numbers: np.ndarray, reading: Reading, n_present: int) -> bool:
    """Whether nearly all cells are numbers; half of them if the others have another mark."""
    return bool(np.isfinite(numbers).sum() >= (MOST_MIXED if reading.mixed else MOST) * n_present)


def _example(texts: list[str | None], numbers: np.ndarray, reading: Reading) -> dict[str, Any]:
    """A cell whose reading is worth a word, and what it was read as; nothing if there is none."""
    for text, number in zip(texts, numbers, strict=True):
        if text is None or not np.isfinite(number) or number == 0.0:
            continue
        if EITHER.fullmatch(text) if reading.open else not _is_plain(text, number):
            return {"example": text, "example_value": float(number)}
    return {}


def _is_plain(text: str, number: float) -> bool:
    """Whether a computer would read the same."""
    try:
        return float(text) == number
    except ValueError:
        return False


def _counts_rows(name: str, numbers: np.ndarray) -> bool:
    """Whether whole numbers are all different, and are named or lie like the numbers of rows."""
    n_rows = len(numbers)
    if not np.isfinite(numbers).all() or (numbers != np.round(numbers)).any():
        return False
    if len(np.unique(numbers)) < n_rows or n_rows < 2:
        return False
    if IDENTIFIER.fullmatch(name) or IDENTIFIER.fullmatch(name.lower()):
        return True
    in_order = bool((np.diff(numbers) > 0).all())
    enough = n_rows >= (FEWEST_ROWS_IN_ORDER if in_order else FEWEST_ROWS)
    return enough and bool(np.ptp(numbers) + 1 <= DENSE * n_rows)
