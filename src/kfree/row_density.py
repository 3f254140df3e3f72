"""The density of beta at one candidate of K for rows whose label is open, and its modes.

    log p(beta) + log sum_c p(z, z' = c | beta, K)

The training labels and the prior give their derivatives in beta. What the open label adds is small,
smooth and known by its values alone.
"""

from __future__ import annotations

import numpy as np

from kfree.inference.mode import maximize
from kfree.likelihood.conditional import by_label
from kfree.likelihood.open_labels import OpenLabels
from kfree.training import Model

# The slope and the curvature of what a label adds come from its values at seven points, exactly for
# polynomials up to the sixth degree. So far apart, in standard deviations of beta, they err by
# less than 1e-9 of the curvature in tests/test_row_modes.py.
POINTS = np.arange(-3.0, 4.0)
WEIGHTS = np.array([[-1, 9, -45, 0, 45, -9, 1], [2, -27, 270, -490, 270, -27, 2]])
WEIGHTS = WEIGHTS / np.array([[60.0], [180.0]])
STEP = 0.03
# A smaller step to the mode, in standard deviations, is the last: the mode is then off by its
# square.
TOLERANCE = 1e-6
TINY = 1e-12


class RowDensity:
    """The log density of beta of rows at the i-th candidate."""

    def __init__(self, model: Model, rows: OpenLabels, i: int) -> None:
        self._model, self._rows, self._candidate, self._field = model, rows, i, rows.at(i)
        self._curves = model.likelihood.curves(np.array([i]))
        self._width = min(1.0, float(model.posterior.curves.std[i]))  # of log(beta)

    def derivatives(self, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Value, slope and curvature in beta at one beta (n_rows,) for each row."""
        step = STEP * self._width * beta
        at_points = self._field.by_label(beta[:, None] + step[:, None] * POINTS)
        log_total = at_points.conditional().log_total
        value = log_total[:, len(POINTS) // 2]
        # Less what is common, so that the sums lose no digits.
        slope, curvature = WEIGHTS @ (log_total - value[:, None]).T
        added = value, slope / step, curvature / step**2
        of_data = (part[0] for part in self._curves(beta[None], True, np.zeros(1, dtype=int)))
        of_prior = self._model.prior.derivatives(beta)
        value, slope, curvature = (
            sum(parts) for parts in zip(added, of_data, of_prior, strict=True)
        )
        return value, slope, curvature

    def modes(self) -> np.ndarray:
        """The highest mode of each row: (n_rows,). A sum over labels may have several."""
        beta, log_mass = self._model.posterior.fine.of(self._candidate)
        added = by_label(self._rows)(self._candidate, beta).conditional().log_total
        height = log_mass - np.log(beta) + added  # (n_rows, n_nodes)
        # The highest top of a parabola through three nodes, in log(beta).
        below, top, above = height[:, :-2], height[:, 1:-1], height[:, 2:]
        bend = np.minimum(below - 2.0 * top + above, -TINY)
        shift = np.clip(0.5 * (below - above) / bend, -1.0, 1.0)
        at_top = top + shift * (0.5 * (above - below) + 0.5 * shift * bend)
        best = np.where((top >= below) & (top >= above), at_top, top).argmax(axis=1)
        shift = np.take_along_axis(shift, best[:, None], axis=1)[:, 0]
        start = beta[best + 1] * (beta[best + 2] / beta[best + 1]) ** shift
        return maximize(self.derivatives, start, tolerance=TOLERANCE * self._width)
