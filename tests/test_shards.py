"""Shards without any cluster: lists, posteriors and probabilities as on one machine."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from kfree import KFreeClassifier
from kfree.neighbors.metric import BOOLEAN, PAIRWISE
from kfree.shards import flow, lists, posteriors, rows, small_model
from kfree.training import KnownPosteriors


class AtOnce:
    """Carries out the flow of `kfree.shards` here and now, one task after the other."""

    def task(self, name, function, *args, at=None):
        return function(*args)

    def keep(self, tasks):
        return list(tasks)

    def forget(self, tasks):
        pass

    def fetch(self, tasks):
        return list(tasks)

    def tell(self, stage):
        pass


def parts_of(X, n_parts=3):
    bounds = np.linspace(0, len(X), n_parts + 1).astype(int)
    return [X[a:b] for a, b in itertools.pairwise(bounds)]


def train(X, y, n_shards, by_space, **settings):
    """A model in shards, and the same in one piece."""
    one = KFreeClassifier(**settings).fit(X, y)
    return flow.fit(AtOnce(), one, parts_of(X), parts_of(y), n_shards, by_space), one


def probabilities(averages):
    return small_model.join_averages(averages).class_probabilities


def check_probabilities(fitted, one, new=None):
    """Of new rows, in two parts, and of the training rows."""
    parts = np.array_split(new, 2)
    found = probabilities(flow.average_of_new(AtOnce(), fitted, one, parts))
    np.testing.assert_allclose(found, one.predict_proba(new), rtol=0, atol=1e-9)
    found = probabilities(flow.average_of_held_out(AtOnce(), fitted))
    np.testing.assert_allclose(found, one.predict_proba(None), rtol=0, atol=1e-9)


def check_lists(fitted, one):
    model, right = flow.bring_home(AtOnce(), fitted, "auto"), one._model
    np.testing.assert_array_equal(model.graph.indices, right.graph.indices)
    np.testing.assert_array_equal(model.graph.radii, right.graph.radii)
    np.testing.assert_array_equal(model.labels, right.labels)
    codes = np.concatenate([g.codes for g in fitted.neighbors.graphs])
    order = np.argsort(np.concatenate([s.ids for s in fitted.shards.shards]))
    labels = rows.label_of(codes[order], fitted.shards.plan)
    np.testing.assert_array_equal(labels, right.labels[right.graph.indices])


def cut(X, y, n_shards, disorder=False):
    """Shards by space and their boxes; with `disorder` the rows of a shard in any order."""
    parts = [
        rows.read_part(KFreeClassifier(), *pair)
        for pair in zip(parts_of(X), parts_of(y), strict=True)
    ]
    summaries = [rows.summarize(part) for part in parts]
    plan = rows.make_plan(KFreeClassifier(), summaries, n_shards, True)
    first = np.cumsum([0, *(len(part.X) for part in parts)])
    spread = flow.spread(AtOnce(), parts, plan, first)
    if not disorder:
        return spread
    order = [np.random.default_rng(0).permutation(shard.n_points) for shard in spread.shards]
    mixed = [
        replace(s, ids=s.ids[o], points=s.points[o], labels=s.labels[o])
        for s, o in zip(spread.shards, order, strict=True)
    ]
    return replace(spread, shards=mixed)


def blobs(n, d, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    return rng.normal(size=(n_classes, d))[y] + rng.normal(size=(n, d)), y


def grid(n, d, n_classes, seed=0):
    """Integers, so that nearly every distance is a tie, and many rows are there twice."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, d)).astype(float)
    return X, (X.sum(axis=1) + rng.integers(0, 2, n)).astype(int) % n_classes


@pytest.mark.parametrize("n_shards", [1, 2, 5, 8])
@pytest.mark.parametrize("by_space", [True, False])
@pytest.mark.parametrize("make", [blobs, grid])
def test_lists_are_those_of_one_machine(make, by_space, n_shards):
    X, y = make(300, 3, 3)
    fitted, one = train(X, y, n_shards, by_space, k_max=60)
    check_lists(fitted, one)
    np.testing.assert_array_equal(fitted.posterior.k_probabilities, one.k_posterior_)


@pytest.mark.parametrize(
    ("n_classes", "limits"),
    [
        (2, {}),  # in one place
        (2, {"FEW_NEIGHBORS": 0}),  # from patterns
        (2, {"FEW_NEIGHBORS": 0, "FEW_PATTERNS": 100}),  # some candidates at a time
        (16, {"FEW_NEIGHBORS": 0, "FEW_PATTERNS": 100}),
        (100, {}),
        (100, {"FEW_NEIGHBORS": 0}),
        (100, {"FEW_NEIGHBORS": 0, "FEW_PATTERNS": 100}),
    ],
)
def test_the_posterior_does_not_depend_on_the_shards(n_classes, limits, monkeypatch):
    for name, value in limits.items():
        monkeypatch.setattr(posteriors, name, value)
    X, y = grid(200, 3, n_classes)
    y[:n_classes] = np.arange(n_classes)
    one = KFreeClassifier(k_max=12).fit(X, y)
    for n_shards, by_space in itertools.product([2, 5, 8], [True, False]):
        fitted = flow.fit(AtOnce(), one, parts_of(X), parts_of(y), n_shards, by_space)
        np.testing.assert_array_equal(fitted.posterior.k_probabilities, one.k_posterior_)
    check_probabilities(fitted, one, grid(20, 3, n_classes, seed=1)[0])


def longest(value):
    """The longest array anywhere in a value."""
    if isinstance(value, np.ndarray):
        return max(value.shape, default=0)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return max([len(value), *map(longest, value)])
    return longest(getattr(value, "__dict__", ())) if not isinstance(value, type) else 0


class Watched(AtOnce):
    """Notes what is longest of all that tasks make."""

    def __init__(self):
        self.longest = {}

    def task(self, name, function, *args, at=None):
        result = function(*args)
        self.longest[name] = max(longest(result), self.longest.get(name, 0))
        return result


@pytest.mark.parametrize("n_classes", [2, 20])
@pytest.mark.parametrize("structure", ["asymmetric", "boltzmann"])
def test_nobody_holds_anything_as_long_as_all_rows(structure, n_classes, monkeypatch):
    monkeypatch.setattr(posteriors, "FEW_NEIGHBORS", 0)  # as for large data
    X, y = blobs(4800, 2, n_classes)  # more rows than nodes of beta
    settings, engine = KFreeClassifier(k_max=2, structure=structure), Watched()
    parts = parts_of(X, 8), parts_of(y, 8)
    fitted = flow.fit(engine, settings, *parts, 16, True)
    flow.average_of_new(engine, fitted, settings, parts_of(X, 8))
    flow.average_of_held_out(engine, fitted)
    assert {"read", "shard", "merge-lists", "visit", "average", "part"} <= set(engine.longest)
    # Neighbors and those who have a row as theirs stand in one line: four for each row here.
    too_long = {name: n for name, n in engine.longest.items() if n >= len(X) // 2}
    assert not too_long
    monkeypatch.setattr(posteriors, "FEW_NEIGHBORS", 1 << 20)
    flow.fit(engine, settings, *parts, 16, True)  # little data are brought together: the control
    assert engine.longest["likelihood"] >= len(X)


def test_rows_out_of_order_break_ties_wrongly():
    # The control of the test above: it can fail.
    X, y = grid(400, 3, 3)
    right = KFreeClassifier(k_values=np.arange(1, 61)).fit(X, y)._model.graph.indices
    for disorder, least in ((False, 0.0), (True, 0.02)):
        spread = cut(X, y, 3, disorder)
        everybody = [range(n) for n in spread.n_points]
        found = flow.merged_lists(AtOnce(), spread, np.arange(1, 61), everybody)
        order = np.argsort(np.concatenate([s.ids for s in spread.shards]))
        codes = np.concatenate([part.codes for part in found])[order]
        wrong = (rows.id_of(codes, spread.plan) != right).mean()
        assert wrong > least if disorder else wrong == least


@pytest.mark.parametrize("structure", ["asymmetric", "boltzmann", "boltzmann2"])
@pytest.mark.parametrize("update", ["joint", "conditional"])
@pytest.mark.parametrize("make", [blobs, grid])
def test_probabilities_are_those_of_one_machine(structure, update, make):
    X, y = make(210, 3, 3)
    for n_shards, by_space in [(4, True), (3, False)]:
        settings = {"k_max": 20, "structure": structure, "update": update}
        fitted, one = train(X, y, n_shards, by_space, **settings)
        np.testing.assert_array_equal(fitted.posterior.k_probabilities, one.k_posterior_)
        check_probabilities(fitted, one, make(30, 3, 3, seed=1)[0])


@pytest.mark.parametrize(
    ("n_classes", "structure"), [(2, "boltzmann2"), (20, "asymmetric"), (20, "boltzmann")]
)
def test_many_classes_a_few_candidates_at_a_time(n_classes, structure, monkeypatch):
    monkeypatch.setattr(posteriors, "FEW_NEIGHBORS", 0)  # as for large data
    monkeypatch.setattr(posteriors, "FEW_PATTERNS", 100)
    X, y = blobs(200, 2, n_classes)
    fitted, one = train(X, y, 3, True, k_max=15, structure=structure)
    assert isinstance(fitted.likelihood, KnownPosteriors)
    np.testing.assert_array_equal(fitted.posterior.k_probabilities, one.k_posterior_)
    check_probabilities(fitted, one, blobs(20, 2, n_classes, seed=1)[0])


@pytest.mark.parametrize("structure", ["asymmetric", "boltzmann", "boltzmann2"])
def test_the_most_probable_k(structure):
    X, y = blobs(200, 3, 3)
    fitted, one = train(X, y, 4, True, k_max=20, average=False, structure=structure)
    check_probabilities(fitted, one, blobs(30, 3, 3, seed=1)[0])


def crowd(n, seed=0):
    """A chessboard, and far from it points that all are nearer to their middle than each other.

    All of them have points of another class as their nearest: the lowest index wins a tie.
    """
    rng = np.random.default_rng(seed)
    X = np.zeros((n, 20))
    X[:, :2] = rng.uniform(0.0, 4.0, (n, 2))
    around = 30.0 + np.concatenate([np.eye(20), -np.eye(20)])
    y = np.floor(X).sum(axis=1).astype(int) % 2
    return np.concatenate([X, around]), np.concatenate([y, np.arange(40) < 3])


@pytest.mark.parametrize("structure", ["asymmetric", "boltzmann", "boltzmann2"])
def test_a_row_that_enters_many_neighborhoods(structure):
    fitted, one = train(*crowd(600), 4, True, k_values=[1, 2, 3, 60], structure=structure)
    # The last row enters 40 neighborhoods at once.
    new = np.concatenate([crowd(20, seed=1)[0][:20], np.full((1, 20), 30.0)])
    found = probabilities(flow.average_of_new(AtOnce(), fitted, one, [new]))
    np.testing.assert_allclose(found, one.predict_proba(new), rtol=0, atol=1e-9)


@pytest.mark.parametrize("structure", ["asymmetric", "boltzmann", "boltzmann2"])
@pytest.mark.parametrize("few_neighbors", [1 << 20, 0])
def test_auto_ends_where_one_machine_ends(structure, few_neighbors, monkeypatch):
    monkeypatch.setattr(posteriors, "FEW_NEIGHBORS", few_neighbors)
    X, y = crowd(300)
    fitted, one = train(X, y, 3, True, structure=structure)
    assert one.k_max_ < 100  # of 339 that were looked at
    np.testing.assert_array_equal(fitted.candidates.k, one.k_values_)
    np.testing.assert_allclose(fitted.posterior.k_probabilities, one.k_posterior_, atol=1e-12)
    check_probabilities(fitted, one, X[:20] + 0.1)


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev", "cosine", "correlation", "minkowski"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_metrics(metric, dtype):
    X, y = blobs(250, 4, 3)
    fitted, one = train(X.astype(dtype), y, 3, True, k_max=30, metric=metric)
    check_lists(fitted, one)
    check_probabilities(fitted, one, blobs(30, 4, 3, seed=1)[0].astype(dtype))


@pytest.mark.parametrize("metric", sorted(PAIRWISE))
def test_metrics_without_axes(metric):
    X, y = blobs(120, 2, 3)
    X, new = (X > 0.0, X[:20] > 0.5) if metric in BOOLEAN else (X, X[:20] + 0.1)
    fitted, one = train(X, y, 3, False, k_max=15, metric=metric)
    check_lists(fitted, one)
    check_probabilities(fitted, one, new)
    with pytest.raises(ValueError, match=f"cannot cut a space whose metric is '{metric}'"):
        train(X, y, 3, True, k_max=15, metric=metric)


@pytest.mark.parametrize(
    ("metric", "params"),
    [("seuclidean", {"V": [1.0, 4.0]}), ("mahalanobis", {"VI": [[2.0, 0.5], [0.5, 1.0]]})],
)
def test_metrics_whose_parameters_are_given(metric, params):
    X, y = blobs(120, 2, 3)
    fitted, one = train(X, y, 3, True, k_max=15, metric=metric, metric_params=params)
    check_lists(fitted, one)
    check_probabilities(fitted, one, X[:20] + 0.1)


def test_shards_smaller_than_k_and_empty_ones():
    X, y = grid(40, 1, 2)  # four distinct rows: cuts leave shards empty
    for n_shards, by_space in [(10, True), (12, False)]:
        fitted, one = train(X, y, n_shards, by_space, k_max=25)
        assert by_space != all(s.n_points for s in fitted.shards.shards)
        check_lists(fitted, one)
        check_probabilities(fitted, one, np.linspace(-1.0, 5.0, 7)[:, None])


@pytest.mark.parametrize("far_more", [0.0, 2.0])
def test_visitors_far_from_home(far_more, monkeypatch):
    # Rows alone in their shard see all of a dense one within their reach: the k nearest of it come.
    monkeypatch.setattr(lists, "FAR_MORE", far_more)
    rng = np.random.default_rng(0)
    dense, lonely = rng.normal(size=(300, 2)), rng.normal(size=(60, 2)) * 100.0 + [500.0, 0.0]
    X, y = np.concatenate([dense, lonely]), rng.integers(0, 2, 360)
    fitted, one = train(X, y, 5, True, k_max=50)
    check_lists(fitted, one)


def test_rows_near_no_border_visit_no_other_shard():
    X, y = blobs(2000, 2, 3)
    spread = cut(X, y, 4)
    n_visits = sum(
        len(lists.lists_and_visitors(s, spread.boxes, 10, range(s.n_points))[1 + t].row)
        for s in spread.shards
        for t in range(4)
        if t != s.number
    )
    assert 0 < n_visits < 0.5 * len(X)


def test_cuts_share_the_rows_evenly():
    X, y = blobs(3000, 3, 3)
    shards = cut(X, y, 5).shards
    assert all(500 < shard.n_points < 700 for shard in shards)
    assert all((np.diff(shard.ids) > 0).all() for shard in shards)


def test_what_is_wrong_with_a_part_is_said():
    settings = KFreeClassifier()
    assert rows.read_part(settings, np.zeros((3, 2)), np.zeros(2)).problem is not None
    bad = np.zeros((3, 2))
    bad[1, 1] = np.nan
    problem = rows.read_part(settings, bad, np.zeros(3)).problem
    assert "NaN in column 1 (first in row 1)" in problem
    assert rows.read_part(settings, sparse.csr_array((3, 2)), np.zeros(3)).problem == rows.SPARSE
