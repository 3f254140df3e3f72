"""What a column of a table is: numbers, categories, dates, free text, or nothing to learn from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from kfree.plain_text import quoted
from kfree.tables import dates
from kfree.tables.cells import Cells, unreadable
from kfree.tables.numbers import EITHER, Reading, Style, signs_of
from kfree.tables.units import LIMIT, bare

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
# Of these names a column is an identifier although some rows share a value, as visits of one
# person do; a number or an index may be a quantity.
NAMED = re.compile(r"(.*[\s_.-])?(id|uid|uuid|guid)|.*[a-z](ID|Id)")
# 01067 and 007.
CODE = re.compile(r"0\d+")
BY_NAME = "by its name an identifier"


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
    unit: str = ""  # written after them
    reading: Reading | None = None
    example: str = ""  # a number that is not written as a computer writes it
    example_value: float = 0.0
    code: str = ""  # a number that begins with zeros, as codes do
    # Currencies, if there are several; "%" and "" if some numbers only are percentages.
    signs: tuple[str, ...] = ()


def judge(
    cells: Cells,
    read: tuple[np.ndarray, Reading] | None,
    *,
    unit: str = "",
    keep: bool = False,
    category: bool = False,
) -> Column:
    """Find out what a column is.

    Parameters
    ----------
    cells : Cells
    read : pair or None
        Of texts: the numbers that they are, NaN where they are none, and in which style.
    unit : str
        What was taken off these texts before they were read.
    keep : bool
        It is not to be left out as an identifier.
    category : bool
        It is categorical.
    """
    name = cells.name
    if cells.strange:
        return Column(name, "left out", cells.strange)
    if cells.days is not None:
        date_format = dates.DURATION if cells.durations else ""
        return _unless_constant(Column(name, "date", date_format=date_format), cells.days)
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
    if read is not None and np.isinf(read[0]).sum() == len(present):
        return Column(name, "left out", "it has no finite number")
    if read is not None and _are_numbers(*read, texts):
        numbers, reading = read
        found = Column(name, "number", style=reading.style, reading=reading, unit=unit)
        found = replace(found, **_wrong(texts, numbers), **_example(texts, numbers, found))
        code = next((text for text in present if CODE.fullmatch(text)), "")
        found = replace(found, code=code)
        if found.example:
            found = replace(found, signs=_contradicting(texts))
        return _judge_numbers(numbers, found, keep)
    written = dates.find_format(present, MOST)
    if written is not None:
        days = dates.days_of_texts(texts, written)
        found = Column(name, "date", date_format=written, **_wrong(texts, days))
        found = replace(found, either_date=dates.reads_both_ways(present, written))
        return _unless_constant(found, days)
    n_values = len(set(present))
    own = n_values == len(present) and len(present) >= FEWEST_ROWS_IN_ORDER
    if own and _is_one_word(present) and not keep:
        why = "every row has a value of its own: an identifier"
        return Column(name, "left out", why, identifier=True)
    if not keep and is_named_so(name) and _differ(n_values, len(present)):
        return Column(name, "left out", BY_NAME, identifier=True)
    if own or _differ(n_values, len(present)):
        n_missing = len(texts) - len(present)
        return Column(name, "text", n_missing=n_missing, n_values=n_values)
    return _judge_category(present, texts, name)


def settle_dates(columns: list[Column]) -> list[Column]:
    """Dates that can be read both ways, as the other columns are, if these can be read in one only.

    03/04/2024 is a day of March beside a column that has 12/31/2024.
    """
    settled = [c.date_format for c in columns if c.kind == "date" and not c.either_date]
    by_month = any(dates.is_month_first(f) for f in settled)
    if not by_month or any(dates.month_first(f) != f for f in settled):
        return columns
    return [
        replace(c, date_format=dates.month_first(c.date_format)) if c.either_date else c
        for c in columns
    ]


def is_named_so(name: str) -> bool:
    """Whether a column has the name of an identifier."""
    return bool(NAMED.fullmatch(name) or NAMED.fullmatch(name.lower()))


def _differ(n_values: int, n_rows: int) -> bool:
    """Whether most rows have a value of their own."""
    return n_values > MANY_VALUES and n_values > MANY_SHARE * n_rows


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
    found = _unless_constant(found, numbers)
    if keep or not is_named_so(found.name) or not _differ(found.n_values, len(numbers)):
        return found
    whole = numbers[np.isfinite(numbers)]
    if (whole != np.round(whole)).any():
        return found
    return Column(found.name, "left out", BY_NAME, identifier=True)


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
    wrong = unreadable(texts, values)
    return {"n_unreadable": len(wrong), "unreadable": wrong[0] if wrong else ""}


def _are_numbers(numbers: np.ndarray, reading: Reading, texts: list[str | None]) -> bool:
    """Whether nearly all cells are numbers; half of them if the others have another mark.

    Half of them also if all others are one word, such as "unknown", beside many different numbers.
    """
    there = numbers[np.isfinite(numbers)]
    n_present = sum(text is not None for text in texts)
    if len(there) >= (MOST_MIXED if reading.mixed else MOST) * n_present:
        return True
    return (
        len(there) >= MOST_MIXED * n_present
        and len(set(unreadable(texts, numbers))) == 1
        and len(np.unique(there)) > MANY_VALUES
    )


def _example(texts: list[str | None], numbers: np.ndarray, found: Column) -> dict[str, Any]:
    """A cell whose reading is worth a word, and what it was read as; nothing if there is none."""
    is_open = found.reading is not None and found.reading.open
    without = bare(texts, found.unit, limits=True) if is_open else texts
    odd = [
        (text, float(number))
        for text, plain, number in zip(texts, without, numbers, strict=True)
        if text is not None and plain is not None and np.isfinite(number) and number != 0.0
        if (EITHER.fullmatch(plain) if is_open else not _is_plain(text, number))
    ]
    if not odd:
        return {}
    # That a limit was taken as a number is what people would least expect.
    text, number = next((pair for pair in odd if LIMIT.match(pair[0])), odd[0])
    return {"example": text, "example_value": number}


def _contradicting(texts: list[str | None]) -> tuple[str, ...]:
    """The signs of numbers that do not compare: dollars and euros, percentages and plain ones."""
    signs = [sign for sign, _ in signs_of(texts).most_common()]
    if "%" in signs and len(signs) > 1:
        return tuple(signs)
    currencies = tuple(sign for sign in signs if sign)
    return currencies if len(currencies) > 1 else ()


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
