"""The predictive of new points under the asymmetric structure, for rising K.

This is `open_labels` for the case that matters most, a new point that enters lists of nearest
neighbors and pushes out the last of each. What the point n becomes when the new point is of class c
is then the same for all new points, and follows from its first K - 1 neighbors: one value
G[n, c, beta] for each touched n, and

    log p(z, z' = c | beta, K) = log p(z | beta, K) + own(c) + sum over n entered of G[n, c, beta],

a sparse product. Counts go from K to the next K by adding the neighbors in between.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from kfree.neighbors.flat import distinct
from kfree.neighbors.structures import NewPoints


class Entering:
    """New points that enter lists of neighbors, at K = 1, 2, ... in rising order."""

    def __init__(self, visit: NewPoints, labels: np.ndarray, n_classes: int) -> None:
        near = visit.arrivals
        self.n_classes = n_classes
        self.n_rows, k_max = near.forward.shape
        point, column = distinct(near.reverse_point, len(labels))
        # Classes come first in all tables: sums over them then run over long arrays.
        self._forward = labels[near.forward.T]  # (k_max, n_rows) classes of neighbors
        self._own = np.zeros((n_classes, self.n_rows), dtype=np.int64)
        self._near = labels[visit.graph.indices[point, :k_max].T]  # (k_max, n_points)
        self._label = labels[point]
        self._before = np.zeros((n_classes, len(point)), dtype=np.int64)
        self._after = np.zeros((n_classes, len(point)), dtype=np.int64)
        self._rank = near.reverse_rank
        n_entered = np.bincount(near.reverse_row, minlength=self.n_rows)
        self._column = column.astype(np.int32)
        self._indptr = np.concatenate([[0], np.cumsum(n_entered)]).astype(np.int32)
        self._counted = 0

    def at(self, k: int, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Class probabilities given K = k and beta, and the log of the sum over the classes.

        Parameters
        ----------
        k : larger than in the call before
        beta : (n_beta,)

        Returns
        -------
        (n_rows, n_classes, n_beta) and (n_rows, n_beta)
        """
        self._count_up_to(k)
        b = beta / k
        fading = np.exp(-b * np.arange(k + 1)[:, None])  # exp(-b t) for t = 0..k
        top, total, _ = _softmax(self._own, fading)
        log_class = (self._own - top)[:, :, None] * b - np.log(total)  # (C, n_rows, n_beta)
        log_class = np.ascontiguousarray(log_class.transpose(1, 0, 2))
        if len(self._label):
            change = self._changes(b, fading)  # (n_points, n_classes, n_beta)
            entered = sparse.csr_array(
                ((self._rank < k).astype(float), self._column, self._indptr),
                shape=(self.n_rows, len(self._label)),
            )
            flat = entered @ change.reshape(len(change), -1)
            log_class += flat.reshape(log_class.shape)
        high = log_class.max(axis=1)
        share = np.exp(log_class - high[:, None, :])
        total = share.sum(axis=1)
        return share / total[:, None, :], np.log(total) + high

    def _count_up_to(self, k: int) -> None:
        """Own counts and counts before at K = k, counts after at K = k - 1."""
        rows, points = np.arange(self.n_rows), np.arange(len(self._label))
        for j in range(self._counted, k):
            self._own[self._forward[j], rows] += 1
            self._before[self._near[j], points] += 1
        for j in range(max(self._counted - 1, 0), k - 1):
            self._after[self._near[j], points] += 1
        self._counted = k

    def _changes(self, b: np.ndarray, fading: np.ndarray) -> np.ndarray:
        """New log term less old, by the class of the new point: (n_points, n_classes, n_beta)."""
        points = np.arange(len(self._label))
        top, total, _ = _softmax(self._before, fading)
        old = (self._before[self._label, points] - top)[:, None] * b - np.log(total)
        count = self._after
        top, total, share = _softmax(count, fading)
        fixed = (count[self._label, points] - top)[:, None] * b - old
        out = np.empty((len(points), self.n_classes, len(b)))
        for c in range(self.n_classes):
            below = top - count[c]
            # A class below the top gains one and stays at or below it. The top class rises above
            # it: all else is then measured from there.
            log_total = np.log(total + (fading[np.maximum(below - 1, 0)] - share[c]))
            rises = np.flatnonzero(below == 0)
            log_total[rises] = b + np.log((total[rises] - 1.0) * fading[1] + 1.0)
            out[:, c] = fixed - log_total
        out[points, self._label] += b
        return out


def _softmax(count: np.ndarray, fading: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Largest count, sum over classes (first axis) of exp(b (count - largest)), the summands."""
    top = count.max(axis=0)
    share = fading[top - count]
    return top, share.sum(axis=0), share
