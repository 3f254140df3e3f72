"""All numbers of a report."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from kfree.audit import LabelAudit, audit_labels
from kfree.displays import Reliability, reliability
from kfree.evaluation.scores import Scores, score
from kfree.report.columns import ColumnSummary, summarize
from kfree.report.comparison import Comparison, compare
from kfree.report.held_out import HeldOut, check_fitted_on, hold_out, parts
from kfree.report.importance import Importance, column_importance
from kfree.tables import TablePreparation, TableWarning

#: How often labels are drawn to learn what calibration error chance alone makes.
N_CHANCE = 400


@dataclass(frozen=True)
class Findings:
    """What was measured. All of kfree itself is leave-one-out.

    Attributes
    ----------
    classifier : KFreeClassifier
        Fitted on all rows.
    X : DataFrame or ndarray of shape (n_samples, n_columns)
        The table itself, whose cells are shown.
    row_names : ndarray of shape (n_samples,)
        What each row is called: its place in the index, and its identifier if it has one.
    counted_from : int or None
        The number of the first row, where the names begin with numbers.
    labels : ndarray of shape (n_samples,)
    held_out : HeldOut
        What is said of each row when its own label is unknown.
    predicted : ndarray of shape (n_samples,) of int
        The most probable class, as its index in `classifier.classes_`.
    scores : Scores
        Of kfree.
    reliability : Reliability
    calibration_by_chance : float
        The calibration error that perfectly calibrated probabilities stay below with these rows,
        19 times out of 20.
    confusion : ndarray of shape (n_classes, n_classes) of int
        Rows by label and by predicted class.
    audit : LabelAudit
    comparison : Comparison or None
        None: too few rows.
    importance : Importance or None
        Which columns matter; None: too few rows.
    columns : tuple of ColumnSummary
    notes : tuple of str
        What was done to the columns.
    seconds : float
        Time for fit (0 if the model was fitted before) and the leave-one-out probabilities.
    """

    classifier: Any
    X: Any
    row_names: NDArray
    counted_from: int | None
    labels: NDArray
    held_out: HeldOut
    predicted: NDArray[np.intp]
    scores: Scores
    reliability: Reliability
    calibration_by_chance: float
    confusion: NDArray[np.int64]
    audit: LabelAudit
    comparison: Comparison | None
    importance: Importance | None
    columns: tuple[ColumnSummary, ...]
    notes: tuple[str, ...]
    seconds: float

    @property
    def classes(self) -> NDArray:
        """The classes, sorted."""
        return self.classifier.classes_

    @property
    def probabilities(self) -> NDArray[np.floating]:
        """Leave-one-out: (n_samples, n_classes)."""
        return self.held_out.probabilities

    @property
    def accuracy_interval(self) -> tuple[float, float]:
        """95% interval of the leave-one-out accuracy."""
        return share_interval(int(np.trace(self.confusion)), len(self.labels))

    @property
    def most_uncertain(self) -> NDArray[np.intp]:
        """All rows, the one whose most probable class is least probable first."""
        return self.probabilities.max(axis=1).argsort(kind="stable")

    def summary(self) -> dict[str, Any]:
        """The main numbers, as JSON can hold them."""
        about_k, important = self.held_out.k, self.importance
        return {
            "n_rows": len(self.labels),
            "n_columns": len(self.columns),
            "classes": {
                str(name): int(n)
                for name, n in zip(self.classes, self.confusion.sum(axis=1), strict=True)
            },
            "k_most_probable": None if about_k is None else about_k.best,
            "leave_one_out": _as_dict(self.scores),
            "accuracy_interval": list(self.accuracy_interval),
            "comparison": None
            if self.comparison is None
            else {name: _as_dict(scores) for name, scores in self.comparison.scores.items()},
            "log_loss_rise_without_column": None
            if important is None
            else {
                self.columns[j].name: float(rise)
                for j, rise in zip(important.columns, important.rise, strict=True)
            },
            "n_contradicted_labels": self.audit.n_contradicted,
            "n_wrong_labels_estimated": self.audit.n_estimated,
        }


def find(
    model: Any,
    X: Any,
    y: Any,
    row_names: Any,
    count_from: int,
    notes: Sequence[str],
    step: Callable[[str], Any],
) -> Findings:
    """Measure everything. `model` is fitted on X and y unless it is already."""
    X = X.to_pandas() if hasattr(X, "to_pandas") else X
    X, y = X if hasattr(X, "iloc") else np.asarray(X), np.asarray(y)
    preparation, classifier = parts(model)
    start = time.perf_counter()
    if not _is_fitted(model):
        step("fitting the model")
        model.fit(X, y)
        preparation, classifier = parts(model)
    check_fitted_on(classifier, y)
    step("leaving out each row in turn")
    held_out = hold_out(classifier)
    seconds = time.perf_counter() - start
    probabilities, classes = held_out.probabilities, classifier.classes_
    predicted, labels = probabilities.argmax(axis=1), np.searchsorted(classes, y)
    confusion = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(confusion, (labels, predicted), 1)
    step("judging the labels")
    audit = audit_labels(classifier, probabilities=probabilities)
    table = _table_step(preparation)
    columns = summarize(X if table is None else table.readable(X), table)
    with warnings.catch_warnings():
        # In a fold a category may be new; of the whole table the notes tell.
        warnings.simplefilter("ignore", TableWarning)
        compared = compare(preparation, classifier, X, y, step)
        important = None
        if compared is not None:
            step("shuffling one column after the other")
            left_out = [j for j, column in enumerate(columns) if column.left_out]
            important = column_importance(compared[1], X, labels, left_out)
    return Findings(
        classifier=classifier,
        X=X,
        row_names=_row_names(X, row_names, count_from, table),
        counted_from=count_from if row_names is None and _is_counted(X) else None,
        labels=y,
        held_out=held_out,
        predicted=predicted,
        scores=score(y, classes[predicted], probabilities, classes),
        reliability=reliability(y, probabilities, classes),
        calibration_by_chance=calibration_by_chance(probabilities.max(axis=1)),
        confusion=confusion,
        audit=audit,
        comparison=None if compared is None else compared[0],
        importance=important,
        columns=columns,
        notes=(*notes, *(table.notes_ if table is not None else ())),
        seconds=seconds,
    )


def share_interval(n_right: int, n: int) -> tuple[float, float]:
    """The 95% interval of a share (Wilson)."""
    interval = binomtest(n_right, n).proportion_ci(0.95, method="wilson")
    return float(interval.low), float(interval.high)


def calibration_by_chance(confidence: NDArray[np.floating], n_bins: int = 10) -> float:
    """The calibration error that probabilities which are true stay below 19 times out of 20."""
    generator = np.random.default_rng(0)
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    errors = []
    for _ in range(N_CHANCE):
        gap = confidence - (generator.random(len(confidence)) < confidence)
        errors.append(np.abs(np.bincount(bins, weights=gap)).sum() / len(confidence))
    return float(np.quantile(errors, 0.95))


def _as_dict(scores: Scores) -> dict[str, float]:
    return {name: float(getattr(scores, name)) for name in scores.__slots__}


def _is_fitted(model: Any) -> bool:
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def _table_step(preparation: Any) -> TablePreparation | None:
    """The step that knows what was done to the columns."""
    steps = [step for _, step in preparation.steps] if preparation is not None else []
    return next((step for step in steps if isinstance(step, TablePreparation)), None)


def _row_names(X: Any, given: Any, count_from: int, table: TablePreparation | None) -> NDArray:
    if given is not None:
        if len(given) != len(X):
            raise ValueError(f"row_names has {len(given)} names, but X has {len(X)} rows.")
        return np.asarray(given)
    index = np.asarray(X.index) if hasattr(X, "iloc") else np.arange(len(X))
    names = index + count_from if _is_counted(X) else index
    if table is None or not table.identifiers_:
        return names
    # An identifier tells nothing about the class, but it tells people which row is meant.
    cells = X.iloc[:, [str(name) for name in X.columns].index(table.identifiers_[0])]
    if [str(cell).strip() for cell in cells] == [str(name) for name in names]:
        return names
    return np.array([f"{name} ({cell})" for name, cell in zip(names, cells, strict=True)])


def _is_counted(X: Any) -> bool:
    return not hasattr(X, "iloc") or X.index.dtype.kind == "i"
