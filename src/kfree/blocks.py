"""Rows with open labels, cut into blocks of bounded memory that threads can share."""

from __future__ import annotations

import numpy as np

from kfree.inference.laplace import GRID
from kfree.likelihood.few_classes import FEW_CLASSES
from kfree.likelihood.open_labels import OpenLabels
from kfree.training import Model, held_out, new_points

# How many new points are searched for at a time, and about how many numbers a block of them may
# hold while it is averaged (32 MiB each array).
SEARCH_ROWS = 1 << 15
BLOCK_NUMBERS = 1 << 22
# The largest block: threads share blocks, and larger ones are not faster.
LARGEST_BLOCK = 1024
# About how many numbers Algorithm 1 holds for each row, K and class.
KOREA_NUMBERS = 64


def open_rows(
    model: Model,
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
    step = block_rows(model, inference, n_draws)
    if queries is None:
        rows = np.arange(len(model.labels))
        return [held_out(model, rows[a : a + step], joint) for a in range(0, len(rows), step)]
    blocks = []
    for first in range(0, queries.shape[0], SEARCH_ROWS):
        part = queries[first : first + SEARCH_ROWS]
        found = new_points(model, part, joint, n_jobs)
        n_parts = -(-found.n_rows // step)
        blocks += [found.take(part) for part in np.array_split(np.arange(found.n_rows), n_parts)]
    return blocks


def block_rows(model: Model, inference: str, n_draws: int = 0) -> int:
    """How many rows make a block."""
    return max(1, min(LARGEST_BLOCK, BLOCK_NUMBERS // _numbers(model, inference, n_draws)))


def _numbers(model: Model, inference: str, n_draws: int) -> int:
    """About how many numbers a row takes."""
    k_max, rule = int(model.candidates.k[-1]), model.posterior.rule
    n_listed = min(model.n_classes, FEW_CLASSES)
    if inference == "metropolis":
        # Chains run side by side: one step of many rows costs little more than of one.
        sum_of_k = int(model.candidates.k.sum())
        return (sum_of_k * n_listed + 4 * n_draws) // 32
    if inference == "laplace":
        return max(len(GRID) + model.n_k, KOREA_NUMBERS) * model.n_k * n_listed
    n_nodes = rule.beta.shape[1]
    if model.n_classes <= FEW_CLASSES:
        return 2 * n_nodes * model.n_classes + 2 * k_max
    return n_nodes * k_max * n_listed + 2 * model.n_classes
