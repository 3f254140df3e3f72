"""Algorithm 1 read off an interpolation: the same as evaluated in place, or not taken."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_wine, make_blobs
from sklearn.preprocessing import scale

from kfree import KFreeClassifier, korea
from kfree.inference import interpolation
from kfree.inference.interpolation import Interpolants, intervals

STRUCTURES = ("asymmetric", "boltzmann", "boltzmann2")


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(3).permutation(len(y))
    X, y = scale(X)[order], y[order]
    return X[:90], y[:90], X[90:110]


def both(model, X, monkeypatch):
    """What is known of rows by interpolation and in place."""
    served = []
    known = korea._known

    def spy(*args):
        found = known(*args)
        served.append(found is not None and bool(found.good.all()))
        return found

    monkeypatch.setattr(korea, "_known", spy)
    quick = model.posterior(X)
    monkeypatch.setattr(korea, "_known", lambda *args: None)
    return quick, model.posterior(X), served


def assert_same(a, b, tolerance=1e-9):
    for name in ("k_probabilities", "class_probabilities", "beta_mean", "beta_std"):
        assert_allclose(
            getattr(a, name), getattr(b, name), rtol=tolerance, atol=tolerance, err_msg=name
        )


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_interpolation_equals_evaluation(wine, structure, average, monkeypatch):
    X, y, new = wine
    model = KFreeClassifier(
        structure=structure, inference="laplace", average=average, k_max=30
    ).fit(X, y)
    quick, slow, served = both(model, new, monkeypatch)
    assert served[-1]
    assert_same(quick, slow)


@pytest.mark.parametrize("update", ["joint", "conditional"])
def test_so_it_does_for_rows_left_out(wine, update, monkeypatch):
    X, y, _ = wine
    model = KFreeClassifier(inference="laplace", update=update, k_max=30).fit(X, y)
    quick, slow, served = both(model, None, monkeypatch)
    assert served and True in served
    assert_same(quick, slow)


def test_so_it_does_where_tables_are_made_for_each_k(monkeypatch):
    X, y = make_blobs(1300, centers=5, cluster_std=4.0, random_state=0)
    model = KFreeClassifier(inference="laplace", k_max=12).fit(X[:1200], y[:1200])
    quick, slow, served = both(model, X[1200:1230], monkeypatch)
    assert served[-1]
    assert_same(quick, slow)


def test_rows_that_the_interpolation_does_not_serve_are_evaluated(wine, monkeypatch):
    X, y, new = wine
    model = KFreeClassifier(inference="laplace", k_max=20).fit(X, y)
    # Half as many points as it takes.
    monkeypatch.setattr(interpolation, "DIGITS", 0.4 * interpolation.DIGITS)
    quick, slow, served = both(model, new, monkeypatch)
    assert served == [False]
    assert_same(quick, slow)


def test_without_that_check_they_would_be_wrong(wine, monkeypatch):
    X, y, new = wine
    model = KFreeClassifier(inference="laplace", k_max=20).fit(X, y)
    monkeypatch.setattr(interpolation, "DIGITS", 0.2 * interpolation.DIGITS)
    monkeypatch.setattr(korea, "TOLERANCE", np.inf)
    monkeypatch.setattr(korea, "OUTSIDE", np.inf)
    quick, slow, _ = both(model, new, monkeypatch)
    with pytest.raises(AssertionError):
        assert_same(quick, slow)


def test_rows_far_from_the_training_posterior_are_evaluated(wine, monkeypatch):
    X, y, new = wine
    model = KFreeClassifier(inference="laplace", k_max=20).fit(X, y)
    monkeypatch.setattr(korea, "SPARE", -6.0)
    quick, slow, served = both(model, new, monkeypatch)
    assert served == [False]
    assert_same(quick, slow)


@pytest.mark.parametrize("n_classes", [2, 3, 12])
def test_polynomials_equal_a_log_term_and_its_derivatives(n_classes):
    low, high = np.array([0.0, 2.0]), np.array([6.0, 40.0])
    where = intervals(low, high, n_classes)
    others = n_classes - 1

    def term(beta):
        return -np.log1p(others * np.exp(-beta))

    found = Interpolants(where, term(where.beta)[:, None, None, :])
    beta = np.array([[0.01, 0.7, 3.3, 5.9], [2.1, 9.0, 25.0, 39.0]])
    assert where.inside(beta).all()
    values = found.at(beta[:, None, :])[:, 0, 0]
    assert_allclose(values, term(beta), atol=1e-11)
    p = others * np.exp(-beta) / (1.0 + others * np.exp(-beta))
    for j in range(beta.shape[1]):
        value, slope, curvature = found.derivatives(beta[:, j : j + 1])
        assert_allclose(value[:, 0, 0], term(beta)[:, j], atol=1e-11)
        assert_allclose(slope[:, 0, 0], p[:, j], atol=1e-9)
        assert_allclose(curvature[:, 0, 0], (p * p - p)[:, j], atol=1e-7)


def test_too_wide_an_interval_is_refused():
    assert intervals(np.zeros(1), np.full(1, 1e9), 3) is None
