"""Leave-one-out by the field: each part beside what it stands for, and all of it beside refits."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

import naive_field as naive
from kfree import FieldClassifier
from kfree.field import evidence
from kfree.field.assembly import learn
from kfree.field.densities import densities_without, learn_densities, training_densities
from kfree.field.design import Design, logits, spread_out
from kfree.field.evidence import fit_by_evidence
from kfree.field.joint import Joint
from kfree.field.leave_one_out import one_step
from kfree.field.logit import Rows, find_mode, loss_and_gradient, units_of
from kfree.field.means import squares_without
from kfree.field.others import Others
from kfree.field.response import precision_changes
from kfree.field.trust import offsets_alone
from kfree.field.views import Spec
from kfree.field.within import Within, class_means, learn_whitening
from kfree.neighbors.threads import single_products

SPECS = [Spec("scores"), Spec("within")]


@pytest.fixture(autouse=True)
def one_thread():
    with single_products():
        yield


def problem(n_classes, n=36, n_features=3, seed=0, apart=1.2):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, n_features)) + apart * rng.normal(size=(n_classes, n_features))[y], y


def every_pair(n_rows, n_classes):
    row, starts = np.tile(np.arange(n_rows), n_classes), n_rows * np.arange(n_classes + 1)
    return Design(n_rows, n_classes, True, row, starts, np.zeros((len(row), 0)), None)


def loss(eta, y):
    top = eta.max(axis=1)
    return top + np.log(np.exp(eta - top[:, None]).sum(axis=1)) - eta[np.arange(len(y)), y]


@pytest.mark.parametrize("way", ["together", "apart", "weighted"])
def test_leave_one_out_is_the_mode_without_the_row(way):
    y = np.arange(60) % 3
    X = np.random.default_rng(3).normal(size=(60, 2)) + 1.2 * y[:, None] * [1, 0]
    weights = np.where(np.arange(len(y)) % 7 == 0, 2.0, 1.0) if way == "weighted" else np.ones(60)
    assembly, design, _ = learn(X, y, 3, SPECS, True, 30, None, None)
    fit = fit_by_evidence(design, y, weights, assembly.blocks(), 500, 1e-6)
    rows = Rows(y, weights, design.pair_of(y))
    seen = spread_out(design, logits(design, fit.weights), fit.weights.offset)
    if way == "apart":
        found = spread_out(design, one_step(design, rows, fit), fit.weights.offset)
    else:
        found = seen + Joint(design, rows, fit).leave(None)[0]
    exact, units = np.empty(found.shape), units_of(fit.bend, fit.precisions)
    for i in range(len(y)):  # the features stay: they leave the row out already
        left = weights.copy()
        left[i] = 0.0
        without = find_mode(
            design, Rows(y, left, rows.pair), fit.precisions, fit.weights, units, 500, 1e-7
        ).weights
        exact[i] = spread_out(design, logits(design, without), without.offset)[i]

    bias = (loss(found, y) - loss(exact, y)).mean()
    optimism = (loss(exact, y) - loss(seen, y)).mean()
    assert optimism > 0.02
    # Apart, what the weights of densities and columns share is not seen: 0.101 of the optimism.
    assert abs(bias) < (0.12 if way == "apart" else 0.1) * optimism


@pytest.mark.parametrize("n_classes", [2, 12])
def test_what_the_lists_of_others_say_without_a_row(n_classes):
    # In a space that does not know the labels nothing but the lists changes.
    X, y = problem(n_classes)
    specs = [Spec("plain", "euclidean")]
    assembly, design, lists = learn(X, y, n_classes, specs, False, 35, None, None)
    others = Others(assembly, design, lists)
    middle = np.argsort(np.linalg.norm(X - X.mean(axis=0), axis=1))
    # Rows in the middle, which are not at the end of any list.
    assert not np.isin(middle[:3], lists[0].indices[:, -1]).any()
    for i in middle[:3]:
        left = np.delete(np.arange(36), i)
        shorter, _, _ = learn(X[left], y[left], n_classes, specs, False, 34, None, None)
        shorter = replace(shorter, readings=assembly.readings)
        wanted = shorter.pairs(shorter.training_lists(1), None).values.reshape(n_classes, 35, -1)
        found = others.without(i)
        values = found.values.reshape(n_classes, 36, -1)
        np.testing.assert_allclose(values[:, left], wanted, atol=1e-9)
        np.testing.assert_allclose(found.linear[left], assembly.crossed(wanted), atol=1e-9)
        own = design.values.reshape(n_classes, 36, -1)[:, i]
        np.testing.assert_array_equal(values[:, i], own)


def test_distances_of_others_from_means_without_a_row():
    X, y = problem(4, n=14)  # classes of 4, 4, 3 and 3 rows
    y[3] = 0  # one of 2, which a row that leaves leaves alone
    assembly, _, _ = learn(X, y, 4, SPECS, True, 8, None, None)
    within = assembly.prepared.within
    points, z, kappa = within.points, within.z, within.kappa
    for i in (0, 1, 7, 11):
        found = squares_without(within, y[i], np.array([i]))[0]
        for j in np.delete(np.arange(14), i):
            rest = [m for m in range(14) if y[m] == y[i] and m not in (i, j)]
            if rest:
                away = points[j] - points[rest].mean(axis=0)
                assert found[j] == pytest.approx(away @ away + kappa[j] * (z[j] @ away) ** 2)


def test_a_row_that_is_left_alone_is_farthest_from_its_class():
    X, y = problem(4, n=14)
    y[3] = 0
    assembly, design, lists = learn(X, y, 4, SPECS, True, 8, None, None)
    i, j = np.flatnonzero(y == 3)
    left = Others(assembly, design, lists).without(i).values.reshape(4, 14, -1)
    said = left[:, j, -3:]  # means and densities
    np.testing.assert_allclose(said[3], said[:3].min(axis=0))
    # And only the class that the row leaves has another mean and density.
    before = design.values.reshape(4, 14, -1)[:3, :, -3:]
    np.testing.assert_array_equal(left[:3, :, -3:], before)
    assert np.abs(left[3, :, -3:] - design.values.reshape(4, 14, -1)[3, :, -3:]).max() > 0.1


def test_densities_of_others_without_a_row():
    # By recomputing from the rows that are left; S stays, and with it the identity.
    X, y = problem(3, n=20)
    X[y == 0] *= 2.0
    whitening = replace(learn_whitening(X, y, 3), shrinkage=1.0)
    points = whitening(X)
    within = Within(whitening, points, y)
    learned = learn_densities(within)
    for i in (0, 1, 19):
        left = np.delete(np.arange(20), i)
        means = class_means(points[left], y[left], 3)
        rest = Within(replace(whitening, means=means), points[left], y[left])
        fewer = replace(learn_densities(rest), nu=learned.nu)
        wanted = training_densities(rest, fewer, every_pair(19, 3), paired=False).reshape(3, 19)
        found = densities_without(within, learned, y[i], np.array([i]))[0]
        np.testing.assert_allclose(found[left], wanted[y[i]], rtol=1e-9)


def test_slopes_are_those_of_the_design_without_the_row(monkeypatch):
    monkeypatch.setattr("kfree.field.others.BLOCK_NUMBERS", 5000)
    X, y = problem(3)
    weights = np.where(np.arange(36) % 5 == 0, 2.0, 1.0)
    assembly, design, lists = learn(X, y, 3, SPECS, True, 20, None, None)
    fit = fit_by_evidence(design, y, weights, assembly.blocks(), 500, 1e-6)
    others = Others(assembly, design, lists)
    found = others.slopes(Rows(y, weights, design.pair_of(y)), fit.weights)
    for i in (0, 3, 35):
        left = np.where(np.arange(36) == i, 0.0, weights)
        rows = Rows(y, left, design.pair_of(y))
        _, after = loss_and_gradient(others.without(i), rows, fit.weights)
        _, before = loss_and_gradient(design, rows, fit.weights)
        np.testing.assert_allclose(found.shared[i], after.shared - before.shared, atol=1e-9)
        of_class = np.column_stack([after.linear - before.linear, after.offset - before.offset])
        np.testing.assert_allclose(found.of_class[i], of_class, atol=1e-9)
        assert np.abs(of_class).max() > 1e-3


def test_precisions_follow_a_row_that_leaves(monkeypatch):
    # So little of a row that a derivative must be right, and rounds until nothing changes.
    share = 0.01
    monkeypatch.setattr(evidence, "N_ROUNDS", 30)
    monkeypatch.setattr("kfree.field.response.N_ROUNDS", 30)
    monkeypatch.setattr(evidence, "FIRST_ROUND", (1e-6, 1e-15))
    monkeypatch.setattr(evidence, "LATER_ROUNDS", (1e-6, 1e-15))
    X, y = problem(3, n=60, seed=1)
    assembly, design, _ = learn(X, y, 3, SPECS, True, 30, None, None)
    blocks = assembly.blocks()
    fit = fit_by_evidence(design, y, np.ones(60), blocks, 500, 1e-7)
    joint = Joint(design, Rows(y, np.ones(60), design.pair_of(y)), fit)
    moved = joint.slopes(joint.residual) @ joint.inverse
    found, _ = precision_changes(joint, fit, blocks, moved)
    # g_b is counted in the curvature of all rows, which the derivative holds.
    monkeypatch.setattr(evidence, "_bend", lambda *_: fit.bend)
    for i in (0, 8):
        left = np.where(np.arange(60) == i, 1.0 - share, 1.0)
        without = fit_by_evidence(design, y, left, blocks, 500, 1e-7)
        wanted = (np.log(without.precision) - np.log(fit.precision)) / share
        np.testing.assert_allclose(found[i], wanted, atol=0.05 * np.abs(wanted).max())


@pytest.mark.parametrize(
    ("n_classes", "n", "step", "largest"),
    # Without trees, of which each refit grows others. The second has classes of four rows, where
    # every row moves the shrinkage of S, ranks, nu and partners: the mean of all its rows has a
    # standard error of 0.035.
    [(2, 60, 5, 0.01), (11, 44, 1, 0.05)],
)
def test_leave_one_out_beside_refits(n_classes, n, step, largest):
    X, y = problem(n_classes, n=n, seed=2)
    model = FieldClassifier(views=("scores", "within")).fit(X, y)
    rows = np.arange(0, n, step)
    exact = without_each(model, X, y, rows)
    gap = loss(model.predict_log_proba(None)[rows], y[rows]) - loss(exact, y[rows])
    assert model.trust_ > 0.99
    assert 0.0 < abs(gap.mean()) < largest


def without_each(model, X, y, rows):
    """Log probabilities of rows by fits without each of them, and nothing else in common."""
    exact = []
    for i in rows:
        left = np.delete(np.arange(len(y)), i)
        exact.append(clone(model).fit(X[left], y[left]).predict_log_proba(X[[i]])[0])
    return np.array(exact)


def test_few_rows_of_small_classes_are_left_out_by_refits():
    # With trees: a refit grows those that a user's refit would grow.
    X, y = problem(4, n=17, seed=2)
    model = FieldClassifier().fit(X, y)
    rows = np.array([0, 5, 16])
    np.testing.assert_allclose(
        model.predict_log_proba(None)[rows], without_each(model, X, y, rows), atol=1e-9
    )


def test_a_class_of_one_row_has_no_refit():
    X, y = problem(3, n=18, seed=2)
    y[0] = 3
    model = FieldClassifier(views=("scores", "within")).fit(X, y)
    left_out = model.predict_proba(None)
    assert np.isfinite(left_out).all()
    assert left_out[0, 3] < 0.1


def test_trust_and_frequencies_have_not_seen_the_row():
    # Labels that are noise: a row's own label must not help to believe in the field, nor to make
    # its class more frequent. With the row in both, the mean gap here is -0.024.
    gaps = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(60, 5)), rng.integers(0, 2, 60)
        model = FieldClassifier(views=("scores", "within")).fit(X, y)
        assert model.trust_ < 0.9
        rows = np.arange(0, 60, 4)
        exact = without_each(model, X, y, rows)
        gaps.append(loss(model.predict_log_proba(None)[rows], y[rows]) - loss(exact, y[rows]))
    # The standard error of the mean is 0.002.
    assert abs(np.mean(gaps)) < 0.008


def test_offsets_alone_are_those_of_the_slow_twin():
    count = np.array([[3.0, 5.0, 9.0], [0.0, 1.0, 20.0], [4e5, 1.0, 0.5]])
    offset, log_evidence = offsets_alone(count)
    for number, row in enumerate(count):
        expected, evidence = naive.nothing(np.arange(3), row, 3)
        np.testing.assert_allclose(offset[number], expected, atol=1e-5)
        assert log_evidence[number] == pytest.approx(evidence, rel=1e-6, abs=1e-4)
