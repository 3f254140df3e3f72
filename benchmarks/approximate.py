"""What approximate neighbors change: recall of the graph against change in class probabilities.

Run by `make approximate`. Every row of the table is `make_pipeline(transformer,
KFreeClassifier(metric="precomputed"))` beside `KFreeClassifier()` on the same rows. Writes the
table into docs/approximate.md; with --quick it only prints it, for small sizes.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import warnings
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsTransformer
from sklearn.pipeline import make_pipeline

from kfree import KFreeClassifier
from kfree.evaluation.store import write

from .speed.data import mixture

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "approximate.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
N_CLASSES = 4
# Lists of given graphs have a length, so the largest K is given too.
K_MAX = 48
MODULE = {"scikit-learn": "sklearn", "faiss-cpu": "faiss", "pynndescent": "pynndescent"}


class FaissTransformer(TransformerMixin, BaseEstimator):
    """The neighbors that an index of faiss finds, as a graph of distances.

    Parameters
    ----------
    factory : faiss's name of the index, such as "HNSW32" or "IVF256,Flat".
    effort : efSearch or nprobe, how much of the index a query looks at.
    """

    def __init__(self, n_neighbors: int, factory: str, effort: int) -> None:
        self.n_neighbors = n_neighbors
        self.factory = factory
        self.effort = effort

    def fit(self, X, y=None):
        import faiss

        rows = np.ascontiguousarray(X, dtype=np.float32)
        self.index_ = faiss.index_factory(X.shape[1], self.factory)
        self.index_.train(rows)
        self.index_.add(rows)
        effort = "efSearch" if "HNSW" in self.factory else "nprobe"
        faiss.ParameterSpace().set_index_parameter(self.index_, effort, self.effort)
        return self

    def transform(self, X):
        # One more, for a training row finds itself.
        rows = np.ascontiguousarray(X, dtype=np.float32)
        squares, indices = self.index_.search(rows, self.n_neighbors + 1)
        row, place = np.nonzero(indices >= 0)
        distances = np.sqrt(np.maximum(squares[row, place], 0.0, dtype=np.float64))
        shape = (len(X), self.index_.ntotal)
        return sparse.csr_array((distances, (row, indices[row, place])), shape=shape)


@dataclass(frozen=True)
class Compared:
    """One row of the table."""

    title: str
    stored: int
    recall: float  # of the training rows' k_max nearest
    recall_new: float  # of the new rows' K* nearest
    recall_reverse: float  # of the training rows that take up a new row at K*
    k_optimal: int
    mean_change: float
    largest_change: float
    other_class: float
    log_loss: float


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    n_rows, n_new = (1_000, 100) if options.quick else (20_000, 2_000)
    X, y = mixture(n_rows + n_new, options.features, N_CLASSES)
    rows, labels, new, truth = X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]
    exact = KFreeClassifier(k_max=K_MAX)
    expected = exact.fit(rows, labels).predict_proba(new)
    print(f"exact: k_max_ = {exact.k_max_}, K* = {exact.k_optimal_}", flush=True)
    found = [exactly(exact, expected, truth)]
    for title, transformer in transformers(exact.k_max_, options.quick):
        pipeline = make_pipeline(
            transformer, KFreeClassifier(metric="precomputed", k_max=exact.k_max_)
        )
        try:
            found.append(compared(title, pipeline, exact, expected, rows, labels, new, truth))
        except ValueError as error:
            print(f"{title}: {error}", flush=True)
            continue
        print(f"{title}: done", flush=True)
    text = table(found, exact.k_max_, n_rows, n_new, options.features)
    print("\n" + text)
    if not options.quick:
        page = PAGE.read_text(encoding="utf-8")
        before, after = page[: page.index(BEGIN)], page[page.index(END) :]
        write(PAGE, f"{before}{BEGIN}\n{text}\n{after}")
        print(f"\nWritten: {PAGE.relative_to(ROOT)}")
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.approximate", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, writes nothing")
    parser.add_argument("--features", type=int, default=16, metavar="D", help="default: 16")
    return parser.parse_args(arguments)


def transformers(k: int, quick: bool) -> list[tuple[str, BaseEstimator]]:
    """Exact lists of several lengths, and what is installed of the approximate searches."""
    found: list[tuple[str, BaseEstimator]] = [
        (f"exact lists, {share:g} k_max", KNeighborsTransformer(n_neighbors=round(share * k)))
        for share in (1, 1.5, 2, 4)
    ]
    stored = 2 * k
    if importlib.util.find_spec("faiss"):
        for effort in (stored,) if quick else (stored, 2 * stored, 4 * stored, 8 * stored):
            title = f"faiss HNSW16, efSearch {effort}"
            found.append((title, FaissTransformer(stored, "HNSW16", effort)))
        for effort in (4,) if quick else (2, 4, 8, 16):
            index = "IVF8" if quick else "IVF128"
            title = f"faiss {index}, nprobe {effort}"
            found.append((title, FaissTransformer(stored, f"{index},Flat", effort)))
    else:
        print("faiss-cpu is not installed: left out.")
    if not quick and importlib.util.find_spec("pynndescent"):
        from pynndescent import PyNNDescentTransformer

        for epsilon in (0.0, 0.1, 0.3):
            transformer = PyNNDescentTransformer(
                n_neighbors=stored, search_epsilon=epsilon, random_state=0
            )
            found.append((f"pynndescent, search_epsilon {epsilon:g}", transformer))
    elif not quick:
        print("pynndescent is not installed: left out.")
    return found


def exactly(exact, expected, truth) -> Compared:
    loss = log_loss(truth, expected)
    n = len(exact._model.labels)
    return Compared("`KFreeClassifier()`", n, 1, 1, 1, exact.k_optimal_, 0, 0, 0, loss)


def compared(title, pipeline, exact, expected, rows, labels, new, truth) -> Compared:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the packages that search
        got = pipeline.fit(rows, labels).predict_proba(new)
        model = pipeline[-1]
        given = pipeline[:-1].transform(new)
    graph, right = model._model.graph, exact._model.graph
    k = exact.k_optimal_
    seen = arrivals(model, given, k)
    whole = arrivals(exact, new, k)
    change = np.abs(got - expected)
    return Compared(
        title,
        int(np.diff(given.indptr).min()),
        recall(graph.indices, right.indices),
        recall(seen.forward, whole.forward),
        pairs_found(seen, whole, len(rows)),
        model.k_optimal_,
        change.mean(),
        change.max(),
        float((got.argmax(axis=1) != expected.argmax(axis=1)).mean()),
        log_loss(truth, got),
    )


def arrivals(model: KFreeClassifier, X, k: int):
    """Where new rows stand among the training rows at K = k, as the model sees it."""
    from kfree import validation

    inner = model._model
    queries = validation.check_new(model, X, inner.search.points, k)
    n_k = int((inner.graph.k <= k).sum())
    radii = inner.graph.radii[:, :n_k]
    return inner.search.arrivals(queries, inner.graph.k[:n_k], radii, None)


def recall(found: np.ndarray, right: np.ndarray) -> float:
    """The share of the right neighbors that were found."""
    n = int(max(found.max(), right.max())) + 1
    row = np.arange(len(right))[:, None] * np.int64(n)
    return float(np.isin(row + right, row + found).mean())


def pairs_found(seen, whole, n_points: int) -> float:
    got = seen.reverse_row * np.int64(n_points) + seen.reverse_point
    all_pairs = whole.reverse_row * np.int64(n_points) + whole.reverse_point
    return float(np.isin(all_pairs, got).mean())


def table(found: list[Compared], k_max: int, n_rows: int, n_new: int, n_features: int) -> str:
    header = [
        "neighbors",
        "stored",
        "recall, training",
        "recall, new",
        "recall, reverse",
        "K*",
        "mean change",
        "largest change",
        "other class",
        "log loss",
    ]
    lines = [header, ["---"] + ["---:"] * (len(header) - 1)]
    for one in found:
        lines.append(
            [
                one.title,
                f"{one.stored:,}",
                f"{one.recall:.4f}",
                f"{one.recall_new:.4f}",
                f"{one.recall_reverse:.4f}",
                str(one.k_optimal),
                f"{one.mean_change:.1e}" if one.mean_change else "0",
                f"{one.largest_change:.1e}" if one.largest_change else "0",
                f"{one.other_class:.2%}",
                f"{one.log_loss:.5f}",
            ]
        )
    names = ("scikit-learn", "faiss-cpu", "pynndescent")
    packages = ", ".join(f"{n} {version(n)}" for n in names if importlib.util.find_spec(MODULE[n]))
    said = (
        f"{n_rows:,} training rows, {n_new:,} new rows, {n_features} features, {N_CLASSES} classes "
        f"(`benchmarks/speed/data.py`), `k_max` = {k_max}; {packages}."
    )
    return said + "\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
