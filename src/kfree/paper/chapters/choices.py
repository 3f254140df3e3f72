"""What the paper leaves open, one choice changed at a time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kfree.evaluation.data import Dataset
from kfree.page import Table, Text
from kfree.paper.chapters.blocks import Chapter, Numbers
from kfree.paper.choices import CHOICES, METHODS
from kfree.paper.published import F_MEASURE
from kfree.paper.settings import Settings
from kfree.paper.unit import Results

OF_PAPER = {
    "KNN": "KNN",
    "PKNN": "PKNN",
    "average": "KOREA average",
    "optimal": "KOREA optimal",
}


def chapter(settings: Settings, datasets: Mapping[str, Dataset], results: Results) -> Chapter:
    """One table for each data set, the paper's line below."""
    tables, numbers = [], []
    for data in datasets:
        rows = []
        for choice in CHOICES:
            value = results.get((data, choice.name))
            if value is None:
                continue
            rows.append((choice.name, *(_cell(value.get(method)) for method in METHODS)))
            numbers += [
                (data, choice.name, method, float(np.mean(f)), float(np.std(f)))
                for method, f in value.items()
            ]
        if rows:
            paper = (F_MEASURE[OF_PAPER[m], data, "asymmetric"] for m in METHODS)
            rows.append(("the paper", *(f"{p.mean:.2f} ± {p.std:.2f}" for p in paper)))
            tables.append(Table(data, ("F-measure", *METHODS), tuple(rows)))
    return Chapter(
        "What the paper leaves open",
        (
            Text(
                "One choice changed at a time, asymmetric structure; average and optimal are the "
                f"exact ones, K of KNN and PKNN is {settings.n_neighbors}. An empty cell: the "
                "choice does not concern the method. In most files the rows are sorted by class, "
                "so that folds in file order test classes that the training part hardly knows."
            ),
            *tables,
        ),
        (
            Numbers(
                "choices.csv",
                ("data", "choice", "method", "f_measure_mean", "f_measure_std"),
                tuple(numbers),
            ),
        ),
    )


def _cell(f: list[float] | None) -> str:
    return "" if f is None else f"{np.mean(f):.2f} ± {np.std(f):.2f}"
