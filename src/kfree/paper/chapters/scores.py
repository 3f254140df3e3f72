"""The table of F-measures, and what the paper lacks: a search over k, accuracy and log loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from kfree.evaluation.data import Dataset
from kfree.evaluation.protocol import Evaluation
from kfree.page import Table, Text
from kfree.paper.chapters.blocks import Chapter, Numbers
from kfree.paper.published import F_MEASURE, METHODS, STRUCTURES
from kfree.paper.scores import EXACT, SEARCH, named
from kfree.paper.settings import Settings
from kfree.paper.unit import Results

COLUMNS = {"asymmetric": "asymmetric", "boltzmann": "Boltzmann", "boltzmann2": "Boltzmann (2)"}


def chapter(settings: Settings, datasets: Mapping[str, Dataset], results: Results) -> Chapter:
    """Tables by data set, ours above the paper's."""
    by_method = _by_method(results)
    ours = {method: method for method in METHODS}
    ours |= {method: named(method, settings.n_neighbors) for method in ("KNN", "PKNN")}
    tables = [
        _of_one(dataset, ours, settings, by_method)
        for name, dataset in datasets.items()
        if any(labels[0] == name for labels in by_method)
    ]
    return Chapter(
        "How well it classifies",
        (
            Text(
                f"F-measures (macro average over the classes) of a {settings.n_splits}-fold cross "
                "validation, mean and deviation over the folds. Folds are shuffled and stratified; "
                "features are standardized by the training part of each fold. Below each of our "
                "figures stands the paper's, where it has one."
            ),
            Text(
                "KOREA is the paper's Algorithm 1 (Laplace's approximation for each new point); "
                "exact is the same model integrated exactly, which is what "
                f"KFreeClassifier() does. K is at most {settings.k_max} in both, and less than "
                "the number of training rows. The paper does not say which K its rows KNN and PKNN "
                f"use; here it is {settings.n_neighbors}, and a table further down shows what "
                "other K give. Accuracy and log loss are those of the asymmetric structure; a "
                "vote that gives the true class no share at all costs 36 in log loss."
            ),
            *_agreement(ours, by_method),
            *tables,
            *_effect_of_k(settings, datasets, by_method),
        ),
        (_numbers(by_method, ours),),
    )


def _by_method(results: Results) -> dict[tuple[str, str, str], dict[str, Any]]:
    return {
        (data, structure, method): scores
        for (data, structure, _), group in results.items()
        for method, scores in group.items()
    }


def _of_one(dataset: Dataset, ours: dict[str, str], settings: Settings, by_method: dict) -> Table:
    n_samples, n_features = dataset.X.shape
    rows = []
    for method in [*METHODS, *EXACT, SEARCH]:
        key = ours.get(method, method)
        cells = [
            _cell(by_method.get((dataset.name, structure, key)), dataset.name, structure, method)
            for structure in settings.structures
        ]
        plain = by_method.get((dataset.name, "asymmetric", key))
        for name in ("accuracy", "log_loss"):
            cells.append("" if plain is None else f"{plain[name]['mean']:.3f}")
        if any(cells):
            rows.append((key, *cells))
    columns = [COLUMNS[structure] for structure in settings.structures]
    return Table(
        f"{dataset.name}: {n_samples} rows, {n_features} features, "
        f"{len(set(dataset.y.tolist()))} classes",
        ("F-measure", *columns, "accuracy", "log loss"),
        tuple(rows),
    )


def _cell(scores: dict | None, data: str, structure: str, method: str) -> str:
    if scores is None:
        return ""
    here = f"{scores['f_measure']['mean']:.2f} ± {scores['f_measure']['std']:.2f}"
    paper = F_MEASURE.get((method, data, structure))
    return here if paper is None else f"{here}\npaper {paper.mean:.2f} ± {paper.std:.2f}"


def _agreement(ours: dict[str, str], by_method: dict) -> tuple[Text, ...]:
    """How far we are from the paper, in one paragraph."""
    lines = []
    for data in {data: None for data, _, _ in by_method}:
        gaps = []
        for (method, of, structure), paper in F_MEASURE.items():
            scores = by_method.get((data, structure, ours[method]))
            if of == data and scores is not None:
                gaps.append((scores["f_measure"]["mean"] - paper.mean, paper.std))
        if gaps:
            inside = sum(abs(gap) <= std for gap, std in gaps)
            mean = sum(gap for gap, _ in gaps) / len(gaps)
            lines.append(f"{data} {mean:+.2f} ({inside} of {len(gaps)})")
    if not lines:
        return ()
    return (
        Text(
            "Mean difference to the paper, ours minus theirs, and in brackets how many figures "
            f"lie within the paper's own deviation: {', '.join(lines)}."
        ),
    )


def _effect_of_k(
    settings: Settings, datasets: Mapping[str, Dataset], by_method: dict
) -> tuple[Text | Table, ...]:
    there = [name for name in datasets if any(labels[0] == name for labels in by_method)]
    rows = []
    for method in ("KNN", "PKNN"):
        for k in sorted({settings.n_neighbors, *settings.other_neighbors}):
            found = [by_method.get((data, "asymmetric", named(method, k))) for data in there]
            if any(found):
                shown = ("" if s is None else f"{s['f_measure']['mean']:.2f}" for s in found)
                rows.append((named(method, k), *shown))
    if not rows:
        return ()
    caption = "F-measure of KNN and PKNN for several K (asymmetric structure)"
    return (Table(caption, ("", *there), tuple(rows)),)


def _numbers(by_method: dict, ours: dict[str, str]) -> Numbers:
    names = [field.name for field in fields(Evaluation) if not field.name.endswith("seconds")]
    header = ["data", "structure", "method", "f_measure_paper", "f_measure_std_paper"]
    header += [f"{name}_{part}" for name in names for part in ("mean", "std")]
    to_paper = {key: method for method, key in ours.items()}
    rows = []
    for (data, structure, method), scores in sorted(
        by_method.items(), key=lambda item: (item[0][0], STRUCTURES.index(item[0][1]), item[0][2])
    ):
        paper = F_MEASURE.get((to_paper.get(method, ""), data, structure))
        rows.append(
            (
                data,
                structure,
                method,
                "" if paper is None else paper.mean,
                "" if paper is None else paper.std,
                *(scores[name][part] for name in names for part in ("mean", "std")),
            )
        )
    return Numbers("scores.csv", tuple(header), tuple(rows))
