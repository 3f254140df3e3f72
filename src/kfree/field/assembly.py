"""From rows to a design: all views read, columns prepared, the blocks named."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kfree.field import densities, means
from kfree.field.columns import Columns, Scaled, learn_columns
from kfree.field.crossed import MOST_EXPLAINED, Crossed, explained, learn_crossed
from kfree.field.curves import Curves, learn_curves
from kfree.field.densities import Densities, learn_densities
from kfree.field.design import FEW_CLASSES, Block, Design
from kfree.field.features import Reading, Spoken, learn_reading, speak
from kfree.field.forest import FEATURES as FOREST_FEATURES
from kfree.field.forest import Forest, grow
from kfree.field.linear import Projection, learn_linear, linear_part
from kfree.field.searching import Lists
from kfree.field.views import FOREST, Spec, View, make_view
from kfree.field.within import Whitening

# How many rows are looked at, in one or several deals, to see whether they give themselves away.
CONTROL_ROWS = 2000


@dataclass(frozen=True)
class Pairs:
    """Pairs (row, class), ordered by class and then row, and what the neighbors and trees say."""

    row: np.ndarray  # (n_pairs,)
    label: np.ndarray  # (n_pairs,)
    values: np.ndarray  # (n_pairs, n_features)


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
    curves: Curves | None
    forest: Forest | None
    crossed: Crossed | None  # None where classes are many
    densities: tuple[Densities, ...]  # one for each view with means

    @property
    def everywhere(self) -> bool:
        """Whether every class is near every row."""
        return self.n_classes <= FEW_CLASSES

    def new_lists(self, X: Any, n_jobs: int | None) -> list[Lists]:
        """For each view the training rows nearest to new rows."""
        scaled = self.scaled(X)
        return [view.of_new(X, scaled, self.length, n_jobs) for view in self.views]

    def scaled(self, X: Any) -> Scaled | None:
        """Rows on common scales; None where they are given as distances."""
        return None if self.columns is None else Scaled(X, self.columns)

    def training_lists(self, n_jobs: int | None) -> list[Lists]:
        """For each view the nearest others of every training row."""
        return [view.training(self.labels, self.length, n_jobs) for view in self.views]

    def of_new(self, X: Any, lists: list[Lists]) -> Design:
        """The design of new rows whose lists are known."""
        trees, scaled = None, self.scaled(X)
        if self.forest is not None:
            assert scaled is not None
            # Standardized, as trees compare in single precision.
            trees = self.forest.probabilities(scaled.standardized)
        points = [view.points(X, scaled) for view, _ in self.with_means()]
        squares = [
            means.new_squares(one, whitening)
            for one, (_, whitening) in zip(points, self.with_means(), strict=True)
        ]
        log_density = [
            densities.new_densities(one, classes)
            for one, classes in zip(points, self.densities, strict=True)
        ]
        return self.design(len(X), scaled, self.pairs(lists, trees), squares, log_density)

    def with_means(self) -> list[tuple[View, Whitening]]:
        """The views in which the classes' means and densities speak, and their whitening."""
        return _whitened(self.views) if self.everywhere else []

    def pairs(self, lists: list[Lists], trees: np.ndarray | None) -> Pairs:
        """What lists say, and the class probabilities (n_rows, n_classes) of trees, if any."""
        n_rows = len(lists[0].indices if lists else np.asarray(trees))
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
        if self.everywhere:
            return _every_pair(n_rows, self.n_classes, spoken, ends)
        return _near_pairs(n_rows, spoken)

    def design(
        self,
        n_rows: int,
        scaled: Scaled | None,
        pairs: Pairs,
        squares: list[np.ndarray],
        log_density: list[np.ndarray],
    ) -> Design:
        """All that speaks; `squares` are distances from the means for each view that has them.

        `log_density` are the classes' log densities in the same views.
        """
        n_classes = self.n_classes
        linear = [np.zeros((n_rows, 0))]
        if self.projections is not None:
            assert scaled is not None
            linear += linear_part(scaled, self.projections)
        if self.curves is not None:
            assert scaled is not None
            linear.append(self.curves(scaled.scores))
        values = pairs.values
        if self.crossed is not None:
            linear.append(self.crossed(values.reshape(n_classes, n_rows, -1)))
        if squares:
            assert self.columns is not None
            n_columns = len(self.columns.mean)
            said = [means.speak(one, n_columns) for one in squares]
            said += [
                densities.speak(one, classes.means.shape[1])
                for one, classes in zip(log_density, self.densities, strict=True)
            ]
            values = np.hstack([values, *(one.reshape(len(values), -1) for one in said)])
        starts = np.searchsorted(pairs.label, np.arange(n_classes + 1))
        return Design(
            n_rows, n_classes, self.everywhere, pairs.row, starts, values, np.hstack(linear)
        )

    def blocks(self) -> list[Block]:
        """The blocks of weights that have a precision each."""
        widths = []
        for view, reading in zip(self.views, self.readings, strict=True):
            widths.append((f"{view.name} fractions", len(reading.fractions)))
            widths.append((f"{view.name} distances", len(reading.ranks)))
        if self.forest is not None:
            widths.append((FOREST, FOREST_FEATURES))
        widths += [(f"{view.name} means", means.FEATURES) for view, _ in self.with_means()]
        widths += [(f"{view.name} densities", densities.FEATURES) for view, _ in self.with_means()]
        blocks = _in_turn("shared", [(f"{name}, shared", width) for name, width in widths])
        if not self.everywhere:
            blocks += _in_turn("own", [(f"{name}, by class", width) for name, width in widths])
        widths = []
        if self.projections is not None:
            assert self.columns is not None
            n_columns = len(self.columns.mean)
            names = ("linear columns", "linear scores")
            widths += zip(names, (_width(p, n_columns) for p in self.projections), strict=True)
        if self.curves is not None:
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
    precomputed = any(spec.metric == "precomputed" for spec in specs)
    columns = None if precomputed else learn_columns(X)
    scaled = None if columns is None else Scaled(X, columns)
    views = tuple(
        make_view(spec, X, scaled, labels, n_classes) for spec in specs if spec.name != FOREST
    )
    length = min([n_neighbors, len(labels) - 1, *(view.search.most_neighbors for view in views)])
    lists = [view.training(labels, length, n_jobs) for view in views]
    readings = tuple(learn_reading(one, labels, n_classes) for one in lists)
    few = n_classes <= FEW_CLASSES
    projections = curves = forest = trees = None
    if linear and few:
        assert scaled is not None
        projections = learn_linear(scaled)
        curves = learn_curves(scaled.scores)
    if few and any(spec.name == FOREST for spec in specs):
        assert scaled is not None
        forest, trees = grow(scaled.standardized, labels, n_classes, seed, n_jobs)
    assembly = Assembly(
        labels,
        n_classes,
        length,
        columns,
        views,
        readings,
        projections,
        curves,
        forest,
        None,
        densities_in(views, labels, n_classes),
    )
    pairs = assembly.pairs(lists, trees)
    if few:
        crossed = learn_crossed(pairs.values.reshape(n_classes, len(labels), -1))
        if gives_away(assembly, lists, scaled) > MOST_EXPLAINED:
            crossed = replace(crossed, directions=crossed.directions[:, :0])
        assembly = replace(assembly, crossed=crossed)
    squares = [
        means.training_squares(view.search.points, labels, whitening)
        for view, whitening in assembly.with_means()
    ]
    log_density = [
        densities.training_densities(view.search.points, labels, whitening, classes)
        for (view, whitening), classes in zip(
            assembly.with_means(), assembly.densities, strict=True
        )
    ]
    return assembly, assembly.design(len(labels), scaled, pairs, squares, log_density), lists


def gives_away(assembly: Assembly, lists: list[Lists], scaled: Scaled | None) -> float:
    """How well crossed features of lists tell labels that were dealt out by lot (see `crossed`).

    The mean of some deals, more where rows are few.
    """
    if not lists:
        return 0.0
    rng, n_rows, labels = np.random.default_rng(0), len(assembly.labels), assembly.labels
    some = np.arange(0, n_rows, -(-n_rows // CONTROL_ROWS))
    few = [Lists(one.indices[some], one.distances[some]) for one in lists]
    smooth = np.zeros((len(some), 0))
    if assembly.curves is not None:
        assert scaled is not None
        smooth = assembly.curves(scaled.scores[some])
    found = []
    for _ in range(-(-CONTROL_ROWS // (2 * n_rows))):
        dealt = rng.permutation(labels)
        control = replace(assembly, labels=dealt, forest=None)
        values = control.pairs(few, None).values.reshape(assembly.n_classes, len(some), -1)
        found.append(explained(values, smooth, dealt[some]))
    return float(np.mean(found))


def densities_in(
    views: tuple[View, ...], labels: np.ndarray, n_classes: int
) -> tuple[Densities, ...]:
    """The classes' covariances in each whitened view; none where classes are many."""
    if n_classes > FEW_CLASSES:
        return ()
    return tuple(
        learn_densities(view.search.points, labels, whitening)
        for view, whitening in _whitened(views)
    )


def _whitened(views: tuple[View, ...]) -> list[tuple[View, Whitening]]:
    return [(view, view.whitening) for view in views if view.whitening is not None]


def _in_turn(part: str, widths: list[tuple[str, int]]) -> list[Block]:
    """Blocks one after the other."""
    ends = np.cumsum([width for _, width in widths], dtype=int).tolist()
    return [
        Block(name, part, slice(end - width, end))
        for (name, width), end in zip(widths, ends, strict=True)
    ]


def _every_pair(
    n_rows: int, n_classes: int, spoken: list[Spoken], ends: list[np.ndarray | None]
) -> Pairs:
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
    return Pairs(row, label, values.reshape(n_rows * n_classes, -1))


def _near_pairs(n_rows: int, spoken: list[Spoken]) -> Pairs:
    """The pairs that some view has; zeros where another view has not."""
    keys = [one.label * n_rows + one.row for one in spoken]
    pairs = np.unique(np.concatenate(keys))
    values = np.zeros((len(pairs), sum(one.values.shape[1] for one in spoken)))
    first = 0
    for one, key in zip(spoken, keys, strict=True):
        width = one.values.shape[1]
        values[np.searchsorted(pairs, key), first : first + width] = one.values
        first += width
    return Pairs(pairs % n_rows, pairs // n_rows, values)


def _width(projection: Projection, n_features: int) -> int:
    return n_features if projection.directions is None else projection.directions.shape[1]
