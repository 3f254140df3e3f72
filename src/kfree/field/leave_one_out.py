"""The logit of each training row without itself, from the curvature and without a refit.

The features of a training row leave it out already, but the weights saw it. One Newton step of the
objective without row i moves its logits by

    S_i (I - W_i S_i)^-1 (p_i - y_i),    S_i = Z_i' H^-1 Z_i,    W_i = diag(p_i) - p_i p_i'

where Z_i are the row's features, p_i its probabilities and y_i the indicator of its label, the last
two times the row's weight. Where that step is long the curvature changes on the way, and the mode
without the row is sought instead, from where the step led and under the same priors.
"""

from __future__ import annotations

import numpy as np

from kfree.field.design import Design, logits
from kfree.field.evidence import Fit, free_inverse
from kfree.field.logit import Rows, Units, find_mode, softmax, units_of

# How many numbers of all rows' matrices S are held at a time.
BLOCK_NUMBERS = 1 << 22
# A row whose probabilities the step moves by more than this is refitted, but of all rows only those
# that it moves most, and only where a refit costs little: so many pairs times weights of a class.
LONG_STEP = 0.1
MOST_REFITS = 40
LARGEST_REFIT = 1 << 21
# How near to the mode a refit goes.
REFIT_TOL = 1e-2


def held_out_logits(design: Design, rows: Rows, fit: Fit) -> np.ndarray:
    """eta of each pair, with the row left out: (n_pairs,)."""
    eta = one_step(design, rows, fit)
    if not design.everywhere or design.values.size > LARGEST_REFIT:
        return eta
    shape = (design.n_classes, design.n_rows)
    seen = softmax(design, logits(design, fit.weights), fit.weights.offset).near.reshape(shape)
    step = np.abs(softmax(design, eta, fit.weights.offset).near.reshape(shape) - seen).max(axis=0)
    step[rows.weights == 0.0] = 0.0
    table = eta.reshape(shape).copy()
    farthest = np.argsort(-step, kind="stable")[:MOST_REFITS]
    if step[farthest[0]] > LONG_STEP:
        units = units_of(fit.bend, fit.precisions)
        for row in farthest[step[farthest] > LONG_STEP]:
            table[:, row] = _refitted(design, rows, fit, units, int(row))
    return table.ravel()


def _refitted(design: Design, rows: Rows, fit: Fit, units: Units, row: int) -> np.ndarray:
    """The logits of a row under the weights that all other rows give: (n_classes,)."""
    weights = rows.weights.copy()
    weights[row] = 0.0
    others = Rows(rows.labels, weights, rows.pair)
    mode = find_mode(
        design, others, fit.precisions, fit.weights, units, max_iter=100, tol=REFIT_TOL
    )
    pairs = np.arange(design.n_classes) * design.n_rows + row
    found = mode.weights
    return design.values[pairs] @ found.shared + found.linear @ design.linear[row] + found.offset


def one_step(design: Design, rows: Rows, fit: Fit) -> np.ndarray:
    """eta of each pair after the Newton step that leaves its row out: (n_pairs,)."""
    weights = fit.weights
    eta = logits(design, weights)
    near = softmax(design, eta, weights.offset).near
    spread = _spread_by_class(design, fit)
    shared = free_inverse(fit.bend, fit.precisions, weights)
    residual = near.copy()
    residual[rows.pair[rows.pair >= 0]] -= 1.0
    if design.everywhere:
        return eta + _steps(design, rows, near, residual, spread, shared)
    for c in range(design.n_classes):
        part = design.of_class(c)
        g = design.values[part]
        spread[part] += np.einsum("ij,ij->i", g @ shared, g)
    return eta + _steps_apart(design, rows, near, residual, spread)


def _spread_by_class(design: Design, fit: Fit) -> np.ndarray:
    """z' H_c^-1 z of each pair, for the weights of its class: (n_pairs,)."""
    spread = np.empty(len(design.row))
    for c in range(design.n_classes):
        part = design.of_class(c)
        row = slice(None) if design.everywhere else design.row[part]
        own = design.own[part]
        whole = np.column_stack([own, design.linear[row], np.ones(len(own))])
        inverse = np.linalg.inv(fit.bend.of_class[c] + np.diag(fit.precisions.of_class))
        spread[part] = np.einsum("ij,ij->i", whole @ inverse, whole)
    return spread


def _steps(
    design: Design,
    rows: Rows,
    near: np.ndarray,
    residual: np.ndarray,
    spread: np.ndarray,
    shared: np.ndarray,
) -> np.ndarray:
    """The step of each row, with all of S."""
    n_rows, n_classes = design.n_rows, design.n_classes
    g = design.values.reshape(n_classes, n_rows, -1)
    p, r, own = (a.reshape(n_classes, n_rows) for a in (near, residual, spread))
    step = np.empty((n_classes, n_rows))
    diagonal = np.arange(n_classes)
    for first in range(0, n_rows, max(1, BLOCK_NUMBERS // n_classes**2)):
        part = slice(first, first + max(1, BLOCK_NUMBERS // n_classes**2))
        here = g[:, part].transpose(1, 0, 2)  # (n_part, n_classes, n_own)
        s = np.matmul(here @ shared, here.transpose(0, 2, 1))
        s[:, diagonal, diagonal] += own[:, part].T
        q, weight = p[:, part].T, rows.weights[part]
        w = -q[:, :, None] * q[:, None, :]
        w[:, diagonal, diagonal] += q
        w *= weight[:, None, None]
        system = np.eye(n_classes) - np.matmul(w, s)
        moved = np.linalg.solve(system, (r[:, part].T * weight[:, None])[:, :, None])
        step[:, part] = np.matmul(s, moved)[:, :, 0].T
    return step.ravel()


def _steps_apart(
    design: Design, rows: Rows, near: np.ndarray, residual: np.ndarray, spread: np.ndarray
) -> np.ndarray:
    """The step of each row, S being taken as diagonal, as many rows fix the shared weights."""
    weight = rows.weights[design.row]
    # (I - W S) u = r with W S = diag(p s) - p (p s)', inverted by Sherman and Morrison.
    ps = weight * near * spread
    diagonal = np.maximum(1.0 - ps, 1e-3)
    a, b = weight * residual / diagonal, near / diagonal
    top = np.bincount(design.row, ps * a, design.n_rows)
    bottom = 1.0 + np.bincount(design.row, ps * b, design.n_rows)
    return spread * (a - b * (top / bottom)[design.row])
