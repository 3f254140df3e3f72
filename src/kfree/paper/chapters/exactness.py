"""KOREA against the exact posterior of K, and the exact one against a dense integral."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kfree.evaluation.data import Dataset
from kfree.page import Table, Text
from kfree.paper.chapters.blocks import Chapter, Numbers
from kfree.paper.exactness import DENSE
from kfree.paper.settings import Settings
from kfree.paper.unit import Results


def chapter(settings: Settings, datasets: Mapping[str, Dataset], results: Results) -> Chapter:
    """One line for each data set and structure."""
    rows, numbers = [], []
    for data in datasets:
        for structure in settings.structures:
            value = results.get((data, structure))
            if value is None:
                continue
            korea, quadrature = np.array(value["korea"]), np.array(value["quadrature"])
            gap = np.array(value["class_gap"])
            rows.append(
                (
                    f"{data}\n{structure}",
                    f"{korea.mean():.1e}",
                    f"{korea.max():.1e}",
                    f"{quadrature.max():.1e}",
                    f"{gap.max():.1e}",
                )
            )
            numbers.append(
                (data, structure, float(korea.mean()), float(korea.max()))
                + (float(quadrature.max()), float(gap.mean()), float(gap.max()))
            )
    columns = ["data", "structure", "kld_korea_mean", "kld_korea_max", "kld_quadrature_max"]
    columns += ["class_gap_mean", "class_gap_max"]
    return Chapter(
        "KOREA beside the exact posterior",
        (
            Text(
                "The Kullback-Leibler distance of KOREA's p(K | Y) from the exact one over the "
                "test rows of the first fold, mean and largest; and of the exact one from a dense "
                f"numerical integral ({len(DENSE):,} points along beta, the first "
                f"{settings.n_dense_rows} rows), largest. The last column is the largest "
                "difference of a class probability between KOREA's average and the exact one: "
                "p(K | Y) is very close, while the average over the coarse grid of Algorithm 1 "
                "is less so."
            ),
            Table(
                "Distances of p(K | Y), in nats",
                (
                    "",
                    "KOREA, mean",
                    "KOREA, largest",
                    "exact to dense, largest",
                    "class probability, largest difference",
                ),
                tuple(rows),
            ),
        ),
        (Numbers("exactness.csv", tuple(columns), tuple(numbers)),),
    )
