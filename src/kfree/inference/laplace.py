"""Algorithm 1 of the paper (KOREA), to the letter.

For each new point and each K: the mode mu_K and the curvature of log p(beta, z | K) give the
Gaussian p_G(beta | Y, K); its height at the mode gives alpha_K, the approximate p(K | Y); the
mixture's mean and deviation give the grid S_beta on which the conditionals are averaged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# S_beta is {mu + i sigma}: i = 0 belongs to it, and beta_max, which the paper does not give, is
# read as mu + 10 sigma.
GRID = np.arange(-10.0, 11.0)
# Nodes this small, in deviations, are zero but for rounding: with a flat likelihood and a prior of
# shape 5, mu is exactly two sigma.
ZERO = 1e-6


@dataclass(frozen=True)
class Gaussians:
    """p_G(beta | Y, K) and the weight of each K, for each row."""

    mean: np.ndarray  # (n_rows, n_k) mu_beta^(K)
    std: np.ndarray  # (n_rows, n_k) sigma_beta^(K)
    k_probabilities: np.ndarray  # (n_rows, n_k) normalized alpha_K

    @property
    def beta_mean(self) -> np.ndarray:
        return (self.k_probabilities * self.mean).sum(axis=1)

    @property
    def beta_std(self) -> np.ndarray:
        spread = self.std**2 + (self.mean - self.beta_mean[:, None]) ** 2
        return np.sqrt((self.k_probabilities * spread).sum(axis=1))

    def grid(self) -> np.ndarray:
        """S_beta of each row: (n_rows, n_nodes); nodes that are not positive become NaN."""
        nodes = self.beta_mean[:, None] + GRID * self.beta_std[:, None]
        return np.where(nodes > ZERO * self.beta_std[:, None], nodes, np.nan)

    def log_density(self, beta: np.ndarray) -> np.ndarray:
        """log p_G(beta | Y, K) + log p(K | Y).

        Parameters
        ----------
        beta : (n_rows, n_nodes)

        Returns
        -------
        (n_rows, n_k, n_nodes)
        """
        z = (beta[:, None, :] - self.mean[:, :, None]) / self.std[:, :, None]
        with np.errstate(divide="ignore"):
            log_k = np.log(self.k_probabilities)
        height = log_k - np.log(self.std) - 0.5 * np.log(2.0 * np.pi)
        return height[:, :, None] - 0.5 * z * z


def gaussians(log_maximum: np.ndarray, mode: np.ndarray, curvature: np.ndarray) -> Gaussians:
    """The Gaussian approximations from the maximum of each log density.

    Parameters
    ----------
    log_maximum, mode, curvature : (n_rows, n_k), the log density at its mode, where that is, and
        the second derivative there
    """
    std = 1.0 / np.sqrt(-curvature)
    log_alpha = log_maximum + np.log(std) + 0.5 * np.log(2.0 * np.pi)
    alpha = np.exp(log_alpha - log_alpha.max(axis=1, keepdims=True))
    return Gaussians(mode, std, alpha / alpha.sum(axis=1, keepdims=True))
