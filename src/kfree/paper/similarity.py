"""How like the sampler's density is to KOREA's and to the exact one, by the number of draws."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kfree.classifier import KFreeClassifier
from kfree.displays import beta_grid, k_range
from kfree.evaluation.data import Dataset
from kfree.inference.metropolis import Draws
from kfree.paper.settings import Settings
from kfree.paper.unit import Unit, divergence, first_fold

NAME = "similarity"

MEASURES = ("RMSE", "KLD", "PSNR", "SSIM")
REFERENCES = ("KOREA", "exact")
# SSIM slides a window of 7 by 7 over the image, which must not be narrower.
WINDOW = 7
# Densities are averaged over a cell by this many points, so that a cell holds what a histogram's
# cell is expected to hold.
POINTS_PER_CELL = 8


def units(settings: Settings, dataset: Dataset) -> list[Unit]:
    """One piece of work for each data set."""
    return [Unit(NAME, (dataset.name,), partial(measure, settings, dataset))]


def measure(settings: Settings, dataset: Dataset) -> dict:
    """Draw once, and compare the beginnings of each chain with both densities."""
    fold = first_fold(settings, dataset)
    k_max = settings.k_most(len(fold.y_train))
    row = fold.X_test[:1]
    posteriors = {
        name: KFreeClassifier(k_values="all", inference=inference, k_max=k_max)
        .fit(fold.X_train, fold.y_train)
        .posterior(row)
        for name, inference in (("KOREA", "laplace"), ("exact", "quadrature"))
    }
    exact = posteriors["exact"]
    beta = beta_grid(exact.beta_mean[0], exact.beta_std[0])
    edges = np.linspace(beta[0], beta[-1], settings.n_beta + 1)
    n_k = min(k_max, max(k_range(exact.k_probabilities[0]).stop, WINDOW))
    references = {
        name: cell_masses(posterior, edges)[:n_k] for name, posterior in posteriors.items()
    }
    draws = _draws(settings, k_max, fold, row)
    values = {
        reference: {
            name: [
                [
                    compare(histogram(draws, chain, count, edges)[:n_k], image)[name]
                    for chain in range(settings.n_chains)
                ]
                for count in settings.counts
            ]
            for name in MEASURES
        }
        for reference, image in references.items()
    }
    return {
        "counts": list(settings.counts),
        "values": values,  # reference -> measure -> (n_counts, n_chains)
        "korea_to_exact": compare(references["KOREA"], references["exact"]),
        "acceptance": float(draws.acceptance.mean()),
        "k": list(range(1, k_max + 1)),
        "k_probabilities": {
            "KOREA": posteriors["KOREA"].k_probabilities[0].tolist(),
            "exact": exact.k_probabilities[0].tolist(),
        },
        # The first chain's p(K | Y), for the comparison that the paper draws for wine.
        "k_frequencies": {
            str(count): frequencies(draws.k[0, 0, :count], k_max).tolist()
            for count in settings.counts
        },
    }


def _draws(settings: Settings, k_max: int, fold, row: np.ndarray) -> Draws:
    sampler = KFreeClassifier(
        k_values="all",
        inference="metropolis",
        k_max=k_max,
        n_draws=max(settings.counts),
        n_burn_in=settings.n_burn_in,
        n_chains=settings.n_chains,
        random_state=settings.random_state,
    )
    with warnings.catch_warnings():
        # How far short chains are off is what is measured here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return sampler.fit(fold.X_train, fold.y_train).sample(row)


def cell_masses(posterior, edges: np.ndarray) -> np.ndarray:
    """The probability of each cell of (K, beta), scaled to add up to one: (n_k, n_cells)."""
    n_cells = len(edges) - 1
    inner = (np.arange(n_cells * POINTS_PER_CELL) + 0.5) / POINTS_PER_CELL
    beta = edges[0] + inner * (edges[1] - edges[0])
    density = posterior.density(beta)[0]
    mass = density.reshape(len(density), n_cells, POINTS_PER_CELL).mean(axis=2)
    return mass / mass.sum()


def histogram(draws: Draws, chain: int, count: int, edges: np.ndarray) -> np.ndarray:
    """The share of a chain's first draws in each cell: (n_k, n_cells)."""
    k, beta = draws.k[0, chain, :count], draws.beta[0, chain, :count]
    k_edges = np.arange(draws.k.max() + 1) + 0.5
    counts, _, _ = np.histogram2d(k, beta, bins=(k_edges, edges))
    return counts / max(counts.sum(), 1.0)


def frequencies(k: np.ndarray, k_max: int) -> np.ndarray:
    """The share of each K among draws."""
    return np.bincount(k, minlength=k_max + 1)[1 : k_max + 1] / len(k)


def compare(image: np.ndarray, reference: np.ndarray) -> dict[str, float]:
    """The four measures of the paper. The reference's largest value is the peak."""
    from skimage.metrics import peak_signal_noise_ratio, structural_similarity

    wide = np.zeros_like(reference)
    wide[: len(image)] = image
    peak = float(reference.max())
    with np.errstate(divide="ignore"):  # two equal images: infinite
        ratio = float(peak_signal_noise_ratio(reference, wide, data_range=peak))
    return {
        "RMSE": float(np.sqrt(np.mean((wide - reference) ** 2))),
        "KLD": float(divergence(wide.ravel(), reference.ravel())),
        "PSNR": ratio,
        "SSIM": float(structural_similarity(reference, wide, data_range=peak, win_size=WINDOW)),
    }
