"""Class counts from lists sorted by class: the same numbers as from patterns and slots."""

import copy

import numpy as np
import pytest

from kfree import KFreeClassifier, averaging, blocks
from kfree.averaging import ClassSums
from kfree.likelihood import lists
from kfree.likelihood.entering_lists import EnteredLists
from kfree.likelihood.leaving_lists import LeavingLists
from kfree.likelihood.lists import ListSums, class_lists
from kfree.likelihood.patterns import histogram
from kfree.likelihood.slots import every_class
from kfree.neighbors.structures import nearest_table

N, N_CLASSES, K_MAX = 400, 90, 25
structures = pytest.mark.parametrize("structure", ["asymmetric", "boltzmann", "boltzmann2"])


def data(seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(N + 30, 3))
    y = (np.floor(2.5 * X) @ [1, 7, 31]).astype(int) % N_CLASSES
    y[:N_CLASSES] = np.arange(N_CLASSES)
    return X[:N], y[:N], X[N:]


@pytest.fixture(scope="module")
def fitted():
    X, y, _ = data()
    return {
        structure: KFreeClassifier(structure=structure, k_max=K_MAX).fit(X, y)
        for structure in ("asymmetric", "boltzmann", "boltzmann2")
    }


def test_counts_at_every_k():
    near = np.random.default_rng(0).integers(0, 6, (50, 12))
    own = np.arange(50) % 6
    # Every neighbor is named by its label here.
    found = class_lists(nearest_table(near), np.arange(6), own, 6)
    for k in range(1, 13):
        edge, indptr = found.at(k)
        counts = found.counts(k)
        for i in range(50):
            part = slice(indptr[i], indptr[i + 1])
            label, number = np.unique(near[i, :k], return_counts=True)
            np.testing.assert_array_equal(found.classes[edge[part]], label)
            np.testing.assert_array_equal(found.number[edge[part]], number)
            np.testing.assert_array_equal(counts.value[part], number)
            assert counts.own[i] == (near[i, :k] == own[i]).sum()


@structures
def test_sums_are_those_of_the_histogram(structure, fitted, monkeypatch):
    monkeypatch.setattr(lists, "LARGEST_PART", 2000)
    monkeypatch.setattr(lists, "SMALLEST_PART", 1000)
    monkeypatch.setattr(lists, "SORTED_EDGES", 300)
    model = fitted[structure]._model
    sums = ListSums(model.table, model.labels, N_CLASSES, K_MAX, n_jobs=2)
    assert len(sums.parts) > 3
    counted = histogram(model.table, model.labels, N_CLASSES, K_MAX)
    beta = np.geomspace(0.1, 300.0, K_MAX * 3).reshape(K_MAX, 3)
    for ks in (slice(0, K_MAX), slice(4, 9)):
        found = sums.log_pseudo_likelihood(beta[ks], True, ks)
        expected = counted.log_pseudo_likelihood(beta[ks], True, ks)
        for name in ("value", "slope", "curvature"):
            np.testing.assert_allclose(
                getattr(found, name), getattr(expected, name), rtol=1e-10, atol=1e-10
            )
        np.testing.assert_allclose(
            sums.log_worst(beta[ks], ks), counted.log_worst(beta[ks], ks), rtol=1e-10
        )
    assert sums.whole().n_k == K_MAX


@pytest.mark.parametrize("k", [1, 2, 9, K_MAX])
def test_entered_lists_are_open_labels(k, fitted):
    model, new = fitted["asymmetric"]._model, data()[2]
    rows = model.new_points(new, True, K_MAX, None)
    entered = EnteredLists(rows.visit.arrivals, model.graph.indices, model.labels, N_CLASSES, K_MAX)
    beta = np.array([0.3, 8.0, 90.0])
    assert_same(entered.predictive(k, beta), rows.at(k).predictive(beta))
    assert entered.predictive(k, np.array([1.0, 1e4])) is None


@pytest.mark.parametrize("k", [2, 9, K_MAX])
def test_leaving_lists_are_open_labels(k, fitted):
    model = fitted["asymmetric"]._model
    rows = model.held_out(np.arange(3, N, 5), True)
    leaving = LeavingLists(rows.visit, model.labels, N_CLASSES, K_MAX)
    beta = np.array([0.3, 3.0, 6.5 * k])
    assert_same(leaving.predictive(k, beta), rows.at(k).predictive(beta), 1e-8)
    assert leaving.predictive(k, np.array([1.0, 8.0 * k])) is None


def assert_same(found, expected, tolerance=1e-10):
    (found, found_leaves), (expected, leaves) = found, expected
    assert (found_leaves is None) == (leaves is None)
    if leaves is not None:
        np.testing.assert_allclose(found_leaves.value, leaves.value, rtol=0, atol=tolerance)
    tables = []
    for predictive in (found, expected):
        table = np.repeat(predictive.absent.value[:, None], N_CLASSES, axis=1)
        table[predictive.slots.owner, predictive.slots.classes] = predictive.listed.value
        tables.append(table)
    np.testing.assert_allclose(*tables, rtol=0, atol=tolerance)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_probabilities_do_not_depend_on_the_way(n_jobs, fitted, monkeypatch):
    monkeypatch.setattr(averaging, "AT_ONCE_POINTS", 0)
    monkeypatch.setattr(blocks, "LARGE_BLOCK", 10)
    monkeypatch.setattr(blocks, "SMALL_BLOCK", 10)
    model, new = clone_of(fitted["asymmetric"], n_jobs), data()[2]
    ways = (EnteredLists, new), (LeavingLists, None)
    quick = []
    for way, rows in ways:
        asked = []

        def predictive(self, k, beta, known=way.predictive, asked=asked):
            asked.append(k)
            return known(self, k, beta)

        monkeypatch.setattr(way, "predictive", predictive)
        quick.append(model.predict_proba(rows))
        assert asked
    monkeypatch.setattr(averaging, "in_lists", lambda *_: False)
    for found, (_, rows) in zip(quick, ways, strict=True):
        np.testing.assert_allclose(found, model.predict_proba(rows), rtol=0, atol=1e-12)
    monkeypatch.setattr(averaging, "in_tables", lambda *_, **__: True)
    np.testing.assert_allclose(quick[0], model.predict_proba(new), rtol=0, atol=1e-12)


def clone_of(fitted, n_jobs):
    model = copy.deepcopy(fitted)
    return model.set_params(n_jobs=n_jobs)


def test_rows_that_touch_nothing(monkeypatch):
    """Far from everything a row enters no list, and nobody has it as a neighbor."""
    monkeypatch.setattr(averaging, "AT_ONCE_POINTS", 0)
    monkeypatch.setattr(blocks, "BLOCK_NUMBERS", 1)
    X, y, _ = data()
    X[5] = 1e3
    model = KFreeClassifier(k_max=8).fit(X, y)
    far = np.full((2, 3), -1e3)
    found = model.predict_proba(far), model.predict_proba(None)[:10]
    monkeypatch.setattr(averaging, "in_lists", lambda *_: False)
    expected = model.predict_proba(far), model.predict_proba(None)[:10]
    for some, others in zip(found, expected, strict=True):
        np.testing.assert_allclose(some, others, rtol=0, atol=1e-12)


@pytest.mark.parametrize("log_factors", [[0, 1, 2], [-5, 900, 899], [3000, -3000, 2999]])
def test_sums_bear_any_factor(log_factors):
    random = np.random.default_rng(0)
    shares = random.dirichlet(np.ones(4), size=(3, 2))  # of parts and rows
    sums = ClassSums(2, 4)
    for share, log_factor in zip(shares, log_factors, strict=True):
        one = np.ones((2, 1))
        sums.add(every_class(2, 4), share.reshape(-1, 1), 0 * one, one, np.full(2, log_factor))
    weight = np.exp(np.array(log_factors, dtype=float) - max(log_factors))
    weight /= weight.sum()
    mean, square = sums.result()
    np.testing.assert_allclose(mean, np.einsum("p,prc->rc", weight, shares), rtol=1e-12)
    np.testing.assert_allclose(square, np.einsum("p,prc->rc", weight, shares**2), rtol=1e-12)
