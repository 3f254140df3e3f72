"""How far an axis reaches: as far as there is something to see."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: K outside the drawn range hold at most this much of the probability.
_LEFT_OUT = 1e-4
#: Half the drawn range of beta, in standard deviations.
_N_STD = 5.0
_N_BETA = 200


def beta_grid(mean: float, std: float) -> NDArray[np.float64]:
    """Strengths from 5 standard deviations below the mean to 5 above, all positive."""
    upper = mean + _N_STD * std
    return np.linspace(max(mean - _N_STD * std, upper / _N_BETA), upper, _N_BETA)


def k_range(k_probabilities: NDArray[np.floating], left_out: float = _LEFT_OUT) -> slice:
    """Return the shortest run of K from which each side leaves out at most half of `left_out`."""
    below = np.cumsum(k_probabilities)
    above = np.cumsum(k_probabilities[::-1])
    first = int(np.searchsorted(below, left_out / 2, side="right"))
    last = len(k_probabilities) - int(np.searchsorted(above, left_out / 2, side="right"))
    return slice(first, last)
