"""Predictions from draws: the paper's MCMC, both of its variants.

The joint variant walks over (K, beta, z') for every row. The other walks over (K, beta) given the
training labels once; rows are then classified by their own conditionals, averaged over the draws,
or at the estimates of K and beta as the paper has it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kfree.averaging import Average, class_probabilities_at
from kfree.inference.metropolis import Draws, Settings, sample
from kfree.likelihood.open_labels import OpenLabels
from kfree.likelihood.states import RowStates, TrainingStates
from kfree.training import Model

# How many (row, class, draw) conditionals are held at a time.
BLOCK_CONDITIONALS = 1 << 20


def streams(seed: int, rows: np.ndarray) -> list[np.random.Generator]:
    """A generator for each row, the same whatever other rows there are."""
    return [np.random.default_rng([seed, int(row)]) for row in rows]


def draw_training(
    model: Model, settings: Settings, seed: int, progress: Callable | None = None
) -> Draws:
    """Draws from p(K, beta | z): n_rows = 1."""
    likelihood = TrainingStates(model.likelihood.curves(np.arange(model.n_k)))

    def target(k: np.ndarray, beta: np.ndarray) -> tuple:
        log_prior = model.candidates.log_prior[k] + model.prior.log_density(beta)
        return likelihood.at(k, beta) + log_prior, None

    generator = [np.random.default_rng([seed])]
    start = model.posterior.curves.mode
    return sample(target, model.candidates.k, start, settings, generator, progress)


def draw_rows(
    model: Model,
    rows: OpenLabels,
    settings: Settings,
    generators: list[np.random.Generator],
    progress: Callable | None = None,
) -> Draws:
    """Draws from p(K, beta, z' | Y) for each row."""
    likelihood = TrainingStates(model.likelihood.curves(np.arange(model.n_k)))
    states = RowStates(rows, model.n_k)
    row = np.repeat(np.arange(rows.n_rows), settings.n_chains)

    def target(k: np.ndarray, beta: np.ndarray) -> tuple:
        log_total, chances = states.at(row, k, beta)
        log_prior = model.candidates.log_prior[k] + model.prior.log_density(beta)
        return likelihood.at(k, beta) + log_prior + log_total, chances

    start = model.posterior.curves.mode
    return sample(target, model.candidates.k, start, settings, generators, progress)


def average_of_draws(model: Model, rows: OpenLabels, draws: Draws, average: bool) -> Average:
    """What the draws of each row say of it."""
    assert draws.class_probabilities is not None and draws.class_squares is not None
    k_probabilities = frequencies(draws, model.candidates.k)
    beta = draws.beta.reshape(len(draws.beta), -1)
    mean, square = draws.class_probabilities, draws.class_squares
    if not average:
        mean = class_probabilities_at(rows, *_estimates(model, draws, k_probabilities))
        square = mean**2
    mean = np.maximum(mean, np.finfo(float).tiny)
    return Average(k_probabilities, mean, square, beta.mean(axis=1), beta.std(axis=1))


def average_of_training_draws(
    model: Model, rows: OpenLabels, draws: Draws, average: bool
) -> Average:
    """The rows' own conditionals over draws of (K, beta) given the training labels."""
    k, every_beta = _places(draws, model.candidates.k), draws.beta.ravel()
    k_weight = np.zeros((rows.n_rows, model.n_k))
    beta_sum, beta_square = np.zeros(rows.n_rows), np.zeros(rows.n_rows)
    total = np.zeros((2, rows.n_rows, rows.n_classes))  # of the conditionals and their squares
    for value in np.unique(k):
        field = rows.at(int(value))
        beta = every_beta[k == value]
        step = max(1, BLOCK_CONDITIONALS // (rows.n_rows * rows.n_classes))
        for start in range(0, len(beta), step):
            part = beta[start : start + step]
            known = field.by_label(part).conditional()
            # Rows that are held out: their own term is divided out of the posterior.
            weight, table = np.exp(known.log_total), known.table()
            weighted = weight[:, None, :] * table
            total += [weighted.sum(axis=2), (weighted * table).sum(axis=2)]
            k_weight[:, value] += weight.sum(axis=1)
            beta_sum += weight @ part
            beta_square += weight @ (part * part)
    weight = k_weight.sum(axis=1)
    mean, square = total / weight[:, None]
    beta_mean = beta_sum / weight
    beta_std = np.sqrt(np.maximum(beta_square / weight - beta_mean**2, 0.0))
    if not average:
        best, beta = _estimates(model, draws, frequencies(draws, model.candidates.k))
        mean = class_probabilities_at(
            rows, np.repeat(best, rows.n_rows), np.repeat(beta, rows.n_rows)
        )
        square = mean**2
    mean = np.maximum(mean, np.finfo(float).tiny)
    return Average(k_weight / weight[:, None], mean, square, beta_mean, beta_std)


def density_of_draws(draws: Draws, k_values: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """A histogram of the draws around the betas (n_beta,), increasing: (n_rows, n_k, n_beta)."""
    middle = 0.5 * (beta[1:] + beta[:-1])
    if len(beta) == 1:
        edges = beta[0] * np.array([0.5, 1.5])
    else:
        edges = np.concatenate([[beta[0] - (middle[0] - beta[0])], middle])
        edges = np.append(edges, beta[-1] + (beta[-1] - middle[-1]))
    n_rows, n_k = len(draws.k), len(k_values)
    row = np.repeat(np.arange(n_rows), draws.k[0].size)
    cell = np.searchsorted(edges, draws.beta.ravel(), side="right") - 1
    inside = (cell >= 0) & (cell < len(beta))
    flat = ((row * n_k + _places(draws, k_values)) * len(beta) + cell)[inside]
    counts = np.bincount(flat, minlength=n_rows * n_k * len(beta))
    return counts.reshape(n_rows, n_k, len(beta)) / (np.diff(edges) * draws.k[0].size)


def frequencies(draws: Draws, k_values: np.ndarray) -> np.ndarray:
    """How often each candidate of K was drawn for each row: (n_rows, n_k)."""
    n_rows, n_k = len(draws.k), len(k_values)
    row = np.repeat(np.arange(n_rows), draws.k[0].size)
    counts = np.bincount(row * n_k + _places(draws, k_values), minlength=n_rows * n_k)
    return counts.reshape(n_rows, n_k) / draws.k[0].size


def _places(draws: Draws, k_values: np.ndarray) -> np.ndarray:
    """Where each draw of K stands among the candidates: (n_draws of all rows,)."""
    return np.searchsorted(k_values, draws.k.ravel())


def _estimates(
    model: Model, draws: Draws, k_probabilities: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The most frequent candidate of each row, and the mean of beta there."""
    best = k_probabilities.argmax(axis=1)
    chosen = draws.k == model.candidates.k[best][:, None, None]
    beta = np.where(chosen, draws.beta, 0.0).sum(axis=(1, 2)) / chosen.sum(axis=(1, 2))
    return best, beta
