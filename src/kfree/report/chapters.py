"""The numbers of a report in words, tables and pictures."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from scipy.stats import binomtest

from kfree.displays import KPosteriorDisplay, ReliabilityDisplay
from kfree.displays.k_posterior import runs
from kfree.page import Block, Code, Details, Picture, Points, Table, Text
from kfree.page.figures import as_png, new_figure
from kfree.report.comparison import COMMONEST, KFREE, KNN
from kfree.report.findings import Findings
from kfree.report.meaning import MEANING
from kfree.report.row_tables import suspicious, uncertain
from kfree.report.wording import percent, short
from kfree.tables.messages import count

MOST_COLUMNS = 60
FEW_ROWS = 5
#: Of a picture, 4.8 inches wide, whose letters can then still be read on a phone.
DPI, WIDTH = 200, 560
#: A label with a lower probability than this is strongly contradicted.
STRONGLY = 0.05
#: A calibration error below this is called small.
SMALL_ERROR = 0.03
PACKAGES = ("kfree", "scikit-learn", "numpy", "scipy")


@dataclass(frozen=True)
class Chapter:
    """A chapter; links use its name."""

    name: str
    title: str
    blocks: tuple[Block, ...]


def chapters(found: Findings, reproduce: str) -> tuple[Chapter, ...]:
    """All chapters in their order."""
    return (
        Chapter("short", "In short", inshort(found)),
        Chapter("data", "The data", the_data(found)),
        Chapter("quality", "How good is the classifier?", how_good(found)),
        Chapter("k", "How many neighbours?", how_many_neighbors(found)),
        Chapter("calibration", "Can the probabilities be relied on?", calibration(found)),
        Chapter("confusion", "Which classes are taken for which?", confusion(found)),
        Chapter("uncertain", "The most uncertain rows", uncertain(found)),
        Chapter("labels", "Labels that look wrong", suspicious(found)),
        Chapter("meaning", "What the numbers mean", (MEANING,)),
        Chapter("reproduce", "How to make this page again", how_to_reproduce(reproduce)),
    )


def inshort(found: Findings) -> tuple[Block, ...]:
    """The findings in a few sentences."""
    low, high = found.accuracy_interval
    points = [
        f"{count(len(found.labels), 'row')}, {count(len(found.columns), 'column')} beside the "
        f"labels, {len(found.classifier.classes_)} classes.",
        f"With each row left out in turn, kfree names the right class for "
        f"{percent(found.scores.accuracy)} of the rows (95 % interval {percent(low)} to "
        f"{percent(high)}).",
    ]
    if found.comparison is not None:
        scores = found.comparison.scores
        points.append(
            f"On {found.comparison.n_splits} folds kfree is right for "
            f"{percent(scores[KFREE].accuracy)}, a kNN whose k was searched for "
            f"{percent(scores[KNN].accuracy)}, and always saying the commonest class for "
            f"{percent(scores[COMMONEST].accuracy)}."
        )
    points.append(_calibration_words(found))
    points.append(_suspect_words(found))
    return (Points(tuple(points)), *_rare_notice(found))


def the_data(found: Findings) -> tuple[Block, ...]:
    """Classes, columns, and what was done to them."""
    counts, n = found.confusion.sum(axis=1), len(found.labels)
    classes = Table(
        "Classes",
        ("class", "rows", "share"),
        tuple(
            (short(name), f"{n_rows:,}", percent(n_rows / n))
            for name, n_rows in zip(found.classifier.classes_, counts, strict=True)
        ),
        sortable=True,
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
    listed: Block = Details(f"The {len(found.columns)} columns", (columns,))
    return (classes, notes, listed)


def how_good(found: Findings) -> tuple[Block, ...]:
    """Scores beside those of rivals."""
    rows = [_score_row("kfree\nleave-one-out", found.scores, found.seconds)]
    words: list[Block] = []
    compared = found.comparison
    if compared is None:
        words.append(Text("There are too few rows to compare kfree with others on folds."))
    else:
        rows += [
            _score_row(f"{name}\n{compared.n_splits} folds", scores, compared.seconds[name])
            for name, scores in compared.scores.items()
        ]
        words.append(Text(_beside_knn(found)))
        k = sorted(set(compared.knn_k))
        words.append(
            Text(
                f"The kNN is the plain majority vote of the k nearest; its k was searched among 1 "
                f"to 50 by cross validation inside each training part (chosen: "
                f"{', '.join(map(str, k))}). A class that none of its k neighbours has gets the "
                "probability 0, and each row where such a class was the true one costs a log loss "
                "of 36."
            )
        )
        if compared.n_unknown:
            words.append(
                Text(
                    f"{count(compared.n_unknown, 'row has', 'rows have')} a class that occurs "
                    "only in one fold: when that fold is left out nobody can know it, and the log "
                    "loss of all on the folds is the higher for it.",
                    notice=True,
                )
            )
    table = Table(
        "Scores on rows that were left out",
        ("classifier", "accuracy", "macro F", "log loss", "Brier", "calibration error", "seconds"),
        tuple(rows),
    )
    return (
        Text(
            "Every row was predicted by a model that did not know its label. Leave-one-out is "
            "what kfree gives without a refit; for the comparison all classifiers had the same "
            "folds. Accuracy and macro F are better when higher, the others when lower."
        ),
        table,
        *words,
    )


def how_many_neighbors(found: Findings) -> tuple[Block, ...]:
    """The posterior of k."""
    model = found.classifier
    probabilities = np.asarray(model.k_posterior_)
    figure = new_figure(4.8, 3.2)
    display = KPosteriorDisplay(
        k=np.arange(1, len(probabilities) + 1), k_probabilities=probabilities
    )
    display.plot(ax=figure.subplots())
    inside = display.k[display.in_set]
    best = int(model.k_optimal_)
    words = (
        f"The most probable number of neighbours is {best} (probability "
        f"{probabilities[best - 1]:.2f}). The smallest set that holds 95 % of the probability: "
        f"{runs(inside, 12)}. The strength of a neighbour's pull, beta, is "
        f"{model.beta_mean_:.2f} ± {model.beta_std_:.2f}."
    )
    spread = (
        "Nearly all of the probability is there."
        if len(inside) <= 2
        else "Several k explain the labels about equally well. Nothing has to be chosen: every "
        "prediction is averaged over all of them, by these probabilities."
    )
    return (
        Text(
            "kfree does not choose the number of neighbours k. It computes from the labels how "
            "probable each k is."
        ),
        Picture(
            "k.png",
            as_png(figure, DPI, crop=True),
            f"Bars of the probability of each number of neighbours. {words}",
            "The posterior of k; dark bars are the 95 % credible set",
            width=WIDTH,
        ),
        Text(f"{words} {spread}"),
    )


def calibration(found: Findings) -> tuple[Block, ...]:
    """The reliability diagram with its numbers."""
    bins = found.reliability
    figure = new_figure(4.8, 5.0)
    ReliabilityDisplay(reliability=bins).plot(ax=figure.subplots())
    rows = tuple(
        (
            f"{low:.1f} to {high:.1f}",
            f"{n_rows:,}",
            f"{said:.3f}",
            f"{true:.3f}",
            f"{below:.3f} to {above:.3f}",
        )
        for low, high, n_rows, said, true, below, above in zip(
            bins.edges[:-1],
            bins.edges[1:],
            bins.count,
            bins.predicted,
            bins.observed,
            bins.lower,
            bins.upper,
            strict=True,
        )
        if n_rows
    )
    table = Table(
        "Predicted probability of the most probable class, and what came true",
        ("probability", "rows", "mean predicted", "share right", "95 % interval"),
        rows,
    )
    return (
        Text(
            "If probabilities can be relied on, then of all the rows that are given 80 %, 80 % are "
            "right: the points lie on the dashed line. Each row was left out in turn."
        ),
        Picture(
            "calibration.png",
            as_png(figure, DPI, crop=True),
            "Reliability diagram: the share of rows whose most probable class was right, over the "
            f"predicted probability, in bins of a tenth. {_calibration_words(found)} The numbers "
            "are in the table below.",
            "Reliability of the leave-one-out probabilities, and the number of rows in each bin",
            width=WIDTH,
        ),
        Text(_calibration_words(found)),
        Details("The numbers of this picture", (table,)),
    )


def confusion(found: Findings) -> tuple[Block, ...]:
    """Rows by label and predicted class."""
    names = [short(name) for name in found.classifier.classes_]
    totals = found.confusion.sum(axis=1)
    shares = found.confusion / np.maximum(totals, 1)[:, None]
    rows = tuple(
        (name, *(f"{n:,}" for n in line), f"{total:,}", percent(shares[c, c]))
        for c, (name, line, total) in enumerate(zip(names, found.confusion, totals, strict=True))
    )
    shades = tuple((*(float(share) for share in line), 0.0, 0.0) for line in shares)
    apart = found.confusion.copy()
    np.fill_diagonal(apart, 0)
    words = "No row is taken for another class."
    if apart.any():
        first = [np.unravel_index(i, apart.shape) for i in np.argsort(-apart, axis=None)[:3]]
        pairs = [
            f"{names[a]!r} for {names[b]!r} ({count(int(apart[a, b]), 'row')})"
            for a, b in first
            if apart[a, b]
        ]
        words = f"Most often taken: {', '.join(pairs)}."
    return (
        Text(
            "Rows by their label (down) and by the class that kfree names when the row is left "
            f"out (across). {words}"
        ),
        Table(
            "Labels (down) and predicted classes (across)",
            ("label", *names, "rows", "right"),
            rows,
            shades=shades,
        ),
    )


def how_to_reproduce(reproduce: str) -> tuple[Block, ...]:
    """The command and the versions."""
    versions = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            versions.append(f"{package} (not installed as a package)")
    return (
        Code(reproduce),
        Text(f"Made with {', '.join(versions)}. Apart from the times, the numbers come out equal."),
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


def _beside_knn(found: Findings) -> str:
    compared = found.comparison
    assert compared is not None
    ours, theirs = compared.n_only_kfree, compared.n_only_knn
    words = (
        f"On the folds {count(ours, 'row was', 'rows were')} right with kfree and wrong with the "
        f"kNN, {count(theirs, 'row', 'rows')} the other way round"
    )
    if ours + theirs == 0:
        return f"{words}: both say the same."
    p = binomtest(ours, ours + theirs).pvalue
    verdict = "more than chance" if p < 0.05 else "no more than chance may do"
    return f"{words}; that is {verdict} (sign test, p = {p:.2g})."


def _calibration_words(found: Findings) -> str:
    error, chance = found.scores.calibration_error, found.calibration_by_chance
    confidence = float(found.posterior.class_probabilities.max(axis=1).mean())
    words = (
        f"The probabilities say {percent(confidence)} on average and "
        f"{percent(found.scores.accuracy)} come true; the calibration error is {error:.3f}"
    )
    if error <= chance:
        return (
            f"{words}, no more than chance makes with so many rows (up to {chance:.3f}): they can "
            "be taken at their word."
        )
    which = "too sure" if confidence > found.scores.accuracy else "not sure enough"
    size = "but small" if error < SMALL_ERROR else "so take them with care"
    return (
        f"{words}, more than chance makes with so many rows (up to {chance:.3f}), {size}; on the "
        f"whole they are {which}."
    )


def _suspect_words(found: Findings) -> str:
    n = found.audit.n_contradicted
    if not n:
        return "No label is contradicted by the other rows."
    strongly = int((found.audit.given_probability < STRONGLY).sum())
    return (
        f"{count(n, 'label is', 'labels are')} contradicted by the other rows, {strongly} of them "
        f"strongly (the label has a probability below {100 * STRONGLY:.0f} %)."
    )


def _rare_notice(found: Findings) -> tuple[Block, ...]:
    counts = found.confusion.sum(axis=1)
    rare = [
        f"{short(name)!r} ({n_rows})"
        for name, n_rows in zip(found.classifier.classes_, counts, strict=True)
        if n_rows < FEW_ROWS
    ]
    if not rare:
        return ()
    return (
        Text(
            f"Classes with fewer than {FEW_ROWS} rows: {', '.join(rare)}. What is said about them "
            "rests on next to nothing; a class with a single row cannot be recognised once that "
            "row is left out.",
            notice=True,
        ),
    )
