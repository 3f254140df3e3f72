"""The predictive of new points under the two symmetric structures.

This is `open_labels` for new points and few classes. A new point joins the neighborhoods of its own
neighbors and of the points it comes near to; each of the latter lets go of its last neighbor, and
that edge is gone on both sides. All of this is written down as events, one word each, and sorted by
row and point: what happens to one point then stands together, its class counts after follow by
counting, and its new log term is evaluated for each class that the new point may have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kfree.neighbors.structures import Neighborhoods, NewPoints

# Above this, exp overflows.
LARGEST_EXPONENT = 600.0
# How many numbers are held while pairs are evaluated.
BLOCK_NUMBERS = 1 << 18


@dataclass(frozen=True)
class Around:
    """Class counts around all training points at one K, and their log terms at its betas."""

    count: np.ndarray  # (n_points, n_classes)
    size: np.ndarray | None  # (n_points,) what a count is divided by; None if by K
    log_term: np.ndarray  # (n_points, n_beta)


def around(
    table: Neighborhoods, labels: np.ndarray, n_classes: int, k: int, beta: np.ndarray
) -> Around:
    """What is around the training points at K = k."""
    owner, neighbor = table.of(np.arange(len(labels)), k)
    flat = np.bincount(owner * n_classes + labels[neighbor], minlength=len(labels) * n_classes)
    count = flat.reshape(-1, n_classes).astype(np.int32)
    size = count.sum(axis=1) if table.by_size else None
    b = beta / (k if size is None else size[:, None])
    top = count.max(axis=1)
    total = np.exp(-(top[:, None] - count)[:, :, None] * np.atleast_2d(b)[:, None, :]).sum(axis=1)
    own = count[np.arange(len(labels)), labels]
    return Around(count, size, (own - top)[:, None] * b - np.log(total))


def log_joint(
    visit: NewPoints, labels: np.ndarray, near: Around, k: int, beta: np.ndarray
) -> np.ndarray:
    """log p(z, z' = c | beta, K) - log p(z | beta, K): (n_rows, n_classes, n_beta)."""
    n_classes = near.count.shape[1]
    pairs = _pairs(visit, labels, n_classes, k, once=near.size is not None)
    number = pairs.weight * (1 if near.size is None else pairs.weight > 0)
    own = np.bincount(pairs.row * n_classes + labels[pairs.point], number, visit.n_rows * n_classes)
    own = own.reshape(visit.n_rows, n_classes)
    b = beta / (k if near.size is None else own.sum(axis=1)[:, None])
    log_class = own[:, :, None] * np.atleast_2d(b)[:, None, :]
    top = log_class.max(axis=1, keepdims=True)
    log_class -= top
    log_class -= np.log(np.exp(log_class).sum(axis=1, keepdims=True))
    step = max(1, BLOCK_NUMBERS // (n_classes * len(beta)))
    starts = np.searchsorted(pairs.row, np.arange(visit.n_rows + 1))
    first = 0
    while first < visit.n_rows:
        last = int(np.searchsorted(starts, starts[first] + step, side="right")) - 1
        last = min(max(last, first + 1), visit.n_rows)
        part = slice(starts[first], starts[last])
        if part.stop > part.start:
            change = _changes(pairs, part, labels, near, k, beta)
            filled = first + np.flatnonzero(np.diff(starts[first : last + 1]))
            log_class[filled] += np.add.reduceat(change, starts[filled] - part.start)
        first = last
    return log_class


@dataclass(frozen=True)
class _Pairs:
    """Rows and the training points whose neighborhoods they change, ordered by row."""

    row: np.ndarray  # (n_pairs,)
    point: np.ndarray  # (n_pairs,)
    weight: np.ndarray  # (n_pairs,) how often the point takes up the row
    lost: np.ndarray  # (n_pairs, n_classes) neighbors that it lets go


def _pairs(visit: NewPoints, labels: np.ndarray, n_classes: int, k: int, once: bool) -> _Pairs:
    n, n_rows = visit.graph.n_points, visit.n_rows
    near = visit.arrivals
    row, point, pushed = visit.entered(k)
    bits = (n_classes + 1).bit_length()
    # Code 0: the point takes up the row; 1 + c: it lets go of a neighbor of class c.
    forward = (np.arange(n_rows)[:, None] * n + near.forward[:, :k]).ravel()
    entered = row * n + point
    gone = visit.gone(k, row, point, pushed)
    row, point, pushed = row[gone], point[gone], pushed[gone]
    events = np.concatenate(
        [
            forward << bits,
            entered << bits,
            ((row * n + point) << bits) + 1 + labels[pushed],
            ((row * n + pushed) << bits) + 1 + labels[point],
        ]
    )
    events.sort()
    key, code = events >> bits, events & ((1 << bits) - 1)
    begins = np.empty(len(key), dtype=bool)
    begins[:1] = True
    np.not_equal(key[1:], key[:-1], out=begins[1:])
    first = np.flatnonzero(begins)
    weight = np.add.reduceat((code == 0).astype(np.int32), first)
    losing = np.flatnonzero(code)
    pair = np.cumsum(begins)[losing] - 1
    lost = np.bincount(pair * n_classes + code[losing] - 1, minlength=len(first) * n_classes)
    row, point = np.divmod(key[first], n)
    if once:
        weight = np.minimum(weight, 1)
    return _Pairs(row, point, weight, lost.reshape(-1, n_classes))


def _changes(
    pairs: _Pairs, part: slice, labels: np.ndarray, near: Around, k: int, beta: np.ndarray
) -> np.ndarray:
    """New log term less old, by the class of the new point: (n_pairs, n_classes, n_beta)."""
    point, weight = pairs.point[part], pairs.weight[part, None]
    count = near.count[point] - pairs.lost[part]
    each, own = np.arange(len(point)), labels[point]
    top = count.max(axis=1)
    below = top[:, None] - count  # (n_pairs, n_classes)
    if near.size is None:
        b = (beta / k)[None, :]
        share = np.exp(-b * np.arange(below.max() + 1)[:, None])[below]
    else:
        size = near.size[point] - pairs.lost[part].sum(axis=1) + weight[:, 0]
        b = beta / np.maximum(size, 1)[:, None]
        share = np.exp(-below[:, :, None] * b[:, None, :])
    total = share.sum(axis=1, keepdims=True)
    gain = b * weight  # (n_pairs, n_beta)
    if gain.max() < LARGEST_EXPONENT:
        share *= np.expm1(gain)[:, None, :]
        share += total
        new = np.log(share, out=share)
    else:
        # log(total + share (e^gain - 1)), the larger of the two taken out.
        with np.errstate(divide="ignore"):
            more = np.log(share) + (gain + np.log1p(-np.exp(-gain)))[:, None, :]
        new = np.logaddexp(np.log(total), more)
    fixed = (count[each, own] - top)[:, None] * b - near.log_term[point]
    np.subtract(fixed[:, None, :], new, out=new)
    new[each, own] += gain
    return new
