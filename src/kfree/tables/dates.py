"""Dates as numbers: days, and where in the week, the year and the day they lie."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from kfree.tables import durations

# How days are written, with a pattern that keeps numbers from being read as dates.
DAYS = {
    "%d.%m.%Y": r"\d{1,2}\.\d{1,2}\.\d{4}",
    "%d.%m.%y": r"\d{1,2}\.\d{1,2}\.\d{2}",
    "%Y/%m/%d": r"\d{4}/\d{1,2}/\d{1,2}",
    "%d/%m/%Y": r"\d{1,2}/\d{1,2}/\d{4}",
    "%m/%d/%Y": r"\d{1,2}/\d{1,2}/\d{4}",
    "%d/%m/%y": r"\d{1,2}/\d{1,2}/\d{2}",
    "%m/%d/%y": r"\d{1,2}/\d{1,2}/\d{2}",
    "%d-%m-%Y": r"\d{1,2}-\d{1,2}-\d{4}",
    "%m-%d-%Y": r"\d{1,2}-\d{1,2}-\d{4}",
    "%d %b %Y": r"\d{1,2} [A-Za-z]{3} \d{4}",
    "%d %B %Y": r"\d{1,2} [A-Za-z]{3,9} \d{4}",
    "%d-%b-%Y": r"\d{1,2}-[A-Za-z]{3}-\d{4}",
    "%d-%b-%y": r"\d{1,2}-[A-Za-z]{3}-\d{2}",
    "%b %d %Y": r"[A-Za-z]{3} \d{1,2} \d{4}",
    "%b %d, %Y": r"[A-Za-z]{3} \d{1,2}, \d{4}",
    "%B %d, %Y": r"[A-Za-z]{3,9} \d{1,2}, \d{4}",
}
# And times of day, alone or after the day.
CLOCKS = {
    "%H:%M": r"\d{1,2}:\d{2}",
    "%H:%M:%S": r"\d{1,2}:\d{2}:\d{2}",
    "%I:%M %p": r"\d{1,2}:\d{2} [A-Za-z]{2}",
    "%I:%M:%S %p": r"\d{1,2}:\d{2}:\d{2} [A-Za-z]{2}",
}
# What is no day of its own, but the first one of it is taken.
WEEK, QUARTER = "week", "quarter"
# How long something took.
DURATION = "duration"
DATES = {
    date_format: re.compile(pattern)
    for date_format, pattern in {
        "ISO8601": r"\d{4}-\d{2}-\d{2}([A-Za-z ]\d{2}:\d{2}.*)?|\d{8}[A-Za-z]\d{6}.*",
        "%Y-%m": r"\d{4}-\d{2}",
        "%b %Y": r"[A-Za-z]{3} \d{4}",
        "%B %Y": r"[A-Za-z]{3,9} \d{4}",
        "%b-%y": r"[A-Za-z]{3}-\d{2}",
        **DAYS,
        **{f"{day} {clock}": rf"{DAYS[day]} {CLOCKS[clock]}" for day in DAYS for clock in CLOCKS},
        WEEK: r"\d{4}-?[A-Za-z]\d{2}",
        QUARTER: r"\d{4}[- ]?[A-Za-z]\d|[A-Za-z]\d[-/ ]?\d{4}",
        **CLOCKS,
        DURATION: durations.PATTERN,
    }.items()
}
# None of these is a day, which several ways of writing dates and new ones could share.
NO_DAYS = {*CLOCKS, DURATION}
# Wednesday, January 31, 2024; Wed, 31 Jan 2024 14:30:00 GMT; 2024-01-31 14:30:00 UTC.
WEEKDAY = re.compile(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}\.?,? +(?=[\dA-Z])")
ZONE = re.compile(r"(?<=\d) (UTC|GMT|Z)$")
# Between the formats of a column whose dates are written in several ways.
BAR = "|"
# What a date looks like: 00.00.0000. A column of dates has few such shapes, free text has many.
SHAPE = str.maketrans(
    {
        **{chr(48 + i): "0" for i in range(10)},
        **{chr(i): "a" for i in (*range(65, 91), *range(97, 123))},
    }
)
LONGEST_SHAPE = 40
MOST_SHAPES = 200
# Read one way although another would fit as well.
DAY_FIRST = {f: "%m" + f[2] + "%d" + f[5:] for f in DATES if f.startswith(("%d/%m", "%d-%m"))}
# What repeats, its length in days, and over how many days dates must be spread for it to tell
# anything that the day itself does not.
CIRCLES = {"weekday": (7.0, 14.0), "season": (365.2425, 366.0), "time of day": (1.0, 0.0)}
# 1970-01-01 was a Thursday; weeks begin on Monday.
WEEK_BEGINS = 3.0


def noun_of(date_format: str) -> str:
    """What a cell of a format is."""
    return "duration" if date_format == DURATION else "date"


def find_format(texts: Sequence[str], most: float) -> str | None:
    """How texts write dates; None if fewer than the share `most` are dates.

    Where no single format serves, several with bars between: each cell is read by the first that
    fits. Month/day/year and day/month/year are never among the same.
    """
    needed = most * len(texts)
    texts = [_without_weekday(text) for text in texts]
    shapes = Counter(text[:LONGEST_SHAPE].translate(SHAPE) for text in texts).most_common(
        MOST_SHAPES
    )
    if sum(n for _, n in shapes) < needed:
        return None
    days = {}
    for date_format, pattern in DATES.items():
        if any(pattern.fullmatch(shape) for shape, _ in shapes):
            days[date_format] = days_of_texts(texts, date_format)
            if np.isfinite(days[date_format]).sum() >= needed:
                return date_format
    read = {date_format: int(np.isfinite(found).sum()) for date_format, found in days.items()}
    weaker = {
        one if read.get(one, 0) < read.get(other, 0) else other for one, other in DAY_FIRST.items()
    }
    together, there = [], np.zeros(len(texts), dtype=bool)
    for date_format, found in days.items():
        more = np.isfinite(found) & ~there
        if more.any() and date_format not in weaker and date_format not in NO_DAYS:
            together.append(date_format)
            there |= more
    return BAR.join(together) if there.sum() >= needed else None


def find_other_format(texts: Sequence[str], most: float, fitted: str) -> str | None:
    """How texts write dates that `fit` saw in the format `fitted`; None if these are no dates."""
    found = find_format(texts, most) if texts and fitted not in NO_DAYS else None
    if found is None or found in NO_DAYS:
        return None
    if is_month_first(fitted) and reads_both_ways(texts, found):
        return month_first(found)
    return found


def month_first(date_format: str) -> str:
    """The same format, but for 03/04/2024 and 03-04-2024, which begin with the month."""
    return BAR.join(DAY_FIRST.get(part, part) for part in date_format.split(BAR))


def is_month_first(date_format: str) -> bool:
    """Whether dates are written as 12/31/2024 or 12-31-2024."""
    return any(part in DAY_FIRST.values() for part in date_format.split(BAR))


def reads_both_ways(texts: Sequence[str], date_format: str) -> bool:
    """Whether day/month/year was taken although month/day/year reads every date as well."""
    if month_first(date_format) == date_format:
        return False
    there = np.isfinite(days_of_texts(texts, date_format))
    other = np.isfinite(days_of_texts(texts, month_first(date_format)))
    return bool((other >= there).all())


def days_of_texts(texts: Sequence[str | None], date_format: str) -> np.ndarray:
    """Days since 1970; NaN for what is not a date of this format."""
    import pandas as pd

    days = np.full(len(texts), np.nan)
    texts = [None if text is None else _without_weekday(text) for text in texts]
    for part in date_format.split(BAR):
        fits = DATES[part].fullmatch
        rest = [i for i, t in enumerate(texts) if t is not None and np.isnan(days[i]) and fits(t)]
        if rest:
            cells = pd.Series([texts[i] for i in rest], dtype=object)
            days[rest] = _days_written(cells, part)
    return days


def _without_weekday(text: str) -> str:
    """A date without its weekday, and without the time zone UTC, in which all are read."""
    if text[:1].isalpha():
        text = WEEKDAY.sub("", text, count=1) if WEEKDAY.match(text) else text
    return ZONE.sub("", text) if text[-1:] in "CTZ" else text


def _days_written(cells: Any, date_format: str) -> np.ndarray:
    """The days of a pandas.Series of texts that look like dates of one format."""
    import pandas as pd

    if date_format == DURATION:
        return durations.days_of_durations(cells)
    if date_format == WEEK:
        cells = cells.str.replace(r"^((?:19|20)\d\d)-?[Ww](\d\d)$", r"\1-W\2-1", regex=True)
        date_format = "%G-W%V-%u"
    if date_format == QUARTER:
        parts = cells.str.extract(
            r"^((?:19|20)\d\d)?[-/ ]?[Qq]([1-4])[-/ ]?((?:19|20)\d\d)?$"
        ).fillna("")
        month = parts[1].map({str(i): f"-{3 * i - 2:02d}" for i in range(1, 5)}).fillna("")
        cells, date_format = parts[0] + parts[2] + month, "%Y-%m"
    return _days(pd.to_datetime(cells, format=date_format, errors="coerce", utc=True))


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


def _days(dates: Any) -> np.ndarray:
    import pandas as pd

    # In microseconds, as nanoseconds end in 2262: 9999-12-31 stands for no end in many tables.
    since = dates.dt.as_unit("us") - pd.Timestamp(0, tz="UTC").as_unit("us")
    return (since / pd.Timedelta(days=1).as_unit("us")).to_numpy(dtype=float)
