"""Posterior times conditional: class probabilities averaged over K and beta.

    p(z' = c | Y) = sum over K and beta of p(K, beta | Y) p(z' = c | beta, K, Y)

with p(K, beta | Y) by quadrature or by Algorithm 1, averaged ("KOREA average") or taken at its
best ("KOREA optimal").
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kfree.inference.laplace import Gaussians, gaussians
from kfree.inference.mode import maximize
from kfree.inference.quadrature import Rule
from kfree.likelihood.entering import OwnTerms, add_changes, log_joint_of_all
from kfree.likelihood.joining import log_joint
from kfree.likelihood.leaving import Leaving
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


@dataclass(frozen=True)
class Average:
    """What is known of a block of rows."""

    k_probabilities: np.ndarray  # (n_rows, n_k)
    class_probabilities: np.ndarray  # (n_rows, n_classes)
    class_squares: np.ndarray  # (n_rows, n_classes) mean of the squared conditional
    beta_mean: np.ndarray  # (n_rows,)
    beta_std: np.ndarray  # (n_rows,)


class _Sum:
    """Weighted sums of class probabilities and of their squares."""

    def __init__(self, n_rows: int, n_classes: int) -> None:
        self.mean = np.zeros((n_rows, n_classes))
        self.square = np.zeros((n_rows, n_classes))
        self.absent_mean = np.zeros(n_rows)
        self.absent_square = np.zeros(n_rows)

    def add(self, part: _Moments, weight: np.ndarray) -> None:
        """Add what one K says, with a weight for each row."""
        if part.slots.keys is None:
            self.mean += weight[:, None] * part.mean.reshape(self.mean.shape)
            self.square += weight[:, None] * part.square.reshape(self.mean.shape)
            return
        owner, label = part.slots.owner, part.slots.classes
        # Every class gets what an absent one has, a listed class the rest as well.
        self.mean[owner, label] += weight[owner] * (part.mean - part.absent_mean[owner])
        self.square[owner, label] += weight[owner] * (part.square - part.absent_square[owner])
        self.absent_mean += weight * part.absent_mean
        self.absent_square += weight * part.absent_square

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        mean = self.mean + self.absent_mean[:, None]
        square = self.square + self.absent_square[:, None]
        # A probability can underflow only where beta is beyond any reason; it is never zero.
        mean = np.maximum(mean, np.finfo(float).tiny)
        return mean / mean.sum(axis=1, keepdims=True), np.clip(square, 0.0, mean)


@dataclass(frozen=True)
class _Moments:
    """Mean and mean square of the conditionals of one K over its betas."""

    slots: ClassSlots
    mean: np.ndarray  # (n_slots,)
    square: np.ndarray  # (n_slots,)
    absent_mean: np.ndarray  # (n_rows,)
    absent_square: np.ndarray  # (n_rows,)


def _moments(
    slots: ClassSlots, listed: np.ndarray, absent: np.ndarray, weight: np.ndarray
) -> _Moments:
    """Moments of conditionals (n_slots, n) and (n_rows, n) under weights (n_rows, n)."""
    if slots.keys is None:  # every class is listed
        listed = listed.reshape(slots.n_points, slots.n_classes, -1)
        weighted = weight[:, None, :] * listed
        mean, square = weighted.sum(axis=2), np.einsum("ijk,ijk->ij", weighted, listed)
        none = np.zeros(slots.n_points)
        return _Moments(slots, mean.ravel(), square.ravel(), none, none)
    weighted = weight[slots.owner] * listed
    other = weight * absent
    return _Moments(
        slots,
        weighted.sum(axis=1),
        (weighted * listed).sum(axis=1),
        other.sum(axis=1),
        (other * absent).sum(axis=1),
    )


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
    n_active = len(model.active)
    parts = []
    log_mass = np.empty((rows.n_rows, n_active))
    beta_mean = np.empty((rows.n_rows, n_active))
    beta_square = np.empty((rows.n_rows, n_active))
    doubt = np.empty((rows.n_rows, n_active))
    predict = _predictor(model, rows, rule)
    for i in range(n_active):
        beta, log_weight = rule.of(i)
        slots, listed, absent, log_total = predict(i)
        weight, log_mass[:, i] = _normalized(log_weight + log_total)
        parts.append(_moments(slots, listed, absent, weight))
        beta_mean[:, i], beta_square[:, i] = weight @ beta, weight @ (beta * beta)
        doubt[:, i] = rule.doubt(i, weight)
    k_weight, _ = _normalized(log_mass)
    total = _Sum(rows.n_rows, rows.n_classes)
    for i, part in enumerate(parts):
        total.add(part, k_weight[:, i])
    k_probabilities = np.zeros((rows.n_rows, model.n_k))
    k_probabilities[:, model.active] = k_weight
    mean = (k_weight * beta_mean).sum(axis=1)
    variance = (k_weight * beta_square).sum(axis=1) - mean * mean
    std = np.sqrt(np.maximum(variance, 0.0))
    return Average(k_probabilities, *total.result(), mean, std), (k_weight * doubt).sum(axis=1)


def _fits_at_once(model: Model, rows: OpenLabels, rule: Rule) -> bool:
    """Whether all K fit into the same few operations, which are faster for little data."""
    new = isinstance(rows.visit, NewPoints) and model.structure == "asymmetric" and rows.joint
    n_points, n_values = len(model.labels), rows.n_classes * rule.beta.shape[1]
    largest = max(rows.n_rows * n_points, max(rows.n_rows, n_points) * n_values)
    little = n_points <= AT_ONCE_POINTS and len(model.active) * largest <= AT_ONCE_NUMBERS
    return new and little


def _average_at_once(model: Model, rows: OpenLabels, rule: Rule) -> tuple[Average, np.ndarray]:
    assert isinstance(rows.visit, NewPoints)
    nearest = model.graph.indices[:, : model.k_needed]
    share = log_joint_of_all(
        rows.visit.arrivals, nearest, rows.labels, rows.n_classes, model.active + 1, rule.beta
    )  # (n_k, n_rows, n_classes, n_beta)
    high = share.max(axis=2)
    share -= high[:, :, None, :]
    np.exp(share, out=share)
    total = share.sum(axis=2)
    share /= total[:, :, None, :]
    log_mass = np.log(total) + high + rule.log_weight[:, None, :]
    weight, _ = _normalized(log_mass.transpose(1, 0, 2).reshape(rows.n_rows, -1))
    weight = weight.reshape(rows.n_rows, len(model.active), -1)
    k_probabilities = np.zeros((rows.n_rows, model.n_k))
    k_probabilities[:, model.active] = weight.sum(axis=2)
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


def _predictor(model: Model, rows: OpenLabels, rule: Rule) -> Callable:
    """A function of i: slots, conditionals, log of the total mass at the i-th K, in this order."""
    joint = _log_joint(model, rows, rule)
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

    def in_general(i: int) -> tuple:
        predictive, leaves = rows.at(model.active[i] + 1).predictive(rule.of(i)[0])
        listed, absent, log_total = predictive.conditional()
        if leaves is not None:
            log_total = log_total + leaves.value
        return predictive.slots, listed, absent, log_total

    return in_general


def in_tables(model: Model, new: bool) -> bool:
    """Whether tables hold what new points, or held-out rows, change around them."""
    most = TABLE_CLASSES if new else DENSE_CLASSES
    return model.structure == "asymmetric" and model.n_classes <= most


def _log_joint(model: Model, rows: OpenLabels, rule: Rule) -> Callable | None:
    """A function of i: log p(z, z' = c) - log p(z) at the i-th K, where there is a fast way."""
    visit = rows.visit
    if isinstance(visit, HeldOut):
        if not in_tables(model, new=False):
            return None
        leaving = Leaving(visit, rows.labels, rows.n_classes, model.k_needed, rows.joint)
        return lambda i: leaving.at(int(model.active[i]) + 1, rule.of(i)[0])
    if not isinstance(visit, NewPoints):
        return None
    if model.structure in JOINING and rows.joint and rows.n_classes <= DENSE_CLASSES:

        def joining(i: int) -> np.ndarray:
            k, beta = model.active[i] + 1, rule.of(i)[0]
            return log_joint(visit, rows.labels, model.around(i, rule), k, beta)

        return joining
    if not in_tables(model, new=True):
        return None
    own = OwnTerms(visit.arrivals, rows.labels, rows.n_classes)
    tables, arrivals = None, visit.arrivals
    if rows.joint:
        tables, arrivals = model.entered(arrivals, rule)

    def entering(i: int) -> np.ndarray:
        k, beta = model.active[i] + 1, rule.of(i)[0]
        log_class = own.at(k, beta)
        if tables is not None:
            add_changes(log_class, arrivals, tables[i], k)
        return log_class

    return entering


def average_by_laplace(model: Model, rows: OpenLabels) -> Average:
    """Algorithm 1, line by line (KOREA average)."""
    fields = [rows.at(k) for k in range(1, model.n_k + 1)]
    gauss = _gaussians(model, rows, fields)
    nodes = gauss.grid()
    positive = ~np.isnan(nodes)
    beta = np.where(positive, nodes, gauss.beta_mean[:, None])
    log_weight = np.where(positive[:, None, :], gauss.log_density(beta), -np.inf)
    flat, _ = _normalized(log_weight.reshape(rows.n_rows, -1))
    weight = flat.reshape(log_weight.shape)  # lambda of (row, K, node)
    total = _Sum(rows.n_rows, rows.n_classes)
    for i, field in enumerate(fields):
        predictive, _ = field.predictive(beta)
        listed, absent, _ = predictive.conditional()
        total.add(_moments(predictive.slots, listed, absent, weight[:, i]), np.ones(rows.n_rows))
    return Average(gauss.k_probabilities, *total.result(), gauss.beta_mean, gauss.beta_std)


def optimal_by_quadrature(model: Model, rows: OpenLabels) -> Average:
    """K at its largest posterior, beta at its mode there (KOREA optimal), from exact p(K | Y)."""
    average = average_by_quadrature(model, rows)
    best = average.k_probabilities.argmax(axis=1)
    class_probabilities = np.empty_like(average.class_probabilities)
    for i in np.unique(best):
        chosen = np.flatnonzero(best == i)
        field = rows.take(chosen).at(i + 1)
        mode, _, _ = _mode(model, field, len(chosen))
        class_probabilities[chosen] = class_probabilities_at(field.predictive(mode[:, None])[0])
    return _at_best(average, class_probabilities)


def optimal_by_laplace(model: Model, rows: OpenLabels) -> Average:
    """K* = argmax alpha_K and beta = mu_K*, as Algorithm 1 has them (KOREA optimal)."""
    fields = [rows.at(k) for k in range(1, model.n_k + 1)]
    gauss = _gaussians(model, rows, fields)
    best = gauss.k_probabilities.argmax(axis=1)
    class_probabilities = np.empty((rows.n_rows, rows.n_classes))
    for i in np.unique(best):
        chosen = np.flatnonzero(best == i)
        predictive, _ = rows.take(chosen).at(i + 1).predictive(gauss.mean[chosen, i, None])
        class_probabilities[chosen] = class_probabilities_at(predictive)
    average = Average(
        gauss.k_probabilities,
        class_probabilities,
        class_probabilities,
        gauss.beta_mean,
        gauss.beta_std,
    )
    return _at_best(average, class_probabilities)


def density_by_quadrature(model: Model, rows: OpenLabels, beta: np.ndarray) -> np.ndarray:
    """p(K, beta | Y) of each row at the betas (n_beta,): (n_rows, n_k, n_beta)."""
    rule = model.fine_rule
    log_mass = np.empty((rows.n_rows, len(model.active)))
    log_p = np.full((rows.n_rows, model.n_k, len(beta)), -np.inf)
    log_sum = model.posterior.log_normalizer + np.log(model.n_k)
    for i, k in enumerate(model.active + 1):
        field = rows.at(k)
        node, log_weight = rule.of(i)
        _, log_mass[:, i] = _normalized(log_weight + _log_total(field, node))
        log_p[:, k - 1] = model.log_density(k, beta)[0] - log_sum + _log_total(field, beta)
    _, log_norm = _normalized(log_mass)
    return np.exp(log_p - log_norm[:, None, None])


def density_by_laplace(model: Model, rows: OpenLabels, beta: np.ndarray) -> np.ndarray:
    """The mixture of Gaussians of Algorithm 1 at the betas (n_beta,): (n_rows, n_k, n_beta)."""
    fields = [rows.at(k) for k in range(1, model.n_k + 1)]
    gauss = _gaussians(model, rows, fields)
    return np.exp(gauss.log_density(np.broadcast_to(beta, (rows.n_rows, len(beta)))))


def _rule(model: Model, rows: OpenLabels) -> Rule:
    return model.rule if rows.own_labels is None else model.rule_held_out


def _gaussians(model: Model, rows: OpenLabels, fields: list[Field]) -> Gaussians:
    """Mode and curvature for each row and each K."""
    found = [_mode(model, field, rows.n_rows) for field in fields]
    mode, log_maximum, curvature = (np.column_stack(values) for values in zip(*found, strict=True))
    return gaussians(log_maximum, mode, curvature)


def _mode(model: Model, field: Field, n_rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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

    mode = maximize(function, np.full(n_rows, model.posterior.modes.beta[field.k - 1]))
    value, _, curvature = function(mode)
    return mode, value, curvature


def _log_total(field: Field, beta: np.ndarray) -> np.ndarray:
    predictive, leaves = field.predictive(beta)
    total = predictive.total().value
    return total if leaves is None else total + leaves.value


def class_probabilities_at(predictive: Predictive) -> np.ndarray:
    """Class probabilities at one beta for each row: (n_rows, n_classes)."""
    listed, absent, _ = predictive.conditional()
    total = _Sum(len(absent), predictive.slots.n_classes)
    one = np.ones_like(absent)
    total.add(_moments(predictive.slots, listed, absent, one), one[:, 0])
    return total.result()[0]


def _at_best(average: Average, class_probabilities: np.ndarray) -> Average:
    return Average(
        average.k_probabilities,
        class_probabilities,
        class_probabilities**2,
        average.beta_mean,
        average.beta_std,
    )


def _normalized(log_mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights of each row that add up to one, and the log of their sum before."""
    top = log_mass.max(axis=1, keepdims=True)
    weight = np.exp(log_mass - top)
    total = weight.sum(axis=1, keepdims=True)
    return weight / total, (top + np.log(total))[:, 0]
