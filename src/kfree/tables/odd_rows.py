"""Rows of a file that are no data: a second line of names or units, and a total at the end."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kfree.tables.cells import as_texts
from kfree.tables.messages import listed
from kfree.tables.numbers import WRITTEN

# How many rows and columns are looked at, and which share of cells makes a column one of numbers.
N_ROWS, N_COLUMNS = 200, 200
MOST = 0.9
# So many columns of numbers must begin with something else: in one it may be a slip.
FEWEST = 2
TOTAL = re.compile(
    r"((grand|sub) ?)?totals?|sums?|summe|gesamt(summe)?|insgesamt|totaal|somme|totale?|suma|soma",
    re.IGNORECASE,
)


def without_odd_rows(frame: Any, say: Callable[[str], Any]) -> Any:
    """The table without such rows, each of which is said; of a file of text."""
    from pandas.api.types import is_string_dtype

    columns = [
        column
        for _, column in frame.iloc[:, :N_COLUMNS].items()
        if is_string_dtype(column.dtype) and hasattr(column, "str")
    ]
    names = _second_names([as_texts(column.iloc[:N_ROWS]) for column in columns])
    if names:
        say(
            "The first row looks like a second line of names or units "
            f"({listed(names, 3)}) and was left out."
        )
        frame = frame.iloc[1:]
    total = _total(columns) if len(frame) > 1 else ""
    if total:
        say(f"The last row looks like a total ({listed([total])}) and was left out.")
        frame = frame.iloc[:-1]
    return frame


def _second_names(columns: list[list[str | None]]) -> list[str]:
    """The first cells of the columns of numbers, if they are texts in all of them."""
    found = []
    for first, *rest in columns:
        below = [text for text in rest if text is not None]
        n_numbers = sum(WRITTEN.fullmatch(text) is not None for text in below)
        if len(below) < 3 or n_numbers < MOST * len(below) or first is None:
            continue
        if WRITTEN.fullmatch(first):
            return []
        found.append(first)
    return found if len(found) >= FEWEST else []


def _total(columns: list[Any]) -> str:
    """What a total is called in the last row, if nothing else in that column is called so."""
    for column in columns:
        last = str(column.iloc[-1]).strip().rstrip(":")
        if TOTAL.fullmatch(last) and (column.str.strip().str.rstrip(":") == last).sum() == 1:
            return last
    return ""
