"""How names and shares are written in a report."""

from __future__ import annotations

#: Longer names of classes and rows are cut.
MOST_LETTERS = 40


def short(name: object) -> str:
    """A name that fits into a table."""
    text = str(name)
    return text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 1] + "…"


def percent(share: float) -> str:
    """A share as a percentage."""
    return f"{100 * share:.1f} %"
