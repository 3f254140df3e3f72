"""Classifiers with a given number of neighbors, to compare with: majority vote and PKNN."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from kfree import validation
from kfree.candidates import most_probable
from kfree.fitted_state import neighbors_state, restored_neighbors
from kfree.inference.mode import maximize
from kfree.inference.prior import GammaPrior
from kfree.likelihood.open_labels import OpenLabels
from kfree.likelihood.training_sum import TrainingSum
from kfree.neighbors.metric import make_space
from kfree.neighbors.search import make_search
from kfree.neighbors.structures import STRUCTURES, HeldOut, NewPoints, OpenRows, neighborhoods

BLOCK_ROWS = 2048
# By how much a winner among equal votes is lifted, so that argmax of the shares agrees with it.
TIE_LIFT = 1e-12


class _FixedNeighbors(ClassifierMixin, BaseEstimator):
    """What the classifiers with a given K share: the neighbors."""

    def _find(self, X: Any, y: Any) -> tuple:
        validation.check_fixed(self)
        rows, labels, classes = validation.check_training(self, X, y)
        validation.check_n_neighbors("n_neighbors", self.n_neighbors, rows)
        space = make_space(self.metric, self.p, self.metric_params, rows)
        search = make_search(space, space.points(rows), self.algorithm)
        graph = search.graph(np.array([self.n_neighbors]), self.n_jobs)
        return space, search, graph, labels, classes

    def _keep(self, X: Any, found: tuple) -> None:
        validation.remember_features(self, X)
        self._space, self._search, self._graph, self._labels, self.classes_ = found
        self.n_neighbors_ = self._graph.k_max

    def _arrivals(self, X: Any, reverse: bool):
        given = validation.check_new(self, X, self._search.points, self.n_neighbors_)
        queries = self._space.points(given)
        radii = self._graph.radii if reverse else None
        return queries, self._search.arrivals(queries, self._graph.k, radii, self.n_jobs)

    def __getstate__(self) -> dict:
        state = dict(super().__getstate__())
        if "_graph" in state:
            found = (state.pop(name) for name in ("_space", "_search", "_graph", "_labels"))
            space, search, graph, labels = found
            state["_fitted"] = neighbors_state(space, search.points, graph, labels)
        return state

    def __setstate__(self, state: dict) -> None:
        state = dict(state)
        fitted = state.pop("_fitted", None)
        super().__setstate__(state)
        if fitted is not None:
            restored = restored_neighbors(fitted, self.algorithm, len(self.classes_))
            self._space, self._search, self._graph, self._labels = restored

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.input_tags.sparse = validation.takes_sparse(self)
        tags.input_tags.positive_only = self.metric == "precomputed"
        tags.input_tags.allow_nan = self.metric == "nan_euclidean"
        return tags


class PKNNClassifier(_FixedNeighbors):
    """Probabilistic nearest neighbors with a given K; beta at its posterior mode, or given.

    Parameters
    ----------
    n_neighbors : int, default=5
        K.
    structure : {"asymmetric", "boltzmann", "boltzmann2"}, default="asymmetric"
        Whose labels speak for a point, see `KFreeClassifier`.
    beta : float or None, default=None
        The strength; None takes the mode of its posterior given the training labels.
    prior_shape, prior_scale : float, default=2.0 and 10.0
        The Gamma prior of beta.
    metric, p, metric_params, algorithm, n_jobs
        As in `KFreeClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    n_neighbors_ : int
    beta_ : float
        The strength used.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kfree import PKNNClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> PKNNClassifier(n_neighbors=10).fit(X, y).predict(X[[0, 75]])
    array([0, 1])
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        structure: str = "asymmetric",
        beta: float | None = None,
        prior_shape: float = 2.0,
        prior_scale: float = 10.0,
        metric: Any = "minkowski",
        p: float = 2,
        metric_params: dict | None = None,
        algorithm: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.structure = structure
        self.beta = beta
        self.prior_shape = prior_shape
        self.prior_scale = prior_scale
        self.metric = metric
        self.p = p
        self.metric_params = metric_params
        self.algorithm = algorithm
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> PKNNClassifier:
        """Find the neighbors and, unless it is given, the mode of beta.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        validation.check_strength(self)
        found = self._find(X, y)
        graph, labels, classes = found[2:]
        table = neighborhoods(self.structure, graph)
        beta = self.beta
        if beta is None:
            prior = GammaPrior(float(self.prior_shape), float(self.prior_scale))
            only = np.zeros(1, dtype=np.int64)
            curve = TrainingSum(table, labels, len(classes)).curves(only)

            def function(beta: np.ndarray) -> tuple:
                of_data, of_prior = curve(beta[:, None], True, only), prior.derivatives(beta)
                return tuple(a[:, 0] + b for a, b in zip(of_data, of_prior, strict=True))

            beta = maximize(function, np.array([5.0]))[0]
        self._keep(X, found)
        self._table = table
        self.beta_ = float(beta)
        return self

    def __getstate__(self) -> dict:
        state = super().__getstate__()
        state.pop("_table", None)
        return state

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        if hasattr(self, "_graph"):
            self._table = neighborhoods(self.structure, self._graph)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row; of each training row, left out, if X is None.

        Of classes that are equally probable but for rounding, the first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or None

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.classes_[most_probable(self.predict_proba(X))]

    def predict_proba(self, X: Any) -> np.ndarray:
        """p(z' = c | beta, K, Y) of each row; of each training row, left out, if X is None.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or None

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        labels, n_classes = self._labels, len(self.classes_)
        if X is None:
            rows = np.arange(len(labels))
            held: OpenRows = HeldOut(self.structure, self._graph, self._table, rows)
            found = OpenLabels(held, self._table, labels, n_classes, True, labels)
        else:
            new = NewPoints(self.structure, self._graph, self._arrivals(X, reverse=True)[1])
            found = OpenLabels(new, self._table, labels, n_classes, True)
        beta = np.array([self.beta_])
        parts = []
        for start in range(0, found.n_rows, BLOCK_ROWS):
            block = found.take(np.arange(start, min(start + BLOCK_ROWS, found.n_rows)))
            parts.append(block.at(0).by_label(beta).conditional().table()[:, :, 0])
        return np.maximum(np.concatenate(parts), np.finfo(float).tiny)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or None

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return np.log(self.predict_proba(X))


class StructuredKNNClassifier(_FixedNeighbors):
    """Majority vote of the neighborhood; equal votes go to the class that is nearer.

    Parameters
    ----------
    n_neighbors : int, default=5
        K.
    structure : {"asymmetric", "boltzmann", "boltzmann2"}, default="asymmetric"
        Who votes: the K nearest neighbors; these and the points that have the new point among
        their K nearest, with two votes if both; or the union of the two with one vote each.
    metric, p, metric_params, algorithm, n_jobs
        As in `KFreeClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    n_neighbors_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kfree import StructuredKNNClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> StructuredKNNClassifier(n_neighbors=10).fit(X, y).predict(X[[0, 75]])
    array([0, 1])
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        structure: str = "asymmetric",
        metric: Any = "minkowski",
        p: float = 2,
        metric_params: dict | None = None,
        algorithm: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.structure = structure
        self.metric = metric
        self.p = p
        self.metric_params = metric_params
        self.algorithm = algorithm
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> StructuredKNNClassifier:
        """Find the neighbors of the training rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        self._keep(X, self._find(X, y))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The class with most votes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """The share of the votes of each class, which may be zero.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        validation.check_given(self, X)
        queries, arrivals = self._arrivals(X, reverse=not STRUCTURES[self.structure].nearest)
        n_classes, n_rows = len(self.classes_), len(arrivals.forward)
        voters = NewPoints(self.structure, self._graph, arrivals).touched(0, joint=False)
        # One electorate for each row, ordered by row and then by distance and index.
        row, point = voters.own_row, voters.own_neighbor
        distance = self._search.between(queries, row, point)
        order = np.lexsort((point, distance, row))
        row, point, distance = row[order], point[order], distance[order]
        label = self._labels[point]
        votes = np.zeros((n_rows, n_classes))
        np.add.at(votes, (row, label), 1.0)
        tied = votes == votes.max(axis=1, keepdims=True)
        total = votes.sum(axis=1, keepdims=True)
        # Where nobody votes, no class is ahead.
        share = np.divide(votes, total, out=np.full_like(votes, 1.0 / n_classes), where=total > 0)
        starts = np.searchsorted(row, np.arange(n_rows + 1))
        for i in np.flatnonzero((tied.sum(axis=1) > 1) & (total[:, 0] > 0)):
            of_row = slice(starts[i], starts[i + 1])
            winner = _nearer(np.flatnonzero(tied[i]), label[of_row], distance[of_row])
            share[i, winner] += TIE_LIFT
        return share / share.sum(axis=1, keepdims=True)


def _nearer(tied: np.ndarray, label: np.ndarray, distance: np.ndarray) -> int:
    """Of classes with equal votes the one whose distances, nearest first, come first in order.

    Where all distances agree too, the one with the neighbor of the lower index.
    """
    return min(
        tied, key=lambda c: (distance[label == c].tolist(), int(np.flatnonzero(label == c)[0]))
    )
