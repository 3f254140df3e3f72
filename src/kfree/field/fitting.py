"""From rows and labels to a fitted field: what the rows teach, the weights, and trust in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from kfree.field.assembly import Assembly, learn
from kfree.field.design import Design, Weights
from kfree.field.evidence import Fit, fit_by_evidence
from kfree.field.features import Lists
from kfree.field.logit import Rows
from kfree.field.trust import drawn_to, log_odds_of, offsets_alone
from kfree.field.views import Spec


@dataclass(frozen=True)
class Settings:
    """What a user chose."""

    specs: list[Spec]
    linear: bool
    n_neighbors: int
    seed: int  # of the trees
    max_iter: int
    tol: float
    n_jobs: int | None


@dataclass(frozen=True)
class Field:
    """A fitted field, and what its leave-one-out needs."""

    X: Any
    settings: Settings
    assembly: Assembly
    design: Design
    lists: list[Lists]
    rows: Rows
    fit: Fit
    log_odds: float  # that it says more than the classes' frequencies
    weights: Weights  # those of `fit`, drawn to the classes' frequencies

    @property
    def trust(self) -> float:
        return float(expit(self.log_odds))


def fit_field(
    X: Any,
    labels: np.ndarray,
    row_weights: np.ndarray,
    n_classes: int,
    settings: Settings,
    tell: Callable[[float], object] | None = None,
) -> Field:
    """The field of these rows."""
    assembly, design, lists = learn(
        X,
        labels,
        n_classes,
        settings.specs,
        settings.linear,
        settings.n_neighbors,
        settings.seed,
        settings.n_jobs,
    )
    fit = fit_by_evidence(
        design, labels, row_weights, assembly.blocks(), settings.max_iter, settings.tol, tell
    )
    offset, log_evidence = offsets_alone(np.bincount(labels, row_weights, n_classes))
    log_odds = log_odds_of(fit.log_evidence, float(log_evidence))
    drawn = drawn_to(fit.weights, offset, float(expit(log_odds)))
    rows = Rows(labels, row_weights, design.pair_of(labels))
    return Field(X, settings, assembly, design, lists, rows, fit, log_odds, drawn)
