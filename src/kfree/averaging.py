"""Posterior times conditional: class probabilities averaged over K and beta.

    p(z' = c | Y) = sum over K and beta of p(K, beta | Y) p(z' = c | beta, K, Y)

with the exact p(K, beta | Y) by quadrature, averaged ("KOREA average") or taken at its best ("KOREA
optimal"). Algorithm 1's approximation of it is in `korea`; which candidates and which beta a row
needs, in `reach`.
"""

from __future__ import annotations

import dataclasses
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from kfree import reach
from kfree.candidates import most_probable
from kfree.inference.quadrature import COVERED, Rule
from kfree.likelihood.class_sums import ClassSums, normalized
from kfree.likelihood.conditional import by_label
from kfree.likelihood.open_labels import OpenLabels
from kfree.row_density import RowDensity
from kfree.training import Model, beta_posterior

# A row in more doubt than this at a candidate is done again there, with all nodes. On the fuzzer's
# kinds of problems, 4 to 150 points, the others were off by at most 3e-9, and without it rows by up
# to 0.1 (`python benchmarks/nodes.py --problems 200 --rows 4 150`). With a tenth of this a quarter
# more rows are done again, to no effect.
DOUBT = 1e-4
# A candidate that was integrated to a few digits is integrated anew where it has more weight.
NO_WEIGHT = 1e-20


@dataclass(frozen=True)
class Average:
    """What is known of a block of rows."""

    k_probabilities: np.ndarray  # (n_rows, n_k)
    class_probabilities: np.ndarray  # (n_rows, n_classes)
    class_squares: np.ndarray  # (n_rows, n_classes) mean of the squared conditional
    beta_mean: np.ndarray  # (n_rows,)
    beta_std: np.ndarray  # (n_rows,)


class _Sums:
    """The sums over K and beta of a block of rows, candidate by candidate."""

    _by_row = ("log_mass", "beta_mean", "beta_square", "log_outside")

    def __init__(self, model: Model, rows: OpenLabels) -> None:
        self._model, n_k = model, model.n_k
        self.classes = ClassSums(rows.n_rows, rows.n_classes)
        self.log_mass = np.full((rows.n_rows, n_k), -np.inf)
        self.beta_mean, self.beta_square = np.zeros((2, rows.n_rows, n_k))
        self.log_outside = np.full(rows.n_rows, -np.inf)  # at most what the nodes leave out

    def take(self, rows: np.ndarray) -> _Sums:
        """The sums of some of the rows."""
        some = copy(self)
        some.classes = self.classes.take(rows)
        for name in self._by_row:
            setattr(some, name, getattr(self, name)[rows])
        return some

    def put(self, rows: np.ndarray, better: _Sums) -> None:
        """Replace the sums of some of the rows."""
        self.classes.put(rows, better.classes)
        for name in self._by_row:
            getattr(self, name)[rows] = getattr(better, name)

    def add(
        self,
        rows: OpenLabels,
        rule: Rule,
        in_doubt: np.ndarray | None = None,
        only: np.ndarray | None = None,
    ) -> None:
        """Add the candidates of a rule, none of which was added before.

        Where it is `in_doubt` (n_k,) whether the nodes reach far enough, their ends are looked at.
        `only` (n_rows, n) says to which rows which candidates of the rule are added. Where few
        nodes do not suffice, all of them are taken.
        """
        values = by_label(rows)
        doubtful = np.zeros((rows.n_rows, len(rule.candidate)), dtype=bool)
        for j, i in enumerate(rule.candidate.tolist()):
            beta, log_weight = rule.of(j)
            if in_doubt is not None and in_doubt[i]:
                with_ends = np.concatenate([beta, self._model.posterior.curves.ends(i)[0]])
                found = values(i, with_ends)
                ends = found.part(slice(len(beta), None))
                outside = reach.log_outside(self._model, i, ends)
                self.log_outside = np.maximum(self.log_outside, outside)
                known = found.part(slice(len(beta))).conditional()
            else:
                known = values(i, beta).conditional()
            weight, log_mass = normalized(log_weight + known.log_total)
            doubtful[:, j] = rule.doubt(j, weight) > DOUBT
            added = ~doubtful[:, j] if only is None else only[:, j]
            self.classes.add(known, weight, np.where(added, log_mass, -np.inf))
            self.log_mass[added, i] = log_mass[added]
            self.beta_mean[added, i] = (weight @ beta)[added]
            self.beta_square[added, i] = (weight @ (beta * beta))[added]
        which = np.flatnonzero(doubtful.any(axis=1))
        if len(which):
            again = np.flatnonzero(doubtful.any(axis=0))
            all_nodes = self._model.posterior.fine.take(rule.candidate[again])
            some = self.take(which)
            some.add(rows.take(which), all_nodes, only=doubtful[np.ix_(which, again)])
            self.put(which, some)

    def average(self) -> Average:
        """The average over all candidates."""
        k_weight, _ = normalized(self.log_mass)
        mean = (k_weight * self.beta_mean).sum(axis=1)
        variance = (k_weight * self.beta_square).sum(axis=1) - mean * mean
        std = np.sqrt(np.maximum(variance, 0.0))
        return Average(k_weight, *self.classes.result(), mean, std)


def average_by_quadrature(model: Model, rows: OpenLabels) -> Average:
    """The exact average over K and beta."""
    posterior, most = model.posterior, reach.most_slope(model, rows)
    in_doubt = reach.ends_in_doubt(model, most)
    sums = _Sums(model, rows)
    sums.add(rows, posterior.rule, in_doubt)
    # Candidates that labels may bring back.
    back, others = reach.returning(model, rows, most, normalized(sums.log_mass)[1])
    if len(back):
        more = sums.take(back)
        more.add(rows.take(back), posterior.few.take(others), in_doubt)
        sums.put(back, more)
    average = sums.average()
    # Rows that the nodes do not reach far enough for, or that bring back a candidate which was
    # integrated to a few digits, have nodes that allow for what their labels do.
    hopeless = posterior.coarse(others)
    coarse = (average.k_probabilities[:, hopeless] > NO_WEIGHT).any(axis=1)
    far = sums.log_outside > normalized(sums.log_mass)[1] - COVERED
    which = np.flatnonzero(far | coarse)
    if len(which):
        candidates, tilt = np.union1d(posterior.rule.candidate, others), most[which].max(axis=0)
        curves = beta_posterior(model.likelihood, model.prior, tilt=tilt, which=candidates)
        some = rows.take(which)
        better = _Sums(model, some)
        better.add(some, posterior.with_nodes_of(curves, candidates))
        _replace(average, which, better.average())
    return average


def average_at(model: Model, rows: OpenLabels, i: int) -> Average:
    """The average over beta alone, where K is known to be the i-th candidate."""
    sums = _Sums(model, rows)
    sums.add(rows, model.posterior.fine.take(np.array([i])))
    return sums.average()


def optimal_by_quadrature(model: Model, rows: OpenLabels) -> Average:
    """K at its largest posterior, beta at its mode there (KOREA optimal), from exact p(K | Y)."""
    average = average_by_quadrature(model, rows)
    best = most_probable(average.k_probabilities)
    mode = np.empty(rows.n_rows)
    for i in np.unique(best):
        chosen = np.flatnonzero(best == i)
        mode[chosen] = RowDensity(model, rows.take(chosen), int(i)).modes()
    class_probabilities = class_probabilities_at(rows, best, mode)
    return at_best(average, class_probabilities)


def density_by_quadrature(model: Model, rows: OpenLabels, beta: np.ndarray) -> np.ndarray:
    """p(K, beta | Y) of each row at the betas (n_beta,): (n_rows, n_k, n_beta)."""
    average = average_by_quadrature(model, rows)
    with np.errstate(divide="ignore"):
        log_k = np.log(average.k_probabilities)
    out = np.zeros((rows.n_rows, model.n_k, len(beta)))
    fine = model.posterior.fine
    for i in np.flatnonzero((average.k_probabilities > 0.0).any(axis=0)):
        field = rows.at(int(i))
        node, log_weight = fine.of(int(i))
        _, log_mass = normalized(log_weight + field.by_label(node).conditional().log_total)
        log_p = training_density(model, np.array([i]), beta)[0]
        log_p = log_p + field.by_label(beta).conditional().log_total
        out[:, i] = np.exp(log_p - log_mass[:, None] + log_k[:, i, None])
    return out


def training_density(model: Model, which: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """log p(K, beta | z) of some candidates at the betas (n_beta,): (n, n_beta)."""
    nodes = np.broadcast_to(beta, (len(which), len(beta)))
    (value,) = model.likelihood.curves(which)(nodes, False, np.arange(len(which)))
    log_k = model.posterior.log_prior[which] - model.posterior.log_normalizer
    return value + model.prior.log_density(beta) + log_k[:, None]


def class_probabilities_at(rows: OpenLabels, candidate: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Class probabilities at one candidate and one beta for each row: (n_rows, n_classes)."""
    out = np.empty((rows.n_rows, rows.n_classes))
    for i in np.unique(candidate):
        chosen = np.flatnonzero(candidate == i)
        known = rows.take(chosen).at(int(i)).by_label(beta[chosen, None]).conditional()
        out[chosen] = known.table()[:, :, 0]
    # A probability can underflow only where beta is beyond any reason; it is never zero.
    return np.maximum(out, np.finfo(float).tiny)


def at_best(average: Average, class_probabilities: np.ndarray) -> Average:
    """The same knowledge of K and beta, with the class probabilities at its best."""
    squares = class_probabilities**2
    return replace(average, class_probabilities=class_probabilities, class_squares=squares)


def _replace(average: Average, rows: np.ndarray, better: Average) -> None:
    for name in (field.name for field in dataclasses.fields(Average)):
        getattr(average, name)[rows] = getattr(better, name)
