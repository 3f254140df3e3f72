"""K that a sample of the points shows to be hopeless are left out, and no other."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kfree import KFreeClassifier, screening, training

N = 4000


def data(n_classes):
    random = np.random.default_rng(1)
    center = random.normal(size=(60, 2))
    cluster = random.integers(60, size=N + 50)
    X = center[cluster] + 0.15 * random.normal(size=(N + 50, 2))
    y = cluster % n_classes
    wrong = random.random(len(y)) < 0.1
    y[wrong] = random.integers(n_classes, size=wrong.sum())
    return X[:N], y[:N], X[N:]


def fit(n_classes, structure, k_max=80):
    X, y, _ = data(n_classes)
    return KFreeClassifier(structure=structure, k_max=k_max).fit(X, y)


@pytest.fixture
def screened(monkeypatch):
    """As if so few points were many."""
    monkeypatch.setattr(training, "_are_many", lambda *_: True)
    return monkeypatch


@pytest.mark.parametrize("n_classes", [5, 30])
@pytest.mark.parametrize("structure", ["asymmetric", "boltzmann", "boltzmann2"])
def test_changes_nothing(n_classes, structure, screened):
    found = fit(n_classes, structure)
    screened.setattr(training, "_are_many", lambda *_: False)
    expected = fit(n_classes, structure)
    span = found._model.modes.near()
    assert span.stop - span.start < 60  # something was left out
    np.testing.assert_allclose(found.k_posterior_, expected.k_posterior_, rtol=0, atol=1e-9)
    assert found.beta_mean_ == pytest.approx(expected.beta_mean_, rel=1e-9)
    assert found.beta_std_ == pytest.approx(expected.beta_std_, rel=1e-7)
    new = data(n_classes)[2]
    np.testing.assert_allclose(
        found.predict_proba(new), expected.predict_proba(new), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("n_classes", [5, 30])
def test_looks_at_few_k(n_classes, screened):
    screened.setattr(screening, "FIRST_SAMPLE", N // 4)
    model = fit(n_classes, "asymmetric")._model
    found = screening.screen(model.table, model.labels, n_classes, 80, model.prior, None)
    near = model.modes.near()
    assert found.span.start <= near.start < near.stop <= found.span.stop
    assert found.span != slice(0, 80)


def test_would_be_noticed_if_it_left_out_the_best(screened):
    def careless(*args):
        found = screening.screen(*args)
        best = int(found.modes.log_evidence.argmax())
        found.modes.log_evidence[: best + 1] = -1000.0
        return screening.Screening(slice(best + 1, 80), found.modes)

    screened.setattr(training, "screen", careless)
    found = fit(5, "asymmetric")
    screened.undo()
    assert np.abs(found.k_posterior_ - fit(5, "asymmetric").k_posterior_).max() > 1e-3


@pytest.mark.parametrize("n_rare", [2, 10, 40])
def test_rare_points_are_not_overlooked(n_rare, screened):
    """Threes of a third class, in no sample or hardly any, and all of them for a small K."""
    random = np.random.default_rng(2)
    X = random.normal(size=(20_000, 2))
    y = (X[:, 0] > 0).astype(int)
    for _ in range(n_rare):
        rare = random.integers(len(X), size=3)
        X[rare], y[rare] = random.normal(size=2) + 1e-4 * random.normal(size=(3, 2)), 2
    found = KFreeClassifier(k_max=40).fit(X, y)
    screened.setattr(training, "_are_many", lambda *_: False)
    expected = KFreeClassifier(k_max=40).fit(X, y)
    np.testing.assert_allclose(found.k_posterior_, expected.k_posterior_, rtol=0, atol=1e-9)


def test_few_points_are_all_looked_at():
    model = fit(5, "asymmetric")._model
    rows = np.arange(200)
    table = model.table.take(rows)
    found = screening.screen(table, model.labels[rows], 5, 80, model.prior, None)
    assert found.span == slice(0, 80)


@pytest.mark.parametrize("n_classes", [5, 30])
@pytest.mark.parametrize("inference", ["laplace", "metropolis"])
def test_who_looks_at_every_k_is_not_screened(n_classes, inference, screened):
    X, y, _ = data(n_classes)
    options = {"n_draws": 20, "n_burn_in": 0} if inference == "metropolis" else {}

    def forbidden(*_):
        raise AssertionError("screened")

    screened.setattr(training, "screen", forbidden)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KFreeClassifier(inference=inference, k_max=20, **options).fit(X, y)
    for found in (model, pickle.loads(pickle.dumps(model))):
        assert len(found._model.histogram.stretches) == 1
    with pytest.raises(AssertionError, match="screened"):
        KFreeClassifier(k_max=20).fit(X, y)
