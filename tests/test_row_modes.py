"""Modes of beta found from values alone, against the slow twin, where that is hard."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import naive
from kfree import KFreeClassifier, row_density
from kfree.blocks import PreparedPoints, new_points
from kfree.row_density import RowDensity

RNG = np.random.default_rng(31)


def hub():
    """A new row in the middle of a sphere enters every list."""
    X = RNG.normal(size=(18, 6))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, RNG.integers(0, 3, 18), np.zeros(6), (2, 5, 9)


def separated():
    """No training label is wrong, so that beta is as large as the prior lets it be."""
    z = np.repeat([0, 1], 8)
    X = RNG.normal(size=(16, 2)) + 50.0 * z[:, None]
    return X, z, X[3] + 0.1, (1, 3, 7)


def between():
    """The same, and a new row among one class's points that belongs to either, or to neither."""
    X, z, _, k_values = separated()
    return X, z, np.array([24.0, 25.0]), k_values


def noise():
    X = RNG.normal(size=(14, 2))
    return X, np.arange(14) % 3, RNG.normal(size=2), (1, 4, 11)


def many_classes():
    z = np.concatenate([np.arange(40), RNG.integers(0, 5, 50)])
    return RNG.normal(size=(90, 2)) + (z % 5)[:, None], z, np.array([1.0, 2.0]), (2, 9)


PROBLEMS = {f.__name__: f() for f in (hub, separated, between, noise, many_classes)}
SCALES = (1e-3, 0.3, 10.0, 1e4)


def cases(problem, structure, shape, scale):
    """Densities of the new row at each K, and the twin's terms."""
    X, z, new, k_values = problem
    n_classes = z.max() + 1
    model = KFreeClassifier(
        structure=structure, k_values=k_values, prior_shape=shape, prior_scale=scale
    ).fit(X, z)
    rows = new_points(PreparedPoints(model._model), new[None], True, None)
    for i, k in enumerate(k_values):
        terms = naive.joint_terms(structure, X, z, new, k, n_classes, "joint")
        yield RowDensity(model._model, rows, i), terms


def assert_found(problem, structure, shape, scale):
    for densities, terms in cases(problem, structure, shape, scale):
        mode = densities.modes()
        value, _, curvature = densities.derivatives(mode)
        expected = naive.posterior_mode(terms, shape, scale)
        height, _, bend = naive.log_unnormalized_posterior(terms, expected, shape, scale)
        assert_allclose(value[0], height, rtol=0, atol=1e-10 * max(1.0, abs(height)))
        # In units of its own width: what is off by 1e-8 changes nothing that is asked for.
        assert abs(mode[0] - expected) * np.sqrt(-bend) < 1e-8
        assert_allclose(curvature[0], bend, rtol=1e-8)


@pytest.mark.parametrize("scale", [1e-3, 0.3, 10.0, 1e4])
@pytest.mark.parametrize("structure", naive.STRUCTURES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_modes_heights_and_curvatures(name, structure, scale):
    assert_found(PROBLEMS[name], structure, 2.0, scale)


# A hub's label that agrees with most points, or with few: a mode each. From a random search.
TWO_MODES = [
    ([1, 0, 0, 1, 0, 0], 18, 2, "asymmetric", 2.0, 10.0),
    ([1, 0, 1, 1, 1], 1, 2, "asymmetric", 2.0, 10.0),
    ([1, 0, 1, 1, 1], 4, 2, "asymmetric", 2.0, 10.0),
    ([1, 0, 0, 0, 0, 0, 0, 0], 6, 2, "asymmetric", 2.0, 1e4),
    ([0, 2, 0, 2, 0, 2, 0, 0, 2, 1, 0, 0], 245, 1, "boltzmann2", 1.05, 3.0),
    ([0, 1, 1, 1, 1, 1, 2, 2], 280, 1, "boltzmann2", 1.05, 100.0),
    ([0, 2, 1, 0, 0], 18, 1, "boltzmann", 1.05, 10.0),
    ([0, 0, 2, 1, 0, 0], 4, 1, "asymmetric", 1.05, 10.0),
]


def two_modes(labels, seed):
    X = np.random.default_rng(seed).normal(size=(len(labels), 7))
    return X / np.linalg.norm(X, axis=1, keepdims=True), np.array(labels), np.zeros(7)


@pytest.mark.parametrize(("labels", "seed", "k", "structure", "shape", "scale"), TWO_MODES)
def test_the_higher_of_two_modes(labels, seed, k, structure, shape, scale):
    problem = *two_modes(labels, seed), (k,)
    ((_, terms),) = cases(problem, structure, shape, scale)
    grid = np.geomspace(1e-6, 1e3 + 20.0 * scale, 4000)
    slope = naive.log_unnormalized_posterior(terms, grid, shape, scale)[1]
    assert ((slope[:-1] > 0) & (slope[1:] <= 0)).sum() == 2
    assert_found(problem, structure, shape, scale)


def test_control_a_coarse_stencil_is_seen(monkeypatch):
    monkeypatch.setattr(row_density, "STEP", 1.0)
    with pytest.raises(AssertionError):
        assert_found(PROBLEMS["hub"], "asymmetric", 2.0, 10.0)
