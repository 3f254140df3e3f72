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
from kfree.field.within import Within, learn_whitening, without_themselves
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
    within: Within | None  # the training rows of the view of that name

    def training(self, length: int, n_jobs: int | None) -> Lists:
        """The nearest others of every training row, which its own label does not draw nearer."""
        if self.within is None:
            return training_lists(self.search, length, n_jobs)
        # The correction changes the order, so more are looked at than are kept.
        wider = min(length + length // 2, self.search.most_neighbors)
        lists = training_lists(self.search, wider, n_jobs)
        return without_themselves(lists, length, self.within)

    def of_new(self, X: Any, scaled: Scaled | None, length: int, n_jobs: int | None) -> Lists:
        """The training rows nearest to new rows."""
        return new_lists(self.search, self.points(X, scaled), length, n_jobs)

    def points(self, X: Any, scaled: Scaled | None) -> Any:
        """New rows as this view compares them; `scaled` are the same on common scales."""
        if scaled is not None and self.within is not None:
            X = self.within.whitening(scaled.standardized)
        elif scaled is not None and self.name == SCORES:
            X = scaled.scores
        return self.space.points(X)


def make_view(
    spec: Spec, X: Any, scaled: Scaled | None, labels: np.ndarray, n_classes: int
) -> View:
    """The view that `spec` asks for; `scaled` are the rows on common scales."""
    if spec.metric is not None:
        space = make_space(spec.metric, 2.0, spec.params, X)
        return View(spec.name, space, search_in(space, space.points(X)), None)
    assert scaled is not None
    if spec.name == SCORES:
        space = Minkowski(1.0)
        return View(spec.name, space, search_in(space, space.points(scaled.scores)), None)
    space = Minkowski(2.0)
    whitening = learn_whitening(scaled.standardized, labels, n_classes)
    search = search_in(space, space.points(whitening(scaled.standardized)))
    return View(spec.name, space, search, Within(whitening, search.points, labels))
