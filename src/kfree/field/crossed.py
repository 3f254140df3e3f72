"""What the neighbors say for all classes, as features of every class.

A row between two classes has fewer neighbors of a third: the own-class features of all classes
together, centered, enter the logit of each class. They go along with each other, so their leading
directions are enough.

Their weights may have any sign, which lets them tell too much: equal rows have the same neighbors
but for themselves, so the one that misses a neighbor of class c is itself of class c. Where much of
what there is to learn lies within groups of equal rows, nothing is crossed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kfree.field.features import Lists

# How many directions; more brought nothing.
LEADING = 25
# The share of the labels' variance that may lie within groups of equal rows. On the shared data
# sets it is at most 0.05. Of others, hayes-roth and mammographic (0.15) are better or no worse with
# crossed features, led7digit (0.32) has 5 % more log loss with them and titanic (0.7) 60 %.
MOST_AMONG_EQUALS = 0.2
# Neighbors at less than this part of the distance of a list's end are equal to the row.
EQUAL = 1e-6


@dataclass(frozen=True)
class Crossed:
    """Own-class features of all classes -> their leading directions."""

    center: np.ndarray  # (n_classes * n_shared,)
    directions: np.ndarray  # (n_classes * n_shared, n_kept)

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """(n_rows, n_kept) from (n_classes, n_rows, n_shared)."""
        return (_by_row(values) - self.center) @ self.directions


def learn_crossed(values: np.ndarray) -> Crossed:
    """The leading directions of the training rows' features (n_classes, n_rows, n_shared)."""
    rows = _by_row(values)
    center = rows.mean(axis=0)
    rows = rows - center
    most = min(LEADING, *rows.shape)
    _, vectors = np.linalg.eigh(rows.T @ rows)
    return Crossed(center, np.ascontiguousarray(vectors[:, ::-1][:, :most]))


def among_equals(lists: list[Lists], labels: np.ndarray) -> float:
    """The share of the labels' variance within groups of rows that are equal in some view."""
    frequency = np.bincount(labels) / len(labels)
    every = (1.0 - frequency[labels]).sum()
    found = [0.0]
    for one in lists:
        equal = one.distances <= EQUAL * one.distances[:, -1:]
        same = equal & (labels[one.indices] == labels[:, None])
        agreeing = (1 + same.sum(axis=1)) / (1 + equal.sum(axis=1))  # the row is one of them
        found.append((1.0 - agreeing).sum() / every)
    return float(max(found))


def _by_row(values: np.ndarray) -> np.ndarray:
    n_classes, n_rows, n_shared = values.shape
    return values.transpose(1, 0, 2).reshape(n_rows, n_classes * n_shared)
