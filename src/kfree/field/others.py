"""What the leaving of a training row does to the features of the other rows, and so to the weights.

A training row speaks in the features of the rows whose lists it is on, in the distances of all rows
from its class's mean, and in the densities of all rows. Without row i the features Z_j of row j are
others, and the slope of the loss at the weights, which were fitted with the row, changes by

    v_i = sum_{j != i} Z_j(-i)' r_j(-i) - Z_j' r_j,    r_j = p_j - y_j

(times the weight of row j). What stays as it was: the ranks and scales of columns, the units and
directions of features, the whitening inside lists, and the trees' answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist

from kfree.field import densities, means
from kfree.field.assembly import Assembly
from kfree.field.densities import training_densities
from kfree.field.densities_without import densities_without
from kfree.field.design import Design, Weights, logits
from kfree.field.features import Reading, closeness
from kfree.field.logit import Rows
from kfree.field.searching import Lists
from kfree.field.views import View
from kfree.field.within import Whitening, own_pull

# How many numbers of changed features are held at a time.
BLOCK_NUMBERS = 1 << 19


@dataclass(frozen=True)
class Slopes:
    """The v_i of all rows."""

    shared: np.ndarray  # (n_rows, n_shared)
    of_class: np.ndarray  # (n_rows, n_classes, n_linear + 1)


@dataclass(frozen=True)
class Changes:
    """How the features of all rows change as some rows leave, one at a time."""

    listed: np.ndarray  # (n_gone, n_rows, n_classes, n_listed) what lists say
    meant: np.ndarray  # (n_gone, n_rows, n_classes, n_meant) means and densities
    crossed: np.ndarray  # (n_gone, n_rows, n_crossed) the crossed part of x


@dataclass(frozen=True)
class Listed:
    """The entries of one view's lists, ordered by the row that they name."""

    reading: Reading
    label: np.ndarray  # (n_rows, length) the labels of the lists
    said: np.ndarray  # (n_rows, n_classes, most + 1) D_1, D_2, ... of each class
    owner: np.ndarray  # (n_entries,) whose list it is
    place: np.ndarray  # (n_entries,) where on the list, from 0
    number: np.ndarray  # (n_entries,) which of its class on this list, from 1
    starts: np.ndarray  # (n_rows + 1,) where the entries that name a row begin


class Others:
    """The features of all rows but one, as they are without that one."""

    def __init__(self, assembly: Assembly, design: Design, lists: list[Lists]) -> None:
        crossed = assembly.crossed
        assert crossed is not None
        self.design = design
        self.labels = assembly.labels
        self.lists = [
            _listed(one, assembly.labels, reading)
            for one, reading in zip(lists, assembly.readings, strict=True)
        ]
        self.means = assembly.with_means()
        self.densities = assembly.densities
        n_classes, n_shared = design.n_classes, design.values.shape[1]
        self.values = design.values.reshape(n_classes, design.n_rows, n_shared).transpose(1, 0, 2)
        # Columns of g that the lists make, then those of the trees, which stay, and at the end
        # those of the means and of the densities.
        self.listed = slice(0, sum(one.reading.n_features for one in self.lists))
        n_meant = (means.FEATURES + densities.FEATURES) * len(self.means)
        self.meant = slice(n_shared - n_meant, n_shared)
        # How the lists enter the crossed features, and where those stand in x.
        directions = crossed.directions.reshape(
            n_classes, self.meant.start, crossed.directions.shape[1]
        )
        n_kept, n_linear = directions.shape[2], design.linear.shape[1]
        self.directions = directions[:, self.listed].reshape(n_classes * self.listed.stop, n_kept)
        self.crossed = slice(n_linear - n_kept, n_linear)

    def changes(self, gone: np.ndarray) -> Changes:
        """How features change as each of the rows `gone`, one after the other, leaves."""
        n_rows, n_classes, _ = self.values.shape
        listed = np.zeros((len(gone), n_rows, n_classes, self.listed.stop))
        first = 0
        for one in self.lists:
            last = first + one.reading.n_features
            _leave_lists(listed[..., first:last], one, gone)
            first = last
        said = [self._leave_means(view, whitening, gone) for view, whitening in self.means]
        said += [self._leave_densities(number, gone) for number in range(len(self.means))]
        meant = np.concatenate([np.zeros((len(gone), n_rows, n_classes, 0)), *said], axis=3)
        meant -= self.values[..., self.meant]
        meant[np.arange(len(gone)), gone] = 0.0
        crossed = listed.reshape(len(gone) * n_rows, len(self.directions)) @ self.directions
        return Changes(listed, meant, crossed.reshape(len(gone), n_rows, crossed.shape[1]))

    def slopes(self, rows: Rows, weights: Weights) -> Slopes:
        """The v_i of all rows at these weights."""
        n_rows, n_classes, n_shared = self.values.shape
        eta = logits(self.design, weights).reshape(n_classes, n_rows).T
        before = _residuals(eta, rows)
        x = np.column_stack([self.design.linear, np.ones(n_rows)])
        shared = np.empty((n_rows, n_shared))
        of_class = np.empty((n_rows, n_classes, x.shape[1]))
        values = self.values.reshape(-1, n_shared)
        for part in self._in_blocks():
            change = self.changes(np.arange(n_rows)[part])
            moved = change.listed @ weights.shared[self.listed]
            moved += change.meant @ weights.shared[self.meant]
            moved += change.crossed @ weights.linear[:, self.crossed].T
            after = _residuals(eta + moved, rows)
            n_gone = len(after)
            difference = after - before
            shared[part] = difference.reshape(n_gone, -1) @ values
            for columns, one in ((self.listed, change.listed), (self.meant, change.meant)):
                pulled = after.reshape(n_gone, 1, -1) @ one.reshape(
                    n_gone, n_rows * n_classes, one.shape[3]
                )
                shared[part, columns] += pulled[:, 0]
            of_class[part] = difference.transpose(0, 2, 1) @ x
            of_class[part, :, self.crossed] += after.transpose(0, 2, 1) @ change.crossed
        return Slopes(shared, of_class)

    def without(self, row: int) -> Design:
        """The design of all rows as it is without this one, whose own features stay."""
        change = self.changes(np.array([row]))
        values = self.values.transpose(1, 0, 2).copy()
        values[..., self.listed] += change.listed[0].transpose(1, 0, 2)
        values[..., self.meant] += change.meant[0].transpose(1, 0, 2)
        linear = self.design.linear.copy()
        linear[:, self.crossed] += change.crossed[0]
        return replace(self.design, values=values.reshape(self.design.values.shape), linear=linear)

    def _in_blocks(self) -> Iterator[slice]:
        step = max(1, BLOCK_NUMBERS // self.values.size)
        for first in range(0, len(self.labels), step):
            yield slice(first, first + step)

    def _leave_means(self, view: View, whitening: Whitening, gone: np.ndarray) -> np.ndarray:
        """What the distances from the means say without `gone`: (n_gone, n_rows, n_classes, 2)."""
        squares = squares_without(view.search.points, self.labels, whitening, gone)
        said = means.speak(squares.reshape(-1, squares.shape[2]), view.search.points.shape[1])
        return said.transpose(1, 0, 2).reshape(*squares.shape, -1)

    def _leave_densities(self, number: int, gone: np.ndarray) -> np.ndarray:
        """What the densities say without `gone`: (n_gone, n_rows, n_classes, 1).

        What the leaving of a row changes is worked out without partners.
        """
        (view, whitening), classes = self.means[number], self.densities[number]
        points = view.search.points
        known = points, self.labels, whitening, classes
        change = densities_without(*known, gone) - training_densities(*known, paired=False)
        said = densities.speak(change.reshape(-1, change.shape[2]), points.shape[1])
        column = self.meant.stop - len(self.means) + number
        present = self.values[..., column : column + densities.FEATURES]
        return present + said.transpose(1, 0, 2).reshape(*change.shape, -1)


def _residuals(eta: np.ndarray, rows: Rows) -> np.ndarray:
    """w_j (p_j - y_j) from logits (..., n_rows, n_classes)."""
    near = np.exp(eta - eta.max(axis=-1, keepdims=True))
    near /= near.sum(axis=-1, keepdims=True)
    near[..., np.arange(len(rows.labels)), rows.labels] -= 1.0
    return near * rows.weights[:, None]


def _listed(lists: Lists, labels: np.ndarray, reading: Reading) -> Listed:
    n_rows, length = lists.indices.shape
    label = labels[lists.indices]
    near = closeness(lists.distances, reading.unit)
    number = np.empty(label.shape, dtype=int)
    for c in range(reading.n_classes):
        is_c = label == c
        number[is_c] = np.cumsum(is_c, axis=1)[is_c]
    # A class that the list has fewer times stands at its end.
    most = max(reading.ranks)
    said = np.tile(near[:, -1, None, None], (1, reading.n_classes, most + 1))
    row, place = np.nonzero(number <= most + 1)
    said[row, label[row, place], number[row, place] - 1] = near[row, place]
    order = np.argsort(lists.indices, axis=None, kind="stable")
    starts = np.searchsorted(lists.indices.ravel()[order], np.arange(n_rows + 1))
    return Listed(
        reading, label, said, order // length, order % length, number.ravel()[order], starts
    )


def _leave_lists(change: np.ndarray, listed: Listed, gone: np.ndarray) -> None:
    """Add how the lists' features change to `change` (n_gone, n_rows, n_classes, n_features).

    Rows that tie leave in the order of the list.
    """
    reading = listed.reading
    entries = slice(listed.starts[gone[0]], listed.starts[gone[-1] + 1])
    owner, place, number = (a[entries] for a in (listed.owner, listed.place, listed.number))
    leaving = np.repeat(np.arange(len(gone)), np.diff(listed.starts[gone[0] : gone[-1] + 2]))
    label = listed.label[owner, place]
    length = listed.label.shape[1]
    for column, k in enumerate(reading.fractions):
        among = place < k
        i, j = leaving[among], owner[among]
        change[i, j, label[among], column] -= 1.0 / k
        if k < length:
            # The next on the list takes the place that is left.
            change[i, j, listed.label[j, k], column] += 1.0 / k
    for column, k in enumerate(reading.ranks, start=len(reading.fractions)):
        among = number <= k
        i, j, c = leaving[among], owner[among], label[among]
        change[i, j, c, column] += listed.said[j, c, k] - listed.said[j, c, k - 1]


def squares_without(
    points: np.ndarray, labels: np.ndarray, whitening: Whitening, gone: np.ndarray
) -> np.ndarray:
    """Squared distances of all rows from the classes' means, without themselves and without `gone`.

    (n_gone, n_rows, n_classes), as `means.training_squares` has them with `gone`.
    """
    centers = whitening.means
    sizes = np.bincount(labels, minlength=len(centers)).astype(float)
    z, kappa = own_pull(points, labels, whitening)
    every, rows = np.arange(len(gone)), np.arange(len(labels))
    before = means.training_squares(points, labels, whitening)
    # z_i' (x_j - mean of c), the mean of the row's class without the row.
    farther = sizes / np.maximum(sizes - 1.0, 1.0)
    away = (z[gone] @ points.T)[:, :, None] - (z[gone] @ centers.T)[:, None, :]
    away[:, rows, labels] *= farther[labels]
    squares = before + kappa[gone, None, None] * away**2
    # The class of the row that leaves has another mean.
    c = labels[gone]
    left = np.maximum(sizes[c] - 1.0, 1.0)
    moved = centers[c] - z[gone] / left[:, None]
    own = cdist(moved, points, "sqeuclidean")
    across = np.einsum("ij,ij->i", z, points) - moved @ z.T
    along = z[gone] @ points.T - np.einsum("ij,ij->i", z[gone], moved)[:, None]
    own += kappa * across**2 + kappa[gone, None] * along**2
    farther_left = left / np.maximum(left - 1.0, 1.0)
    own *= np.where(labels == c[:, None], farther_left[:, None] ** 2, 1.0)
    squares[every, :, c] = own
    # A row whose class is left with it alone: as far off as the farthest, as in `means`.
    alone_i, alone_j = np.nonzero((labels == c[:, None]) & (left[:, None] == 1.0))
    squares[alone_i, alone_j, labels[alone_j]] = squares[alone_i, alone_j].max(axis=1)
    return squares
