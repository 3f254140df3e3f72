"""How like the sampler's density is to KOREA's and to the exact one, by the number of draws."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kfree.evaluation.data import Dataset
from kfree.page import Picture, Table, Text
from kfree.paper.chapters import pictures
from kfree.paper.chapters.blocks import Chapter, Numbers
from kfree.paper.settings import Settings
from kfree.paper.similarity import MEASURES, REFERENCES
from kfree.paper.unit import Results, divergence

# The draws that the paper's figure of the wine data shows.
FEW, MANY = 100, 10_000


def chapter(settings: Settings, datasets: Mapping[str, Dataset], results: Results) -> Chapter:
    """The wine picture, the picture of all measures, and how far KOREA is off by itself."""
    there = {name: results[name,] for name in datasets if (name,) in results}
    most = f"{max(settings.counts):,}"
    blocks: list[Text | Table | Picture] = [
        Text(
            f"The sampler walks for the first test row of the first fold in {settings.n_chains} "
            f"chains of {most} draws after {settings.n_burn_in:,} dropped ones, with the paper's "
            "proposals. Its draws are counted in cells of K and beta, and this image is compared "
            "with that of KOREA (Laplace), as in the paper, and with the exact one. Where the "
            "curve against KOREA levels off and the curve against the exact density goes on, "
            "the rest is KOREA's error and not the sampler's."
        ),
    ]
    if "wine" in there:
        blocks.append(_wine(there["wine"]))
    blocks += [
        Picture(
            "similarity.png",
            pictures.similarity(there, MEASURES, REFERENCES),
            "Four curves for each data set over the number of draws: RMSE and KLD fall, PSNR and "
            "SSIM rise. The curves against the exact density go on where those against KOREA "
            "level off.",
            "RMSE, KLD, PSNR and SSIM between the sampler's p(K, beta | Y) and that of KOREA "
            "(orange, dashed) and the exact one (blue); median of the chains, and their range. "
            "The dotted line is KOREA against exact.",
        ),
        Table(
            f"After {most} draws (median of the chains), and KOREA itself against exact",
            ("", "RMSE to KOREA", "RMSE to exact", "KOREA's own RMSE", "acceptance"),
            tuple(
                (
                    name,
                    *(f"{np.median(v['values'][r]['RMSE'][-1]):.1e}" for r in REFERENCES),
                    f"{v['korea_to_exact']['RMSE']:.1e}",
                    f"{v['acceptance']:.3f}",
                )
                for name, v in there.items()
            ),
        ),
    ]
    rows: list[tuple] = [
        (name, reference, measure, count, chain, value)
        for name, v in there.items()
        for reference in REFERENCES
        for measure in MEASURES
        for count, chains in zip(v["counts"], v["values"][reference][measure], strict=True)
        for chain, value in enumerate(chains)
    ]
    rows += [
        (name, "exact", measure, "KOREA", "", v["korea_to_exact"][measure])
        for name, v in there.items()
        for measure in MEASURES
    ]
    header = ("data", "reference", "measure", "draws", "chain", "value")
    return Chapter(
        "The sampler beside KOREA and beside the exact density",
        tuple(blocks),
        (Numbers("similarity.csv", header, tuple(rows)),),
    )


def _wine(value: dict) -> Picture:
    counts = [count for count in value["counts"] if count <= MANY]
    shown = (min(counts, key=lambda c: abs(c - FEW)), counts[-1])
    distance = {
        count: float(
            divergence(
                np.array(value["k_frequencies"][str(count)]),
                np.array(value["k_probabilities"]["exact"]),
            )
        )
        for count in shown
    }
    words = " and ".join(f"{distance[c]:.2g} with {c:,} draws" for c in shown)
    return Picture(
        "wine.png",
        pictures.wine(value, shown),
        "Two graphs of the probability of each K for the wine data. With few draws the sampler's "
        "crosses scatter widely around KOREA's circles; with many they lie close to them.",
        f"p(K | Y) of one test row of wine by KOREA, by the sampler and exactly. Kullback-Leibler "
        f"distance of the sampler from the exact p(K | Y): {words}.",
    )
