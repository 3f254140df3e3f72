"""The sampler against the exact posterior, within its own Monte Carlo error."""

import dataclasses

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kfree import KFreeClassifier
from kfree.inference import metropolis
from kfree.sampling import draw_rows, streams

STRUCTURES = ("asymmetric", "boltzmann", "boltzmann2")
SETTINGS = metropolis.Settings(n_draws=6000, n_burn_in=300, n_chains=4, proposal_variance=9.0)
# A sampler that is right is off by more than this many standard errors in one of 10^5 runs or so.
LIMIT = 5.0


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1, 2], 8)
    X = rng.normal(size=(24, 2)) + 1.2 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    return X, y, rng.normal(size=(3, 2)) + 0.4


def fitted(structure, data, **params):
    return KFreeClassifier(structure=structure, k_max=6, **params).fit(data[0], data[1])


def standard_errors(values):
    """Standard errors of means over (n_rows, n_chains, n_draws), from means of batches."""
    n_rows, n_chains, n_draws = values.shape
    batches = values.reshape(n_rows, n_chains * 30, n_draws // 30).mean(axis=2)
    return batches.std(axis=1, ddof=1) / np.sqrt(batches.shape[1])


def largest_deviation(draws, exact):
    """The largest |mean - exact| in standard errors, over p(K), p(z') and the mean of beta."""
    wanted = [(draws.beta, exact.beta_mean)]
    for k, p in zip(exact.k, exact.k_probabilities.T, strict=True):
        wanted.append((draws.k == k, p))
    for c, p in enumerate(exact.class_probabilities.T):
        wanted.append((draws.label == c, p))
    worst = 0.0
    for values, expected in wanted:
        values = values.astype(float)
        error = np.maximum(standard_errors(values), 2e-4)
        worst = max(worst, (np.abs(values.mean(axis=(1, 2)) - expected) / error).max())
    return worst


class Skewed:
    """A generator whose draws of one kind follow another law than the sampler believes."""

    def __init__(self, generator, **wrong):
        self.generator = generator
        self.wrong = wrong

    def __getattr__(self, name):
        return self.wrong.get(name, getattr(self.generator, name))


def drawn(structure, data, skew=None):
    model = fitted(structure, data)
    rows = model._blocks(data[2])[0]
    generators = streams(7, np.arange(len(data[2])))
    if skew is not None:
        generators = [skew(g) for g in generators]
    draws = draw_rows(model._model, rows, SETTINGS, generators)
    return draws, model.posterior(data[2])


@pytest.mark.parametrize("structure", STRUCTURES)
def test_agrees_with_quadrature(structure, data):
    draws, exact = drawn(structure, data)
    assert largest_deviation(draws, exact) < LIMIT
    assert (draws.acceptance > 0.05).all() and (draws.acceptance < 0.95).all()
    # Averaged conditionals have less noise than the drawn labels.
    np.testing.assert_allclose(draws.class_probabilities, exact.class_probabilities, atol=0.02)


def test_control_only_accepted_draws_kept(data):
    draws, exact = drawn("asymmetric", data)
    moved = np.diff(draws.beta, axis=2, prepend=-1.0) != 0.0
    n = moved.sum(axis=2).min() // 30 * 30
    first = np.argsort(~moved, axis=2, kind="stable")[:, :, :n]
    kept = {f: np.take_along_axis(getattr(draws, f), first, 2) for f in ("k", "beta", "label")}
    assert largest_deviation(dataclasses.replace(draws, **kept), exact) > LIMIT


def test_control_proposal_ratio_left_out(data):
    def skew(generator):
        # Steps that lean upwards are not symmetric; the acceptance takes them for symmetric.
        return Skewed(generator, standard_normal=lambda shape: generator.normal(0.4, 1.0, shape))

    assert largest_deviation(*drawn("asymmetric", data, skew)) > LIMIT


def test_control_k_proposals_not_uniform(data):
    def skew(generator):
        def integers(low, high, shape):
            return np.minimum(
                generator.integers(low, high, shape), generator.integers(low, high, shape)
            )

        return Skewed(generator, integers=integers)

    assert largest_deviation(*drawn("asymmetric", data, skew)) > LIMIT


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("structure", "update", "average"),
    [
        *((structure, "joint", True) for structure in STRUCTURES),
        *((structure, "conditional", True) for structure in STRUCTURES),
        ("boltzmann2", "joint", False),
        ("asymmetric", "conditional", False),
    ],
)
def test_estimator_is_near_the_exact_one(structure, update, average, data):
    params = {"structure": structure, "update": update, "average": average}
    exact = fitted(data=data, **params)
    sampled = fitted(
        data=data,
        **params,
        inference="metropolis",
        n_draws=4000,
        n_chains=2,
        proposal_variance=9.0,
        random_state=0,
    )
    np.testing.assert_allclose(sampled.k_posterior_, exact.k_posterior_, atol=0.05)
    assert abs(sampled.beta_mean_ - exact.beta_mean_) < 0.5 * exact.beta_std_
    for X in (data[2], None):
        got, want = sampled.posterior(X), exact.posterior(X)
        # A few hundred effective draws; the strict comparison is above.
        np.testing.assert_allclose(got.k_probabilities, want.k_probabilities, atol=0.2)
        # The estimates of the most probable K may differ where two are about as probable.
        if average:
            np.testing.assert_allclose(got.class_probabilities, want.class_probabilities, atol=0.06)
        assert (got.class_probabilities > 0).all()
        grid = np.linspace(0.05, 80.0, 200)
        density = got.density(grid).sum(axis=1) @ np.full(200, grid[1] - grid[0])
        np.testing.assert_allclose(density, 1.0, atol=0.02)


def test_the_same_whatever_the_jobs_and_the_other_rows(data, monkeypatch):
    params = {"inference": "metropolis", "n_draws": 60, "n_burn_in": 10, "random_state": 5}
    with pytest.warns(ConvergenceWarning):
        one = fitted("asymmetric", data, **params).sample(data[2])
    monkeypatch.setattr("kfree.blocks.BLOCK_NUMBERS", 1)
    with pytest.warns(ConvergenceWarning):
        two = fitted("asymmetric", data, n_jobs=2, **params).sample(data[2])
    with pytest.warns(ConvergenceWarning):
        first = fitted("asymmetric", data, **params).sample(data[2][:1])
    for field in ("k", "beta", "label", "acceptance"):
        np.testing.assert_array_equal(getattr(one, field), getattr(two, field))
        np.testing.assert_array_equal(getattr(one, field)[:1], getattr(first, field))


def test_warning_names_the_parameter(data):
    with pytest.warns(ConvergenceWarning, match="beta"):
        fitted(
            "asymmetric",
            data,
            inference="metropolis",
            n_draws=40,
            n_burn_in=0,
            proposal_variance=1e-6,
            random_state=0,
        )


def test_split_r_hat_on_known_chains():
    rng = np.random.default_rng(0)
    agree = rng.normal(size=(2, 4, 1000))
    assert (np.abs(metropolis.split_r_hat(agree) - 1.0) < 0.01).all()
    apart = agree + 3.0 * np.arange(4)[:, None]
    assert (metropolis.split_r_hat(apart) > 1.5).all()
    np.testing.assert_array_equal(metropolis.split_r_hat(np.ones((1, 2, 10))), [1.0])


def test_arviz(data):
    pytest.importorskip("arviz_stats", reason="ArviZ is not installed")
    draws, _ = drawn("asymmetric", data)
    tree = draws.to_arviz()
    assert tree["posterior"]["beta"].dims == ("chain", "draw", "row")
    np.testing.assert_array_equal(tree["posterior"]["n_neighbors"].values[1, :, 2], draws.k[2, 1])
    diagnostics = draws.diagnostics()
    assert (diagnostics.beta_r_hat < 1.02).all() and (diagnostics.k_ess > 400).all()
    batch = standard_errors(draws.beta)
    np.testing.assert_allclose(diagnostics.beta_mcse, batch, rtol=0.6)


def test_progress_is_shown(data, capsys):
    params = {"inference": "metropolis", "n_draws": 200, "n_burn_in": 0, "random_state": 0}
    with pytest.warns(ConvergenceWarning):
        fitted("asymmetric", data, verbose=1, **params)
    assert "100%" in capsys.readouterr().err


def test_sample_needs_the_sampler(data):
    with pytest.raises(ValueError, match="inference='metropolis'"):
        fitted("asymmetric", data).sample(data[2])
