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
        self._listed = np.zeros((2, n_rows, n_classes))  # of probabilities and of their squares
        self._absent = np.zeros((2, n_rows))
        self._weight = np.zeros(n_rows)
        self._log_unit = np.full(n_rows, NOTHING)

    def add(
        self, known: Conditional, weight: np.ndarray, log_factor: np.ndarray | None = None
    ) -> None:
        """Add conditionals at n betas with weights (n_rows, n).

        `log_factor` (n_rows,) multiplies the weights.
        """
        slots, listed, absent = known.slots, known.listed, known.absent
        if log_factor is not None:
            weight = weight * self._in_units(log_factor)[:, None]
        self._weight += weight.sum(axis=1)
        mean, square = self._listed
        if absent is None:
            table = listed.reshape(*mean.shape, -1)
            weighted = weight[:, None, :] * table
            mean += weighted.sum(axis=2)
            square += np.einsum("ijk,ijk->ij", weighted, table)
            return
        # Every class gets what an absent one has, a listed class the rest as well.
        others = weight * absent
        more = others.sum(axis=1), (others * absent).sum(axis=1)
        self._absent += more
        owner = slots.owner
        weighted = weight[owner]
        weighted *= listed
        mean[owner, slots.classes] += weighted.sum(axis=1) - more[0][owner]
        weighted *= listed
        square[owner, slots.classes] += weighted.sum(axis=1) - more[1][owner]

    def take(self, rows: np.ndarray) -> ClassSums:
        """The sums of some of the rows."""
        some = ClassSums(len(rows), self._listed.shape[2])
        some._listed, some._absent = self._listed[:, rows], self._absent[:, rows]
        some._weight, some._log_unit = self._weight[rows], self._log_unit[rows]
        return some

    def put(self, rows: np.ndarray, better: ClassSums) -> None:
        """Replace the sums of some of the rows."""
        self._listed[:, rows], self._absent[:, rows] = better._listed, better._absent
        self._weight[rows], self._log_unit[rows] = better._weight, better._log_unit

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        mean, square = (self._listed + self._absent[:, :, None]) / self._weight[:, None]
        # A probability can underflow only where beta is beyond any reason; it is never zero.
        mean = np.maximum(mean, np.finfo(float).tiny)
        return mean / mean.sum(axis=1, keepdims=True), np.clip(square, 0.0, mean)

    def _in_units(self, log_factor: np.ndarray) -> np.ndarray:
        """The factors in units that fit them; what was added before is brought to these."""
        if not (log_factor < self._log_unit + LARGEST_FACTOR).all():
            log_unit = np.maximum(self._log_unit, log_factor)
            shrunk = np.exp(self._log_unit - log_unit)
            self._listed *= shrunk[:, None]
            self._absent *= shrunk
            self._weight *= shrunk
            self._log_unit = log_unit
        return np.exp(log_factor - self._log_unit)


def normalized(log_mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights of each row that add up to one, and the log of their sum before."""
    top = log_mass.max(axis=1, keepdims=True)
    weight = np.exp(log_mass - top)
    total = weight.sum(axis=1, keepdims=True)
    return weight / total, (top + np.log(total))[:, 0]
