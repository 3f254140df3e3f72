"""The predictive of new points under the asymmetric structure.

This is `open_labels` for the case that matters most, a new point that enters lists of nearest
neighbors and pushes out the last of each. What the point n becomes when the new point is of class c
is then the same for all new points. With V(c) the log term of n whose neighbors are its first K - 1
and one of class c, and with l the class of its K-th neighbor, G[n, c] = V(c) - V(l) and

    log p(z, z' = c | beta, K) = log p(z | beta, K) + own(c) + sum over n entered of G[n, c, beta],

a sparse product. G has far fewer distinct rows than there are points, for it depends only on the
class counts around a point, and it serves all new points. Where points are few it is cheaper to do
all K in the same few operations (`log_joint_of_all`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
from scipy import sparse

from kfree.neighbors.flat import distinct_hashes
from kfree.neighbors.search import Arrivals

# Above this, exp overflows.
LARGEST_EXPONENT = 600.0
# Pairs that count for K are picked out for K up to this factor larger at the same time.
GROWTH = 1.25


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
) -> Iterator[Entered]:
    """The tables of some points for rising K, one after the other.

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
    for k, beta in zip(ks, betas, strict=True):
        for j in range(counted, k - 1):
            hashed += words[0][near[j]]
        counted = k - 1
        shown_by, state, _ = distinct_hashes(hashed + words[2][near[k - 1]])
        first = class_counts(near[: k - 1, shown_by], n_classes)
        last, its_own = near[k - 1, shown_by], own[shown_by]
        change = changes(first, last, its_own, (beta / k)[None])  # (n_classes, n_states, n_beta)
        yield Entered(state, np.ascontiguousarray(change.transpose(1, 0, 2)))


def log_joint_of_all(
    arrivals: Arrivals,
    nearest: np.ndarray,
    labels: np.ndarray,
    n_classes: int,
    ks: np.ndarray,
    beta: np.ndarray,
) -> np.ndarray:
    """log p(z, z' = c | beta, K) - log p(z | beta, K): (n_k, n_rows, n_classes, n_beta).

    Parameters
    ----------
    nearest : (n_points, k_max) neighbors of all training points
    ks : (n_k,) values of K
    beta : (n_k, n_beta)
    """
    n_rows, n_points = len(arrivals.forward), len(nearest)
    b = (beta / ks[:, None])[:, None, :]  # (n_k, 1, n_beta)
    near = labels[nearest]
    change = changes(_counts_at(near, n_classes, ks - 1), near[:, ks - 1].T, labels, b)
    change = change.transpose(1, 2, 0, 3).reshape(len(ks), n_points, -1)
    rank = np.full((n_rows, n_points), ks[-1])
    rank[arrivals.reverse_row, arrivals.reverse_point] = arrivals.reverse_rank
    entered = (rank < ks[:, None, None]).astype(float)
    own = _counts_at(labels[arrivals.forward], n_classes, ks)[..., None] * b
    own -= own.max(axis=0)
    own -= np.log(np.exp(own).sum(axis=0))  # (n_classes, n_k, n_rows, n_beta)
    log_class = (entered @ change).reshape(len(ks), n_rows, n_classes, -1)
    log_class += own.transpose(1, 2, 0, 3)
    return log_class


def _counts_at(near: np.ndarray, n_classes: int, ks: np.ndarray) -> np.ndarray:
    """Class counts among the first `ks` of labels (n, k_max): (n_classes, n_k, n)."""
    each = np.arange(n_classes)[:, None, None] == near.T
    total = np.zeros((n_classes, near.shape[1] + 1, len(near)), dtype=np.int64)
    np.cumsum(each, axis=1, out=total[:, 1:])
    return total[:, ks]


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
        return log_softmax(self._count, beta / k)


class EnteringPairs:
    """New points and the points whose neighborhoods they enter, for rising K."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._limit = 0

    def add_changes(self, log_class: np.ndarray, table: Entered, k: int) -> None:
        """Add to log terms (n_rows, n_classes, n_beta) what the new points change around them.

        `k` is larger than in the call before.
        """
        if k > self._limit:
            self._take(int(GROWTH * k), len(log_class))
        if len(self._point) > len(table.state):
            # Few points have many pairs: what changes is copied for each point, not for each pair.
            state, change = self._point, table.change[table.state]
        else:
            state, change = table.state[self._point], table.change
        inside = np.less(self._rank, k, out=np.empty(len(self._rank)))
        log_class += _product(self._indptr, state, inside, change).reshape(log_class.shape)

    def _take(self, limit: int, n_rows: int) -> None:
        """The pairs that can count before K is above `limit`."""
        near = self._arrivals
        kept = np.flatnonzero(near.reverse_rank < limit)
        self._rank, self._point = near.reverse_rank[kept], near.reverse_point[kept]
        self._indptr = _starts(near.reverse_row[kept], n_rows)
        self._limit = limit


def gathered(row: np.ndarray, state: np.ndarray, change: np.ndarray, n_rows: int) -> np.ndarray:
    """The sum of `change[state]` over each row; `row` is in increasing order."""
    return _product(_starts(row, n_rows), state, np.ones(len(state)), change)


def _starts(row: np.ndarray, n_rows: int) -> np.ndarray:
    """Where each row begins, `row` being in increasing order; and the end: (n_rows + 1,)."""
    return np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n_rows))])


def _product(
    indptr: np.ndarray, state: np.ndarray, weight: np.ndarray, change: np.ndarray
) -> np.ndarray:
    """The weighted sums of `change[state]` over each row."""
    # The format is right as it is made, and checking it would take longer than small products do.
    matrix = sparse.csr_array((len(indptr) - 1, len(change)))
    matrix.data, matrix.indices, matrix.indptr = weight, state, indptr.astype(state.dtype)
    return matrix @ change.reshape(len(change), prod(change.shape[1:]))


def class_counts(near: np.ndarray, n_classes: int) -> np.ndarray:
    """How often each class is among labels (k, n): (n_classes, n)."""
    if n_classes <= 8:
        return np.stack([(near == c).sum(axis=0) for c in range(n_classes)])
    n = near.shape[1]
    flat = near.astype(np.int64) * n + np.arange(n)
    return np.bincount(flat.ravel(), minlength=n_classes * n).reshape(n_classes, n)


def changes(first: np.ndarray, last: np.ndarray, own: np.ndarray, b: np.ndarray) -> np.ndarray:
    """V(c) - V(l).

    Parameters
    ----------
    first : (n_classes, ..., n_points) class counts among the first K - 1 neighbors
    last : (..., n_points) class of the K-th
    own : (n_points,) the points' own class
    b : (..., 1, n_beta) beta / K

    Returns
    -------
    (n_classes, ..., n_points, n_beta)
    """
    top = first.max(axis=0)
    value = np.exp((first - top)[..., None] * b)
    total = value.sum(axis=0)
    if b.max() < LARGEST_EXPONENT:
        value *= np.expm1(b)
        value += total
        np.log(value, out=value)
    else:
        # log(total + value (e^b - 1)), the larger of the two taken out.
        with np.errstate(divide="ignore"):
            more = np.log(value) + b + np.log1p(-np.exp(-b))
        value = np.logaddexp(np.log(total), more)
    np.negative(value, out=value)
    points = np.arange(len(own))
    value[own, ..., points, :] += np.moveaxis(np.broadcast_to(b, value.shape[1:]), -2, 0)
    value -= np.take_along_axis(value, last[None, ..., None].astype(np.int64), axis=0)
    return value


def log_softmax(count: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The log terms of points with class counts (n_classes, n): (n, n_classes, n_beta)."""
    below = count.max(axis=0) - count
    fading = np.exp(-b * np.arange(int(below.max(initial=0)) + 1)[:, None])  # exp(-b t)
    log_class = -below[:, :, None] * b - np.log(fading[below].sum(axis=0))
    return np.ascontiguousarray(log_class.transpose(1, 0, 2))
