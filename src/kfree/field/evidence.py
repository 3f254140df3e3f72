"""Priors set by the evidence: one precision for each block of weights.

In turns, the mode of the weights under the present precisions, and the precisions that this mode
suggests (MacKay's fixed point, with a weak prior that keeps them finite):

    alpha_b = (g_b + 1) / (|w_b|^2 + 0.01),    g_b = sum_{j in b} (1 - alpha_b [H^-1]_jj)

g_b is how many weights of the block the data determine. The C classes' weights are one direction
redundant, which the factor (C - 1) / C in g_b accounts for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kfree.field.design import Block, Design, Weights, logits
from kfree.field.logit import Curvature, Precisions, Rows, curvature, find_mode, softmax, units_of

# The offsets' prior variance is 9.
OFFSET_PRECISION = 1.0 / 9.0
FIRST_PRECISION = 1.0
PRIOR_COUNT = 1.0
PRIOR_SQUARES = 0.01
N_ROUNDS = 6
# How near to the mode a round goes: the slope, and the gain of a step. The first begins far away:
# where classes are apart and rows few, precisions are led astray if it stops too soon. Those
# between it and the last begin near the mode.
FIRST_ROUND = (1e-3, 1e-8)
LATER_ROUNDS = (1e-2, 1e-6)
# After so many steps the first round looks at the curvature again.
FIRST_STEPS = 40


@dataclass(frozen=True)
class Fit:
    """The weights at the mode, under precisions that the evidence chose."""

    weights: Weights
    precision: np.ndarray  # (n_blocks,)
    n_determined: np.ndarray  # (n_blocks,) g_b
    log_evidence: float
    bend: Curvature
    precisions: Precisions
    n_iter: int
    converged: bool


def spread(blocks: list[Block], precision: np.ndarray, design: Design) -> Precisions:
    """The precision of every weight."""
    shared = np.ones(design.values.shape[1])
    of_class = np.full(design.linear.shape[1] + 1, OFFSET_PRECISION)
    for block, alpha in zip(blocks, precision, strict=True):
        (shared if block.part == "shared" else of_class)[block.columns] = alpha
    return Precisions(shared, of_class)


def fit_by_evidence(
    design: Design,
    labels: np.ndarray,
    row_weights: np.ndarray,
    blocks: list[Block],
    max_iter: int,
    tol: float,
    tell: Callable[[float], object] | None = None,
) -> Fit:
    """Weights and precisions; the last round goes to the mode within `tol`."""
    rows = Rows(labels, row_weights, design.pair_of(labels))
    precision = np.full(len(blocks), FIRST_PRECISION)
    weights = starting_weights(design, labels, row_weights)
    bend = _bend(design, rows, weights)
    n_iter = 0
    for number in range(N_ROUNDS + 1):
        last = number == N_ROUNDS
        precisions = spread(blocks, precision, design)
        units = units_of(bend, precisions)
        slope, gain = LATER_ROUNDS if number else FIRST_ROUND
        near = (tol,) if last else (max(tol, slope), gain)
        if number == 0:
            first_steps = min(FIRST_STEPS, max_iter)
            begun = find_mode(design, rows, precisions, weights, units, first_steps, *near)
            weights, n_iter = begun.weights, begun.n_iter
            units = units_of(_bend(design, rows, weights), precisions)
        mode = find_mode(design, rows, precisions, weights, units, max_iter, *near)
        weights, n_iter = mode.weights, n_iter + mode.n_iter
        bend = _bend(design, rows, weights)
        variance = _variances(bend, precisions, weights)
        found = [_determined(b, a, variance) for b, a in zip(blocks, precision, strict=True)]
        if not last:
            squares = [_squares(block, weights) for block in blocks]
            precision = (np.array(found) + PRIOR_COUNT) / (np.array(squares) + PRIOR_SQUARES)
        if tell is not None:
            tell((number + 1) / (N_ROUNDS + 1))
    evidence = -mode.loss + _log_volume(bend, precisions)
    return Fit(
        weights, precision, np.array(found), evidence, bend, precisions, n_iter, mode.converged
    )


def starting_weights(design: Design, labels: np.ndarray, row_weights: np.ndarray) -> Weights:
    """No feature speaks, and the offsets are the classes' log frequencies."""
    n_classes = design.n_classes
    count = np.bincount(labels, row_weights, n_classes)
    log_share = np.log((count + 0.5) / (count.sum() + 0.5 * n_classes))
    return Weights(
        np.zeros(design.values.shape[1]),
        np.zeros((n_classes, design.linear.shape[1])),
        log_share - log_share.mean(),
    )


def _bend(design: Design, rows: Rows, weights: Weights) -> Curvature:
    shares = softmax(design, logits(design, weights), weights.offset)
    return curvature(design, rows, shares, weights.offset)


def free_inverse(bend: Curvature, precisions: Precisions, weights: Weights) -> np.ndarray:
    """H^-1 of the shared weights; those that are held at zero do not move: n_shared squared."""
    free = np.flatnonzero(weights.shared > 0.0)
    inverse = np.zeros(bend.of_shared.shape)
    part = np.ix_(free, free)
    inverse[part] = np.linalg.inv((bend.of_shared + np.diag(precisions.shared))[part])
    return inverse


def _variances(
    bend: Curvature, precisions: Precisions, weights: Weights
) -> tuple[np.ndarray, np.ndarray]:
    """The diagonals of H^-1: of the shared weights, and of each class's."""
    shared = np.diag(free_inverse(bend, precisions, weights)).copy()
    # The data say nothing of a weight that is held at zero: its prior stays.
    held = weights.shared == 0.0
    shared[held] = 1.0 / precisions.shared[held]
    of_class = np.linalg.inv(bend.of_class + np.diag(precisions.of_class))
    return shared, np.einsum("cjj->cj", of_class)


def _determined(block: Block, alpha: float, variance: tuple[np.ndarray, np.ndarray]) -> float:
    shared, of_class = variance
    if block.part == "shared":
        return float((1.0 - alpha * shared[block.columns]).sum())
    n_classes = len(of_class)
    return float((1.0 - alpha * of_class[:, block.columns]).sum() * (n_classes - 1) / n_classes)


def _squares(block: Block, weights: Weights) -> float:
    part: np.ndarray = getattr(weights, block.part)
    return float((part[..., block.columns] ** 2).sum())


def _log_volume(bend: Curvature, precisions: Precisions) -> float:
    """Laplace's factor: 1/2 log |A| - 1/2 log |H|."""
    volume = 0.5 * np.log(precisions.shared).sum()
    volume -= 0.5 * np.linalg.slogdet(bend.of_shared + np.diag(precisions.shared))[1]
    n_classes = len(bend.of_class)
    of_class = 0.5 * np.log(precisions.of_class).sum() * n_classes
    of_class -= 0.5 * np.linalg.slogdet(bend.of_class + np.diag(precisions.of_class))[1].sum()
    return float(volume + of_class * (n_classes - 1) / n_classes)
