"""Which degree has this polynomial? KOREA beside the exact answer.

Run with `python examples/order_polynomial.py`; docs/order.md explains it.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import multivariate_normal

from kfree.inference.order import OrderPosterior, order_posterior

DEGREES = range(9)


class PolynomialRegression:
    """y = sum over j = 0..K of f_j x^j + noise; the order K is the degree.

    The noise has the known standard deviation `noise`, each f_j has the prior N(0, spread^2), and
    every degree has the same prior probability, which is left out.
    """

    def __init__(self, x: np.ndarray, y: np.ndarray, noise: float, spread: float) -> None:
        self.x = x
        self.y = y
        self.noise = noise
        self.spread = spread

    def powers(self, order: int) -> np.ndarray:
        return np.vander(self.x, order + 1, increasing=True)  # (n, order + 1)

    # The model as kfree.inference.order wants it.

    def start(self, order: int) -> np.ndarray:
        return np.zeros(order + 1)

    def log_joint(self, parameters: np.ndarray, order: int) -> float:
        residual = self.y - self.powers(order) @ parameters
        return log_normal(residual, self.noise) + log_normal(parameters, self.spread)

    def gradient(self, parameters: np.ndarray, order: int) -> np.ndarray:
        powers = self.powers(order)
        residual = self.y - powers @ parameters
        return powers.T @ residual / self.noise**2 - parameters / self.spread**2

    # What is known besides: y is Gaussian when the coefficients are integrated out.

    def exact_log_evidence(self, order: int) -> float:
        powers = self.powers(order)
        covariance = self.noise**2 * np.eye(len(self.y)) + self.spread**2 * powers @ powers.T
        return float(multivariate_normal.logpdf(self.y, cov=covariance))


def log_normal(values: np.ndarray, std: float) -> float:
    """Sum of the log densities of N(0, std^2)."""
    return float(-0.5 * ((values / std) ** 2 + np.log(2.0 * np.pi * std**2)).sum())


def example() -> PolynomialRegression:
    """Forty points of a cubic."""
    rng = np.random.default_rng(1)
    x = np.linspace(-1.0, 1.0, 40)
    y = 0.5 - x + 2.0 * x**3 + rng.normal(0.0, 0.3, 40)
    return PolynomialRegression(x, y, noise=0.3, spread=2.0)


def main() -> tuple[OrderPosterior, np.ndarray]:
    model = example()
    posterior = order_posterior(model, DEGREES)
    exact = np.array([model.exact_log_evidence(degree) for degree in DEGREES])
    print("degree   p(degree | data)   log evidence      exact")
    for degree, probability, log_evidence, true in zip(
        posterior.orders, posterior.probabilities, posterior.log_evidence, exact, strict=True
    ):
        print(f"{degree:6}{probability:19.4f}{log_evidence:15.6f}{true:11.6f}")
    print(f"The most probable degree is {posterior.optimal}.")
    return posterior, exact


if __name__ == "__main__":
    main()
