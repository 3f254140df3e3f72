"""The curvature of all weights together, and the Newton step of the objective without a row.

The evidence takes the weights of each class and the shared weights apart (see `logit.Curvature`).
They say much the same, so apart they would count a row's pull on the weights twice: here is H with
all terms between them, for designs in which every class is near every row. Shared weights that are
held at zero stay there.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from kfree.field.design import Design, Weights, logits
from kfree.field.evidence import Fit
from kfree.field.logit import Rows, softmax
from kfree.field.others import Slopes


class Joint:
    """H^-1 at the mode.

    Weights are vectors: the free shared ones, then (v_c, gamma_c) class by class.
    """

    def __init__(self, design: Design, rows: Rows, fit: Fit) -> None:
        n_rows, n_classes = design.n_rows, design.n_classes
        weights = fit.weights
        near = softmax(design, logits(design, weights), weights.offset).near
        self.p = near.reshape(n_classes, n_rows).T  # (n_rows, n_classes)
        self.row_weights = rows.weights
        self.residual = self.p.copy()
        self.residual[np.arange(n_rows), rows.labels] -= 1.0
        self.residual *= rows.weights[:, None]
        self.free = np.flatnonzero(weights.shared > 0.0)
        shape = (n_classes, n_rows, -1)
        self.g = design.values[:, self.free].reshape(shape)  # (n_classes, n_rows, n_free)
        self.x = np.column_stack([design.linear, np.ones(n_rows)])  # (n_rows, n_linear + 1)
        n_free, width = len(self.free), self.x.shape[1]
        self.shared = slice(0, n_free)
        self.of_class = [
            slice(n_free + c * width, n_free + (c + 1) * width) for c in range(n_classes)
        ]
        self.inverse = _inverse(self._curvature(fit))
        self.spread = self._spread()

    def vector(self, weights: Weights) -> np.ndarray:
        """Weights as one vector."""
        of_class = np.column_stack([weights.linear, weights.offset])
        return np.concatenate([weights.shared[self.free], of_class.ravel()])

    def logits(self, vectors: np.ndarray) -> np.ndarray:
        """Z_i times the vector of row i: (n_rows, n_classes) from (n_rows, n_weights)."""
        out = np.empty(self.p.shape)
        for c, part in enumerate(self.of_class):
            out[:, c] = np.einsum("ij,ij->i", self.g[c], vectors[:, self.shared])
            out[:, c] += np.einsum("ij,ij->i", self.x, vectors[:, part])
        return out

    def slopes(self, pull: np.ndarray) -> np.ndarray:
        """Z_i' times the pull of row i: (n_rows, n_weights) from (n_rows, n_classes)."""
        out = np.empty((len(self.x), len(self.inverse)))
        out[:, self.shared] = np.einsum("ic,cij->ij", pull, self.g)
        for c, part in enumerate(self.of_class):
            out[:, part] = pull[:, [c]] * self.x
        return out

    def softened(self, eta: np.ndarray) -> np.ndarray:
        """W_i times changes of the logits: those of the probabilities, times the row's weight."""
        moved = self.p * (eta - (self.p * eta).sum(axis=1, keepdims=True))
        return moved * self.row_weights[:, None]

    def without(self, eta: np.ndarray) -> np.ndarray:
        """(I - S_i W_i)^-1 times changes of the logits: what H without row i makes of them."""
        n_classes = self.p.shape[1]
        bend = -self.p[:, :, None] * self.p[:, None, :]
        bend[:, np.arange(n_classes), np.arange(n_classes)] += self.p
        bend *= self.row_weights[:, None, None]
        system = np.eye(n_classes) - self.spread @ bend
        return np.linalg.solve(system, eta[:, :, None])[:, :, 0]

    def leave(self, slopes: Slopes | None) -> tuple[np.ndarray, np.ndarray]:
        """How each row's logits and the weights change by a Newton step as the row leaves.

        (n_rows, n_classes) and (n_rows, n_weights). `slopes`: what its leaving does to the others.
        """
        pull = np.zeros((len(self.x), len(self.inverse)))
        if slopes is not None:
            pull[:, self.shared] = slopes.shared[:, self.free]
            pull[:, len(self.free) :] = slopes.of_class.reshape(len(self.x), -1)
        moved = np.matmul(self.spread, self.residual[:, :, None])[:, :, 0]
        moved -= self.logits(pull @ self.inverse)
        moved = self.without(moved)
        return moved, (self.slopes(self.residual + self.softened(moved)) - pull) @ self.inverse

    def _curvature(self, fit: Fit) -> np.ndarray:
        n_classes, n_free = len(self.of_class), len(self.free)
        size = n_free + n_classes * self.x.shape[1]
        out = np.zeros((size, size))
        out[self.shared, self.shared] = fit.bend.of_shared[np.ix_(self.free, self.free)]
        mean = np.einsum("ic,cij->ij", self.p, self.g)
        weighted = self.p * self.row_weights[:, None]
        for c, rows in enumerate(self.of_class):
            part = ((self.g[c] - mean) * weighted[:, [c]]).T @ self.x
            out[self.shared, rows], out[rows, self.shared] = part, part.T
            for d, columns in enumerate(self.of_class[: c + 1]):
                share = weighted[:, c] * ((c == d) - self.p[:, d])
                part = (self.x * share[:, None]).T @ self.x
                out[rows, columns], out[columns, rows] = part, part.T
        of_class = np.tile(fit.precisions.of_class, n_classes)
        every = np.arange(size)
        out[every, every] += np.concatenate([fit.precisions.shared[self.free], of_class])
        return out

    def _spread(self) -> np.ndarray:
        """S_i = Z_i H^-1 Z_i' of each row: (n_rows, n_classes, n_classes)."""
        n_rows, n_classes = self.p.shape
        out = np.empty((n_rows, n_classes, n_classes))
        for c, part in enumerate(self.of_class):
            out[:, :, c] = self.logits(
                self.g[c] @ self.inverse[self.shared] + self.x @ self.inverse[part]
            )
        return out


def _inverse(matrix: np.ndarray) -> np.ndarray:
    """The inverse of a symmetric matrix of positive eigenvalues, in a third of `inv`'s time."""
    root, _ = lapack.dpotrf(matrix, lower=True)
    lower, failed = lapack.dpotri(root, lower=True)
    if failed:
        return np.linalg.inv(matrix)
    lower = np.tril(lower)
    return lower + np.tril(lower, -1).T
