"""The logit of each training row without itself, without a refit.

The features of a training row leave it out already, but the weights saw it, and they saw it in the
features of others too. Where every class is near every row and rows are not too many, one Newton
step of the objective without row i moves its logits by

    (I - S_i W_i)^-1 (S_i r_i - Z_i H^-1 v_i),    S_i = Z_i H^-1 Z_i',    W_i = diag(p_i) - p_i p_i'

where Z_i are the row's features, r_i = p_i - y_i its probabilities minus the indicator of its label
(r_i and W_i times the row's weight) and v_i what its leaving changes in the slopes of the other
rows (`others`). The precisions of the priors change too (`response`), and the weights with them.
Where that step is long the curvature changes on the way: for the rows with the longest steps the
mode without the row is sought, from the others' features and precisions without it.

Elsewhere v_i and the precisions stay as they are and the weights of each class are taken apart.
Trust in the field, which saw the row too, follows (`trust`).

Where rows are few and their classes small each row moves much that this holds fixed: the shrinkage
of S, ranks, trees. Then the field is fitted again without each row.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kfree.field.assembly import Assembly
from kfree.field.design import Block, Design, logits
from kfree.field.evidence import Fit, free_inverse, spread
from kfree.field.features import Lists
from kfree.field.fitting import Field, fit_field
from kfree.field.joint import Joint
from kfree.field.logit import Rows, find_mode, softmax, units_of
from kfree.field.others import Others
from kfree.field.response import precision_changes
from kfree.field.trust import drawn_without_rows

# The most weights that are taken together, the most numbers that all rows' changes of the weights
# and all rows' features without each of them may have: beyond, a row is one of very many. Where
# they are few all this is needed: without v_i the log loss of vehicle (600 rows) is 0.02 too high,
# with precisions that stay those of heart_statlog and ionosphere 0.01 too low.
MOST_WEIGHTS = 1600
MOST_NUMBERS = 1 << 22
MOST_CHANGES = 1 << 26
# Where the step moves a row's probabilities by more than this, the mode without the row is sought,
# but only for the rows that it moves most, and where that costs little: by numbers in a design.
# Else one row of ionosphere has a log loss that is 0.5 too high, and those of tiny classes 0.05.
LONG_STEP = 0.1
MOST_MODES = 40
LARGEST_DESIGN = 1 << 21
# How near to the mode.
MODE_TOL = 1e-2
# Up to so many rows, numbers in them and rows of a class, in the mean, the field is fitted again
# without each row: seconds, most of which trees take.
FEW_ROWS = 40
FEW_NUMBERS = 1 << 14
FEW_OF_A_CLASS = 8


def held_out_logits(field: Field) -> np.ndarray:
    """The logit of each pair, with the row left out: (n_pairs,)."""
    assembly, design, rows, fit = field.assembly, field.design, field.rows, field.fit
    eta = _by_steps(assembly, design, rows, fit, field.lists)
    eta = drawn_without_rows(design, rows, eta, fit.weights.offset, field.log_odds)
    if (
        design.everywhere
        and assembly.prepared.columns is not None
        and design.n_rows <= min(FEW_ROWS, FEW_OF_A_CLASS * design.n_classes)
        and field.X.size <= FEW_NUMBERS
    ):
        # Without its only row there would be no such class.
        for row in np.flatnonzero(np.bincount(rows.labels)[rows.labels] > 1):
            eta.reshape(design.n_classes, -1)[:, row] = fitted_without(field, int(row))
    return eta


def fitted_without(field: Field, row: int) -> np.ndarray:
    """The logits of a row by the field of all others: (n_classes,)."""
    left, itself = np.delete(np.arange(len(field.X)), row), field.X[[row]]
    labels, weights = field.rows.labels[left], field.rows.weights[left]
    refit = fit_field(field.X[left], labels, weights, field.design.n_classes, field.settings)
    lists = refit.assembly.new_lists(itself, field.settings.n_jobs)
    return logits(refit.assembly.of_new(itself, lists), refit.weights)


def _by_steps(
    assembly: Assembly, design: Design, rows: Rows, fit: Fit, lists: list[Lists]
) -> np.ndarray:
    """eta of each pair under the weights without the row, before trust: (n_pairs,)."""
    n_weights = len(fit.weights.shared) + design.n_classes * (design.linear.shape[1] + 1)
    if not design.everywhere or n_weights > min(MOST_WEIGHTS, MOST_NUMBERS / design.n_rows):
        return one_step(design, rows, fit)
    others = None
    if design.n_rows * design.values.size <= MOST_CHANGES:
        others = Others(assembly, design, lists)
    return all_steps(design, rows, fit, assembly.blocks(), others)


def all_steps(
    design: Design, rows: Rows, fit: Fit, blocks: list[Block], others: Others | None
) -> np.ndarray:
    """eta of each pair, with all that a row leaves: (n_pairs,)."""
    joint = Joint(design, rows, fit)
    slopes = None if others is None else others.slopes(rows, fit.weights)
    step, moved = joint.leave(slopes)
    answer, follow = precision_changes(joint, fit, blocks, moved)
    step += joint.without(joint.logits(answer @ follow))
    shape = (design.n_classes, design.n_rows)
    eta = logits(design, fit.weights).reshape(shape) + step.T
    if design.values.size <= LARGEST_DESIGN:
        found = softmax(design, eta.ravel(), fit.weights.offset).near.reshape(shape)
        length = np.abs(found - joint.p.T).max(axis=0)
        farthest = np.argsort(-length, kind="stable")[:MOST_MODES]
        for row in farthest[length[farthest] > LONG_STEP]:
            precisions = spread(blocks, fit.precision * np.exp(answer[row]), design)
            left = replace(
                rows, weights=np.where(np.arange(design.n_rows) == row, 0.0, rows.weights)
            )
            start, units = fit.weights, units_of(fit.bend, precisions)
            changed = design if others is None else others.without(int(row))
            mode = find_mode(changed, left, precisions, start, units, 100, MODE_TOL)
            # The row's own features stay.
            eta[:, row] = logits(changed, mode.weights).reshape(shape)[:, row]
    return eta.ravel()


def one_step(design: Design, rows: Rows, fit: Fit) -> np.ndarray:
    """eta of each pair after the Newton step that leaves its row out: (n_pairs,).

    S_i is taken as diagonal. What a row's features have in common does not matter, so that they are
    taken from their mean over the classes.
    """
    weights = fit.weights
    eta = logits(design, weights)
    near = softmax(design, eta, weights.offset).near
    inverse = np.linalg.inv(fit.bend.of_class + np.diag(fit.precisions.of_class))
    shared = free_inverse(fit.bend, fit.precisions, weights)
    x = np.column_stack([design.linear, np.ones(design.n_rows)])
    mean = np.zeros((design.n_rows, len(shared)))
    for c in range(design.n_classes):
        part = design.of_class(c)
        mean[design.row[part]] += design.values[part] * near[part, None]
    reach = np.empty(len(near))
    for c in range(design.n_classes):
        part = design.of_class(c)
        row = design.row[part]
        g = design.values[part] - mean[row]
        reach[part] = np.einsum("ij,ij->i", g @ shared, g)
        reach[part] += np.einsum("ij,ij->i", x[row] @ inverse[c], x[row])
    weight = rows.weights[design.row]
    residual = near.copy()
    residual[rows.pair[rows.pair >= 0]] -= 1.0
    # (I - W S) u = r with W S = diag(p s) - p (p s)', inverted by Sherman and Morrison.
    ps = weight * near * reach
    diagonal = np.maximum(1.0 - ps, 1e-3)
    a, b = weight * residual / diagonal, near / diagonal
    top = np.bincount(design.row, ps * a, design.n_rows)
    bottom = 1.0 + np.bincount(design.row, ps * b, design.n_rows)
    return eta + reach * (a - b * (top / bottom)[design.row])
