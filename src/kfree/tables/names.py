"""Columns that are named, or needed, and are not there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kfree.plain_text import quoted
from kfree.tables.cells import stands_below
from kfree.tables.messages import TableError, listed, nearest


def refuse_unknown(option: str, names: Sequence[str], columns: Any) -> None:
    """Raise TableError if an option names a column that the table does not have."""
    known = set(columns)
    for name in names:
        if name not in known:
            raise TableError(
                f"{option} names the column {quoted(name)}, which the table does not have; "
                f"it has {listed(nearest(name, columns) or columns)}."
            )


def refuse_lacking(needed: Sequence[str], frame: Any) -> None:
    """Raise TableError if a table lacks columns that a model was fitted with."""
    known = set(frame.columns)
    lacking = [name for name in needed if name not in known]
    if not lacking:
        return
    first = quoted(lacking[0])
    close = nearest(lacking[0], known - set(needed), most=1)
    hint = f" (is {first} perhaps {quoted(close[0])}?)" if close else ""
    if stands_below(lacking[0], frame):
        hint = f" ({first} stands below the first line: remove what is above it)"
    raise TableError(
        f"The table lacks {'a column' if len(lacking) == 1 else 'columns'} that the model "
        f"was fitted with: {listed(lacking)}{hint}."
    )
