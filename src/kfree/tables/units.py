"""What is written beside numbers: units (70 kg, 21.5°C), and limits of what was measured (<0.1).

Both are told by a column and not by a cell: a unit is one that nearly all cells have, and where
most cells are limits (<5, >=5) they are names of ranges and not numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

# Of so many cells at the beginning the commonest unit is taken, if it is a unit of this share of
# all cells.
N_FIRST = 20
MOST = 0.95
# And so many cells may be limits.
MOST_LIMITS = 0.5

# After the number: letters or a degree sign, then anything but blanks, such as kg/m².
UNIT = re.compile(r"[^a-zA-Z]*\d[.,]?\s*(?P<unit>(?:[^\W\d_]|°)\S{0,11})")
LIMIT = re.compile(r"(?:[<>]=?|[≤≥~≈])\s*(?=[\d.,+-])")


def common_unit(texts: Sequence[str | None]) -> str:
    """The unit of a column; "" if there is none."""
    present = [text for text in texts if text is not None]
    matches = [UNIT.fullmatch(text) for text in present[:N_FIRST]]
    units = Counter(match["unit"] for match in matches if match is not None)
    if not units:
        return ""
    unit = units.most_common(1)[0][0]
    return unit if sum(text.endswith(unit) for text in present) >= MOST * len(present) else ""


def has_limits(texts: Sequence[str | None]) -> bool:
    """Whether some cells of a column are limits, and the others numbers."""
    present = [text for text in texts if text is not None]
    return 0 < sum(LIMIT.match(text) is not None for text in present) <= MOST_LIMITS * len(present)


def bare(texts: Sequence[str | None], unit: str, *, limits: bool) -> list[str | None]:
    """Texts without the unit, and without the signs of limits."""
    found: list[str | None] = []
    for text in texts:
        if text is not None and unit and text.endswith(unit):
            text = text.removesuffix(unit).rstrip()
        if text is not None and limits:
            text = LIMIT.sub("", text, count=1) if LIMIT.match(text) else text
        found.append(text)
    return found
