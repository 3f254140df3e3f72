"""Posterior times conditional: class probabilities averaged over K and beta.

    p(z' = c | Y) = sum over K and beta of p(K, beta | Y) p(z' = c | beta, K, Y)

with p(K, beta | Y) by quadrature or by Algorithm 1, averaged ("KOREA average") or taken at its
best ("KOREA optimal").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kfree.inference.laplace import GRID, Gaussians, gaussians
from kfree.inference.mode import maximize
from kfree.likelihood.open_labels import Field, OpenLabels, Predictive
from kfree.likelihood.slots import ClassSlots
from kfree.training import Model


@dataclass(frozen=True)
class Average:
    """What is known of a block of rows."""

    k_probabilities: np.ndarray  # (n_rows, n_k)
    class_probabilities: np.ndarray  # (n_rows, n_classes)
    class_squares: np.ndarray  # (n_rows, n_classes) mean of the squared conditional
    beta_mean: np.ndarray  # (n_rows,)
    beta_std: np.ndarray  # (n_rows,)


class _Sum:
    """Class probabilities of each model, to be weighted once the models' weights are known."""

    def __init__(self, n_rows: int, n_classes: int) -> None:
        self.mean = np.zeros((n_rows, n_classes))
        self.square = np.zeros((n_rows, n_classes))
        self.absent_mean = np.zeros(n_rows)
        self.absent_square = np.zeros(n_rows)

    def add(
        self, slots: ClassSlots, listed: np.ndarray, absent: np.ndarray, weight: np.ndarray
    ) -> None:
        """Add conditionals (n_slots, n), (n_rows, n) with weights (n_rows, n)."""
        owner = np.repeat(np.arange(slots.n_points), np.diff(slots.indptr))
        weighted = weight[owner] * listed
        other = weight * absent
        mean, square = weighted.sum(axis=1), (weighted * listed).sum(axis=1)
        other_mean, other_square = other.sum(axis=1), (other * absent).sum(axis=1)
        if slots.keys is None:
            self.mean += mean.reshape(self.mean.shape)
            self.square += square.reshape(self.square.shape)
            return
        self.mean[owner, slots.classes] += mean - other_mean[owner]
        self.square[owner, slots.classes] += square - other_square[owner]
        self.absent_mean += other_mean
        self.absent_square += other_square

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        mean = self.mean + self.absent_mean[:, None]
        square = self.square + self.absent_square[:, None]
        # A probability can underflow only where beta is beyond any reason; it is never zero.
        mean = np.maximum(mean, np.finfo(float).tiny)
        return mean / mean.sum(axis=1, keepdims=True), np.clip(square, 0.0, mean)


def average_by_quadrature(model: Model, rows: OpenLabels) -> Average:
    """The exact average over K and beta."""
    conditionals = []
    log_mass = np.empty((rows.n_rows, len(model.active), model.rule.beta.shape[1]))
    for i, k in enumerate(model.active + 1):
        predictive, leaves = rows.at(k).predictive(model.rule.beta[i])
        listed, absent, log_total = predictive.conditional()
        log_mass[:, i] = model.rule.log_weight[i] + log_total
        if leaves is not None:
            log_mass[:, i] += leaves.value
        conditionals.append((predictive.slots, listed, absent))
    weight, _ = _normalized(log_mass)
    total = _Sum(rows.n_rows, rows.n_classes)
    for i, (slots, listed, absent) in enumerate(conditionals):
        total.add(slots, listed, absent, weight[:, i])
    k_probabilities = np.zeros((rows.n_rows, model.n_k))
    k_probabilities[:, model.active] = weight.sum(axis=2)
    mean = (weight * model.rule.beta).sum(axis=(1, 2))
    spread = (weight * (model.rule.beta - mean[:, None, None]) ** 2).sum(axis=(1, 2))
    return Average(k_probabilities, *total.result(), mean, np.sqrt(spread))


def average_by_laplace(model: Model, rows: OpenLabels) -> Average:
    """Algorithm 1, line by line (KOREA average)."""
    fields = [rows.at(k) for k in range(1, model.n_k + 1)]
    gauss = _gaussians(model, rows, fields)
    nodes = gauss.grid()
    positive = ~np.isnan(nodes)
    beta = np.where(positive, nodes, gauss.beta_mean[:, None])
    log_weight = np.where(positive[:, None, :], gauss.log_density(beta), -np.inf)
    weight, _ = _normalized(log_weight)  # lambda of (row, K, node)
    total = _Sum(rows.n_rows, rows.n_classes)
    for i, field in enumerate(fields):
        predictive, _ = field.predictive(beta)
        listed, absent, _ = predictive.conditional()
        total.add(predictive.slots, listed, absent, weight[:, i])
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
    log_mass = np.empty((rows.n_rows, len(model.active), model.rule.beta.shape[1]))
    log_p = np.full((rows.n_rows, model.n_k, len(beta)), -np.inf)
    log_sum = model.posterior.log_normalizer + np.log(model.n_k)
    for i, k in enumerate(model.active + 1):
        field = rows.at(k)
        log_mass[:, i] = model.rule.log_weight[i] + _log_total(field, model.rule.beta[i])
        log_p[:, k - 1] = model.log_density(k, beta)[0] - log_sum + _log_total(field, beta)
    _, log_norm = _normalized(log_mass)
    return np.exp(log_p - log_norm[:, None, None])


def density_by_laplace(model: Model, rows: OpenLabels, beta: np.ndarray) -> np.ndarray:
    """The mixture of Gaussians of Algorithm 1 at the betas (n_beta,): (n_rows, n_k, n_beta)."""
    fields = [rows.at(k) for k in range(1, model.n_k + 1)]
    gauss = _gaussians(model, rows, fields)
    return np.exp(gauss.log_density(np.broadcast_to(beta, (rows.n_rows, len(beta)))))


def _gaussians(model: Model, rows: OpenLabels, fields: list[Field]) -> Gaussians:
    """Mode and curvature for each row and each K."""
    found = [_mode(model, field, rows.n_rows) for field in fields]
    mode, log_maximum, curvature = (np.column_stack(values) for values in zip(*found, strict=True))
    return gaussians(log_maximum, mode, curvature)


def _mode(
    model: Model, field: Field, n_rows: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
    total.add(predictive.slots, listed, absent, np.ones_like(absent))
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
    """Weights of each row (first axis) that add up to one, and the log of their sum before."""
    top = log_mass.max(axis=(1, 2), keepdims=True)
    weight = np.exp(log_mass - top)
    total = weight.sum(axis=(1, 2), keepdims=True)
    return weight / total, (top + np.log(total))[:, 0, 0]
