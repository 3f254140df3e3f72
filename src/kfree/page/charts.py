"""Pictures that the page draws itself, as SVG.

Every place is given as a percentage of the width or height of the picture, and letters keep their
size: the same picture fits a phone, a wide screen and paper, and takes the colors of the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np


@dataclass(frozen=True)
class Axis:
    """A scale from `low` to `high` with marks, each a value and its words."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    name: str = ""

    def at(self, value: float) -> float:
        """Where a value is, in percent of the axis; what is beyond its ends is put there."""
        share = (value - self.low) / (self.high - self.low)
        return round(100.0 * min(max(share, 0.0), 1.0), 3)

    def down(self, value: float) -> float:
        """The same from above, as pictures count."""
        return round(100.0 - self.at(value), 3)


def axis(
    low: float, high: float, n_ticks: int = 5, *, percent: bool = False, name: str = ""
) -> Axis:
    """An axis with marks at round numbers; its ends are moved outwards to such numbers.

    Examples
    --------
    >>> axis(0.0, 0.83).ticks
    ((0.0, '0'), (0.2, '0.2'), (0.4, '0.4'), (0.6, '0.6'), (0.8, '0.8'), (1.0, '1'))
    """
    high = high if high > low else low + 1.0
    rough = (high - low) / n_ticks
    size = 10.0 ** np.floor(np.log10(rough))
    step = next(size * m for m in (1.0, 2.0, 2.5, 5.0, 10.0) if size * m >= rough * 0.999)
    first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
    values = [float(f"{step * i:.12g}") for i in np.arange(first, last + 1)]
    words = [f"{100 * v:.6g}%" if percent else f"{v:,.6g}" for v in values]
    return Axis(values[0], values[-1], tuple(zip(values, words, strict=True)), name)


@dataclass(frozen=True)
class Line:
    """One line of a picture: a name, a value with its interval, and both in words.

    A `strong` one is what the picture is about.
    """

    name: str
    value: float
    words: str
    low: float | None = None
    high: float | None = None
    strong: bool = False


@dataclass(frozen=True)
class Lines:
    """Values under each other on one scale, as points with intervals or as bars from zero.

    On the page this is a list of names and words; the drawing beside them says nothing more.
    """

    kind: ClassVar[str] = "lines"
    caption: str
    lines: tuple[Line, ...]
    axis: Axis
    bars: bool = False


@dataclass(frozen=True)
class Bars:
    """Upright bars over numbers; each is a place, a height, and whether it is dark."""

    kind: ClassVar[str] = "bars"
    caption: str
    alt: str
    bars: tuple[tuple[float, float, bool], ...]
    x: Axis
    y: Axis
    legend: tuple[str, str] = ("", "")

    @property
    def thickness(self) -> float:
        """Of a bar in pixels, such that bars do not touch where the picture is 320 wide."""
        places = sorted(self.x.at(place) for place, _, _ in self.bars)
        gaps = [b - a for a, b in pairwise(places)]
        return float(np.clip(3.2 * 0.75 * min(gaps, default=10.0), 1.0, 26.0))


@dataclass(frozen=True)
class Calibration:
    """What was said and what came true: points with intervals, and how many rows each has."""

    kind: ClassVar[str] = "calibration"
    caption: str
    alt: str
    points: tuple[tuple[float, float, float, float, int], ...]  # said, true, low, high, rows
    axis: Axis

    @property
    def most_rows(self) -> int:
        """Of any point."""
        return max((rows for *_, rows in self.points), default=1)
