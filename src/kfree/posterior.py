"""The record that `KFreeClassifier.posterior` gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Posterior:
    """What is known of each row: its class, the number of neighbors K and the strength beta.

    Attributes
    ----------
    k : ndarray of shape (n_k,)
        The numbers of neighbors considered, rising: the candidates of K.
    k_probabilities : ndarray of shape (n_samples, n_k)
        p(K | Y) of each row.
    class_probabilities : ndarray of shape (n_samples, n_classes)
        p(z' = c | Y).
    beta_mean, beta_std : ndarray of shape (n_samples,)
        Mean and standard deviation of beta.
    class_variance_within : ndarray of shape (n_samples, n_classes)
        The part of the variance of the indicator of z' = c that stays when K and beta are known.
    class_variance_between : ndarray of shape (n_samples, n_classes)
        The part that comes from not knowing K and beta. Both parts add up to p (1 - p).
    """

    k: np.ndarray
    k_probabilities: np.ndarray
    class_probabilities: np.ndarray
    beta_mean: np.ndarray
    beta_std: np.ndarray
    class_variance_within: np.ndarray
    class_variance_between: np.ndarray
    _density: Callable[[np.ndarray], np.ndarray] = field(repr=False, compare=False)

    @property
    def label_mean(self) -> np.ndarray:
        """E(z' | Y), the paper's last equation, with classes numbered 1..C: (n_samples,)."""
        number = np.arange(1, self.class_probabilities.shape[1] + 1)
        return self.class_probabilities @ number

    @property
    def label_variance(self) -> np.ndarray:
        """V(z' | Y), within and between models together: (n_samples,)."""
        number = np.arange(1, self.class_probabilities.shape[1] + 1)
        away = (number - self.label_mean[:, None]) ** 2
        return (self.class_probabilities * away).sum(axis=1)

    def density(self, beta: np.ndarray) -> np.ndarray:
        """The joint density p(K, beta | Y) of each row on a grid of beta.

        Parameters
        ----------
        beta : array-like of shape (n_beta,)
            Positive values.

        Returns
        -------
        ndarray of shape (n_samples, n_k, n_beta)
            Summed over K and integrated over beta, each row gives one.
        """
        return self._density(beta)
