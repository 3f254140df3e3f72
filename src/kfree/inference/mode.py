"""Newton's method for many one-dimensional maxima at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Derivatives = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]


def maximize(
    function: Derivatives, start: np.ndarray, n_steps: int = 100, tolerance: float = 1e-10
) -> np.ndarray:
    """The maximizer over beta > 0 of each of many functions, elementwise.

    `function` takes an array of betas and gives value, slope and curvature at each. The slope's
    sign keeps a bracket; a Newton step that leaves it, or goes where the function is convex, is
    replaced by a bisection (a doubling or halving while there is no bracket yet).
    """
    beta = np.array(start, dtype=float)
    low = np.zeros_like(beta)
    high = np.full_like(beta, np.inf)
    for _ in range(n_steps):
        _, slope, curvature = function(beta)
        low = np.where(slope > 0, beta, low)
        high = np.where(slope < 0, beta, high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = beta - slope / curvature
        middle = np.where(
            np.isinf(high), 2.0 * beta, np.where(low == 0.0, 0.5 * high, 0.5 * (low + high))
        )
        sound = (curvature < 0) & (newton > low) & (newton < high)
        # At the maximum a step is mere rounding and may lead out of the bracket: there it ends.
        done = (slope == 0.0) | ((curvature < 0) & (np.abs(newton - beta) <= tolerance * beta))
        beta = np.where(sound, newton, np.where(done, beta, middle))
        if done.all():
            break
    return beta
