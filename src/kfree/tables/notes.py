"""What was done to the columns of a table, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kfree.plain_text import quoted
from kfree.tables.categories import MOST_CATEGORIES
from kfree.tables.dates import BAR, CLOCKS, DURATION, is_month_first, month_first, noun_of
from kfree.tables.kinds import Column, is_named_so
from kfree.tables.messages import cells_of, count, joined, listed, not_read


def notes(columns: Sequence[Column], circles: Sequence[tuple[str, str]]) -> list[str]:
    """One sentence for each thing worth knowing; `circles`: dates, and what of them is used too."""
    return [
        *_kinds(columns, circles),
        *_readings(columns),
        *_missing(columns),
        *_left_out(columns),
    ]


def _of(columns: Iterable[Column], *kinds: str) -> list[Column]:
    return [column for column in columns if column.kind in kinds]


def _kinds(columns: Sequence[Column], circles: Sequence[tuple[str, str]]) -> list[str]:
    found = []
    numbers, dates = _of(columns, "number"), _of(columns, "date")
    times = [column for column in dates if column.date_format in CLOCKS]
    durations = [column for column in dates if column.date_format == DURATION]
    dates = [c for c in dates if c.date_format not in CLOCKS and c.date_format != DURATION]
    categories, texts = _of(columns, "category"), _of(columns, "text")
    named = [column.name for column in columns if column.kind != "left out"]
    named = [name for name in named if is_named_so(name)]
    if numbers:
        found.append(
            f"{count(len(numbers), 'column')} of numbers, standardized: "
            f"{listed(column.name for column in numbers)}."
        )
    if categories:
        each = [f"{quoted(c.name)} ({count(c.n_values, 'value')})" for c in categories]
        found.append(
            f"{count(len(categories), 'column')} of categories, one feature for each value: "
            f"{joined(each)}."
        )
    many = [column.name for column in categories if column.n_values > MOST_CATEGORIES]
    if many:
        found.append(
            f"Of {listed(many)} the {MOST_CATEGORIES - 1} most common values have a feature each; "
            "the others share one."
        )
    if dates:
        found.append(
            f"{count(len(dates), 'column')} of dates, taken as days: "
            f"{listed(column.name for column in dates)}."
        )
    if times:
        found.append(
            f"{count(len(times), 'column')} of times of day: "
            f"{listed(column.name for column in times)}."
        )
    if durations:
        found.append(
            f"{count(len(durations), 'column')} of durations, taken as days: "
            f"{listed(column.name for column in durations)}."
        )
    if circles:
        each = [
            f"the {' and '.join(circle for of, circle in circles if of == name)} of {quoted(name)}"
            for name in dict.fromkeys(name for name, _ in circles)
        ]
        found.append(f"The labels depend on {joined(each)}; features were added for that.")
    if texts:
        found.append(
            f"{count(len(texts), 'column')} of free text, taken as features by which texts that "
            f"look alike are near: {listed(column.name for column in texts)}."
        )
    if named:
        found.append(
            f"By name, {listed(named)} could be "
            f"{'an identifier' if len(named) == 1 else 'identifiers'}; --drop leaves "
            f"{'it' if len(named) == 1 else 'them'} out."
        )
    return found


def _readings(columns: Sequence[Column]) -> list[str]:
    """How numbers and dates were read where that is not plain."""
    found = []
    unusual: dict[tuple[str, str], list[Column]] = {}
    for column in columns:
        if column.example and column.reading is not None and not column.reading.open:
            unusual.setdefault(_manner(column.example), []).append(column)
    for alike in unusual.values():
        first = alike[0]
        found.append(
            f"{quoted(first.example)} was read as {first.example_value:.12g}, and so on, in "
            f"{listed(column.name for column in alike)}."
        )
    for column in columns:
        name = quoted(column.name)
        if column.reading is not None and column.reading.open and column.example:
            other = "set thousands apart" if _is_fraction(column) else "be a decimal mark"
            found.append(
                f"{name} can be read in two ways: {quoted(column.example)} was taken as "
                f"{column.example_value:.12g}, though its mark could {other}; "
                "--decimal settles it."
            )
        if column.reading is not None and column.reading.mixed:
            found.append(
                f"{name} has points and commas that cannot both be decimal marks; "
                f"{quoted(column.reading.style.decimal)} was taken as the decimal mark."
            )
        if column.code:
            found.append(
                f"{name} has numbers that begin with zeros, such as {quoted(column.code)}: they "
                "were taken as numbers; --categorical takes them as codes."
            )
        if column.signs:
            found.append(_signs(column, name))
        if column.kind == "date":
            found += _dates(column, name)
        if column.n_unreadable:
            noun = "number" if column.kind == "number" else noun_of(column.date_format)
            found.append(not_read(column.name, column.n_unreadable, noun, column.unreadable))
    return found


def _signs(column: Column, name: str) -> str:
    """That numbers of a column are not all of one kind."""
    if "%" in column.signs:
        return (
            f"{name} has numbers with a percent sign and others without: 5% was taken as 0.05, and "
            "5 as 5."
        )
    return (
        f"{name} has several currencies, {listed(column.signs)}: the amounts were taken as they "
        "are, not converted."
    )


def _dates(column: Column, name: str) -> list[str]:
    """How the dates of a column were read, where that is not plain."""
    found, ways = [], column.date_format.split(BAR)
    if len(ways) > 1:
        found.append(f"The dates of {name} are written in {len(ways)} ways.")
    if month_first(column.date_format) != column.date_format:
        either = ", though month/day/year fits as well" if column.either_date else ""
        found.append(f"The dates of {name} were read as day/month/year{either}.")
    elif column.either_date and is_month_first(column.date_format):
        found.append(f"The dates of {name} were read as month/day/year, as in other columns.")
    return found


def _manner(text: str) -> tuple[str, str]:
    """What is alike in cells that are written alike: their signs and the order of their marks."""
    signs = "".join(c for c in text if not c.isdigit() and c not in ".,-+ ")
    marks = "".join(dict.fromkeys(c for c in text if c in ".,"))
    return signs, marks


def _is_fraction(column: Column) -> bool:
    mark = column.style.decimal if column.style is not None else "."
    return mark in column.example


def _missing(columns: Sequence[Column]) -> list[str]:
    found = []
    for kinds, how in (
        (("number", "date"), "Missing numbers were filled in with the median"),
        (("category",), "Missing categories count as a value of their own"),
        (("text",), "Missing texts are like no other text"),
    ):
        missing = {c.name: c.n_missing for c in _of(columns, *kinds) if c.n_missing}
        if missing:
            found.append(f"{how}: {cells_of(missing)}.")
    return found


def _left_out(columns: Sequence[Column]) -> list[str]:
    out = [f"{quoted(column.name)} ({column.why})" for column in _of(columns, "left out")]
    return [f"Left out: {joined(out, most=12)}."] if out else []
