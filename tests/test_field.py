"""FieldClassifier as its users meet it: conventions, invariances, extremes, bad input."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss, pairwise_distances
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import kfree
from kfree import FieldClassifier
from kfree.field import design as field_design
from kfree.field import estimator as field_estimator
from kfree.field.assembly import learn
from kfree.field.evidence import starting_weights
from kfree.field.forest import N_TREES, grow
from kfree.field.logit import Rows, Weights, loss_and_gradient, softmax
from kfree.field.views import Spec

GRAPH = (("graph", "precomputed", None),)
VARIANTS = [
    FieldClassifier(),
    FieldClassifier(views=("scores", ("city", "manhattan", None)), n_jobs=2),
    FieldClassifier(views=GRAPH, linear=False),
]


def expected_failures(estimator):
    failures = {
        "check_sample_weight_equivalence_on_dense_data": "weights enter the pseudo-likelihood; a "
        "row repeated would also be its own neighbor"
    }
    if estimator.views == GRAPH:
        failures["check_decision_proba_consistency"] = "the check gives no square matrix"
    return failures


@parametrize_with_checks(VARIANTS, expected_failed_checks=expected_failures)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def clouds(n=60, n_classes=3, seed=0, n_features=2):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    angle = 2 * np.pi * y / n_classes
    X = rng.normal(size=(n, n_features))
    X[:, :2] += 1.5 * np.column_stack([np.cos(angle), np.sin(angle)])
    return X, y, rng.normal(size=(25, n_features)) * 1.5


X, Y, NEW = clouds()
MODELS = [
    FieldClassifier(),
    FieldClassifier(views=("within",), linear=False, n_neighbors=20),
    FieldClassifier(views=("forest",), random_state=1),
    FieldClassifier(views=("scores", ("direction", "cosine", None)), class_weight="balanced"),
]
models = pytest.mark.parametrize("model", MODELS, ids=lambda model: str(model.views))


# --- In scikit-learn's company -------------------------------------------------------------------


@models
def test_pickle_copy_and_file(model, tmp_path):
    fitted = clone(model).fit(X, Y)
    expected, left_out = fitted.predict_proba(NEW), fitted.predict_proba(None)
    kfree.save(fitted, tmp_path / "field.kfree")
    for twin in (
        pickle.loads(pickle.dumps(fitted)),
        copy.deepcopy(fitted),
        kfree.load(tmp_path / "field.kfree"),
    ):
        np.testing.assert_array_equal(twin.predict_proba(NEW), expected)
        np.testing.assert_array_equal(twin.predict_proba(None), left_out)
        assert twin.blocks_ == fitted.blocks_


def test_a_saved_forest_that_was_altered_is_not_walked_for_ever():
    fitted = FieldClassifier(views=("forest",), random_state=0).fit(X, Y)
    state = fitted.__getstate__()
    state["_fitted"]["forest"]["left"][1:] = 0
    with pytest.raises(ValueError, match="trees of the saved model"):
        FieldClassifier().__setstate__(state)


@models
def test_pipeline_and_cross_validation(model):
    pipeline = make_pipeline(StandardScaler(), clone(model))
    assert cross_val_score(pipeline, X, Y, cv=3, error_score="raise").mean() > 0.5


def test_frames_and_labels():
    frame = pd.DataFrame(X, columns=["height", "weight"])
    expected = FieldClassifier().fit(X, Y).predict_proba(NEW)
    names = np.array(["ape", "bee", "cat"])
    fitted = FieldClassifier().fit(frame, pd.Series(names[Y]))
    assert fitted.feature_names_in_.tolist() == ["height", "weight"]
    new = pd.DataFrame(NEW, columns=["height", "weight"])
    np.testing.assert_array_equal(fitted.predict_proba(new), expected)
    np.testing.assert_array_equal(fitted.predict(new), names[expected.argmax(axis=1)])
    in_polars = FieldClassifier().fit(pl.from_pandas(frame), pl.Series(Y))
    np.testing.assert_array_equal(in_polars.predict_proba(pl.from_pandas(new)), expected)


@models
def test_jobs_and_blocks(model, monkeypatch):
    expected = clone(model).set_params(n_jobs=1).fit(X, Y)
    monkeypatch.setattr("kfree.neighbors.tree.BLOCK_ROWS", 16)
    monkeypatch.setattr("kfree.neighbors.brute.BLOCK_DISTANCES", 600)
    found = [clone(model).set_params(n_jobs=n).fit(X, Y) for n in (1, 2)]
    for call in (lambda m: m.predict_proba(NEW), lambda m: m.predict_proba(None)):
        np.testing.assert_array_equal(call(found[0]), call(found[1]))
        np.testing.assert_allclose(call(found[0]), call(expected), atol=1e-9)
    monkeypatch.setattr(field_estimator, "BLOCK_NUMBERS", 1)
    np.testing.assert_allclose(expected.predict_proba(NEW), found[0].predict_proba(NEW), atol=1e-9)


# --- What comes out ------------------------------------------------------------------------------


@models
def test_after_fit(model):
    fitted = clone(model).fit(X, Y)
    assert fitted.blocks_[-1] == "offset"
    assert fitted.precision_.shape == (len(fitted.blocks_),)
    assert (fitted.precision_ > 0).all()
    assert set(fitted.coef_) == set(fitted.blocks_)
    assert np.isfinite(fitted.log_evidence_)
    assert fitted.n_iter_ > 0
    p = fitted.predict_proba(NEW)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(NEW)), p)
    eta = fitted.decision_function(NEW)
    np.testing.assert_allclose(np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True), p)
    assert fitted.score(None, Y) > 0.6


@models
@pytest.mark.parametrize("n_classes", [2, 3])
def test_contributions_sum_to_the_logit(model, n_classes):
    rows, labels, new = clouds(n_classes=n_classes)
    fitted = clone(model).fit(rows, labels)
    parts = fitted.contributions(new)
    assert parts.blocks == fitted.blocks_
    assert parts.values.shape == (25, len(fitted.blocks_), n_classes)
    eta = parts.logits[:, 1] - parts.logits[:, 0] if n_classes == 2 else parts.logits
    np.testing.assert_allclose(eta, fitted.decision_function(new), atol=1e-12)


def test_neighbors_are_those_of_the_views():
    model = FieldClassifier(views=("within", ("plain", "euclidean", None)), n_neighbors=7)
    model.fit(X, np.array(["a", "b", "c"])[Y])
    found = model.neighbors(NEW)
    assert list(found) == ["within", "plain"]
    distances = pairwise_distances(NEW, X)
    order = np.argsort(distances, axis=1)[:, :7]
    np.testing.assert_array_equal(found["plain"].indices, order)
    np.testing.assert_allclose(
        found["plain"].distances, np.take_along_axis(distances, order, axis=1)
    )
    np.testing.assert_array_equal(found["plain"].labels, np.array(["a", "b", "c"])[Y[order]])
    own = model.neighbors(None)["plain"].indices
    assert own.shape == (60, 7)
    assert (own != np.arange(60)[:, None]).all()


def test_precomputed_is_the_metric_that_made_it():
    D, D_new = pairwise_distances(X), pairwise_distances(NEW, X)
    expected = FieldClassifier(views=(("plain", "euclidean", None),), linear=False).fit(X, Y)
    for given, given_new in ((D, D_new), (csr_matrix(D), csr_matrix(D_new))):
        found = FieldClassifier(views=GRAPH, linear=False).fit(given, Y)
        np.testing.assert_allclose(
            found.predict_proba(given_new), expected.predict_proba(NEW), atol=1e-6
        )


def test_the_forest_is_that_of_scikit_learn():
    seed = np.random.RandomState(3).randint(np.iinfo(np.int32).max)
    trees = ExtraTreesClassifier(N_TREES, bootstrap=True, oob_score=True, random_state=seed).fit(
        X, Y
    )
    forest, out_of_bag = grow(X, Y, 3, seed, None)
    np.testing.assert_allclose(forest.probabilities(NEW), trees.predict_proba(NEW), atol=1e-12)
    np.testing.assert_allclose(out_of_bag, trees.oob_decision_function_)


@pytest.mark.parametrize("informative", [False, True])
def test_few_distinct_rows(informative):
    # Equal rows have the same neighbors but for themselves, which must not tell their labels: it
    # took the log loss from 0.69 to 0.89, and from 0.60 to 0.82.
    rng = np.random.default_rng(0)

    def draw(n):
        rows = rng.integers(0, 2, size=(n, 3)).astype(float)
        share = 1 / (1 + np.exp(1.5 - 3 * rows[:, 0])) if informative else np.full(n, 0.5)
        return rows, (rng.random(n) < share).astype(int), share

    rows, labels, _ = draw(200)
    new, new_labels, share = draw(2000)
    model = FieldClassifier().fit(rows, labels)
    ideal = log_loss(new_labels, share)
    assert log_loss(new_labels, model.predict_proba(new)[:, 1]) < ideal + 0.03
    assert abs(log_loss(labels, model.predict_proba(None)[:, 1]) - ideal) < 0.08


@pytest.mark.parametrize(
    ("weight", "said"), [(0.0, "leaves every row a weight of zero"), (-1.0, "zero or positive")]
)
def test_class_weights_that_cannot_be(weight, said):
    with pytest.raises(ValueError, match=said):
        FieldClassifier(class_weight=dict.fromkeys(range(3), weight)).fit(X, Y)


def test_two_rows_have_no_farther_to_go():
    # Warnings are errors here: rounding ends the optimizer's way, not max_iter.
    model = FieldClassifier().fit(X[[0, 50]], [0, 1])
    # Without its own row a class has none left.
    assert (model.predict_proba(None).argmax(axis=1) == [1, 0]).all()


def test_trees_do_not_repeat_what_fit_says():
    # More than half as many classes as rows: scikit-learn says so once, not for each tree.
    with pytest.warns(UserWarning, match="number of unique classes") as said:
        FieldClassifier().fit(X[:30], np.arange(30) % 16)
    assert len(said) == 1


def test_scores_do_not_change_with_a_monotone_column():
    bent = np.exp(X)
    views = {"views": ("scores",), "linear": False}
    expected = FieldClassifier(**views).fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(
        FieldClassifier(**views).fit(bent, Y).predict_proba(bent), expected, atol=1e-6
    )


def test_order_of_rows_and_names_of_classes_do_not_matter():
    # Without the forest, whose trees draw rows by their number.
    model = FieldClassifier(views=("scores", "within"))
    expected = clone(model).fit(X, Y).predict_proba(NEW)
    order = np.random.default_rng(0).permutation(len(Y))
    shuffled = clone(model).fit(X[order], Y[order]).predict_proba(NEW)
    np.testing.assert_allclose(shuffled, expected, atol=1e-3)
    swapped = clone(model).fit(X, 2 - Y).predict_proba(NEW)
    np.testing.assert_allclose(swapped[:, ::-1], expected, atol=1e-3)


def test_shared_weights_are_never_negative():
    rng = np.random.default_rng(0)
    model = FieldClassifier().fit(rng.normal(size=(80, 3)), rng.integers(0, 2, 80))
    shared = [name for name in model.blocks_ if name.endswith(", shared")]
    assert shared
    assert min(model.coef_[name].min() for name in shared) >= 0.0


# --- Weights of rows -----------------------------------------------------------------------------


def test_weights_of_one_change_nothing():
    expected = FieldClassifier().fit(X, Y).predict_proba(NEW)
    found = FieldClassifier().fit(X, Y, sample_weight=np.ones(len(Y))).predict_proba(NEW)
    np.testing.assert_array_equal(found, expected)


def test_a_weight_of_two_is_the_row_twice_in_the_likelihood():
    _, design, _ = learn(X, Y, 3, [Spec("scores")], True, 20, None, None)
    weights = starting_weights(design, Y, np.ones(60))
    pair = design.pair_of(Y)
    one, _ = loss_and_gradient(design, Rows(Y, np.ones(60), pair), weights)
    first = np.where(np.arange(60) == 0, 2.0, 1.0)
    two, _ = loss_and_gradient(design, Rows(Y, first, pair), weights)
    alone, _ = loss_and_gradient(design, Rows(Y, (np.arange(60) == 0) * 1.0, pair), weights)
    assert two == pytest.approx(one + alone)


def test_class_weights_move_the_offset():
    rare = np.where(np.arange(60) % 10 == 0, 1, 0)
    plain = FieldClassifier().fit(X, rare).predict_proba(NEW)[:, 1].mean()
    balanced = FieldClassifier(class_weight="balanced").fit(X, rare).predict_proba(NEW)[:, 1].mean()
    assert balanced > 1.5 * plain
    heavy = FieldClassifier().fit(X, rare, sample_weight=np.where(rare == 1, 5.0, 60 / 108))
    np.testing.assert_allclose(heavy.predict_proba(NEW)[:, 1].mean(), balanced, atol=1e-6)


# --- Many classes --------------------------------------------------------------------------------


def many(monkeypatch, few, n_neighbors=30):
    monkeypatch.setattr(field_design, "FEW_CLASSES", few)
    monkeypatch.setattr("kfree.field.assembly.FEW_CLASSES", few)
    rows, labels, new = clouds(120, 6)
    views = ("scores", "within")
    return rows, labels, new, FieldClassifier(views=views, n_neighbors=n_neighbors, linear=False)


def test_sparse_gradient(monkeypatch):
    rows, labels, *_ = many(monkeypatch, 2)
    _, design, _ = learn(rows, labels, 6, [Spec("scores"), Spec("within")], False, 5, None, None)
    assert len(design.row) < 6 * 120
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 120)
    task = Rows(labels, weights, design.pair_of(labels))
    assert (task.pair == -1).any()
    w = np.random.default_rng(1).normal(size=design.values.shape[1] + 6) * 0.3

    def unpack(w):
        return Weights(w[:-6], np.zeros((6, 0)), w[-6:])

    # The obvious way: all logits of every row.
    def loss(w):
        parts = unpack(w)
        eta = np.tile(parts.offset, (120, 1))
        for pair, (i, c) in enumerate(zip(design.row, design.label, strict=True)):
            eta[i, c] += design.values[pair] @ parts.shared
        total = np.log(np.exp(eta).sum(axis=1))
        return weights @ (total - eta[np.arange(120), labels])

    value, slope = loss_and_gradient(design, task, unpack(w))
    assert value == pytest.approx(loss(w), rel=1e-12)
    found = np.concatenate([slope.shared, slope.offset])
    step = 1e-5 * np.eye(len(w))
    wanted = [(loss(w + e) - loss(w - e)) / 2e-5 for e in step]
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_sparse_features_are_the_dense_ones_from_the_lists_end(monkeypatch):
    rows, labels, new, model = many(monkeypatch, 32, n_neighbors=119)
    dense = clone(model).fit(rows, labels)
    every, left_out = next(dense._designs(new)), dense.predict(None)
    rows, labels, new, model = many(monkeypatch, 2, n_neighbors=119)
    sparse = clone(model).fit(rows, labels)
    near = next(sparse._designs(new))
    assert every.everywhere
    assert not near.everywhere
    np.testing.assert_array_equal(near.row, every.row)
    lists, readings = dense._assembly.new_lists(new, 1), dense._assembly.readings
    ends = np.hstack([r.at_end(one) for r, one in zip(readings, lists, strict=True)])
    listed, meant = near.values[:, :-3], near.values[:, -3:]
    np.testing.assert_allclose(listed + ends[near.row], every.values[:, :-3], atol=1e-12)
    # Means and densities are measured from the least that is said for a class near the row.
    least = every.lowest(every.values[:, -3:])
    np.testing.assert_allclose(meant + least[near.row], every.values[:, -3:], atol=1e-9)
    # The two forms of the logit differ, but not in what they find.
    assert (sparse.predict(None) == left_out).mean() > 0.8


def test_sparse_shares_add_up(monkeypatch):
    rows, labels, new, model = many(monkeypatch, 2, n_neighbors=4)
    fitted = model.fit(rows, labels)
    p = fitted.predict_proba(new)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (p > 0).all()
    assert fitted.score(rows, labels) > 0.3
    assert fitted.predict_proba(None).shape == (120, 6)
    parts = fitted.contributions(new)
    np.testing.assert_allclose(parts.logits, fitted.decision_function(new), atol=1e-12)
    design = next(fitted._designs(new))
    eta = field_design.logits(design, fitted._weights)
    near = softmax(design, eta, fitted._weights.offset).near
    np.testing.assert_allclose(p[design.row, design.label], near)


def test_more_classes_than_every_row_can_have_near():
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(60, 3)) * 4
    y = np.arange(360) % 60
    rows = centers[y] + rng.normal(size=(360, 3)) * 0.3
    model = FieldClassifier(n_neighbors=16).fit(rows, y)
    assert not any("linear" in name or "forest" in name for name in model.blocks_)
    assert model.score(None, y) > 0.8
    assert model.predict_proba(rows[:5]).shape == (5, 60)


def test_trees_alone_with_many_classes():
    rows, labels = np.random.default_rng(0).normal(size=(80, 2)), np.arange(80) % 40
    with pytest.raises(ValueError, match="'forest' alone speaks for up to 32 classes; y has 40"):
        FieldClassifier(views=("forest",)).fit(rows, labels)


# --- Extremes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows",
    [
        np.column_stack([X, np.ones(60)]),
        np.column_stack([X, X]),
        np.repeat(X[:30], 2, axis=0),
        X.round(),
        np.zeros((60, 2)),
        np.random.default_rng(0).normal(size=(60, 200)),
        X * 1e-8,
        X * 1e8 + 1e9,
        X * np.array([1e-170, 1e155]),
    ],
    ids=[
        "constant",
        "twins",
        "duplicates",
        "ties",
        "no columns",
        "wide",
        "small",
        "large",
        "extreme",
    ],
)
def test_odd_columns(rows):
    model = FieldClassifier().fit(rows, Y)
    for p in (model.predict_proba(rows), model.predict_proba(None)):
        assert np.isfinite(p).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0)


@pytest.mark.parametrize("labels", [[0, 1], [0, 0, 1], [0, 1, 2], [0, 0, 0, 0, 1, 1]], ids=str)
def test_few_rows(labels):
    rows = np.random.default_rng(0).normal(size=(len(labels), 2))
    model = FieldClassifier().fit(rows, labels)
    assert np.isfinite(model.predict_proba(rows)).all()
    assert np.isfinite(model.predict_proba(None)).all()


@pytest.mark.parametrize("n_features", [5, 400])
def test_noise_is_not_learned(n_features):
    rng = np.random.default_rng(1)
    rows, new = rng.normal(size=(200, n_features)), rng.normal(size=(200, n_features))
    y, y_new = rng.integers(0, 2, 200), rng.integers(0, 2, 200)
    p = FieldClassifier().fit(rows, y).predict_proba(new)
    assert -np.log(p[np.arange(200), y_new]).mean() < 0.73


def test_separated_classes_are_certain():
    rows = np.concatenate([X[:30] * 0.1, X[:30] * 0.1 + 50.0])
    y = np.arange(60) // 30
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = FieldClassifier().fit(rows, y)
    assert model.predict_proba(None)[np.arange(60), y].min() > 0.9


# --- Bad input -----------------------------------------------------------------------------------


def test_far_rows_count_as_half_a_range_beyond_the_training_rows():
    model = FieldClassifier().fit(X, Y)
    half = 0.5 * np.ptp(X, axis=0)
    border = np.array([X.max(axis=0) + half, X.min(axis=0) - half])
    expected = model.predict_proba(border)
    # Beyond single precision, in which trees compare, too: warnings are errors here.
    for step in (1.0, 1e6, 1e140):
        far = border + np.array([[step], [-step]])
        np.testing.assert_allclose(model.predict_proba(far), expected, rtol=1e-6)
    assert (expected > 0).all()
    # Nearer ones still differ.
    assert (model.predict_proba(border * 0.9) != expected).any()


def bad(rows, column, value):
    rows = rows.copy()
    rows[3, column] = value
    return rows


@pytest.mark.parametrize(
    ("model", "rows", "labels", "weights", "message"),
    [
        ({}, bad(X, 1, np.nan), Y, None, r"^Input X contains NaN in column 1 \(first in row 3\); "
         r"fill in or drop missing values first\.$"),
        ({}, bad(X, 0, np.inf), Y, None, "contains infinity in column 0"),
        ({}, X, np.zeros(60), None, "only one class"),
        ({}, X, Y, -np.ones(60), "contains a negative weight, -1 in row 0"),
        ({}, X, Y, np.where(np.arange(60) == 5, np.nan, 1.0), "NaN or infinity, first in row 5"),
        ({}, X, Y, np.zeros(60), "zero for every row"),
        ({}, X, Y, np.ones(59), r"shape \(59,\); it needs one weight for each of the 60 rows"),
        ({}, X, Y, ["a"] * 60, "sample_weight must hold numbers"),
        ({"views": ("ranks",)}, X, Y, None, "There is no view 'ranks'; a view is one of 'scores'"),
        ({"views": "scores"}, X, Y, None, "views must be a list or tuple"),
        ({"views": ()}, X, Y, None, "at least one view"),
        ({"views": (3,)}, X, Y, None, "A view is one of"),
        ({"views": ("scores", "scores")}, X, Y, None, "'scores' twice"),
        ({"views": (("scores", "cosine", None),)}, X, Y, None, "another name"),
        ({"views": (("a", "cosin", None),)}, X, Y, None, "The view 'a': metric must be one of"),
        ({"views": (("a", "minkowski", {"w": [1.0]}),)}, X, Y, None, "'a': params.*has shape"),
        ({"views": (("a", "haversine", None),)}, np.ones((60, 3)), Y, None, "needs 2 features"),
        ({"views": (*GRAPH, "scores"), "linear": False}, X, Y, None, "must be the only one"),
        ({"views": GRAPH}, X, Y, None, "needs linear=False"),
        ({"views": GRAPH, "linear": False}, X, Y, None, "must be the square matrix"),
        ({"n_neighbors": 1}, X, Y, None, "n_neighbors must be a whole number of at least 2; got 1"),
        ({"n_neighbors": 2.5}, X, Y, None, "n_neighbors must be a whole number"),
        ({"linear": "yes"}, X, Y, None, "linear must be True or False"),
        ({"max_iter": 0}, X, Y, None, "max_iter must be a whole number"),
        ({"tol": -1}, X, Y, None, "tol must be a positive finite number"),
        ({"n_jobs": 0}, X, Y, None, "n_jobs must be None"),
    ],
)  # fmt: skip
def test_bad_input(model, rows, labels, weights, message):
    estimator = FieldClassifier(**model)
    with pytest.raises(ValueError, match=message) as caught:
        estimator.fit(rows, labels, sample_weight=weights)
    assert "\n" not in str(caught.value)
    assert not hasattr(estimator, "classes_")


def test_a_graph_that_does_not_fit():
    model = FieldClassifier(views=GRAPH, linear=False).fit(pairwise_distances(X), Y)
    with pytest.raises(ValueError, match="is expecting 60 features"):
        model.predict(np.ones((2, 59)))
    with pytest.raises(ValueError, match="Negative values"):
        model.predict(-np.ones((2, 60)))
    with pytest.raises(ValueError, match="stores no neighbor of row 0"):
        FieldClassifier(views=GRAPH, linear=False).fit(csr_matrix((60, 60)), Y)


def test_contributions_need_rows():
    with pytest.raises(ValueError, match="needs rows here"):
        FieldClassifier().fit(X, Y).contributions(None)


def test_an_optimizer_that_is_stopped_says_what_to_do():
    with pytest.warns(ConvergenceWarning, match="raise max_iter, or tol"):
        FieldClassifier(max_iter=1).fit(X, Y)


def test_rows_that_do_not_differ_within_their_classes():
    model = FieldClassifier().fit([[0.0], [5.0]], ["a", "b"])
    assert abs(model.decision_function([[0.1]])[0]) < 10.0
    model = FieldClassifier().fit(np.array([[0.0], [0.1], [5.0]]), ["a", "a", "b"])
    assert (model.predict_proba(None) > 0.0).all()


# --- Equal rows ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_equal_rows_do_not_give_their_labels_away(seed):
    """Twelve places, each many times: class, child and woman of the Titanic's passengers."""
    places = np.array([(a, b, c) for a in (0, 1, 2) for b in (0, 1) for c in (0, 1)], dtype=float)
    n_rows = [175, 144, 5, 1, 168, 93, 11, 13, 462, 165, 48, 31]
    n_saved = [57, 140, 5, 1, 14, 80, 11, 13, 75, 76, 13, 14]
    X = np.repeat(places, n_rows, axis=0)
    y = np.concatenate([np.arange(n) < k for n, k in zip(n_rows, n_saved, strict=True)]).astype(int)
    share = np.repeat(np.divide(n_saved, n_rows), n_rows)
    best = log_loss(y, share, labels=[0, 1])
    # In the order of a file that is sorted by label, and in others.
    order = np.arange(len(y)) if seed is None else np.random.default_rng(seed).permutation(len(y))
    model = FieldClassifier(random_state=0).fit(X[order], y[order])
    assert log_loss(y, model.predict_proba(X)) < best + 0.005
    assert best - 0.002 < log_loss(y[order], model.predict_proba(None)) < best + 0.02
