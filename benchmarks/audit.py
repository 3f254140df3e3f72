"""How well labels that were made wrong on purpose are found: kfree beside cleanlab.

Run by `make audit`. Writes docs/audit.md and docs/audit.csv. What has been measured is kept in
build/audit/, one file for each result, so an interrupted run goes on where it stopped.
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
from dataclasses import asdict, dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from clean_sets import KINDS, make_clean
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from kfree import FieldClassifier, KFreeClassifier
from kfree.audit import audit_labels
from kfree.evaluation import DataNotFound, data
from kfree.evaluation.store import Store, digest_files, digest_model, write

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "audit"
REPORT = ROOT / "docs" / "audit.md"
TABLE = ROOT / "docs" / "audit.csv"

# All data sets of up to this many rows, so that the whole takes minutes. `fglass` has the rows of
# `glass`.
MOST_ROWS = 1000
LEFT_OUT = {"fglass"}
QUICK = ("iris", "wine")
RATES = (0.02, 0.05, 0.10)
# Small data sets have few labels to flip, hence more repetitions: about so many rows in all.
ROWS_IN_ALL = 600
MOST_REPETITIONS = 2
# The score and the number of wrong labels were chosen while looking at the repetitions 0 and 1.
FIRST_REPETITION = 10
N_SPLITS = 5
N_SPLITS_GRID = 4
CANDIDATES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50)

# Data sets without a wrong label, for the number of wrong labels: five of each kind.
CLEAN_SEEDS = range(100, 160)

KFREE, K, KNN, GRID, FOREST = (
    "kfree field",
    "kfree k",
    "kNN, k = 5",
    "kNN, grid search",
    "random forest",
)
TITLES = {
    KFREE: "`audit_labels(FieldClassifier().fit(X, y))`, which `kfree audit` does",
    K: "`audit_labels(KFreeClassifier().fit(X, y))`",
    KNN: "cleanlab on `KNeighborsClassifier()`",
    GRID: "cleanlab on `GridSearchCV(KNeighborsClassifier(), {'n_neighbors': "
    f"{list(CANDIDATES)}}}, cv={N_SPLITS_GRID})`",
    FOREST: "cleanlab on `RandomForestClassifier(random_state=0)`",
}


@dataclass(frozen=True)
class Suspicion:
    """What a method says: a score for each row, low is suspicious, and how many are wrong."""

    score: np.ndarray  # (n_samples,)
    n_wrong: int
    interval: tuple[int, int] | None = None  # of the number of wrong labels


@dataclass(frozen=True)
class Found:
    """How well one method did on one data set with some labels flipped."""

    auroc: float
    precision: float  # at the number flipped
    estimate_ratio: float  # labels said to be wrong, per label flipped
    covered: float  # 1 if the interval of that number holds the number flipped; nan: there is none
    above_zero: float  # 1 if the interval lies above 0
    seconds: float  # of the processor


@dataclass(frozen=True)
class Clean:
    """What was said of one data set without a wrong label."""

    data: str
    n_samples: int
    n_contradicted: int
    n_expected: float  # contradictions, by the model's own probabilities
    n_estimated: int
    low: int
    high: int


@dataclass(frozen=True)
class Cell:
    """One data set, one rate, one repetition, one method."""

    data: str
    n_samples: int
    n_features: int
    n_classes: int
    rate: float
    repetition: int
    method: str
    found: Found


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    try:
        version("cleanlab")
        chosen = choose(options)
    except PackageNotFoundError:
        print(
            "make audit measured nothing: pip install '.[audit]' brings cleanlab.", file=sys.stderr
        )
        return 1
    except DataNotFound as notice:
        print(f"make audit measured nothing. {notice}", file=sys.stderr)
        return 1
    if options.fresh:
        shutil.rmtree(CACHE, ignore_errors=True)
    cells: list[Cell] = []
    start = time.perf_counter()
    try:
        for number, name in enumerate(chosen, start=1):
            print(f"[{number:2d}/{len(chosen)}] {name:15}", end="", flush=True)
            cells += measure(name, Store(options.cache), options.quick)
            print(f"  {time.perf_counter() - start:6.0f} s so far", flush=True)
        seeds = CLEAN_SEEDS[:2] if options.quick or options.only else CLEAN_SEEDS
        clean = [measure_clean(seed, Store(options.cache)) for seed in seeds]
    except KeyboardInterrupt:
        print("\nInterrupted. The same command goes on from here; --fresh starts anew.")
        return 130
    print(summary(cells))
    print(clean_words(clean))
    if options.only or options.quick:
        print("\nOnly a part was measured: docs/audit.md stays as it is.")
        return 0
    write(REPORT, report(cells, clean))
    write(TABLE, as_csv(cells))
    print(f"\nWritten: {REPORT.relative_to(ROOT)}, {TABLE.relative_to(ROOT)}")
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/audit.py", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these data sets, no report")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    parser.add_argument(
        "--quick", action="store_true", help="two data sets, one share, one repetition, no report"
    )
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder for what was measured")
    return parser.parse_args(arguments)


def choose(options: argparse.Namespace) -> list[str]:
    """The data sets to be measured, small ones first."""
    folder, there = data.folder(), data.names()
    wanted = options.only or (QUICK if options.quick else None)
    if wanted:
        if absent := sorted(set(wanted) - set(there)):
            raise DataNotFound(f"Not in {folder}: {', '.join(absent)}.")
        return list(wanted)
    size = {name: len(data.load(name).y) for name in there if name not in LEFT_OUT}
    return sorted((name for name, n in size.items() if n <= MOST_ROWS), key=size.__getitem__)


def measure(name: str, store: Store, quick: bool) -> list[Cell]:
    dataset = data.load(name)
    X = StandardScaler().fit_transform(dataset.X)
    clean = np.unique(dataset.y, return_inverse=True)[1]
    n_samples, n_classes = len(clean), int(clean.max()) + 1
    print(f"{n_samples:6d} x {X.shape[1]:4d}, {n_classes:2d} classes", end="", flush=True)
    n_repetitions = 1 if quick else min(MOST_REPETITIONS, max(1, ROWS_IN_ALL // n_samples))
    cells = []
    for rate in RATES[1:2] if quick else RATES:
        for repetition in range(FIRST_REPETITION, FIRST_REPETITION + n_repetitions):
            y, flipped = flip(clean, rate, repetition)
            for method, suspect in METHODS.items():
                key = conditions(name, rate, repetition, method)
                kept = store.get(f"{name} {rate} {repetition} {method}", key)
                if kept is None:
                    found = judge(suspect, X, y, flipped)
                    store.put(f"{name} {rate} {repetition} {method}", key, asdict(found))
                else:
                    found = Found(**kept)
                size = (n_samples, X.shape[1], n_classes)
                cells.append(Cell(name, *size, rate, repetition, method, found))
    return cells


def measure_clean(seed: int, store: Store) -> Clean:
    kind, X, y = make_clean(seed)
    key = {"seed": seed, "kind": kind, **source()}
    kept = store.get(f"clean {seed}", key)
    if kept is None:
        with threadpool_limits(1):
            model = FieldClassifier().fit(StandardScaler().fit_transform(X), y)
            probabilities = model.predict_proba(None)
            audit = audit_labels(model, probabilities=probabilities)
        low, high = audit.wrong.interval
        n_expected = float((1.0 - probabilities.max(axis=1)).sum())
        kept = asdict(
            Clean(kind, len(y), audit.n_contradicted, n_expected, audit.n_estimated, low, high)
        )
        store.put(f"clean {seed}", key, kept)
    return Clean(**kept)


def flip(labels: np.ndarray, rate: float, repetition: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels of which a share was changed to another class at random, and which ones."""
    rng = np.random.default_rng([repetition, round(1000 * rate)])
    n_classes, n_flipped = int(labels.max()) + 1, max(1, round(rate * len(labels)))
    flipped = np.zeros(len(labels), dtype=bool)
    flipped[rng.choice(len(labels), n_flipped, replace=False)] = True
    changed = labels.copy()
    changed[flipped] = (labels[flipped] + rng.integers(1, n_classes, n_flipped)) % n_classes
    # A class of very few rows may have lost all of them.
    return np.unique(changed, return_inverse=True)[1], flipped


def judge(suspect: Callable, X: np.ndarray, y: np.ndarray, flipped: np.ndarray) -> Found:
    with warnings.catch_warnings(), threadpool_limits(1):
        # Classes with fewer rows than folds: nothing that can be done about it.
        warnings.filterwarnings("ignore", message="The least populated class in y")
        warnings.filterwarnings("ignore", message="Number of classes in training fold")
        start = time.process_time()
        said = suspect(X, y)
        seconds = time.process_time() - start
    n_flipped = int(flipped.sum())
    # Equal scores, which plain kNN has many of, are put in random order.
    chance = np.random.default_rng(0).random(len(y))
    first = np.lexsort((chance, said.score))[:n_flipped]
    return Found(
        auroc=float(roc_auc_score(flipped, -said.score)),
        precision=float(flipped[first].mean()),
        estimate_ratio=said.n_wrong / n_flipped,
        covered=within(said.interval, n_flipped),
        above_zero=float("nan") if said.interval is None else float(said.interval[0] > 0),
        seconds=seconds,
    )


def within(interval: tuple[int, int] | None, number: int) -> float:
    return float("nan") if interval is None else float(interval[0] <= number <= interval[1])


def by_field(X: np.ndarray, y: np.ndarray) -> Suspicion:
    return by_audit(FieldClassifier(), X, y)


def by_k(X: np.ndarray, y: np.ndarray) -> Suspicion:
    return by_audit(KFreeClassifier(), X, y)


def by_audit(model: Any, X: np.ndarray, y: np.ndarray) -> Suspicion:
    audit = audit_labels(model.fit(X, y))
    score = np.empty(len(y))
    score[audit.rows] = audit.score
    return Suspicion(score, audit.n_estimated, audit.wrong.interval)


def by_knn(X: np.ndarray, y: np.ndarray) -> Suspicion:
    return by_cleanlab(KNeighborsClassifier(), X, y)


def by_grid(X: np.ndarray, y: np.ndarray) -> Suspicion:
    # No k can exceed the rows of the grid search's smallest training part.
    n_train = len(y) - -(-len(y) // N_SPLITS)
    largest = n_train - -(-n_train // N_SPLITS_GRID)
    grid = {"n_neighbors": [k for k in CANDIDATES if k <= largest]}
    return by_cleanlab(GridSearchCV(KNeighborsClassifier(), grid, cv=N_SPLITS_GRID), X, y)


def by_forest(X: np.ndarray, y: np.ndarray) -> Suspicion:
    return by_cleanlab(RandomForestClassifier(random_state=0), X, y)


def by_cleanlab(estimator: object, X: np.ndarray, y: np.ndarray) -> Suspicion:
    """cleanlab's defaults, on probabilities from cross validation."""
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    folds = StratifiedKFold(N_SPLITS, shuffle=True, random_state=0)
    probabilities = cross_val_predict(estimator, X, y, cv=folds, method="predict_proba")
    score = get_label_quality_scores(y, probabilities)
    return Suspicion(score, int(find_label_issues(y, probabilities, n_jobs=1).sum()))


METHODS: dict[str, Callable[[np.ndarray, np.ndarray], Suspicion]] = {
    KFREE: by_field,
    K: by_k,
    KNN: by_knn,
    GRID: by_grid,
    FOREST: by_forest,
}


def conditions(name: str, rate: float, repetition: int, method: str) -> dict[str, object]:
    """All that a result depends on."""
    key: dict[str, object] = {
        "data": digest_files([data.folder() / f"{name}.csv.gz"]),
        "rate": rate,
        "repetition": repetition,
        "settings": [N_SPLITS, N_SPLITS_GRID, CANDIDATES],
        "scikit-learn": version("scikit-learn"),
    }
    if method in (KFREE, K):
        key |= source()
    else:
        key["cleanlab"] = version("cleanlab")
    return key


def source() -> dict[str, object]:
    """The code that kfree's results depend on."""
    files = [ROOT / "src" / "kfree" / name for name in ("audit.py", "label_noise.py")]
    return {"source": digest_model(), "audit": digest_files(files)}


def mean_of(cells: list[Cell], measure: str, **where: object) -> float:
    """The mean over data sets of the mean over what was measured on each."""
    return float(np.mean(by_data(cells, measure, **where)))


def median_of(cells: list[Cell], measure: str, **where: object) -> float:
    """The median over data sets: a few of them would decide the mean of a ratio or of times."""
    return float(np.median(by_data(cells, measure, **where)))


def by_data(cells: list[Cell], measure: str, **where: object) -> list[float]:
    chosen = [c for c in cells if all(getattr(c, name) == value for name, value in where.items())]
    names = dict.fromkeys(c.data for c in chosen)
    return [
        float(np.mean([getattr(c.found, measure) for c in chosen if c.data == name]))
        for name in names
    ]


def summary(cells: list[Cell]) -> str:
    lines = ["", f"{'over the data sets':34}" + "".join(f"{m:>18}" for m in METHODS)]
    for name, title, digits, _, of in MEASURES:
        values = "".join(f"{of(cells, name, method=m):18.{digits}f}" for m in METHODS)
        lines.append(f"{title:34}{values}")
    return "\n".join(lines)


# Name, title, digits, whether more is better (None: nothing is best), and what is said of it.
MEASURES = (
    ("auroc", "AUROC, mean", 3, True, mean_of),
    ("precision", "precision, mean", 3, True, mean_of),
    ("estimate_ratio", "said wrong / flipped, median", 2, None, median_of),
    ("seconds", "CPU seconds, mean", 2, False, mean_of),
    ("seconds", "CPU seconds, median", 2, False, median_of),
)


def clean_words(clean: list[Clean]) -> str:
    n_zero = sum(one.low == 0 for one in clean)
    return (
        f"Of {len(clean)} made data sets without a wrong label, the 95% interval of the number of "
        f"wrong labels contains 0 on {n_zero}."
    )


def about_number(cells: list[Cell], clean: list[Clean]) -> list[str]:
    """How many labels are said to be wrong, where none is, and where some are."""
    rows = []
    for kind in KINDS:
        these = [one for one in clean if one.data == kind]
        if these:
            rows.append(
                [
                    kind,
                    str(len(these)),
                    str(round(np.mean([one.n_samples for one in these]))),
                    f"{np.mean([one.n_contradicted for one in these]):.0f}",
                    f"{np.mean([one.n_expected for one in these]):.0f}",
                    f"{np.median([one.n_estimated for one in these]):.0f}",
                    str(sum(one.low == 0 for one in these)),
                ]
            )
    said = [
        [
            f"{rate:.0%}",
            f"{median_of(cells, 'estimate_ratio', method=KFREE, rate=rate):.2f}",
            *(
                f"{np.quantile(by_data(cells, 'estimate_ratio', method=KFREE, rate=rate), q):.2f}"
                for q in (0.25, 0.75)
            ),
            f"{mean_of(cells, 'covered', method=KFREE, rate=rate):.0%}",
            f"{mean_of(cells, 'above_zero', method=KFREE, rate=rate):.0%}",
        ]
        for rate in RATES
    ]
    return [
        "",
        "## How many labels are wrong",
        "",
        "The model's probabilities are learned from the labels as they are, wrong ones included, "
        "so the number of contradictions that they expect, the sum of 1 - max p, grows with wrong "
        "labels as it does with overlap: the excess over it is near 0 on flipped labels too. "
        "`n_estimated` therefore looks at where the contradictions are (`kfree.label_noise`).",
        "",
        clean_words(clean) + " By how they were made (means over the data sets of a kind, the "
        "estimate as the median; the estimate was developed on other sets of the first six kinds, "
        "and nothing was chosen by the last six):",
        "",
        markdown_table(
            ["made of", "sets", "rows", "contradicted", "sum of 1 - max p", "estimate", "0 inside"],
            rows,
        ),
        "",
        "On the data sets above, with labels flipped, by kfree field: the estimate per label "
        "flipped (median and quartiles over the data sets), how often the interval holds the "
        "number flipped, and how often it lies above 0. The data sets' own wrong labels count as "
        "well.",
        "",
        markdown_table(
            ["flipped", "said / flipped", "lower quartile", "upper quartile", "held", "above 0"],
            said,
        ),
    ]


def report(cells: list[Cell], clean: list[Clean]) -> str:
    names = sorted({c.data for c in cells})
    n_cells = len(cells) // len(METHODS)
    lines = [
        "# Label audit, measured",
        "",
        "Written by",
        "",
        "    make audit",
        "",
        f"How well are wrong labels found? On {len(names)} data sets, all there are of up to "
        f"{MOST_ROWS:,} rows, 2, 5 and 10 % of the labels were changed to another class at random, "
        f"1 to {MOST_REPETITIONS} times with fixed seeds: {n_cells} cases. Features are "
        "standardized. Every method had one core.",
        "",
        *[f"- {method}: {title}" for method, title in TITLES.items()],
        "",
        f"cleanlab had probabilities from {N_SPLITS}-fold cross validation and its default scores "
        "(`cleanlab.rank.get_label_quality_scores`); its number of wrong labels is that of "
        "`cleanlab.filter.find_label_issues`. kfree's is `n_estimated`.",
        "",
        "AUROC: how often a flipped row is ranked as more suspicious than one that was not "
        "flipped; 0.5 is chance. Precision: the share of flipped rows among as many first rows as "
        "were flipped. Data sets have wrong and ambiguous labels of their own, which count as "
        "mistakes here, for every method alike.",
        "",
        f"kfree {version('kfree')}, cleanlab {version('cleanlab')}, "
        f"scikit-learn {version('scikit-learn')}, Python {platform.python_version()}.",
        "",
        "## What came out",
        "",
        *findings(cells),
        "",
        "## Over the data sets",
        "",
        markdown_table(
            ["", "flipped", *METHODS],
            [
                [
                    title,
                    f"{rate:.0%}",
                    *emphasized(
                        [of(cells, name, method=m, rate=rate) for m in METHODS], digits, more
                    ),
                ]
                for name, title, digits, more, of in MEASURES
                for rate in RATES
            ],
        ),
        *about_number(cells, clean),
    ]
    for name, title, digits, more in (
        ("auroc", "AUROC", 3, True),
        ("precision", "Precision at the number flipped", 3, True),
        ("seconds", "CPU seconds", 2, False),
    ):
        rows = []
        for one in names:
            first = next(c for c in cells if c.data == one)
            values = [mean_of(cells, name, method=m, data=one) for m in METHODS]
            size = [str(first.n_samples), str(first.n_features), str(first.n_classes)]
            rows.append([one, *size, *emphasized(values, digits, more)])
        lines += ["", f"## {title}", "", "Means over the three shares and the repetitions.", ""]
        lines += [markdown_table(["data", "N", "d", "C", *METHODS], rows)]
    return "\n".join(lines) + "\n"


def findings(cells: list[Cell]) -> list[str]:
    """One sentence for each method that kfree field is compared with."""
    names = sorted({c.data for c in cells})
    lines = []
    for other in [m for m in METHODS if m != KFREE]:
        parts = []
        for name, title in (("auroc", "AUROC"), ("precision", "precision")):
            ours, theirs = (mean_of(cells, name, method=m) for m in (KFREE, other))
            won = sum(
                mean_of(cells, name, method=KFREE, data=d)
                > mean_of(cells, name, method=other, data=d)
                for d in names
            )
            parts.append(
                f"{title} {ours:.3f} to {theirs:.3f}, higher on {won} of {len(names)} data sets"
            )
        ours, theirs = (mean_of(cells, "seconds", method=m) for m in (KFREE, other))
        parts.append(f"{ours:.2f} to {theirs:.2f} CPU seconds")
        rival = other if other == K else f"cleanlab on {other}"
        lines.append(f"- {KFREE} to {rival}: {'; '.join(parts)}.")
    return lines


def emphasized(values: list[float], digits: int, more: bool | None) -> list[str]:
    """The best in bold, all of them where they agree as printed; None: nothing is best."""
    shown = [f"{value:.{digits}f}" for value in values]
    if more is None:
        return shown
    best = f"{(max if more else min)(values):.{digits}f}"
    return [f"**{text}**" if text == best else text for text in shown]


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def as_csv(cells: list[Cell]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    about = [field.name for field in fields(Cell) if field.name != "found"]
    measures = [field.name for field in fields(Found)]
    writer.writerow(about + measures)
    for cell in cells:
        values = [f"{getattr(cell.found, name):.6g}" for name in measures]
        writer.writerow([getattr(cell, name) for name in about] + values)
    return text.getvalue()


if __name__ == "__main__":
    sys.exit(main())
