"""The pseudo-likelihood of the labels under the logit, its gradient, its curvature, its mode."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import Bounds, minimize

from kfree.field.design import Design, Weights, logits

# How many steps the optimizer remembers.
MEMORY = 20
# Its status where it was not allowed to go on.
OUT_OF_STEPS = 1
# How many numbers of a design are looked at together (2 MiB): they are needed twice, and the second
# time they are near the processor still.
BLOCK_NUMBERS = 1 << 18


@dataclass(frozen=True)
class Shares:
    """Class probabilities of the pairs, and what the classes that are not near have together."""

    near: np.ndarray  # (n_pairs,)
    log_normalizer: np.ndarray  # (n_rows,) log sum_c exp(eta_ic)


@dataclass(frozen=True)
class Curvature:
    """Minus the second derivative of the log likelihood, without that between classes.

    `of_class[c]` belongs to the weights (v_c, gamma_c); with the factor C / (C - 1) its
    diagonal is that of the softmax seen along one class against the others. `of_shared` is exact.
    """

    of_shared: np.ndarray  # (n_shared, n_shared)
    of_class: np.ndarray  # (n_classes, n_weights, n_weights)


@dataclass(frozen=True)
class Precisions:
    """The prior's precision of every weight."""

    shared: np.ndarray  # (n_shared,)
    of_class: np.ndarray  # (n_weights,) of v_c and gamma_c


@dataclass(frozen=True)
class Rows:
    """Labels and weights of the rows that a logit is fitted to."""

    labels: np.ndarray  # (n_rows,)
    weights: np.ndarray  # (n_rows,)
    pair: np.ndarray  # (n_rows,) the pair of each row with its own label, or -1


def softmax(design: Design, eta: np.ndarray, offset: np.ndarray) -> Shares:
    """Class probabilities from logits."""
    if design.everywhere:
        near, log_normalizer = _softmax_of_all(eta.reshape(design.n_classes, design.n_rows))
        return Shares(near.ravel(), log_normalizer)
    order, starts = design.by_row
    highest = offset.max()
    top = np.maximum(np.maximum.reduceat(eta[order], starts), highest)
    near = np.exp(eta - top[design.row])
    far = np.exp(offset - highest)
    count = np.bincount(design.row, minlength=design.n_rows)
    rest = far.sum() - np.bincount(design.row, far[design.label], design.n_rows)
    rest = np.where(count < design.n_classes, np.maximum(rest, 0.0), 0.0) * np.exp(highest - top)
    total = np.bincount(design.row, near, design.n_rows) + rest
    return Shares(near / total[design.row], top + np.log(total))


def _softmax_of_all(eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities (n_classes, n_rows) and log normalizers (n_rows,) where no class is far."""
    top = eta.max(axis=0)
    near = np.exp(eta - top)
    total = near.sum(axis=0)
    near /= total
    return near, top + np.log(total)


def loss_and_gradient(design: Design, rows: Rows, weights: Weights) -> tuple[float, Weights]:
    """Minus the weighted log likelihood, and its derivative by each weight."""
    if design.everywhere:
        return _of_all(design, rows, weights)
    eta = logits(design, weights)
    shares = softmax(design, eta, weights.offset)
    there = rows.pair >= 0
    at_label = np.where(there, eta[rows.pair], weights.offset[rows.labels])
    loss = float(rows.weights @ (shares.log_normalizer - at_label))
    residual = rows.weights[design.row] * shares.near
    residual[rows.pair[there]] -= rows.weights[there]
    offset = np.bincount(design.label, residual, design.n_classes)
    offset += _far(design, rows.weights, shares, weights.offset)
    offset -= np.bincount(rows.labels[~there], rows.weights[~there], minlength=design.n_classes)
    return loss, Weights(residual @ design.values, weights.linear, offset)


def _of_all(design: Design, rows: Rows, weights: Weights) -> tuple[float, Weights]:
    """`loss_and_gradient` where every class is near every row, some rows at a time."""
    values = design.values.reshape(design.n_classes, design.n_rows, -1)
    loss, shared = 0.0, np.zeros(weights.shared.shape)
    linear, offset = np.zeros(weights.linear.shape), np.zeros(weights.offset.shape)
    step = max(1, BLOCK_NUMBERS // max(1, values[:, 0].size))
    for first in range(0, design.n_rows, step):
        part = slice(first, first + step)
        g, x = values[:, part], design.linear[part]
        label, weight = rows.labels[part], rows.weights[part]
        eta = g @ weights.shared + weights.linear @ x.T + weights.offset[:, None]
        own = (label, np.arange(len(label)))
        residual, log_normalizer = _softmax_of_all(eta)
        loss += float(weight @ (log_normalizer - eta[own]))
        residual *= weight
        residual[own] -= weight
        shared += np.matmul(residual[:, None, :], g).sum(axis=(0, 1))
        linear += residual @ x
        offset += residual.sum(axis=1)
    return loss, Weights(shared, linear, offset)


def _far(design: Design, row_weights: np.ndarray, shares: Shares, offset: np.ndarray) -> np.ndarray:
    """The sum over rows of the probability of each class where it is not near: (n_classes,)."""
    highest = offset.max()
    scale = row_weights * np.exp(highest - shares.log_normalizer)
    near = np.bincount(design.label, scale[design.row], design.n_classes)
    return np.exp(offset - highest) * np.maximum(scale.sum() - near, 0.0)


def curvature(design: Design, rows: Rows, shares: Shares, offset: np.ndarray) -> Curvature:
    """The second derivative at the probabilities `shares`."""
    n_classes, n_shared = design.n_classes, design.values.shape[1]
    n_weights = design.linear.shape[1] + 1
    of_class = np.empty((n_classes, n_weights, n_weights))
    second = np.zeros((n_shared, n_shared))
    mean = np.zeros((design.n_rows, n_shared))
    factor = n_classes / (n_classes - 1)
    same = np.column_stack([design.linear, np.ones(design.n_rows)])
    # Roots of the weights on both sides: a matrix times itself takes half of the work.
    for c in range(n_classes):
        part = design.of_class(c)
        row = slice(None) if design.everywhere else design.row[part]
        g, p, w = design.values[part], shares.near[part], rows.weights[row]
        whole = same[row] * np.sqrt(factor * w * p * (1.0 - p))[:, None]
        of_class[c] = whole.T @ whole
        rooted = g * np.sqrt(w * p)[:, None]
        second += rooted.T @ rooted
        mean[row] += g * p[:, None]
    if not design.everywhere:
        of_class[:, -1, -1] += _far(design, rows.weights, shares, offset)
    mean *= np.sqrt(rows.weights)[:, None]
    of_shared = second - mean.T @ mean
    # Variances, of which rounding may leave less than nothing where features are huge.
    np.fill_diagonal(of_shared, np.maximum(np.diag(of_shared), 0.0))
    return Curvature(of_shared, of_class)


@dataclass(frozen=True)
class Mode:
    """Where the optimizer stopped."""

    weights: Weights
    loss: float
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class Units:
    """Units of the weights in which a curvature with the prior's precision is one.

    For the weights of a class L^-1 where L L' = curvature + precision, for the shared weights,
    which have a bound each, one unit each.
    """

    shared: np.ndarray  # (n_shared,)
    of_class: np.ndarray  # (n_classes, n_weights, n_weights)


def units_of(bend: Curvature, precisions: Precisions) -> Units:
    """The units that `bend` and the prior suggest."""
    return Units(
        1.0 / np.sqrt(np.diag(bend.of_shared) + precisions.shared),
        np.stack([_inverse_root(one, precisions.of_class) for one in bend.of_class]),
    )


def find_mode(
    design: Design,
    rows: Rows,
    precisions: Precisions,
    start: Weights,
    units: Units,
    max_iter: int,
    tol: float,
    gain: float = 1e-15,
) -> Mode:
    """The weights of highest posterior density, by L-BFGS.

    In the right `units` few steps lead to the mode, and `tol` bounds the gradient in these units.
    A step that gains less than the share `gain` of the loss is the last.
    """
    n_shared, n_classes = design.values.shape[1], design.n_classes
    root_shared, root_class = units.shared, units.of_class

    def weights_at(z: np.ndarray) -> Weights:
        of_class = np.matmul(
            root_class.transpose(0, 2, 1), z[n_shared:].reshape(n_classes, -1)[:, :, None]
        )[:, :, 0]
        return Weights(
            start.shared + root_shared * z[:n_shared],
            start.linear + of_class[:, :-1],
            start.offset + of_class[:, -1],
        )

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        weights = weights_at(z)
        loss, slope = loss_and_gradient(design, rows, weights)
        whole = np.column_stack([weights.linear, weights.offset])
        by_class = np.column_stack([slope.linear, slope.offset])
        by_class += precisions.of_class * whole
        by_shared = slope.shared + precisions.shared * weights.shared
        loss += 0.5 * float(precisions.shared @ weights.shared**2)
        loss += 0.5 * float((precisions.of_class * whole**2).sum())
        scaled = np.matmul(root_class, by_class[:, :, None]).ravel()
        return loss, np.concatenate([root_shared * by_shared, scaled])

    # No neighbor of a class speaks against it: shared weights are zero or positive.
    n_free = n_classes * (design.linear.shape[1] + 1)
    lowest = np.concatenate([-start.shared / root_shared, np.full(n_free, -np.inf)])
    bounds = Bounds(lowest, np.inf)
    found = minimize(
        objective,
        np.zeros(n_shared + n_free),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={
            "maxiter": max_iter,
            "maxfun": 4 * max_iter,
            "maxcor": MEMORY,
            "gtol": tol,
            "ftol": gain,
        },
    )
    # At its bound a weight may be pushed further down.
    held = (found.x <= lowest) & (found.jac > 0.0)
    steep = np.abs(found.jac[~held]).max()
    # Where rounding lets no step go down any further, the mode is as near as it can be.
    converged = bool(steep <= tol or (found.status != OUT_OF_STEPS and steep <= 100 * tol))
    weights = weights_at(found.x)
    # Rounding may leave a bounded weight a hair below zero.
    weights = replace(weights, shared=np.maximum(weights.shared, 0.0))
    return Mode(weights, float(found.fun), int(found.nit), converged)


def _inverse_root(matrix: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """L^-1 where L L' = matrix + diag(precision)."""
    if not len(matrix):
        return matrix
    lower = np.linalg.cholesky(matrix + np.diag(precision))
    return solve_triangular(lower, np.eye(len(matrix)), lower=True)
