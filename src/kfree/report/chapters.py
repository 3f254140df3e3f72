"""The numbers of a report in words, pictures and tables."""

from __future__ import annotations

import numpy as np

from kfree.page import (
    Beside,
    Block,
    Calibration,
    Code,
    Details,
    Line,
    Lines,
    Points,
    Section,
    Table,
    Text,
    axis,
)
from kfree.report.comparison import KFREE, KNN
from kfree.report.confusions import confusions
from kfree.report.findings import Findings, share_interval
from kfree.report.headline import Z, calibration_words, versions
from kfree.report.meaning import meaning
from kfree.report.neighbors import how_many_neighbors
from kfree.report.rows import suspicious, uncertain
from kfree.report.wording import number, percent, short, signed
from kfree.tables.messages import count

MOST_COLUMNS = 60
#: Columns and classes in a picture.
MOST_LINES = 12
#: Columns worth less than this share of the first are not drawn.
WORTH_A_LINE = 0.01


def chapters(found: Findings, reproduce: str) -> tuple[Section, ...]:
    """All chapters in their order."""
    sections = [
        Section("quality", "How good is it?", how_good(found)),
        Section("calibration", "Can the probabilities be relied on?", calibration(found)),
        Section("confusion", "Which classes are taken for which?", confusions(found)),
        Section("columns", "Which columns matter?", which_columns(found)),
        Section("labels", "Labels that look wrong", suspicious(found)),
        Section("uncertain", "The most uncertain rows", uncertain(found)),
    ]
    if found.held_out.k is not None:
        sections.append(Section("k", "How many neighbors?", how_many_neighbors(found)))
    sections += [
        Section("data", "The data", the_data(found)),
        Section("meaning", "What the numbers mean", (meaning(found),)),
        Section("reproduce", "How to make this page again", how_to_reproduce(reproduce)),
    ]
    return tuple(sections)


def how_good(found: Findings) -> tuple[Block, ...]:
    """Scores beside those of rivals."""
    compared = found.comparison
    if compared is None:
        return (
            Text("There are too few rows to compare kfree with others on folds."),
            _score_table(found),
        )
    words = [
        Text(
            f"All three had the same {compared.n_splits} folds: every row was predicted by models "
            "that were fitted without it. The horizontal bars are 95% intervals."
        )
    ]
    pictures = Beside((_accuracies(found), _log_losses(found)))
    after: list[Block] = [Text(_verdict(found))]
    if compared.n_unknown:
        after.append(
            Text(
                f"{count(compared.n_unknown, 'row has', 'rows have')} a class that occurs "
                "only in one fold: when that fold is left out nobody can know it, and the log "
                "loss of all on the folds is the higher for it.",
                notice=True,
            )
        )
    k = ", ".join(map(str, sorted(set(compared.knn_k))))
    inside = (
        Text(
            "Leave-one-out is what kfree gives without a refit. Accuracy and macro F are better "
            "when higher, the others when lower."
        ),
        _score_table(found),
        Text(
            "The kNN is the plain majority vote of the k nearest; its k was searched among 1 to 50 "
            f"by cross validation inside each training part (chosen: {k}). A class that none of "
            "its k neighbors has gets the probability 0, and each row where such a class was the "
            "true one costs a log loss of 36."
        ),
    )
    return (*words, pictures, *after, Details("All scores as a table", inside))


def _accuracies(found: Findings) -> Lines:
    compared = found.comparison
    assert compared is not None
    n = len(found.labels)
    lines = []
    for name, scores in compared.scores.items():
        low, high = share_interval(round(scores.accuracy * n), n)
        said = f"{percent(scores.accuracy)} ({100 * low:.1f} to {100 * high:.1f})"
        lines.append(Line(name, scores.accuracy, said, low, high, strong=name == KFREE))
    ends = axis(
        min(line.low or 0.0 for line in lines),
        max(line.high or 1.0 for line in lines),
        4,
        percent=True,
    )
    return Lines("Accuracy: right rows, more is better", tuple(lines), ends)


def _log_losses(found: Findings) -> Lines:
    compared = found.comparison
    assert compared is not None
    lines = []
    for name, losses in compared.log_losses.items():
        mean, half = float(losses.mean()), Z * float(losses.std(ddof=1)) / len(losses) ** 0.5
        low, high = max(mean - half, 0.0), mean + half
        said = number(mean)
        if said != number(high):
            said += f" ({number(low)} to {number(high)})"
        lines.append(Line(name, mean, said, low, high, strong=name == KFREE))
    ends = axis(0.0, max(line.high or 0.0 for line in lines), 4)
    return Lines("Log loss: how wrong the probabilities are, less is better", tuple(lines), ends)


def _verdict(found: Findings) -> str:
    compared = found.comparison
    assert compared is not None
    ours, theirs = compared.n_only_kfree, compared.n_only_knn
    words = (
        f"{count(ours, 'row was', 'rows were')} right with kfree and wrong with the kNN, "
        f"{count(theirs, 'row', 'rows')} the other way round"
    )
    if ours + theirs == 0:
        words += ": both name the same classes."
    else:
        verdict = (
            "more than chance makes" if compared.p_value < 0.05 else "no more than chance makes"
        )
        p_value = compared.p_value
        said = f"p = {p_value:.2g}" if p_value >= 1e-3 else "p < 0.001"
        words += f"; that is {verdict} (sign test, {said})."
    gap = compared.log_losses[KNN] - compared.log_losses[KFREE]
    mean, half = float(gap.mean()), Z * float(gap.std(ddof=1)) / len(gap) ** 0.5
    if abs(mean) <= half:
        return f"{words} In log loss the two cannot be told apart on these rows."
    which = "lower" if mean > 0 else "higher"
    return (
        f"{words} The log loss of kfree is {which} by {number(abs(mean))} (95% interval "
        f"{number(abs(mean) - half)} to {number(abs(mean) + half)})."
    )


def _score_table(found: Findings) -> Table:
    rows = [_score_row("kfree\nleave-one-out", found.scores, found.seconds)]
    compared = found.comparison
    if compared is not None:
        rows += [
            _score_row(f"{name}\n{compared.n_splits} folds", scores, compared.seconds[name])
            for name, scores in compared.scores.items()
        ]
    return Table(
        "Scores on rows that were left out",
        ("classifier", "accuracy", "macro F", "log loss", "Brier", "calibration error", "seconds"),
        tuple(rows),
    )


def _score_row(name, scores, seconds) -> tuple[str, ...]:
    return (
        name,
        percent(scores.accuracy),
        f"{scores.f_measure:.3f}",
        f"{scores.log_loss:.3f}",
        f"{scores.brier:.3f}",
        f"{scores.calibration_error:.3f}",
        f"{seconds:.2f}",
    )


def calibration(found: Findings) -> tuple[Block, ...]:
    """The reliability diagram with its numbers."""
    bins = found.reliability
    there = np.flatnonzero(bins.count)
    low = min(bins.edges[there[0]], np.nanmin(bins.lower))
    points = tuple(
        (
            float(bins.predicted[i]),
            float(bins.observed[i]),
            float(bins.lower[i]),
            float(bins.upper[i]),
            int(bins.count[i]),
        )
        for i in there
    )
    table = Table(
        "Predicted probability of the most probable class, and what came true",
        ("probability", "rows", "mean predicted", "share right", "95% interval"),
        tuple(
            (
                f"{bins.edges[i]:.1f} to {bins.edges[i + 1]:.1f}",
                f"{rows:,}",
                f"{said:.3f}",
                f"{true:.3f}",
                f"{below:.3f} to {above:.3f}",
            )
            for i, (said, true, below, above, rows) in zip(there, points, strict=True)
        ),
    )
    picture = Calibration(
        "What came true, over what was said",
        "Reliability diagram: the share of rows whose most probable class was right, over the "
        f"predicted probability, in bins of a tenth. {calibration_words(found)}",
        points,
        axis(float(low), 1.0, 5, percent=True, name="probability of the most probable class"),
    )
    details = Details("The numbers as a table", (table,))
    if len(there) == 1:
        # One point makes no line, and one bar no distribution.
        return (Text(f"{calibration_words(found)} Each row was left out in turn."), details)
    words = Text(
        "If probabilities can be relied on, then of all the rows that are given 80%, 80% are "
        f"right: the points lie on the dashed line. {calibration_words(found)} Each row was left "
        "out in turn."
    )
    rows = tuple(
        Line(f"{bins.edges[i]:.1f} to {bins.edges[i + 1]:.1f}", rows, count(rows, "row"))
        for i, (*_, rows) in zip(there, points, strict=True)
    )
    counts = Lines(
        "Rows by the probability of their most probable class",
        rows,
        axis(0.0, max(line.value for line in rows), 4),
        bars=True,
    )
    return (words, Beside((picture, counts)), details)


def which_columns(found: Findings) -> tuple[Block, ...]:
    """What shuffling each column costs."""
    important = found.importance
    if important is None:
        return (Text("There are too few rows to tell which columns matter."),)
    first = float(important.rise[0])
    decimals = 3 if first >= 0.1 else 4 if first >= 0.01 else 5
    lines = []
    for j, rise, error in zip(important.columns, important.rise, important.error, strict=True):
        ends = (rise - Z * error, rise + Z * error)
        said = f"{signed(rise, decimals)} ({' to '.join(signed(end, decimals) for end in ends)})"
        lines.append(Line(short(found.columns[j].name), rise, said, *ends, strong=ends[0] > 0.0))
    # Beside a column that decides, those that are worth next to nothing would be a list of zeros.
    drawn = [line for line in lines if line.value >= WORTH_A_LINE * first or not lines[0].strong]
    drawn = drawn[:MOST_LINES]
    scale = axis(
        min(0.0, *(line.low or 0.0 for line in drawn)),
        max(1e-3, *(line.high or 0.0 for line in drawn)),
        4,
        name="rise of the log loss when the column is shuffled",
    )
    words = (
        f"The cells of one column after the other were exchanged among {important.n_rows:,} rows "
        "that the model had not seen. The more the log loss rises, the more the model relies on "
        "the column; the bars are 95% intervals, and colored where they leave out zero. Columns "
        "that say the same share what they are worth, so two twins can both look unimportant."
    )
    if not any(line.strong for line in lines):
        words += (
            " No single column stands out here: the others make up for each, or none tells much."
        )
    if important.n_not_measured:
        words += (
            f" The time did not suffice for {count(important.n_not_measured, 'more column')}, "
            + (
                "in which the classes differ least."
                if important.by_promise
                else "picked at random."
            )
        )
    little = sum(line.value < WORTH_A_LINE * first for line in lines if lines[0].strong)
    if little:
        words += f" {count(little, 'column is', 'columns are')} worth less than 1% of the first."
    title = "What a column is worth"
    if len(lines) > len(drawn):
        title += f": the first {f'{len(drawn)} ' if len(drawn) > 1 else ''}of {len(lines)}"
    blocks: list[Block] = [Text(words), Lines(title, tuple(drawn), scale)]
    if len(lines) > len(drawn):
        rows = tuple(
            (short(found.columns[j].name), f"{rise:.4f}", f"{error:.4f}")
            for j, rise, error in zip(
                important.columns[:MOST_COLUMNS], important.rise, important.error, strict=False
            )
        )
        table = Table(
            "Rise of the log loss", ("column", "rise", "standard error"), rows, sortable=True
        )
        which = "All" if len(rows) == len(lines) else f"The first {len(rows)}"
        blocks.append(Details(f"{which} columns as a table", (table,)))
    return tuple(blocks)


def the_data(found: Findings) -> tuple[Block, ...]:
    """Classes, columns, and what was done to them."""
    counts, n = found.confusion.sum(axis=1), len(found.labels)
    order = np.argsort(-counts, kind="stable")
    title = "Rows of each class"
    if len(order) > MOST_LINES:
        title += f": the {MOST_LINES} largest of {len(order)}"
    classes = Lines(
        title,
        tuple(
            Line(
                short(found.classes[c]), int(counts[c]), f"{counts[c]:,} ({percent(counts[c] / n)})"
            )
            for c in order[:MOST_LINES]
        ),
        axis(0.0, float(counts.max()), 4),
        bars=True,
    )
    shown = found.columns[:MOST_COLUMNS]
    more = len(found.columns) - len(shown)
    columns = Table(
        "Columns" + (f" (the first {len(shown)})" if more else ""),
        ("column", "taken as", "missing cells", "values"),
        tuple((short(c.name), c.kind, f"{c.n_missing:,}", c.values) for c in shown),
        sortable=True,
    )
    notes = (
        Points(found.notes) if found.notes else Text("The features were used as the model says.")
    )
    return (
        Beside((classes, notes)),
        Details(f"The {count(len(found.columns), 'column')}", (columns,)),
    )


def how_to_reproduce(reproduce: str) -> tuple[Block, ...]:
    """The command and the versions."""
    return (
        Code(reproduce),
        Text(
            f"Made with {', '.join(versions())}. Apart from times and the date, the numbers come "
            "out equal."
        ),
    )
