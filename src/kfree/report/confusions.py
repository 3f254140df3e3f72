"""Which classes are taken for which: the largest confusions first, the whole matrix after them."""

from __future__ import annotations

import numpy as np

from kfree.page import Beside, Block, Details, Line, Lines, Table, Text, axis
from kfree.report.findings import Findings, share_interval
from kfree.report.wording import percent, short
from kfree.tables.messages import count

#: With more classes the matrix is folded, and with still more there is none.
FEW_CLASSES, MOST_IN_MATRIX = 5, 40
MOST_LINES = 10
#: Letters of all names above the matrix, and of a matrix that has room in half of the page.
WIDTH, HALF = 110, 52


def confusions(found: Findings) -> tuple[Block, ...]:
    """Pictures of the worst classes and the largest confusions, and the matrix."""
    words = Text(
        "Each row was left out in turn; its label is compared with the class that kfree names."
    )
    n_classes = len(found.classes)
    largest = _largest(found) or Text("No row is taken for another class.")
    if n_classes <= FEW_CLASSES:
        matrix = _matrix(found)
        width = sum(map(len, matrix.header)) + max(len(row[0]) for row in matrix.rows)
        return (words, Beside((matrix, largest))) if width <= HALF else (words, matrix, largest)
    folded = Details(f"The {n_classes} x {n_classes} matrix", (_matrix(found),))
    return (
        words,
        Beside((largest, _recognized(found))),
        *((folded,) if n_classes <= MOST_IN_MATRIX else ()),
        Details("Every class as a table", (_classes(found),)),
    )


def _recognized(found: Findings) -> Lines:
    """How many rows of each class are recognized, the worst first."""
    totals, right = found.confusion.sum(axis=1), np.diag(found.confusion)
    order = np.argsort(right / np.maximum(totals, 1), kind="stable")
    lines = []
    for c in order[:MOST_LINES]:
        low, high = share_interval(int(right[c]), int(totals[c]))
        said = f"{percent(right[c] / totals[c])} of {totals[c]:,}"
        lines.append(
            Line(short(found.classes[c], 24), right[c] / totals[c], said, low, high, strong=True)
        )
    title = "Rows recognized, by class"
    if len(order) > len(lines):
        title += f": the worst {len(lines)} of {len(order)}"
    ends = axis(min(line.low or 0.0 for line in lines), 1.0, 4, percent=True)
    return Lines(title, tuple(lines), ends)


def _pairs(found: Findings) -> list[tuple[int, int, int]]:
    """Label, class that was named, rows; the most frequent first."""
    apart = found.confusion.copy()
    np.fill_diagonal(apart, 0)
    order = np.argsort(-apart, axis=None, kind="stable")[: apart.astype(bool).sum()]
    places = zip(*np.unravel_index(order, apart.shape), strict=True)
    return [(int(a), int(b), int(apart[a, b])) for a, b in places]


def _largest(found: Findings) -> Lines | None:
    pairs = _pairs(found)
    if not pairs:
        return None
    totals = found.confusion.sum(axis=1)
    shown = pairs[:MOST_LINES]
    lines = tuple(
        Line(
            f"{short(found.classes[a], 24)} taken for {short(found.classes[b], 24)}",
            n,
            f"{count(n, 'row')}, {percent(n / totals[a])}",
            strong=True,
        )
        for a, b, n in shown
    )
    title = "Largest confusions: rows, and their share of the label"
    if len(pairs) > len(shown):
        title += f" ({len(shown)} of {len(pairs)})"
    return Lines(title, lines, axis(0.0, float(shown[0][2]), min(4, shown[0][2])), bars=True)


def _matrix(found: Findings) -> Table:
    """Rows by label and named class; zeros are left empty.

    Sums stand at the right where the classes are few; of many, the table of classes has them.
    """
    names = [short(name, 16) for name in found.classes]
    few = len(names) <= FEW_CLASSES
    # The names above must not push the last classes off the page.
    above = [short(name, min(16, max(5, WIDTH // len(names)))) for name in found.classes]
    totals = found.confusion.sum(axis=1)
    shares = found.confusion / np.maximum(totals, 1)[:, None]
    rows = tuple(
        (
            name,
            *(f"{n:,}" if n else "" for n in line),
            *((f"{total:,}", percent(shares[c, c])) if few else ()),
        )
        for c, (name, line, total) in enumerate(zip(names, found.confusion, totals, strict=True))
    )
    shades = tuple(tuple(float(share) for share in line) + (0.0, 0.0) * few for line in shares)
    return Table(
        "Labels (down) and named classes (across)",
        ("label", *above, *(("rows", "right") if few else ())),
        rows,
        shades=shades,
    )


def _classes(found: Findings) -> Table:
    """One line for each class."""
    totals, named = found.confusion.sum(axis=1), found.confusion.sum(axis=0)
    apart = found.confusion.copy()
    np.fill_diagonal(apart, 0)
    rows = []
    for c, name in enumerate(found.classes):
        other = int(apart[c].argmax())
        right = found.confusion[c, c]
        mostly = f"{short(found.classes[other], 24)} ({apart[c, other]:,})"
        rows.append(
            (
                short(name),
                f"{totals[c]:,}",
                percent(right / totals[c]),
                percent(right / named[c]) if named[c] else "",
                mostly if apart[c, other] else "",
            )
        )
    return Table(
        "Every class",
        ("class", "rows", "of these recognized", "right where it is named", "most often taken for"),
        tuple(rows),
        sortable=True,
    )
