"""The predictive of held-out training rows under the asymmetric structure.

This is `open_labels` for leave-one-out and few classes. The graph stays, only the label of row i is
open: in its own term, and in the term of every n that has i among its K nearest. What n becomes
when i is of class c depends on n's class counts and on the label that i had, so, as in `entering`,
few rows of a table serve all pairs:

    G[n, l, c] = V(c) - V(l),

with V(c) the log term of n whose neighbors are its K nearest without one of class l, and one of c.
"""

from __future__ import annotations

import numpy as np

from kfree.likelihood.entering import changes, class_counts, gathered, log_softmax
from kfree.neighbors.flat import distinct_hashes, expand
from kfree.neighbors.structures import HeldOut


class Leaving:
    """Held-out rows at K = 1, 2, ... in rising order."""

    def __init__(
        self, visit: HeldOut, labels: np.ndarray, n_classes: int, k_max: int, joint: bool
    ) -> None:
        small = labels.astype(np.min_scalar_type(n_classes))
        self._near = small[visit.graph.indices[:, :k_max].T]  # (k_max, n_points)
        self._labels, self._rows, self._joint = labels, visit.rows, joint
        self._count = np.zeros((n_classes, len(labels)), dtype=np.int64)
        # Class counts are hashed as the sum of a random word for each neighbor.
        random = np.random.default_rng(20133)
        self._words = random.integers(0, 1 << 64, (2, n_classes), dtype=np.uint64)
        self._hashed = self._words[1][labels]
        self._counted = 0
        if joint:
            indptr, source, rank = visit.graph.reverse
            self._pair_row, edge = expand(indptr, visit.rows)
            self._pair_point, self._pair_rank = source[edge], rank[edge]

    def at(self, k: int, beta: np.ndarray) -> np.ndarray:
        """log p(z, z' = c) - log p(z), without the rows' own terms: (n_rows, n_classes, n_beta)."""
        n_classes = len(self._count)
        self._count += class_counts(self._near[self._counted : k], n_classes)
        for j in range(self._counted, k):
            self._hashed += self._words[0][self._near[j]]
        self._counted = k
        own_label = self._labels[self._rows]
        log_class = log_softmax(self._count[:, self._rows], beta / k)
        log_class -= log_class[np.arange(len(own_label)), own_label][:, None, :]
        if not self._joint:
            return log_class
        inside = self._pair_rank < k
        row, point = self._pair_row[inside], self._pair_point[inside]
        if len(row):
            shown_by, state, _ = distinct_hashes(self._hashed)
            table = self._table(shown_by, beta / k)
            which = state[point] * np.int32(n_classes) + own_label[row].astype(np.int32)
            log_class += gathered(row, which, table, len(log_class)).reshape(log_class.shape)
        return log_class

    def _table(self, points: np.ndarray, b: np.ndarray) -> np.ndarray:
        """G of some points: (n_points * n_classes, n_classes, n_beta)."""
        n_classes, count, own = len(self._count), self._count[:, points], self._labels[points]
        table = np.empty((len(points), n_classes, n_classes, len(b)))
        for label in range(n_classes):
            rest = count.copy()
            # Where no neighbor has this label, its row of the table is never asked for.
            np.maximum(rest[label] - 1, 0, out=rest[label])
            last = np.full(len(points), label)
            table[:, label] = changes(rest, last, own, b[None]).transpose(1, 0, 2)
        return table.reshape(-1, n_classes, len(b))
