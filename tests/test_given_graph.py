"""Sparse graphs of neighbors: complete ones are the dense matrix, shorter ones come close."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsTransformer
from sklearn.pipeline import make_pipeline

from kfree import KFreeClassifier, PKNNClassifier, StructuredKNNClassifier

MODELS = [
    KFreeClassifier(),
    KFreeClassifier(structure="boltzmann", k_max=5),
    KFreeClassifier(structure="boltzmann2", inference="laplace", k_max=4),
    KFreeClassifier(update="conditional", average=False),
    PKNNClassifier(4, structure="boltzmann2"),
    StructuredKNNClassifier(3, structure="boltzmann"),
]
models = pytest.mark.parametrize("model", MODELS, ids=lambda m: f"{type(m).__name__}-{m.structure}")


def rows(n=90, seed=0, whole=False):
    """Three overlapping clouds and new points; whole numbers have ties and duplicates."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = random.normal(size=(n + 30, 2))
    X[:n, 0] += 1.5 * y
    if whole:
        X = np.round(2.0 * X)
    return X[:n], y, X[n:]


def complete(D, diagonal):
    """All distances as a sparse graph that stores zeros too, with or without its diagonal."""
    row, column = np.indices(D.shape).reshape(2, -1)
    kept = np.ones(len(row), dtype=bool) if diagonal else row != column
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row[kept]))])
    return sparse.csr_array((D.ravel()[kept], column[kept], indptr), shape=D.shape)


@models
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("diagonal", [False, True])
def test_complete_graph_is_the_dense_matrix(model, whole, diagonal):
    X, y, new = rows(whole=whole)
    D, D_new = pairwise_distances(X), pairwise_distances(new, X)
    model = clone(model).set_params(metric="precomputed")
    dense = clone(model).fit(D, y)
    given = clone(model).fit(complete(D, diagonal), y)
    expected = dense.predict_proba(D_new)
    np.testing.assert_array_equal(given.predict_proba(complete(D_new, True)), expected)
    if not isinstance(model, StructuredKNNClassifier):
        np.testing.assert_array_equal(given.predict_proba(None), dense.predict_proba(None))


def test_order_and_format_do_not_matter():
    X, y, _ = rows()
    graph = KNeighborsTransformer(n_neighbors=20).fit_transform(X)
    model = KFreeClassifier(metric="precomputed").fit(graph, y)
    expected = model.predict_proba(None)
    random = np.random.default_rng(1)
    shuffled = graph.copy()
    for i in range(len(X)):
        part = slice(graph.indptr[i], graph.indptr[i + 1])
        order = random.permutation(part.stop - part.start)
        shuffled.indices[part] = graph.indices[part][order]
        shuffled.data[part] = graph.data[part][order]
    before = shuffled.copy()
    for other in (shuffled, graph.tocsc(), graph.tocoo(), sparse.csr_array(graph)):
        again = KFreeClassifier(metric="precomputed").fit(other, y)
        np.testing.assert_array_equal(again.predict_proba(None), expected)
    np.testing.assert_array_equal(shuffled.indices, before.indices)
    np.testing.assert_array_equal(shuffled.data, before.data)


def test_pipeline_with_a_transformer():
    X, y, new = rows()
    pipeline = make_pipeline(
        KNeighborsTransformer(n_neighbors=40, mode="distance"),
        KFreeClassifier(metric="precomputed", k_max=10),
    ).fit(X, y)
    exact = KFreeClassifier(k_max=10).fit(X, y)
    # The training graph is the same, so the posterior is. A reverse neighbor that is not in the
    # list of a new row is missing, which here moves one row by 0.005.
    np.testing.assert_allclose(pipeline[-1].k_posterior_, exact.k_posterior_, rtol=1e-12)
    np.testing.assert_allclose(pipeline.predict_proba(new), exact.predict_proba(new), atol=1e-2)
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.6


def test_short_lists_change_something():
    """Were reverse neighbors found elsewhere, the test above would show nothing."""
    X, y, new = rows()
    exact = KFreeClassifier(k_max=10).fit(X, y).predict_proba(new)
    short = make_pipeline(
        KNeighborsTransformer(n_neighbors=10), KFreeClassifier(metric="precomputed", k_max=10)
    )
    assert np.abs(short.fit(X, y).predict_proba(new) - exact).max() > 1e-6


def test_duplicates_beyond_the_list_are_no_trouble():
    X = np.repeat([[0.0], [1.0]], 20, axis=0)
    y = np.repeat([0, 1], 20)
    graph = KNeighborsTransformer(n_neighbors=5).fit_transform(X)
    model = KFreeClassifier(metric="precomputed").fit(graph, y)
    assert model.k_max_ == 5
    assert (model.predict(None) == y).all()


def test_k_max_follows_the_shortest_list():
    X, y, _ = rows()
    graph = KNeighborsTransformer(n_neighbors=12).fit_transform(X).tolil()
    assert KFreeClassifier(metric="precomputed").fit(graph, y).k_max_ == 12
    graph.rows[5], graph.data[5] = graph.rows[5][:8], graph.data[5][:8]  # itself and 7 others
    assert KFreeClassifier(metric="precomputed").fit(graph, y).k_max_ == 7


def test_pickle_and_copy():
    X, y, new = rows()
    transformer = KNeighborsTransformer(n_neighbors=15).fit(X)
    model = KFreeClassifier(metric="precomputed").fit(transformer.transform(X), y)
    graph = transformer.transform(new)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(again.predict_proba(graph), model.predict_proba(graph))


def test_blocks_do_not_matter(monkeypatch):
    X, y, new = rows()
    transformer = KNeighborsTransformer(n_neighbors=15).fit(X)
    graph, graph_new = transformer.transform(X), transformer.transform(new)
    expected = KFreeClassifier(metric="precomputed").fit(graph, y).predict_proba(graph_new)
    monkeypatch.setattr("kfree.neighbors.given_graph.BLOCK_ROWS", 7)
    monkeypatch.setattr("kfree.blocks.SEARCH_ROWS", 11)
    model = KFreeClassifier(metric="precomputed", n_jobs=2).fit(graph, y)
    # Products of matrices round differently from block to block.
    np.testing.assert_allclose(model.predict_proba(graph_new), expected, rtol=1e-12)


# --- What is refused -----------------------------------------------------------------------------


def graph_of(n_neighbors=10):
    X, y, new = rows()
    transformer = KNeighborsTransformer(n_neighbors=n_neighbors).fit(X)
    return transformer.transform(X), y, transformer.transform(new)


def refused(sentence, model, X, y):
    with pytest.raises(ValueError, match=sentence):
        model.fit(X, y)


def test_more_neighbors_than_stored():
    graph, y, _ = graph_of()
    sentence = "k_max=11 is more than the 10 neighbors that the sparse X stores for row 0; give at"
    refused(sentence, KFreeClassifier(metric="precomputed", k_max=11), graph, y)
    sentence = "n_neighbors=11 is more than the 10 neighbors that the sparse X stores"
    refused(sentence, PKNNClassifier(11, metric="precomputed"), graph, y)


def test_a_row_without_neighbors():
    graph, y, _ = graph_of()
    graph = graph.tolil()
    graph[7] = 0.0
    sentence = "stores no neighbor of row 7 other than itself; every training row needs at least 1"
    refused(sentence, KFreeClassifier(metric="precomputed"), graph.tocsr(), y)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_distances_that_are_none(value):
    graph, y, _ = graph_of()
    graph.data[3] = value
    refused("NaN or infinity among its", KFreeClassifier(metric="precomputed"), graph, y)


def test_negative_distances():
    graph, y, graph_new = graph_of()
    model = KFreeClassifier(metric="precomputed").fit(graph, y)
    graph_new.data[3] = graph.data[3] = -1.0
    refused("Negative values in data", clone(model), graph, y)
    with pytest.raises(ValueError, match="Negative values in data"):
        model.predict(graph_new)


def test_a_pair_twice():
    graph, y, _ = graph_of()
    graph.indices[1] = graph.indices[2]
    graph.has_canonical_format = False
    refused("stores a distance twice", KFreeClassifier(metric="precomputed"), graph, y)


def test_not_square():
    graph, y, _ = graph_of()
    refused("square matrix", KFreeClassifier(metric="precomputed"), graph[:, :50], y)


def test_new_rows_with_short_lists():
    graph, y, graph_new = graph_of()
    model = KFreeClassifier(metric="precomputed").fit(graph, y)
    short = graph_new.tolil()
    short[4] = 0.0
    sentence = "stores 0 neighbors for row 4, but KFreeClassifier needs the 10 nearest"
    with pytest.raises(ValueError, match=sentence):
        model.predict(short.tocsr())


def test_sparse_and_dense_do_not_mix():
    X, y, new = rows()
    graph, _, graph_new = graph_of()
    D, D_new = pairwise_distances(X), pairwise_distances(new, X)
    model = KFreeClassifier(metric="precomputed")
    with pytest.raises(ValueError, match="fitted on a sparse graph of distances; X must be one"):
        model.fit(graph, y).predict(D_new)
    with pytest.raises(ValueError, match="fitted on a dense matrix of distances; X must be one"):
        model.fit(D, y).predict(graph_new)


def test_other_metrics_take_no_sparse_rows():
    graph, y, _ = graph_of()
    with pytest.raises(TypeError, match="Sparse data was passed"):
        KFreeClassifier(metric="manhattan").fit(graph, y)
