"""Neighbor lists from the library's own search: the one place where the field asks for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kfree.neighbors.search import Search, make_search


@dataclass(frozen=True)
class Lists:
    """For each row its nearest training rows, nearest first, and their distances."""

    indices: np.ndarray  # (n_rows, length)
    distances: np.ndarray  # (n_rows, length)


def search_in(space: Any, points: Any) -> Search:
    """A search among training points, as the space prepared them."""
    return make_search(space, points, "auto")


def training_lists(search: Search, length: int, n_jobs: int | None) -> Lists:
    """The nearest others of every training row."""
    every = np.arange(search.n_points)
    return Lists(*search.nearest(search.points, length, every, n_jobs))


def new_lists(search: Search, queries: Any, length: int, n_jobs: int | None) -> Lists:
    """The nearest training rows of new rows."""
    return Lists(*search.nearest(queries, length, None, n_jobs))
