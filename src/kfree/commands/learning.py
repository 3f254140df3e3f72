"""From a file and the name of a column to a fitted model: what several commands begin with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.pipeline import Pipeline

from kfree.classifier import KFreeClassifier
from kfree.commands.progress import Working
from kfree.evaluation.scores import Scores, score
from kfree.neighbors.structures import STRUCTURES
from kfree.tables import TablePreparation, read_table, split_target
from kfree.tables.messages import count

Structure = StrEnum("Structure", {name: name for name in STRUCTURES})  # type: ignore[misc]
ASYMMETRIC = Structure("asymmetric")

# Arguments and options that commands share, so that they have one name and one help text.
Data = Annotated[str, typer.Argument(help="The table: CSV, TSV or Parquet, or gzip; - is stdin.")]
Target = Annotated[str, typer.Option("--target", "-t", help="The column to be predicted.")]
Drop = Annotated[
    list[str] | None, typer.Option("--drop", help="Leave this column out; may be repeated.")
]
Keep = Annotated[
    list[str] | None,
    typer.Option("--keep", help="Keep this column although it looks like an identifier."),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option("--categorical", help="The numbers of this column are codes for categories."),
]
StructureOption = Annotated[
    Structure, typer.Option("--structure", help="Who counts as a neighbor; see the README.")
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Threads.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@dataclass(frozen=True)
class Task:
    """A table with labels."""

    name: str
    features: Any  # pandas.DataFrame; its index counts the rows of the file from 0
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
        shown = ", ".join(f"{name}: {n:,}" for name, n in list(classes.items())[:8])
        more = f", and {len(classes) - 8} more" if len(classes) > 8 else ""
        rows, columns = self.features.shape
        return (
            f"{self.name}: {count(rows, 'row')}, {count(columns, 'column')} to learn from, "
            f"{len(classes)} classes ({shown}{more})"
        )


def read_task(source: str, target: str) -> Task:
    """Read a table and take its target out."""
    with Working("Reading the table"):
        frame = read_table(source)
    return make_task(frame, source, target)


def make_task(frame: Any, source: str, target: str) -> Task:
    """Take the target out of a table that was read."""
    notes: list[str] = []
    features, labels = split_target(frame, target, say=notes.append)
    name = "standard input" if source == "-" else Path(source).name
    return Task(name, features, labels, notes)


def preparation(
    drop: Sequence[str] | None, keep: Sequence[str] | None, categorical: Sequence[str] | None
) -> TablePreparation:
    """The preparation that the options ask for."""
    return TablePreparation(
        drop=list(drop or ()), keep=list(keep or ()), categorical=list(categorical or ())
    )


def make_model(prepare: TablePreparation, structure: str, jobs: int) -> Pipeline:
    """A pipeline from a table to classes, not yet fitted."""
    classifier = KFreeClassifier(structure=str(structure), n_jobs=jobs)
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
    predicted = classes[probabilities.argmax(axis=1)]
    return probabilities, score(task.labels, predicted, probabilities, classes)
