"""Posterior times conditional: class probabilities averaged over K and beta.

    p(z' = c | Y) = sum over K and beta of p(K, beta | Y) p(z' = c | beta, K, Y)

with the exact p(K, beta | Y) by quadrature, averaged ("KOREA average") or taken at its best ("KOREA
optimal"). Algorithm 1's approximation of it is in `korea`.

There are three ways to the conditional, and this is the table of them:

| way | where | when |
|---|---|---|
| few classes: states | `likelihood.few_classes` | up to `FEW_CLASSES`, any structure |
| many classes: sparse lists | `likelihood.many_classes` | more, joint, lists of nearest neighbors |
| in general | `likelihood.open_labels` | all else, and where each row has its own beta |
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from kfree.candidates import most_probable
from kfree.inference.mode import maximize
from kfree.inference.quadrature import COVERED, Rule, log_sum
from kfree.inference.rules import NEGLIGIBLE
from kfree.likelihood.few_classes import FEW_CLASSES, FewClasses
from kfree.likelihood.many_classes import ManyClasses
from kfree.likelihood.open_labels import Field, OpenLabels, Predictive
from kfree.likelihood.slots import ClassSlots, every_class
from kfree.training import Model, beta_posterior

# Rows in more doubt than this, at a candidate that has some weight, are done again with all nodes.
# On the fuzzer's kinds of problems, with 24 nodes among 4 to 150 points, the others were off by at
# most 1.3e-7, and all rows by up to 4e-4 (`python benchmarks/nodes.py --problems 60 --rows 4 150`).
# With few nodes among 600 to 1,500 points two of 7,894 rows with less doubt were off by up to
# 2.5e-5, among 739 points, where 24 nodes are taken; of 1,000 points and more none by more than
# 1.1e-8 (`--problems 8 --rows 600 1500`).
DOUBT = 1e-4
SOME_WEIGHT = 1e-9
# New points are searched for with the candidates that a label of this slope could bring back; rows
# that may bring back more are searched for again with all of them.
USUAL_SLOPE = 4.0
# The slopes at which the bound for candidates that were left out is worked out.
N_SLOPES = 65
BISECTIONS = 12
# The logarithm of a factor that numbers bear.
LARGEST_FACTOR = 100.0


@dataclass(frozen=True)
class Average:
    """What is known of a block of rows."""

    k_probabilities: np.ndarray  # (n_rows, n_k)
    class_probabilities: np.ndarray  # (n_rows, n_classes)
    class_squares: np.ndarray  # (n_rows, n_classes) mean of the squared conditional
    beta_mean: np.ndarray  # (n_rows,)
    beta_std: np.ndarray  # (n_rows,)


class ClassSums:
    """Weighted sums of class probabilities and of their squares.

    The weights of a row need not add up to anything; they are given in parts, each with the
    logarithm of a factor, so that no part has to be kept until all are known.
    """

    def __init__(self, n_rows: int, n_classes: int) -> None:
        self._listed = np.zeros((2, n_rows, n_classes))  # of probabilities and of their squares
        self._absent = np.zeros((2, n_rows))
        self._weight = np.zeros(n_rows)
        self._log_unit = np.full(n_rows, -np.inf)

    def add(
        self,
        slots: ClassSlots,
        listed: np.ndarray,
        absent: np.ndarray,
        weight: np.ndarray,
        log_factor: np.ndarray | None = None,
    ) -> None:
        """Add conditionals (n_slots, n) and (n_rows, n) with weights (n_rows, n).

        `log_factor` (n_rows,) multiplies the weights.
        """
        if log_factor is not None:
            weight = weight * self._in_units(log_factor)[:, None]
        self._weight += weight.sum(axis=1)
        mean, square = self._listed
        if slots.every:
            table = listed.reshape(*mean.shape, -1)
            weighted = weight[:, None, :] * table
            mean += weighted.sum(axis=2)
            square += np.einsum("ijk,ijk->ij", weighted, table)
            return
        # Every class gets what an absent one has, a listed class the rest as well.
        others = weight * absent
        more = others.sum(axis=1), (others * absent).sum(axis=1)
        self._absent += more
        owner = slots.owner
        weighted = weight[owner]
        weighted *= listed
        place = owner * mean.shape[1] + slots.classes
        mean.reshape(-1)[place] += weighted.sum(axis=1) - more[0][owner]
        weighted *= listed
        square.reshape(-1)[place] += weighted.sum(axis=1) - more[1][owner]

    def take(self, rows: np.ndarray) -> ClassSums:
        """The sums of some of the rows."""
        some = ClassSums(len(rows), self._listed.shape[2])
        some._listed, some._absent = self._listed[:, rows], self._absent[:, rows]
        some._weight, some._log_unit = self._weight[rows], self._log_unit[rows]
        return some

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        mean, square = (self._listed + self._absent[:, :, None]) / self._weight[:, None]
        # A probability can underflow only where beta is beyond any reason; it is never zero.
        mean = np.maximum(mean, np.finfo(float).tiny)
        return mean / mean.sum(axis=1, keepdims=True), np.clip(square, 0.0, mean)

    def _in_units(self, log_factor: np.ndarray) -> np.ndarray:
        """The factors in units that fit them; what was added before is brought to these."""
        if not (log_factor < self._log_unit + LARGEST_FACTOR).all():
            log_unit = np.maximum(self._log_unit, log_factor)
            shrunk = np.exp(self._log_unit - log_unit)
            self._listed *= shrunk[:, None]
            self._absent *= shrunk
            self._weight *= shrunk
            self._log_unit = log_unit
        return np.exp(log_factor - self._log_unit)


class _Sums:
    """The sums over K and beta of a block of rows, candidate by candidate."""

    def __init__(self, rows: OpenLabels, n_k: int) -> None:
        self.classes = ClassSums(rows.n_rows, rows.n_classes)
        self.log_mass = np.full((rows.n_rows, n_k), -np.inf)
        self.beta_mean, self.beta_square = np.zeros((2, rows.n_rows, n_k))
        self.doubt = np.zeros((rows.n_rows, n_k))

    def take(self, rows: np.ndarray) -> _Sums:
        """The sums of some of the rows."""
        some = copy(self)
        some.classes = self.classes.take(rows)
        for name in ("log_mass", "beta_mean", "beta_square", "doubt"):
            setattr(some, name, getattr(self, name)[rows])
        return some

    def add(self, rows: OpenLabels, rule: Rule) -> None:
        """Add the candidates of a rule, none of which was added before."""
        conditional = conditionals(rows)
        for j, i in enumerate(rule.candidate):
            beta, log_weight = rule.of(j)
            slots, listed, absent, log_total = conditional(int(i), beta)
            weight, self.log_mass[:, i] = normalized(log_weight + log_total)
            self.classes.add(slots, listed, absent, weight, self.log_mass[:, i])
            self.beta_mean[:, i], self.beta_square[:, i] = weight @ beta, weight @ (beta * beta)
            self.doubt[:, i] = rule.doubt(j, weight)

    def average(self) -> tuple[Average, np.ndarray]:
        """The average, and how far each row's may be off: (n_rows,)."""
        k_weight, _ = normalized(self.log_mass)
        mean = (k_weight * self.beta_mean).sum(axis=1)
        variance = (k_weight * self.beta_square).sum(axis=1) - mean * mean
        std = np.sqrt(np.maximum(variance, 0.0))
        average = Average(k_weight, *self.classes.result(), mean, std)
        return average, np.where(k_weight > SOME_WEIGHT, self.doubt, 0.0).max(axis=1)


def average_by_quadrature(model: Model, rows: OpenLabels) -> Average:
    """The exact average over K and beta."""
    sums = _Sums(rows, model.n_k)
    sums.add(rows, model.posterior.rule)
    average, doubt = sums.average()
    most = most_slope(model, rows)
    _, log_total = normalized(sums.log_mass)
    back, others = _returning(model, rows, most, log_total)
    candidates = np.union1d(model.posterior.rule.candidate, others)
    coarse = np.zeros(rows.n_rows, dtype=bool)
    if len(back):
        more = sums.take(back)
        more.add(rows.take(back), model.posterior.fine.take(others))
        _, log_total[back] = normalized(more.log_mass)
        raised, doubt[back] = more.average()
        _replace(average, back, raised)
        hopeless = model.posterior.coarse(others)
        coarse[back] = (raised.k_probabilities[:, hopeless] > SOME_WEIGHT).any(axis=1)
    far = _beyond(model, rows, most, log_total, candidates)
    again = far | coarse | (doubt > DOUBT)
    if again.any():
        # Once more, with all nodes and all candidates that one of these rows brings back.
        which = np.flatnonzero(again)
        some, rule = rows.take(which), model.posterior.fine.take(candidates)
        if (far | coarse).any():
            tilt = most[which].max(axis=0)
            curves = beta_posterior(model.likelihood, model.prior, tilt=tilt, which=candidates)
            rule = model.posterior.with_nodes_of(curves, candidates)
        better = _Sums(some, model.n_k)
        better.add(some, rule)
        _replace(average, which, better.average()[0])
    if rows.farther is not None:
        over = _asks_for_more(model, rows, most)
        if len(over):
            _replace(average, over, average_by_quadrature(model, rows.farther(over)))
    return average


def n_usual_candidates(model: Model) -> int:
    """How many candidates, from the first, a label of the usual slope can make count."""
    posterior = model.posterior
    reached = posterior.curves.log_tilted(np.full(model.n_k, USUAL_SLOPE)) + posterior.log_prior
    usual = int(np.flatnonzero(reached > posterior.log_mass.max() - NEGLIGIBLE)[-1])
    return max(usual, int(posterior.rule.candidate[-1])) + 1


def _asks_for_more(model: Model, rows: OpenLabels, most: np.ndarray) -> np.ndarray:
    """Rows that may raise candidates which they were not searched for.

    These are out of reach of labels with the usual slope. A row is searched for again if the last
    of its candidates is raised by about half as much.
    """
    last = rows.rows.n_candidates - 1
    over = np.flatnonzero(most[:, last] > USUAL_SLOPE)
    if len(over):
        mode = model.posterior.curves.mode[last]
        raised = conditionals(rows.take(over))(last, mode[None])[3][:, 0]
        over = over[raised > 0.5 * USUAL_SLOPE * mode - 1.0]
    return over


def _returning(
    model: Model, rows: OpenLabels, most: np.ndarray, log_total: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose label may bring back candidates that were left out, and these candidates.

    What a label does to log p(z | beta, K) changes with beta at most by a slope, which bounds the
    weight of a candidate: first from nothing at beta = 0, then, where that is not enough, from the
    value at the candidate's mode.

    Parameters
    ----------
    most : (n_rows, n_k) as `most_slope` gives it
    log_total : (n_rows,) the log mass of the candidates looked at so far

    Returns
    -------
    rows, candidates : rising
    """
    posterior, curves = model.posterior, model.posterior.curves
    others = np.setdiff1d(np.arange(rows.rows.n_candidates), posterior.rule.candidate)
    constant = posterior.log_prior - posterior.log_normalizer
    grid = max(1.0, float(most.max())) * np.linspace(0.0, 1.0, N_SLOPES) ** 2

    def reached(which: np.ndarray, at: np.ndarray, origin: np.ndarray | float, more) -> np.ndarray:
        """Log of the integrals of exp(slope |beta - origin| + more), or above: (n_rows, n).

        No likelihood is above one, so that no integral is above the candidate's prior.
        """
        table, each = np.empty((N_SLOPES, len(which))), np.arange(len(which))
        away = np.abs(curves.beta[which] - np.reshape(origin, (-1, 1)))
        for j in np.unique(at):
            inside = log_sum(curves.log_mass[which] + grid[j] * away)
            beyond = curves.log_beyond(grid[j])[which] - grid[j] * origin
            table[j] = np.logaddexp(inside, beyond)
        return np.minimum(table[at, each] + more, 0.0) + constant[which]

    place = np.searchsorted(grid, most)
    own = 0.0 if rows.own_labels is None else np.log(rows.n_classes)
    limit = log_total[:, None] - NEGLIGIBLE
    back = reached(others, place[:, others], 0.0, own) > limit
    which, others = np.flatnonzero(back.any(axis=1)), others[back.any(axis=0)]
    if not len(which):
        return which, others
    conditional, mode = conditionals(rows.take(which)), curves.mode[others]
    at_mode = [conditional(int(i), one[None])[3][:, 0] for i, one in zip(others, mode, strict=True)]
    bound = reached(others, place[which][:, others], mode, np.stack(at_mode, axis=1))
    back = bound > limit[which]
    return which[back.any(axis=1)], others[back.any(axis=0)]


def _beyond(
    model: Model, rows: OpenLabels, most: np.ndarray, log_total: np.ndarray, candidates: np.ndarray
) -> np.ndarray:
    """Rows whose label may carry the posterior of beta beyond its nodes: (n_rows,) bool.

    First by the slopes, which bound what a label does. Where these are not enough, by the values at
    the outermost nodes: for each label the log likelihood is concave in beta, as that of an
    exponential family, so that beyond the nodes it falls at least as it does before the last ones.
    """
    posterior, curves = model.posterior, model.posterior.curves
    far = np.zeros(rows.n_rows, dtype=bool)
    if curves.covers(most.max(axis=0))[candidates].all():
        return far
    # The slope up to which all candidates are covered, by halving.
    low, high = np.zeros(model.n_k), most.max(axis=0)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        fine = curves.covers(middle)
        low, high = np.where(fine, middle, low), np.where(fine, high, middle)
    which = np.flatnonzero((most > low)[:, candidates].any(axis=1))
    some, limit = rows.take(which), log_total[which] - COVERED - np.log(rows.n_classes)
    likelihoods = likelihoods_by_label(some)
    for i in candidates:
        beta, log_mass = curves.ends(int(i))
        log_mass = log_mass + posterior.log_prior[i] - posterior.log_normalizer
        for row, value in likelihoods(int(i), beta):
            outside = curves.log_outside(int(i), beta, log_mass + value, model.prior.shape)
            far[which[row[outside > limit[row]]]] = True
    return far


def average_at(model: Model, rows: OpenLabels, i: int) -> Average:
    """The average over beta alone, where K is known to be the i-th candidate."""
    sums = _Sums(rows, model.n_k)
    sums.add(rows, model.posterior.fine.take(np.array([i])))
    return sums.average()[0]


def most_slope(model: Model, rows: OpenLabels) -> np.ndarray:
    """At most how fast each row's label changes the log likelihood with beta: (n_rows, n_k).

    A neighbor more or less changes a log term by at most beta / K; where counts are divided by the
    size of the neighborhood, by twice that. The own term of a held-out row leaves the sum, and its
    slope is the largest share: at most one, but where neighbors count on both sides and are divided
    by K.
    """
    slope = np.zeros((rows.n_rows, model.n_k))
    by_size = model.table.by_size
    if rows.joint or not (model.table.nearest or by_size or rows.own_labels is None):
        changes = rows.rows.n_changes() / model.candidates.k
    if rows.own_labels is not None:
        # Each neighbor on both sides gains and loses.
        slope += 1.0 if model.table.nearest or by_size else 0.5 * changes
    if rows.joint:
        slope += (2.0 if by_size else 1.0) * changes
    return slope


def conditionals(rows: OpenLabels) -> Callable:
    """A function of a candidate, rising, and betas: slots, conditionals, log of the total mass."""
    if rows.n_classes <= FEW_CLASSES:
        few, slots = FewClasses(rows), every_class(rows.n_rows, rows.n_classes)

        def of_every_class(i: int, beta: np.ndarray) -> tuple:
            log_class = few.at(i, beta)  # (n_rows, n_classes, n_beta)
            high = log_class.max(axis=1)
            log_class -= high[:, None, :]
            share = np.exp(log_class, out=log_class)
            total = share.sum(axis=1)
            share /= total[:, None, :]
            absent = np.zeros_like(total)
            return slots, share.reshape(-1, total.shape[1]), absent, np.log(total) + high

        return of_every_class
    many = ManyClasses(rows) if rows.joint and rows.table.nearest else None

    def in_general(i: int, beta: np.ndarray) -> tuple:
        found = None if many is None else many.predictive(i, beta)
        predictive, leaves = rows.at(i).predictive(beta) if found is None else found
        listed, absent, log_total = predictive.conditional()
        if leaves is not None:
            log_total = log_total + leaves.value
        return predictive.slots, listed, absent, log_total

    return in_general


def likelihoods_by_label(rows: OpenLabels) -> Callable:
    """A function of a candidate, rising, and betas: (row (n,), values (n, n_beta)) of all labels.

    The values are log p(z, z' = c | beta, K) - log p(z | beta, K).
    """
    if rows.n_classes <= FEW_CLASSES:
        few, row = FewClasses(rows), np.repeat(np.arange(rows.n_rows), rows.n_classes)
        return lambda i, beta: [(row, few.at(i, beta).reshape(len(row), -1))]

    def in_general(i: int, beta: np.ndarray) -> list:
        predictive, leaves = rows.at(i).predictive(beta)
        gone = np.zeros((rows.n_rows, 1)) if leaves is None else leaves.value
        every = np.arange(rows.n_rows)
        found = (predictive.slots.owner, predictive.listed), (every, predictive.absent)
        return [(row, label.value + gone[row]) for row, label in found]

    return in_general


def optimal_by_quadrature(model: Model, rows: OpenLabels) -> Average:
    """K at its largest posterior, beta at its mode there (KOREA optimal), from exact p(K | Y)."""
    average = average_by_quadrature(model, rows)
    best = most_probable(average.k_probabilities)
    class_probabilities = np.empty_like(average.class_probabilities)
    for i in np.unique(best):
        chosen = np.flatnonzero(best == i)
        field = with_candidate(rows.take(chosen), int(i)).at(int(i))
        mode, _, _ = find_mode(model, field, len(chosen))
        class_probabilities[chosen] = class_probabilities_at(field.predictive(mode[:, None])[0])
    return at_best(average, class_probabilities)


def with_candidate(rows: OpenLabels, i: int) -> OpenLabels:
    """The rows with what is known of them at the i-th candidate, searched for again if need be."""
    if i < rows.rows.n_candidates or rows.farther is None:
        return rows
    return rows.farther(np.arange(rows.n_rows))


def density_by_quadrature(model: Model, rows: OpenLabels, beta: np.ndarray) -> np.ndarray:
    """p(K, beta | Y) of each row at the betas (n_beta,): (n_rows, n_k, n_beta)."""
    average = average_by_quadrature(model, rows)
    with np.errstate(divide="ignore"):
        log_k = np.log(average.k_probabilities)
    out = np.zeros((rows.n_rows, model.n_k, len(beta)))
    fine = model.posterior.fine
    for i in np.flatnonzero((average.k_probabilities > 0.0).any(axis=0)):
        field = with_candidate(rows, int(i)).at(int(i))
        node, log_weight = fine.of(int(i))
        _, log_mass = normalized(log_weight + _log_total(field, node))
        log_p = training_density(model, np.array([i]), beta)[0] + _log_total(field, beta)
        out[:, i] = np.exp(log_p - log_mass[:, None] + log_k[:, i, None])
    return out


def training_density(model: Model, which: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """log p(K, beta | z) of some candidates at the betas (n_beta,): (n, n_beta)."""
    nodes = np.broadcast_to(beta, (len(which), len(beta)))
    (value,) = model.likelihood.curves(which)(nodes, False, np.arange(len(which)))
    log_k = model.posterior.log_prior[which] - model.posterior.log_normalizer
    return value + model.prior.log_density(beta) + log_k[:, None]


def find_mode(model: Model, field: Field, n_rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mode of log p(beta) sum_c p(z, z' = c | beta, K), its value and curvature: (n_rows,)."""
    curves, only = model.likelihood.curves(np.array([field.candidate])), np.zeros(1, dtype=int)

    def function(beta: np.ndarray) -> tuple:
        parts = [part[0] for part in curves(beta[None], True, only)]
        parts = [a + b for a, b in zip(parts, model.prior.derivatives(beta), strict=True)]
        predictive, leaves = field.predictive(beta[:, None], derivatives=True)
        for log in (predictive.total(), leaves):
            if log is not None:
                assert log.slope is not None and log.curvature is not None
                of_log = (log.value, log.slope, log.curvature)
                parts = [a + b[:, 0] for a, b in zip(parts, of_log, strict=True)]
        return tuple(parts)

    mode = maximize(function, np.full(n_rows, model.posterior.curves.mode[field.candidate]))
    value, _, curvature = function(mode)
    return mode, value, curvature


def _log_total(field: Field, beta: np.ndarray) -> np.ndarray:
    predictive, leaves = field.predictive(beta)
    total = predictive.total().value
    return total if leaves is None else total + leaves.value


def class_probabilities_at(predictive: Predictive) -> np.ndarray:
    """Class probabilities at one beta for each row: (n_rows, n_classes)."""
    listed, absent, _ = predictive.conditional()
    total = ClassSums(len(absent), predictive.slots.n_classes)
    total.add(predictive.slots, listed, absent, np.ones_like(absent))
    return total.result()[0]


def at_best(average: Average, class_probabilities: np.ndarray) -> Average:
    """The same knowledge of K and beta, with the class probabilities at its best."""
    squares = class_probabilities**2
    return replace(average, class_probabilities=class_probabilities, class_squares=squares)


def normalized(log_mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights of each row that add up to one, and the log of their sum before."""
    top = log_mass.max(axis=1, keepdims=True)
    weight = np.exp(log_mass - top)
    total = weight.sum(axis=1, keepdims=True)
    return weight / total, (top + np.log(total))[:, 0]


def _replace(average: Average, rows: np.ndarray, better: Average) -> None:
    for name in (field.name for field in dataclasses.fields(Average)):
        getattr(average, name)[rows] = getattr(better, name)
