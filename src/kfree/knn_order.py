"""The kNN model as one model of the generic KOREA algorithm: its order is K, its parameter beta."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kfree.classifier import KFreeClassifier


class KNNOrderModel:
    """log p(z, beta, K) of a fitted classifier, for `kfree.inference.order`.

    `order_posterior(KNNOrderModel(classifier), classifier.k_values_)` is the posterior of K of
    `KFreeClassifier(inference="laplace")`, which computes the same formula for all K at once.

    Parameters
    ----------
    estimator : KFreeClassifier
        Fitted. Of a pipeline, its last step.
    """

    def __init__(self, estimator: Any) -> None:
        if not isinstance(estimator, KFreeClassifier):
            name = type(estimator).__name__
            raise TypeError(f"KNNOrderModel needs a KFreeClassifier; got {name}.")
        check_is_fitted(estimator)
        self._model = estimator._model
        self._curve = cache(lambda i: self._model.likelihood.curves(np.array([i])))

    def start(self, order: int) -> np.ndarray:
        """The mode of log(beta), which is near that of beta: (1,)."""
        i = self._place(order)
        return self._model.posterior.curves.mode[i : i + 1]

    def log_joint(self, parameters: np.ndarray, order: int) -> float:
        """log p(z | beta, K) + log p(beta) + log p(K)."""
        if parameters[0] <= 0.0:
            return -np.inf
        value = self._log_density(parameters, order)[0]
        return float(value[0] + self._model.candidates.log_prior[self._place(order)])

    def gradient(self, parameters: np.ndarray, order: int) -> np.ndarray:
        """The slope in beta: (1,)."""
        return self._log_density(parameters, order)[1]

    def hessian(self, parameters: np.ndarray, order: int) -> np.ndarray:
        """The curvature in beta: (1, 1)."""
        return self._log_density(parameters, order)[2][None]

    def _place(self, order: int) -> int:
        """Where K stands among the candidates."""
        k = self._model.candidates.k
        if order not in k:
            raise ValueError(
                f"The order, the number of neighbors, must be one of the {len(k)} values in "
                f"{k[0]}..{k[-1]} that were fitted (k_values_); got {order}."
            )
        return int(np.searchsorted(k, order))

    def _log_density(self, beta: np.ndarray, order: int) -> tuple:
        """log p(z | beta, K) + log p(beta) with slope and curvature: (1,) each."""
        curve = self._curve(self._place(order))
        of_data = curve(np.atleast_2d(beta), True, np.zeros(1, dtype=np.int64))
        of_prior = self._model.prior.derivatives(beta)
        return tuple(a[0] + b for a, b in zip(of_data, of_prior, strict=True))
