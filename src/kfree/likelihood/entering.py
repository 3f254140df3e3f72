"""The predictive of new points under the asymmetric structure.

This is `open_labels` for the case that matters most, a new point that enters lists of nearest
neighbors and pushes out the last of each. What the point n becomes when the new point is of class c
is then the same for all new points, and follows from its first K - 1 neighbors:

    log p(z, z' = c | beta, K) = log p(z | beta, K) + own(c) + sum over n entered of G[n, c, beta],

a sparse product. G has far fewer distinct rows than there are points, for it depends only on the
class counts around a point, and it serves all new points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from kfree.neighbors.flat import distinct_hashes
from kfree.neighbors.search import Arrivals


@dataclass(frozen=True)
class Entered:
    """What entering the neighborhood of any of some points changes, at one K and its betas."""

    state: np.ndarray  # (n_points,) the row of `change` that belongs to a point
    change: np.ndarray  # (n_states, n_classes, n_beta) new log term less old


def entered_tables(
    nearest: np.ndarray,
    own: np.ndarray,
    labels: np.ndarray,
    n_classes: int,
    ks: np.ndarray,
    betas: list[np.ndarray],
) -> list[Entered]:
    """The tables of some points for rising K.

    Parameters
    ----------
    nearest : (n_points, k_max) neighbors of the points, nearest first
    own : (n_points,) labels of the points
    labels : (n,) labels of all training points, integers from 0
    ks : (n_k,) values of K
    betas : the betas of each K
    """
    small = labels.astype(np.min_scalar_type(n_classes))
    near = small[nearest[:, : ks[-1]].T]  # (k, n_points)
    # Class counts are hashed as the sum of a random word for each neighbor.
    words = np.random.default_rng(20131).integers(0, 1 << 64, (3, n_classes), dtype=np.uint64)
    hashed, counted = words[1][own], 0
    tables = []
    for k, beta in zip(ks, betas, strict=True):
        for j in range(counted, k - 1):
            hashed += words[0][near[j]]
        counted = k - 1
        shown_by, state, _ = distinct_hashes(hashed + words[2][near[k - 1]])
        after = class_counts(near[: k - 1, shown_by], n_classes)
        before = after.copy()
        before[near[k - 1, shown_by], np.arange(len(shown_by))] += 1
        tables.append(Entered(state, _changes(before, after, own[shown_by], beta / k)))
    return tables


class OwnTerms:
    """The new points' own terms, for rising K."""

    def __init__(self, arrivals: Arrivals, labels: np.ndarray, n_classes: int) -> None:
        small = labels.astype(np.min_scalar_type(n_classes))
        self._near = small[arrivals.forward.T]  # (k_max, n_rows)
        self._count = np.zeros((n_classes, len(arrivals.forward)), dtype=np.int64)
        self._counted = 0

    def at(self, k: int, beta: np.ndarray) -> np.ndarray:
        """The log terms (n_rows, n_classes, n_beta) at K = k, larger than in the call before."""
        self._count += class_counts(self._near[self._counted : k], len(self._count))
        self._counted = k
        b = beta / k
        top, total, _ = _softmax(self._count, _fading(b, k))
        log_class = (self._count - top)[:, :, None] * b - np.log(total)
        return np.ascontiguousarray(log_class.transpose(1, 0, 2))


def add_changes(log_class: np.ndarray, arrivals: Arrivals, table: Entered, k: int) -> None:
    """Add to log terms (n_rows, n_classes, n_beta) what the new points change around them."""
    entered = arrivals.reverse_rank < k
    number = np.bincount(arrivals.reverse_row[entered], minlength=len(log_class))
    indptr = np.concatenate([[0], np.cumsum(number)])
    state = table.state[arrivals.reverse_point[entered]]
    shape = len(log_class), len(table.change)
    # The format is right as it is made, and checking it would take longer than small products do.
    gather = sparse.csr_array(shape)
    gather.data, gather.indices = np.ones(len(state)), state
    gather.indptr = indptr.astype(state.dtype)
    log_class += (gather @ table.change.reshape(len(table.change), -1)).reshape(log_class.shape)


def class_counts(near: np.ndarray, n_classes: int) -> np.ndarray:
    """How often each class is among labels (k, n): (n_classes, n)."""
    if n_classes <= 8:
        return np.stack([(near == c).sum(axis=0) for c in range(n_classes)])
    n = near.shape[1]
    flat = near.astype(np.int64) * n + np.arange(n)
    return np.bincount(flat.ravel(), minlength=n_classes * n).reshape(n_classes, n)


def _changes(before: np.ndarray, after: np.ndarray, own: np.ndarray, b: np.ndarray) -> np.ndarray:
    """New log term less old, by the class of the new point: (n_points, n_classes, n_beta)."""
    points = np.arange(len(own))
    fading = _fading(b, int(before.sum(axis=0).max()))
    top, total, _ = _softmax(before, fading)
    old = (before[own, points] - top)[:, None] * b - np.log(total)
    top, total, share = _softmax(after, fading)
    fixed = (after[own, points] - top)[:, None] * b - old
    out = np.empty((len(points), len(after), len(b)))
    for c in range(len(after)):
        below = top - after[c]
        # A class below the top gains one and stays at or below it. The top class rises above it:
        # all else is then measured from there.
        log_total = np.log(total + (fading[np.maximum(below - 1, 0)] - share[c]))
        rises = np.flatnonzero(below == 0)
        log_total[rises] = b + np.log((total[rises] - 1.0) * fading[1] + 1.0)
        out[:, c] = fixed - log_total
    out[points, own] += b
    return out


def _fading(b: np.ndarray, k: int) -> np.ndarray:
    """exp(-b t) for t = 0..k."""
    return np.exp(-b * np.arange(k + 1)[:, None])


def _softmax(count: np.ndarray, fading: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Largest count, sum over classes (first axis) of exp(b (count - largest)), the summands."""
    top = count.max(axis=0)
    share = fading[top - count]
    return top, share.sum(axis=0), share
