"""Rows that somebody should look at, beside the rows that speak against their label."""

from __future__ import annotations

import numpy as np

from kfree.page import Block, Card, Cards, Details, Table, Text
from kfree.plain_text import quoted
from kfree.report.findings import Findings
from kfree.report.headline import label_words
from kfree.report.wording import cell, percent, probability, short
from kfree.tables.messages import count

#: Rows in the tables, and those that are shown with their cells.
MOST_UNCERTAIN, UNCERTAIN_CARDS = 20, 4
MOST_SUSPECTS, SUSPECT_CARDS = 50, 6
#: A row whose most probable class has more than this is not uncertain.
CERTAIN = 0.9
#: Columns and neighbors in a card, and letters of a column's name.
MOST_COLUMNS, MOST_NEIGHBORS, LONGEST_NAME = 10, 3, 24


def suspicious(found: Findings) -> tuple[Block, ...]:
    """Rows whose label the others contradict."""
    audit = found.audit
    n = audit.n_contradicted
    if not n:
        return (Text("No label is contradicted by the other rows: nothing to look at here."),)
    cards = tuple(
        _card(
            found,
            place,
            f"{_name(found, audit.rows[place])}: {short(audit.given[place])}, or rather "
            f"{short(audit.suggested[place])}?",
            f"The other rows give its label {probability(audit.given_probability[place])}, and "
            f"{short(audit.suggested[place])} {probability(audit.suggested_probability[place])}. "
            f"{_beside(found, place)}",
        )
        for place in range(min(n, SUSPECT_CARDS))
    )
    rows = tuple(
        (
            short(found.row_names[audit.rows[i]]),
            short(audit.given[i]),
            f"{audit.given_probability[i]:.3f}",
            short(audit.suggested[i]),
            f"{audit.suggested_probability[i]:.3f}",
            ", ".join(
                f"{short(found.row_names[row])} ({far:.2f})" for row, far in _against(found, i)
            ),
        )
        for i in range(min(n, MOST_SUSPECTS))
    )
    listed = f"The first {len(rows)} of {n:,}" if n > len(rows) else f"All {n}"
    return (
        Text(
            f"{label_words(found)} A contradicted label may be wrong, the row may be unusual, or "
            "the classes overlap there; only somebody who knows the data can tell. The most "
            "suspicious come first, each beside the nearest rows that speak against its label."
            f"{_counted(found)}"
        ),
        Cards(cards),
        Details(
            f"{listed} contradicted labels as a table",
            (
                Table(
                    f"{count(n, 'contradicted label')} of {len(found.labels):,}",
                    (
                        "row",
                        "label",
                        "its probability",
                        "suggested label",
                        "probability of that",
                        "nearest rows with that label (distance)",
                    ),
                    rows,
                    sortable=True,
                ),
            ),
        ),
    )


def uncertain(found: Findings) -> tuple[Block, ...]:
    """The rows whose class is least clear."""
    first_rows = found.most_uncertain[:MOST_UNCERTAIN]
    highest = found.probabilities[first_rows].max(axis=1)
    if highest.min() > CERTAIN:
        return (
            Text(
                f"No row is uncertain: the least sure is {_name(found, first_rows[0], 'row')}, "
                f"whose most probable class has {probability(highest.min())}.{_counted(found)}"
            ),
        )
    first_rows = first_rows[highest <= CERTAIN]
    place_of = np.argsort(found.audit.rows, kind="stable")
    cards: list[Card] = []
    rows: list[tuple[str, ...]] = []
    for i in first_rows:
        p = found.probabilities[i]
        first, second = np.argsort(-p, kind="stable")[:2]
        between = f"{short(found.classes[first])} {p[first]:.3f}, "
        between += f"{short(found.classes[second])} {p[second]:.3f}"
        line = [
            short(found.row_names[i]),
            short(found.labels[i]),
            short(found.classes[first]),
            f"{p[first]:.3f}",
            short(found.classes[second]),
            f"{p[second]:.3f}",
        ]
        if found.held_out.from_k is not None:
            line.append(percent(found.held_out.from_k[i, first]))
        rows.append(tuple(line))
        if len(cards) < UNCERTAIN_CARDS:
            place = int(place_of[i])
            cards.append(
                _card(
                    found,
                    place,
                    f"{_name(found, i)}: {between}",
                    f"Its label is {short(found.labels[i])}. {_beside(found, place)}",
                )
            )
    header = ["row", "label", "most probable", "probability", "next", "probability of that"]
    about_k = ""
    if found.held_out.from_k is not None:
        header.append("from not knowing k")
        about_k = (
            " The last column of the table says how much of the uncertainty comes from not knowing "
            "k and beta; the rest would stay if they were known, since the neighbors disagree."
        )
    return (
        Text(
            "Rows whose most probable class is least probable, each left out in turn."
            f"{about_k}{_counted(found)}"
        ),
        Cards(tuple(cards)),
        Details(
            f"The {len(rows)} most uncertain rows as a table",
            (
                Table(
                    f"The {len(rows)} most uncertain of {count(len(found.labels), 'row')}",
                    tuple(header),
                    tuple(rows),
                    sortable=True,
                ),
            ),
        ),
    )


def shown_columns(found: Findings) -> list[int]:
    """The columns whose cells are shown, those that matter most first; never identifiers."""
    important = [] if found.importance is None else found.importance.columns.tolist()
    others = [
        j for j, column in enumerate(found.columns) if not column.identifier and column.values
    ]
    others.sort(key=lambda j: found.columns[j].left_out)
    return list(dict.fromkeys([*important, *others]))[:MOST_COLUMNS]


def _card(found: Findings, place: int, title: str, words: str) -> Card:
    """A row's own cells beside those of the rows that speak against its label."""
    row = int(found.audit.rows[place])
    near = _against(found, place)[:MOST_NEIGHBORS]
    rows = [row, *(other for other, _ in near)]
    lines = (
        [("distance", "", *(f"{far:,.{2 if far < 100 else 0}f}" for _, far in near))]
        if near
        else []
    )
    lines += [
        (short(found.columns[j].name, LONGEST_NAME), *(cell(_cells(found, i, j)) for i in rows))
        for j in shown_columns(found)
    ]
    header = ("", "this row", *(short(found.row_names[other], 24) for other, _ in near))
    return Card(title, words, Table(f"{title}: its cells", header, tuple(lines)))


def _beside(found: Findings, place: int) -> str:
    """What stands beside a row in its card."""
    label = short(found.audit.suggested[place])
    if _against(found, place):
        return f"Beside it the nearest rows labeled {label}."
    return f"None of the rows nearest to it is labeled {label}."


def _cells(found: Findings, row: int, column: int) -> object:
    X = found.X
    return X.iloc[row, column] if hasattr(X, "iloc") else X[row, column]


def _against(found: Findings, place: int) -> list[tuple[int, float]]:
    """The rows that speak against a label, and how far they are."""
    audit = found.audit
    pairs = zip(audit.neighbors_against[place], audit.distances_against[place], strict=True)
    return [(int(row), float(far)) for row, far in pairs if row >= 0]


def _name(found: Findings, row: int, noun: str = "Row") -> str:
    name = short(found.row_names[row])
    return f"{noun} {name}" if found.counted_from is not None else name


def _counted(found: Findings) -> str:
    if found.counted_from is None:
        return ""
    named = [column.name for column in found.columns if column.identifier]
    shown_too = named and found.row_names.dtype.kind == "U"
    beside = f"; in parentheses is {quoted(named[0])}" if shown_too else ""
    return f" Rows are counted from {found.counted_from}{beside}."
