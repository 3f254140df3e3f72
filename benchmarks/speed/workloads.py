"""What is measured: each workload gives one or several lines of the report."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.spatial import cKDTree
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from kfree import KFreeClassifier
from kfree.evaluation import data
from kfree.neighbors.metric import make_space
from kfree.neighbors.search import ALGORITHMS, make_search

from . import processes
from .data import LATENT, embeddings, informative, mixture, real
from .timing import KFREE, Result, Setting, compare, in_turn, ratio

REAL = ["iris", "wine", "wdbc"]
# Of the data folder, with the target against a grid search.
SHARED = ["twonorm", "waveform40", "yeast"]
N_CLASSES = 4
CANDIDATES = range(1, 31)
N_FOLDS = 5
SIZES = [1_000, 3_000, 10_000, 30_000, 100_000]
NEW = [1, 10, 100, 1_000, 10_000]
DIMENSIONS = [2, 4, 8, 16, 32, 64]
# The searches are compared on so many rows, in dimensions where the best one may change.
SEARCH_DIMENSIONS = [2, 4, 8, 12, 16, 24, 32, 64]
SEARCH_ROWS = 1_000
SEARCH_NEIGHBORS = 32
# The data sets of which the worst is reported.
SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Workload:
    """A name for --only, the function that measures, and the numbers of jobs it is run with."""

    name: str
    measure: Callable[[Setting], list[Result]]
    n_jobs: tuple[int, ...]


def workloads(quick: bool, n_jobs: int) -> list[Workload]:
    """All workloads, the longest last; with tiny sizes for --quick."""

    def size(n: int) -> int:
        return max(120, n // 400) if quick else n

    def some(values: list[int]) -> list[int]:
        return values[:2] if quick else values

    both = tuple(sorted({1, n_jobs}, reverse=True))
    one = (n_jobs,)
    small, large = size(20_000), size(100_000)
    few, many = size(2_000), size(10_000)
    sizes = sorted({size(n) for n in SIZES})
    return [
        Workload("import", processes.import_time, (1,)),
        Workload("first", processes.first_use, (1,)),
        *[
            Workload(name, partial(small_grid_search, name), one)
            for name in (REAL[:1] if quick else REAL + SHARED)
        ],
        Workload("fit-20k-8", partial(fit, small, 8), both),
        Workload("fit-100k-8", partial(fit, large, 8), one),
        Workload("predict-20k-8", partial(predict, small, 8, [few, small], 1.0), both),
        Workload("predict-100k-8", partial(predict, large, 8, [1, many], 1.0), one),
        Workload("predict-20k-64", partial(predict, small, 64, [few, small], 1.3), one),
        Workload("predict-20k-256", partial(predict, small, 256, [few, small], 1.3), one),
        Workload("embeddings-3k", partial(broad, "embeddings 10", size(3_000), few), one),
        Workload("embeddings-50", partial(broad, "embeddings 50", size(3_000), few), one),
        Workload("embeddings-20k", partial(broad, "embeddings 10", small, few), one),
        Workload("informative-64", partial(broad, "informative 64", small, few), one),
        Workload("informative-8", partial(broad, "informative 8", small, few), one),
        Workload("structures", partial(structures, small, few), one),
        Workload("growth", partial(growth, many, large, size(5_000)), one),
        Workload("classes", partial(classes, small, few, [10, 100, 1_000], None, 3), one),
        Workload("new", partial(predict, small, 8, some(NEW), None), one),
        Workload("points", partial(against_points, some(sizes)), one),
        Workload("dimensions", partial(against_dimension, many, some(DIMENSIONS)), one),
        *[
            Workload(f"search-{d}", partial(searches, some(sizes), d), (1,))
            for d in some(SEARCH_DIMENSIONS)
        ],
        Workload("grid-20k-8", partial(grid_search, small, few), one),
        Workload("classes-100k", partial(classes, large, many, [10, 1_000], 2.0, 1), one),
        Workload("memory", partial(processes.memory, "mixture", size(1_000_000), many, 2.5), one),
        # The rows themselves are 0.14 GiB in single precision.
        Workload("memory-384", partial(processes.memory, "embeddings", large, few, 1.64), one),
    ]


def fit(n_rows: int, n_features: int, setting: Setting) -> list[Result]:
    """Fit against the neighbor graph alone, of the same k_max, by whoever is faster."""
    X, y = mixture(n_rows, n_features, N_CLASSES)
    model = KFreeClassifier(n_jobs=setting.n_jobs)
    k_max = model.fit(X, y).k_max_
    contenders = {KFREE: lambda: model.fit(X, y), **graphs(X, k_max, setting)}
    title = f"fit {n_rows:,} x {n_features}"
    return [compare(title, contenders, 1.15, setting, facts(model, n_rows, n_features))]


def graphs(X: np.ndarray, k: int, setting: Setting) -> dict[str, Callable[[], object]]:
    """The k nearest others of every row, by scikit-learn and by scipy."""

    def sklearn_graph():
        search = NearestNeighbors(n_neighbors=k, n_jobs=setting.n_jobs).fit(X)
        return search.kneighbors(None)

    def scipy_graph():
        return cKDTree(X).query(X, k=k + 1, workers=setting.n_jobs)

    found = {"sklearn kneighbors": sklearn_graph}
    if X.shape[1] <= 16:
        found["scipy cKDTree"] = scipy_graph
    return found


def predict(
    n_rows: int,
    n_features: int,
    n_new: list[int],
    target: float | None,
    setting: Setting,
) -> list[Result]:
    """predict_proba against scikit-learn's with one k, the most probable one.

    A single row is mostly overhead, hence another target for it.
    """
    X, y = mixture(n_rows + max(n_new), n_features, N_CLASSES)
    train, new = slice(n_rows), X[n_rows:]
    model = KFreeClassifier(n_jobs=setting.n_jobs).fit(X[train], y[train])
    peer = KNeighborsClassifier(model.k_optimal_, n_jobs=setting.n_jobs).fit(X[train], y[train])
    results = []
    for n in n_new:
        part = new[:n]
        contenders = {
            KFREE: partial(model.predict_proba, part),
            "sklearn one k": partial(peer.predict_proba, part),
        }
        single = n == 1
        what = "1 row" if single else f"{n:,} rows"
        title = f"predict_proba of {what} on {n_rows:,} x {n_features}"
        known = {**facts(model, n_rows, n_features), "new": n}
        bound = 3.0 if single and target is not None else target
        results.append(compare(title, contenders, bound, setting, known))
    return results


def broad(kind: str, n_rows: int, n_new: int, setting: Setting) -> list[Result]:
    """fit against the graph and predict_proba against one k, where many K may matter.

    The worst of three seeds, so that no figure hangs on one data set.
    """
    family, number = kind.split()
    metrics = ("euclidean", "cosine") if kind == "embeddings 10" else ("euclidean",)
    fits, targets = {"embeddings": (3.0, 10.0), "informative 64": (1.5, 1.5)}, (1.2, 1.0)
    targets, results = fits.get(kind, fits.get(family, targets)), []
    for metric in metrics:
        found: list[list[Result]] = [[], []]
        for seed in SEEDS[: 1 if setting.quick else None]:
            if family == "embeddings":
                X, y = embeddings(n_rows + n_new, seed, int(number))
            else:
                X, y = informative(n_rows + n_new, int(number), seed)
            train, labels, new = X[:n_rows], y[:n_rows], X[n_rows:]
            model = KFreeClassifier(metric=metric, n_jobs=setting.n_jobs).fit(train, labels)
            given = {"metric": metric, "n_jobs": setting.n_jobs}
            search = NearestNeighbors(n_neighbors=model.k_max_, **given).fit(train)
            peer = KNeighborsClassifier(model.k_optimal_, **given).fit(train, labels)
            known = {**facts(model, *train.shape), "seed": seed, "new": n_new}
            what = family if kind != "embeddings 50" else "embeddings of 50 classes"
            name = f"{n_rows:,} x {train.shape[1]}, {what}, {metric}"
            calls = {KFREE: partial(model.fit, train, labels), "sklearn": search.kneighbors}
            found[0].append(compare(f"fit {name}", calls, targets[0], setting, known))
            calls = {
                KFREE: partial(model.predict_proba, new),
                "sklearn one k": partial(peer.predict_proba, new),
            }
            found[1].append(compare(f"predict_proba on {name}", calls, targets[1], setting, known))
        results += [max(part, key=lambda result: result.value) for part in found]
    return results


def structures(n_rows: int, n_new: int, setting: Setting) -> list[Result]:
    """fit and predict_proba under the symmetric structures against the asymmetric one."""
    X, y = mixture(n_rows + n_new, 8, N_CLASSES)
    models = {
        name: KFreeClassifier(structure=name, n_jobs=setting.n_jobs)
        for name in ("asymmetric", "boltzmann", "boltzmann2")
    }
    results = []
    for part, calls in (
        ("fit", {n: partial(m.fit, X[:n_rows], y[:n_rows]) for n, m in models.items()}),
        ("predict_proba", {n: partial(m.predict_proba, X[n_rows:]) for n, m in models.items()}),
    ):
        seconds = in_turn(calls, setting)
        for name in ("boltzmann", "boltzmann2"):
            pair = {name: seconds[name], "asymmetric": seconds["asymmetric"]}
            title = f"{part} {name}, {n_rows:,} x 8"
            title += f", {n_new:,} rows" if part != "fit" else ""
            known = {**facts(models[name], n_rows, 8), "new": n_new}
            results.append(ratio(title, pair, 3.0, setting, known))
    return results


def growth(n_small: int, n_large: int, n_new: int, setting: Setting) -> list[Result]:
    """predict_proba of the same number of rows when the training rows grow tenfold."""
    models, new = {}, {}
    for n in (n_small, n_large):
        X, y = mixture(n + n_new, 8, N_CLASSES)
        models[n] = KFreeClassifier(n_jobs=setting.n_jobs).fit(X[:n], y[:n])
        new[n] = X[n:]
    calls = {f"N = {n:,}": partial(models[n].predict_proba, new[n]) for n in (n_large, n_small)}
    title = f"predict_proba of {n_new:,} rows, N from {n_small:,} to {n_large:,}"
    seconds = in_turn(calls, setting)
    return [ratio(title, seconds, 2.5, setting, facts(models[n_large], n_large, 8))]


def classes(
    n_rows: int,
    n_new: int,
    numbers: list[int],
    bound: float | None,
    rounds: int,
    setting: Setting,
) -> list[Result]:
    """fit and predict_proba of the same points with few classes and with many."""
    if setting.quick:
        numbers = [10, 20, 40][: len(numbers)]
    most = max(numbers)
    results, calls, models = [], {}, {}
    for n_classes in sorted(numbers, reverse=True):
        X, y = mixture(n_rows + n_new, 16, n_classes, n_clusters=2 * most)
        model = models[n_classes] = KFreeClassifier(n_jobs=setting.n_jobs)
        calls[f"{n_classes:,} classes"] = partial(
            fit_predict, model, X[:n_rows], y[:n_rows], X[n_rows:]
        )
    seconds = in_turn(calls, setting, rounds)
    base = f"{min(numbers)} classes"
    for n_classes in sorted(numbers, reverse=True):
        name = f"{n_classes:,} classes"
        if name != base:
            title = f"fit + predict_proba, {name} against {min(numbers)}, {n_rows:,} x 16"
            pair = {name: seconds[name], base: seconds[base]}
            known = {**facts(models[n_classes], n_rows, 16), "new": n_new, "classes": n_classes}
            known["base classes"] = min(numbers)
            target = bound if n_classes == most else None
            results.append(ratio(title, pair, target, setting, known))
    return results


def grid_search(n_rows: int, n_new: int, setting: Setting) -> list[Result]:
    """fit and predict_proba against a grid search over 30 values of k with 5 folds."""
    X, y = mixture(n_rows + n_new, 8, N_CLASSES)
    title = f"fit + predict_proba of {n_new:,} rows, {n_rows:,} x 8"
    model = KFreeClassifier(n_jobs=setting.n_jobs)
    contenders = {
        KFREE: partial(fit_predict, model, X[:n_rows], y[:n_rows], X[n_rows:]),
        "grid search, 30 k": partial(
            fit_predict, grid(setting.n_jobs), X[:n_rows], y[:n_rows], X[n_rows:]
        ),
    }
    seconds = in_turn(contenders, setting)
    return [ratio(title, seconds, 1 / 40, setting, {**facts(model, n_rows, 8), "new": n_new})]


def small_grid_search(name: str, setting: Setting) -> list[Result]:
    """The same on a small data set; the grid search with one process or several, as is faster."""
    try:
        X, y = real(name)
    except data.DataNotFound as missing:
        print(f"  left out: {missing}", end="")
        return []
    model = KFreeClassifier(n_jobs=setting.n_jobs)
    contenders = {
        KFREE: partial(fit_predict, model, X, y, X),
        "grid search, 30 k, 1 job": partial(fit_predict, grid(1), X, y, X),
    }
    if setting.n_jobs > 1:
        contenders[f"grid search, 30 k, {setting.n_jobs} jobs"] = partial(
            fit_predict, grid(setting.n_jobs), X, y, X
        )
    seconds = in_turn(contenders, setting)
    title = f"fit + predict_proba, {name} ({len(X)} x {X.shape[1]})"
    target = 1 / 5 if name in SHARED else None
    return [ratio(title, seconds, target, setting, facts(model, *X.shape))]


def grid(n_jobs: int) -> GridSearchCV:
    return GridSearchCV(
        KNeighborsClassifier(), {"n_neighbors": list(CANDIDATES)}, cv=N_FOLDS, n_jobs=n_jobs
    )


def against_points(sizes: list[int], setting: Setting) -> list[Result]:
    """fit, and predict_proba of a tenth as many rows, as the training rows grow."""
    return [line for n in sizes for line in fit_and_predict(n, 8, "points", setting)]


def against_dimension(n_rows: int, dimensions: list[int], setting: Setting) -> list[Result]:
    """The same as the features grow in number."""
    return [line for d in dimensions for line in fit_and_predict(n_rows, d, "dimensions", setting)]


def fit_and_predict(n_rows: int, n_features: int, series: str, setting: Setting) -> list[Result]:
    n_new = max(1, n_rows // 10)
    X, y = mixture(n_rows + n_new, n_features, N_CLASSES)
    train, labels, new = X[:n_rows], y[:n_rows], X[n_rows:]
    model = KFreeClassifier(n_jobs=setting.n_jobs).fit(train, labels)
    peer = KNeighborsClassifier(model.k_optimal_, n_jobs=setting.n_jobs).fit(train, labels)
    known = {**facts(model, n_rows, n_features), "new": n_new, "series": series}
    size = f"{n_rows:,} x {n_features}"
    fitted = {KFREE: lambda: model.fit(train, labels), **graphs(train, model.k_max_, setting)}
    predicted = {
        KFREE: partial(model.predict_proba, new),
        "sklearn one k": partial(peer.predict_proba, new),
    }
    return [
        compare(f"fit {size}", fitted, None, setting, {**known, "part": "fit"}),
        compare(
            f"predict_proba of {n_new:,} rows on {size}",
            predicted,
            None,
            setting,
            {**known, "part": "predict_proba"},
        ),
    ]


def searches(sizes: list[int], n_features: int, setting: Setting) -> list[Result]:
    """The neighbors of some rows by tree and by brute force: where should "auto" change over?"""
    latent = [n_features] if n_features <= LATENT else [LATENT, n_features]
    return [search(n, n_features, n_latent, setting) for n_latent in latent for n in sizes]


def search(n_rows: int, n_features: int, n_latent: int, setting: Setting) -> Result:
    X, _ = mixture(n_rows, n_features, N_CLASSES, n_latent=n_latent)
    rows = np.linspace(0, n_rows - 1, min(n_rows, SEARCH_ROWS)).astype(np.int64)
    space = make_space("euclidean", 2, None, X)
    calls = {
        name: partial(
            make_search(space, space.points(X), name).graph,
            np.arange(1, SEARCH_NEIGHBORS + 1),
            1,
            rows,
        )
        for name in available_searches()
    }
    seconds = in_turn(calls, setting)
    pair = {name: seconds[name] for name in ("kd_tree", "brute")}
    known = {"N": n_rows, "d": n_features, "latent": n_latent, "series": "search"}
    known |= {name: min(times) / len(rows) for name, times in seconds.items()}
    return ratio(
        f"search {n_rows:,} x {n_features}, {n_latent} intrinsic", pair, None, setting, known
    )


def available_searches() -> list[str]:
    """All that can be named and is installed."""
    faiss = "faiss" in ALGORITHMS and importlib.util.find_spec("faiss") is not None
    return ["kd_tree", "brute", *(["faiss"] if faiss else [])]


def fit_predict(model, X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    return model.fit(X, y).predict_proba(new)


def facts(model: KFreeClassifier, n_rows: int, n_features: int) -> dict:
    return {"N": n_rows, "d": n_features, "k_max": model.k_max_, "K*": model.k_optimal_}
