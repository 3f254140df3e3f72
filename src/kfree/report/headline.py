"""The top of the page: what a person who decides must know, in words and four numbers."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from kfree.page import Block, Terms, Text, Tile, Tiles
from kfree.report.comparison import COMMONEST, KFREE, KNN
from kfree.report.findings import Findings, share_interval
from kfree.report.wording import percent, short
from kfree.tables.messages import count

#: A class of fewer rows is spoken of with care.
FEW_ROWS = 5
#: A calibration error below this is called small.
SMALL_ERROR = 0.03
#: Below this, a difference is more than chance makes.
LEVEL = 0.05
Z = 1.959963984540054
AGAINST_KNN = {
    "better than": "better than a kNN with a searched k",
    "worse than": "worse than a kNN with a searched k",
    "cannot be told from": "about as good as a kNN with a searched k",
}
PACKAGES = ("kfree", "scikit-learn", "numpy", "scipy")


def top(found: Findings) -> tuple[Block, ...]:
    """All that stands above the list of chapters."""
    sentences = (quality_words(found), label_words(found))
    return (
        Text(verdict(found), lead=True),
        tiles(found),
        Text(" ".join(sentences)),
        *rare_notice(found),
        facts(found),
    )


def verdict(found: Findings) -> str:
    """What to remember if nothing else is read: how good, against what, and what to trust."""
    words = f"Right for {percent(found.scores.accuracy)} of the rows"
    compared = found.comparison
    if compared is not None:
        if _too_hopeful(found):
            words = f"Right for {percent(compared.scores[KFREE].accuracy)} of the rows on folds"
        if _beats_commonest(found):
            words += f", {AGAINST_KNN[_beside_knn(found)]}"
        else:
            words += ", no better than always saying the commonest class"
    wrong = found.audit.wrong
    labels = "No sign of wrong labels."
    if wrong.n_contradicted and not wrong.explained_by_overlap:
        labels = f"{count(wrong.n_estimated, 'label is', 'labels are')} probably wrong."
    return f"{words}. {_probability_words(found)} {labels}"


def quality_words(found: Findings) -> str:
    """How good, against what, and how sure that is."""
    low, high = found.accuracy_interval
    words = (
        f"kfree names the right class for {percent(found.scores.accuracy)} of the "
        f"{len(found.labels):,} rows, each predicted from all others (95 % interval "
        f"{percent(low)} to {percent(high)})"
    )
    most = found.confusion.sum(axis=1).max() / len(found.labels)
    compared = found.comparison
    if compared is None:
        return f"{words}; the commonest class has {percent(most)}."
    ours, theirs, simple = (compared.scores[name].accuracy for name in (KFREE, KNN, COMMONEST))
    gap = 100 * (ours - simple)
    against = (
        f"{gap:.1f} percentage points above always saying the commonest class"
        if gap > 0
        else "no better than always saying the commonest class"
    )
    return (
        f"{words}. On {compared.n_splits} folds it is {against}, and {_beside_knn(found)} a kNN "
        f"whose k was searched ({percent(ours)} to {percent(theirs)}).{_too_hopeful(found)}"
    )


def _beats_commonest(found: Findings) -> bool:
    compared = found.comparison
    assert compared is not None
    return compared.scores[KFREE].accuracy > compared.scores[COMMONEST].accuracy


def _too_hopeful(found: Findings) -> str:
    """What to think of it where rows are predicted much better with all others than on folds."""
    compared = found.comparison
    assert compared is not None
    ours, low = compared.scores[KFREE].accuracy, found.accuracy_interval[0]
    high = share_interval(round(ours * len(found.labels)), len(found.labels))[1]
    if high >= low:
        return ""
    return (
        " That is far less than with all other rows: take what the folds say, and expect more only "
        "from more rows."
    )


def _beside_knn(found: Findings) -> str:
    compared = found.comparison
    assert compared is not None
    if compared.p_value >= LEVEL:
        return "cannot be told from"
    return "better than" if compared.n_only_kfree > compared.n_only_knn else "worse than"


def _probability_words(found: Findings) -> str:
    if _worse_than_shares(found):
        return (
            "On the folds its probabilities are worse than the plain shares of the classes: do not "
            "rely on them."
        )
    if found.scores.calibration_error <= found.calibration_by_chance:
        return "Its probabilities can be taken at their word."
    sure = found.probabilities.max(axis=1).mean() > found.scores.accuracy
    which = "too sure" if sure else "not sure enough"
    if found.scores.calibration_error < SMALL_ERROR:
        return f"Its probabilities are slightly {which}."
    return f"Its probabilities are {which}: take them with care."


def _worse_than_shares(found: Findings) -> bool:
    """Whether the log loss on the folds is above that of the classes' shares, beyond chance."""
    if found.comparison is None:
        return False
    losses = found.comparison.log_losses
    gap = losses[KFREE] - losses[COMMONEST]
    return bool(gap.mean() > Z * gap.std(ddof=1) / len(gap) ** 0.5)


def calibration_words(found: Findings) -> str:
    """What the probabilities said, what came true, and what chance makes."""
    error, chance = found.scores.calibration_error, found.calibration_by_chance
    confidence = float(found.probabilities.max(axis=1).mean())
    return (
        f"The probabilities say {percent(confidence)} on average and "
        f"{percent(found.scores.accuracy)} come true. The calibration error is {error:.3f}; "
        f"probabilities that are exactly right stay below {chance:.3f} with so many rows, 19 times "
        f"out of 20. {_probability_words(found)}"
    )


def label_words(found: Findings) -> str:
    """How many labels are contradicted, and whether overlap of the classes explains them."""
    n = found.audit.n_contradicted
    if not n:
        return "No label is contradicted by the other rows."
    return f"The other rows contradict {count(n, 'label')}. {found.audit.wrong.in_words}"


def _labels_beside(found: Findings) -> str:
    low, high = found.audit.wrong.interval
    n = found.audit.wrong.n_estimated
    if not found.audit.n_contradicted:
        return f"of {len(found.labels):,}: none is contradicted"
    if found.audit.wrong.explained_by_overlap:
        return f"of {len(found.labels):,}; overlap of the classes explains them"
    return f"of {len(found.labels):,}; about {n:,} wrong ({low:,} to {high:,})"


def tiles(found: Findings) -> Tiles:
    """Accuracy against the baseline, log loss, calibration and labels to check."""
    most = found.confusion.sum(axis=1).max() / len(found.labels)
    compared = found.comparison
    if compared is None:
        accuracy, loss = f"the commonest class has {percent(most)}", "0 would be perfect"
    else:
        ours, knn, simple = (compared.scores[name] for name in (KFREE, KNN, COMMONEST))
        # Leave-one-out knows more rows than a fold does: the rival stands beside what kfree has
        # on the same folds.
        accuracy = (
            f"on folds {percent(ours.accuracy)}, searched kNN {percent(knn.accuracy)}, commonest "
            f"class {percent(most)}"
        )
        loss = (
            f"on folds {ours.log_loss:.3f}, searched kNN {knn.log_loss:.3f}, class shares "
            f"{simple.log_loss:.3f}"
        )
    return Tiles(
        (
            Tile("Accuracy", percent(found.scores.accuracy), accuracy),
            Tile("Log loss", f"{found.scores.log_loss:.3f}", loss),
            Tile(
                "Calibration error",
                f"{found.scores.calibration_error:.3f}",
                f"chance alone makes up to {found.calibration_by_chance:.3f}",
            ),
            Tile(
                "Labels to check",
                f"{found.audit.n_contradicted:,}",
                _labels_beside(found),
            ),
        )
    )


def facts(found: Findings) -> Terms:
    """The data, the date and the versions."""
    now = datetime.now(UTC)
    size = (
        f"{count(len(found.labels), 'row')}, {count(len(found.columns), 'column')} beside the "
        f"labels, {len(found.classes)} classes"
    )
    model = type(found.classifier).__name__
    return Terms(
        (
            ("Data", size),
            ("Model", model),
            ("Made", f"{now.day} {now:%B %Y, %H:%M} UTC"),
            ("With", ", ".join(versions())),
        ),
        short=True,
    )


def versions() -> list[str]:
    """Of Python and of the packages that the numbers depend on."""
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} (not installed as a package)")
    return [*found, f"Python {platform.python_version()}"]


def rare_notice(found: Findings) -> tuple[Block, ...]:
    """What is to be thought of classes with next to no rows."""
    counts = found.confusion.sum(axis=1)
    rare = [
        f"{short(name)!r} ({n_rows})"
        for name, n_rows in zip(found.classes, counts, strict=True)
        if n_rows < FEW_ROWS
    ]
    if not rare:
        return ()
    named = f"{', '.join(rare[:8])}{f' and {len(rare) - 8} more' if len(rare) > 8 else ''}"
    return (
        Text(
            f"Classes with fewer than {FEW_ROWS} rows: {named}. What is said about them "
            "rests on next to nothing; a class with a single row cannot be recognized once that "
            "row is left out.",
            notice=True,
        ),
    )
