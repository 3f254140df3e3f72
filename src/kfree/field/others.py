"""What the leaving of a training row does to the features of the other rows, and so to the weights.

A training row speaks in the features of the rows whose lists it is on, and in the distances of all
rows from the mean and the density of its class. Without row i the features Z_j of row j are others,
and the slope of the loss at the weights, which were fitted with the row, changes by

    v_i = sum_{j != i} Z_j(-i)' r_j(-i) - Z_j' r_j,    r_j = p_j - y_j

(times the weight of row j). What stays as it was: the ranks and scales of columns, the whitening,
the units and directions of features, partners, nu and the trees' answers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kfree.field.assembly import Assembly
from kfree.field.densities import densities_without, training_densities
from kfree.field.design import Design, Weights, logits
from kfree.field.features import Lists, Reading, closeness
from kfree.field.logit import Rows
from kfree.field.means import squares_without, training_squares

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

    values: np.ndarray  # (n_gone, n_rows, n_classes, n_shared) g
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
        crossed, within = assembly.crossed, assembly.prepared.within
        assert crossed is not None
        self.assembly, self.design, self.labels = assembly, design, assembly.labels
        self.lists = [
            _listed(one, assembly.labels, reading)
            for one, reading in zip(lists, assembly.readings, strict=True)
        ]
        n_rows, n_classes, n_shared = design.n_rows, design.n_classes, design.values.shape[1]
        self.values = design.values.reshape(n_classes, n_rows, n_shared).transpose(1, 0, 2)
        # What means and densities say without partners (n_classes, n_rows, n_features).
        self.present = np.zeros((n_classes, n_rows, 0))
        if within is not None:
            assert assembly.prepared.densities is not None
            squares = training_squares(within, design)
            alone = training_densities(within, assembly.prepared.densities, design, paired=False)
            self.present = assembly.of_classes(squares, alone).reshape(n_classes, n_rows, -1)
        # Columns of g that the lists make; those of the trees, which stay; at the end those of the
        # means and densities.
        self.listed = slice(0, sum(one.reading.n_features for one in self.lists))
        self.meant = slice(n_shared - self.present.shape[2], n_shared)
        # How the lists enter the crossed features, and where those stand in x.
        n_kept, n_linear = crossed.directions.shape[1], design.linear.shape[1]
        directions = crossed.directions.reshape(n_classes, self.meant.start, n_kept)
        self.directions = directions[:, self.listed].reshape(n_classes * self.listed.stop, n_kept)
        self.crossed = slice(n_linear - n_kept, n_linear)

    def changes(self, gone: np.ndarray) -> Changes:
        """How features change as each of the rows `gone`, one after the other, leaves."""
        n_rows, n_classes, n_shared = self.values.shape
        values = np.zeros((len(gone), n_rows, n_classes, n_shared))
        first = 0
        for one in self.lists:
            last = first + one.reading.n_features
            _leave_lists(values[..., first:last], one, gone)
            first = last
        listed = values[..., self.listed].reshape(len(gone) * n_rows, len(self.directions))
        crossed = listed @ self.directions
        if self.meant.start < n_shared:
            for c in np.unique(self.labels[gone]):
                leaving = np.flatnonzero(self.labels[gone] == c)
                values[leaving, :, c, self.meant] = self._leave_class(gone[leaving], int(c))
        return Changes(values, crossed.reshape(len(gone), n_rows, crossed.shape[1]))

    def slopes(self, rows: Rows, weights: Weights) -> Slopes:
        """The v_i of all rows at these weights."""
        n_rows, n_classes, n_shared = self.values.shape
        eta = logits(self.design, weights).reshape(n_classes, n_rows).T
        before = _residuals(eta, rows)
        x = np.column_stack([self.design.linear, np.ones(n_rows)])
        shared = np.empty((n_rows, n_shared))
        of_class = np.empty((n_rows, n_classes, x.shape[1]))
        values = self.values.reshape(-1, n_shared)
        step = max(1, BLOCK_NUMBERS // self.values.size)
        for first in range(0, n_rows, step):
            part = slice(first, first + step)
            change = self.changes(np.arange(n_rows)[part])
            moved = change.values @ weights.shared
            moved += change.crossed @ weights.linear[:, self.crossed].T
            after = _residuals(eta + moved, rows)
            n_gone = len(after)
            difference = after - before
            shared[part] = difference.reshape(n_gone, -1) @ values
            changed = change.values.reshape(n_gone, -1, n_shared)
            shared[part] += (after.reshape(n_gone, 1, -1) @ changed)[:, 0]
            of_class[part] = difference.transpose(0, 2, 1) @ x
            of_class[part, :, self.crossed] += after.transpose(0, 2, 1) @ change.crossed
        return Slopes(shared, of_class)

    def without(self, row: int) -> Design:
        """The design of all rows as it is without this one, whose own features stay."""
        change, linear = self.changes(np.array([row])), self.design.linear.copy()
        values = change.values[0].transpose(1, 0, 2).reshape(self.design.values.shape)
        linear[:, self.crossed] += change.crossed[0]
        return replace(self.design, values=self.design.values + values, linear=linear)

    def _leave_class(self, gone: np.ndarray, c: int) -> np.ndarray:
        """How what mean and density of class c say of all rows changes as `gone` leave it.

        (n_gone, n_rows, n_features)
        """
        within, classes = self.assembly.prepared.within, self.assembly.prepared.densities
        assert within is not None
        assert classes is not None
        if within.sizes[c] == 1.0:
            return np.zeros((1, *self.present.shape[1:]))
        squares = squares_without(within, c, gone)
        log_density = densities_without(within, classes, c, gone)
        change = self.assembly.of_classes(squares, log_density) - self.present[c]
        if within.sizes[c] == 2.0:
            # The row that is left alone has the least that is said for another (see `assembly`).
            members = np.flatnonzero(self.labels == c)
            left = [members[members != i][0] for i in gone]
            meant = self.values[left][..., self.meant]
            least = np.delete(meant, c, axis=1).min(axis=1)
            change[np.arange(len(gone)), left] = least - meant[:, c]
        change[np.arange(len(gone)), gone] = 0.0
        return change


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
