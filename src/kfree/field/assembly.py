"""From rows to a design: all views read, columns prepared, the blocks named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kfree.field.columns import Columns, learn_columns
from kfree.field.design import FEW_CLASSES, Block, Design
from kfree.field.features import Reading, Spoken, learn_reading, speak
from kfree.field.forest import FEATURES as FOREST_FEATURES
from kfree.field.forest import Forest, grow
from kfree.field.linear import Projection, learn_linear, linear_part
from kfree.field.searching import Lists
from kfree.field.views import FOREST, Spec, View, make_view


@dataclass(frozen=True)
class Assembly:
    """All that turns rows into a design; fixed by the training rows."""

    labels: np.ndarray  # (n_samples,) of the training rows
    n_classes: int
    length: int  # of neighbor lists
    columns: Columns | None  # None where rows are given as distances
    views: tuple[View, ...]
    readings: tuple[Reading, ...]  # one for each view
    projections: tuple[Projection, Projection] | None
    forest: Forest | None

    @property
    def everywhere(self) -> bool:
        """Whether every class is near every row."""
        return self.n_classes <= FEW_CLASSES

    def new_lists(self, X: Any, n_jobs: int | None) -> list[Lists]:
        """For each view the training rows nearest to new rows."""
        return [view.of_new(X, self.columns, self.length, n_jobs) for view in self.views]

    def training_lists(self, n_jobs: int | None) -> list[Lists]:
        """For each view the nearest others of every training row."""
        return [view.training(self.labels, self.length, n_jobs) for view in self.views]

    def trees(self, X: Any) -> np.ndarray | None:
        """What the forest's trees say of new rows, if there is a forest: (n_rows, n_classes)."""
        if self.forest is None:
            return None
        assert self.columns is not None
        # Standardized, as trees compare in single precision.
        return self.forest.probabilities(self.columns.standardized(X))

    def design(self, X: Any, lists: list[Lists], trees: np.ndarray | None) -> Design:
        """The design of rows whose lists, and whose class probabilities by trees, are known."""
        n_rows = len(X)
        spoken = [
            speak(one, self.labels, reading)
            for one, reading in zip(lists, self.readings, strict=True)
        ]
        ends = [
            reading.at_end(one) if self.everywhere else None
            for one, reading in zip(lists, self.readings, strict=True)
        ]
        if self.forest is not None:
            assert trees is not None
            spoken.append(self.forest.speak(trees))
            ends.append(None)
        row, label, values = (
            _every_pair(n_rows, self.n_classes, spoken, ends)
            if self.everywhere
            else _near_pairs(n_rows, spoken)
        )
        linear = np.zeros((n_rows, 0))
        if self.projections is not None:
            assert self.columns is not None
            linear = np.hstack(linear_part(X, self.columns, self.projections))
        starts = np.searchsorted(label, np.arange(self.n_classes + 1))
        return Design(n_rows, self.n_classes, self.everywhere, row, starts, values, linear)

    def blocks(self) -> list[Block]:
        """The blocks of weights that have a precision each."""
        kinds, first = [], 0
        for view, reading in zip(self.views, self.readings, strict=True):
            for kind, width in (
                ("fractions", len(reading.fractions)),
                ("distances", len(reading.ranks)),
            ):
                kinds.append((f"{view.name} {kind}", slice(first, first + width)))
                first += width
        if self.forest is not None:
            kinds.append((FOREST, slice(first, first + FOREST_FEATURES)))
        blocks = [Block(f"{name}, shared", "shared", columns) for name, columns in kinds]
        blocks += [Block(f"{name}, by class", "own", columns) for name, columns in kinds]
        if self.projections is not None:
            assert self.columns is not None
            widths = [_width(p, len(self.columns.mean)) for p in self.projections]
            blocks.append(Block("linear columns", "linear", slice(0, widths[0])))
            blocks.append(Block("linear scores", "linear", slice(widths[0], sum(widths))))
        return blocks


def learn(
    X: Any,
    labels: np.ndarray,
    n_classes: int,
    specs: list[Spec],
    linear: bool,
    n_neighbors: int,
    random_state: Any,
    n_jobs: int | None,
) -> tuple[Assembly, Design]:
    """What the training rows teach, and their own design."""
    precomputed = any(spec.metric == "precomputed" for spec in specs)
    columns = None if precomputed else learn_columns(X)
    views = tuple(
        make_view(spec, X, columns, labels, n_classes) for spec in specs if spec.name != FOREST
    )
    length = min([n_neighbors, len(labels) - 1, *(view.search.most_neighbors for view in views)])
    lists = [view.training(labels, length, n_jobs) for view in views]
    readings = tuple(learn_reading(one, labels, n_classes) for one in lists)
    projections = None
    if linear and n_classes <= FEW_CLASSES:
        assert columns is not None
        projections = learn_linear(X, columns)
    forest = trees = None
    if n_classes <= FEW_CLASSES and any(spec.name == FOREST for spec in specs):
        assert columns is not None
        forest, trees = grow(columns.standardized(X), labels, n_classes, random_state, n_jobs)
    assembly = Assembly(labels, n_classes, length, columns, views, readings, projections, forest)
    return assembly, assembly.design(X, lists, trees)


def _every_pair(
    n_rows: int, n_classes: int, spoken: list[Spoken], ends: list[np.ndarray | None]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All pairs (row, class). A class that is not in a list has the distances of its end."""
    values = np.zeros((n_classes, n_rows, sum(one.values.shape[1] for one in spoken)))
    first = 0
    for one, end in zip(spoken, ends, strict=True):
        width = one.values.shape[1]
        values[one.label, one.row, first : first + width] = one.values
        if end is not None:
            values[:, :, first : first + width] += end
        first += width
    row = np.tile(np.arange(n_rows), n_classes)
    label = np.repeat(np.arange(n_classes), n_rows)
    return row, label, values.reshape(n_rows * n_classes, -1)


def _near_pairs(n_rows: int, spoken: list[Spoken]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pairs that some view has; zeros where another view has not."""
    keys = [one.label * n_rows + one.row for one in spoken]
    pairs = np.unique(np.concatenate(keys))
    values = np.zeros((len(pairs), sum(one.values.shape[1] for one in spoken)))
    first = 0
    for one, key in zip(spoken, keys, strict=True):
        width = one.values.shape[1]
        values[np.searchsorted(pairs, key), first : first + width] = one.values
        first += width
    return pairs % n_rows, pairs // n_rows, values


def _width(projection: Projection, n_features: int) -> int:
    return n_features if projection.directions is None else projection.directions.shape[1]
