"""The results as a table in the terminal and as docs/performance.md."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version

from .timing import Result
from .workloads import SEARCH_NEIGHBORS, SEARCH_ROWS

CAPTIONS = {
    "points": "Time against the number of training rows N (d = 8, a tenth as many new rows).",
    "new": "Time against the number of new rows (20,000 x 8).",
    "classes": "Time against the number of classes.",
    "dimensions": "Time against the number of features (10,000 rows, 1,000 new rows).",
}


def in_terminal(results: dict[str, list[Result]]) -> str:
    rows = [["workload", "jobs", "kfree", "peer", "value (spread)", "target", ""]]
    for line in everything(results):
        rows.append(cells(line))
    width = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in pairs).rstrip()
        for pairs in ([*enumerate(zip(row, width, strict=True))] for row in rows)
    )


def everything(results: dict[str, list[Result]]) -> list[Result]:
    return [line for lines in results.values() for line in lines]


def cells(line: Result) -> list[str]:
    unit = " GiB" if line.kind == "GiB" else " s"
    peer = "" if line.peer is None else f"{number(line.peer)}{unit} ({line.peer_name})"
    spread = "" if line.low == line.high else f" ({number(line.low)}..{number(line.high)})"
    return [
        line.title,
        str(line.n_jobs),
        number(line.ours) + unit,
        peer,
        number(line.value) + ("" if line.kind == "ratio" else unit) + spread,
        "" if line.target is None else number(line.target),
        line.verdict,
    ]


def number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def page(results: dict[str, list[Result]], pictures: list[str], n_jobs: int) -> str:
    """docs/performance.md"""
    command = "make bench" if n_jobs == 2 else f'make bench ARGS="--jobs {n_jobs}"'
    judged = [line for line in everything(results) if line.target is not None]
    missed = sum(line.verdict == "MISSED" for line in judged)
    lines = [
        "# Performance",
        "",
        "Written by",
        "",
        f"    {command}",
        "",
        "Each workload runs kfree and its peer in the same process, in turn, at least three times "
        "(once where it takes minutes). The ratio is the best time of kfree by the best time of "
        "the peer, and in brackets are the smallest and the largest ratio within a round. All "
        "times are for float64 and, unless said otherwise, for the default settings, `k_max` found "
        "from the data. The peers are `KNeighborsClassifier` with the one k that kfree finds "
        "most probable; for the neighbor table alone `NearestNeighbors.kneighbors` and "
        "`scipy.spatial.cKDTree.query`, whichever is faster (scipy up to 16 features only), with "
        "the `k_max_` that kfree ends with (`fit` itself looks one to three times as far, to see "
        "that the posterior of k has died out); and `GridSearchCV` over k = 1..30 with 5 folds. "
        "All have the same number of jobs.",
        "",
        "The rows are overlapping Gaussian clusters of about 50 rows each in 8 dimensions, with "
        "noise in all features and a tenth of the labels drawn at random "
        "(`benchmarks/speed/data.py`).",
        "",
        f"{os.cpu_count()} cores, kfree {version('kfree')}, scikit-learn "
        f"{version('scikit-learn')}, numpy {version('numpy')}, scipy {version('scipy')}, "
        f"Python {platform.python_version()}.",
        "",
        f"## Targets: {len(judged) - missed} met, {missed} missed",
        "",
        table(judged),
        "",
        *remarks(results),
        "## Pictures",
        "",
    ]
    for name in pictures:
        lines += [f"![{CAPTIONS[name]}](images/speed-{name}.png)", "", CAPTIONS[name], ""]
    lines += ["## Which search", "", *searches(results)]
    rest = [
        line
        for line in everything(results)
        if line.target is None and line.facts.get("series") != "search"
    ]
    lines += ["## Without a target", "", table(rest)]
    return "\n".join(lines) + "\n"


def table(lines: list[Result]) -> str:
    header = ["workload", "jobs", "kfree", "peer", "ratio or value (spread)", "target", ""]
    return markdown(header, [[*cells(line)[:-1], verdict(line)] for line in lines])


def verdict(line: Result) -> str:
    return f"**{line.verdict}**" if line.verdict == "MISSED" else line.verdict


def remarks(results: dict[str, list[Result]]) -> list[str]:
    """What the table has no column for."""
    found = []
    for line in [*results.get("memory", []), *results.get("memory-384", [])]:
        known = line.facts
        found += [
            f"Memory of {known['N']:,} x {known['d']}: {known['before fit, GiB']:.2f} GiB before "
            f"`fit`, {known['fit, GiB']:.2f} GiB at the peak of `fit` and "
            f"{known['with predict_proba, GiB']:.2f} GiB with the predictions, where 16 bytes x N "
            f"x k_max (= {known['k_max']}) are {line.peer:.2f} GiB. `fit` took "
            f"{known['fit, s']:.0f} s, `predict_proba` {known['predict_proba, s']:.1f} s.",
            "",
        ]
    chosen = {
        f"{line.facts['N']:,} x {line.facts['d']}": (line.facts["K*"], line.facts["k_max"])
        for line in everything(results)
        if "K*" in line.facts and line.target is not None and "classes" not in line.facts
    }
    rows = [[size, str(best), str(largest)] for size, (best, largest) in chosen.items()]
    return [*found, "What kfree chose:", "", markdown(["rows", "K*", "k_max"], rows), ""]


def searches(results: dict[str, list[Result]]) -> list[str]:
    """Tree against brute force, and where the one overtakes the other."""
    lines = [line for line in everything(results) if line.facts.get("series") == "search"]
    algorithms = [name for name in ("kd_tree", "brute", "faiss") if name in lines[0].facts]
    rows = []
    for line in lines:
        known = line.facts
        times = [float(known[name]) for name in algorithms]
        shown = [f"{1e6 * t:.0f}" for t in times]
        best = times.index(min(times))
        shown[best] = f"**{shown[best]}**"
        rows.append([f"{known['N']:,}", str(known["d"]), str(known["latent"]), *shown])
    return [
        f"Microseconds for each row of a table of {SEARCH_NEIGHBORS} neighbors, one thread, "
        f"measured on up to {SEARCH_ROWS:,} rows, the smallest of several rounds. Data of low "
        "intrinsic dimension are kinder to a tree, hence both kinds.",
        "",
        markdown(["N", "features", "intrinsic dimension", *algorithms], rows),
        "",
    ]


def markdown(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
