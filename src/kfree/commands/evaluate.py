"""The command ``kfree evaluate``."""

from __future__ import annotations

import sys
import warnings
from dataclasses import asdict
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from kfree.atomic import check_writable, replacing
from kfree.classifier import KFreeClassifier
from kfree.commands import options
from kfree.commands.learning import Task, preparation, read_task
from kfree.commands.progress import Working
from kfree.commands.telling import say, show, show_json
from kfree.evaluation.protocol import Evaluation, cross_validate
from kfree.neighbors.structures import STRUCTURES
from kfree.tables import TableError, TablePreparation, TableWarning
from kfree.tables.messages import count, listed

# The usual way to choose k, to compare with.
GRID_FOLDS = 4
LARGEST_K = 50
# Title, name in the record, and whether more is better; None: it is not a matter of good and bad.
SCORES = (
    ("accuracy", "accuracy", True),
    ("macro F", "f_measure", True),
    ("log loss", "log_loss", False),
    ("Brier", "brier", False),
    ("calibration", "calibration_error", False),
    ("fit s", "fit_seconds", None),
    ("pred s", "predict_seconds", None),
)


def evaluate(
    data: options.Data,
    target: options.Target,
    folds: Annotated[int, typer.Option("--folds", min=2, help="Folds of the comparison.")] = 4,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the shuffle into folds.")] = 0,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write the comparison as CSV; - is stdout."
        ),
    ] = None,
    drop: options.Drop = None,
    keep: options.Keep = None,
    categorical: options.Categorical = None,
    jobs: options.Jobs = 1,
    as_json: options.Json = False,
) -> None:
    """Compare kfree with a grid search over k, by cross validation on a table.

    All are fitted and judged on the same folds. What a column needs (scales, categories, values for
    missing cells) is learned from the training part of each fold only.

    Example: `kfree evaluate iris.csv --target species`
    """
    if output is not None:
        options.refuse_both_on_standard_output(as_json, output)
        if output != options.STANDARD:
            check_writable(output)
    task = read_task(data, target)
    if folds > len(task.labels):
        raise TableError(
            f"There are only {count(len(task.labels), 'row')}, which is too few for {folds} folds."
        )
    prepare = preparation(drop, keep, categorical)
    notes = [*task.notes, *prepare.fit(task.features).notes_, *_few(task, folds)]
    evaluations = _compare(task, prepare, folds, seed, jobs)
    if output == options.STANDARD:
        sys.stdout.write(_as_csv(evaluations))
    elif output is not None:
        with replacing(output) as file:
            file.write(_as_csv(evaluations).encode())
    if as_json:
        show_json(
            {
                **task.for_machines(notes),
                "folds": folds,
                "evaluations": {name: asdict(found) for name, found in evaluations.items()},
            }
        )
        return
    tell = say if output == options.STANDARD else show
    task.tell(notes, tell)
    tell("")
    Console(stderr=tell is say).print(_as_table(evaluations, folds))


def _compare(
    task: Task, prepare: TablePreparation, folds: int, seed: int, jobs: int
) -> dict[str, Evaluation]:
    estimators = _estimators(len(task.labels), folds, jobs)
    with (
        Working("Cross validation", len(estimators) * folds, "fits") as working,
        warnings.catch_warnings(),
        # Times are compared, so all have as many threads.
        threadpool_limits(jobs),
    ):
        # A test part may have categories that its training part has not, and the grid search warns
        # of every class with fewer rows than folds; both are told once, before.
        warnings.simplefilter("ignore", TableWarning)
        warnings.filterwarnings("ignore", message="The least populated class")
        return cross_validate(
            estimators,
            task.features,
            task.labels,
            folds,
            seed,
            most_probable=True,
            preparation=prepare,
            done=lambda name: working.advance(),
        )


def _estimators(n_rows: int, folds: int, jobs: int) -> dict[str, BaseEstimator]:
    # No k can exceed the rows of the grid search's smallest training part.
    n_train = n_rows - -(-n_rows // folds)
    grid_folds = min(GRID_FOLDS, n_train)
    largest = max(1, min(LARGEST_K, n_train - -(-n_train // grid_folds)))
    grid = {"n_neighbors": list(range(1, largest + 1))}
    kfree: dict[str, BaseEstimator] = {
        f"kfree {structure}": KFreeClassifier(structure=structure, n_jobs=jobs)
        for structure in STRUCTURES
    }
    search = GridSearchCV(KNeighborsClassifier(), grid, cv=grid_folds, n_jobs=jobs)
    return kfree | {"kNN grid search": search}


def _few(task: Task, folds: int) -> list[str]:
    few = [name for name, n in task.class_counts.items() if n < folds]
    if not few:
        return []
    return [
        f"Fewer rows than the {folds} folds: {listed(few)}. The folds are not stratified then, and "
        "where a class is absent from a training part, each of its test rows counts as a log loss "
        "of 36, to all methods alike."
    ]


def _as_table(evaluations: dict[str, Evaluation], folds: int) -> Table:
    table = Table(title=f"Means over {folds} folds", title_justify="left", box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for title, _, _ in SCORES:
        table.add_column(title, justify="right")
    shown = {
        name: [_shown(found, score) for _, score, _ in SCORES]
        for name, found in evaluations.items()
    }
    for name, texts in shown.items():
        cells = []
        for i, (_, _, more) in enumerate(SCORES):
            column = [float(other[i]) for other in shown.values()]
            best = None if more is None else (max if more else min)(column)
            bold = best is not None and float(texts[i]) == best and len(set(column)) > 1
            cells.append(f"[bold]{texts[i]}[/bold]" if bold else texts[i])
        table.add_row(name, *cells)
    return table


def _shown(found: Evaluation, score: str) -> str:
    mean = getattr(found, score).mean
    return f"{mean:.2f}" if score.endswith("seconds") else f"{mean:.3f}"


def _as_csv(evaluations: dict[str, Evaluation]) -> str:
    names = [score for _, score, _ in SCORES]
    lines = [",".join(["method", *(f"{name}_mean,{name}_std" for name in names)])]
    for method, found in evaluations.items():
        spreads: list[Any] = [getattr(found, name) for name in names]
        numbers = np.array([[spread.mean, spread.std] for spread in spreads]).ravel()
        lines.append(",".join([f'"{method}"', *(f"{number:.6g}" for number in numbers)]))
    return "\n".join(lines) + "\n"
