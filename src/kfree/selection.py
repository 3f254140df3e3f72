"""What different criteria say about each number of neighbors K, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kfree.averaging import average_at
from kfree.blocks import PreparedPoints, held_out
from kfree.candidates import most_probable
from kfree.classifier import KFreeClassifier
from kfree.inference.mode import maximize
from kfree.likelihood.training_sum import Curves
from kfree.neighbors.structures import Neighborhoods
from kfree.neighbors.threads import run
from kfree.training import Model

# A neighbor more or less changes an exponent by beta / D, D the divisor of the shares. At 40 D this
# is a factor of e^-40 < 1e-17: no term of the pseudo-likelihood changes any more with beta, except
# those of points that most of their neighbors contradict, which only fall.
BOUND_PER_DIVISOR = 40.0
# Differences below this are rounding, and the smaller K is chosen.
TIE = 1e-9
# About how many numbers a block of rows may hold while it is averaged (8 MiB each array).
BLOCK_NUMBERS = 1 << 20


@dataclass(frozen=True)
class SelectionTable:
    """Criteria for each K; all arrays have shape (n_k,).

    Attributes
    ----------
    k : ndarray
        The numbers of neighbors considered, the estimator's `k_values_`.
    posterior : ndarray
        p(K | z), the estimator's `k_posterior_`.
    log_likelihood : ndarray
        log p(z | beta, K), the log pseudo-likelihood, at `beta`.
    beta : ndarray
        The strength that makes the pseudo-likelihood largest, without the prior: AIC and BIC are
        defined there. It is 0 where neighbors speak against a row's class rather than for it.
    at_bound : ndarray of bool
        Where the pseudo-likelihood has no maximum because it rises with beta for ever: K separates
        the classes without a contradiction. `beta` is then so large that nothing changes any more,
        40 times the largest divisor of a share, and `log_likelihood` is the limit.
    aic, bic : ndarray
        -2 log_likelihood + 2 and -2 log_likelihood + log(n), for the one parameter beta. The number
        of parameters is the same for every K, so both choose the K of the largest likelihood.
    dic : ndarray
        The posterior mean of the deviance -2 log p(z | beta, K) plus `n_effective`.
    n_effective : ndarray
        Effective number of parameters: the mean deviance less the deviance at the mean of beta.
    loo_accuracy : ndarray
        Share of training rows whose own class is the most probable when their label is unknown.
    loo_log_score : ndarray
        Mean log probability of their own class; larger is better.
    """

    k: np.ndarray
    posterior: np.ndarray
    log_likelihood: np.ndarray
    beta: np.ndarray
    at_bound: np.ndarray
    aic: np.ndarray
    bic: np.ndarray
    dic: np.ndarray
    n_effective: np.ndarray
    loo_accuracy: np.ndarray
    loo_log_score: np.ndarray

    @property
    def chosen(self) -> dict[str, int]:
        """The K that each criterion chooses; the smallest of those that are equally good."""
        goodness = {
            "posterior": self.posterior,
            "aic": -self.aic,
            "bic": -self.bic,
            "dic": -self.dic,
            "loo_accuracy": self.loo_accuracy,
            "loo_log_score": self.loo_log_score,
        }
        return {name: self._first_best(values) for name, values in goodness.items()}

    def _first_best(self, values: np.ndarray) -> int:
        return int(self.k[np.flatnonzero(values >= values.max() - TIE)[0]])

    def as_dict(self) -> dict[str, np.ndarray]:
        """All arrays by name; `pandas.DataFrame(table.as_dict())` makes a data frame."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def to_string(self) -> str:
        """The table as text, a star beside what each criterion chooses."""
        columns = [
            ("posterior", "p(K|z)", ".4f"),
            ("log_likelihood", "log lik.", ".2f"),
            ("beta", "beta", ".3f"),
            ("aic", "AIC", ".2f"),
            ("bic", "BIC", ".2f"),
            ("dic", "DIC", ".2f"),
            ("n_effective", "n eff.", ".2f"),
            ("loo_accuracy", "LOO acc.", ".4f"),
            ("loo_log_score", "LOO log score", ".4f"),
        ]
        cells = [["K", *map(str, self.k)]]
        chosen = self.chosen
        for name, title, form in columns:
            column = [title + " "]
            for k, value, bound in zip(self.k, getattr(self, name), self.at_bound, strict=True):
                below = ">" if name == "beta" and bound else ""
                star = "*" if chosen.get(name) == k else " "
                column.append(below + format(value, form) + star)
            cells.append(column)
        width = [max(map(len, column)) for column in cells]
        lines = [
            "  ".join(cell.rjust(w) for cell, w in zip(row, width, strict=True)).rstrip()
            for row in zip(*cells, strict=True)
        ]
        lines.append("* the choice of this criterion")
        if self.at_bound.any():
            lines.append("> the likelihood rises with beta for ever: its limit is shown")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.to_string()


def selection_table(estimator: Any) -> SelectionTable:
    """Criteria for each of the `k_values_` of a fitted classifier.

    The posterior of K is the estimator's own. Everything else is computed for each K alone, with
    beta integrated exactly over p(beta | z, K) where the criterion asks for that, whatever the
    estimator's `inference`. Leave-one-out follows the estimator's `update`, as `predict(None)`
    does: exact and without a refit under "joint". It looks at every K, also at those that the
    posterior rules out, and takes that much longer than `predict_proba(None)`.

    Parameters
    ----------
    estimator : KFreeClassifier
        Fitted. Of a pipeline, its last step.

    Returns
    -------
    SelectionTable
    """
    if not isinstance(estimator, KFreeClassifier):
        raise TypeError(f"selection_table needs a KFreeClassifier; got {type(estimator).__name__}.")
    check_is_fitted(estimator)
    model = estimator._model
    n = len(model.labels)
    beta, log_likelihood, dic, n_effective = np.empty((4, model.n_k))
    at_bound = np.empty(model.n_k, dtype=bool)
    bound = BOUND_PER_DIVISOR * _largest_divisors(model.table)
    for which, curves in model.likelihood.each():
        beta[which], at_bound[which], log_likelihood[which] = _most_likely(curves, bound[which])
        dic[which], n_effective[which] = _deviance(model, curves, which)
    scores = [
        _leave_one_out(estimator._prepared, i, estimator.update == "joint", estimator.n_jobs)
        for i in range(model.n_k)
    ]
    accuracy, log_score = np.array(scores).T
    return SelectionTable(
        k=model.candidates.k.copy(),
        posterior=np.array(estimator.k_posterior_),
        log_likelihood=log_likelihood,
        beta=beta,
        at_bound=at_bound,
        aic=-2.0 * log_likelihood + 2.0,
        bic=-2.0 * log_likelihood + np.log(n),
        dic=dic,
        n_effective=n_effective,
        loo_accuracy=accuracy,
        loo_log_score=log_score,
    )


def _most_likely(curves: Curves, bound: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The maximizer of each K's likelihood in [0, bound], whether at the bound, the maximum."""
    every = np.arange(len(bound))

    def at(beta: np.ndarray) -> list[np.ndarray]:
        return [part[:, 0] for part in curves(beta[:, None], True, every)]

    # The log likelihood is concave in beta, so that its slope at the ends says where the top is.
    at_zero = at(np.zeros(len(bound)))[1] <= 0.0
    at_bound = ~at_zero & (at(bound)[1] >= 0.0)
    inside = ~at_zero & ~at_bound

    def function(beta: np.ndarray) -> tuple:
        value, slope, curvature = at(beta)
        return value, np.where(inside, slope, 0.0), curvature  # the others are left where they are

    beta = maximize(function, np.ones(len(bound)))
    beta = np.where(at_zero, 0.0, np.where(at_bound, bound, beta))
    return beta, at_bound, at(beta)[0]


def _largest_divisors(table: Neighborhoods) -> np.ndarray:
    """The largest divisor of a share at each candidate: (n_k,)."""
    if not table.by_size:
        return table.k.astype(float)
    size, largest = np.zeros(table.n_points), np.empty(len(table.k))
    for i in range(len(table.k)):
        size += np.bincount(table.joining(i, table.neighbors)[0], minlength=table.n_points)
        largest[i] = size.max()
    return largest


def _deviance(model: Model, curves: Curves, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """DIC and the effective number of parameters: (n,)."""
    found, every = model.posterior.curves, np.arange(len(which))
    beta, log_mass = found.beta[which], found.log_mass[which]  # (n, n_nodes)
    weight = np.exp(log_mass - found.log_evidence[which, None])
    weight /= weight.sum(axis=1, keepdims=True)
    mean_beta = (weight * beta).sum(axis=1, keepdims=True)
    mean_deviance = (weight * -2.0 * curves(beta, False, every)[0]).sum(axis=1)
    at_mean = -2.0 * curves(mean_beta, False, every)[0][:, 0]
    n_effective = mean_deviance - at_mean
    return mean_deviance + n_effective, n_effective


def _leave_one_out(
    prepared: PreparedPoints, i: int, joint: bool, n_jobs: int | None
) -> tuple[float, float]:
    """Accuracy and mean log score of the training rows, left out, when K is known."""
    model = prepared.model
    n_nodes = model.posterior.curves.beta.shape[1]
    per_row = n_nodes * int(model.candidates.k[i]) * min(model.n_classes, 16)
    step = max(1, BLOCK_NUMBERS // per_row)
    rows = np.arange(len(model.labels))
    blocks = [held_out(prepared, rows[a : a + step], joint) for a in range(0, len(rows), step)]
    parts = run(partial(average_at, model, i=i), blocks, n_jobs)
    probabilities = np.concatenate([part.class_probabilities for part in parts])
    right = most_probable(probabilities) == model.labels
    return float(right.mean()), float(np.log(probabilities[rows, model.labels]).mean())
