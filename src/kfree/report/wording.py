"""How names, cells and shares are written in a report."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfree.plain_text import shown
from kfree.tables.numbers import MISSING as EMPTY

#: Longer names of classes and rows are cut.
MOST_LETTERS = 40
MISSING = "(missing)"


def short(name: object, most: int = MOST_LETTERS) -> str:
    """A name that fits into a table."""
    return shown(name, most)


def percent(share: float) -> str:
    """A share as a percentage."""
    return f"{100 * share:.1f}%"


def number(value: float) -> str:
    """A number that is not negative, such as a log loss; small ones with two digits that count."""
    if value >= 0.01 or value == 0.0:
        return f"{value:.3f}"
    return f"{value:.2g}" if value >= 1e-4 else "< 0.0001"


def probability(p: float) -> str:
    """A probability; none is ever exactly 0."""
    return f"{p:.3f}" if p >= 5e-4 else "less than 0.001"


def signed(value: float, decimals: int = 3) -> str:
    """A number with its sign; what is rounded to nothing has the sign of nothing."""
    return f"{round(value, decimals) + 0.0:+.{decimals}f}"


def cell(value: Any) -> str:
    """A cell of the user's table as it is shown."""
    if value is None or str(value).strip() in (*EMPTY, "NaT"):
        return MISSING
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    text = str(value).removesuffix(" 00:00:00")
    return short(" ".join(text.split()), 60)
