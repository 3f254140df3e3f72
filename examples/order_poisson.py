"""How many harmonics has the daily course of these counts? KOREA with a Poisson likelihood.

Run with `python examples/order_poisson.py`; docs/order.md explains it.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.special import gammaln, logsumexp
from scipy.stats import multivariate_t

from kfree.inference.order import OrderFit, OrderPosterior, order_posterior

ORDERS = range(6)
# Up to this order the integral is also computed by quadrature, in five dimensions at most.
LAST_BY_QUADRATURE = 2


class PoissonFourier:
    """Counts with the log rate f_0 + sum over j = 1..K of f_2j-1 cos(j t) + f_2j sin(j t).

    The order K is the number of harmonics. f has 2K + 1 entries, each with the prior
    N(0, spread^2). Every order has the same prior probability, which is left out.
    """

    def __init__(self, time: np.ndarray, counts: np.ndarray, spread: float) -> None:
        self.time = time  # (n,) in radians
        self.counts = counts  # (n,)
        self.spread = spread

    def waves(self, order: int) -> np.ndarray:
        angle = np.outer(self.time, np.arange(1, order + 1))
        pairs = np.stack([np.cos(angle), np.sin(angle)], axis=2).reshape(len(self.time), -1)
        return np.column_stack([np.ones(len(self.time)), pairs])  # (n, 2 order + 1)

    # The model as kfree.inference.order wants it. Only the gradient is given: the Hessian is found
    # from its differences.

    def start(self, order: int) -> np.ndarray:
        start = np.zeros(2 * order + 1)
        start[0] = np.log(self.counts.mean())
        return start

    def log_joint(self, parameters: np.ndarray, order: int) -> float:
        return float(self.log_joints(parameters[None], order)[0])

    def gradient(self, parameters: np.ndarray, order: int) -> np.ndarray:
        waves = self.waves(order)
        rate = np.exp(waves @ parameters)
        return waves.T @ (self.counts - rate) - parameters / self.spread**2

    def log_joints(self, parameters: np.ndarray, order: int) -> np.ndarray:
        """The log joint of many parameters (m, 2 order + 1) at once: (m,)."""
        log_rate = parameters @ self.waves(order).T  # (m, n)
        log_likelihood = (self.counts * log_rate - np.exp(log_rate)).sum(axis=1)
        log_likelihood -= gammaln(self.counts + 1.0).sum()
        constant = 0.5 * np.log(2.0 * np.pi * self.spread**2)
        return log_likelihood - (0.5 * (parameters / self.spread) ** 2 + constant).sum(axis=1)


def log_evidence_by_quadrature(model: PoissonFourier, fit: OrderFit, n_nodes: int) -> float:
    """Gauss-Hermite quadrature in every direction of the Gaussian at the mode."""
    node, weight = np.polynomial.hermite_e.hermegauss(n_nodes)
    n_parameters = len(fit.mode)
    z = np.array(list(product(node, repeat=n_parameters)))  # (n_nodes ^ n_parameters, ...)
    log_weight = np.array(list(product(np.log(weight), repeat=n_parameters))).sum(axis=1)
    root = np.linalg.cholesky(fit.covariance)
    log_joint = model.log_joints(fit.mode + z @ root.T, fit.order)
    log_volume = np.log(np.diag(root)).sum()
    return float(logsumexp(log_joint + 0.5 * (z**2).sum(axis=1) + log_weight) + log_volume)


def log_evidence_by_sampling(
    model: PoissonFourier, fit: OrderFit, n_draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Importance sampling from a t distribution at the mode: estimate and standard error."""
    proposal = multivariate_t(fit.mode, fit.covariance, df=8)
    draws = proposal.rvs(n_draws, random_state=rng).reshape(n_draws, -1)
    log_ratio = model.log_joints(draws, fit.order) - proposal.logpdf(draws)
    top = log_ratio.max()
    ratio = np.exp(log_ratio - top)
    error = ratio.std() / (np.sqrt(n_draws) * ratio.mean())
    return float(top + np.log(ratio.mean())), float(error)


def example() -> PoissonFourier:
    """Counts for each hour of two days, with two peaks a day."""
    rng = np.random.default_rng(3)
    time = 2.0 * np.pi * np.arange(48) / 24.0
    log_rate = 1.5 + 0.6 * np.cos(time) - 0.5 * np.sin(2.0 * time)
    return PoissonFourier(time, rng.poisson(np.exp(log_rate)), spread=1.0)


def main(n_draws: int = 20_000) -> tuple[OrderPosterior, np.ndarray, np.ndarray]:
    model = example()
    rng = np.random.default_rng(0)
    posterior = order_posterior(model, ORDERS)
    sampled, error = np.array(
        [log_evidence_by_sampling(model, fit, n_draws, rng) for fit in posterior.fits]
    ).T
    print("harmonics   p(K | data)   log evidence   importance sampling      quadrature")
    for i, fit in enumerate(posterior.fits):
        line = f"{fit.order:9}{posterior.probabilities[i]:14.4f}{fit.log_evidence:15.4f}"
        line += f"{sampled[i]:13.4f} +- {error[i]:.4f}"
        if fit.order <= LAST_BY_QUADRATURE:
            line += f"{log_evidence_by_quadrature(model, fit, n_nodes=8):16.4f}"
        print(line)
    print(f"The most probable number of harmonics is {posterior.optimal}.")
    return posterior, sampled, error


if __name__ == "__main__":
    main()
