"""How the precisions, which the evidence chose with a row, change as the row leaves.

A round of the evidence takes a_b = log alpha_b to

    log(g_b + 1) - log(|w_b|^2 + 0.01)

(see `evidence`). With J its derivative by all a, and d_i what leaving row i changes in one round at
given a, the rounds that start from fixed precisions end up at

    da_i = (I + J + J^2 + ...) d_i,    one term for each round.

The weights follow the precisions by dw = -H^-1 (alpha_b w_b) da_b.
"""

from __future__ import annotations

import numpy as np

from kfree.field.design import Block
from kfree.field.evidence import N_ROUNDS, PRIOR_COUNT, PRIOR_SQUARES, Fit
from kfree.field.joint import Joint

# A block's precision moves by no more than this factor, or its inverse, in logarithms.
LARGEST = 2.0


def precision_changes(
    joint: Joint, fit: Fit, blocks: list[Block], moved: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """da of each row that leaves, and what the weights do per unit of each a.

    `moved` (n_rows, n_weights) are the weights' changes at fixed precisions. (n_rows, n_blocks) and
    (n_blocks, n_weights).
    """
    members = np.stack([_members(block, joint) for block in blocks])  # (n_blocks, n_weights)
    weights = members * joint.vector(fit.weights)
    follow = -(fit.precision[:, None] * weights) @ joint.inverse
    by_precision, by_weights, direct = _determined(joint, fit, blocks, members)
    count, squares = fit.n_determined + PRIOR_COUNT, (weights**2).sum(axis=1) + PRIOR_SQUARES
    # The derivatives of a round's answer by the weights, and then by the precisions.
    slope = by_weights / count[:, None] - 2.0 * weights / squares[:, None]
    jacobian = by_precision / count[:, None] + slope @ follow.T
    change = direct / count + moved @ slope.T
    total = np.zeros(change.shape)
    for _ in range(N_ROUNDS):
        total = np.clip(total @ jacobian.T + change, -LARGEST, LARGEST)
    return total, follow


def _members(block: Block, joint: Joint) -> np.ndarray:
    """Which weights are the block's: (n_weights,) of zeros and ones."""
    out = np.zeros(len(joint.inverse))
    if block.part == "shared":
        inside = (joint.free >= block.columns.start) & (joint.free < block.columns.stop)
        out[joint.shared] = inside
    else:
        for part in joint.of_class:
            out[part][block.columns] = 1.0
    return out


def _determined(
    joint: Joint, fit: Fit, blocks: list[Block], members: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Derivatives of g_b: by all a, by the weights, and its change as each row leaves H.

    (n_blocks, n_blocks), (n_blocks, n_weights) and (n_rows, n_blocks). As the evidence has it: the
    weights of each class apart, times C / (C - 1) in H and (C - 1) / C in g_b.
    """
    p, alpha, n_classes = joint.p, fit.precision, joint.p.shape[1]
    of_shared = fit.bend.of_shared + np.diag(fit.precisions.shared)
    shared = np.linalg.inv(of_shared[np.ix_(joint.free, joint.free)])
    of_class = np.linalg.inv(fit.bend.of_class + np.diag(fit.precisions.of_class))
    by_precision = np.zeros((len(blocks), len(blocks)))
    by_weights = np.empty(members.shape)
    direct = np.zeros((len(joint.x), len(blocks)))
    once = (n_classes - 1) / n_classes
    for b, block in enumerate(blocks):
        # How much g_b grows with the curvature that each row adds for each class.
        if block.part == "shared":
            own = members[b, joint.shared] > 0.0
            seen = joint.g @ shared[:, own]  # (n_classes, n_rows, n_own)
            mean = np.einsum("ic,cij->ij", p, seen)
            square = np.einsum("cij,cij->ic", seen, seen)
            pull = alpha[b] * (square - 2.0 * np.einsum("cij,ij->ic", seen, mean))
            direct[:, b] = -alpha[b] * ((p * square).sum(axis=1) - (mean**2).sum(axis=1))
            by_precision[b] = (
                alpha[b] * alpha * (members[:, joint.shared] @ (shared[own] ** 2).sum(axis=0))
            )
            by_precision[b, b] -= alpha[b] * np.diag(shared)[own].sum()
        else:
            pull = np.empty(p.shape)
            for c, part in enumerate(joint.of_class):
                square = ((joint.x @ of_class[c][:, block.columns]) ** 2).sum(axis=1)
                pull[:, c] = alpha[b] * square * (1.0 - 2.0 * p[:, c])
                direct[:, b] -= alpha[b] * square * p[:, c] * (1.0 - p[:, c])
                among = (of_class[c][block.columns] ** 2).sum(axis=0)
                by_precision[b] += once * alpha[b] * alpha * (members[:, part] @ among)
                by_precision[b, b] -= once * alpha[b] * np.diag(of_class[c])[block.columns].sum()
        by_weights[b] = joint.slopes(joint.softened(pull)).sum(axis=0)
    return by_precision, by_weights, direct * joint.row_weights[:, None]
