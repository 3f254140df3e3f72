"""Views of the rows: each is a space of its own in which a row has its nearest others.

- "scores": normal scores of each column's ranks, Manhattan distance. Nothing changes when a column
  is transformed monotonically.
- "within": columns whitened by their covariance within classes, Euclidean distance.
- a metric, on the rows as they are given; "precomputed" takes the rows as distances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kfree.field.columns import Scaled
from kfree.field.features import Lists
from kfree.field.within import Within, learn_whitening, without_themselves
from kfree.neighbors.metric import Minkowski, Space, make_space
from kfree.neighbors.search import Search, make_search

SCORES, WITHIN, FOREST = "scores", "within", "forest"
NAMES = (SCORES, WITHIN, FOREST)


@dataclass(frozen=True)
class Spec:
    """A view as it was asked for; `metric` is None for those that have a name of their own."""

    name: str
    metric: Any = None
    params: dict | None = None


@dataclass(frozen=True)
class View:
    """One view of the training rows, ready to be searched."""

    name: str
    space: Space
    search: Search
    within: Within | None  # the training rows of the view of that name

    def training(self, length: int, n_jobs: int | None) -> Lists:
        """The nearest others of every training row, which its own label does not draw nearer."""
        wider, every = length, np.arange(self.search.n_points)
        if self.within is not None:
            # The correction changes the order, so more are looked at than are kept.
            wider = min(length + length // 2, self.search.most_neighbors)
        lists = Lists(*self.search.nearest(self.search.points, wider, every, n_jobs))
        return lists if self.within is None else without_themselves(lists, length, self.within)

    def of_new(self, X: Any, scaled: Scaled | None, length: int, n_jobs: int | None) -> Lists:
        """The training rows nearest to new rows; `scaled` are the same on common scales."""
        if scaled is not None and self.within is not None:
            X = self.within.whitening(scaled.standardized)
        elif scaled is not None and self.name == SCORES:
            X = scaled.scores
        return Lists(*self.search.nearest(self.space.points(X), length, None, n_jobs))


def make_view(
    spec: Spec, X: Any, scaled: Scaled | None, labels: np.ndarray, n_classes: int
) -> View:
    """The view that `spec` asks for; `scaled` are the rows on common scales."""
    if spec.metric is not None:
        space = make_space(spec.metric, 2.0, spec.params, X)
        return View(spec.name, space, make_search(space, space.points(X), "auto"), None)
    assert scaled is not None
    if spec.name == SCORES:
        space = Minkowski(1.0)
        return View(spec.name, space, make_search(space, space.points(scaled.scores), "auto"), None)
    space = Minkowski(2.0)
    whitening = learn_whitening(scaled.standardized, labels, n_classes)
    search = make_search(space, space.points(whitening(scaled.standardized)), "auto")
    return View(spec.name, space, search, Within(whitening, search.points, labels))
