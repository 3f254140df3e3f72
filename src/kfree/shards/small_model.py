"""The library's own averages on a small model of the points that rows with open labels touch.

What is known of the touched points is all that averaging needs: whoever is not touched is no more
than a label there. New rows (`new_rows`) and held-out rows (`held_out_rows`) are averaged alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, cast

import numpy as np

from kfree.averaging import Average, average_by_quadrature, optimal_by_quadrature
from kfree.blocks import block_rows
from kfree.candidates import Candidates
from kfree.inference.prior import GammaPrior
from kfree.inference.quadrature import TrainingPosterior
from kfree.likelihood.open_labels import OpenLabels
from kfree.likelihood.training_sum import TrainingSum
from kfree.neighbors.graph import NeighborGraph
from kfree.neighbors.search import Search
from kfree.neighbors.structures import STRUCTURES, Neighborhoods, OpenRows
from kfree.shards.rows import Plan
from kfree.training import KnownPosteriors, Model


@dataclass(frozen=True)
class Knowledge:
    """What all shards together have found out about K and beta, and how it is used."""

    plan: Plan
    structure: str
    candidates: Candidates
    prior: GammaPrior
    posterior: TrainingPosterior
    joint: bool
    average: bool

    @property
    def nearest(self) -> bool:
        """Whether neighborhoods are the lists of nearest neighbors."""
        return STRUCTURES[self.structure].nearest

    @property
    def enters(self) -> bool:
        """Whether it matters whose neighborhoods a new row enters."""
        return self.joint or not self.nearest


@dataclass(frozen=True)
class SmallGraph(NeighborGraph):
    """The lists of a few points, with what cannot be read off these lists given besides."""

    reverse: tuple | None = None  # type: ignore[assignment]
    mutual_cell: np.ndarray | None = None  # type: ignore[assignment]


def average_rows(
    knowledge: Knowledge,
    likelihood: TrainingSum | KnownPosteriors,
    graph: NeighborGraph,
    table: Neighborhoods,
    labels: np.ndarray,
    rows: OpenRows,
    own_labels: np.ndarray | None,
) -> Average:
    """The library's own averages, of blocks of rows."""
    n_classes = len(knowledge.plan.classes)
    model = small_model(knowledge, graph, table, labels, likelihood)
    work: Callable = average_by_quadrature if knowledge.average else optimal_by_quadrature
    every = OpenLabels(rows, table, labels, n_classes, knowledge.joint, own_labels)
    step = block_rows(model, "quadrature")
    starts = range(0, rows.n_rows, step)
    if not len(starts):
        n_k = model.n_k
        shapes = ((0, n_k), (0, n_classes), (0, n_classes), (0,), (0,))
        return Average(*(np.empty(shape) for shape in shapes))
    parts = [every.take(np.arange(a, min(a + step, rows.n_rows))) for a in starts]
    return join_averages([work(model, part) for part in parts])


def small_model(
    knowledge: Knowledge, graph: Any, table: Any, labels: Any, likelihood: Any
) -> Model:
    """The model of a few points, among which everybody was found before."""
    return Model(
        knowledge.structure,
        cast(Search, None),
        graph,
        table,
        labels,
        len(knowledge.plan.classes),
        knowledge.candidates,
        knowledge.prior,
        knowledge.posterior,
        likelihood,
    )


def join_averages(parts: Sequence[Average]) -> Average:
    """What is known of several blocks of rows, one after the other."""
    return Average(
        *(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Average))
    )
