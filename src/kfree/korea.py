"""Algorithm 1 of the paper (KOREA) for rows whose label is open.

Each row and each K has a mode of beta and a curvature there, and each row its own grid of beta.
With few classes the likelihood is evaluated at the same betas for all rows and interpolated between
them, and every mode and every grid is read off, which takes a tenth of the time. Rows for which
that is not good enough, and those among many classes, are evaluated where they ask for it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from kfree.averaging import Average, at_best, class_probabilities_at
from kfree.candidates import most_probable
from kfree.inference.interpolation import Interpolants, Intervals, intervals
from kfree.inference.laplace import Gaussians, gaussians
from kfree.inference.mode import maximize
from kfree.likelihood.class_sums import ClassSums, normalized
from kfree.likelihood.few_classes import FewClasses, are_few
from kfree.likelihood.open_labels import OpenLabels
from kfree.reach import most_slope
from kfree.row_density import RowDensity
from kfree.training import Model

# Candidates that stay this far below the best whatever the open label does (e^-45 < 3e-20) keep the
# Gaussians of the training labels.
HOPELESS = 45.0
# Log weights this far below the largest do not count (e^-32 is about 1e-14).
NEGLIGIBLE = 32.0
# How many deviations beyond these the interpolation goes at least, for a label moves the mode; to
# the right it goes as far as the nodes of the exact way, too.
SPARE = 2.0
# How far an interpolated log likelihood may be off; and how much weight may lie outside, where the
# class probabilities at the end of the interval stand for those beyond.
TOLERANCE = 1e-9
OUTSIDE = 1e-8
# A smaller step to the mode, as a part of beta, is the last. Its square is below what can be told.
STEP = 1e-7
# Newton's method needs half as many, unless the mode is outside.
N_STEPS = 12


def average_by_laplace(model: Model, rows: OpenLabels) -> Average:
    """Algorithm 1, line by line (KOREA average)."""
    return _for_each_row(model, rows, _average_between, _average_in_place)


def optimal_by_laplace(model: Model, rows: OpenLabels) -> Average:
    """K* = argmax alpha_K and beta = mu_K*, as Algorithm 1 has them (KOREA optimal)."""
    gauss = _gaussians(model, rows)
    best = most_probable(gauss.k_probabilities)
    class_probabilities = class_probabilities_at(rows, best, gauss.mean[np.arange(len(best)), best])
    known = gauss.k_probabilities, class_probabilities, class_probabilities
    return at_best(Average(*known, gauss.beta_mean, gauss.beta_std), class_probabilities)


def density_by_laplace(model: Model, rows: OpenLabels, beta: np.ndarray) -> np.ndarray:
    """The mixture of Gaussians of Algorithm 1 at the betas (n_beta,): (n_rows, n_k, n_beta)."""
    nodes = np.broadcast_to(beta, (rows.n_rows, len(beta)))
    return np.exp(_gaussians(model, rows).log_density(nodes))


def _gaussians(model: Model, rows: OpenLabels) -> Gaussians:
    """Mode and curvature for each row and each K."""

    def between(model: Model, known: _Known) -> tuple[Gaussians, np.ndarray]:
        return known.gauss, known.good

    return _for_each_row(model, rows, between, _gaussians_in_place)


def _for_each_row(model: Model, rows: OpenLabels, between, in_place):
    """What `between` reads off the interpolation; rows that it does not serve, by `in_place`."""
    known = _known(model, rows)
    if known is None:
        return in_place(model, rows)
    found, good = between(model, known)
    rest = np.flatnonzero(~good)
    if len(rest):
        better = in_place(model, rows.take(rest))
        for field in dataclasses.fields(found):
            getattr(found, field.name)[rest] = getattr(better, field.name)
    return found


@dataclass(frozen=True)
class _Known:
    """log p(z, z' = c | beta, K) of each row as a function of beta, and the Gaussians from it."""

    near: np.ndarray  # (n_near,) the candidates that are not hopeless
    likelihood: Interpolants  # of (n_near, n_rows, n_classes)
    gauss: Gaussians
    good: np.ndarray  # (n_rows,) whether the interpolation serves the row


def _known(model: Model, rows: OpenLabels) -> _Known | None:
    if not are_few(rows.n_classes, rows.table.k[-1]):
        return None
    alone, near = training_gaussians(model), _near(model, rows)
    behind = model.posterior.log_mass.max() - model.posterior.log_mass
    where = _intervals(model, alone, near, behind[near])
    if where is None:
        return None
    (training,) = model.likelihood.curves(near)(where.beta, False, np.arange(len(near)))
    values = FewClasses(rows).by_label
    log_class = np.empty((len(near), rows.n_rows, rows.n_classes, where.n_points))
    for j, i in enumerate(near):
        log_class[j] = values(int(i), where.beta[j]).value.reshape(log_class.shape[1:])
    log_class += training[:, None, None, :]
    likelihood = Interpolants(where, log_class)

    def function(beta: np.ndarray) -> tuple:
        value, slope, curvature = likelihood.derivatives(beta)
        share, total = normalized(value.reshape(-1, rows.n_classes))
        share = share.reshape(value.shape)
        mean = (share * slope).sum(axis=2)
        spread = (share * (slope - mean[:, :, None]) ** 2).sum(axis=2)
        prior = model.prior.derivatives(beta)
        return (
            total.reshape(beta.shape) + prior[0],
            mean + prior[1],
            (share * curvature).sum(axis=2) + spread + prior[2],
        )

    # A sum over classes may have several modes: the highest is looked for.
    height = logsumexp(log_class, axis=2) + model.prior.log_density(where.beta)[:, None, :]
    start = np.take_along_axis(where.beta, height.argmax(axis=2), axis=1)
    mode = maximize(function, start, N_STEPS, STEP)
    log_maximum, slope, curvature = function(mode)
    curved = curvature < 0
    log_maximum = log_maximum + model.posterior.log_prior[near, None]
    found = gaussians(log_maximum.T, mode.T, np.where(curved, curvature, -1.0).T)
    matters = found.k_probabilities.T > TOLERANCE
    found_it = curved & (np.abs(slope) <= STEP * mode * np.abs(curvature)) & where.inside(mode)
    sound = found_it & (likelihood.tail.max(axis=2) < TOLERANCE)
    good = (sound | ~matters).all(axis=0)
    return _Known(near, likelihood, _with_hopeless(alone, near, found), good)


def _near(model: Model, rows: OpenLabels) -> np.ndarray:
    """The candidates that are not hopeless."""
    posterior = model.posterior
    reached = posterior.curves.log_tilted(most_slope(model, rows).max(axis=0)) + posterior.log_prior
    return np.flatnonzero(reached > posterior.log_mass.max() - HOPELESS)


def _with_hopeless(alone: Gaussians, near: np.ndarray, found: Gaussians) -> Gaussians:
    """The Gaussians of all candidates from those that are near and those of the training labels."""
    n_rows = len(found.mean)
    mean, std = (np.repeat(values, n_rows, axis=0) for values in (alone.mean, alone.std))
    k_probabilities = np.zeros_like(mean)
    mean[:, near], std[:, near], k_probabilities[:, near] = (
        found.mean,
        found.std,
        found.k_probabilities,
    )
    return Gaussians(mean, std, k_probabilities)


def _intervals(
    model: Model, alone: Gaussians, near: np.ndarray, behind: np.ndarray
) -> Intervals | None:
    """For each K the betas that can have weight; the fewer, the less probable it is."""
    mean, std = alone.mean[0, near], alone.std[0, near]
    reach = (np.sqrt(2.0 * np.maximum(0.0, NEGLIGIBLE - behind)) + SPARE) * std
    often = 2.0 if model.structure == "boltzmann" else 1.0
    # The nodes of the exact way reach as far as most labels carry beta: a label may make a second
    # mode there, which is higher.
    curves = model.posterior.curves.take(near)
    last = np.where(curves.log_mass > -np.inf, curves.beta, 0.0).max(axis=1)
    low, high = np.maximum(0.0, mean - reach), np.maximum(mean + reach, last)
    return intervals(low, high, model.n_classes, often)


def _average_between(model: Model, known: _Known) -> tuple[Average, np.ndarray]:
    gauss = known.gauss
    beta, weight = _grid(gauss)
    weight = weight.transpose(1, 0, 2)[known.near]
    used = weight.max(axis=(0, 1)) > 1e-3 * TOLERANCE
    beta, weight = beta[:, used], weight[:, :, used]
    nodes = np.broadcast_to(beta, weight.shape)
    share = known.likelihood.at(nodes)  # (n_near, n_rows, n_classes, n_nodes)
    share -= share.max(axis=2, keepdims=True)
    np.exp(share, out=share)
    share /= share.sum(axis=2, keepdims=True)
    weighted = share * weight[:, :, None, :]
    mean = np.maximum(weighted.sum(axis=(0, 3)), np.finfo(float).tiny)
    mean /= mean.sum(axis=1, keepdims=True)
    square = np.clip(np.einsum("krcq,krcq->rc", weighted, share), 0.0, mean)
    outside = (weight * ~known.likelihood.where.inside(nodes)).sum(axis=(0, 2))
    average = Average(gauss.k_probabilities, mean, square, gauss.beta_mean, gauss.beta_std)
    return average, known.good & (outside < OUTSIDE)


def _grid(gauss: Gaussians) -> tuple[np.ndarray, np.ndarray]:
    """S_beta of each row (n_rows, n_nodes), and lambda of (row, K, node)."""
    nodes = gauss.grid()
    positive = ~np.isnan(nodes)
    beta = np.where(positive, nodes, gauss.beta_mean[:, None])
    log_weight = np.where(positive[:, None, :], gauss.log_density(beta), -np.inf)
    weight, _ = normalized(log_weight.reshape(len(beta), -1))
    return beta, weight.reshape(log_weight.shape)


def _average_in_place(model: Model, rows: OpenLabels) -> Average:
    gauss = _gaussians_in_place(model, rows)
    beta, weight = _grid(gauss)
    total = ClassSums(rows.n_rows, rows.n_classes)
    for i in np.flatnonzero(gauss.k_probabilities.any(axis=0)):
        total.add(rows.at(int(i)).by_label(beta).conditional(), weight[:, i])
    return Average(gauss.k_probabilities, *total.result(), gauss.beta_mean, gauss.beta_std)


def _gaussians_in_place(model: Model, rows: OpenLabels) -> Gaussians:
    near = _near(model, rows)
    log_maximum, mode, curvature = np.empty((3, rows.n_rows, len(near)))
    for j, i in enumerate(near.tolist()):
        densities = RowDensity(model, rows, i)
        mode[:, j] = densities.modes()
        log_maximum[:, j], _, curvature[:, j] = densities.derivatives(mode[:, j])
    found = gaussians(log_maximum + model.posterior.log_prior[near], mode, curvature)
    return _with_hopeless(training_gaussians(model), near, found)


def training_gaussians(model: Model) -> Gaussians:
    """Algorithm 1's approximation, for the training labels alone: n_rows = 1."""
    found = np.empty((3, 1, model.n_k))
    for which, curves in model.likelihood.each():
        place = np.arange(len(which))

        def function(beta: np.ndarray, curves=curves, place=place) -> tuple:
            of_data = curves(beta[:, None], True, place)
            of_prior = model.prior.derivatives(beta)
            return tuple(a[:, 0] + b for a, b in zip(of_data, of_prior, strict=True))

        mode = maximize(function, model.posterior.curves.mode[which])
        value, _, curvature = function(mode)
        found[:, 0, which] = value, mode, curvature
    value, mode, curvature = found
    return gaussians(value + model.posterior.log_prior, mode, curvature)
