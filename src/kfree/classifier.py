"""The classifier that needs no k."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kfree import averaging, korea, sampling, validation
from kfree.averaging import Average
from kfree.blocks import PreparedPoints, open_rows
from kfree.candidates import most_probable
from kfree.fitted_state import model_state, restored_model
from kfree.inference.metropolis import Draws, Settings, disagreement
from kfree.inference.prior import GammaPrior
from kfree.likelihood.open_labels import OpenLabels
from kfree.neighbors.metric import make_space
from kfree.neighbors.search import make_search
from kfree.neighbors.threads import run, single_products
from kfree.posterior import Posterior
from kfree.progress import progress
from kfree.training import train

AVERAGES = {
    ("quadrature", True): averaging.average_by_quadrature,
    ("quadrature", False): averaging.optimal_by_quadrature,
    ("laplace", True): korea.average_by_laplace,
    ("laplace", False): korea.optimal_by_laplace,
}
DENSITIES = {
    "quadrature": averaging.density_by_quadrature,
    "laplace": korea.density_by_laplace,
}


class KFreeClassifier(ClassifierMixin, BaseEstimator):
    """Nearest neighbors, averaged over their number K and the strength beta of their pull.

    Probabilistic k-nearest neighbors (Holmes & Adams) with the posterior of K and beta of Yoon &
    Friel's KOREA algorithm, computed exactly. Nothing has to be tuned.

    Parameters
    ----------
    structure : {"asymmetric", "boltzmann", "boltzmann2"}, default="asymmetric"
        Whose labels speak for a point: its K nearest neighbors; these and the points that have it
        among their K nearest, counted twice if both; or the union of the two with equal weights.
    k_values : "auto", "all" or array-like of int, default="auto"
        The numbers of neighbors considered. "auto": every K up to 32, then 8 to the octave, each
        of which stands for the numbers nearest to it. "all": every K up to `k_max`, as in the
        paper. Or a list of them, all equally probable beforehand.
    k_max : int or "auto", default="auto"
        The largest number of neighbors considered. "auto" enlarges it until the posterior of K has
        died out, up to 1,024, and ends there; it warns if it had to stop before. A list of
        `k_values` has its own largest number.
    inference : {"quadrature", "laplace", "metropolis"}, default="quadrature"
        "quadrature" integrates over beta exactly; "laplace" is the paper's Algorithm 1;
        "metropolis" is its sampler, which walks for every row anew.
    average : bool, default=True
        Average over K and beta, or take the most probable K and its beta ("KOREA optimal").
    update : {"joint", "conditional"}, default="joint"
        "joint": a new point joins the field, so that it also enters the neighborhoods of training
        points, and each new point has its own posterior of K and beta. "conditional": the
        posterior comes from the training labels alone.
    prior_shape, prior_scale : float, default=2.0 and 10.0
        The Gamma prior of beta; its mean is shape times scale.
    metric : str or callable, default="minkowski"
        Any metric of scikit-learn's neighbors, "precomputed" for matrices of distances or sparse
        graphs of neighbors, or a function of two rows.
    p : float, default=2
        The power of the Minkowski metric.
    metric_params : dict, default=None
        Further arguments of the metric.
    algorithm : {"auto", "kd_tree", "brute", "faiss"}, default="auto"
        How neighbors are searched. It changes the time taken, never the result. "faiss" needs the
        package faiss-cpu and a Euclidean metric, and is never chosen by itself.
    n_jobs : int, default=None
        Threads; None is one unless a joblib context says otherwise. It never changes the result.
    random_state : int, RandomState instance or None, default=None
        Where the sampler's random numbers come from; the other kinds of inference need none.
    n_draws, n_burn_in, n_chains : int, default=10_000, 1_000 and 2
        Draws that each chain of the sampler keeps, draws that it makes before, and chains per row.
    proposal_variance : float, default=0.1
        Variance of the sampler's steps in beta.
    verbose : int, default=0
        Whether the sampler shows its progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only if X had names.
    k_max_ : int
        The largest number of neighbors considered.
    k_values_ : ndarray of shape (n_k,)
        The numbers of neighbors considered, rising.
    k_posterior_ : ndarray of shape (n_k,)
        p(K | training labels) for each of `k_values_`.
    k_optimal_ : int
        The most probable K.
    beta_mean_, beta_std_ : float
        Mean and standard deviation of beta given the training labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kfree import KFreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KFreeClassifier().fit(X, y)
    >>> model.predict_proba(X[:1]).round(3)
    array([[0.997, 0.002, 0.002]])
    >>> print(f"leave-one-out accuracy {model.score(None, y):.3f}")
    leave-one-out accuracy 0.967
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

    def fit(self, X: Any, y: Any) -> KFreeClassifier:
        """Find the neighbors and the posterior of K and beta.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            At least two rows. With metric="precomputed" the distances between the rows, of shape
            (n_samples, n_samples), dense or a sparse graph; new rows are then given by their
            distances from the training rows in the same way.
        y : array-like of shape (n_samples,)
            Labels of at least two classes.

        Returns
        -------
        self
        """
        validation.check_classifier(self)
        rows, labels, classes = validation.check_training(self, X, y)
        k_values, k_max = validation.check_candidates(self, rows)
        space = make_space(self.metric, self.p, self.metric_params, rows)
        search = make_search(space, space.points(rows), self.algorithm)
        prior = GammaPrior(float(self.prior_shape), float(self.prior_scale))
        with single_products():
            model = train(
                search,
                labels,
                len(classes),
                self.structure,
                k_values,
                k_max,
                prior,
                self.n_jobs,
            )

        draws = None
        if self.inference == "metropolis":
            seed, bar = self._seed(), progress(self.verbose, "fit")
            draws = sampling.draw_training(model, self._settings(), seed, bar)
            self._judge(draws)

        validation.remember_features(self, X)
        self.classes_ = classes
        self.k_values_ = model.candidates.k.copy()
        self.k_max_ = int(self.k_values_[-1])
        self._space = space
        self._model = model
        self._prepared = PreparedPoints(model)
        self._draws = draws
        if draws is not None:
            self.k_posterior_ = sampling.frequencies(draws, self.k_values_).mean(axis=0)
            self.beta_mean_, self.beta_std_ = float(draws.beta.mean()), float(draws.beta.std())
        elif self.inference == "laplace":
            gauss = korea.training_gaussians(model)
            self.k_posterior_ = gauss.k_probabilities[0]
            self.beta_mean_, self.beta_std_ = float(gauss.beta_mean[0]), float(gauss.beta_std[0])
        else:
            self.k_posterior_ = model.posterior.k_probabilities
            self.beta_mean_, self.beta_std_ = model.posterior.beta_mean, model.posterior.beta_std
        self.k_optimal_ = int(self.k_values_[most_probable(self.k_posterior_)])
        return self

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
        """p(z' = c | Y) of each row; of each training row, left out, if X is None.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or None

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Never exactly zero.
        """
        check_is_fitted(self)
        return np.concatenate([part.class_probabilities for part in self._averages(X)])

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

    def posterior(self, X: Any) -> Posterior:
        """All that is known of each row; of each training row, left out, if X is None.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or None

        Returns
        -------
        Posterior
        """
        check_is_fitted(self)
        blocks = self._blocks(X)
        parts, density = self._known(blocks)
        mean = np.concatenate([part.class_probabilities for part in parts])
        square = np.concatenate([part.class_squares for part in parts])
        return Posterior(
            k=self.k_values_.copy(),
            k_probabilities=np.concatenate([part.k_probabilities for part in parts]),
            class_probabilities=mean,
            beta_mean=np.concatenate([part.beta_mean for part in parts]),
            beta_std=np.concatenate([part.beta_std for part in parts]),
            class_variance_within=np.maximum(mean - square, 0.0),
            class_variance_between=np.maximum(square - mean * mean, 0.0),
            _density=partial(_on_grid, density),
        )

    def sample(self, X: Any) -> Draws:
        """Draws from p(K, beta, z' | Y) of each row; of each training row, left out, if X is None.

        Available with inference="metropolis" and update="joint". With update="conditional" the
        draws are of (K, beta) given the training labels, and there is one row of them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or None

        Returns
        -------
        Draws
        """
        check_is_fitted(self)
        validation.check_sampler(self)
        if self._draws is not None and self.update == "conditional":
            return self._draws
        return self._draw(self._blocks(X))

    def training_density(self, beta: Any) -> np.ndarray:
        """The density p(K, beta | training labels) on a grid of beta.

        Parameters
        ----------
        beta : array-like of shape (n_beta,)
            Positive values.

        Returns
        -------
        ndarray of shape (n_k, n_beta)
        """
        check_is_fitted(self)
        beta = validation.check_beta(beta)
        if self.inference == "laplace":
            return np.exp(korea.training_gaussians(self._model).log_density(beta[None])[0])
        if self._draws is not None:
            return sampling.density_of_draws(self._draws, self.k_values_, beta)[0]
        every = np.arange(len(self.k_values_))
        return np.exp(averaging.training_density(self._model, every, beta))

    def _averages(self, X: Any) -> list[Average]:
        return self._known(self._blocks(X))[0]

    def _known(self, blocks: list[OpenLabels]) -> tuple[list[Average], Callable]:
        """What is known of each block of rows, and a function of beta that gives the density."""
        model, average = self._model, bool(self.average)
        if self.inference == "metropolis":
            if self.update == "conditional":
                assert self._draws is not None
                draws, n_rows = self._draws, sum(block.n_rows for block in blocks)
                work = partial(
                    sampling.average_of_training_draws, model, draws=draws, average=average
                )
                one = partial(sampling.density_of_draws, draws, model.candidates.k)
                return run(work, blocks, self.n_jobs), lambda beta: np.repeat(one(beta), n_rows, 0)
            draws = self._draw(blocks)
            first = np.cumsum([0, *(block.n_rows for block in blocks)])
            parts = [
                sampling.average_of_draws(model, block, draws.take(slice(a, b)), average)
                for block, a, b in zip(blocks, first[:-1], first[1:], strict=True)
            ]
            return parts, partial(sampling.density_of_draws, draws, model.candidates.k)
        parts = run(partial(AVERAGES[self.inference, average], model), blocks, self.n_jobs)
        return parts, partial(_density, model, blocks, self.inference, self.n_jobs)

    def _draw(self, blocks: list[OpenLabels]) -> Draws:
        """Draws for all blocks; a row's draws depend on its place among the rows and the seed."""
        seed, settings = self._seed(), self._settings()
        first = np.cumsum([0, *(block.n_rows for block in blocks)])
        bar = progress(self.verbose, "sample")
        done = [0.0] * len(blocks)

        def work(i: int) -> Draws:
            def tell(share: float) -> None:
                done[i] = share
                if bar is not None:
                    bar(sum(done) / len(blocks))

            generators = sampling.streams(seed, np.arange(first[i], first[i + 1]))
            return sampling.draw_rows(self._model, blocks[i], settings, generators, tell)

        draws = Draws.together(run(work, range(len(blocks)), self.n_jobs))
        self._judge(draws)
        return draws

    def _judge(self, draws: Draws) -> None:
        sentence = disagreement(draws)
        if sentence is not None:
            warnings.warn(sentence, ConvergenceWarning, stacklevel=3)

    def _settings(self) -> Settings:
        return Settings(self.n_draws, self.n_burn_in, self.n_chains, float(self.proposal_variance))

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _blocks(self, X: Any) -> list[OpenLabels]:
        """The rows in blocks of bounded memory, each ready to be averaged."""
        queries = None
        if X is not None:
            given = validation.check_new(self, X, self._model.search.points, self.k_max_)
            queries = self._space.points(given)
        n_draws = self.n_chains * (self.n_draws + self.n_burn_in)
        joint = self.update == "joint"
        return open_rows(self._prepared, queries, joint, self.inference, n_draws, self.n_jobs)

    def __getstate__(self) -> dict:
        state = dict(super().__getstate__())
        if "_model" in state:
            state.pop("_prepared")
            space, model, draws = (state.pop(name) for name in ("_space", "_model", "_draws"))
            state["_fitted"] = model_state(space, model, draws)
        return state

    def __setstate__(self, state: dict) -> None:
        state = dict(state)
        fitted = state.pop("_fitted", None)
        super().__setstate__(state)
        if fitted is not None:
            restored = restored_model(fitted, self.algorithm, len(self.classes_))
            self._space, self._model, self._draws = restored
            self._prepared = PreparedPoints(self._model)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.input_tags.sparse = validation.takes_sparse(self)
        tags.input_tags.positive_only = self.metric == "precomputed"
        tags.input_tags.allow_nan = self.metric == "nan_euclidean"
        return tags


def _on_grid(density: Callable, beta: Any) -> np.ndarray:
    return density(validation.check_beta(beta))


def _density(model, blocks, inference, n_jobs, beta) -> np.ndarray:
    density = DENSITIES[inference]
    return np.concatenate(run(lambda block: density(model, block, beta), blocks, n_jobs))
