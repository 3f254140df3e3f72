"""Rows of a file that are no data: a second line of names or units, a total, and empty rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from kfree.tables.cells import as_texts
from kfree.tables.messages import count, listed
from kfree.tables.numbers import WRITTEN
from kfree.tables.preparation import TablePreparation
from kfree.tables.units import bare

# How many rows and columns are looked at, and which share of cells makes a column one of numbers.
N_ROWS, N_COLUMNS = 200, 200
MOST = 0.9
# So many columns of numbers must begin with something else: in one it may be a slip.
FEWEST = 2
# So many cells below the first one tell that a column is one of numbers, if no model knows it.
FEWEST_BELOW = 3
TOTAL = re.compile(
    r"((grand|sub) ?)?totals?|sums?|summe|gesamt(summe)?|insgesamt|totaal|somme|totale?|suma|soma",
    re.IGNORECASE,
)


def without_odd_rows(frame: Any, say: Callable[[str], Any]) -> Any:
    """The table without such rows, each of which is said; of a file of text."""
    columns = _texts(frame)
    names = _second_names([as_texts(column.iloc[:N_ROWS]) for column in columns], FEWEST_BELOW)
    if names:
        say(f"{_looks_like_names(names)} and was left out.")
        frame = frame.iloc[1:]
    total = _total(columns) if len(frame) > 1 else ""
    if total:
        say(f"{_looks_like_a_total(total)} and was left out.")
        frame = frame.iloc[:-1]
    return frame


class OddRows:
    """Finds such rows in a new table that is read in blocks, by what a model knows of its columns.

    Parameters
    ----------
    preparation : TablePreparation
        That of the model: which columns hold numbers, and which values its categories have.
    """

    def __init__(self, preparation: TablePreparation) -> None:
        numbers = [n for n in preparation.numbers_ if n not in preparation.date_formats_]
        units = {column.name: column.unit for column in preparation.columns_}
        self._units = {name: units[name] for name in numbers[:N_COLUMNS]}
        self._preparation = preparation
        self._before: Any = None  # the block before
        self._n_empty = 0
        self._found: list[str] = []

    def among(self, block: Any, last: bool) -> np.ndarray:
        """Which rows of the next block are no data; `last`: whether no other block follows."""
        odd = np.zeros(len(block), dtype=bool)
        if self._before is None and len(block) > 1:
            known = [(c, self._units[str(c.name)]) for c in _texts(block, self._units)]
            cells = [bare(as_texts(c.iloc[:N_ROWS]), unit, limits=True) for c, unit in known]
            names = _second_names(cells, 1)
            if names:
                odd[0] = True
                self._found.append(f"{_looks_like_names(names)}; it has no prediction.")
        if last and (self._before is not None or len(block) > 1):
            total = _total([column for column in _texts(block) if not self._is_usual(column)])
            if total:
                odd[-1] = True
                self._found.append(f"{_looks_like_a_total(total)}; it has no prediction.")
        empty = np.setdiff1d(self._empty(block), np.flatnonzero(odd))
        odd[empty] = True
        self._n_empty += len(empty)
        self._before = block
        return odd

    @property
    def notes(self) -> list[str]:
        """A sentence for each thing that was found."""
        if not self._n_empty:
            return self._found
        return [
            *self._found,
            f"{count(self._n_empty, 'row is', 'rows are')} empty in all columns that the model "
            f"uses; {'it has' if self._n_empty == 1 else 'they have'} no prediction.",
        ]

    def _empty(self, block: Any) -> np.ndarray:
        """The places of rows that have no cell in the columns that the model uses.

        A line below the table, such as a source, has one cell: its text is no number.
        """
        used = [*self._preparation.numbers_, *self._preparation.categories_]
        used = [name for name in used + self._preparation.texts_ if name in block]
        first = block.columns[0]
        rows = np.arange(len(block) if used else 0)
        for name in used:
            if not len(rows):
                break
            texts = as_texts(block[name].iloc[rows])
            if name == first and name in self._units and len(used) > 1:
                texts = bare(texts, self._units[name], limits=True)
                texts = [t if t is not None and WRITTEN.fullmatch(t) else None for t in texts]
            rows = rows[[text is None for text in texts]]
        return rows

    def _is_usual(self, column: Any) -> bool:
        """Whether the last cell of a column is a value that others have, here or in fit."""
        name, cell = str(column.name), str(column.iloc[-1]).strip()
        preparation = self._preparation
        if cell in (*preparation.values_.get(name, ()), *preparation.rare_values_.get(name, ())):
            return True
        return (
            self._before is not None and (self._before[name].astype(str).str.strip() == cell).any()
        )


def _texts(frame: Any, names: Any = None) -> list[Any]:
    """The first columns of text; `names`: among these."""
    from pandas.api.types import is_string_dtype

    columns = (
        frame.iloc[:, :N_COLUMNS] if names is None else frame[[n for n in names if n in frame]]
    )
    return [
        column
        for _, column in columns.items()
        if is_string_dtype(column.dtype) and hasattr(column, "str")
    ]


def _looks_like_names(names: list[str]) -> str:
    return f"The first row looks like a second line of names or units ({listed(names, 3)})"


def _looks_like_a_total(name: str) -> str:
    return f"The last row looks like a total ({listed([name])})"


def _second_names(columns: list[list[str | None]], fewest_below: int) -> list[str]:
    """The first cells of the columns of numbers, if they are texts in all of them."""
    found = []
    for first, *rest in columns:
        below = [text for text in rest if text is not None]
        n_numbers = sum(WRITTEN.fullmatch(text) is not None for text in below)
        if len(below) < fewest_below or n_numbers < MOST * len(below) or first is None:
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
