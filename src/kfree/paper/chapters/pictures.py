"""The pictures of the page, as PNG. matplotlib is imported when something is drawn."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from kfree.displays import k_range
from kfree.displays.drawing import BRIGHT, DARK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXACT, KOREA, MCMC = DARK, BRIGHT, "0.35"


def densities(there: Mapping[str, dict[str, Any]]) -> bytes:
    """A map of p(K, beta | Y) above bars of p(K | Y) for each data set."""
    from matplotlib.ticker import MaxNLocator

    n_columns = min(3, len(there))
    n_rows = -(-len(there) // n_columns)
    figure = new_figure(4.2 * n_columns, 4.4 * n_rows)
    panels = figure.subfigures(n_rows, n_columns, squeeze=False).ravel()
    for i, (panel, (name, value)) in enumerate(zip(panels, there.items(), strict=False)):
        korea, exact = np.array(value["korea"]), np.array(value["exact"])
        # Not fewer than ten K: a single bar across the panel would look like a box.
        shown = slice(0, min(len(korea), max(k_range(korea).stop + 1, 10)))
        k = np.array(value["k"])[shown]
        top, bottom = panel.subplots(2, 1, sharex=True, height_ratios=(5, 3))
        top.pcolormesh(
            k,
            value["beta"],
            np.array(value["density"])[shown].T,
            shading="nearest",
            cmap="cividis",
            vmin=0.0,
            rasterized=True,
        )
        top.set_title(name)
        bottom.bar(k, korea[shown], color="0.7", edgecolor="0.3", linewidth=0.6, label="KOREA")
        bottom.plot(k, exact[shown], "o", color=EXACT, markersize=3.5, label="exact")
        bottom.xaxis.set_major_locator(MaxNLocator(integer=True))
        bottom.set_xlabel("number of neighbors $K$")
        if i % n_columns == 0:
            top.set_ylabel(r"strength $\beta$")
            bottom.set_ylabel(r"$p(K \mid Y)$")
        if i == 0:
            bottom.legend(loc="upper right", fontsize=8)
    return as_png(figure)


def wine(value: dict[str, Any], counts: tuple[int, int]) -> bytes:
    """p(K | Y) by KOREA, by the sampler and exactly, after few and after many draws."""
    figure = new_figure(7.5, 6.4)
    k = np.array(value["k"])
    last = k_range(np.array(value["k_probabilities"]["exact"])).stop
    axes = figure.subplots(2, 1, sharex=True)
    for ax, count in zip(axes, counts, strict=True):
        exact, korea = (value["k_probabilities"][name] for name in ("exact", "KOREA"))
        ax.plot(
            k, value["k_frequencies"][str(count)], "x-", color=MCMC, linewidth=0.8, label="MCMC"
        )
        ax.plot(k, korea, "o", color=KOREA, markersize=7, markerfacecolor="none", label="KOREA")
        ax.plot(k, exact, ".-", color=EXACT, linewidth=1.0, markersize=5, label="exact")
        ax.set_title(f"{count:,} draws")
        ax.set_ylabel(r"$p(K \mid Y)$")
        ax.set_ylim(bottom=0)
    axes[0].set_xlim(0.5, last + 0.5)
    axes[0].legend()
    axes[1].set_xlabel("number of neighbors $K$")
    return as_png(figure)


def similarity(
    there: Mapping[str, dict[str, Any]], measures: tuple[str, ...], references: tuple[str, ...]
) -> bytes:
    """The measures over the number of draws, a row for each data set."""
    from matplotlib.ticker import NullFormatter

    figure = new_figure(2.9 * len(measures), 2.3 * len(there) + 0.4)
    axes = figure.subplots(len(there), len(measures), sharex=True, squeeze=False)
    styles = {"KOREA": (KOREA, "--"), "exact": (EXACT, "-")}
    for (name, value), line in zip(there.items(), axes, strict=True):
        for measure, ax in zip(measures, line, strict=True):
            for reference in references:
                color, style = styles[reference]
                chains = np.array(value["values"][reference][measure])  # (n_counts, n_chains)
                counts = value["counts"]
                ax.fill_between(
                    counts, chains.min(axis=1), chains.max(axis=1), color=color, alpha=0.18, lw=0
                )
                ax.plot(
                    counts,
                    np.median(chains, axis=1),
                    style,
                    color=color,
                    marker=".",
                    markersize=4,
                    linewidth=1.3,
                    label=f"against {reference}",
                )
            own = value["korea_to_exact"][measure]
            ax.axhline(own, color="black", linestyle=":", linewidth=1.0, label="KOREA to exact")
            ax.set_xscale("log")
            if measure in ("RMSE", "KLD"):
                ax.set_yscale("log")
            ax.tick_params(labelsize=8)
            ax.yaxis.set_minor_formatter(NullFormatter())
            ax.grid(alpha=0.25, linewidth=0.5)
        line[0].set_ylabel(name, fontsize=11)
    for measure, ax in zip(measures, axes[0], strict=True):
        ax.set_title("PSNR (dB)" if measure == "PSNR" else measure)
    for ax in axes[-1]:
        ax.set_xlabel("draws")
    figure.align_ylabels(axes[:, 0])
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    return as_png(figure)


def new_figure(width: float, height: float) -> Figure:
    """A figure of so many inches."""
    from matplotlib.figure import Figure

    # Not by pyplot, which would keep the figure and ask for a screen.
    return Figure(figsize=(width, height), layout="constrained")


def as_png(figure: Figure) -> bytes:
    """The figure as a file."""
    out = io.BytesIO()
    # No date inside: the same numbers give the same file.
    figure.savefig(out, format="png", dpi=110, metadata={"Software": None})
    return out.getvalue()
