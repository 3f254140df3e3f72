"""The command ``kfree evaluate``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table
from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_limits

from kfree.atomic import replacing
from kfree.commands import options
from kfree.commands.files import check_output, standard_output
from kfree.commands.learning import Task, preparation, read_task
from kfree.commands.models import MODELS, USUAL_STRUCTURE, make_classifier
from kfree.commands.progress import Working
from kfree.commands.telling import console, say, show, show_json
from kfree.evaluation.baseline import SearchedKNN
from kfree.evaluation.protocol import Evaluation, cross_validate
from kfree.neighbors.structures import STRUCTURES
from kfree.plain_text import quoted
from kfree.tables import TableError, TablePreparation, TableWarning
from kfree.tables.messages import count, listed

# What is compared unless something else is asked for: the structures other than the usual one take
# several times as long.
USUALLY = (*MODELS, "knn")
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
    compared: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="NAMES",
            help=f"What to compare, with commas between: {', '.join(COMPARED)} (boltzmann and "
            "boltzmann2: kfree under its other structures; knn: k by a grid search). If not given: "
            f"{', '.join(USUALLY)}.",
        ),
    ] = None,
    drop: options.Drop = None,
    keep: options.Keep = None,
    categorical: options.Categorical = None,
    decimal: options.DecimalMark = None,
    thousands: options.Thousands = None,
    jobs: options.Jobs = 1,
    as_json: options.Json = False,
) -> None:
    """Compare kfree with other classifiers, by cross validation on a table.

    All are fitted and judged on the same folds. What a column needs (scales, categories, values for
    missing cells) is learned from the training part of each fold only.

    Example: `kfree evaluate iris.csv --target species`
    """
    chosen = _chosen(compared)
    if output is not None:
        check_output(output, [data], as_json=as_json)
    prepare = preparation(target, drop, keep, categorical, decimal, thousands)
    task = read_task(data, target)
    if folds > len(task.labels):
        raise TableError(
            f"There are only {count(len(task.labels), 'row')}, which is too few for {folds} folds."
        )
    notes = [*task.notes, *prepare.fit(task.features, task.labels).notes_, *_few(task, folds)]
    evaluations = _compare(task, prepare, chosen, folds, seed, jobs)
    if output == options.STANDARD:
        standard_output().write(_as_csv(evaluations).encode())
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
    out = console(stderr=tell is say)
    for table in _as_tables(evaluations, folds, out.width):
        out.print(table)


def _compare(
    task: Task,
    prepare: TablePreparation,
    chosen: Sequence[str],
    folds: int,
    seed: int,
    jobs: int,
) -> dict[str, Evaluation]:
    estimators = {}
    for name in chosen:
        title, make = COMPARED[name]
        estimators[title] = make(jobs)
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
        try:
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
        except TableError as error:
            raise TableError(
                f"The rows are too few for {folds} folds; without one of them: {error}"
            ) from None


def _kfree(model: str, structure: str, jobs: int) -> BaseEstimator:
    return make_classifier(model, structure, jobs)


def _forest(jobs: int) -> BaseEstimator:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=0, n_jobs=jobs)


def _logistic(jobs: int) -> BaseEstimator:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000)


def _commonest(jobs: int) -> BaseEstimator:
    from sklearn.dummy import DummyClassifier

    return DummyClassifier(strategy="prior")


# What can be compared: a title, and what makes it, given a number of threads.
COMPARED: dict[str, tuple[str, Callable[[int], BaseEstimator]]] = {
    **{name: (f"kfree {name}", partial(_kfree, name, USUAL_STRUCTURE)) for name in MODELS},
    **{
        structure: (f"kfree {structure}", partial(_kfree, "k", structure))
        for structure in STRUCTURES
        if structure != USUAL_STRUCTURE
    },
    "knn": ("kNN grid search", lambda jobs: SearchedKNN(n_jobs=jobs)),
    "forest": ("random forest", _forest),
    "logistic": ("logistic", _logistic),
    "commonest": ("commonest class", _commonest),
}


def _chosen(compared: Sequence[str] | None) -> list[str]:
    """The names that `--with` gives, in any spelling of a list."""
    given = [word for text in compared or () for word in text.replace(",", " ").split()]
    unknown = [name for name in given if name not in COMPARED]
    if unknown:
        raise typer.BadParameter(
            f"--with has no {quoted(unknown[0])}; there are {', '.join(COMPARED)}."
        )
    return list(dict.fromkeys(given)) or list(USUALLY)


def _few(task: Task, folds: int) -> list[str]:
    few = [name for name, n in task.class_counts.items() if n < folds]
    if not few:
        return []
    return [
        f"Fewer rows than the {folds} folds: {listed(few)}. The folds are not stratified then, and "
        "where a class is absent from a training part, each of its test rows counts as a log loss "
        "of 36, to all methods alike."
    ]


def _as_tables(evaluations: dict[str, Evaluation], folds: int, width: int) -> list[Table]:
    """One table of all scores, or several where the terminal is narrow."""
    columns = {title: _column(evaluations, score, more) for title, score, more in SCORES}
    names = max(map(len, evaluations))
    tables: list[list[str]] = [[]]
    for title in columns:
        needed = names + sum(2 + len(other) for other in [*tables[-1], title])
        if needed > width and tables[-1]:
            tables.append([])
        tables[-1].append(title)
    made: list[Table] = []
    for titles in tables:
        heading = f"Means over {folds} folds" if not made else None
        table = Table(title=heading, title_justify="left", box=None, pad_edge=False)
        table.add_column("", no_wrap=True)
        for title in titles:
            table.add_column(title, justify="right", no_wrap=True)
        for i, name in enumerate(evaluations):
            table.add_row(name, *(columns[title][i] for title in titles))
        made.append(table)
    return made


def _column(evaluations: dict[str, Evaluation], score: str, more: bool | None) -> list[str]:
    """A score of each method, the best of them in bold."""
    texts = [_shown(found, score) for found in evaluations.values()]
    values = [float(text) for text in texts]
    if more is None or len(set(values)) == 1:
        return texts
    best = (max if more else min)(values)
    pairs = zip(texts, values, strict=True)
    return [f"[bold]{text}[/bold]" if value == best else text for text, value in pairs]


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
