"""From a file and the name of a column to a fitted model: what several commands begin with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from kfree.candidates import most_probable
from kfree.commands.models import make_classifier, usual_model
from kfree.commands.options import STANDARD
from kfree.commands.progress import Working
from kfree.evaluation.scores import Scores, score
from kfree.plain_text import quoted, shown
from kfree.tables import TableError, TablePreparation, read_cells, split_target, without_odd_rows
from kfree.tables.messages import count
from kfree.tables.numbers import given_style


@dataclass(frozen=True)
class Task:
    """A table with labels."""

    name: str
    features: Any  # pandas.DataFrame, as it is written; its index counts the rows from 0
    labels: np.ndarray  # (n_rows,)
    notes: list[str]  # on the target

    @property
    def class_counts(self) -> dict[str, int]:
        """How many rows each class has."""
        values, counts = np.unique(self.labels, return_counts=True)
        return {str(value): int(n) for value, n in zip(values, counts, strict=True)}

    @property
    def summary(self) -> str:
        """The table in one line."""
        classes = self.class_counts
        first = ", ".join(f"{shown(name)}: {n:,}" for name, n in list(classes.items())[:8])
        more = f", and {len(classes) - 8} more" if len(classes) > 8 else ""
        rows, columns = self.features.shape
        return (
            f"{shown(self.name, 200)}: {count(rows, 'row')}, "
            f"{count(columns, 'column')} beside the labels, {len(classes)} classes ({first}{more})"
        )

    def tell(self, notes: Sequence[str], tell: Callable[[str], None]) -> None:
        """Say what the table is and what was done to it."""
        tell(self.summary)
        for note in notes:
            tell(f"  {note}")

    def for_machines(self, notes: Sequence[str]) -> dict[str, Any]:
        """The same for JSON."""
        return {
            "data": self.name,
            "n_rows": len(self.labels),
            "classes": self.class_counts,
            "notes": list(notes),
        }


def read_task(source: str, target: str) -> Task:
    """Read a table and take its target out."""
    with Working("Reading the table"):
        frame = read_cells(source)
    notes: list[str] = []
    if target in frame.columns:
        frame = without_odd_rows(frame, notes.append)
    features, labels = split_target(frame, target, say=notes.append)
    name = "standard input" if source == STANDARD else Path(source).name
    return Task(name, features, labels, notes)


def preparation(
    target: str,
    drop: Sequence[str] | None,
    keep: Sequence[str] | None,
    categorical: Sequence[str] | None,
    decimal: str | None,
    thousands: str | None,
) -> TablePreparation:
    """The preparation that the options ask for."""
    given_style(decimal, thousands)
    for option, names in (("--drop", drop), ("--keep", keep), ("--categorical", categorical)):
        if target in (names or ()):
            raise TableError(f"{option} names {quoted(target)}, which is the column to predict.")
    return TablePreparation(
        drop=list(drop or ()),
        keep=list(keep or ()),
        categorical=list(categorical or ()),
        decimal=None if decimal is None else str(decimal),
        thousands=thousands,
    )


def make_model(
    prepare: TablePreparation, task: Task, model: str | None, structure: str, jobs: int
) -> Pipeline:
    """A pipeline from a table to classes, not yet fitted; `model`: None takes the usual one."""
    classifier = make_classifier(model or usual_model(structure), structure, jobs)
    return Pipeline([("table", prepare), ("classifier", classifier)])


def fit_model(model: Pipeline, task: Task) -> Pipeline:
    """Fit a pipeline to a table."""
    with Working(f"Fitting {count(len(task.labels), 'row')}"):
        return model.fit(task.features, task.labels)


def leave_one_out(model: Pipeline, task: Task) -> tuple[np.ndarray, Scores]:
    """Probabilities (n_rows, n_classes) of each row given all others, and how good they are."""
    classifier = model[-1]
    with Working("Predicting each row from the others"):
        probabilities = classifier.predict_proba(None)
    classes = classifier.classes_
    predicted = classes[most_probable(probabilities)]
    return probabilities, score(task.labels, predicted, probabilities, classes)
