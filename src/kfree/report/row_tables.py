"""The rows of a report that somebody should look at."""

from __future__ import annotations

import numpy as np

from kfree.page import Block, Table, Text
from kfree.report.findings import Findings
from kfree.report.wording import percent, short
from kfree.tables.messages import count

MOST_UNCERTAIN = 20
MOST_SUSPECTS = 50


def uncertain(found: Findings) -> tuple[Block, ...]:
    """The rows whose class is least clear."""
    classes, known = found.classifier.classes_, found.posterior
    rows = []
    for i in found.most_uncertain[:MOST_UNCERTAIN]:
        p = known.class_probabilities[i]
        first, second = np.argsort(-p, kind="stable")[:2]
        within, between = (
            part[i, first] for part in (known.class_variance_within, known.class_variance_between)
        )
        rows.append(
            (
                short(found.row_names[i]),
                short(found.labels[i]),
                short(classes[first]),
                f"{p[first]:.3f}",
                short(classes[second]),
                f"{p[second]:.3f}",
                percent(between / (within + between)),
            )
        )
    return (
        Text(
            "Rows whose most probable class is least probable, each left out in turn. The last "
            "column says how much of the uncertainty comes from not knowing k and beta; the rest "
            "would stay if they were known, since the neighbours themselves disagree."
            f"{_row_words(found)}"
        ),
        Table(
            f"The {len(rows)} most uncertain of {count(len(found.labels), 'row')}",
            (
                "row",
                "label",
                "most probable",
                "probability",
                "next",
                "probability of that",
                "from not knowing k",
            ),
            tuple(rows),
            sortable=True,
        ),
    )


def suspicious(found: Findings) -> tuple[Block, ...]:
    """Rows whose label the others contradict."""
    audit = found.audit
    n = audit.n_contradicted
    if not n:
        return (Text("No label is contradicted by the other rows: nothing to look at here."),)
    rows = []
    for i in range(min(n, MOST_SUSPECTS)):
        against = [
            f"{short(found.row_names[row])} ({far:.2f})"
            for row, far in zip(audit.neighbors_against[i], audit.distances_against[i], strict=True)
            if row >= 0
        ]
        rows.append(
            (
                short(found.row_names[audit.rows[i]]),
                short(audit.given[i]),
                f"{audit.given_probability[i]:.3f}",
                short(audit.suggested[i]),
                f"{audit.suggested_probability[i]:.3f}",
                ", ".join(against),
            )
        )
    left = n - len(rows)
    more = f" The table has the first {len(rows)} of {n}." if left else ""
    return (
        Text(
            "Each of these rows has a label that the other rows contradict: another class is more "
            "probable. That may be a wrong label, an unusual row, or a place where classes "
            "overlap; only somebody who knows the data can tell. The most suspicious come first. "
            f"An estimate of how many labels are wrong, too high where classes overlap: "
            f"{audit.n_estimated:,}."
            f"{more}{_row_words(found)}"
        ),
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
            tuple(rows),
            sortable=True,
        ),
    )


def _row_words(found: Findings) -> str:
    first = found.counted_from
    counted = f" Rows are counted from {first}." if first is not None else ""
    return f"{counted} A click on the head of a column sorts the table."
