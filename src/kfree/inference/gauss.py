"""Gauss rules of discrete measures (Golub & Welsch), from their points by Lanczos' recurrence."""

from __future__ import annotations

import numpy as np


def gauss_rules(
    node: np.ndarray, weight: np.ndarray, n_nodes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes and weights (n_measures, n_nodes), exact up to degree 2 n_nodes - 1.

    Besides, the orthonormal polynomials of the last two degrees below n_nodes at the nodes:
    (n_measures, 2, n_nodes).

    Parameters
    ----------
    node, weight : (n_measures, n_points), each measure of mass one
    """
    center = (node * weight).sum(axis=1, keepdims=True)
    spread = np.sqrt((weight * (node - center) ** 2).sum(axis=1, keepdims=True))
    matrix = _jacobi_matrices((node - center) / spread, weight, n_nodes)
    values, vectors = np.linalg.eigh(matrix, UPLO="L")
    first = vectors[:, :1, :]  # the square roots of the weights, up to a sign
    last = np.divide(
        vectors[:, -2:, :], first, out=np.zeros_like(vectors[:, -2:]), where=first != 0
    )
    return center + spread * values, first[:, 0] ** 2, last


def _jacobi_matrices(x: np.ndarray, weight: np.ndarray, n: int) -> np.ndarray:
    """The recurrences of the orthogonal polynomials of each measure: (n_measures, n, n)."""
    basis = np.empty((len(x), n, x.shape[1]))
    basis[:, 0] = np.sqrt(weight)
    matrix = np.zeros((len(x), n, n))
    for j in range(n):
        image = x * basis[:, j]
        matrix[:, j, j] = (image * basis[:, j]).sum(axis=1)
        if j + 1 == n:
            break
        # Orthogonalised twice against all before: the recurrence alone loses orthogonality.
        for _ in range(2):
            shadow = basis[:, : j + 1] @ image[:, :, None]
            image = image - (shadow.transpose(0, 2, 1) @ basis[:, : j + 1])[:, 0]
        beside = np.sqrt((image * image).sum(axis=1))
        # Where the measure has no more points, nothing is left to be divided.
        basis[:, j + 1] = image / np.where(beside > 0, beside, 1.0)[:, None]
        matrix[:, j + 1, j] = beside
    return matrix
