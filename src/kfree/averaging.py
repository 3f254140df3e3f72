"""Posterior times conditional: class probabilities averaged over K and beta.

    p(z' = c | Y) = sum over K and beta of p(K, beta | Y) p(z' = c | beta, K, Y)

with the exact p(K, beta | Y) by quadrature, averaged ("KOREA average") or taken at its best ("KOREA
optimal"). Algorithm 1's approximation of it is in `korea`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from kfree.inference.mode import maximize
from kfree.inference.quadrature import Rule
from kfree.likelihood.entering import Entered, EnteringPairs, OwnTerms, log_joint_of_all
from kfree.likelihood.entering_lists import EnteredLists
from kfree.likelihood.joining import log_joint
from kfree.likelihood.leaving import Leaving
from kfree.likelihood.leaving_lists import LeavingLists
from kfree.likelihood.open_labels import Field, OpenLabels, Predictive
from kfree.likelihood.slots import DENSE_CLASSES, ClassSlots, every_class
from kfree.neighbors.structures import JOINING, HeldOut, NewPoints
from kfree.training import TABLE_CLASSES, Model

# All K stand beside each other for up to so many training points, all of which are then looked at,
# and arrays of up to so many numbers (32 MiB).
AT_ONCE_POINTS = 1000
AT_ONCE_NUMBERS = 1 << 22
# Rows in more doubt than this are done again with finer nodes. Where it was less, no class
# probability was seen to change by more than 1e-7.
DOUBT = 1e-2
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


def average_by_quadrature(model: Model, rows: OpenLabels) -> Average:
    """The exact average over K and beta."""
    rule = _rule(model, rows)
    average, doubt = _average(model, rows, rule)
    doubtful = np.flatnonzero(doubt > DOUBT)
    if len(doubtful):
        finer, _ = _average(model, rows.take(doubtful), model.fine_rule)
        for name in (field.name for field in dataclasses.fields(Average)):
            getattr(average, name)[doubtful] = getattr(finer, name)
    return average


def _average(model: Model, rows: OpenLabels, rule: Rule) -> tuple[Average, np.ndarray]:
    """The average by a rule, and how far each row's may be off: (n_rows,)."""
    if _fits_at_once(model, rows, rule):
        return _average_at_once(model, rows, rule)
    n_active = len(rule.k)
    total = ClassSums(rows.n_rows, rows.n_classes)
    log_mass = np.empty((rows.n_rows, n_active))
    beta_mean = np.empty((rows.n_rows, n_active))
    beta_square = np.empty((rows.n_rows, n_active))
    doubt = np.empty((rows.n_rows, n_active))
    predict = _predictor(model, rows, rule)
    for i in range(n_active):
        beta, log_weight = rule.of(i)
        slots, listed, absent, log_total = predict(i)
        weight, log_mass[:, i] = normalized(log_weight + log_total)
        total.add(slots, listed, absent, weight, log_mass[:, i])
        beta_mean[:, i], beta_square[:, i] = weight @ beta, weight @ (beta * beta)
        doubt[:, i] = rule.doubt(i, weight)
    k_weight, _ = normalized(log_mass)
    k_probabilities = np.zeros((rows.n_rows, model.n_k))
    k_probabilities[:, rule.k - 1] = k_weight
    mean = (k_weight * beta_mean).sum(axis=1)
    variance = (k_weight * beta_square).sum(axis=1) - mean * mean
    std = np.sqrt(np.maximum(variance, 0.0))
    return Average(k_probabilities, *total.result(), mean, std), (k_weight * doubt).sum(axis=1)


def _fits_at_once(model: Model, rows: OpenLabels, rule: Rule) -> bool:
    """Whether all K fit into the same few operations, which are faster for little data."""
    new = isinstance(rows.visit, NewPoints) and model.structure == "asymmetric" and rows.joint
    n_points, n_values = len(model.labels), rows.n_classes * rule.beta.shape[1]
    largest = max(rows.n_rows * n_points, max(rows.n_rows, n_points) * n_values)
    little = n_points <= AT_ONCE_POINTS and len(rule.k) * largest <= AT_ONCE_NUMBERS
    return new and little


def _average_at_once(model: Model, rows: OpenLabels, rule: Rule) -> tuple[Average, np.ndarray]:
    share = _at_once(model, rows, rule)  # (n_k, n_rows, n_classes, n_beta)
    high = share.max(axis=2)
    share -= high[:, :, None, :]
    np.exp(share, out=share)
    total = share.sum(axis=2)
    share /= total[:, :, None, :]
    log_mass = np.log(total) + high + rule.log_weight[:, None, :]
    weight, _ = normalized(log_mass.transpose(1, 0, 2).reshape(rows.n_rows, -1))
    weight = weight.reshape(rows.n_rows, len(rule.k), -1)
    k_probabilities = np.zeros((rows.n_rows, model.n_k))
    k_probabilities[:, rule.k - 1] = weight.sum(axis=2)
    weighted = share * weight.transpose(1, 0, 2)[:, :, None, :]
    mean = weighted.sum(axis=(0, 3))
    square = np.einsum("krcq,krcq->rc", weighted, share)
    beta_mean = (weight * rule.beta).sum(axis=(1, 2))
    variance = (weight * rule.beta**2).sum(axis=(1, 2)) - beta_mean**2
    mean = np.maximum(mean, np.finfo(float).tiny)
    mean /= mean.sum(axis=1, keepdims=True)
    doubt = np.zeros(rows.n_rows)
    if rule.probe is not None:
        k_weight = np.maximum(weight.sum(axis=2), np.finfo(float).tiny)
        last = np.einsum("rkq,kjq->jrk", weight, rule.probe)
        doubt = (np.abs(last).max(axis=0) ** 2 / k_weight).sum(axis=1)
    square = np.clip(square, 0.0, mean)
    std = np.sqrt(np.maximum(variance, 0.0))
    return Average(k_probabilities, mean, square, beta_mean, std), doubt


def log_joint_of_all_k(model: Model, rows: OpenLabels, rule: Rule) -> np.ndarray | None:
    """log p(z, z' = c) - log p(z) at all nodes, which no K may lack, if there is a fast way.

    Returns
    -------
    (n_k, n_rows, n_classes, n_beta)
    """
    if _fits_at_once(model, rows, rule):
        return _at_once(model, rows, rule)
    joint = _fast_log_joint(model, rows, rule)
    if joint is None:
        return None
    out = np.empty((len(rule.k), rows.n_rows, rows.n_classes, rule.beta.shape[1]))
    for i in range(len(rule.k)):
        out[i] = joint(i)
    return out


def _at_once(model: Model, rows: OpenLabels, rule: Rule) -> np.ndarray:
    assert isinstance(rows.visit, NewPoints)
    nearest = model.graph.indices[:, : rule.k[-1]]
    return log_joint_of_all(
        rows.visit.arrivals, nearest, rows.labels, rows.n_classes, rule.k, rule.beta
    )


def _predictor(model: Model, rows: OpenLabels, rule: Rule) -> Callable:
    """A function of i: slots, conditionals, log of the total mass at the i-th K, in this order."""
    joint = _fast_log_joint(model, rows, rule)
    if joint is not None:
        slots = every_class(rows.n_rows, rows.n_classes)

        def of_every_class(i: int) -> tuple:
            log_class = joint(i)  # (n_rows, n_classes, n_beta)
            high = log_class.max(axis=1)
            log_class -= high[:, None, :]
            share = np.exp(log_class, out=log_class)
            total = share.sum(axis=1)
            share /= total[:, None, :]
            absent = np.zeros_like(total)
            return slots, share.reshape(-1, total.shape[1]), absent, np.log(total) + high

        return of_every_class

    lists: EnteredLists | LeavingLists | None = None
    k_max = int(rule.k[-1])
    if in_lists(model, isinstance(rows.visit, NewPoints), rows.joint):
        if isinstance(rows.visit, NewPoints):
            nearest, arrivals = model.graph.indices, rows.visit.arrivals
            lists = EnteredLists(arrivals, nearest, rows.labels, rows.n_classes, k_max)
        elif isinstance(rows.visit, HeldOut):
            lists = LeavingLists(rows.visit, rows.labels, rows.n_classes, k_max)

    def in_general(i: int) -> tuple:
        k, beta = int(rule.k[i]), rule.of(i)[0]
        found = None if lists is None else lists.predictive(k, beta)
        predictive, leaves = rows.at(k).predictive(beta) if found is None else found
        listed, absent, log_total = predictive.conditional()
        if leaves is not None:
            log_total = log_total + leaves.value
        return predictive.slots, listed, absent, log_total

    return in_general


def in_tables(model: Model, new: bool) -> bool:
    """Whether tables hold what new points, or held-out rows, change around them."""
    most = TABLE_CLASSES if new else DENSE_CLASSES
    return model.structure == "asymmetric" and model.n_classes <= most


def in_lists(model: Model, new: bool, joint: bool) -> bool:
    """Whether lists of classes tell what new points, or held-out rows, change around them."""
    return model.structure == "asymmetric" and joint and not in_tables(model, new)


def _fast_log_joint(model: Model, rows: OpenLabels, rule: Rule) -> Callable | None:
    """log p(z, z' = c) - log p(z) at the i-th K as a function of i = 0, 1, ..., if it is fast."""
    visit = rows.visit
    if isinstance(visit, HeldOut):
        if not in_tables(model, new=False):
            return None
        leaving = Leaving(visit, rows.labels, rows.n_classes, int(rule.k[-1]), rows.joint)
        return lambda i: leaving.at(int(rule.k[i]), rule.of(i)[0])
    if not isinstance(visit, NewPoints):
        return None
    if model.structure in JOINING and rows.joint and rows.n_classes <= DENSE_CLASSES:

        def joining(i: int) -> np.ndarray:
            k, beta = rule.k[i], rule.of(i)[0]
            near = model.around(i, rule)
            known = model.kinds(i, rule, near, visit.n_rows)
            return log_joint(visit, rows.labels, near, k, beta, known)

        return joining
    if not in_tables(model, new=True):
        return None
    own = OwnTerms(visit.arrivals, rows.labels, rows.n_classes)
    tables: Iterator[Entered] | None = None
    if rows.joint:
        tables, arrivals = model.entered(visit.arrivals, rule)
        pairs = EnteringPairs(arrivals)

    def entering(i: int) -> np.ndarray:
        k, beta = rule.k[i], rule.of(i)[0]
        log_class = own.at(k, beta)
        if tables is not None:
            pairs.add_changes(log_class, next(tables), k)
        return log_class

    return entering


def optimal_by_quadrature(model: Model, rows: OpenLabels) -> Average:
    """K at its largest posterior, beta at its mode there (KOREA optimal), from exact p(K | Y)."""
    average = average_by_quadrature(model, rows)
    best = average.k_probabilities.argmax(axis=1)
    class_probabilities = np.empty_like(average.class_probabilities)
    for i in np.unique(best):
        chosen = np.flatnonzero(best == i)
        field = rows.take(chosen).at(i + 1)
        mode, _, _ = find_mode(model, field, len(chosen))
        class_probabilities[chosen] = class_probabilities_at(field.predictive(mode[:, None])[0])
    return at_best(average, class_probabilities)


def density_by_quadrature(model: Model, rows: OpenLabels, beta: np.ndarray) -> np.ndarray:
    """p(K, beta | Y) of each row at the betas (n_beta,): (n_rows, n_k, n_beta)."""
    rule = model.fine_rule
    log_mass = np.empty((rows.n_rows, len(rule.k)))
    log_p = np.full((rows.n_rows, model.n_k, len(beta)), -np.inf)
    log_sum = model.posterior.log_normalizer + np.log(model.n_k)
    for i, k in enumerate(rule.k):
        field = rows.at(k)
        node, log_weight = rule.of(i)
        _, log_mass[:, i] = normalized(log_weight + _log_total(field, node))
        log_p[:, k - 1] = model.log_density(k, beta)[0] - log_sum + _log_total(field, beta)
    _, log_norm = normalized(log_mass)
    return np.exp(log_p - log_norm[:, None, None])


def _rule(model: Model, rows: OpenLabels) -> Rule:
    return model.rule if rows.own_labels is None else model.rule_held_out


def find_mode(model: Model, field: Field, n_rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mode of log p(beta) sum_c p(z, z' = c | beta, K), its value and curvature: (n_rows,)."""

    def function(beta: np.ndarray) -> tuple:
        value, slope, curvature = model.log_density(field.k, beta, derivatives=True)
        predictive, leaves = field.predictive(beta[:, None], derivatives=True)
        for part in (predictive.total(), leaves):
            if part is not None:
                assert part.slope is not None and part.curvature is not None
                value = value + part.value[:, 0]
                slope = slope + part.slope[:, 0]
                curvature = curvature + part.curvature[:, 0]
        return value, slope, curvature

    mode = maximize(function, np.full(n_rows, model.modes.beta[field.k - 1]))
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
    return Average(
        average.k_probabilities,
        class_probabilities,
        class_probabilities**2,
        average.beta_mean,
        average.beta_std,
    )


def normalized(log_mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights of each row that add up to one, and the log of their sum before."""
    top = log_mass.max(axis=1, keepdims=True)
    weight = np.exp(log_mass - top)
    total = weight.sum(axis=1, keepdims=True)
    return weight / total, (top + np.log(total))[:, 0]
