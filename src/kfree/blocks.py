"""Rows with open labels, cut into blocks of bounded memory that threads can share."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from kfree.inference.laplace import GRID
from kfree.likelihood.counts import RisingCounts
from kfree.likelihood.entering import Entering, entering
from kfree.likelihood.few_classes import are_few
from kfree.likelihood.open_labels import OpenLabels
from kfree.neighbors.structures import HeldOut, NewPoints
from kfree.training import Model

# How many new points are searched for at a time, and about how many numbers a block of them may
# hold while it is averaged (32 MiB each array).
SEARCH_ROWS = 1 << 15
BLOCK_NUMBERS = 1 << 22
# The largest block: threads share blocks, and larger ones are not faster.
LARGEST_BLOCK = 1024
# About how many numbers Algorithm 1 holds for each row, K and class.
KOREA_NUMBERS = 64
# About how many classes are found around a row where there are many.
USUALLY_LISTED = 32

# Up to how many numbers (256 MiB) are kept of the classes around the training points, and of what
# new rows do to them at the candidates that a label with this slope could bring back. Without them
# predictions under "asymmetric" take 1.2 to 1.6 times as long, under the others 1.1 to 1.2.
KEPT_NUMBERS = 1 << 25
LARGEST_SLOPE = 40.0


class PreparedPoints:
    """A model, and what is worked out once of its training points for all rows to come."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @cached_property
    def around(self) -> dict[int, np.ndarray] | None:
        """The classes around every training point at the candidates that matter to most rows."""
        model = self.model
        active = model.posterior.rule.candidate.tolist()
        if len(model.labels) * model.n_classes * len(active) > KEPT_NUMBERS:
            return None
        counts = RisingCounts(model.table, model.labels, model.labels, model.n_classes)
        return {i: counts.by_class(i) for i in active}

    @cached_property
    def entering(self) -> Entering | None:
        """What becomes of every training point when a new row enters its list, if memory allows.

        At the nodes that most rows are averaged over and where they end, and at the modes of other
        candidates that a label might bring back.
        """
        model, posterior, curves = self.model, self.model.posterior, self.model.posterior.curves
        reached = curves.log_tilted(np.full(model.n_k, LARGEST_SLOPE)) + posterior.log_prior
        near = np.flatnonzero(reached > posterior.log_mass.max())
        betas = {int(i): curves.mode[i : i + 1] for i in near}
        for j, i in enumerate(posterior.rule.candidate.tolist()):
            betas[i] = np.concatenate([posterior.rule.of(j)[0], curves.ends(i)[0]])
        n_betas = sum(map(len, betas.values()))
        if len(model.labels) * model.n_classes * n_betas > KEPT_NUMBERS:
            return None
        return entering(model.graph, model.table, model.labels, model.n_classes, betas)


def open_rows(
    prepared: PreparedPoints,
    queries: np.ndarray | None,
    joint: bool,
    inference: str,
    n_draws: int,
    n_jobs: int | None,
) -> list[OpenLabels]:
    """The rows in blocks, each ready to be averaged.

    Parameters
    ----------
    queries : new points as the space of the search has them; None: the training rows, held out
    inference : "quadrature", "laplace" or "metropolis"
    n_draws : how many draws a sampler makes for each row
    """
    model = prepared.model
    step = block_rows(model, inference, n_draws)
    if queries is None:
        rows = np.arange(len(model.labels))
        return [held_out(prepared, rows[a : a + step], joint) for a in range(0, len(rows), step)]
    blocks = []
    for first in range(0, queries.shape[0], SEARCH_ROWS):
        part = queries[first : first + SEARCH_ROWS]
        found = new_points(prepared, part, joint, n_jobs)
        n_parts = -(-found.n_rows // step)
        blocks += [found.take(part) for part in np.array_split(np.arange(found.n_rows), n_parts)]
    return blocks


def new_points(
    prepared: PreparedPoints, queries: np.ndarray, joint: bool, n_jobs: int | None
) -> OpenLabels:
    """New points among the training points."""
    model = prepared.model
    radii = model.graph.radii if joint or not model.table.nearest else None
    arrivals = model.search.arrivals(queries, model.graph.k, radii, n_jobs)
    rows = NewPoints(model.structure, model.graph, arrivals)
    found = OpenLabels(rows, model.table, model.labels, model.n_classes, joint)
    few_rows = len(arrivals.reverse_row) < len(model.labels)  # these touch few points
    if not joint or few_rows or not few_classes(model):
        return found
    if model.table.nearest:
        return replace(found, entering=prepared.entering)
    return replace(found, around=prepared.around)


def held_out(prepared: PreparedPoints, rows: np.ndarray, joint: bool) -> OpenLabels:
    """Training rows, each with its label unknown."""
    model = prepared.model
    found = HeldOut(model.structure, model.graph, model.table, rows)
    around = prepared.around if joint and few_classes(model) else None
    own = model.labels[rows]
    return OpenLabels(found, model.table, model.labels, model.n_classes, joint, own, around)


def few_classes(model: Model) -> bool:
    """Whether all classes are looked at for every touched point."""
    return are_few(model.n_classes, model.candidates.k[-1])


def block_rows(model: Model, inference: str, n_draws: int = 0) -> int:
    """How many rows make a block."""
    return max(1, min(LARGEST_BLOCK, BLOCK_NUMBERS // _numbers(model, inference, n_draws)))


def _numbers(model: Model, inference: str, n_draws: int) -> int:
    """About how many numbers a row takes."""
    k_max, rule = int(model.candidates.k[-1]), model.posterior.rule
    few = few_classes(model)
    n_listed = model.n_classes if few else min(model.n_classes, USUALLY_LISTED)
    if inference == "metropolis":
        # Chains run side by side: one step of many rows costs little more than of one.
        sum_of_k = int(model.candidates.k.sum())
        return (sum_of_k * model.n_classes + 4 * n_draws) // 32
    if inference == "laplace":
        return max(len(GRID) + model.n_k, KOREA_NUMBERS) * model.n_k * n_listed
    n_nodes = rule.beta.shape[1]
    if few:
        # The classes around the points that a row touches, about as many as it has neighbors, are
        # small numbers. Those around all points are never more.
        around = k_max * model.n_classes // 8
        if len(model.labels) * model.n_classes <= 8 * BLOCK_NUMBERS:
            around = 0
        return 2 * n_nodes * model.n_classes + 2 * k_max + around
    return n_nodes * k_max * n_listed + 2 * model.n_classes
