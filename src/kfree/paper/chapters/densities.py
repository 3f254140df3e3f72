"""The figure of p(K, beta | Y) and p(K | Y) of one test row of each data set."""

from __future__ import annotations

from collections.abc import Mapping

from kfree.evaluation.data import Dataset
from kfree.page import Picture, Text
from kfree.paper.chapters import pictures
from kfree.paper.chapters.blocks import Chapter, Numbers
from kfree.paper.settings import Settings
from kfree.paper.unit import Results


def chapter(settings: Settings, datasets: Mapping[str, Dataset], results: Results) -> Chapter:
    """One picture of all data sets."""
    there = {name: results[name,] for name in datasets if (name,) in results}
    rows = [
        (name, k, korea, exact)
        for name, value in there.items()
        for k, korea, exact in zip(value["k"], value["korea"], value["exact"], strict=True)
    ]
    likely = ", ".join(
        f"{name} {max(zip(value['korea'], value['k'], strict=True))[1]}"
        for name, value in there.items()
    )
    return Chapter(
        "What is known about K and beta",
        (
            Text(
                "The posterior of the number of neighbors K and of the strength beta, for the "
                "first test row of the first fold: above as a map, below summed over beta. Maps "
                "and bars are KOREA's (Laplace), the dots are exact. Often several K are about "
                f"equally probable, with gaps between them. The most probable K: {likely}."
            ),
            Picture(
                "densities.png",
                pictures.densities(there),
                "For each data set a heat map of the density of K and beta, and below it bars of "
                f"the probability of each K. Most probable K: {likely}. Exact probabilities, "
                "drawn as dots, sit on the tops of the bars.",
                "p(K, beta | Y) and p(K | Y) of one test row",
            ),
        ),
        (Numbers("posterior_k.csv", ("data", "k", "korea", "exact"), tuple(rows)),),
    )
