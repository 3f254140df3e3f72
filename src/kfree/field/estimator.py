"""The classifier that lets every scale and several neighbor graphs speak at once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from kfree import validation
from kfree.field.contributions import Contributions, contributions_of
from kfree.field.design import FEW_CLASSES, Design, logits, spread_out
from kfree.field.features import Lists
from kfree.field.fitting import Settings, fit_field
from kfree.field.leave_one_out import held_out_logits
from kfree.field.saved import HeldOut, field_state, restored_field
from kfree.field.views import NAMES, Spec
from kfree.neighbors.threads import single_products
from kfree.progress import progress

# How many numbers the features of one block of rows may hold (32 MiB), and how many rows at most.
BLOCK_NUMBERS = 1 << 22
MOST_ROWS = 1 << 14
# Up to how many numbers (64 MiB) a fitted field keeps until its leave-one-out is asked for.
MOST_KEPT = 1 << 23


@dataclass(frozen=True)
class ViewNeighbors:
    """The training rows that speak in one view, nearest first.

    Attributes
    ----------
    indices : ndarray of shape (n_samples, n_neighbors)
        Which training row, counted from 0.
    distances : ndarray of shape (n_samples, n_neighbors)
        How far it is in this view.
    labels : ndarray of shape (n_samples, n_neighbors)
        Its label.
    """

    indices: np.ndarray
    distances: np.ndarray
    labels: np.ndarray


class FieldClassifier(ClassifierMixin, BaseEstimator):
    """Nearest neighbors on all scales and in several spaces at once, weighted by evidence.

    What a row's neighbors say for each class (their shares among the nearest 1, 2, 4, ..., 64 and
    their distances), the classes' means and the columns themselves enter one logit. Its weights
    have priors whose precision the evidence sets for each block, so nothing has to be tuned and no
    data are held out.

    Parameters
    ----------
    views : sequence, default=("scores", "within", "forest")
        The spaces in which neighbors are sought. "scores": normal scores of each column's ranks,
        Manhattan distance. "within": columns whitened by their covariance within classes,
        Euclidean distance. "forest": no space, but what extra trees say of rows that they did not
        see; up to 32 classes. Or a tuple (name, metric, params) with a metric of
        scikit-learn's neighbors, which measures the rows as they are given; params is a dict or
        None. ("any name", "precomputed", None) must be the only view: then X holds distances, as
        an array or a sparse graph.
    linear : bool, default=True
        Whether the columns themselves speak too, linearly and in smooth curves. Up to 32 classes;
        not with "precomputed".
    n_neighbors : int, default=128
        The length of the neighbor lists; shorter where there are fewer rows.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the pseudo-likelihood, as elsewhere in scikit-learn.
    max_iter : int, default=500
        The most steps of the optimizer in each of its seven rounds.
    tol : float, default=1e-5
        Where the optimizer stops: the largest slope, in units of a weight's standard deviation.
    random_state : int, RandomState instance or None, default=0
        Where the forest's random numbers come from; without a forest none are needed. None takes
        others at each fit.
    n_jobs : int, default=None
        Threads; None is one unless a joblib context says otherwise. It never changes the result.
    verbose : int, default=0
        Whether `fit` shows its progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only if X had names.
    blocks_ : tuple of str
        The blocks of weights, each with a prior of its own; "offset" is the last.
    precision_ : ndarray of shape (n_blocks,)
        The prior precision of each block's weights, as the evidence chose it (the offset's is
        fixed). A high one says that the block has little to tell.
    coef_ : dict of str to ndarray
        The weights of each block: of shape (n_block_features,) where all classes share them, else
        (n_classes, n_block_features).
    log_evidence_ : float
        The logarithm of the evidence, by Laplace's method.
    trust_ : float
        The posterior probability that the field says more than the classes' frequencies; the
        weights have been multiplied by it. 1 unless labels are next to noise.
    n_iter_ : int
        How many steps the optimizer took in all rounds.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kfree import FieldClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = FieldClassifier().fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    >>> print(f"leave-one-out accuracy {model.score(None, y):.2f}")
    leave-one-out accuracy 0.97
    """

    def __init__(
        self,
        *,
        views: Any = ("scores", "within", "forest"),
        linear: bool = True,
        n_neighbors: int = 128,
        class_weight: Any = None,
        max_iter: int = 500,
        tol: float = 1e-5,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.views = views
        self.linear = linear
        self.n_neighbors = n_neighbors
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FieldClassifier:
        """Find the neighbors, the weights and the precisions of their priors.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            At least two rows. With a "precomputed" view the distances between the rows, of shape
            (n_samples, n_samples), dense or a sparse graph.
        y : array-like of shape (n_samples,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            A row of weight 2 counts as two rows in the pseudo-likelihood, a row of weight 0 not at
            all. As a neighbor of others every row speaks alike, whatever its weight.

        Returns
        -------
        self
        """
        specs = [Spec(*view) for view in validation.check_field(self, NAMES)]
        rows, labels, classes = validation.check_training(self, X, y)
        rows = _in_rows(rows)
        validation.check_field_rows(specs, rows, len(classes), FEW_CLASSES)
        weights = validation.check_sample_weight(sample_weight, len(labels))
        if self.class_weight is not None:
            by_class = compute_sample_weight(self.class_weight, classes[labels])
            validation.check_class_weight(by_class, weights)
            weights = weights * by_class
        settings = Settings(
            specs,
            bool(self.linear),
            int(self.n_neighbors),
            check_random_state(self.random_state).randint(np.iinfo(np.int32).max),
            int(self.max_iter),
            float(self.tol),
            self.n_jobs,
        )
        bar = progress(self.verbose, "fit")
        with single_products():
            field = fit_field(rows, labels, weights, len(classes), settings, tell=bar)
        assembly, design, found = field.assembly, field.design, field.fit
        blocks, drawn = assembly.blocks(), field.weights

        def held_out() -> HeldOut:
            with single_products():
                return design.row, design.starts, held_out_logits(field)

        if not found.converged:
            warnings.warn(
                f"The weights are not at their mode after max_iter={self.max_iter} steps of the "
                "last round; raise max_iter, or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        validation.remember_features(self, X)
        self.classes_ = classes
        self.blocks_ = (*(block.name for block in blocks), "offset")
        self.precision_ = np.append(found.precision, found.precisions.of_class[-1])
        self.coef_ = {
            block.name: getattr(drawn, block.part)[..., block.columns] for block in blocks
        } | {"offset": drawn.offset[:, None]}
        self.log_evidence_ = found.log_evidence
        self.trust_ = field.trust
        self.n_iter_ = found.n_iter
        self._assembly = assembly
        self._weights = drawn
        # Leave-one-out waits until it is asked for, unless that means to keep much until then.
        self._held_out = held_out if design.values.size <= MOST_KEPT else held_out()
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """The logits of each row; of each training row, left out, if X is None.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or None

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            With two classes the second's logit minus the first's.
        """
        eta = self._logits(X)
        return eta[:, 1] - eta[:, 0] if len(self.classes_) == 2 else eta

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row; of each training row, left out, if X is None.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or None

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        best = self._logits(X).argmax(axis=1)
        return self.classes_[best]

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or None

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        eta = self._logits(X)
        eta -= eta.max(axis=1, keepdims=True)
        eta -= np.log(np.exp(eta).sum(axis=1, keepdims=True))
        return eta

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class; of each training row, left out, if X is None.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or None

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return np.exp(self.predict_log_proba(X))

    def contributions(self, X: Any) -> Contributions:
        """What each block of weights adds to the logit of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        Contributions
            Their sum over the blocks is the logit.
        """
        check_is_fitted(self)
        validation.check_given(self, X)
        blocks = self._assembly.blocks()
        parts = [contributions_of(design, self._weights, blocks) for design in self._designs(X)]
        return Contributions(self.blocks_, self.classes_, np.concatenate(parts))

    def neighbors(self, X: Any) -> dict[str, ViewNeighbors]:
        """The training rows that speak for each row, view by view.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or None
            None: the training rows, none of them its own neighbor.

        Returns
        -------
        dict of str to ViewNeighbors
            One for each view that has neighbors.
        """
        check_is_fitted(self)
        assembly = self._assembly
        if X is None:
            with single_products():
                found = assembly.training_lists(self.n_jobs)
        else:
            parts = list(self._searched(X))
            found = [
                Lists(
                    np.concatenate([lists[i].indices for _, lists in parts]),
                    np.concatenate([lists[i].distances for _, lists in parts]),
                )
                for i in range(len(assembly.views))
            ]
        return {
            view.name: ViewNeighbors(
                lists.indices, lists.distances, self.classes_[assembly.labels[lists.indices]]
            )
            for view, lists in zip(assembly.views, found, strict=True)
        }

    def _logits(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        weights, n_classes = self._weights, len(self.classes_)
        if X is None:
            row, starts, eta = self._left_out()
            n_rows = len(self._assembly.labels)
            none = np.zeros((n_rows, 0))
            everywhere = self._assembly.prepared.everywhere
            pairs = Design(n_rows, n_classes, everywhere, row, starts, none, none)
            return spread_out(pairs, eta, weights.offset)
        return np.concatenate(
            [
                spread_out(design, logits(design, weights), weights.offset)
                for design in self._designs(X)
            ]
        )

    def _designs(self, X: Any) -> Iterator[Design]:
        """The designs of new rows, in blocks of bounded memory."""
        assembly = self._assembly
        for rows, lists in self._searched(X):
            with single_products():
                yield assembly.of_new(rows, lists)

    def _searched(self, X: Any) -> Iterator[tuple[Any, list[Lists]]]:
        """New rows in blocks, and their neighbor lists."""
        assembly = self._assembly
        rows = _in_rows(validation.check_new(self, X, assembly.prepared.rows, assembly.length))
        n_classes = len(self.classes_) if assembly.prepared.everywhere else assembly.length
        n_numbers = max(n_classes * len(self._weights.shared), *rows.shape[1:], 1)
        step = int(np.clip(BLOCK_NUMBERS // n_numbers, 1, MOST_ROWS))
        for first in range(0, len(rows), step):
            part = rows[first : first + step]
            with single_products():
                yield part, assembly.new_lists(part, self.n_jobs)

    @property
    def metric(self) -> str:
        """How the rows are given: as distances ("precomputed") or as columns ("euclidean")."""
        views = self.views if isinstance(self.views, (tuple, list)) else ()
        metrics = [view[1] for view in views if isinstance(view, (tuple, list)) and len(view) == 3]
        given = any(isinstance(metric, str) and metric == "precomputed" for metric in metrics)
        return "precomputed" if given else "euclidean"

    @property
    def metric_params(self) -> None:
        """The views have their own."""
        return None

    def _left_out(self) -> HeldOut:
        """Row and class by class the logits of the training rows, each left out."""
        if callable(self._held_out):
            self._held_out = self._held_out()
        return self._held_out

    def __getstate__(self) -> dict:
        state = dict(super().__getstate__())
        if "_assembly" in state:
            state["_held_out"] = self._left_out()
            names = ("_assembly", "_weights", "_held_out")
            state["_fitted"] = field_state(*(state.pop(name) for name in names))
        return state

    def __setstate__(self, state: dict) -> None:
        state = dict(state)
        fitted = state.pop("_fitted", None)
        super().__setstate__(state)
        if fitted is not None:
            with single_products():  # as in fit, to round alike
                restored = restored_field(fitted, len(self.classes_))
            self._assembly, self._weights, self._held_out = restored

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        given = self.metric == "precomputed"
        tags.input_tags.pairwise = given
        tags.input_tags.sparse = given
        tags.input_tags.positive_only = given
        return tags


def _in_rows(rows: Any) -> Any:
    """Arrays row by row in memory: products round differently column by column."""
    return np.ascontiguousarray(rows) if isinstance(rows, np.ndarray) else rows
