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
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from kfree.audit import LabelAudit, audit_labels
from kfree.classifier import KFreeClassifier
from kfree.displays import Reliability, reliability
from kfree.evaluation.scores import Scores, score
from kfree.posterior import Posterior
from kfree.report.columns import ColumnSummary, summarize
from kfree.report.comparison import Comparison, compare
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
    row_names : ndarray of shape (n_samples,)
        What each row is called: its place in the index, and its identifier if it has one.
    counted_from : int or None
        The number of the first row, where the names begin with numbers.
    labels : ndarray of shape (n_samples,)
    posterior : Posterior
        Of each row when its own label is unknown.
    predicted : ndarray of shape (n_samples,) of int
        The most probable class, as its index in `classifier.classes_`.
    scores : Scores
        Of kfree.
    accuracy_interval : tuple of two float
        95 % interval (Wilson).
    reliability : Reliability
    calibration_by_chance : float
        The calibration error that perfectly calibrated probabilities stay below with these rows,
        19 times out of 20.
    confusion : ndarray of shape (n_classes, n_classes) of int
        Rows by label and by predicted class.
    audit : LabelAudit
    comparison : Comparison or None
        None: too few rows.
    columns : tuple of ColumnSummary
    notes : tuple of str
        What was done to the columns.
    seconds : float
        Time for fit (0 if the model was fitted before) and the leave-one-out posterior.
    """

    classifier: KFreeClassifier
    row_names: NDArray
    counted_from: int | None
    labels: NDArray
    posterior: Posterior
    predicted: NDArray[np.intp]
    scores: Scores
    accuracy_interval: tuple[float, float]
    reliability: Reliability
    calibration_by_chance: float
    confusion: NDArray[np.int64]
    audit: LabelAudit
    comparison: Comparison | None
    columns: tuple[ColumnSummary, ...]
    notes: tuple[str, ...]
    seconds: float

    @property
    def most_uncertain(self) -> NDArray[np.intp]:
        """All rows, the one whose most probable class is least probable first."""
        return self.posterior.class_probabilities.max(axis=1).argsort(kind="stable")

    def summary(self) -> dict[str, Any]:
        """The main numbers, as JSON can hold them."""
        return {
            "n_rows": len(self.labels),
            "n_columns": len(self.columns),
            "classes": {
                str(name): int(n)
                for name, n in zip(
                    self.classifier.classes_, self.confusion.sum(axis=1), strict=True
                )
            },
            "k_most_probable": int(self.classifier.k_optimal_),
            "leave_one_out": {
                name: float(getattr(self.scores, name)) for name in self.scores.__slots__
            },
            "accuracy_interval": list(self.accuracy_interval),
            "comparison": None
            if self.comparison is None
            else {
                name: {field: float(getattr(scores, field)) for field in scores.__slots__}
                for name, scores in self.comparison.scores.items()
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
    preparation, classifier = _parts(model)
    if getattr(classifier, "metric", None) == "precomputed":
        raise ValueError("A report needs the features; metric='precomputed' has none.")
    start = time.perf_counter()
    if not _is_fitted(model):
        step("fitting the model")
        model.fit(X, y)
        preparation, classifier = _parts(model)
    labels = classifier.classes_[classifier._model.labels]
    if len(labels) != len(y) or not (labels == y).all():
        raise ValueError(
            f"The model was fitted on other rows than the {len(y)} that are to be reported on; "
            "give the rows and labels of fit, or an unfitted model."
        )
    step("leaving out each row in turn")
    posterior = classifier.posterior(None)
    seconds = time.perf_counter() - start
    probabilities, classes = posterior.class_probabilities, classifier.classes_
    predicted = probabilities.argmax(axis=1)
    n_right = int((classes[predicted] == y).sum())
    interval = binomtest(n_right, len(y)).proportion_ci(0.95, method="wilson")
    confusion = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(confusion, (classifier._model.labels, predicted), 1)
    step("judging the labels")
    audit = audit_labels(classifier, probabilities=probabilities)
    with warnings.catch_warnings():
        # In a fold a category may be new; of the whole table the notes tell.
        warnings.simplefilter("ignore", TableWarning)
        comparison = compare(preparation, classifier, X, y, step)
    table = _table_step(preparation)
    return Findings(
        classifier=classifier,
        row_names=_row_names(X, row_names, count_from, table),
        counted_from=count_from if row_names is None and _is_counted(X) else None,
        labels=y,
        posterior=posterior,
        predicted=predicted,
        scores=score(y, classes[predicted], probabilities, classes),
        accuracy_interval=(float(interval.low), float(interval.high)),
        reliability=reliability(y, probabilities, classes),
        calibration_by_chance=calibration_by_chance(probabilities.max(axis=1)),
        confusion=confusion,
        audit=audit,
        comparison=comparison,
        columns=summarize(X if table is None else table.readable(X), table),
        notes=(*notes, *(table.notes_ if table is not None else ())),
        seconds=seconds,
    )


def calibration_by_chance(confidence: NDArray[np.floating], n_bins: int = 10) -> float:
    """The calibration error that probabilities which are true stay below 19 times out of 20."""
    generator = np.random.default_rng(0)
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    errors = []
    for _ in range(N_CHANCE):
        gap = confidence - (generator.random(len(confidence)) < confidence)
        errors.append(np.abs(np.bincount(bins, weights=gap)).sum() / len(confidence))
    return float(np.quantile(errors, 0.95))


def _parts(model: Any) -> tuple[Any, Any]:
    """What comes before the classifier, or None, and the classifier."""
    classifier = model[-1] if isinstance(model, Pipeline) else model
    if not isinstance(classifier, KFreeClassifier):
        raise TypeError(
            "A report is about a KFreeClassifier, or a Pipeline that ends in one; "
            f"got {type(classifier).__name__}."
        )
    before = model[:-1] if isinstance(model, Pipeline) and len(model) > 1 else None
    return before, classifier


def _is_fitted(model: Any) -> bool:
    from sklearn.exceptions import NotFittedError

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
    return np.array([f"{name} ({cell})" for name, cell in zip(names, cells, strict=True)])


def _is_counted(X: Any) -> bool:
    return not hasattr(X, "iloc") or X.index.dtype.kind == "i"
