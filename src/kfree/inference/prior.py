"""The prior of the strength beta."""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma, log

import numpy as np


@dataclass(frozen=True)
class GammaPrior:
    """p(beta) = beta^(shape - 1) exp(-beta / scale) / (Gamma(shape) scale^shape).

    The paper's G(beta; 2, 10), "almost flat", is read as shape 2 and scale 10, so its mean is 20.
    """

    shape: float
    scale: float

    def log_density(self, beta: np.ndarray) -> np.ndarray:
        """Log p(beta)."""
        constant = lgamma(self.shape) + self.shape * log(self.scale)
        return (self.shape - 1.0) * np.log(beta) - beta / self.scale - constant

    def derivatives(self, beta: np.ndarray, log_scale: bool = False) -> tuple:
        """Log density, slope and curvature in beta; of log(beta)'s density if `log_scale`.

        The density of u = log(beta) is p(beta) beta. Its derivatives are still taken in beta.
        """
        power = self.shape if log_scale else self.shape - 1.0
        value = self.log_density(beta) + (np.log(beta) if log_scale else 0.0)
        return value, power / beta - 1.0 / self.scale, -power / (beta * beta)
