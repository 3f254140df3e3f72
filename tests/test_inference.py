"""Modes, Gauss rules, the prior and the terms of the likelihood, each against a second way."""

import numpy as np
import pytest
from scipy.stats import gamma
from sklearn.preprocessing import StandardScaler

from kfree import KFreeClassifier, averaging
from kfree.evaluation import data
from kfree.inference import rules
from kfree.inference.gauss import gauss_rules
from kfree.inference.mode import maximize
from kfree.inference.prior import GammaPrior
from kfree.inference.quadrature import Rule
from kfree.likelihood import training_sum
from kfree.likelihood.counts import PointCounts
from kfree.likelihood.slots import ClassSlots
from kfree.likelihood.terms import log_terms, log_terms_joined, log_terms_of_classes

# --- Modes ---------------------------------------------------------------------------------------

# Starts far below and far above every mode of the tests below.
STARTS = [1e-12, 1e-3, 1.0, 50.0, 1e6]


def log_gamma(shape, scale):
    """Mode (shape - 1) * scale."""
    return lambda b: (
        (shape - 1) * np.log(b) - b / scale,
        (shape - 1) / b - 1 / scale,
        -(shape - 1) / b**2,
    )


def log_cauchy(center):
    """Convex away from its mode, where Newton's step goes the wrong way."""

    def function(b):
        away = b - center
        square = 1 + away**2
        return -np.log(square), -2 * away / square, (2 * away**2 - 2) / square**2

    return function


def quartic(center):
    """No curvature at its mode."""
    return lambda b: (-((b - center) ** 4), -4 * (b - center) ** 3, -12 * (b - center) ** 2)


@pytest.mark.parametrize("start", STARTS)
def test_modes_of_gamma_densities(start):
    shape = np.array([1.0001, 1.5, 2.0, 30.0])
    scale = np.array([10.0, 1e-3, 10.0, 200.0])
    mode = maximize(log_gamma(shape, scale), np.full(4, start))
    np.testing.assert_allclose(mode, (shape - 1) * scale, rtol=1e-10)


@pytest.mark.parametrize("start", STARTS)
def test_modes_where_the_function_is_convex(start):
    center = np.array([0.5, 5.0, 300.0])
    np.testing.assert_allclose(maximize(log_cauchy(center), np.full(3, start)), center, rtol=1e-9)


@pytest.mark.parametrize("start", STARTS[1:])
def test_modes_without_curvature(start):
    """Newton converges only by thirds there."""
    center = np.array([0.3, 4.0])
    np.testing.assert_allclose(maximize(quartic(center), np.full(2, start)), center, rtol=1e-6)


def test_a_start_at_the_mode_stays_there():
    np.testing.assert_array_equal(maximize(log_gamma(2.0, 10.0), np.array([10.0])), [10.0])


def test_each_mode_is_found_whatever_the_others_do():
    shape, scale = np.array([2.0, 2.0, 40.0]), np.array([1e-4, 10.0, 1e3])
    together = maximize(log_gamma(shape, scale), np.array([1e5, 10.0, 1e-5]))
    np.testing.assert_allclose(together, (shape - 1) * scale, rtol=1e-10)


def test_start_is_not_changed():
    start = np.array([3.0, 4.0])
    maximize(log_gamma(2.0, 10.0), start)
    np.testing.assert_array_equal(start, [3.0, 4.0])


# --- Gauss rules ---------------------------------------------------------------------------------


def gauss_rule(node, weight, n_nodes):
    return gauss_rules(node, weight, n_nodes)[:2]


def discrete_measures(n_points, seed=0):
    rng = np.random.default_rng(seed)
    node = np.sort(rng.normal(size=(3, n_points)) * [[1.0], [0.01], [5.0]] + [[0.0], [3.0], [-2.0]])
    weight = rng.random((3, n_points)) ** 3
    return node, weight / weight.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n_nodes", [1, 2, 3, 5, 8])
def test_gauss_rule_is_exact_for_polynomials(n_nodes):
    node, weight = discrete_measures(40)
    found, found_weight = gauss_rule(node, weight, n_nodes)
    assert found.shape == found_weight.shape == (3, n_nodes)
    assert (found_weight > 0).all()
    # Standardised: monomials of the raw nodes would only test rounding.
    center = (node * weight).sum(axis=1, keepdims=True)
    spread = np.sqrt((weight * (node - center) ** 2).sum(axis=1, keepdims=True))
    for degree in range(2 * n_nodes):
        exact = (weight * ((node - center) / spread) ** degree).sum(axis=1)
        size = (weight * np.abs((node - center) / spread) ** degree).sum(axis=1)
        actual = (found_weight * ((found - center) / spread) ** degree).sum(axis=1)
        assert (np.abs(actual - exact) <= 1e-11 * size).all()


@pytest.mark.parametrize("n_nodes", [1, 3])
def test_gauss_rule_is_not_exact_beyond(n_nodes):
    """A control: degree 2n is more than n nodes can do."""
    node, weight = discrete_measures(40)
    found, found_weight = gauss_rule(node, weight, n_nodes)
    center = (node * weight).sum(axis=1, keepdims=True)
    exact = (weight * (node - center) ** (2 * n_nodes)).sum(axis=1)
    actual = (found_weight * (found - center) ** (2 * n_nodes)).sum(axis=1)
    assert (np.abs(actual / exact - 1) > 1e-3).all()


def test_gauss_rule_of_a_fine_grid_is_gauss_hermite():
    node = np.linspace(-12.0, 12.0, 2001)[None]
    weight = np.exp(-(node**2))
    found, found_weight = gauss_rule(node, weight / weight.sum(), 12)
    expected, expected_weight = np.polynomial.hermite.hermgauss(12)
    np.testing.assert_allclose(found[0], expected, atol=1e-10)
    np.testing.assert_allclose(found_weight[0], expected_weight / np.sqrt(np.pi), atol=1e-12)


def test_gauss_rule_with_weights_that_vanish():
    """Grids end where the density is negligible: such nodes must do no harm."""
    node = np.linspace(-60.0, 60.0, 801)[None]
    weight = np.exp(-(node**2))
    found, found_weight = gauss_rule(node, weight / weight.sum(), 16)
    expected, _ = np.polynomial.hermite.hermgauss(16)
    np.testing.assert_allclose(found[0], expected, atol=1e-9)
    assert found_weight.sum() == pytest.approx(1.0, abs=1e-13)


# --- Prior ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "scale"), [(2.0, 10.0), (0.5, 3.0), (30.0, 1e-3), (1.0, 1e4)])
def test_prior_is_gamma_with_shape_and_scale(shape, scale):
    beta = np.geomspace(1e-6, 1e5, 50)
    prior = GammaPrior(shape, scale)
    expected = gamma(shape, scale=scale).logpdf(beta)
    np.testing.assert_allclose(prior.log_density(beta), expected, rtol=1e-12, atol=1e-12)
    value, slope, curvature = prior.derivatives(beta)
    np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)
    step = 1e-4 * beta
    above, below = prior.log_density(beta + step), prior.log_density(beta - step)
    rounding = 1e-15 * np.abs(value) + 1e-15
    assert (np.abs(slope - (above - below) / (2 * step)) < 1e-6 / beta + rounding / step).all()
    second = (above - 2 * value + below) / step**2
    assert (np.abs(curvature - second) < 1e-6 / beta**2 + 10 * rounding / step**2).all()


def test_prior_of_log_beta_has_the_jacobian():
    """p(u) = p(beta) beta for u = log(beta): one more power of beta, in all derivatives."""
    beta, prior = np.array([0.1, 3.0, 70.0]), GammaPrior(2.0, 10.0)
    plain, tilted = prior.derivatives(beta), prior.derivatives(beta, log_scale=True)
    for p, t, extra in zip(plain, tilted, (np.log(beta), 1 / beta, -1 / beta**2), strict=True):
        np.testing.assert_allclose(t, p + extra, rtol=1e-13)


def test_control_rate_instead_of_scale():
    beta = np.array([0.1, 3.0, 70.0])
    rate = gamma(2.0, scale=1 / 10.0).logpdf(beta)
    assert (np.abs(GammaPrior(2.0, 10.0).log_density(beta) - rate) > 0.1).all()


# --- Terms ---------------------------------------------------------------------------------------


# The counts of 0 to 4 listed classes, and the place of the own class among them: first, not listed
# (None), last, within; and what the counts are divided by.
LISTS = [[3, 1], [], [5], [0, 2, 2, 1], [4, 4], [1, 7, 0]]
OWN = [1, None, 0, 1, 0, 1]
DIVISOR = np.array([4.0, 2.0, 5.0, 3.0, 8.0, 7.0])
BETA = np.array([1e-3, 0.7, 5.0, 40.0])
each_number_of_classes = pytest.mark.parametrize("n_classes", [4, 5, 200])


def some_counts(n_classes):
    """Points with the counts above: of classes 0, 1, ..., and in the last slot of all others."""
    length = np.array([len(m) for m in LISTS])
    indptr = np.concatenate([[0], np.cumsum(length + 1)])
    classes = np.concatenate([[*range(n), n_classes] for n in length])
    value = np.array([m for one in LISTS for m in [*one, 0]])
    own = [len(m) if z is None else z for m, z in zip(LISTS, OWN, strict=True)]
    slots = ClassSlots(indptr, classes, n_classes, every=False)
    return PointCounts(slots, value, indptr[:-1] + own)


def every_count(i, n_classes):
    """The counts of all classes around a point."""
    return np.array([*LISTS[i], *[0] * (n_classes - len(LISTS[i]))])


def written_out(m, own, b):
    """The log term, (n_beta,)."""
    return b * own - np.log(np.exp(np.multiply.outer(b, m)).sum(axis=1))


@each_number_of_classes
def test_terms_written_out(n_classes):
    found = log_terms(some_counts(n_classes), BETA / DIVISOR[:, None])
    for i, z in enumerate(OWN):
        m, own = every_count(i, n_classes), 0 if z is None else LISTS[i][z]
        expected = written_out(m, own, BETA / DIVISOR[i])
        np.testing.assert_allclose(found[i], expected, rtol=1e-13, atol=1e-14)


@each_number_of_classes
def test_each_class_as_the_own_one_written_out(n_classes):
    points = some_counts(n_classes)
    found = log_terms_of_classes(points, BETA / DIVISOR[:, None])
    for slot, (i, count) in enumerate(zip(points.slots.owner, points.count, strict=True)):
        expected = written_out(every_count(i, n_classes), count, BETA / DIVISOR[i])
        np.testing.assert_allclose(found[slot], expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("block", [1, 30, 1 << 19])
@each_number_of_classes
def test_terms_that_take_up_a_label_written_out(monkeypatch, n_classes, block):
    """For each class; in blocks of points, too."""
    monkeypatch.setattr("kfree.likelihood.terms.BLOCK_NUMBERS", block)
    points, weight = some_counts(n_classes), np.array([1, 1, 2, 0, 1, 2])
    found = log_terms_joined(points, weight, BETA / DIVISOR[:, None])
    slots = points.slots
    for slot, (i, c) in enumerate(zip(slots.owner, slots.classes, strict=True)):
        # The own class has its own slot, or else another of those that have none joins.
        if (c == n_classes and len(LISTS[i]) == n_classes) or OWN[i] is None:
            continue
        m = every_count(i, n_classes)
        m[min(c, len(LISTS[i]))] += weight[i]
        expected = written_out(m, m[OWN[i]], BETA / DIVISOR[i])
        np.testing.assert_allclose(found[slot], expected, rtol=1e-13, atol=1e-14)


def test_each_point_may_have_its_own_beta():
    points, b = some_counts(200), np.arange(1.0, 13.0).reshape(6, 2) / DIVISOR[:, None]
    found = log_terms(points, b)
    for i in range(6):
        alone = log_terms(points.take(np.array([i])), b[[i]])[0]
        np.testing.assert_allclose(found[i], alone, rtol=1e-14)


@pytest.mark.parametrize("beta", [1e6, 1e12])
def test_terms_at_a_large_beta(beta):
    """Nothing overflows: a term is its margin to the largest count, shared if several have it."""
    found = log_terms(some_counts(200), beta / DIVISOR[:, None])
    margin = np.array([-2.0, 0.0, 0.0, 0.0, 0.0, 0.0]) / DIVISOR
    shared = np.array([1, 200, 1, 2, 2, 1])
    np.testing.assert_allclose(found[:, 0], beta * margin - np.log(shared), rtol=1e-12)


@each_number_of_classes
def test_terms_near_zero_beta(n_classes):
    found = log_terms(some_counts(n_classes), 1e-300 / DIVISOR[:, None])
    np.testing.assert_allclose(found[:, 0], -np.log(np.full(6, n_classes)), rtol=1e-14)


def test_a_measure_with_one_point_that_counts_has_a_rule():
    """Nothing is divided by what is left of the measure after that point."""
    node = np.linspace(0.0, 4.0, 30)[None]
    weight = np.exp(-200.0 * np.arange(30.0))[None]  # the second is 1e-87, the fourth 1e-261
    nodes, weights = gauss_rule(node, weight / weight.sum(), 20)
    assert np.isfinite(nodes).all()
    assert weights.sum() == pytest.approx(1.0)


def test_a_broad_posterior_needs_few_nodes(monkeypatch):
    """Labels that nothing explains: log(beta) is known to half its size, and down to zero."""
    rng = np.random.default_rng(0)
    X, y, new = rng.normal(size=(1200, 4)), rng.integers(0, 12, 1200), rng.normal(size=(20, 4))
    model = KFreeClassifier(k_max=60).fit(X, y)
    posterior = model._model.posterior
    assert posterior.curves.std.max() > 0.5
    assert posterior.rule.beta.shape[1] <= max(rules.N_NODES) < posterior.fine.beta.shape[1] / 10
    monkeypatch.setattr(averaging, "DOUBT", np.inf)
    few = model.predict_proba(new)
    monkeypatch.setattr(averaging, "DOUBT", -1.0)
    np.testing.assert_allclose(few, model.predict_proba(new), rtol=0, atol=1e-9)


@pytest.mark.parametrize("structure", ["asymmetric", "boltzmann", "boltzmann2"])
def test_few_nodes_where_separated_classes_leave_beta_free(monkeypatch, structure):
    """The posterior of beta is nearly its prior, to the right of a cliff; no row is in doubt."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 1010)
    X = 40.0 * y[:, None] + rng.normal(size=(1010, 2))
    model = KFreeClassifier(structure=structure, k_max=64).fit(X[:1000], y[:1000])
    assert model._model.posterior.curves.std.max() > 0.6
    few = model.predict_proba(X[1000:])
    monkeypatch.setattr(averaging, "DOUBT", -1.0)
    np.testing.assert_allclose(few, model.predict_proba(X[1000:]), rtol=0, atol=1e-8)


def test_a_posterior_with_no_more_points_than_nodes_keeps_them():
    """Beside one that has more."""
    beta = np.linspace(1.0, 4.0, 40)
    log_weight = np.stack([np.where(np.arange(40) < 5, -1.0, -np.inf), np.full(40, -2.0)])
    dense = Rule(np.arange(2), np.stack([beta, beta]), log_weight)
    few = rules._reduced(dense, np.array([8, 8]))
    node, log_w = few.of(0)
    np.testing.assert_array_equal(node, beta[:5])
    np.testing.assert_array_equal(log_w, -1.0)
    node, log_w = few.of(1)
    assert len(node) == 8
    assert np.exp(log_w).sum() == pytest.approx(40.0 * np.exp(-2.0))
    assert (np.exp(log_w) * node).sum() == pytest.approx(np.exp(-2.0) * beta.sum(), rel=1e-8)


def test_rows_in_doubt_are_done_again_with_finer_nodes(data_folder, monkeypatch):
    # Nearly separable classes: the label of a row near the few that stand in the wrong place opens
    # the upper tail of beta far beyond the nodes that serve all other rows.
    whole = data.load("banknote", data_folder)
    rows = np.random.default_rng(2).permutation(len(whole.y))
    X, y = StandardScaler().fit_transform(whole.X[rows]), whole.y[rows]
    model = KFreeClassifier(k_max=20).fit(X[:200], y[:200])
    found = model.predict_proba(X[1000:])
    monkeypatch.setattr(averaging, "DOUBT", np.inf)
    without = model.predict_proba(X[1000:])
    monkeypatch.setattr(averaging, "DOUBT", -1.0)
    exact = model.predict_proba(X[1000:])
    assert np.abs(found - exact).max() < 1e-9
    assert np.abs(without - exact).max() > 1e-4
    assert (np.abs(found - without) > 1e-12).any(axis=1).sum() < 40


@pytest.mark.parametrize("structure", ["asymmetric", "boltzmann", "boltzmann2"])
def test_parts_and_groups_of_terms_change_nothing(structure, monkeypatch):
    random = np.random.default_rng(3)
    X, y = random.normal(size=(150, 3)), random.integers(0, 5, 150)
    whole = KFreeClassifier(structure=structure, k_max=30).fit(X, y)
    monkeypatch.setattr(training_sum, "PART_EDGES", 400)
    monkeypatch.setattr(training_sum, "PARTS_AT_A_TIME", 3)
    cut = KFreeClassifier(structure=structure, k_max=30).fit(X, y)
    # Patterns stand in one order, whatever the parts.
    np.testing.assert_array_equal(cut.k_posterior_, whole.k_posterior_)
    monkeypatch.setattr(training_sum, "GROUP_ENTRIES", 2000)
    cut = KFreeClassifier(structure=structure, k_max=30).fit(X, y)
    assert len(cut._model.likelihood.groups()) > 3
    np.testing.assert_allclose(cut.k_posterior_, whole.k_posterior_, rtol=1e-9)
    for rows in (X[:20] + 0.1, None):
        expected = whole.predict_proba(rows)
        np.testing.assert_allclose(cut.predict_proba(rows), expected, rtol=1e-8)
