"""Newton's method for many one-dimensional maxima at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Derivatives = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]


class Newton:
    """Steps towards the maximizers over beta > 0 of many functions, elementwise.

    The slope's sign keeps a bracket; a Newton step that leaves it, or goes where the function is
    convex, is replaced by a bisection (a doubling or halving while there is no bracket yet).
    """

    def __init__(self, start: np.ndarray) -> None:
        self.beta = np.array(start, dtype=float)
        self._low = np.zeros_like(self.beta)
        self._high = np.full_like(self.beta, np.inf)

    def step(
        self,
        slope: np.ndarray,
        curvature: np.ndarray,
        tolerance: float | np.ndarray,
        at: Any = slice(None),
    ) -> np.ndarray:
        """Move, by the derivatives at `beta[at]`, and tell which were there, within `tolerance`."""
        beta = self.beta[at]
        self._low[at] = low = np.where(slope > 0, beta, self._low[at])
        self._high[at] = high = np.where(slope < 0, beta, self._high[at])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = beta - slope / curvature
        middle = np.where(
            np.isinf(high), 2.0 * beta, np.where(low == 0.0, 0.5 * high, 0.5 * (low + high))
        )
        sound = (curvature < 0) & (newton > low) & (newton < high)
        # At the maximum a step is mere rounding and may lead out of the bracket: there it ends.
        done = (slope == 0.0) | ((curvature < 0) & (np.abs(newton - beta) <= tolerance * beta))
        self.beta[at] = np.where(sound, newton, np.where(done, beta, middle))
        return done


def maximize(
    function: Derivatives, start: np.ndarray, n_steps: int = 100, tolerance: float = 1e-10
) -> np.ndarray:
    """The maximizer over beta > 0 of each of many functions, elementwise.

    `function` takes an array of betas and gives value, slope and curvature at each.
    """
    search = Newton(start)
    for _ in range(n_steps):
        _, slope, curvature = function(search.beta)
        if search.step(slope, curvature, tolerance).all():
            break
    return search.beta
