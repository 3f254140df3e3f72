"""algorithm="faiss" gives the neighbors and distances of brute force, to the last digit."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_wine

from kfree import KFreeClassifier
from kfree.neighbors.metric import make_space
from kfree.neighbors.search import make_search

faiss = pytest.importorskip("faiss", reason="faiss-cpu is not installed")


def every(k):
    return np.arange(1, k + 1)


def both(X, metric="euclidean", params=None):
    """The same points in a faiss search and in a brute-force search."""
    space = make_space(metric, 2, params, X)
    points = space.points(X)
    return make_search(space, points, "faiss"), make_search(space, points, "brute"), space


def assert_same(X, new, k, metric="euclidean", params=None):
    fast, slow, space = both(X, metric, params)
    graph, expected = fast.graph(every(k), 2), slow.graph(every(k), None)
    np.testing.assert_array_equal(graph.indices, expected.indices)
    np.testing.assert_array_equal(graph.radii, expected.radii)
    queries = space.points(new)
    arrived = fast.arrivals(queries, every(k), graph.radii, 2)
    right = slow.arrivals(queries, every(k), graph.radii, None)
    for name in right.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(arrived, name), getattr(right, name), err_msg=name)


def random_rows(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize("d", [1, 2, 8, 64, 300])
@pytest.mark.parametrize("k", [1, 7, 40])
def test_random_points(d, k):
    X = random_rows(700, d)
    assert_same(X[:500], X[500:], k)


def test_more_new_points_than_training_points():
    X = random_rows(3_000, 3)
    assert_same(X[:50], X[50:], 20)


def test_every_other_point_is_a_neighbor():
    X = random_rows(40, 4)
    assert_same(X[:30], X[30:], 29)


@pytest.mark.parametrize("n_distinct", [1, 3, 40])
def test_duplicates(n_distinct):
    X = random_rows(n_distinct, 5)[np.random.default_rng(1).integers(n_distinct, size=400)]
    assert_same(X[:300], X[300:], 12)


def test_ties_on_a_grid():
    X = np.random.default_rng(2).integers(4, size=(600, 4)).astype(float)
    assert_same(X[:450], X[450:], 15)


@pytest.mark.parametrize("shift", [1e3, 1e6, 1e9])
def test_far_from_the_origin(shift):
    X = random_rows(600, 6) + shift
    assert_same(X[:450], X[450:], 10)


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e12, 1e30])
def test_scales_that_float32_cannot_square(scale):
    X = random_rows(600, 6) * scale
    assert_same(X[:450], X[450:], 10)


def test_points_that_float32_cannot_tell_apart():
    """Differences of 1e-9 beside one outlier at 1: below the resolution of float32."""
    X = 1e-9 * random_rows(300, 3)
    X[0] = 1.0
    assert_same(X[:250], X[250:], 9)
    fast, _, _ = both(X)
    fast.graph(every(9), None)
    assert "exact" in vars(fast), "float64 should have been asked here"


def test_float32_suffices_for_ordinary_points():
    fast, _, _ = both(random_rows(2_000, 8))
    fast.graph(every(10), None)
    assert "exact" not in vars(fast)


@pytest.mark.parametrize("factor", [3.0, 1e4, 1e30])
def test_new_points_far_outside(factor):
    X = random_rows(400, 4)
    X[350:] *= factor
    assert_same(X[:300], X[300:], 8)
    assert_same(X[:300], X[350:], 8)


@pytest.mark.parametrize("metric", ["seuclidean", "mahalanobis", "cosine", "correlation"])
def test_metrics_that_become_euclidean(metric):
    X = random_rows(500, 6) @ np.random.default_rng(3).normal(size=(6, 6))
    assert_same(X[:400], X[400:], 11, metric)


def test_classifier_and_pickle():
    X, y = load_wine(return_X_y=True)
    fast = KFreeClassifier(algorithm="faiss", metric="seuclidean").fit(X[::2], y[::2])
    slow = KFreeClassifier(algorithm="brute", metric="seuclidean").fit(X[::2], y[::2])
    expected = slow.predict_proba(X[1::2])
    np.testing.assert_array_equal(fast.predict_proba(X[1::2]), expected)
    again = pickle.loads(pickle.dumps(fast))
    np.testing.assert_array_equal(again.predict_proba(X[1::2]), expected)


def test_threads_of_faiss_stay_as_they_were():
    before = faiss.omp_get_max_threads()
    both(random_rows(100, 2))[0].graph(every(3), 2)
    assert faiss.omp_get_max_threads() == before


@pytest.mark.parametrize(
    "settings",
    [
        {"metric": "manhattan"},
        {"p": 1},
        {"metric": "precomputed"},
        {"metric": "hamming"},
        {"metric": "minkowski", "metric_params": {"p": 3}},
        {"metric": lambda a, b: abs(a - b).sum()},
    ],
)
def test_other_metrics_are_refused(settings):
    model = KFreeClassifier(algorithm="faiss", **settings)
    with pytest.raises(ValueError, match="searches Euclidean distances only"):
        model.fit(np.eye(4), [0, 0, 1, 1])


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr("kfree.validation.metrics.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="needs the package faiss-cpu"):
        KFreeClassifier(algorithm="faiss").fit(np.eye(4), [0, 0, 1, 1])
