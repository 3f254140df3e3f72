"""kfree beside a grid search over k, and beside a random forest, on every data set there is.

Run by `make quality`. Writes docs/quality.md and docs/quality.csv. What has been measured is kept
in build/quality/, one file for each result, so an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import csv
import io
import platform
import shutil
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from kfree import KFreeClassifier
from kfree.evaluation import DataNotFound, Dataset, Evaluation, Spread, cross_validate, data
from kfree.evaluation.store import Store, digest_evaluation, digest_files, digest_model, write

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "quality"
REPORT = ROOT / "docs" / "quality.md"
TABLE = ROOT / "docs" / "quality.csv"

N_SPLITS = 4
N_SPLITS_GRID = 4
RANDOM_STATE = 0
LARGEST_CANDIDATE = 50

KFREE, GRID, FOREST = "kfree", "grid search", "random forest"
TITLES = {
    KFREE: "`KFreeClassifier()`",
    GRID: "`GridSearchCV(KNeighborsClassifier(), {'n_neighbors': 1..50}, cv=4)`",
    FOREST: "`RandomForestClassifier(random_state=0)`",
}


@dataclass(frozen=True)
class Measured:
    """One data set's size and results."""

    name: str
    n_samples: int
    n_features: int
    n_classes: int
    results: dict[str, Evaluation]


@dataclass(frozen=True)
class Measure:
    """A column of the report: how to read it from a result, and which way is better."""

    title: str
    digits: int
    larger_is_better: bool
    of: Callable[[Evaluation], float]


LOG_LOSS = Measure("Log loss", 4, False, lambda r: r.log_loss.mean)
ACCURACY = Measure("Accuracy", 4, True, lambda r: r.accuracy.mean)
F_MEASURE = Measure("F-measure", 4, True, lambda r: r.f_measure.mean)
SECONDS = Measure("Seconds", 2, False, lambda r: r.fit_seconds.mean + r.predict_seconds.mean)
MEASURES = (LOG_LOSS, ACCURACY, F_MEASURE, SECONDS)


def main() -> int:
    options = parse()
    try:
        folder, there = data.folder(), data.names()
        if options.only and (absent := sorted(set(options.only) - set(there))):
            raise DataNotFound(f"Not in {folder}: {', '.join(absent)}.")
    except DataNotFound as notice:
        print(f"make quality measured nothing. {notice}", file=sys.stderr)
        return 1
    if options.fresh:
        shutil.rmtree(CACHE, ignore_errors=True)

    # Small data sets first: something to look at soon.
    chosen = sorted(options.only or there, key=lambda name: data_path(folder, name).stat().st_size)
    if not chosen:
        print(f"make quality measured nothing. {folder} has no data set.", file=sys.stderr)
        return 1
    measured = []
    try:
        for number, name in enumerate(chosen, start=1):
            print(f"[{number:2d}/{len(chosen)}] {name:15}", end="", flush=True)
            measured.append(measure(folder, name, options))
    except KeyboardInterrupt:
        print("\nInterrupted. The same command goes on from here; --fresh starts anew.")
        return 130
    measured.sort(key=lambda m: m.name)
    if options.only:
        print(summary(measured))
        print("\nOnly some data sets were measured: docs/quality.md stays as it is.")
        return 0
    write(REPORT, report(measured, options))
    write(TABLE, as_csv(measured))
    print(summary(measured))
    print(f"\nWritten: {REPORT.relative_to(ROOT)}, {TABLE.relative_to(ROOT)}")
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/quality.py", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these data sets, no report")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="cores for each estimator")
    parser.add_argument(
        "--no-forest", dest="forest", action="store_false", help="leave the random forest out"
    )
    return parser.parse_args()


def estimators(n_samples: int, options: argparse.Namespace) -> dict[str, BaseEstimator]:
    candidates = list(range(1, largest_candidate(n_samples) + 1))
    chosen = {
        KFREE: KFreeClassifier(n_jobs=options.jobs),
        GRID: GridSearchCV(
            KNeighborsClassifier(),
            {"n_neighbors": candidates},
            cv=N_SPLITS_GRID,
            n_jobs=options.jobs,
        ),
        FOREST: RandomForestClassifier(random_state=RANDOM_STATE, n_jobs=options.jobs),
    }
    if not options.forest:
        del chosen[FOREST]
    return chosen


def largest_candidate(n_samples: int) -> int:
    """No k can exceed the rows of the grid search's smallest training part."""
    n_train = n_samples - -(-n_samples // N_SPLITS)
    return min(LARGEST_CANDIDATE, n_train - -(-n_train // N_SPLITS_GRID))


def measure(folder: Path, name: str, options: argparse.Namespace) -> Measured:
    """Take from the cache what was measured under the same conditions, and measure the rest."""
    dataset = data.load(name)
    n_classes = len(np.unique(dataset.y))
    print(f"{dataset.X.shape[0]:6d} x {dataset.X.shape[1]:4d}, {n_classes:2d} classes", end="")
    store = Store(CACHE)
    results = {}
    for title, estimator in estimators(len(dataset.y), options).items():
        key = conditions(title, data_path(folder, name), options)
        kept = store.get(f"{name} {title}", key)
        if kept is not None:
            results[title] = from_json(kept)
            print(f"  {title}: kept", end="", flush=True)
        else:
            start = time.perf_counter()
            results[title] = run(dataset, title, estimator, options.jobs)
            store.put(f"{name} {title}", key, asdict(results[title]))
            print(f"  {title}: {time.perf_counter() - start:.1f} s", end="", flush=True)
    print()
    return Measured(name, *dataset.X.shape, n_classes, results)


def run(dataset: Dataset, title: str, estimator: BaseEstimator, n_jobs: int) -> Evaluation:
    with warnings.catch_warnings(), threadpool_limits(n_jobs):
        # The grid search's own folds, where a class is small: nothing that can be done about it.
        warnings.filterwarnings("ignore", message="The least populated class in y")
        return cross_validate(
            {title: estimator}, dataset.X, dataset.y, n_splits=N_SPLITS, random_state=RANDOM_STATE
        )[title]


def conditions(title: str, path: Path, options: argparse.Namespace) -> dict[str, object]:
    """All that a result depends on."""
    key: dict[str, object] = {
        "data": digest_files([path]),
        "evaluation": digest_evaluation(),
        "settings": [N_SPLITS, N_SPLITS_GRID, RANDOM_STATE, LARGEST_CANDIDATE],
        "jobs": options.jobs,
        "scikit-learn": version("scikit-learn"),
    }
    if title == KFREE:
        key["kfree"] = version("kfree")
        key["source"] = digest_model()
    return key


def data_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.csv.gz"


def from_json(values: dict[str, dict[str, float]]) -> Evaluation:
    return Evaluation(**{name: Spread(**spread) for name, spread in values.items()})


def report(measured: list[Measured], options: argparse.Namespace) -> str:
    titles = list(measured[0].results)
    flags = "" if options.forest else " --no-forest"
    flags += f" --jobs {options.jobs}" if options.jobs != 1 else ""
    command = f'make quality ARGS="{flags.strip()}"' if flags else "make quality"
    cores = "one core" if options.jobs == 1 else f"{options.jobs} cores"
    lines = [
        "# Quality",
        "",
        "Written by",
        "",
        f"    {command}",
        "",
        f"{len(measured)} data sets, {N_SPLITS} folds (seed {RANDOM_STATE}), stratified unless a "
        "class has fewer rows than there are folds, features standardized on the training part of "
        f"each fold. Each estimator had {cores}. Every number is a mean over the folds; seconds "
        "are for one `fit` and one `predict_proba`. Log loss clips probabilities at 2.2e-16, so a "
        "true class that was given probability 0 costs 36.04.",
        "",
        *[f"- {title}: {TITLES[title]}" for title in titles],
        "",
        "The grid search picks k by accuracy, its default, and its candidates end earlier where "
        "its training parts have fewer than 50 rows. Not all data sets are independent: `digits` "
        "is a part of `optdigits`, and `glass` has the rows of `fglass`.",
        "",
        f"kfree {version('kfree')}, scikit-learn {version('scikit-learn')}, "
        f"numpy {version('numpy')}, scipy {version('scipy')}, Python {platform.python_version()}.",
        "",
        "## Means over the data sets",
        "",
        markdown_table(
            ["", *titles],
            [
                [m.title, *[f"{mean_of(measured, t, m):.{m.digits}f}" for t in titles]]
                for m in MEASURES
            ],
        ),
        "",
        *comparisons(measured),
    ]
    for m in MEASURES:
        rows = [
            [
                one.name,
                str(one.n_samples),
                str(one.n_features),
                str(one.n_classes),
                *emphasized([m.of(one.results[t]) for t in titles], m),
            ]
            for one in measured
        ]
        lines += ["", f"## {m.title}", ""]
        lines += [markdown_table(["data", "N", "d", "C", *titles], rows)]
    return "\n".join(lines) + "\n"


def comparisons(measured: list[Measured]) -> list[str]:
    """One sentence for each estimator that kfree is compared with."""
    lines = []
    for other in list(measured[0].results)[1:]:
        ratio = mean_of(measured, KFREE, LOG_LOSS) / mean_of(measured, other, LOG_LOSS)
        won = {m: sum(better(one, other, m) for one in measured) for m in MEASURES}
        lines.append(
            f"- Mean log loss, kfree to {other}: **{ratio:.3f}**. Of {len(measured)} data sets "
            f"kfree is strictly better on {won[LOG_LOSS]} in log loss, {won[ACCURACY]} in "
            f"accuracy, {won[F_MEASURE]} in F-measure, {won[SECONDS]} in time."
        )
    return lines


def better(one: Measured, other: str, m: Measure) -> bool:
    ours, theirs = m.of(one.results[KFREE]), m.of(one.results[other])
    return ours > theirs if m.larger_is_better else ours < theirs


def mean_of(measured: list[Measured], title: str, m: Measure) -> float:
    return float(np.mean([m.of(one.results[title]) for one in measured]))


def emphasized(values: list[float], m: Measure) -> list[str]:
    """The best in bold, all of them where they agree as printed."""
    shown = [f"{value:.{m.digits}f}" for value in values]
    best = f"{(max if m.larger_is_better else min)(values):.{m.digits}f}"
    return [f"**{text}**" if text == best else text for text in shown]


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def summary(measured: list[Measured]) -> str:
    titles = list(measured[0].results)
    lines = ["", f"{'mean over the data sets':26}" + "".join(f"{t:>16}" for t in titles)]
    for m in MEASURES:
        values = "".join(f"{mean_of(measured, t, m):16.{m.digits}f}" for t in titles)
        lines.append(f"{m.title:26}{values}")
    return "\n".join(lines)


def as_csv(measured: list[Measured]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = list(Evaluation.__dataclass_fields__)
    writer.writerow(
        ["data", "n_samples", "n_features", "n_classes", "estimator"]
        + [f"{name}_{part}" for name in names for part in ("mean", "std")]
    )
    for one in measured:
        for title, result in one.results.items():
            spreads = [getattr(result, name) for name in names]
            writer.writerow(
                [one.name, one.n_samples, one.n_features, one.n_classes, title]
                + [f"{value:.6g}" for s in spreads for value in (s.mean, s.std)]
            )
    return text.getvalue()


if __name__ == "__main__":
    sys.exit(main())
