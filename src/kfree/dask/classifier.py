"""The classifier whose training rows are spread over the workers of a Dask cluster."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.base import clone as clone_estimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from kfree import classifier as one_machine
from kfree import validation
from kfree.averaging import Average
from kfree.blocks import PreparedPoints
from kfree.candidates import most_probable
from kfree.dask.engine import (
    Engine,
    Rows,
    check_open,
    collection_of,
    find_client,
    labels_of,
    n_threads,
    rows_of,
    task,
)
from kfree.shards import flow
from kfree.shards.rows import SPARSE

PARTITIONS = ("space", "rows")
LEARNED = ("k_values_", "k_max_", "k_posterior_", "k_optimal_", "beta_mean_", "beta_std_")


@dataclass(frozen=True)
class LazyPosterior:
    """What is known of each row, as lazy dask arrays; the parts of `kfree.Posterior`.

    Attributes
    ----------
    k : ndarray of shape (n_k,)
        The numbers of neighbors considered.
    k_probabilities : dask array of shape (n_samples, n_k)
        p(K | Y) of each row.
    class_probabilities : dask array of shape (n_samples, n_classes)
        p(z' = c | Y).
    beta_mean, beta_std : dask array of shape (n_samples,)
        Mean and standard deviation of beta.
    class_variance_within, class_variance_between : dask array of shape (n_samples, n_classes)
        The variance of the indicator of z' = c: what stays when K and beta are known, and the rest.
    """

    k: np.ndarray
    k_probabilities: Any
    class_probabilities: Any
    beta_mean: Any
    beta_std: Any
    class_variance_within: Any
    class_variance_between: Any


class KFreeClassifier(ClassifierMixin, BaseEstimator):
    """`kfree.KFreeClassifier` with its training rows in shards on the workers of a Dask cluster.

    The neighbor lists, the posterior of K and the probabilities are those of one machine. `fit`
    works at once and keeps its results on the workers; predictions are lazy.

    Parameters
    ----------
    client : distributed.Client, default=None
        None: the client in use. It is never closed by the classifier.
    n_shards : int, default=None
        Into how many shards training rows are cut; None: one for each thread of the workers. The
        result does not depend on it.
    partition : {"space", "rows"}, default="space"
        "space": rows that lie together come together, so that few rows have to look into other
        shards; needs a metric of Minkowski's kind (or cosine, correlation). "rows": as they come.
    **parameters
        All those of `kfree.KFreeClassifier`, by name and with its defaults. Refused are: kinds of
        `inference` other than "quadrature"; the metrics "precomputed", and "seuclidean" and
        "mahalanobis" without what they need in `metric_params`, for which all rows are needed at
        once; `n_jobs` other than None and 1, for workers have threads. `verbose` says what `fit` is
        doing.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_, k_max_, k_values_, k_posterior_, k_optimal_, \
beta_mean_, beta_std_
        As in `kfree.KFreeClassifier`.
    client_ : distributed.Client
        Whose workers hold the shards.
    n_rows_ : ndarray of shape (n_shards,)
        How many training rows each shard has.
    """

    def __init__(
        self,
        *,
        client: Any = None,
        n_shards: int | None = None,
        partition: str = "space",
        **parameters: Any,
    ) -> None:
        self.__dict__.update(one_machine.KFreeClassifier(**parameters).get_params(deep=False))
        self.client = client
        self.n_shards = n_shards
        self.partition = partition

    def fit(self, X: Any, y: Any) -> KFreeClassifier:
        """Spread the rows over the workers, find the neighbors and the posterior of K and beta.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
            Dense.
        y : dask array, or series or dataframe of one column, of shape (n_samples,)
            Labels of at least two classes, in the partitions of X.

        Returns
        -------
        self
        """
        settings = self._settings()
        self._check()
        given = self._rows(X)
        labels = labels_of(y, given)
        client = find_client(self.client)
        engine = Engine(client, self.verbose)
        n_shards = int(self.n_shards or n_threads(client))
        by_space = self.partition == "space"
        try:
            fitted = flow.fit(engine, settings, given.parts, labels, n_shards, by_space)
        except BaseException as error:
            engine.drop()
            if isinstance(error, Exception):
                check_open(client)  # says so, if that is why
            raise
        self.close()
        validation.remember_features(self, given.meta)
        posterior = fitted.posterior
        self.classes_ = fitted.shards.plan.classes
        self.k_values_ = fitted.candidates.k.copy()
        self.k_max_ = int(self.k_values_[-1])
        self.k_posterior_ = posterior.k_probabilities
        self.beta_mean_, self.beta_std_ = posterior.beta_mean, posterior.beta_std
        self.k_optimal_ = int(self.k_values_[most_probable(self.k_posterior_)])
        self.n_rows_ = np.array(fitted.shards.n_points)
        self.client_ = client
        self._fitted = fitted
        return self

    def predict_proba(self, X: Any) -> Any:
        """p(z' = c | Y) of each row; of each training row, left out, if X is None.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features) or None

        Returns
        -------
        dask array or dataframe of shape (n_samples, n_classes)
            Lazy, in the partitions of X, or of the training rows.
        """
        averages, given = self._averages(X)
        parts = [task("result", _known, average, "class_probabilities") for average in averages]
        return collection_of(parts, given, list(self.classes_), np.float64)

    def predict_log_proba(self, X: Any) -> Any:
        """The logarithm of `predict_proba`.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features) or None

        Returns
        -------
        dask array or dataframe of shape (n_samples, n_classes)
        """
        return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> Any:
        """The most probable class of each row; of each training row, left out, if X is None.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features) or None

        Returns
        -------
        dask array or series of shape (n_samples,)
            Lazy.
        """
        averages, given = self._averages(X)
        parts = [task("result", _most_probable, average, self.classes_) for average in averages]
        return collection_of(parts, given, None, self.classes_.dtype)

    def posterior(self, X: Any) -> LazyPosterior:
        """All that is known of each row; of each training row, left out, if X is None.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features) or None

        Returns
        -------
        LazyPosterior
        """
        averages, given = self._averages(X)
        given = Rows(given.parts, given.lengths)  # arrays, whatever was given

        def lazy(name: str, columns: Any = None) -> Any:
            parts = [task("posterior", _known, average, name) for average in averages]
            return collection_of(parts, given, columns, np.float64)

        return LazyPosterior(
            self.k_values_.copy(),
            lazy("k_probabilities", self.k_values_),
            lazy("class_probabilities", self.classes_),
            lazy("beta_mean"),
            lazy("beta_std"),
            lazy("class_variance_within", self.classes_),
            lazy("class_variance_between", self.classes_),
        )

    def score(self, X: Any, y: Any) -> float:
        """The share of rows whose class is predicted right; works at once.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features) or None
            None: the training rows, each left out.
        y : dask array, or series or dataframe of one column

        Returns
        -------
        float
        """
        averages, given = self._averages(X)
        right = [
            task("score", _n_right, average, part, self.classes_)
            for average, part in zip(averages, labels_of(y, given), strict=True)
        ]
        total = np.sum(self._engine().fetch(right), axis=0)
        return float(total[0] / total[1])

    def to_local(self) -> one_machine.KFreeClassifier:
        """The same model on this machine: all rows come here.

        Returns
        -------
        kfree.KFreeClassifier
        """
        engine, fitted, local = self._engine(), self._fitted, self._settings()
        local._model = flow.bring_home(engine, fitted, self.algorithm)
        local._prepared = PreparedPoints(local._model)
        local._space, local._draws = fitted.shards.plan.space, None
        for name in ("classes_", "n_features_in_", "feature_names_in_", *LEARNED):
            if hasattr(self, name):
                setattr(local, name, getattr(self, name))
        return local

    def close(self) -> None:
        """Let go of what the workers hold; lazy predictions made before keep what they need."""
        self.__dict__.pop("_fitted", None)
        self.__dict__.pop("client_", None)

    def __enter__(self) -> KFreeClassifier:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _settings(self) -> one_machine.KFreeClassifier:
        """The parameters that one machine knows too, judged there."""
        names = one_machine.KFreeClassifier().get_params(deep=False)
        settings = one_machine.KFreeClassifier(**{name: getattr(self, name) for name in names})
        validation.check_classifier(settings)
        return settings

    def _check(self) -> None:
        """Judge what only matters here."""
        if self.inference != "quadrature":
            raise ValueError(
                f"inference={self.inference!r} is not offered on Dask; use 'quadrature', or "
                "kfree.KFreeClassifier on one machine."
            )
        params = self.metric_params or {}
        if self.metric == "precomputed":
            raise ValueError(
                "metric='precomputed' is not offered on Dask, because distances between all rows "
                "belong to no shard; use kfree.KFreeClassifier."
            )
        if (self.metric == "seuclidean" and "V" not in params) or (
            self.metric == "mahalanobis" and not {"V", "VI"} & set(params)
        ):
            raise ValueError(
                f"metric={self.metric!r} needs the variances of all rows, which no shard knows; "
                "compute them beforehand and give them as metric_params={'V': ...}."
            )
        if self.n_jobs not in (None, 1):
            raise ValueError(
                f"n_jobs={self.n_jobs} is not offered on Dask, whose workers have threads of their "
                "own; leave it at None and set threads_per_worker of the cluster."
            )
        validation.one_of("partition", self.partition, PARTITIONS)
        whole = isinstance(self.n_shards, (int, np.integer)) and not isinstance(self.n_shards, bool)
        if self.n_shards is not None and (not whole or self.n_shards < 1):
            raise ValueError(
                f"n_shards must be None or a whole number of at least 1; got {self.n_shards!r}."
            )

    def _rows(self, X: Any) -> Rows:
        given = rows_of(X)
        if given.sparse:
            raise ValueError(SPARSE)
        return given

    def _engine(self) -> Engine:
        """Who works with what `fit` left on the workers, if it is still there."""
        check_is_fitted(self, "k_posterior_")
        if "_fitted" not in self.__dict__:
            raise NotFittedError(
                "The shards of this KFreeClassifier are not on any worker: it was closed, or "
                "pickled, which leaves them behind. Fit again, or keep a model with to_local()."
            )
        check_open(self.client_)
        engine = Engine(self.client_, kept=self._fitted.shards.shards)
        engine.check_kept()
        return engine

    def _averages(self, X: Any) -> tuple[list, Rows]:
        """Tasks for what is known of the rows of each partition, and the partitions."""
        engine, fitted = self._engine(), self._fitted
        if X is None:
            averages = flow.average_of_held_out(engine, fitted)
            return averages, Rows(averages, fitted.lengths)
        given = self._rows(X)
        validation.check_names(self, given.meta)
        if given.meta.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {given.meta.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        return flow.average_of_new(engine, fitted, self._settings(), given.parts), given

    def __getstate__(self) -> dict:
        # Neither a client nor what workers hold can be carried elsewhere.
        state = dict(super().__getstate__())
        state.pop("_fitted", None)
        state.pop("client_", None)
        state["client"] = None
        return state

    def __sklearn_clone__(self) -> KFreeClassifier:
        params = {
            name: value if name == "client" else clone_estimator(value, safe=False)
            for name, value in self.get_params(deep=False).items()
        }
        return type(self)(**params)


def _signature() -> inspect.Signature:
    """The parameters of one machine and then those of shards, for all who look at a signature."""
    own = inspect.signature(KFreeClassifier.__init__)
    itself, *more = list(own.parameters.values())[:-1]
    of_one_machine = inspect.signature(one_machine.KFreeClassifier).parameters.values()
    return own.replace(parameters=[itself, *of_one_machine, *more])


KFreeClassifier.__init__.__signature__ = _signature()  # type: ignore[attr-defined]


def _known(average: Average, name: str) -> np.ndarray:
    """A part of `kfree.Posterior` from what averages hold."""
    mean, square = average.class_probabilities, average.class_squares
    if name == "class_variance_within":
        return np.maximum(mean - square, 0.0)
    if name == "class_variance_between":
        return np.maximum(square - mean**2, 0.0)
    return getattr(average, name)


def _most_probable(average: Average, classes: np.ndarray) -> np.ndarray:
    return classes[most_probable(average.class_probabilities)]


def _n_right(average: Average, y: Any, classes: np.ndarray) -> tuple[int, int]:
    y = np.asarray(y).reshape(-1)
    if len(y) != len(average.class_probabilities):
        raise ValueError(
            f"X has {len(average.class_probabilities)} rows but y has {len(y)} labels in the same "
            "partition; every row needs one label."
        )
    return int((_most_probable(average, classes) == y).sum()), len(y)
