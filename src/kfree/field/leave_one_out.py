"""The logit of each training row without itself, from the curvature and without a refit.

The features of a training row leave it out already, but the weights saw it. One Newton step of the
objective without row i moves its logits by

    S_i (I - W_i S_i)^-1 (p_i - y_i),    S_i = Z_i' H^-1 Z_i,    W_i = diag(p_i) - p_i p_i'

where Z_i are the row's features, p_i its probabilities and y_i the indicator of its label, the last
two times the row's weight.
"""

from __future__ import annotations

import numpy as np

from kfree.field.design import Design, logits
from kfree.field.evidence import Fit
from kfree.field.logit import Rows, softmax

# How many numbers of all rows' matrices S are held at a time.
BLOCK_NUMBERS = 1 << 22


def held_out_logits(design: Design, rows: Rows, fit: Fit) -> np.ndarray:
    """eta of each pair, with the row left out: (n_pairs,)."""
    weights = fit.weights
    eta = logits(design, weights)
    near = softmax(design, eta, weights.offset).near
    spread = _spread_by_class(design, fit)
    shared = np.linalg.inv(fit.bend.of_shared + np.diag(fit.precisions.shared))
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
        g = design.values[part]
        whole = np.column_stack([g, design.linear[row], np.ones(len(g))])
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
