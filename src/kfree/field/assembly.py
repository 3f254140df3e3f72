"""From rows to a design: all views read, columns prepared, the blocks named."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kfree.field import densities, means
from kfree.field.columns import Columns, Scaled, learn_columns
from kfree.field.crossed import MOST_AMONG_EQUALS, Crossed, among_equals, learn_crossed
from kfree.field.curves import Curves, learn_curves
from kfree.field.densities import Densities, learn_densities
from kfree.field.design import FEW_CLASSES, Block, Design
from kfree.field.features import Lists, Reading, Spoken, learn_reading, speak
from kfree.field.forest import FEATURES as FOREST_FEATURES
from kfree.field.forest import Forest, grow
from kfree.field.linear import Projection, learn_projection
from kfree.field.views import FOREST, WITHIN, Spec, View, make_view
from kfree.field.within import Within


@dataclass(frozen=True)
class Prepared:
    """What follows from the training rows, their labels and the views that were asked for."""

    rows: Any  # as they were given
    labels: np.ndarray  # (n_samples,)
    n_classes: int
    specs: list[Spec]
    columns: Columns | None  # None where rows are given as distances
    views: tuple[View, ...]
    within: Within | None  # the training rows of the view of that name
    densities: Densities | None  # of the classes in it

    @property
    def everywhere(self) -> bool:
        """Whether every class is near every row."""
        return self.n_classes <= FEW_CLASSES

    def scaled(self, X: Any) -> Scaled | None:
        """Rows on common scales; None where they are given as distances."""
        return None if self.columns is None else Scaled(X, self.columns)


def prepare(
    rows: Any, labels: np.ndarray, n_classes: int, specs: list[Spec]
) -> tuple[Prepared, Scaled | None]:
    """All of that, and the training rows on common scales."""
    precomputed = any(spec.metric == "precomputed" for spec in specs)
    columns = None if precomputed else learn_columns(rows)
    scaled = None if columns is None else Scaled(rows, columns)
    views = tuple(
        make_view(spec, rows, scaled, labels, n_classes) for spec in specs if spec.name != FOREST
    )
    within = next((view.within for view in views if view.within is not None), None)
    found = None if within is None else learn_densities(within)
    return Prepared(rows, labels, n_classes, specs, columns, views, within, found), scaled


@dataclass(frozen=True)
class Assembly:
    """All that turns rows into a design; fixed by the training rows."""

    prepared: Prepared
    length: int  # of neighbor lists
    readings: tuple[Reading, ...]  # one for each view
    projections: tuple[Projection, ...] = ()  # of standardized columns and of normal scores
    curves: Curves | None = None
    forest: Forest | None = None
    crossed: Crossed | None = None  # None where classes are many

    @property
    def labels(self) -> np.ndarray:
        """Of the training rows."""
        return self.prepared.labels

    @property
    def views(self) -> tuple[View, ...]:
        """Those that have neighbors."""
        return self.prepared.views

    def new_lists(self, X: Any, n_jobs: int | None) -> list[Lists]:
        """For each view the training rows nearest to new rows."""
        scaled = self.prepared.scaled(X)
        return [view.of_new(X, scaled, self.length, n_jobs) for view in self.views]

    def training_lists(self, n_jobs: int | None) -> list[Lists]:
        """For each view the nearest others of every training row."""
        return [view.training(self.length, n_jobs) for view in self.views]

    def of_new(self, X: Any, lists: list[Lists]) -> Design:
        """The design of new rows whose lists are known."""
        trees, scaled = None, self.prepared.scaled(X)
        if self.forest is not None:
            assert scaled is not None
            # Standardized, as trees compare in single precision.
            trees = self.forest.probabilities(scaled.standardized)
        pairs = self.pairs(lists, trees)
        said = np.zeros((len(pairs.row), 0))
        if self.prepared.within is not None:
            assert scaled is not None
            assert self.prepared.densities is not None
            whitening = self.prepared.within.whitening
            points = whitening(scaled.standardized)
            squares = means.new_squares(points, whitening, pairs)
            log_density = densities.new_densities(points, self.prepared.densities, pairs)
            said = self.of_classes(squares, log_density)
        return self.design(pairs, scaled, said)

    def of_training(self, pairs: Design, scaled: Scaled | None) -> Design:
        """The design of the training rows, each left out."""
        said, within = np.zeros((len(pairs.row), 0)), self.prepared.within
        if within is not None:
            assert self.prepared.densities is not None
            squares = means.training_squares(within, pairs)
            log_density = densities.training_densities(within, self.prepared.densities, pairs)
            said = self.of_classes(squares, log_density)
            # A class of one row has neither mean nor density without it: it has the least that is
            # said for another.
            own = pairs.pair_of(self.labels)
            alone = np.flatnonzero((within.sizes[self.labels] == 1.0) & (own >= 0))
            said[own[alone]] = np.inf
            said[own[alone]] = pairs.lowest(said)[alone]
        return self.design(pairs, scaled, said)

    def of_classes(self, squares: np.ndarray, log_density: np.ndarray) -> np.ndarray:
        """What distances from the means and log densities say: (..., n_features)."""
        assert self.prepared.columns is not None
        assert self.prepared.densities is not None
        n_columns, n_coordinates = (
            len(self.prepared.columns.mean),
            self.prepared.densities.means.shape[1],
        )
        said = means.speak(squares, n_columns), densities.speak(log_density, n_coordinates)
        return np.concatenate(said, axis=-1)

    def pairs(self, lists: list[Lists], trees: np.ndarray | None) -> Design:
        """What lists say, and the class probabilities (n_rows, n_classes) of trees, if any."""
        everywhere = self.prepared.everywhere
        n_rows = len(lists[0].indices if lists else np.asarray(trees))
        spoken = [
            speak(one, self.labels, reading)
            for one, reading in zip(lists, self.readings, strict=True)
        ]
        ends = [
            reading.at_end(one) if everywhere else None
            for one, reading in zip(lists, self.readings, strict=True)
        ]
        if self.forest is not None:
            assert trees is not None
            spoken.append(self.forest.speak(trees))
            ends.append(None)
        if everywhere:
            return _every_pair(n_rows, self.prepared.n_classes, spoken, ends)
        return _near_pairs(n_rows, self.prepared.n_classes, spoken)

    def design(self, pairs: Design, scaled: Scaled | None, said: np.ndarray) -> Design:
        """All that speaks; `said` is what the classes' means and densities say."""
        linear = [pairs.linear]
        if self.curves is not None:
            assert scaled is not None
            columns = (scaled.standardized, scaled.scores)
            linear += [p(one) for p, one in zip(self.projections, columns, strict=True)]
            linear.append(self.curves(scaled.scores))
        if self.crossed is not None:
            linear.append(self.crossed(pairs.values.reshape(pairs.n_classes, pairs.n_rows, -1)))
        if not pairs.everywhere:
            # A class that is not near a row is taken for as far and thin as the last one that is.
            said = said - pairs.lowest(said)[pairs.row]
        return replace(pairs, values=np.hstack([pairs.values, said]), linear=np.hstack(linear))

    def blocks(self) -> list[Block]:
        """The blocks of weights that have a precision each."""
        widths = []
        for view, reading in zip(self.views, self.readings, strict=True):
            widths.append((f"{view.name} fractions, shared", len(reading.fractions)))
            widths.append((f"{view.name} distances, shared", len(reading.ranks)))
        if self.forest is not None:
            widths.append((f"{FOREST}, shared", FOREST_FEATURES))
        if self.prepared.within is not None:
            widths.append((f"{WITHIN} means, shared", means.FEATURES))
            widths.append((f"{WITHIN} densities, shared", densities.FEATURES))
        blocks = _in_turn("shared", widths)
        widths = []
        if self.curves is not None:
            assert self.prepared.columns is not None
            n_columns = len(self.prepared.columns.mean)
            for name, one in zip(("columns", "scores"), self.projections, strict=True):
                width = n_columns if one.directions is None else one.directions.shape[1]
                widths.append((f"linear {name}", width))
            widths.append(("curves", len(self.curves.center)))
        if self.crossed is not None:
            widths.append(("crossed", self.crossed.directions.shape[1]))
        return blocks + _in_turn("linear", widths)


def learn(
    X: Any,
    labels: np.ndarray,
    n_classes: int,
    specs: list[Spec],
    linear: bool,
    n_neighbors: int,
    seed: int,
    n_jobs: int | None,
) -> tuple[Assembly, Design, list[Lists]]:
    """What the training rows teach, their own design, and the nearest others in each view."""
    prepared, scaled = prepare(X, labels, n_classes, specs)
    views = prepared.views
    length = min([n_neighbors, len(labels) - 1, *(view.search.most_neighbors for view in views)])
    lists = [view.training(length, n_jobs) for view in views]
    readings = tuple(learn_reading(one, labels, n_classes) for one in lists)
    assembly, trees = Assembly(prepared, length, readings), None
    if not prepared.everywhere:
        return assembly, assembly.of_training(assembly.pairs(lists, None), scaled), lists
    if linear:
        assert scaled is not None
        projections = learn_projection(scaled.standardized), learn_projection(scaled.scores)
        curves = learn_curves(scaled.scores)
        assembly = replace(assembly, projections=projections, curves=curves)
    if any(spec.name == FOREST for spec in specs):
        assert scaled is not None
        forest, trees = grow(scaled.standardized, labels, n_classes, seed, n_jobs)
        assembly = replace(assembly, forest=forest)
    pairs = assembly.pairs(lists, trees)
    crossed = learn_crossed(pairs.values.reshape(n_classes, len(labels), -1))
    if among_equals(lists, labels) > MOST_AMONG_EQUALS:
        crossed = replace(crossed, directions=crossed.directions[:, :0])
    assembly = replace(assembly, crossed=crossed)
    return assembly, assembly.of_training(pairs, scaled), lists


def _in_turn(part: str, widths: list[tuple[str, int]]) -> list[Block]:
    """Blocks one after the other."""
    ends = np.cumsum([width for _, width in widths], dtype=int).tolist()
    return [
        Block(name, part, slice(end - width, end))
        for (name, width), end in zip(widths, ends, strict=True)
    ]


def _every_pair(
    n_rows: int, n_classes: int, spoken: list[Spoken], ends: list[np.ndarray | None]
) -> Design:
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
    starts = n_rows * np.arange(n_classes + 1)
    values = values.reshape(n_rows * n_classes, first)
    return Design(n_rows, n_classes, True, row, starts, values, np.zeros((n_rows, 0)))


def _near_pairs(n_rows: int, n_classes: int, spoken: list[Spoken]) -> Design:
    """The pairs that some view has; zeros where another view has not."""
    keys = [one.label * n_rows + one.row for one in spoken]
    pairs = np.unique(np.concatenate(keys))
    values = np.zeros((len(pairs), sum(one.values.shape[1] for one in spoken)))
    first = 0
    for one, key in zip(spoken, keys, strict=True):
        width = one.values.shape[1]
        values[np.searchsorted(pairs, key), first : first + width] = one.values
        first += width
    starts = np.searchsorted(pairs // n_rows, np.arange(n_classes + 1))
    return Design(n_rows, n_classes, False, pairs % n_rows, starts, values, np.zeros((n_rows, 0)))
