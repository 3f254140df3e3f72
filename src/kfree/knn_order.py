"""The kNN model as one model of the generic KOREA algorithm: its order is K, its parameter beta."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kfree.classifier import KFreeClassifier


class KNNOrderModel:
    """log p(z, beta, K) of a fitted classifier, for `kfree.inference.order`.

    `order_posterior(KNNOrderModel(classifier), range(1, classifier.k_max_ + 1))` is the posterior
    of K of `KFreeClassifier(inference="laplace")`, which computes the same formula for all K at
    once.

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

    def start(self, order: int) -> np.ndarray:
        """The mode of log(beta), which is near that of beta: (1,)."""
        if not 1 <= order <= self._model.n_k:
            raise ValueError(
                f"The order, the number of neighbors, must be in 1..{self._model.n_k}, "
                f"as fitted; got {order}."
            )
        return self._model.modes.beta[order - 1 : order]

    def log_joint(self, parameters: np.ndarray, order: int) -> float:
        """log p(z | beta, K) + log p(beta) + log p(K)."""
        if parameters[0] <= 0.0:
            return -np.inf
        (value,) = self._model.log_density(order, parameters)
        return float(value[0] - np.log(self._model.n_k))

    def gradient(self, parameters: np.ndarray, order: int) -> np.ndarray:
        """The slope in beta: (1,)."""
        return self._model.log_density(order, parameters, derivatives=True)[1]

    def hessian(self, parameters: np.ndarray, order: int) -> np.ndarray:
        """The curvature in beta: (1, 1)."""
        return self._model.log_density(order, parameters, derivatives=True)[2][None]
