"""The predictive of new points under the two symmetric structures.

This is `open_labels` for new points and few classes. A new point joins the neighborhoods of its own
neighbors and of the points it comes near to; each of the latter lets go of its last neighbor, and
that edge is gone on both sides. All of this is written down as events, one word each, and sorted by
row and point, so that what happens to one point stands together. The same happens to a point around
many rows: its new log term, for each class that the new point may have, is evaluated once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kfree.likelihood.entering import LARGEST_EXPONENT, gathered
from kfree.neighbors.flat import distinct_hashes, expand
from kfree.neighbors.structures import Neighborhoods, NewPoints

# How many numbers are held while pairs are evaluated.
BLOCK_NUMBERS = 1 << 18


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


def around(
    table: Neighborhoods, labels: np.ndarray, n_classes: int, k: int, beta: np.ndarray
) -> Around:
    """What is around the training points at K = k."""
    n = len(labels)
    owner, neighbor = table.of(np.arange(n), k)
    flat = np.bincount(labels[neighbor] * n + owner, minlength=n_classes * n)
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


def log_joint(
    visit: NewPoints, labels: np.ndarray, near: Around, k: int, beta: np.ndarray
) -> np.ndarray:
    """log p(z, z' = c | beta, K) - log p(z | beta, K): (n_rows, n_classes, n_beta)."""
    n_rows, n_classes = visit.n_rows, len(near.count)
    events = _events(visit, labels, n_classes, k)
    weight = events.weight if near.size is None else np.minimum(events.weight, 1)
    slot = events.row * n_classes + labels[events.point]
    own = np.bincount(slot, weight, n_rows * n_classes).reshape(n_rows, n_classes)
    b = beta / (k if near.size is None else own.sum(axis=1)[:, None])
    log_class = own[:, :, None] * np.atleast_2d(b)[:, None, :]
    log_class -= log_class.max(axis=1, keepdims=True)
    log_class -= np.log(np.exp(log_class).sum(axis=1, keepdims=True))
    # The same happens to a point around many rows.
    shown_by, state, _ = distinct_hashes(events.hashed)
    point, lost = events.point[shown_by], _lost(events, shown_by, n_classes)
    change = np.concatenate(
        [
            _changes(point[part], weight[shown_by[part]], lost[:, part], labels, near, k, beta)
            for part in _parts(len(point), n_classes * len(beta))
        ]
    )
    log_class += gathered(events.row, state, change, n_rows).reshape(log_class.shape)
    return log_class


@dataclass(frozen=True)
class _Events:
    """What happens to which point around which row; pairs are ordered by row and point."""

    row: np.ndarray  # (n_pairs,)
    point: np.ndarray  # (n_pairs,)
    weight: np.ndarray  # (n_pairs,) how often the point takes up the row
    hashed: np.ndarray  # (n_pairs,) the point and all that happens to it
    first: np.ndarray  # (n_pairs + 1,) the first event of each pair
    code: np.ndarray  # (n_events,) 0: takes up the row; 1 + c: lets go of a neighbor of class c


def _events(visit: NewPoints, labels: np.ndarray, n_classes: int, k: int) -> _Events:
    n, bits = visit.graph.n_points, (n_classes + 1).bit_length()
    row, point, pushed = visit.entered(k)
    forward = np.arange(visit.n_rows)[:, None] * n + visit.arrivals.forward[:, :k]
    entered = row * n + point
    gone = visit.gone(k, row, point, pushed)
    row, point, pushed = row[gone], point[gone], pushed[gone]
    events = np.concatenate(
        [
            forward.ravel() << bits,
            entered << bits,
            ((row * n + point) << bits) + (1 + labels[pushed]),
            ((row * n + pushed) << bits) + (1 + labels[point]),
        ]
    )
    events.sort()
    key, code = events >> bits, events & ((1 << bits) - 1)
    first = np.flatnonzero(np.concatenate([[len(key) > 0], key[1:] != key[:-1]]))
    row, point = np.divmod(key[first], n)
    first = np.append(first, len(key))
    # The word of an event, summed over a pair, tells pairs of the same point apart.
    words = np.random.default_rng(20132).integers(0, 1 << 64, n_classes + 1, dtype=np.uint64)
    hashed = np.add.reduceat(words[code], first[:-1]) if len(key) else np.empty(0, dtype=np.uint64)
    hashed += (point + 1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    # Taking up, which happens once or twice, is sorted before letting go.
    weight = (code[first[:-1]] == 0).astype(np.int64)
    second = np.minimum(first[:-1] + 1, len(code) - 1)
    weight += (weight > 0) & (first[:-1] + 1 < first[1:]) & (code[second] == 0)
    return _Events(row, point, weight, hashed, first, code)


def _lost(events: _Events, pairs: np.ndarray, n_classes: int) -> np.ndarray:
    """How many neighbors of each class the points of some pairs let go: (n_classes, n_pairs)."""
    owner, event = expand(events.first, pairs)
    code = events.code[event]
    losing = code > 0
    slot = (code[losing] - 1) * len(pairs) + owner[losing]
    return np.bincount(slot, minlength=n_classes * len(pairs)).reshape(n_classes, len(pairs))


def _changes(
    point: np.ndarray,
    weight: np.ndarray,
    lost: np.ndarray,
    labels: np.ndarray,
    near: Around,
    k: int,
    beta: np.ndarray,
) -> np.ndarray:
    """New log term less old, by the class of the new point: (n_pairs, n_classes, n_beta)."""
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


def _parts(n: int, n_numbers: int) -> list[slice]:
    step = max(1, BLOCK_NUMBERS // n_numbers)
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]
