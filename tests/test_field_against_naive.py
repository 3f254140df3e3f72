"""The field beside its slow twin: features, mode, evidence, probabilities."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf

import naive_field as naive
from kfree import FieldClassifier
from kfree.field import evidence
from kfree.field.assembly import learn
from kfree.field.crossed import among_equals
from kfree.field.densities import learn_densities, new_densities, training_densities
from kfree.field.design import Design, logits, spread_out
from kfree.field.evidence import fit_by_evidence
from kfree.field.views import Spec
from kfree.field.within import Within, class_means, learn_whitening, shrinkage_of
from kfree.neighbors.threads import single_products

SPECS = [Spec("scores"), Spec("within")]


@pytest.fixture(autouse=True)
def one_thread():
    with single_products():
        yield


def problem(n_classes, seed=0, n=36, n_features=3, ties=False):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, n_features)) + 1.2 * y[:, None] * (np.arange(n_features) == 0)
    new = rng.normal(size=(9, n_features)) * 1.5
    if ties:
        X, new = X.round(), new.round()
    return X, y, new


def table(design):
    """Own-class features as (n_rows, n_classes, n_own)."""
    shape = (design.n_classes, design.n_rows, -1)
    return design.values.reshape(shape).transpose(1, 0, 2)


def every_pair(n_rows, n_classes):
    row, starts = np.tile(np.arange(n_rows), n_classes), n_rows * np.arange(n_classes + 1)
    return Design(n_rows, n_classes, True, row, starts, np.zeros((len(row), 0)), None)


def in_whitened(X, y, n_classes, **changes):
    """Training rows in the space of "within"; `changes` of the whitening."""
    whitening = replace(learn_whitening(X, y, n_classes), **changes)
    return Within(whitening, whitening(X), y)


def naive_blocks(assembly):
    reading = assembly.readings[0]
    return naive.blocks(
        len(reading.fractions),
        len(reading.ranks),
        len(assembly.prepared.columns.mean),
        len(assembly.curves.center),
        assembly.crossed.directions.shape[1],
    )


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_features(n_classes, ties):
    X, y, new = problem(n_classes, ties=ties)
    length = 20
    # With ties at the list's end, who is on it is a matter of rounding: here everybody is.
    length = len(X) - 1 if ties else length
    assembly, design, _ = learn(X, y, n_classes, SPECS, True, length, None, None)
    n_curves = len(assembly.curves.center)
    for found, rows in (
        (design, None),
        (assembly.of_new(new, assembly.new_lists(new, 1)), new),
    ):
        G, linear = naive.design(X, y, n_classes, rows, length)
        np.testing.assert_allclose(table(found), G, atol=1e-9)
        np.testing.assert_allclose(found.linear[:, :6], linear[:, :6], atol=1e-9)
        # Directions have no sign, and those of the same length are any that span the same.
        for part in (slice(6, 6 + n_curves), slice(6 + n_curves, None)):
            products = found.linear[:, part] @ found.linear[:, part].T
            np.testing.assert_allclose(products, linear[:, part] @ linear[:, part].T, atol=1e-7)


@pytest.mark.parametrize("levels", [2, 4, 9, 40])
def test_how_much_lies_among_equal_rows(levels):
    # Small whole numbers, so that many rows are equal.
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, levels, size=(60, 2)).astype(float), rng.integers(0, 2, 60)
    assembly, _, lists = learn(X, y, 2, SPECS, True, 59, None, None)
    found = among_equals(lists, y)
    assert found == pytest.approx(naive.among_equals(X, y), abs=1e-12)
    assert (found > 0.2) == (levels < 40)
    assert (assembly.crossed.directions.shape[1] == 0) == (levels < 40)


@pytest.mark.parametrize("n_features", [30, 31, 70])
def test_more_columns_than_rows(n_features):
    X, y, new = problem(2, n=30, n_features=n_features)
    new[0] = X[0]
    assembly, design, _ = learn(X, y, 2, SPECS, True, 29, None, None)
    # The space of "within" has one dimension for each row, and one for what is outside of them.
    n_coordinates = assembly.views[1].search.points.shape[1]
    assert n_coordinates == (30 if n_features == 30 else 31)
    n_kept, n_curves = 15, len(assembly.curves.center)
    ends = np.cumsum([0, n_kept, n_kept, n_curves, assembly.crossed.directions.shape[1]])
    for found, rows in (
        (design, None),
        (assembly.of_new(new, assembly.new_lists(new, 1)), new),
    ):
        G, linear = naive.design(X, y, 2, rows, 29)
        np.testing.assert_allclose(table(found), G, atol=1e-9)
        for part in map(slice, ends[:-1], ends[1:]):
            products = found.linear[:, part] @ found.linear[:, part].T
            np.testing.assert_allclose(products, linear[:, part] @ linear[:, part].T, atol=1e-7)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_densities_have_no_part_of_the_row_itself(n_classes):
    # By recomputing all from the other rows, in coordinates and under a nu that stay as they are.
    X, y, _ = problem(n_classes, n=31, n_features=4)
    X[y == 0] *= 3.0
    within = in_whitened(X, y, n_classes, shrinkage=1.0)  # S stays, and so does the identity
    points, learned, pairs = within.points, learn_densities(within), every_pair(31, n_classes)
    found, alone, seen = (
        values.reshape(n_classes, 31).T
        for values in (
            training_densities(within, learned, pairs),
            training_densities(within, learned, pairs, paired=False),
            new_densities(points, learned, pairs),
        )
    )

    def without(gone, i):
        left = np.delete(np.arange(31), gone)
        means = class_means(points[left], y[left], n_classes)
        rest = Within(replace(within.whitening, means=means), points[left], y[left])
        classes = replace(learn_densities(rest), nu=learned.nu)
        return new_densities(points[[i]], classes, every_pair(1, n_classes))

    for i in (0, 1, 30):
        wanted = without([i], i)
        np.testing.assert_allclose(alone[i], wanted, rtol=1e-9)
        others = [np.flatnonzero(y == c) for c in range(n_classes) if c != y[i]]
        partners = [rows[i % len(rows)] for rows in others if len(rows) > 1]
        np.testing.assert_allclose(found[i], without([i, *partners], i), rtol=1e-9)
        # Were the row not left out, it would find its own class denser.
        assert seen[i, y[i]] > wanted[y[i]] + 0.01


@pytest.mark.parametrize("n_features", [1000, 4000])
def test_densities_of_wide_tables_do_not_give_the_label_away(n_features):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, n_features)), np.arange(60) % 2
    within = in_whitened(X, y, 2)
    learned = learn_densities(within)
    rows = np.arange(60)

    def in_own_class(paired):
        found = training_densities(within, learned, every_pair(60, 2), paired).reshape(2, 60)
        return found[y, rows] - found[1 - y, rows]

    # Labels are noise: own and other class are as dense, but by chance. If only the own class
    # were without a row, all rows would tell.
    assert abs(in_own_class(True).mean()) < 0.2
    assert in_own_class(False).mean() > 2.0
    assert (in_own_class(False) > 0.0).mean() > 0.95
    model = FieldClassifier(random_state=0).fit(X, y)
    probabilities = model.predict_proba(None)[rows, y]
    assert -np.log(probabilities).mean() < 0.75  # no better than chance, and no worse


@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_classes_that_spread_alike_lean_on_each_other(spread):
    X, y, _ = problem(2, n=200, n_features=4)
    X[y == 1] *= [spread, 1.0, 1.0 / spread, 1.0]
    nu = learn_densities(in_whitened(X, y, 2)).nu
    assert (nu < 40.0) == (spread > 1.0)


@pytest.mark.parametrize("shape", [(30, 1), (30, 4), (30, 30), (12, 50)])
def test_shrinkage_is_that_of_ledoit_and_wolf(shape):
    z = np.random.default_rng(0).normal(size=shape) * np.arange(1, shape[1] + 1)
    covariance, expected = ledoit_wolf(z, assume_centered=True)
    shrinkage, variance = shrinkage_of(z)
    assert shrinkage == pytest.approx(expected, abs=1e-12)
    assert variance == pytest.approx(np.trace(covariance) / shape[1])


def test_a_class_of_one_row_and_a_constant_column():
    X, y, new = problem(3, n=30)
    y[0], X[:, 2] = 3, 5.0
    assembly, design, _ = learn(X, y, 4, SPECS, True, 29, None, None)
    for found, rows in (
        (design, None),
        (assembly.of_new(new, assembly.new_lists(new, 1)), new),
    ):
        G, linear = naive.design(X[:, :2], y, 4, None if rows is None else rows[:, :2], 29)
        fractions = [0, 1, 2, 3]
        np.testing.assert_allclose(table(found)[:, :, fractions], G[:, :, fractions], atol=1e-9)
        np.testing.assert_allclose(found.linear[:, [0, 1, 3, 4]], linear[:, :4], atol=1e-9)
    # The distances from the means, which the constant column does not change but for their number.
    _, design, _ = learn(X[:, :2], y, 4, SPECS, True, 29, None, None)
    for part, twin in ((slice(-3, -1), naive.means), (slice(-1, None), naive.densities)):
        np.testing.assert_allclose(
            table(design)[:, :, part], twin(X[:, :2], y, 4), rtol=1e-6, atol=1e-9
        )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_mode_and_evidence(n_classes, monkeypatch):
    for rounds in ("FIRST_ROUND", "LATER_ROUNDS"):
        monkeypatch.setattr(evidence, rounds, (1e-8, 1e-15))
    X, y, _ = problem(n_classes, n=30, n_features=2)
    weights = np.random.default_rng(1).choice([0.0, 1.0, 2.5], size=len(y))
    assembly, design, _ = learn(X, y, n_classes, SPECS, True, 12, None, None)
    fit = fit_by_evidence(design, y, weights, assembly.blocks(), 2000, 1e-7)
    assert fit.converged
    G, linear = naive.design(X, y, n_classes, None, 12)
    parts = naive_blocks(assembly)
    w, precision, log_evidence = naive.fit(G, linear, y, weights, parts)
    np.testing.assert_allclose(fit.precision, precision, rtol=1e-4)
    assert fit.log_evidence == pytest.approx(log_evidence, abs=1e-4)
    shared, linear_weights, offset = naive.unpack(w, G.shape[2], linear.shape[1], n_classes)
    for found, wanted in zip(
        (fit.weights.shared, fit.weights.linear[:, :4], fit.weights.offset),
        (shared, linear_weights[:, :4], offset),
        strict=True,
    ):
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    logit = spread_out(design, logits(design, fit.weights), fit.weights.offset)
    np.testing.assert_allclose(logit, naive.logits(w, G, linear), atol=1e-5)


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_probabilities(noise):
    X, y, new = problem(3, n=40, n_features=2)
    if noise:
        y = np.random.default_rng(0).permutation(y)
    model = FieldClassifier(views=("scores", "within"), n_neighbors=15).fit(X, y)
    parts = naive_blocks(model._assembly)
    # The rounds before the last stop early, so the precisions are taken from the model.
    G, linear = naive.design(X, y, 3, None, 15)
    every = naive.spread(model.precision_[:-1], parts, G.shape[2], linear.shape[1], 3)
    w = naive.mode(G, linear, y, np.ones(len(y)), every, np.zeros(len(every)))
    offset, log_evidence = naive.nothing(y, np.ones(len(y)), 3)
    trust = naive.trust(model.log_evidence_, log_evidence)
    assert model.trust_ == pytest.approx(trust, abs=1e-6)
    assert trust < 0.5 if noise else trust > 0.8
    eta = offset + trust * (naive.logits(w, *naive.design(X, y, 3, new, 15)) - offset)
    expected = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=1e-4)
    if not noise:
        # And the early stop costs next to nothing against rounds that go to the mode.
        _, precision, _ = naive.fit(G, linear, y, np.ones(len(y)), parts)
        np.testing.assert_allclose(model.precision_[:-1], precision, rtol=0.1)
