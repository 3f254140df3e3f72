"""The predictive of new points under the two symmetric structures.

This is `open_labels` for new points and few classes. A new point joins the neighborhoods of its own
neighbors and of the points it comes near to; each of the latter lets go of its last neighbor, and
that edge is gone on both sides. All of this is written down as events, one word each, and sorted by
row and point: what happens to one point then stands together. Most points are touched in one of a
few ways (`Kinds`) and what becomes of them can be known beforehand; the rest are evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kfree.likelihood.entering import LARGEST_EXPONENT, gathered
from kfree.neighbors.flat import expand
from kfree.neighbors.structures import Neighborhoods, NewPoints

# How many numbers are held while pairs are evaluated.
BLOCK_NUMBERS = 1 << 18
# Kinds and codes from here on: a point loses a neighbor of class 0, 1, ...
LOST = 3


@dataclass(frozen=True)
class Around:
    """Class counts around all training points at one K, and their log terms at its betas."""

    count: np.ndarray  # (n_classes, n_points)
    size: np.ndarray | None  # (n_points,) what a count is divided by; None if by K
    log_term: np.ndarray  # (n_beta, n_points)
    # (n_classes, n_beta, n_points) exp(beta (count - top) / K), top the largest count; and the log
    # of its sum over the classes, (n_beta, n_points). None if counts are not divided by K.
    share: np.ndarray | None
    log_total: np.ndarray | None

    @property
    def n_numbers(self) -> int:
        """About how much is held."""
        share = 0 if self.share is None else self.share.size
        return self.count.size + 2 * self.log_term.size + share


def edge_slots(table: Neighborhoods, labels: np.ndarray) -> np.ndarray:
    """Where in a table (n_classes, n_points) each edge is counted."""
    n = len(labels)
    small = np.min_scalar_type(-(int(labels.max()) + 1) * n)
    slot = labels.astype(small)[table.neighbors] * small.type(n)
    slot += np.repeat(np.arange(n, dtype=small), np.diff(table.indptr))
    return slot


def around(
    table: Neighborhoods,
    slots: np.ndarray,
    labels: np.ndarray,
    n_classes: int,
    k: int,
    beta: np.ndarray,
) -> Around:
    """What is around the training points at K = k; `slots` as `edge_slots` gives them."""
    n = len(labels)
    flat = np.bincount(slots[table.ranks < k], minlength=n_classes * n)
    count = flat.reshape(n_classes, n).astype(np.int32)
    size = count.sum(axis=0) if table.by_size else None
    b = beta[:, None] / (k if size is None else size)
    top = count.max(axis=0)
    share = np.exp(-(top - count)[:, None, :] * b)
    log_total = np.log(share.sum(axis=0))
    log_term = (count[labels, np.arange(n)] - top) * b - log_total
    if size is not None:  # which a new point changes, and with it all of the following
        return Around(count, size, log_term, None, None)
    return Around(count, None, log_term, share, log_total)


@dataclass(frozen=True)
class Kinds:
    """What becomes of any training point in the ways in which most points are touched.

    It takes up the new point as its neighbor; does so while it lets go of its own last neighbor;
    or, where edges count twice, takes it up on both sides of the edge and lets go. Or it only loses
    one neighbor, which is the same for each class of the new point.
    """

    taken: np.ndarray  # (3 * n_points, n_classes * n_beta) new log term less old; 2 n_points rows
    # where edges count once
    lost: np.ndarray  # (n_classes * n_points, n_beta) by the class of the neighbor lost


def kinds(near: Around, labels: np.ndarray, last: np.ndarray, k: int, beta: np.ndarray) -> Kinds:
    """The kinds of all training points; `last` are the classes of their K-th neighbors."""
    n, n_classes = len(labels), len(near.count)
    each = np.arange(n)
    own_last = np.zeros((n_classes, n), dtype=np.int64)
    own_last[last, each] = 1

    def changes(weight: int, lost: np.ndarray) -> np.ndarray:
        return _changes(_Touched(each, np.full(n, weight), lost), labels, near, k, beta)

    taken = [changes(1, np.zeros_like(own_last)), changes(1, own_last)]
    if near.size is None:
        taken.append(changes(2, own_last))
    lost = []
    for label in range(n_classes):
        one = np.zeros_like(own_last)
        one[label] = 1
        lost.append(changes(0, one)[:, 0])
    return Kinds(np.concatenate(taken).reshape(-1, n_classes * len(beta)), np.concatenate(lost))


def log_joint(
    visit: NewPoints,
    labels: np.ndarray,
    near: Around,
    k: int,
    beta: np.ndarray,
    known: Kinds | None = None,
) -> np.ndarray:
    """log p(z, z' = c | beta, K) - log p(z | beta, K): (n_rows, n_classes, n_beta)."""
    n_rows, n_classes, n_points = visit.n_rows, len(near.count), len(labels)
    events = _events(visit, labels, n_classes, k, once=near.size is not None)
    weight = events.weight if near.size is None else np.minimum(events.weight, 1)
    slot = events.row * n_classes + labels[events.point]
    own = np.bincount(slot, weight, n_rows * n_classes).reshape(n_rows, n_classes)
    b = beta / (k if near.size is None else own.sum(axis=1)[:, None])
    log_class = own[:, :, None] * np.atleast_2d(b)[:, None, :]
    log_class -= log_class.max(axis=1, keepdims=True)
    log_class -= np.log(np.exp(log_class).sum(axis=1, keepdims=True))
    pairs = np.arange(len(events.row))
    if known is not None:
        state = events.kind.astype(np.int64) * n_points + events.point
        taken = np.flatnonzero((events.kind >= 0) & (events.kind < LOST))
        lost = np.flatnonzero(events.kind >= LOST)
        pairs = np.flatnonzero(events.kind < 0)
        more = gathered(events.row[taken], state[taken], known.taken, n_rows)
        log_class += more.reshape(log_class.shape)
        less = gathered(events.row[lost], state[lost] - LOST * n_points, known.lost, n_rows)
        log_class += less[:, None, :]
    last = labels[visit.graph.indices[:, k - 1]]
    touched = _Touched(events.point[pairs], weight[pairs], _lost(events, pairs, last, n_classes))
    change = _changes(touched, labels, near, k, beta)
    each = np.arange(len(pairs), dtype=np.int32)
    log_class += gathered(events.row[pairs], each, change, n_rows).reshape(log_class.shape)
    return log_class


@dataclass(frozen=True)
class _Events:
    """What happens to which point around which row; pairs are ordered by row and point."""

    row: np.ndarray  # (n_pairs,)
    point: np.ndarray  # (n_pairs,)
    weight: np.ndarray  # (n_pairs,) how often the point takes up the row
    kind: np.ndarray  # (n_pairs,) as `Kinds` has them, or -1
    first: np.ndarray  # (n_pairs + 1,) the first event of each pair
    # (n_events,) 0: takes up the row, its neighbor; 1: takes up the row, which came near, and lets
    # go of its own last neighbor; 2: the same, but this one stays; 3 + c: loses one of class c
    code: np.ndarray


def _events(visit: NewPoints, labels: np.ndarray, n_classes: int, k: int, once: bool) -> _Events:
    n, bits = visit.graph.n_points, (n_classes + 3).bit_length()
    # Short words sort faster.
    word = np.int32 if visit.n_rows * n << bits < 1 << 31 else np.int64
    row, point, pushed = visit.entered(k)
    gone = visit.gone(k, row, point, pushed)
    forward = (np.arange(visit.n_rows, dtype=word) * n)[:, None] + visit.arrivals.forward[:, :k]
    base = row.astype(word) * n
    entered = (base + point.astype(word)) << bits
    entered += np.where(gone, word(1), word(2))
    lost = (base[gone] + pushed[gone].astype(word)) << bits
    lost += (LOST + labels[point[gone]]).astype(word)
    events = np.concatenate([forward.astype(word).ravel() << bits, entered, lost])
    events.sort()
    key, code = events >> bits, (events & ((1 << bits) - 1)).astype(np.int8)
    first = np.flatnonzero(np.concatenate([[len(key) > 0], key[1:] != key[:-1]]))
    row, point = np.divmod(key[first], n)
    # Taking up, which happens once or twice, is sorted before losing.
    number = np.diff(first, append=len(key))
    one, two = code[first], code[np.minimum(first + 1, len(code) - 1)]
    both = (number > 1) & (two < LOST)
    weight = (one < LOST).astype(np.int64) + both
    # Where edges count once, it does not matter how often and on which side they are.
    kind = np.where(number == 1, np.where(one == 2, np.int8(0), one), np.int8(-1))
    doubly = both & (number == 2)
    kind = np.where(doubly & (two == 1), np.int8(1 if once else 2), kind)
    kind = np.where(doubly & (two == 2), np.int8(0), kind)
    return _Events(row, point, weight, kind, np.append(first, len(key)), code)


def _lost(events: _Events, pairs: np.ndarray, last: np.ndarray, n_classes: int) -> np.ndarray:
    """How many neighbors of each class the points of some pairs let go: (n_classes, n_pairs).

    `last` are the classes of all points' K-th neighbors.
    """
    owner, event = expand(events.first, pairs)
    code = events.code[event]
    losing = np.flatnonzero((code == 1) | (code >= LOST))
    owner, code = owner[losing], code[losing]
    label = np.where(code == 1, last[events.point[pairs[owner]]], code.astype(np.int64) - LOST)
    slot = label * len(pairs) + owner
    return np.bincount(slot, minlength=n_classes * len(pairs)).reshape(n_classes, len(pairs))


@dataclass(frozen=True)
class _Touched:
    """Points that take up the new point and let go of neighbors."""

    point: np.ndarray  # (n_pairs,)
    weight: np.ndarray  # (n_pairs,) how often the new point is taken up
    lost: np.ndarray  # (n_classes, n_pairs) how many neighbors of each class are let go

    def __getitem__(self, part: slice) -> _Touched:
        return _Touched(self.point[part], self.weight[part], self.lost[:, part])


def _changes(
    touched: _Touched, labels: np.ndarray, near: Around, k: int, beta: np.ndarray
) -> np.ndarray:
    """New log term less old, by the class of the new point: (n_pairs, n_classes, n_beta)."""
    n, n_classes = len(touched.point), len(near.count)
    out = np.empty((n, n_classes, len(beta)))
    step = max(1, BLOCK_NUMBERS // (n_classes * len(beta)))
    for start in range(0, n, step):
        part = slice(start, start + step)
        out[part] = _changes_in_part(touched[part], labels, near, k, beta)
    return out


def _changes_in_part(
    touched: _Touched, labels: np.ndarray, near: Around, k: int, beta: np.ndarray
) -> np.ndarray:
    point, weight, lost = touched.point, touched.weight, touched.lost
    # Pairs come last: everything then runs over long arrays.
    each, own = np.arange(len(point)), labels[point]
    b, most_lost = beta[:, None] / k, lost.max(initial=0)
    if near.share is not None and most_lost * b.max() < LARGEST_EXPONENT:
        assert near.log_total is not None
        share, fixed = near.share.take(point, axis=2), near.log_total.take(point, axis=1)
        fading = np.exp(-b * np.arange(most_lost + 1))  # exp(-b t)
        for label, number in enumerate(lost):
            pair = np.flatnonzero(number)
            share[label][:, pair] *= fading.take(number[pair], axis=1)
        own_lost = lost[own, each]
        pair = np.flatnonzero(own_lost)
        fixed[:, pair] -= own_lost[pair] * b
    else:
        count = near.count[:, point] - lost
        if near.size is not None:
            size = near.size[point] - lost.sum(axis=0) + weight
            b = beta[:, None] / np.maximum(size, 1)
        top = count.max(axis=0)
        share = np.exp(-(top - count)[:, None, :] * b)
        fixed = (count[own, each] - top) * b - near.log_term.take(point, axis=1)
    total = share.sum(axis=0)
    gain = b * weight  # (n_beta, n_pairs)
    if gain.max(initial=0) < LARGEST_EXPONENT:
        share *= np.expm1(gain)
        share += total
        new = np.log(share, out=share)
    else:
        # log(total + share (e^gain - 1)), the larger of the two taken out.
        with np.errstate(divide="ignore"):
            more = np.log(share) + gain + np.log1p(-np.exp(-gain))
        new = np.logaddexp(np.log(total), more)
    np.subtract(fixed, new, out=new)
    for label in range(len(lost)):
        new[label] += gain * (own == label)
    return new.transpose(2, 0, 1)
