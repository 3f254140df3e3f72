"""Pictures of the results; each is bytes of a PNG file."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from .timing import Result

KFREE_COLOR, PEER_COLOR = "#1f5fa8", "#c8692b"
TWO_DECADES = 100.0
DASHES = {"fit": "-", "predict_proba": "--"}


def draw(results: dict[str, list[Result]]) -> dict[str, bytes]:
    """A picture for each series that was measured."""
    lines = [line for found in results.values() for line in found]
    pictures = {}
    for series, x, label in (
        ("points", "N", "training rows"),
        ("dimensions", "d", "features"),
    ):
        chosen = [line for line in lines if line.facts.get("series") == series]
        if chosen:
            pictures[series] = fit_and_predict(chosen, x, label)
    if "new" in results:
        pictures["new"] = by_new_rows(results["new"])
    if "classes" in results:
        pictures["classes"] = by_classes(results["classes"])
    return pictures


def fit_and_predict(lines: list[Result], x: str, label: str) -> bytes:
    figure, axes = axes_of(label)
    for part, dash in DASHES.items():
        chosen = [line for line in lines if line.facts["part"] == part]
        at = [line.facts[x] for line in chosen]
        peer = "neighbor table alone" if part == "fit" else "scikit-learn, one k"
        axes.plot(
            at, [c.ours for c in chosen], "o" + dash, color=KFREE_COLOR, label=f"kfree {part}"
        )
        axes.plot(at, [c.peer for c in chosen], "o" + dash, color=PEER_COLOR, label=peer)
    return finished(figure, axes, at)


def by_new_rows(lines: list[Result]) -> bytes:
    figure, axes = axes_of("new rows")
    at = [line.facts["new"] for line in lines]
    axes.plot(at, [c.ours for c in lines], "o-", color=KFREE_COLOR, label="kfree predict_proba")
    axes.plot(at, [c.peer for c in lines], "o-", color=PEER_COLOR, label="scikit-learn, one k")
    return finished(figure, axes, at)


def by_classes(lines: list[Result]) -> bytes:
    figure, axes = axes_of("classes")
    base = lines[0].facts["base classes"]
    points = [(base, lines[0].peer), *((c.facts["classes"], c.ours) for c in lines)]
    at, seconds = zip(*sorted(points), strict=True)
    axes.plot(at, seconds, "o-", color=KFREE_COLOR, label="kfree fit + predict_proba")
    axes.set_ylim(min(seconds) / 3, max(seconds) * 3)
    return finished(figure, axes, at)


def axes_of(label: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 3.4), layout="constrained")
    axes = figure.subplots()
    axes.set(xlabel=label, ylabel="seconds", xscale="log", yscale="log")
    axes.grid(True, which="major", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def finished(figure: Any, axes: Any, at: Sequence) -> bytes:
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    axes.set_xticks(at, labels=[f"{x:,}" for x in at])
    axes.xaxis.set_minor_locator(NullLocator())
    low, high = axes.get_ylim()
    few = high / low < TWO_DECADES  # then powers of ten would be too few
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    figure.legend(frameon=False, fontsize=8, ncols=2, loc="outside upper center")
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110)
    return out.getvalue()
