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
from kfree.field.searching import Lists, new_lists, search_in, training_lists
from kfree.field.within import Whitening, learn_whitening, without_themselves
from kfree.neighbors.metric import Minkowski, Space, make_space
from kfree.neighbors.search import Search

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
    whitening: Whitening | None

    def training(self, labels: np.ndarray, length: int, n_jobs: int | None) -> Lists:
        """The nearest others of every training row, which its own label does not draw nearer."""
        if self.whitening is None:
            return training_lists(self.search, length, n_jobs)
        # The correction changes the order, so more are looked at than are kept.
        wider = min(length + length // 2, self.search.most_neighbors)
        lists = training_lists(self.search, wider, n_jobs)
        return without_themselves(lists, length, self.search.points, labels, self.whitening)

    def of_new(self, X: Any, scaled: Scaled | None, length: int, n_jobs: int | None) -> Lists:
        """The training rows nearest to new rows."""
        return new_lists(self.search, self.points(X, scaled), length, n_jobs)

    def points(self, X: Any, scaled: Scaled | None) -> Any:
        """New rows as this view compares them; `scaled` are the same on common scales."""
        return _points(self.name, self.space, self.whitening, X, scaled)


def make_view(
    spec: Spec, X: Any, scaled: Scaled | None, labels: np.ndarray, n_classes: int
) -> View:
    """The view that `spec` asks for; `scaled` are the rows on common scales."""
    whitening = None
    if spec.metric is not None:
        space, scaled = make_space(spec.metric, 2.0, spec.params, X), None
    else:
        space = Minkowski(1.0 if spec.name == SCORES else 2.0)
        if spec.name == WITHIN:
            assert scaled is not None
            whitening = learn_whitening(scaled.standardized, labels, n_classes)
    points = _points(spec.name, space, whitening, X, scaled)
    return View(spec.name, space, search_in(space, points), whitening)


def _points(
    name: str, space: Space, whitening: Whitening | None, X: Any, scaled: Scaled | None
) -> Any:
    if whitening is not None:
        assert scaled is not None
        return space.points(whitening(scaled.standardized))
    if name == SCORES and scaled is not None:
        return space.points(scaled.scores)
    return space.points(X)
