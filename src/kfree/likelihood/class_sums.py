"""Weighted sums of class probabilities, over all K and beta."""

from __future__ import annotations

import numpy as np

from kfree.likelihood.slots import Conditional

# The logarithm of a factor that numbers bear, and of one that is smaller than any.
LARGEST_FACTOR = 100.0
NOTHING = -1e300


class ClassSums:
    """Weighted sums of class probabilities and of their squares.

    The weights of a row need not add up to anything; they are given in parts, each with the
    logarithm of a factor, so that no part has to be kept until all are known.
    """

    def __init__(self, n_rows: int, n_classes: int) -> None:
        # Of probabilities and of their squares. The last column is part of every class.
        self._sums = np.zeros((2, n_rows, n_classes + 1))
        self._weight = np.zeros(n_rows)
        self._log_unit = np.full(n_rows, NOTHING)

    def add(
        self, known: Conditional, weight: np.ndarray, log_factor: np.ndarray | None = None
    ) -> None:
        """Add conditionals at n betas with weights (n_rows, n).

        `log_factor` (n_rows,) multiplies the weights.
        """
        slots, share = known.slots, known.share
        if log_factor is not None:
            weight = weight * self._in_units(log_factor)[:, None]
        self._weight += weight.sum(axis=1)
        weighted = slots.spread(weight)
        weighted *= share
        added = np.stack([weighted.sum(axis=1), np.einsum("ij,ij->i", weighted, share)])
        if slots.every:
            self._sums[:, :, :-1] += added.reshape(2, slots.n_points, -1)
            return
        # Every class gets what one without a slot has, the others the rest as well.
        common = added[:, slots.last]
        added -= common[:, slots.owner]
        added[:, slots.last] = common
        self._sums[:, slots.owner, slots.classes] += added

    def take(self, rows: np.ndarray) -> ClassSums:
        """The sums of some of the rows."""
        some = ClassSums(len(rows), self._sums.shape[2] - 1)
        some._sums = self._sums[:, rows]
        some._weight, some._log_unit = self._weight[rows], self._log_unit[rows]
        return some

    def put(self, rows: np.ndarray, better: ClassSums) -> None:
        """Replace the sums of some of the rows."""
        self._sums[:, rows] = better._sums
        self._weight[rows], self._log_unit[rows] = better._weight, better._log_unit

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        sums = self._sums[:, :, :-1] + self._sums[:, :, -1:]
        mean, square = sums / self._weight[:, None]
        # A probability can underflow only where beta is beyond any reason; it is never zero.
        mean = np.maximum(mean, np.finfo(float).tiny)
        return mean / mean.sum(axis=1, keepdims=True), np.clip(square, 0.0, mean)

    def _in_units(self, log_factor: np.ndarray) -> np.ndarray:
        """The factors in units that fit them; what was added before is brought to these."""
        if not (log_factor < self._log_unit + LARGEST_FACTOR).all():
            log_unit = np.maximum(self._log_unit, log_factor)
            shrunk = np.exp(self._log_unit - log_unit)
            self._sums *= shrunk[:, None]
            self._weight *= shrunk
            self._log_unit = log_unit
        return np.exp(log_factor - self._log_unit)


def normalized(log_mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights of each row that add up to one, and the log of their sum before."""
    top = log_mass.max(axis=1, keepdims=True)
    weight = np.exp(log_mass - top)
    total = weight.sum(axis=1, keepdims=True)
    return weight / total, (top + np.log(total))[:, 0]
