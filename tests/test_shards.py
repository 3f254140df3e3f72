"""Shards without any cluster: lists, posteriors and probabilities as on one machine."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest

from kfree import KFreeClassifier
from kfree.candidates import make_candidates
from kfree.inference.prior import GammaPrior
from kfree.inference.quadrature import integrate
from kfree.inference.rules import training_posterior
from kfree.neighbors.metric import make_space
from kfree.shards import counting, lists, open_rows, rows, tables
from kfree.training import KnownPosteriors, beta_posterior


@dataclass
class Sharded:
    """All shards in one process, one after the other: the data flow of `kfree.dask`."""

    plan: rows.Plan
    shards: list
    boxes: rows.Boxes
    graphs: list
    incoming: list
    tables: list
    around: list
    knowledge: open_rows.Knowledge
    likelihood: object

    def predict_proba(self, X):
        points = self.plan.space.points(np.asarray(X, dtype=self.plan.dtype))
        know, each = self.knowledge, list(zip(self.shards, self.graphs, strict=True))
        home = [open_rows.meet_at_home(s, g, know, points, self.boxes) for s, g in each]
        reach = open_rows.reach_after(points, home, int(know.candidates.k[-1]))
        away = [open_rows.meet_elsewhere(s, g, know, points, self.boxes, reach) for s, g in each]
        arrived = open_rows.arrive(points, home + away, know)
        described = self.describe(arrived.wanted, know.structure != "asymmetric")
        found = open_rows.average_new(arrived, described, know, self.likelihood)
        return found.class_probabilities

    def describe(self, wanted, with_last):
        return [
            tables.describe(s, g, t, i, self.knowledge.structure, wanted, with_last)
            for s, g, t, i in zip(self.shards, self.graphs, self.tables, self.incoming, strict=True)
        ]

    def held_out(self, block_rows=64):
        parts = []
        for shard, table, incoming, around in zip(
            self.shards, self.tables, self.incoming, self.around, strict=True
        ):
            for start in range(0, shard.n_points, block_rows):
                chosen = np.arange(start, min(start + block_rows, shard.n_points))
                block = open_rows.hold_out(chosen, table, incoming, self.knowledge)
                described = self.describe(block.wanted, False)
                found = open_rows.average_held_out(
                    block,
                    shard,
                    around,
                    table,
                    incoming,
                    described,
                    self.knowledge,
                    self.likelihood,
                )
                parts.append((shard.ids[chosen], found))
        return open_rows.in_whole_order(parts).class_probabilities


def cut(X, y, n_shards, by_space, n_parts=3, metric="minkowski", disorder=False, **params):
    X, y = np.asarray(X), np.asarray(y)
    classes = np.unique(y)
    space = make_space(metric, 2, params or None, X)
    plan = rows.Plan(space, "auto", str(X.dtype), classes, len(X), n_shards, by_space)
    bounds = np.linspace(0, len(X), n_parts + 1).astype(int)
    settings = KFreeClassifier(metric=metric)
    parts = [rows.read_part(settings, X[a:b], y[a:b]) for a, b in itertools.pairwise(bounds)]
    cuts = None
    if by_space:
        cuts = rows.make_cuts([rows.sample_rows(part, plan) for part in parts], n_shards)
    pieces = [
        rows.split_part(part, plan, int(first), cuts)
        for part, first in zip(parts, bounds, strict=False)
    ]
    shards = [rows.make_shard(s, plan, [p[s] for p in pieces]) for s in range(n_shards)]
    if disorder:
        order = [np.random.default_rng(0).permutation(shard.n_points) for shard in shards]
        shards = [
            replace(s, ids=s.ids[o], points=s.points[o], labels=s.labels[o])
            for s, o in zip(shards, order, strict=True)
        ]
    boxes = rows.make_boxes([s.n_points for s in shards], [rows.box_of(s) for s in shards])
    return plan, shards, boxes


def all_lists(shards, boxes, k):
    own = [lists.own_lists(s, k) for s in shards]
    merged = []
    for s, at_home in zip(shards, own, strict=True):
        found = [
            lists.receive(t, lists.visitors(s, at_home, boxes, k, t.number), k)
            for t in shards
            if t is not s
        ]
        merged.append(lists.merge(at_home, found, k))
    return merged


def train(X, y, n_shards, by_space, k_max, structure="asymmetric", joint=True, average=True,
          by_shard=False, **options):  # fmt: skip
    plan, shards, boxes = cut(X, y, n_shards, by_space, **options)
    candidates, prior = make_candidates("auto", k_max), GammaPrior(2.0, 10.0)
    n_k, n_classes = len(candidates), len(plan.classes)
    graphs = [lists.make_graph(found, candidates.k) for found in all_lists(shards, boxes, k_max)]
    sent = [tables.outgoing(s, g) for s, g in zip(shards, graphs, strict=True)]
    incoming = [tables.make_incoming(s, [part[s.number] for part in sent]) for s in shards]
    sides = [
        None if structure == "asymmetric" else tables.both_sides(s, g, i, structure)
        for s, g, i in zip(shards, graphs, incoming, strict=True)
    ]
    around = [tables.label_table(plan, g, t, structure) for g, t in zip(graphs, sides, strict=True)]
    if by_shard:
        curves = [
            counting.shard_curves(s, a, np.arange(n_k)) for s, a in zip(shards, around, strict=True)
        ]

        def log_likelihood(beta, derivatives, which):
            return counting.sum_of_shards(
                [counting.evaluate(part, beta, derivatives, which) for part in curves]
            )

        beta = integrate(log_likelihood, n_k, prior)
        wide = integrate(log_likelihood, n_k, prior, np.full(n_k, 300.0))
        likelihood = KnownPosteriors((beta, wide))
    else:
        terms = counting.add_up(
            [counting.count_shard(s, a) for s, a in zip(shards, around, strict=True)]
        )
        likelihood = counting.MergedSum(terms, n_k)
        beta = beta_posterior(likelihood, prior)
    posterior = training_posterior(beta, candidates.log_prior, n_classes, plan.n_points)
    knowledge = open_rows.Knowledge(plan, structure, candidates, prior, posterior, joint, average)
    return Sharded(plan, shards, boxes, graphs, incoming, sides, around, knowledge, likelihood)


def in_whole(sharded):
    """The graph of all shards as one."""
    order = np.argsort(np.concatenate([s.ids for s in sharded.shards]))
    codes = np.concatenate([g.codes for g in sharded.graphs])[order]
    radii = np.concatenate([g.radii for g in sharded.graphs])[order]
    return rows.id_of(codes, sharded.plan), rows.label_of(codes, sharded.plan), radii


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
    X, y = make(400, 3, 3)
    sharded = train(X, y, n_shards, by_space, 60)
    one = KFreeClassifier(k_max=60).fit(X, y)
    indices, labels, radii = in_whole(sharded)
    np.testing.assert_array_equal(indices, one._model.graph.indices)
    np.testing.assert_array_equal(labels, one._model.labels[one._model.graph.indices])
    np.testing.assert_array_equal(radii, one._model.graph.radii)
    np.testing.assert_array_equal(sharded.knowledge.posterior.k_probabilities, one.k_posterior_)


def test_rows_out_of_order_break_ties_wrongly():
    # The control of the test above: it can fail.
    X, y = grid(400, 3, 3)
    plan, shards, boxes = cut(X, y, 3, True, disorder=True)
    found = all_lists(shards, boxes, 60)
    order = np.argsort(np.concatenate([s.ids for s in shards]))
    codes = np.concatenate([part.codes for part in found])[order]
    k = np.arange(1, 61)
    right = KFreeClassifier(k_values=k).fit(X, y)._model.graph.indices
    assert (rows.id_of(codes, plan) != right).mean() > 0.02


@pytest.mark.parametrize("structure", ["asymmetric", "boltzmann", "boltzmann2"])
@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("make", [blobs, grid])
def test_probabilities_are_those_of_one_machine(structure, joint, make):
    X, y = make(210, 3, 3)
    new = make(30, 3, 3, seed=1)[0]
    update = "joint" if joint else "conditional"
    one = KFreeClassifier(k_max=20, structure=structure, update=update).fit(X, y)
    for n_shards, by_space in [(4, True), (3, False)]:
        sharded = train(X, y, n_shards, by_space, 20, structure, joint)
        np.testing.assert_array_equal(sharded.knowledge.posterior.k_probabilities, one.k_posterior_)
        np.testing.assert_allclose(
            sharded.predict_proba(new), one.predict_proba(new), rtol=0, atol=1e-9
        )
        np.testing.assert_allclose(sharded.held_out(), one.predict_proba(None), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("n_classes", "structure"),
    [(2, "asymmetric"), (20, "asymmetric"), (100, "asymmetric"), (20, "boltzmann")],
)
def test_many_classes_and_sums_over_shards(n_classes, structure):
    X, y = blobs(200, 2, n_classes)
    new = blobs(20, 2, n_classes, seed=1)[0]
    one = KFreeClassifier(k_max=15, structure=structure).fit(X, y)
    sharded = train(X, y, 3, True, 15, structure, by_shard=True)
    np.testing.assert_allclose(
        sharded.knowledge.posterior.k_probabilities, one.k_posterior_, rtol=0, atol=1e-10
    )
    np.testing.assert_allclose(
        sharded.predict_proba(new), one.predict_proba(new), rtol=0, atol=1e-9
    )
    np.testing.assert_allclose(sharded.held_out(), one.predict_proba(None), rtol=0, atol=1e-9)


def test_the_most_probable_k():
    X, y = blobs(300, 3, 3)
    new = blobs(50, 3, 3, seed=1)[0]
    one = KFreeClassifier(k_max=40, average=False).fit(X, y)
    sharded = train(X, y, 4, True, 40, average=False)
    np.testing.assert_allclose(
        sharded.predict_proba(new), one.predict_proba(new), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize(
    ("metric", "by_space"),
    [("manhattan", True), ("chebyshev", True), ("cosine", True), ("correlation", True),
     ("canberra", False), ("minkowski", True)],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_metrics(metric, by_space, dtype):
    X, y = blobs(250, 4, 3)
    X = X.astype(dtype)
    new = blobs(30, 4, 3, seed=1)[0].astype(dtype)
    one = KFreeClassifier(k_max=30, metric=metric).fit(X, y)
    sharded = train(X, y, 3, by_space, 30, metric=metric)
    np.testing.assert_array_equal(in_whole(sharded)[0], one._model.graph.indices)
    np.testing.assert_allclose(
        sharded.predict_proba(new), one.predict_proba(new), rtol=0, atol=1e-9
    )


def test_shards_smaller_than_k_and_empty_ones():
    X, y = grid(40, 1, 2)  # four distinct rows: cuts leave shards empty
    one = KFreeClassifier(k_max=25).fit(X, y)
    new = np.linspace(-1.0, 5.0, 7)[:, None]
    for n_shards, by_space in [(10, True), (12, False)]:
        sharded = train(X, y, n_shards, by_space, 25)
        assert by_space != all(s.n_points for s in sharded.shards)
        np.testing.assert_array_equal(in_whole(sharded)[0], one._model.graph.indices)
        np.testing.assert_allclose(
            sharded.predict_proba(new), one.predict_proba(new), rtol=0, atol=1e-9
        )
        np.testing.assert_allclose(sharded.held_out(7), one.predict_proba(None), rtol=0, atol=1e-9)


def test_rows_near_no_border_visit_no_other_shard():
    X, y = blobs(2000, 2, 3)
    _, shards, boxes = cut(X, y, 4, True)
    own = [lists.own_lists(s, 10) for s in shards]
    n_visits = sum(
        len(lists.visitors(s, found, boxes, 10, t).row)
        for s, found in zip(shards, own, strict=True)
        for t in range(4)
        if t != s.number
    )
    assert 0 < n_visits < 0.5 * len(X)


def test_cuts_share_the_rows_evenly():
    X, y = blobs(3000, 3, 3)
    _, shards, _ = cut(X, y, 5, True)
    assert all(500 < shard.n_points < 700 for shard in shards)
    assert all((np.diff(shard.ids) > 0).all() for shard in shards)


def test_what_is_wrong_with_a_part_is_said():
    settings = KFreeClassifier()
    assert rows.read_part(settings, np.zeros((3, 2)), np.zeros(2)).problem is not None
    bad = np.zeros((3, 2))
    bad[1, 1] = np.nan
    problem = rows.read_part(settings, bad, np.zeros(3)).problem
    assert "NaN in column 1 (first in row 1)" in problem
