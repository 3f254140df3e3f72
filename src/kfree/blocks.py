"""Rows with open labels, cut into blocks of bounded memory that threads can share."""

from __future__ import annotations

import numpy as np
from joblib import effective_n_jobs

from kfree.averaging import in_lists, in_tables
from kfree.inference.laplace import GRID
from kfree.likelihood.open_labels import OpenLabels
from kfree.likelihood.slots import DENSE_CLASSES
from kfree.training import Model

# How many new points are searched for at a time, and about how many numbers a block of them may
# hold while it is averaged (32 MiB each array).
SEARCH_ROWS = 1 << 15
BLOCK_NUMBERS = 1 << 22
# The smallest blocks that are worth a thread, where a row is quickly averaged and where it is not;
# and how many neighbors, over all K, make it worth one.
LARGE_BLOCK = 2048
SMALL_BLOCK = 256
BLOCK_PAIRS = 1 << 23
# About how many numbers Algorithm 1 holds for each row, K and class.
KOREA_NUMBERS = 64
# About how many numbers the classes near a row take. What is known of the points around rows is
# worked out anew for each block, so that blocks should be large there.
LISTED_NUMBERS = 1024


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
    new, exact = queries is not None, inference == "quadrature"
    k, n_k, n_nodes = model.n_k, model.n_k, len(GRID)
    if exact:
        rule = model.rule if new else model.rule_held_out
        k, n_k, n_nodes = int(rule.k[-1]), len(rule.k), rule.beta.shape[1]
    n_classes = min(model.n_classes, DENSE_CLASSES)
    if inference == "metropolis":
        # Chains run side by side: one step of many rows costs little more than of one.
        per_row = (k * k * n_classes + 4 * n_draws) // 32
    elif exact and in_tables(model, new):
        per_row = (n_nodes + 2) * model.n_classes + k
    elif exact and in_lists(model, new, joint):
        per_row = (2 * model.n_classes + LISTED_NUMBERS) // 4
        if not new:
            per_row += k * min(model.n_classes, k) * n_nodes // 8
    else:
        # Algorithm 1 keeps some numbers for all K while it looks for modes.
        per_row = (n_nodes if exact else max(n_nodes + k, KOREA_NUMBERS)) * k * n_classes
    step = max(1, BLOCK_NUMBERS // max(1, per_row))
    if queries is None:
        rows = np.arange(len(model.labels))
        return [model.held_out(rows[a : a + step], joint) for a in range(0, len(rows), step)]
    # Blocks are shared out among the threads, but not so small that each is mostly set-up.
    least = LARGE_BLOCK if model.structure == "asymmetric" else SMALL_BLOCK
    if exact:
        least = min(least, max(SMALL_BLOCK, BLOCK_PAIRS // (n_k * k)))
    blocks = []
    for first in range(0, len(queries), SEARCH_ROWS):
        part = queries[first : first + SEARCH_ROWS]
        found = model.new_points(part, joint, k, n_jobs)
        size = min(step, max(least, -(-len(part) // effective_n_jobs(n_jobs))))
        for start in range(0, len(part), size):
            blocks.append(found.take(np.arange(start, min(start + size, len(part)))))
    return blocks
