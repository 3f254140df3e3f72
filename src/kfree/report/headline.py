"""The top of the page: what a person who decides must know, in words and four numbers."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from kfree.evaluation.scores import Scores
from kfree.page import Block, Terms, Text, Tile, Tiles
from kfree.report.comparison import COMMONEST, EPS, KFREE, KNN, Comparison
from kfree.report.findings import Findings, share_interval
from kfree.report.wording import number, percent, short
from kfree.tables.messages import count

#: Of fewer rows nothing is said but that they are few: with 12 rows, all of them predicted
#: correctly, the 95% interval of the accuracy still begins at 76%.
TOO_FEW = 12
#: A class of fewer rows is spoken of with care.
FEW_ROWS = 5
#: Classes of which a smaller share is recognized are named at the top.
MISSED = 0.5
#: A calibration error below this is called small.
SMALL_ERROR = 0.03
#: Below this, a difference is more than chance makes.
LEVEL = 0.05
Z = 1.959963984540054
#: Leave-one-out whose log loss is higher than that of the folds by this, beyond chance, is wrong.
FAR = 0.1
#: A model that is right for so many rows and relies on one column so much more than on the next
#: may have been told the answer.
TOO_GOOD = 0.98
ALONE = 10.0
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
        *missed_notice(found),
        *rare_notice(found),
        *one_column_notice(found),
        facts(found),
    )


def verdict(found: Findings) -> str:
    """What to remember if nothing else is read: how good, against what, and what to trust."""
    words = f"Right for {percent(_scores(found).accuracy)} of the rows"
    if len(found.labels) < TOO_FEW:
        return f"{words}. But {len(found.labels)} rows are too few to judge anything by."
    if found.comparison is not None:
        if by_folds(found):
            words += " on folds"
        if _beats_commonest(found):
            words += f", {AGAINST_KNN[_beside_knn(found)]}"
            if _beside_knn(found) != "better than" and _has_better_probabilities(found.comparison):
                words += ", with better probabilities"
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
    sure = f"(95% interval {percent(low)} to {percent(high)})"
    words = (
        f"kfree names the right class for {percent(found.scores.accuracy)} of the "
        f"{len(found.labels):,} rows, each predicted from all others {sure}"
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
        f"whose k was searched ({percent(ours)} against {percent(theirs)}).{by_folds(found)}"
    )


def by_folds(found: Findings) -> str:
    """A sentence where leave-one-out and the folds contradict each other, and folds are believed.

    Leave-one-out knows more rows than a fold does, so it should be somewhat better. Far better it
    cannot be, nor worse.
    """
    compared = found.comparison
    if compared is None:
        return ""
    n_rows, ours = len(found.labels), compared.scores[KFREE]
    if share_interval(round(ours.accuracy * n_rows), n_rows)[1] < found.accuracy_interval[0]:
        return (
            " That is far less than with all other rows: take what the folds say, and expect more "
            "only from more rows."
        )
    true = found.probabilities[np.arange(n_rows), np.searchsorted(found.classes, found.labels)]
    gap = -np.log(np.maximum(true, EPS)) - compared.log_losses[KFREE]
    if gap.mean() - Z * gap.std(ddof=1) / n_rows**0.5 <= FAR:
        return ""
    return (
        f" The log loss is {ours.log_loss:.3f} there and {found.scores.log_loss:.3f} with all "
        "other rows, which should do better than a part of them: take what the folds say."
    )


def _scores(found: Findings) -> Scores:
    """What to believe of kfree: leave-one-out, or the folds where they contradict it."""
    if found.comparison is None or not by_folds(found):
        return found.scores
    return found.comparison.scores[KFREE]


def _beats_commonest(found: Findings) -> bool:
    compared = found.comparison
    assert compared is not None
    return compared.scores[KFREE].accuracy > compared.scores[COMMONEST].accuracy


def _beside_knn(found: Findings) -> str:
    compared = found.comparison
    assert compared is not None
    if compared.p_value >= LEVEL:
        return "cannot be told from"
    return "better than" if compared.n_only_kfree > compared.n_only_knn else "worse than"


def _has_better_probabilities(compared: Comparison) -> bool:
    """Whether the log loss on the folds is below that of the kNN, beyond chance."""
    gap = compared.log_losses[KNN] - compared.log_losses[KFREE]
    return bool(gap.mean() > Z * gap.std(ddof=1) / len(gap) ** 0.5)


def _probability_words(found: Findings) -> str:
    if _worse_than_shares(found):
        return (
            "On the folds its probabilities are worse than the plain shares of the classes: do not "
            "rely on them."
        )
    error = _scores(found).calibration_error
    if error <= found.calibration_by_chance:
        return "Its probabilities can be taken at their word."
    sure = found.probabilities.max(axis=1).mean() > found.scores.accuracy
    which = "off" if by_folds(found) else "too sure" if sure else "not sure enough"
    if error < SMALL_ERROR:
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
    last = _probability_words(found)
    if by_folds(found):
        last = f"But the folds contradict leave-one-out here, and count for more. On them: {last}"
    return (
        f"The probabilities say {percent(confidence)} on average and "
        f"{percent(found.scores.accuracy)} come true. The calibration error is {error:.3f}; "
        f"probabilities that are exactly right stay below {chance:.3f} with so many rows, 19 times "
        f"out of 20. {last}"
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
        return f"of {len(found.labels):,}; overlap of the classes may explain that"
    return f"of {len(found.labels):,}; about {n:,} wrong ({low:,} to {high:,})"


def tiles(found: Findings) -> Tiles:
    """Accuracy against the baseline, log loss, calibration and contradicted labels."""
    most = found.confusion.sum(axis=1).max() / len(found.labels)
    compared, ours = found.comparison, _scores(found)
    error = f"chance alone makes up to {found.calibration_by_chance:.3f}"
    if compared is None:
        accuracy, loss = f"the commonest class has {percent(most)}", "0 would be perfect"
    else:
        knn, simple = compared.scores[KNN], compared.scores[COMMONEST]
        # Leave-one-out knows more rows than a fold does: the rival stands beside what kfree has
        # on the same folds.
        folds = compared.scores[KFREE]
        on = (f"on folds {percent(folds.accuracy)}", f"on folds {number(folds.log_loss)}")
        if by_folds(found):
            on, error = ("on folds", "on folds"), f"on folds; {error}"
        accuracy = (
            f"{on[0]}, searched kNN {percent(knn.accuracy)}, "
            f"commonest class {percent(simple.accuracy)}"
        )
        loss = (
            f"{on[1]}, searched kNN {number(knn.log_loss)}, class shares {number(simple.log_loss)}"
        )
    return Tiles(
        (
            Tile("Accuracy", percent(ours.accuracy), accuracy),
            Tile("Log loss", number(ours.log_loss), loss),
            Tile("Calibration error", f"{ours.calibration_error:.3f}", error),
            Tile(
                "Contradicted labels",
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


def missed_notice(found: Findings) -> tuple[Block, ...]:
    """Which classes are mostly taken for another, which a high accuracy hides if they are rare."""
    counts, right = found.confusion.sum(axis=1), np.diag(found.confusion)
    if len(found.labels) < TOO_FEW or found.comparison is None or not _beats_commonest(found):
        return ()
    missed = np.flatnonzero((counts >= FEW_ROWS) & (right < MISSED * counts))
    if not len(missed):
        return ()
    worst = missed[np.argsort(right[missed] / counts[missed], kind="stable")]
    each = [
        f"{right[i]:,} of the {counts[i]:,} rows labeled {short(found.classes[i])!r}"
        for i in worst[:3]
    ]
    words = f"{', '.join(each[:-1])} and {each[-1]}" if len(each) > 1 else each[0]
    more = f", and less than half of {count(len(worst) - 3, 'other class', 'other classes')}"
    return (
        Text(
            f"It recognizes only {words}{more if len(worst) > 3 else ''}. Where these matter more "
            "than the others, decide by the probabilities and a threshold of your own, not by the "
            "most probable class.",
            notice=True,
        ),
    )


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


def one_column_notice(found: Findings) -> tuple[Block, ...]:
    """What is to be thought of a model that is nearly always right by a single column."""
    important = found.importance
    if important is None or _scores(found).accuracy < TOO_GOOD or len(found.columns) < 2:
        return ()
    first, *others = important.rise
    shares = found.confusion.sum(axis=1) / len(found.labels)
    nothing_known = -float((shares * np.log(shares)).sum())
    if first < max(ALONE * max(others, default=0.0), 0.5 * nothing_known):
        return ()
    name = short(found.columns[important.columns[0]].name)
    return (
        Text(
            f"Nearly all of this rests on the column {name!r}. If it is only known once the label "
            "is, leave it out (--drop), and make the page again.",
            notice=True,
        ),
    )
