"""Pieces of work, and what several of them need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from kfree.evaluation.data import Dataset
from kfree.evaluation.protocol import splitter
from kfree.paper.settings import Settings


@dataclass(frozen=True)
class Unit:
    """A piece of work that is done at once and kept. Its work gives what JSON can hold."""

    part: str
    labels: tuple[str, ...]  # the data set first
    work: Callable[[], Any]

    @property
    def name(self) -> str:
        return " ".join((self.part, *self.labels))


# The values of units by their labels.
Results = Mapping[tuple[str, ...], Any]


@dataclass(frozen=True)
class Fold:
    """The first fold of the cross validation, standardized by its training part."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def first_fold(settings: Settings, dataset: Dataset) -> Fold:
    """The fold whose first test row is the "testing datum" of the pictures."""
    X, y = dataset.X, dataset.y
    train, test = next(iter(splitter(y, settings.n_splits, settings.random_state).split(X, y)))
    scaler = StandardScaler().fit(X[train])
    return Fold(scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test])


def divergence(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Kullback-Leibler distance sum p log(p / q) over the last axis, in nats."""
    # Sum of p log(p/q) - p + q: each term is at least 0, so rounding cannot make the sum negative,
    # and for distributions it is the same number.
    tiny = np.finfo(float).tiny
    ratio = np.maximum(p, tiny) / np.maximum(q, tiny)
    return (np.where(p > 0, p * np.log(ratio), 0.0) - p + q).sum(axis=-1)
