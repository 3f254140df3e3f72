"""The classifier whose training rows are spread over the workers of a Dask cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.base import clone as clone_estimator
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import LabelEncoder
from sklearn.utils.validation import check_is_fitted

from kfree import classifier as one_machine
from kfree import validation
from kfree.averaging import Average
from kfree.dask import engine
from kfree.dask.collections import Rows, array_of, collection_of, labels_of, rows_of, task
from kfree.dask.work import Work, check_open, find_client
from kfree.inference.prior import GammaPrior
from kfree.neighbors.graph import NeighborGraph
from kfree.neighbors.metric import Minkowski, make_space
from kfree.neighbors.search import make_search
from kfree.shards import rows as shard_rows
from kfree.training import assemble

PARTITIONS = ("space", "rows")
OWN_PARAMETERS = ("client", "n_shards", "partition")


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
    structure, k_values, k_max, average, update, prior_shape, prior_scale, p, metric_params, \
algorithm
        As in `kfree.KFreeClassifier`.
    inference : {"quadrature"}, default="quadrature"
        The other kinds of inference are for one machine, and refused.
    metric : str or callable, default="minkowski"
        As there, except "precomputed", and "seuclidean" and "mahalanobis" without their parameters
        in `metric_params`: these need all rows at once.
    n_jobs : int, default=None
        Threads inside a task are not used, so that only None and 1 are taken: workers have threads.
    random_state, n_draws, n_burn_in, n_chains, proposal_variance
        Of the sampler, which is for one machine; here so that all parameters can be handed over.
    verbose : int, default=0
        Whether `fit` says what it is doing.
    client : distributed.Client, default=None
        None: the client in use. It is never closed by the classifier.
    n_shards : int, default=None
        Into how many shards training rows are cut; None: one for each thread of the workers. The
        result does not depend on it.
    partition : {"space", "rows"}, default="space"
        "space": rows that lie together come together, so that few rows have to look into other
        shards; needs a metric of Minkowski's kind (or cosine, correlation). "rows": as they come.

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
        structure: str = "asymmetric",
        k_values: Any = "auto",
        k_max: int | str = "auto",
        inference: str = "quadrature",
        average: bool = True,
        update: str = "joint",
        prior_shape: float = 2.0,
        prior_scale: float = 10.0,
        metric: Any = "minkowski",
        p: float = 2,
        metric_params: dict | None = None,
        algorithm: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        n_draws: int = 10_000,
        n_burn_in: int = 1_000,
        n_chains: int = 2,
        proposal_variance: float = 0.1,
        verbose: int = 0,
        client: Any = None,
        n_shards: int | None = None,
        partition: str = "space",
    ) -> None:
        self.structure = structure
        self.k_values = k_values
        self.k_max = k_max
        self.inference = inference
        self.average = average
        self.update = update
        self.prior_shape = prior_shape
        self.prior_scale = prior_scale
        self.metric = metric
        self.p = p
        self.metric_params = metric_params
        self.algorithm = algorithm
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.n_draws = n_draws
        self.n_burn_in = n_burn_in
        self.n_chains = n_chains
        self.proposal_variance = proposal_variance
        self.verbose = verbose
        self.client = client
        self.n_shards = n_shards
        self.partition = partition

    def fit(self, X: Any, y: Any) -> KFreeClassifier:
        """Spread the rows over the workers, find the neighbors and the posterior of K and beta.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
        y : dask array, or series or dataframe of one column, of shape (n_samples,)
            Labels of at least two classes, in the partitions of X.

        Returns
        -------
        self
        """
        settings = self._settings()
        self._check()
        given = rows_of(X)
        labels = labels_of(y, given)
        client = find_client(self.client)
        work = Work(client, self.verbose)
        try:
            fitted, classes = self._fit(work, settings, given, labels)
        except BaseException:
            work.drop()
            raise
        self.close()
        validation.remember_features(self, given.meta)
        self.classes_ = classes
        self.k_values_ = fitted.candidates.k.copy()
        self.k_max_ = int(self.k_values_[-1])
        posterior = fitted.posterior
        self.k_posterior_ = posterior.k_probabilities
        self.beta_mean_, self.beta_std_ = posterior.beta_mean, posterior.beta_std
        self.k_optimal_ = int(self.k_values_[self.k_posterior_.argmax()])
        self.n_rows_ = np.array(fitted.shards.n_points)
        self.client_ = client
        self._fitted = fitted
        return self

    def _fit(self, work: Work, settings: Any, given: Any, labels: list) -> tuple:
        work.tell("reading")
        parts = work.keep(
            [
                task("read", shard_rows.read_part, settings, X, y)
                for X, y in zip(given.parts, labels, strict=True)
            ]
        )
        found = work.fetch([task("check", shard_rows.summarize, p) for p in parts], "partitions")
        for i, part in enumerate(found):
            if part.problem is not None:
                raise ValueError(f"Partition {i}: {part.problem}")
        n_points = sum(part.n_rows for part in found)
        full = [part for part in found if part.n_rows]
        if n_points < 2:
            raise ValueError(f"X has {n_points} rows; at least 2 rows, of 2 classes, are needed.")
        n_features = full[0].n_features
        for i, part in enumerate(found):
            if part.n_rows and part.n_features != n_features:
                raise ValueError(
                    f"Partition {i}: X has {part.n_features} features, but the partitions before "
                    f"have {n_features}."
                )
        classes = _classes_of([part.labels for part in full])
        validation.check_features_of_metric(settings, n_features)
        several = np.broadcast_to(0.0, (n_points, n_features))
        k_values, k_max = validation.check_candidates(settings, several)
        dtype = np.result_type(*(part.dtype for part in full))
        largest = np.full((1, n_features), max(part.largest for part in full), dtype=dtype)
        space = make_space(self.metric, self.p, self.metric_params, largest)
        by_space = self.partition == "space"
        if by_space and not isinstance(space, Minkowski):
            raise ValueError(
                f"partition='space' cannot cut a space whose metric is {self.metric!r}, which has "
                "no axes; use partition='rows'."
            )
        n_shards = self.n_shards or max(1, sum(work.client.nthreads().values()))
        n_shards = min(int(n_shards), n_points)
        plan = shard_rows.Plan(
            space, self.algorithm, str(dtype), classes, n_points, n_shards, by_space
        )
        first = np.cumsum([0, *(part.n_rows for part in found)])
        work.tell(f"{n_points} rows into {n_shards} shards")
        shards = engine.spread(work, parts, plan, first)
        prior = GammaPrior(float(self.prior_shape), float(self.prior_scale))
        joint, average = self.update == "joint", bool(self.average)
        fitted = engine.train(work, shards, self.structure, k_values, k_max, prior, joint, average)
        return fitted, classes

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
        return self._collected(X, _class_probabilities, list(self._classes()), np.float64)

    def predict_log_proba(self, X: Any) -> Any:
        """The logarithm of `predict_proba`.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features) or None

        Returns
        -------
        dask array or dataframe of shape (n_samples, n_classes)
        """
        return self._collected(X, _log_probabilities, list(self._classes()), np.float64)

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
        classes = self._classes()
        return self._collected(X, partial(_most_probable, classes=classes), None, classes.dtype)

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
        lengths = self._lengths() if given is None else given.lengths
        n_k, n_classes = len(self.k_values_), len(self.classes_)

        def lazy(function: Any, width: int | None) -> Any:
            parts = [task("posterior", function, average) for average in averages]
            return array_of(parts, lengths, width, np.float64)

        return LazyPosterior(
            self.k_values_.copy(),
            lazy(_k_probabilities, n_k),
            lazy(_class_probabilities, n_classes),
            lazy(_beta_mean, None),
            lazy(_beta_std, None),
            lazy(_variance_within, n_classes),
            lazy(_variance_between, n_classes),
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
        if given is None:
            given = Rows(averages, self._lengths(), False, None)
        labels = labels_of(y, given)
        work = Work(self.client_, 0)
        right = [
            task("score", _n_right, average, part, self.classes_)
            for average, part in zip(averages, labels, strict=True)
        ]
        total = np.sum(work.fetch(right, "partitions"), axis=0)
        return float(total[0] / total[1])

    def to_local(self) -> one_machine.KFreeClassifier:
        """The same model on this machine: all rows come here.

        Returns
        -------
        kfree.KFreeClassifier
        """
        fitted = self._check_fitted()
        found = Work(self.client_, 0).fetch(engine.local_parts(fitted), "shards")
        found = [part for part in found if len(part[0])]
        order = np.argsort(np.concatenate([part[0] for part in found]))
        points, labels, indices, radii = (
            np.concatenate([part[i] for part in found])[order] for i in range(1, 5)
        )
        plan, candidates = fitted.shards.plan, fitted.candidates
        search = make_search(plan.space, points, self.algorithm)
        graph = NeighborGraph(candidates.k, indices, radii)
        prior = GammaPrior(float(self.prior_shape), float(self.prior_scale))
        local = self._settings()
        for name in ("classes_", "n_features_in_", "feature_names_in_", "k_values_", "k_max_"):
            if hasattr(self, name):
                setattr(local, name, getattr(self, name))
        for name in ("k_posterior_", "k_optimal_", "beta_mean_", "beta_std_"):
            setattr(local, name, getattr(self, name))
        local._space, local._draws = plan.space, None
        local._model = assemble(
            search,
            graph,
            labels,
            len(plan.classes),
            self.structure,
            candidates,
            prior,
            fitted.posterior.curves,
        )
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
        own = dict(self.get_params(deep=False).items())
        for name in OWN_PARAMETERS:
            own.pop(name)
        settings = one_machine.KFreeClassifier(**own)
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

    def _check_fitted(self) -> engine.Fitted:
        check_is_fitted(self, "k_posterior_")
        if "_fitted" not in self.__dict__:
            raise NotFittedError(
                "The shards of this KFreeClassifier are not on any worker: it was closed, or "
                "pickled, which leaves them behind. Fit again, or keep a model with to_local()."
            )
        check_open(self.client_)
        return self._fitted

    def _classes(self) -> np.ndarray:
        self._check_fitted()
        return self.classes_

    def _lengths(self) -> list:
        return np.diff(self._fitted.shards.first).tolist()

    def _averages(self, X: Any) -> tuple[list, Any]:
        """Tasks for what is known of the rows of each partition, and the partitions."""
        fitted = self._check_fitted()
        if X is None:
            return engine.average_of_held_out(fitted), None
        given = rows_of(X)
        validation.check_names(self, given.meta)
        if given.meta.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {given.meta.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        read = partial(_read_new, self._settings(), self.n_features_in_)
        return engine.average_of_new(fitted, read, given), given

    def _collected(self, X: Any, function: Any, columns: Any, dtype: Any) -> Any:
        averages, given = self._averages(X)
        parts = [task("result", function, average) for average in averages]
        if given is None:
            return array_of(parts, self._lengths(), columns and len(columns), dtype)
        return collection_of(parts, given, columns, dtype)

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


def _classes_of(labels: list) -> np.ndarray:
    """The classes of all partitions."""
    kinds = {part.dtype.kind in "OUS" for part in labels}
    if len(kinds) > 1:
        raise ValueError(
            "y has text in some partitions and numbers in others; use one kind of label."
        )
    classes = LabelEncoder().fit(np.concatenate(labels)).classes_
    if len(classes) < 2:
        raise ValueError(
            f"y has only one class, {classes[0]!r}; a classifier needs at least 2 classes."
        )
    return classes


def _read_new(settings: Any, n_features: int, X: Any, i: int, plan: shard_rows.Plan) -> np.ndarray:
    return plan.space.points(shard_rows.read_new(settings, X, n_features, f"Partition {i}: "))


def _class_probabilities(average: Average) -> np.ndarray:
    return average.class_probabilities


def _log_probabilities(average: Average) -> np.ndarray:
    return np.log(average.class_probabilities)


def _most_probable(average: Average, classes: np.ndarray) -> np.ndarray:
    return classes[average.class_probabilities.argmax(axis=1)]


def _k_probabilities(average: Average) -> np.ndarray:
    return average.k_probabilities


def _beta_mean(average: Average) -> np.ndarray:
    return average.beta_mean


def _beta_std(average: Average) -> np.ndarray:
    return average.beta_std


def _variance_within(average: Average) -> np.ndarray:
    return np.maximum(average.class_probabilities - average.class_squares, 0.0)


def _variance_between(average: Average) -> np.ndarray:
    return np.maximum(average.class_squares - average.class_probabilities**2, 0.0)


def _n_right(average: Average, y: Any, classes: np.ndarray) -> tuple[int, int]:
    y = np.asarray(y).reshape(-1)
    if len(y) != len(average.class_probabilities):
        raise ValueError(
            f"X has {len(average.class_probabilities)} rows but y has {len(y)} labels in the same "
            "partition; every row needs one label."
        )
    return int((_most_probable(average, classes) == y).sum()), len(y)
