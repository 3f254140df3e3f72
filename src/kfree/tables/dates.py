"""Dates as numbers: days, and where in the week, the year and the day they lie."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

# How dates are written, with a pattern that keeps numbers from being read as dates.
DATES = {
    "ISO8601": re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?"),
    "%d.%m.%Y": re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}"),
    "%d.%m.%Y %H:%M": re.compile(r"\d{1,2}\.\d{1,2}\.\d{4} \d{1,2}:\d{2}"),
    "%d.%m.%y": re.compile(r"\d{1,2}\.\d{1,2}\.\d{2}"),
    "%Y/%m/%d": re.compile(r"\d{4}/\d{1,2}/\d{1,2}"),
    "%d/%m/%Y": re.compile(r"\d{1,2}/\d{1,2}/\d{4}"),
    "%m/%d/%Y": re.compile(r"\d{1,2}/\d{1,2}/\d{4}"),
    "%d/%m/%Y %H:%M": re.compile(r"\d{1,2}/\d{1,2}/\d{4} \d{1,2}:\d{2}"),
    "%m/%d/%Y %H:%M": re.compile(r"\d{1,2}/\d{1,2}/\d{4} \d{1,2}:\d{2}"),
    "%d-%m-%Y": re.compile(r"\d{1,2}-\d{1,2}-\d{4}"),
    "%d %b %Y": re.compile(r"\d{1,2} [A-Za-z]{3} \d{4}"),
    "%d-%b-%Y": re.compile(r"\d{1,2}-[A-Za-z]{3}-\d{4}"),
    "%b %d, %Y": re.compile(r"[A-Za-z]{3} \d{1,2}, \d{4}"),
    "%H:%M": re.compile(r"\d{1,2}:\d{2}"),
    "%H:%M:%S": re.compile(r"\d{1,2}:\d{2}:\d{2}"),
}
# Times of day; the day is the same for all.
TIMES = ("%H:%M", "%H:%M:%S")
# Read one way although another would fit as well.
DAY_FIRST = {"%d/%m/%Y": "%m/%d/%Y", "%d/%m/%Y %H:%M": "%m/%d/%Y %H:%M"}
# What repeats, its length in days, and over how many days dates must be spread for it to tell
# anything that the day itself does not.
CIRCLES = {"weekday": (7.0, 14.0), "season": (365.2425, 366.0), "time of day": (1.0, 0.0)}
# 1970-01-01 was a Thursday; weeks begin on Monday.
WEEK_BEGINS = 3.0


def find_format(texts: Sequence[str], most: float) -> tuple[str, np.ndarray] | None:
    """How texts write dates, and the days; None if fewer than the share `most` are dates."""
    needed = most * len(texts)
    for date_format, pattern in DATES.items():
        if sum(pattern.fullmatch(text) is not None for text in texts) >= needed:
            days = days_of_texts(texts, date_format)
            if np.isfinite(days).sum() >= needed:
                return date_format, days
    return None


def reads_both_ways(texts: Sequence[str], date_format: str) -> bool:
    """Whether day/month/year was taken although month/day/year reads every date as well."""
    if date_format not in DAY_FIRST:
        return False
    there = np.isfinite(days_of_texts(texts, date_format))
    other = np.isfinite(days_of_texts(texts, DAY_FIRST[date_format]))
    return bool((other >= there).all())


def days_of_texts(texts: Sequence[str | None], date_format: str) -> np.ndarray:
    """Days since 1970; NaN for what is not a date of this format."""
    import pandas as pd

    return _days(pd.to_datetime(pd.Series(texts, dtype=object), **_options(date_format)))


def days_of_values(column: Any) -> np.ndarray:
    """Dates (durations) of a pandas.Series as days since 1970 (days); NaN for what is neither."""
    import pandas as pd

    if pd.api.types.is_timedelta64_dtype(column.dtype):
        return (column / pd.Timedelta(days=1)).to_numpy(dtype=float)
    cells = column.astype(object).where(column.notna(), None)
    return _days(pd.to_datetime(cells, errors="coerce", utc=True))


def hours(cell: Any) -> float:
    """A time of day as hours; NaN for what is none."""
    if not hasattr(cell, "hour"):
        return np.nan
    return cell.hour + cell.minute / 60 + (cell.second + cell.microsecond / 1e6) / 3600


def circles_of(days: np.ndarray) -> list[str]:
    """Which circles tell something about these dates."""
    there = days[np.isfinite(days)]
    spread = float(np.ptp(there)) if len(there) else 0.0
    names = [name for name, (_, least) in CIRCLES.items() if spread >= least]
    if not (there != np.floor(there)).any():
        names.remove("time of day")
    return names


def on_circle(days: np.ndarray, circle: str) -> np.ndarray:
    """Sine and cosine (n_rows, 2) of where in a circle days lie; 0 for what is no date.

    Each is divided by the square root of a half, its standard deviation if dates are spread evenly,
    so that a circle counts as much as two columns of standardized numbers.
    """
    length = CIRCLES[circle][0]
    angle = 2 * np.pi * (days + (WEEK_BEGINS if circle == "weekday" else 0.0)) / length
    points = np.stack([np.sin(angle), np.cos(angle)], axis=1) / np.sqrt(0.5)
    return np.where(np.isfinite(points), points, 0.0)


def _options(date_format: str) -> dict[str, Any]:
    return {"format": date_format, "errors": "coerce", "utc": True}


def _days(dates: Any) -> np.ndarray:
    import pandas as pd

    return ((dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)).to_numpy(dtype=float)
