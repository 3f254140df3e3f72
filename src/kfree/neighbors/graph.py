"""The neighbors of the training points at each candidate of K, and what follows from them.

Only the candidates matter, so an order is kept only as far as they need it: the first K entries of
a list are the K nearest neighbors for every candidate K, and the last of them is the K-th. What
lies between two candidates is one cell. A neighbor counts from the candidate of its cell on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

NEVER = np.iinfo(np.int32).max


def cells(k: np.ndarray) -> np.ndarray:
    """The first of the candidates `k` (n_k,) for which each entry of a list counts: (k[-1],)."""
    return np.repeat(np.arange(len(k), dtype=np.int32), np.diff(k, prepend=0))


@dataclass(frozen=True)
class NeighborGraph:
    """For each point its nearest other points, in cells of the candidates `k`."""

    k: np.ndarray  # (n_k,) rising
    indices: np.ndarray  # (n_points, k[-1]) int32
    radii: np.ndarray  # (n_points, n_k) float64, the distance of the K-th neighbor

    @property
    def n_points(self) -> int:
        return self.indices.shape[0]

    @property
    def k_max(self) -> int:
        return self.indices.shape[1]

    def up_to(self, n_k: int) -> NeighborGraph:
        """The same at the first n_k candidates."""
        indices = np.ascontiguousarray(self.indices[:, : self.k[n_k - 1]])
        return NeighborGraph(self.k[:n_k], indices, np.ascontiguousarray(self.radii[:, :n_k]))

    def last(self, i: int) -> np.ndarray:
        """The K-th neighbor of every point at the i-th candidate: (n_points,)."""
        return self.indices[:, self.k[i] - 1]

    @cached_property
    def _by_place(self) -> sparse.csr_array:
        """Entry (n, j) is 1 + the place of j in the list of n."""
        n, k_max = self.indices.shape
        place = np.tile(np.arange(1, k_max + 1, dtype=np.int32), n)
        indptr = np.arange(0, n * k_max + 1, k_max)
        return sparse.csr_array((place, self.indices.ravel(), indptr), shape=(n, n))

    @cached_property
    def reverse(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """indptr, sources, cells: the points that have i as a neighbor, and from when on."""
        transposed = self._by_place.tocsc()
        return transposed.indptr, transposed.indices, cells(self.k)[transposed.data - 1]

    @cached_property
    def mutual_cell(self) -> np.ndarray:
        """At [n, j] the cell of n in the list of its j-th neighbor, or NEVER: (n_points, k_max)."""
        forward = self._by_place.copy()
        forward.sort_indices()
        backward = self._by_place.T.tocsr()
        backward.sort_indices()
        # An elementwise product keeps the mutual edges only. Dividing out the place from one side
        # leaves the other's.
        ones = sparse.csr_array(
            (np.ones(backward.nnz, dtype=np.int64), backward.indices, backward.indptr),
            shape=backward.shape,
        )
        place = forward.astype(np.int64).multiply(ones).tocoo()
        product = forward.astype(np.int64).multiply(backward.astype(np.int64)).tocoo()
        table = np.full(self.indices.shape, NEVER, dtype=np.int32)
        table[place.row, place.data - 1] = cells(self.k)[product.data // place.data - 1]
        return table
