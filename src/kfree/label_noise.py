"""How many labels are wrong, beyond what overlapping classes explain.

A label that the other rows contradict may be wrong, or its row may lie where classes overlap. The
model's own probabilities cannot tell these apart: they are learned from the labels as they are, so
the number of contradictions that they expect, the sum of 1 - max p, follows wrong labels as it
follows overlap. What tells them apart is where contradictions are. Overlap makes them near the
border of the classes and fewer the deeper a row lies among rows that are predicted alike; wrong
labels are as frequent deep inside as anywhere. So the share of contradicted rows at depth s is

    r(s) = e + (1 - e) q(s),    q(s) = (C - 1)/C * sigmoid(b - a s),

the lapse rate e of psychometric curves over a curve that falls from the border on, and e times the
number of rows is the number of wrong labels. At the border (s = 0) chance decides, hence b >= 0.
Where classes are well apart, depths are many times their spread; contradictions there are no
overlap, so the curve must have fallen, and a and b are bounded. e has an interval by its profile
likelihood. How deep a row lies can be measured in several ways, and none is right for all data: the
estimate is the median of theirs, and the interval spans all of theirs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

# Half of the 95% quantile of chi squared with one degree of freedom.
DROP = 1.92
SHARES = np.concatenate([[0.0], np.geomspace(5e-4, 0.45, 60)])
# Depth by rank: the place in a row's list of the first, or third, that is predicted otherwise.
RANKS = (1, 3)
# Depths that are closer than this share of their range are taken as one.
N_DEPTHS = 200
SMALLEST = 1e-12
# Depths are divided by their spread, but none becomes larger than this.
DEEPEST = 30.0
# From this mean depth on, in units of their spread, classes are well apart.
APART = 4.0
N_STEPS = 60


@dataclass(frozen=True)
class Curves:
    """Bounds of b and log a, and where the search begins.

    Chosen on made data sets without a wrong label, and on data sets with labels flipped; `make
    audit` measures on others of the former.
    """

    lowest: tuple[float, float]
    highest: tuple[float, float]
    starts: tuple[tuple[float, float], ...]


FREE = Curves((0.0, -6.0), (8.0, 4.0), ((0.5, -1.0), (0.5, 0.7)))
FALLEN = Curves((0.0, float(np.log(0.7))), (1.75, 4.0), ((0.5, -0.35), (0.5, 0.7)))


@dataclass(frozen=True)
class WrongLabels:
    """An estimate of how many labels are wrong.

    Attributes
    ----------
    n_rows : int
    n_contradicted : int
        Rows that have another label that is more probable than theirs.
    n_estimated : int
        How many labels are wrong.
    interval : tuple of two int
        95% interval of that number.
    """

    n_rows: int
    n_contradicted: int
    n_estimated: int
    interval: tuple[int, int]

    @property
    def explained_by_overlap(self) -> bool:
        """Whether there are no more contradictions than overlapping classes explain."""
        return self.interval[0] == 0

    @property
    def in_words(self) -> str:
        """A sentence."""
        low, high = self.interval
        if self.n_contradicted == 0:
            return "No label looks wrong."
        if self.explained_by_overlap:
            return (
                "Overlap of the classes may explain that: the number of wrong labels may be "
                f"0 (estimate {self.n_estimated:,}, 95% interval 0 to {high:,})."
            )
        return (
            f"Beyond what overlap of the classes explains, about {self.n_estimated:,} labels are "
            f"wrong (95% interval: {low:,} to {high:,})."
        )


def estimate_wrong(probabilities: NDArray, labels: NDArray, neighbors: NDArray) -> WrongLabels:
    """Estimate how many labels are wrong.

    Parameters
    ----------
    probabilities : ndarray of shape (n_rows, n_classes)
        Of each row when its own label is unknown.
    labels : ndarray of shape (n_rows,)
        Column numbers of `probabilities`.
    neighbors : ndarray of shape (n_rows, n_neighbors)
        Each row's neighbors, nearest first.
    """
    n_rows, n_classes = probabilities.shape
    predicted = probabilities.argmax(axis=1)
    contradicted = predicted != labels
    n_contradicted = int(contradicted.sum())
    if n_contradicted == 0:
        return WrongLabels(n_rows, 0, 0, (0, _rule_of_three(n_rows)))
    depths = [
        *(depth_by_rank(predicted, neighbors, j) for j in RANKS),
        depth_by_odds(probabilities),
    ]
    found = np.array([lapse_rate(depth, contradicted, n_classes) for depth in depths])
    estimate = float(np.median(found[:, 0]))
    low, high = float(found[:, 1].min()), float(found[:, 2].max())
    return WrongLabels(
        n_rows,
        n_contradicted,
        min(n_contradicted, round(estimate * n_rows)),
        (int(np.floor(low * n_rows)), min(n_contradicted, int(np.ceil(high * n_rows)))),
    )


def depth_by_rank(predicted: NDArray, neighbors: NDArray, j: int) -> NDArray[np.float64]:
    """The log of the place of the j-th neighbor that is predicted otherwise than the row itself."""
    n_neighbors = neighbors.shape[1]
    n_other = (predicted[neighbors] != predicted[:, None]).cumsum(axis=1, dtype=np.int32)
    place = np.where(n_other[:, -1] >= j, (n_other >= j).argmax(axis=1) + 1, n_neighbors + 1)
    return np.log(place)


def depth_by_odds(probabilities: NDArray) -> NDArray[np.float64]:
    """The log odds of the most probable class against the next."""
    first, second = np.sort(probabilities, axis=1)[:, :-3:-1].T
    return np.log(np.maximum(first, SMALLEST)) - np.log(np.maximum(second, SMALLEST))


def lapse_rate(
    depth: NDArray[np.float64], contradicted: NDArray[np.bool_], n_classes: int
) -> tuple[float, float, float]:
    """The most likely e, and the ends of its 95% interval."""
    deepest = float(depth.max())
    scaled = depth / max(float(depth.std()), deepest / DEEPEST, SMALLEST)
    if deepest > 0:
        step = scaled.max() / N_DEPTHS
        scaled = np.round(scaled / step) * step
    values, cell = np.unique(scaled, return_inverse=True)
    n_all = np.bincount(cell).astype(float)
    n_bad = np.bincount(cell, contradicted)
    most = (n_classes - 1) / n_classes
    found = []
    # Where classes are not well apart either may be right, and the interval spans both.
    for curves in (FALLEN,) if scaled.mean() > APART else (FREE, FALLEN):
        losses = _least_losses(values, n_all, n_bad, most, curves)
        best = int(np.argmin(losses))
        likely = SHARES[losses <= losses[best] + DROP]
        found.append((float(SHARES[best]), float(likely.min()), float(likely.max())))
    return found[0][0], min(low for _, low, _ in found), max(high for _, _, high in found)


def _least_losses(
    depth: NDArray, n_all: NDArray, n_bad: NDArray, most: float, curves: Curves
) -> NDArray[np.float64]:
    """The smallest negative log likelihood over b and log a, for each of `SHARES`.

    Fisher scoring with damping, for all shares and both starting points at once.
    """
    share = np.tile(SHARES, len(curves.starts))[:, None]  # (n_problems, 1)
    at = np.repeat(np.array(curves.starts), len(SHARES), axis=0)  # (n_problems, 2): b, log a
    damping = np.full(len(at), 1e-2)
    loss, slope, information = _curve_fit(at, share, depth, n_all, n_bad, most)
    for _ in range(N_STEPS):
        scale = information[:, [0, 1], [0, 1]].max(axis=1) + SMALLEST
        damped = information + (damping * scale)[:, None, None] * np.eye(2)
        step = np.linalg.solve(damped, slope[:, :, None])[:, :, 0]
        tried = np.clip(at - step, curves.lowest, curves.highest)
        new = _curve_fit(tried, share, depth, n_all, n_bad, most)
        better = new[0] < loss
        damping = np.where(better, damping / 4, damping * 8)
        at[better], loss[better] = tried[better], new[0][better]
        slope[better], information[better] = new[1][better], new[2][better]
    return loss.reshape(len(curves.starts), -1).min(axis=0)


def _curve_fit(
    at: NDArray, share: NDArray, depth: NDArray, n_all: NDArray, n_bad: NDArray, most: float
) -> tuple[NDArray, NDArray, NDArray]:
    """Negative log likelihood (n_problems,), its gradient and the Fisher information."""
    a = np.exp(at[:, 1:])
    curve = expit(at[:, :1] - a * depth)  # (n_problems, n_depths)
    rate = np.clip(share + (1 - share) * most * curve, SMALLEST, 1 - 1e-9)
    loss = -(np.log(rate) @ n_bad + np.log1p(-rate) @ (n_all - n_bad))
    by_b = (1 - share) * most * curve * (1 - curve)
    by = np.stack([by_b, -by_b * a * depth], axis=1)  # (n_problems, 2, n_depths)
    slope = (by * ((n_all - n_bad) / (1 - rate) - n_bad / rate)[:, None]).sum(axis=2)
    weighted = by * (n_all / (rate * (1 - rate)))[:, None]
    return loss, slope, weighted @ by.transpose(0, 2, 1)


def _rule_of_three(n_rows: int) -> int:
    """No case among so many leaves open this many, at 95%."""
    return min(3, n_rows)
