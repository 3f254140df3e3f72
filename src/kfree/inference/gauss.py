"""Gauss rules of discrete measures (Golub & Welsch), from their points by Lanczos' recurrence."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

# A row for which two nodes would not do is known by its slope alone, which then counts for more.
TWO_NODES_DOUBT = 3.0


@dataclass(frozen=True)
class JacobiMatrices:
    """The recurrence of the orthogonal polynomials of discrete measures (n_measures of them)."""

    center: np.ndarray  # (n_measures, 1)
    spread: np.ndarray  # (n_measures, 1)
    diagonal: np.ndarray  # (n_measures, n)
    beside: np.ndarray  # (n_measures, n - 1)

    def take(self, measures: np.ndarray) -> JacobiMatrices:
        """Those of some of the measures."""
        return JacobiMatrices(*(getattr(self, part.name)[measures] for part in fields(self)))

    def rule(self, n_nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Nodes and weights (n_measures, n_nodes), exact up to degree 2 n_nodes - 1.

        Besides, the orthonormal polynomials of the last two degrees below n_nodes at the nodes:
        (n_measures, 2, n_nodes).
        """
        matrix = np.zeros((len(self.diagonal), n_nodes, n_nodes))
        i = np.arange(n_nodes)
        matrix[:, i, i] = self.diagonal[:, :n_nodes]
        matrix[:, i[1:], i[:-1]] = self.beside[:, : n_nodes - 1]
        values, vectors = np.linalg.eigh(matrix, UPLO="L")
        first = vectors[:, :1, :]  # the square roots of the weights, up to a sign
        last = np.divide(
            vectors[:, -2:, :], first, out=np.zeros_like(vectors[:, -2:]), where=first != 0
        )
        if n_nodes == 2:  # the constant tells nothing, and the line has to tell of degree four
            last *= [[0.0], [TWO_NODES_DOUBT]]
        return self.center + self.spread * values, first[:, 0] ** 2, last


def jacobi_matrices(node: np.ndarray, weight: np.ndarray, n: int) -> JacobiMatrices:
    """Lanczos' recurrence for measures on nodes (n_measures, n_points), each of mass one."""
    center = (node * weight).sum(axis=1, keepdims=True)
    spread = np.sqrt((weight * (node - center) ** 2).sum(axis=1, keepdims=True))
    x = (node - center) / spread
    basis = np.empty((len(x), n, x.shape[1]))
    basis[:, 0] = np.sqrt(weight)
    diagonal, beside = np.empty((len(x), n)), np.empty((len(x), n - 1))
    for j in range(n):
        image = x * basis[:, j]
        diagonal[:, j] = (image * basis[:, j]).sum(axis=1)
        if j + 1 == n:
            break
        # Orthogonalised twice against all before: the recurrence alone loses orthogonality.
        for _ in range(2):
            shadow = basis[:, : j + 1] @ image[:, :, None]
            image = image - (shadow.transpose(0, 2, 1) @ basis[:, : j + 1])[:, 0]
        beside[:, j] = np.sqrt((image * image).sum(axis=1))
        # Where the measure has no more points, nothing is left to be divided.
        left = beside[:, j] > 0
        basis[:, j + 1] = image / np.where(left, beside[:, j], 1.0)[:, None]
    return JacobiMatrices(center, spread, diagonal, beside)
