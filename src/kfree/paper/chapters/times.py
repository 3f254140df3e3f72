"""The table of times, and how much longer the sampler takes than the two deterministic ways."""

from __future__ import annotations

from collections.abc import Mapping

from kfree.evaluation.data import Dataset
from kfree.page import Table, Text
from kfree.paper.chapters.blocks import Chapter, Numbers
from kfree.paper.published import SECONDS
from kfree.paper.settings import Settings
from kfree.paper.times import METHODS
from kfree.paper.unit import Results


def chapter(settings: Settings, datasets: Mapping[str, Dataset], results: Results) -> Chapter:
    """Seconds, and the ratios."""
    there = [name for name in datasets if any(labels[0] == name for labels in results)]
    seconds = {labels: value["seconds"] for labels, value in results.items()}
    times, ratios, numbers = [], [], []
    for data in there:
        paper = SECONDS[data]
        mine = {method: seconds.get((data, method)) for method in METHODS}
        size = next(value for labels, value in results.items() if labels[0] == data)
        of_paper = {"KNN": paper.knn, "PKNN": paper.pknn, "MCMC": paper.mcmc, "KOREA": paper.korea}
        times.append(
            (
                f"{data}\n{size['n_train']} + {size['n_test']} rows",
                *(_with_paper(mine[method], of_paper.get(method)) for method in METHODS),
            )
        )
        korea = _ratio(mine["MCMC"], mine["KOREA"])
        exact = _ratio(mine["MCMC"], mine["exact"])
        ratios.append((data, f"{paper.ratio:.1f}", _shown(korea, 1), _shown(exact, 0)))
        numbers.append(
            (
                data,
                size["n_train"],
                size["n_test"],
                *(_or_empty(mine[method]) for method in METHODS),
                *of_paper.values(),
                _or_empty(korea),
                _or_empty(exact),
                paper.ratio,
            )
        )
    header = ["data", "n_train", "n_test"]
    header += [f"{method}_seconds" for method in METHODS]
    header += [f"{method}_seconds_paper" for method in METHODS[:-1]]
    header += ["MCMC_to_KOREA", "MCMC_to_exact", "MCMC_to_KOREA_paper"]
    return Chapter(
        "How long it takes",
        (
            Text(
                "Seconds to learn from the training part of the first fold and to classify its "
                "whole test part, asymmetric structure, one core, nothing else running. MCMC is "
                f"the paper's sampler with {settings.n_iterations:,} steps for each test row, the "
                f"first {settings.n_burn_in:,} of which are dropped; all rows walk side by side in "
                "arrays. KOREA is Algorithm 1 with Laplace's approximation, exact is the exact "
                f"integration. K of KNN and PKNN is {settings.n_neighbors}; of the fast methods "
                f"the shortest of {settings.repeats} times is given. The paper's times come from "
                "another machine and another language: compare within a line."
            ),
            Table("Seconds", ("", *METHODS), tuple(times)),
            Table(
                "How many times longer the sampler takes",
                ("", "paper: MCMC / KOREA", "here: MCMC / KOREA", "here: MCMC / exact"),
                tuple(ratios),
            ),
        ),
        (Numbers("times.csv", tuple(header), tuple(numbers)),),
    )


def _with_paper(mine: float | None, paper: float | None) -> str:
    here = "" if mine is None else f"{mine:.3f}" if mine < 10 else f"{mine:.1f}"
    return here if paper is None else f"{here}\npaper {paper:.2f}"


def _ratio(above: float | None, below: float | None) -> float | None:
    return None if above is None or below is None else above / below


def _shown(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _or_empty(value: float | None) -> float | str:
    return "" if value is None else value
