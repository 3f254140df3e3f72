"""The neighbor table of the training points, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

NEVER = np.iinfo(np.int32).max


@dataclass(frozen=True)
class NeighborGraph:
    """For each point its `k_max` nearest other points, nearest first, ties by index."""

    indices: np.ndarray  # (n_points, k_max) int32
    distances: np.ndarray  # (n_points, k_max) float64

    @property
    def n_points(self) -> int:
        return self.indices.shape[0]

    @property
    def k_max(self) -> int:
        return self.indices.shape[1]

    @cached_property
    def _by_rank(self) -> sparse.csr_array:
        """Entry (n, j) is 1 + the rank of j among the neighbors of n."""
        n, k = self.indices.shape
        ranks = np.tile(np.arange(1, k + 1, dtype=np.int32), n)
        indptr = np.arange(0, n * k + 1, k)
        return sparse.csr_array((ranks, self.indices.ravel(), indptr), shape=(n, n))

    @cached_property
    def reverse(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """indptr, sources, ranks: the points that have i as a neighbor, and at which rank."""
        transposed = self._by_rank.tocsc()
        return transposed.indptr, transposed.indices, transposed.data - 1

    @cached_property
    def mutual_rank(self) -> np.ndarray:
        """At [n, k] the rank of n in the list of its k-th neighbor, or NEVER: (n_points, k_max)."""
        forward = self._by_rank.copy()
        forward.sort_indices()
        backward = self._by_rank.T.tocsr()
        backward.sort_indices()
        # An elementwise product keeps the mutual edges only. Dividing out the rank from one side
        # leaves the other's.
        ones = sparse.csr_array(
            (np.ones(backward.nnz, dtype=np.int64), backward.indices, backward.indptr),
            shape=backward.shape,
        )
        rank = forward.astype(np.int64).multiply(ones).tocoo()
        product = forward.astype(np.int64).multiply(backward.astype(np.int64)).tocoo()
        table = np.full(self.indices.shape, NEVER, dtype=np.int32)
        table[rank.row, rank.data - 1] = product.data // rank.data - 1
        return table
