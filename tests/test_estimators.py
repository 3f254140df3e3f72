"""The estimators as scikit-learn's users meet them: conventions, invariances, extremes."""

import copy
import pickle
from dataclasses import FrozenInstanceError, fields, replace
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import kfree.baselines
import kfree.blocks
from kfree import KFreeClassifier, PKNNClassifier, Posterior, StructuredKNNClassifier
from kfree.inference.quadrature import Rule

STRUCTURES = ("asymmetric", "boltzmann", "boltzmann2")

DEFAULTS = [KFreeClassifier(), PKNNClassifier(), StructuredKNNClassifier()]
# What the checks find depends on the kind of input that an estimator takes (its tags).
VARIANTS = [
    KFreeClassifier(
        structure="boltzmann", inference="laplace", average=False, algorithm="kd_tree", k_max=3
    ),
    KFreeClassifier(
        structure="boltzmann2", update="conditional", metric="manhattan", n_jobs=2, k_max=4
    ),
    KFreeClassifier(metric="nan_euclidean", k_max=3),
    KFreeClassifier(metric="precomputed", k_max=3),
    StructuredKNNClassifier(2, metric="precomputed"),
]


@parametrize_with_checks(DEFAULTS + VARIANTS)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


# Every combination of options that changes how numbers are made, at little cost.
MODELS = [
    KFreeClassifier(k_max=6),
    KFreeClassifier(structure="boltzmann", k_max=4),
    KFreeClassifier(structure="boltzmann2", inference="laplace", k_max=3),
    KFreeClassifier(inference="laplace", average=False, k_max=3),
    KFreeClassifier(structure="boltzmann2", update="conditional", k_max=4),
    KFreeClassifier(average=False, k_max=4),
    PKNNClassifier(),
    PKNNClassifier(4, structure="boltzmann"),
    StructuredKNNClassifier(),
    StructuredKNNClassifier(4, structure="boltzmann2"),
]


def name(model):
    return f"{type(model).__name__}-" + "-".join(map(str, changed(model).values()))


def changed(model):
    default = type(model)().get_params()
    return {key: value for key, value in model.get_params().items() if value != default[key]}


models = pytest.mark.parametrize("model", MODELS, ids=name)


def clouds(n=60, n_classes=3, seed=0, distance=1.5):
    """Overlapping clouds without ties in distance, and new points."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    angle = 2 * np.pi * y / n_classes
    X = rng.normal(size=(n, 2)) + distance * np.column_stack([np.cos(angle), np.sin(angle)])
    return X, y, rng.normal(size=(25, 2)) * 1.5


X, Y, NEW = clouds()


# --- In scikit-learn's company -------------------------------------------------------------------


@models
def test_pipeline_and_cross_validation(model):
    pipeline = make_pipeline(StandardScaler(), clone(model))
    scores = cross_val_score(pipeline, X, Y, cv=3, error_score="raise")
    assert scores.mean() > 0.5
    direct = clone(model).fit(StandardScaler().fit_transform(X), Y)
    scaled = StandardScaler().fit(X).transform(NEW)
    np.testing.assert_array_equal(
        pipeline.fit(X, Y).predict_proba(NEW), direct.predict_proba(scaled)
    )


@pytest.mark.parametrize("Estimator", [KFreeClassifier, PKNNClassifier, StructuredKNNClassifier])
def test_grid_search_over_structures(Estimator):
    search = GridSearchCV(Estimator(), {"structure": STRUCTURES}, cv=2, error_score="raise")
    search.fit(X, Y)
    assert search.best_params_["structure"] in STRUCTURES
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_grid_search_with_log_loss_and_jobs():
    grid = {"prior_scale": [1.0, 10.0], "update": ["joint", "conditional"]}
    search = GridSearchCV(KFreeClassifier(k_max=4), grid, scoring="neg_log_loss", cv=3, n_jobs=2)
    assert search.fit(X, Y).best_score_ > np.log(1 / 3)


@models
def test_clone_has_the_parameters_and_nothing_else(model):
    fitted = clone(model).fit(X, Y)
    fresh = clone(fitted)
    assert fresh.get_params() == model.get_params()
    assert not hasattr(fresh, "classes_")


@models
@pytest.mark.parametrize("algorithm", ["kd_tree", "brute"])
def test_pickle_and_copy(model, algorithm):
    fitted = clone(model).set_params(algorithm=algorithm).fit(X, Y)
    expected = fitted.predict_proba(NEW)
    for twin in (
        pickle.loads(pickle.dumps(fitted)),
        copy.copy(fitted),
        copy.deepcopy(fitted),
    ):
        np.testing.assert_array_equal(twin.predict_proba(NEW), expected)
        np.testing.assert_array_equal(twin.predict(NEW), fitted.predict(NEW))


@models
def test_fit_leaves_its_parameters_and_its_input_alone(model):
    estimator = clone(model)
    before, rows, labels = estimator.get_params(), X.copy(), Y.copy()
    estimator.fit(rows, labels).predict_proba(rows)
    assert estimator.get_params() == before
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(labels, Y)


@models
def test_fit_twice_is_fit_once(model):
    once = clone(model).fit(X, Y)
    other = clouds(40, 2, seed=9)
    again = clone(model).fit(*other[:2])
    again.fit(X, Y)
    np.testing.assert_array_equal(again.predict_proba(NEW), once.predict_proba(NEW))
    np.testing.assert_array_equal(again.classes_, once.classes_)
    assert vars(again).keys() == vars(once).keys()


def test_names_of_features_are_forgotten_with_a_new_fit():
    model = KFreeClassifier(k_max=5).fit(pd.DataFrame(X, columns=["a", "b"]), Y)
    assert not hasattr(model.fit(X, Y), "feature_names_in_")


def test_after_fit():
    model = KFreeClassifier().fit(X, Y)
    assert model.n_features_in_ == 2
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    assert model.k_posterior_.shape == model.k_values_.shape
    assert model.k_values_[-1] == model.k_max_ == len(X) - 1
    np.testing.assert_array_equal(model.k_values_[:32], np.arange(1, 33))
    assert len(model.k_values_) < model.k_max_
    assert model.k_posterior_.sum() == pytest.approx(1.0, abs=1e-12)
    assert model.k_optimal_ == model.k_values_[model.k_posterior_.argmax()]
    assert isinstance(model.k_optimal_, int)
    assert model.beta_mean_ > 0 and model.beta_std_ > 0
    density = model.training_density([1.0, 5.0])
    assert density.shape == (len(model.k_values_), 2)


def test_candidates_of_k():
    every = KFreeClassifier(k_values="all", k_max=45).fit(X, Y)
    np.testing.assert_array_equal(every.k_values_, np.arange(1, 46))
    some = KFreeClassifier(k_values=[7, 3, 20]).fit(X, Y)
    np.testing.assert_array_equal(some.k_values_, [3, 7, 20])
    np.testing.assert_array_equal(some.posterior(NEW).k, [3, 7, 20])
    assert some.k_max_ == 20
    # Equally probable beforehand, so the posterior is that of all K, looked at there only.
    expected = every.k_posterior_[[2, 6, 19]]
    np.testing.assert_allclose(some.k_posterior_, expected / expected.sum(), rtol=1e-9)
    thin = KFreeClassifier(k_max=45).fit(X, Y)
    np.testing.assert_array_equal(thin.k_values_[31:], [32, 35, 38, 41, 45])
    # Each stands for the numbers nearest to it: 34, 35 and 36 for 35, say.
    mass = np.exp(thin._model.candidates.log_prior) * 45
    np.testing.assert_allclose(mass[30:], [1, 2, 3, 3, 4, 2])


def test_a_second_mode_behind_a_valley_is_found():
    """Replicates whose subject effect exceeds that of the class: few K, or very many."""
    rng = np.random.default_rng(0)
    subject = np.repeat(np.arange(60), 5)
    y = subject % 2
    X = np.column_stack([20.0 * rng.normal(size=60)[subject], 6.0 * y])
    X += 0.01 * rng.normal(size=X.shape)
    wide = KFreeClassifier(k_values="all", k_max=299).fit(X, y)
    auto = KFreeClassifier().fit(X, y)
    assert auto.k_max_ == 299
    beyond = wide.k_posterior_[wide.k_values_ > 40].sum()
    assert abs(auto.k_posterior_[auto.k_values_ > 40].sum() - beyond) < 0.2


def two_sources(n=3993, period=8):
    """Rows from two sources, every eighth from the first, as from a file that takes turns.

    The first has groups of 8 rows that mostly agree, next to a group of the other class: K = 7 is
    good, and K = 15 to 30 is bad. The second has wide regions in which one class is somewhat
    commoner, which only a few hundred neighbors show.
    """
    rng = np.random.default_rng(0)
    first = np.arange(n) % period == 0
    group, region = rng.permutation(first.sum()) // 8, rng.permutation((~first).sum()) % 6
    side = rng.integers(0, 2, 1 + group.max() // 2)[group // 2]
    rows, labels = np.empty((n, 2)), np.empty(n, dtype=int)
    place = np.column_stack([1e6 + 1e3 * (group // 2) + 10.0 * (group % 2), 0.0 * group])
    rows[first] = place + 0.01 * rng.normal(size=place.shape)
    labels[first] = (group % 2) ^ side ^ (rng.permutation(len(group)) > 0.84 * len(group))
    rows[~first] = 1e4 * region[:, None] + 100.0 * rng.random((len(region), 2))
    labels[~first] = (region % 2) ^ (rng.permutation(len(region)) > 0.7 * len(region))
    return rows, labels


def test_a_second_mode_is_found_among_many_rows_too():
    """Here the first guess at k_max is made from some of the rows."""
    rows, labels = two_sources()
    some = [7, 23, 27, 32, 500]
    at = dict(zip(some, KFreeClassifier(k_values=some).fit(rows, labels).k_posterior_, strict=True))
    # Whoever looks at 32 neighbors sees one mode, at 7; the higher one is beyond the valley.
    assert max(at[23], at[27], at[32]) < 1e-9 * at[7] and at[7] < 0.01 * at[500]
    auto = KFreeClassifier().fit(rows, labels)
    wide = KFreeClassifier(k_max=1024).fit(rows, labels)
    assert auto.k_optimal_ == wide.k_optimal_ > 100
    assert wide.k_posterior_[wide.k_values_ > auto.k_max_].sum() < 1e-4


def test_guesses_from_rows_at_equal_steps_would_miss_it(monkeypatch):
    """A control: all of these rows are from the first source."""
    rows, labels = two_sources()
    monkeypatch.setattr(
        "kfree.training.pilots", lambda n: [np.linspace(0, n - 1, 500).astype(np.int64)]
    )
    assert KFreeClassifier().fit(rows, labels).k_max_ < 32


def test_mass_at_the_end_is_said(monkeypatch):
    monkeypatch.setattr("kfree.training.LAST_K_MAX", 4)
    with pytest.warns(UserWarning, match="k_max='auto' stopped at 4 neighbors"):
        model = KFreeClassifier().fit(X, Y)
    assert model.k_max_ == 4


# --- Kinds of input ------------------------------------------------------------------------------


@models
def test_frames(model):
    frame = pd.DataFrame(X, columns=["height", "weight"])
    new = pd.DataFrame(NEW, columns=["height", "weight"])
    expected = clone(model).fit(X, Y).predict_proba(NEW)
    fitted = clone(model).fit(frame, pd.Series(Y))
    assert fitted.feature_names_in_.tolist() == ["height", "weight"]
    np.testing.assert_array_equal(fitted.predict_proba(new), expected)
    in_polars = clone(model).fit(pl.from_pandas(frame), pl.Series(Y))
    assert in_polars.feature_names_in_.tolist() == ["height", "weight"]
    np.testing.assert_array_equal(in_polars.predict_proba(pl.from_pandas(new)), expected)
    np.testing.assert_array_equal(in_polars.predict_proba(new), expected)


@models
def test_names_that_come_or_go_are_warned_of(model):
    frame = pd.DataFrame(X, columns=["height", "weight"])
    named, unnamed = clone(model).fit(frame, Y), clone(model).fit(X, Y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        named.predict(X)
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        unnamed.predict(frame)


@pytest.mark.parametrize("transform", ["pandas", "polars", "default"])
def test_set_output_in_a_pipeline(transform):
    frame = pd.DataFrame(X, columns=["height", "weight"])
    keep = FunctionTransformer(feature_names_out="one-to-one")
    pipeline = make_pipeline(StandardScaler(), keep, KFreeClassifier(k_max=8))
    pipeline.set_output(transform=transform).fit(frame, Y)
    if transform != "default":
        assert pipeline[-1].feature_names_in_.tolist() == ["height", "weight"]
    expected = make_pipeline(StandardScaler(), KFreeClassifier(k_max=8)).fit(X, Y)
    new = pd.DataFrame(NEW, columns=["height", "weight"])
    np.testing.assert_array_equal(pipeline.predict_proba(new), expected.predict_proba(NEW))


@models
@pytest.mark.parametrize(
    "kind",
    [
        np.array(["ape", "bee", "cat"]),
        np.array(["ape", "bee", "cat"], dtype=object),
        np.array([False, True]),
        np.array([-7, 10, 300]),
        np.array([1.0, 2.0, 3.0]),
        np.array([3, 200, 255], dtype=np.uint8),
    ],
    ids=["text", "objects", "booleans", "integers", "floats", "bytes"],
)
def test_kinds_of_labels(model, kind):
    number = Y % len(kind)
    expected = of_numbers(MODELS.index(model), len(kind))
    fitted = clone(model).fit(X, kind[number])
    assert fitted.classes_.dtype == kind.dtype
    np.testing.assert_array_equal(fitted.classes_, kind)
    np.testing.assert_array_equal(fitted.predict_proba(NEW), expected)
    labels = fitted.predict(NEW)
    np.testing.assert_array_equal(labels, kind[expected.argmax(axis=1)])
    assert labels.dtype == kind.dtype
    np.testing.assert_array_equal(clone(model).fit(X, kind[number].tolist()).predict(NEW), labels)


@cache
def of_numbers(i, n_classes):
    """What a model says where labels are 0, 1, ..."""
    return clone(MODELS[i]).fit(X, Y % n_classes).predict_proba(NEW)


def test_categorical_labels():
    y = pd.Series(np.array(["ape", "bee", "cat"])[Y], dtype="category")
    model = KFreeClassifier(k_max=5).fit(X, y)
    assert model.classes_.tolist() == ["ape", "bee", "cat"]
    assert set(model.predict(NEW)) <= {"ape", "bee", "cat"}


@models
def test_layouts_of_arrays(model):
    whole = (X * 64).round() / 64  # exact in float32 too
    new = (NEW * 64).round() / 64
    expected = clone(model).fit(whole, Y).predict_proba(new)
    frozen, frozen_new, frozen_y = whole.copy(), new.copy(), Y.copy()
    for array in (frozen, frozen_new, frozen_y):
        array.flags.writeable = False
    wide, wide_new = np.repeat(whole, 2, axis=1), np.repeat(new, 2, axis=1)
    for rows, others, labels in [
        (frozen, frozen_new, frozen_y),
        (np.asfortranarray(whole), np.asfortranarray(new), Y),
        (whole.astype(np.float32), new.astype(np.float32), Y.astype(np.int8)),
        (wide[:, ::2], wide_new[:, ::2], Y),
        (whole.tolist(), new.tolist(), Y.tolist()),
        (whole.astype(">f8"), new.astype(">f8"), Y),
    ]:
        fitted = clone(model).fit(rows, labels)
        np.testing.assert_array_equal(fitted.predict_proba(others), expected)


@models
def test_whole_numbers_and_booleans_as_features(model):
    rows, new = X.round().astype(int), NEW.round().astype(int)
    expected = clone(model).fit(rows.astype(float), Y).predict_proba(new.astype(float))
    np.testing.assert_array_equal(clone(model).fit(rows, Y).predict_proba(new), expected)
    rows, new = X > 0, NEW > 0
    expected = clone(model).fit(rows.astype(float), Y).predict_proba(new.astype(float))
    np.testing.assert_array_equal(clone(model).fit(rows, Y).predict_proba(new), expected)


def test_precomputed_distances_are_the_same_as_the_metric():
    D, D_new = (np.abs(A[:, None] - X).sum(axis=2) for A in (X, NEW))
    for model in MODELS:
        expected = clone(model).set_params(metric="manhattan").fit(X, Y).predict_proba(NEW)
        fitted = clone(model).set_params(metric="precomputed").fit(D, Y)
        np.testing.assert_allclose(fitted.predict_proba(D_new), expected, atol=1e-12)


# --- What must not matter ------------------------------------------------------------------------


@models
@pytest.mark.parametrize("algorithm", ["kd_tree", "brute"])
def test_jobs(model, algorithm, monkeypatch):
    monkeypatch.setattr("kfree.neighbors.tree.BLOCK_ROWS", 16)
    monkeypatch.setattr("kfree.neighbors.brute.BLOCK_DISTANCES", 600)
    monkeypatch.setattr(kfree.blocks, "BLOCK_NUMBERS", 1)
    new = NEW[:10]  # each in a block of its own
    found = [
        clone(model).set_params(n_jobs=n_jobs, algorithm=algorithm).fit(X, Y).predict_proba(new)
        for n_jobs in (1, 2, None)
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def records(model, rows):
    """All numbers of a posterior record."""
    posterior = model.posterior(rows)
    numbers = {f.name: getattr(posterior, f.name) for f in fields(posterior) if f.name[0] != "_"}
    return numbers | {"density": posterior.density([0.5, 4.0])}


KFREE = [model for model in MODELS if isinstance(model, KFreeClassifier)]
kfree_models = pytest.mark.parametrize("model", KFREE, ids=name)


@kfree_models
@pytest.mark.parametrize("sizes", [(1, 1), (4000, 3)], ids=str)
def test_blocks(model, sizes, monkeypatch):
    fitted, new = clone(model).fit(X[:30], Y[:30]), NEW[:10]
    expected, left_out = records(fitted, new), records(fitted, None)
    monkeypatch.setattr(kfree.blocks, "BLOCK_NUMBERS", sizes[0])
    monkeypatch.setattr(kfree.blocks, "SEARCH_ROWS", sizes[1])
    for rows, whole in [(new, expected), (None, left_out)]:
        for key, value in records(fitted, rows).items():
            # Newton's search of a mode ends where a step is 1e-12 of beta; a conditional hardly
            # moves with beta, beta itself does.
            rtol = 1e-11 if key in ("beta_mean", "beta_std", "density") else 0.0
            np.testing.assert_allclose(value, whole[key], rtol=rtol, atol=1e-12, err_msg=key)


def test_blocks_of_the_fixed_one(monkeypatch):
    fitted = PKNNClassifier(structure="boltzmann").fit(X, Y)
    expected, left_out = fitted.predict_proba(NEW), fitted.predict_proba(None)
    monkeypatch.setattr(kfree.baselines, "BLOCK_ROWS", 2)
    np.testing.assert_allclose(fitted.predict_proba(NEW), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(fitted.predict_proba(None), left_out, rtol=0, atol=1e-12)


@models
@pytest.mark.parametrize("grid", [False, True], ids=["continuous", "tied"])
def test_rows_do_not_see_each_other(model, grid):
    rows, new = (X.round(), NEW[:12].round()) if grid else (X, NEW[:12])
    fitted = clone(model).fit(rows, Y)
    together = fitted.predict_proba(new)
    alone = np.vstack([fitted.predict_proba(row[None]) for row in new])
    np.testing.assert_allclose(alone, together, rtol=0, atol=1e-12)
    backward = fitted.predict_proba(new[::-1])[::-1]
    np.testing.assert_allclose(backward, together, rtol=0, atol=1e-12)
    twice = fitted.predict_proba(np.vstack([new, new]))
    np.testing.assert_allclose(twice, np.vstack([together, together]), rtol=0, atol=1e-12)


@models
def test_names_of_classes_do_not_matter(model):
    order = np.array([2, 0, 1])  # the new number of each class
    before = clone(model).fit(X, Y).predict_proba(NEW)
    after = clone(model).fit(X, order[Y]).predict_proba(NEW)
    np.testing.assert_allclose(after[:, order], before, rtol=0, atol=1e-9)


@models
def test_order_of_rows_does_not_matter_without_ties(model):
    order = np.random.default_rng(1).permutation(len(X))
    before = clone(model).fit(X, Y).predict_proba(NEW)
    after = clone(model).fit(X[order], Y[order]).predict_proba(NEW)
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-9)


@models
def test_order_of_columns_shift_and_turn_do_not_matter(model):
    """Only distances count."""
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    before = clone(model).fit(X, Y).predict_proba(NEW)
    for move in (lambda A: A[:, ::-1], lambda A: A + [5.0, -3.0], lambda A: A @ turn):
        after = clone(model).fit(move(X), Y).predict_proba(move(NEW))
        np.testing.assert_allclose(after, before, rtol=0, atol=1e-9)


@kfree_models
def test_scale_does_not_matter(model):
    before = clone(model).fit(X, Y).predict_proba(NEW)
    for factor in (1e-150, 1e-9, 1024.0, 1e120):
        after = clone(model).fit(factor * X, Y).predict_proba(factor * NEW)
        np.testing.assert_allclose(after, before, rtol=0, atol=1e-9)


def test_random_state_does_not_matter():
    one, two = (KFreeClassifier(random_state=s).fit(X, Y).predict_proba(NEW) for s in (1, 2))
    np.testing.assert_array_equal(one, two)


# --- Probabilities at the extremes ---------------------------------------------------------------


def assert_probabilities(model, rows):
    for some in (rows, None):
        p = model.predict_proba(some)
        assert np.isfinite(p).all() and (p > 0).all() and (p <= 1).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-12)
        assert np.isfinite(model.predict_log_proba(some)).all()


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("inference", ["quadrature", "laplace"])
@pytest.mark.parametrize("update", ["joint", "conditional"])
@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("prior_scale", [10.0, 1e4])
def test_separated_classes(structure, inference, update, average, prior_scale):
    rows, labels, _ = clouds(40, 2, distance=1000.0)
    model = KFreeClassifier(
        structure=structure, inference=inference, update=update, average=average,
        prior_scale=prior_scale, k_max=4,
    ).fit(rows, labels)  # fmt: skip
    assert_probabilities(model, np.vstack([rows[:3], [[0.0, 0.0]], [[1e6, 1e6]]]))
    assert (model.predict(rows) == labels).all()


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("inference", ["quadrature", "laplace"])
def test_two_hundred_classes(structure, inference):
    rng = np.random.default_rng(3)
    labels = np.arange(600) % 200
    rows = np.column_stack([labels // 15, labels % 15]) + 0.1 * rng.normal(size=(600, 2))
    model = KFreeClassifier(structure=structure, inference=inference, k_max=5).fit(rows, labels)
    p = model.predict_proba(rows[:20])
    assert p.shape == (20, 200) and (p > 0).all() and np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert (model.predict(rows[:20]) == labels[:20]).mean() > 0.9


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("beta", [1e-9, 3.0, 1e4, 1e8])
def test_a_given_strength(structure, beta):
    for rows, labels, new in (clouds(), clouds(40, 2, distance=1000.0)):
        model = PKNNClassifier(structure=structure, beta=beta).fit(rows, labels)
        assert model.beta_ == beta
        assert_probabilities(model, new)
    if beta == 1e-9:
        np.testing.assert_allclose(model.predict_proba(new), 0.5, atol=1e-6)


def test_all_rows_equal():
    for model in MODELS:
        fitted = clone(model).fit(np.ones((20, 2)), np.arange(20) % 3)
        p = fitted.predict_proba([[1.0, 1.0], [9.0, 9.0]])
        assert np.isfinite(p).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)


# --- k_max ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("n", [30, 250])
def test_auto_is_a_k_max_large_enough(structure, n):
    """Two classes, each a mixture of two overlapping clouds, as in Ripley's synthetic data."""
    rng = np.random.default_rng(4)
    center = np.array([[-0.7, 0.3], [0.3, 0.3], [-0.3, 0.7], [0.4, 0.7]])
    which = rng.integers(0, 4, n)
    rows, labels = center[which] + 0.17 * rng.normal(size=(n, 2)), which // 2
    new = rng.uniform(-1, 1, size=(40, 2))
    auto = KFreeClassifier(structure=structure).fit(rows, labels)
    larger = min(n - 1, 2 * auto.k_max_)
    given = KFreeClassifier(structure=structure, k_max=larger).fit(rows, labels)
    np.testing.assert_allclose(auto.predict_proba(new), given.predict_proba(new), rtol=0, atol=1e-5)
    n_k = len(auto.k_values_)
    np.testing.assert_array_equal(auto.k_values_, given.k_values_[:n_k])
    np.testing.assert_allclose(auto.k_posterior_, given.k_posterior_[:n_k], rtol=0, atol=1e-5)
    assert given.k_posterior_[n_k:].sum() < 1e-5


def test_auto_ends_where_the_posterior_has_died_out():
    """Predictions search no farther, and the neighbors beyond are not kept."""
    X = np.random.default_rng(0).uniform(0.0, 4.0, (600, 2))
    y = np.floor(X).sum(axis=1) % 2  # a chessboard
    auto = KFreeClassifier().fit(X, y)
    every = KFreeClassifier(k_max=599).fit(X, y)
    assert auto.k_max_ < 300
    beyond = every.k_values_ > auto.k_max_
    assert every.k_posterior_[beyond].sum() < 1e-15
    assert auto._model.graph.indices.shape == (600, auto.k_max_)
    np.testing.assert_allclose(auto.predict_proba(X), every.predict_proba(X), rtol=0, atol=1e-6)


def test_auto_on_labels_without_any_order():
    rng = np.random.default_rng(5)
    model = KFreeClassifier().fit(rng.normal(size=(50, 2)), rng.integers(0, 2, 50))
    assert 1 <= model.k_max_ <= 49


# --- The record, leave-one-out, scores -----------------------------------------------------------


@kfree_models
def test_posterior_record(model):
    fitted = clone(model).fit(X, Y)
    posterior = fitted.posterior(NEW)
    assert isinstance(posterior, Posterior)
    n_k = fitted.k_max_
    np.testing.assert_array_equal(posterior.k, np.arange(1, n_k + 1))
    assert posterior.k_probabilities.shape == (25, n_k)
    np.testing.assert_allclose(posterior.k_probabilities.sum(axis=1), 1.0, atol=1e-12)
    p = posterior.class_probabilities
    np.testing.assert_array_equal(p, fitted.predict_proba(NEW))
    within, between = posterior.class_variance_within, posterior.class_variance_between
    assert (within >= 0).all() and (between >= 0).all()
    np.testing.assert_allclose(within + between, p * (1 - p), rtol=0, atol=1e-12)
    assert between.max() < 1e-12 if not model.average else between.max() > 1e-8
    assert posterior.beta_mean.shape == posterior.beta_std.shape == (25,)
    assert posterior.density([1.0, 2.0]).shape == (25, n_k, 2)
    with pytest.raises(FrozenInstanceError):
        posterior.k = np.arange(3)


def test_mean_and_variance_of_the_label():
    posterior = KFreeClassifier(k_max=5).fit(X, Y).posterior(NEW)
    for i, p in enumerate(posterior.class_probabilities):
        mean = 1 * p[0] + 2 * p[1] + 3 * p[2]
        assert posterior.label_mean[i] == pytest.approx(mean, abs=1e-14)
        variance = 1 * p[0] + 4 * p[1] + 9 * p[2] - mean**2
        assert posterior.label_variance[i] == pytest.approx(variance, abs=1e-13)


@pytest.mark.parametrize("Estimator", [KFreeClassifier, PKNNClassifier])
def test_leave_one_out_score(Estimator):
    model = Estimator(**({"k_max": 6} if Estimator is KFreeClassifier else {})).fit(X, Y)
    p = model.predict_proba(None)
    assert p.shape == (60, 3)
    np.testing.assert_array_equal(model.predict(None), p.argmax(axis=1))
    assert model.score(None, Y) == (p.argmax(axis=1) == Y).mean()
    assert model.score(X, Y) == (model.predict(X) == Y).mean()
    np.testing.assert_array_equal(model.predict_log_proba(None), np.log(p))


@pytest.mark.parametrize("structure", STRUCTURES)
def test_leave_one_out_never_sees_the_label(structure):
    other = Y.copy()
    other[7] = (Y[7] + 1) % 3
    one, two = (
        KFreeClassifier(structure=structure, k_max=9).fit(X, y).predict_proba(None)[7]
        for y in (Y, other)
    )
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-7)


@models
def test_log_probabilities(model):
    if hasattr(model, "predict_log_proba"):
        fitted = clone(model).fit(X, Y)
        np.testing.assert_array_equal(
            fitted.predict_log_proba(NEW), np.log(fitted.predict_proba(NEW))
        )


@models
def test_the_label_is_the_most_probable_one(model):
    fitted = clone(model).fit(X, np.array(["ape", "bee", "cat"])[Y])
    expected = fitted.classes_[fitted.predict_proba(NEW).argmax(axis=1)]
    np.testing.assert_array_equal(fitted.predict(NEW), expected)


@pytest.mark.parametrize(
    "model",
    [PKNNClassifier(2), PKNNClassifier(4), KFreeClassifier(k_values=[2, 4], average=False)],
    ids=repr,
)
def test_the_last_digit_does_not_decide(model, monkeypatch):
    """A row amid two classes that mirror each other: equal but for rounding, so the first."""
    for seed in range(30):
        away = np.sort(np.random.default_rng(seed).random(9)) + 0.1
        X, y = np.append(away, -away)[:, None], np.repeat([0, 1], 9)
        fitted = clone(model).fit(X, y)
        one, other = fitted.predict_proba([[0.0]])[0]
        assert one == pytest.approx(other, rel=1e-10)
        assert fitted.predict([[0.0]]) == [0]
    for above, label in ((1e-13, 0), (1e-7, 1)):
        nearly = np.array([[0.5 - above, 0.5 + above]])
        monkeypatch.setattr(type(fitted), "predict_proba", lambda self, X, p=nearly: p)
        assert fitted.predict([[0.0]]) == [label]


# --- Five points by hand -------------------------------------------------------------------------
#
#   index     0    1    2         3         4 (new)
#   place     0    1    2         4         6
#   label     0    0    1         1         c
#
# Neighbors of the five points (tests/test_naive.py derives them with their ties), K = 1 and K = 2:
#
#   asymmetric   0: 1        1: 0        2: 1         3: 2        4: 3
#                0: 1 2      1: 0 2      2: 1 0       3: 2 4      4: 3 2
#   boltzmann    0: 1 1      1: 0 0 2    2: 1 3       3: 2 4      4: 3
#                0: 1 2 1 2  1: 0 2 0 2  2: 1 0 0 1 3 4           3: 2 4 4    4: 3 2 3
#   boltzmann2   0: 1        1: 0 2      2: 1 3       3: 2 4      4: 3
#                0: 1 2      1: 0 2      2: 0 1 3 4   3: 2 4      4: 2 3
#
# A term is -log(1 + exp(-beta m)) with m the share of the own class less that of the other one. The
# points 0 and 1 do not see the new one, so they cancel; left are those whose m depends on c:
#
#                      c = 0                         c = 1
#   asymmetric  K=1    4: -1                         4: 1
#               K=2    3: 0      4: -1               3: 1      4: 1
#   boltzmann   K=1    3: 0      4: -1               3: 2      4: 1
#               K=2    2: -2  3: -1/2  4: -3/2       2: -1  3: 3/2  4: 3/2
#   boltzmann2  K=1    3: 0      4: -1               3: 1      4: 1
#               K=2    2: -1/2  3: 0   4: -1         2: 0   3: 1    4: 1

MARGINS = {
    ("asymmetric", 1): ([-1], [1]),
    ("asymmetric", 2): ([0, -1], [1, 1]),
    ("boltzmann", 1): ([0, -1], [2, 1]),
    ("boltzmann", 2): ([-2, -0.5, -1.5], [-1, 1.5, 1.5]),
    ("boltzmann2", 1): ([0, -1], [1, 1]),
    ("boltzmann2", 2): ([-0.5, 0, -1], [0, 1, 1]),
}
PLACES, LABELS = [[0.0], [1.0], [2.0], [4.0]], [0, 0, 1, 1]


@pytest.mark.parametrize(("structure", "k"), list(MARGINS))
@pytest.mark.parametrize("beta", [0.1, 1.0, 7.0])
def test_five_points_by_hand(structure, k, beta):
    weight = [np.prod([1 / (1 + np.exp(-beta * m)) for m in ms]) for ms in MARGINS[structure, k]]
    model = PKNNClassifier(k, structure=structure, beta=beta).fit(PLACES, LABELS)
    expected = np.array(weight) / sum(weight)
    np.testing.assert_allclose(model.predict_proba([[6.0]])[0], expected, rtol=1e-12)


def test_five_points_in_numbers():
    """beta = log 3, so that exp(beta) = 3: fractions that can be checked on paper.

    asymmetric, K = 1: p(1) = (3/4) / (1/4 + 3/4) = 3/4.
    asymmetric, K = 2: c = 0: 1/2 * 1/4 = 1/8; c = 1: 3/4 * 3/4 = 9/16; p(1) = 9/11.
    boltzmann, K = 1: c = 0: 1/2 * 1/4 = 1/8; c = 1: 9/10 * 3/4 = 27/40; p(1) = 27/32.
    boltzmann2, K = 1: as asymmetric, K = 2.
    """
    for structure, k, expected in [
        ("asymmetric", 1, 3 / 4),
        ("asymmetric", 2, 9 / 11),
        ("boltzmann", 1, 27 / 32),
        ("boltzmann2", 1, 9 / 11),
    ]:
        model = PKNNClassifier(k, structure=structure, beta=np.log(3.0)).fit(PLACES, LABELS)
        assert model.predict_proba([[6.0]])[0, 1] == pytest.approx(expected, abs=1e-14)


def test_five_points_vote():
    """boltzmann, K = 2: 3 2 3 vote for the new point, all of class 1."""
    model = StructuredKNNClassifier(2, structure="boltzmann").fit(PLACES, LABELS)
    np.testing.assert_array_equal(model.predict_proba([[6.0]]), [[0.0, 1.0]])
    # At 1.5, K = 2: neighbors 1 and 2, one of each class at the same distance; the lower index.
    tied = StructuredKNNClassifier(2).fit(PLACES, LABELS)
    assert tied.predict([[1.5]])[0] == 0
    np.testing.assert_allclose(tied.predict_proba([[1.5]]), [[0.5, 0.5]], atol=1e-9)
    renamed = StructuredKNNClassifier(2).fit(PLACES, [1, 1, 0, 0])
    assert renamed.predict([[1.5]])[0] == 1


@pytest.mark.parametrize("structure", ["asymmetric", "boltzmann", "boltzmann2"])
def test_held_out_rows_need_few_nodes(structure):
    """From 200 rows on 24 values of beta serve leave-one-out; all of them give the same."""

    def n_nodes(rule):
        return np.isfinite(rule.log_weight).sum(axis=1).mean()

    rng = np.random.default_rng(0)
    y = np.arange(240) % 3
    # Many dimensions make hubs: rows that are neighbors of very many.
    X = rng.normal(size=(240, 20)) + 0.7 * (np.arange(20) % 3 == y[:, None])
    model = KFreeClassifier(structure=structure, k_max=12).fit(X, y)
    few = model.posterior(None)
    posterior = model._model.posterior
    every = Rule(
        np.arange(model._model.n_k),
        posterior.curves.beta,
        posterior.curves.log_mass + posterior.log_prior[:, None] - posterior.log_normalizer,
    )
    assert n_nodes(posterior.rule) <= 24 < n_nodes(every)
    model._model = replace(model._model, posterior=replace(posterior, rule=every))
    exact = model.posterior(None)
    np.testing.assert_allclose(few.class_probabilities, exact.class_probabilities, atol=1e-7)
    np.testing.assert_allclose(few.k_probabilities, exact.k_probabilities, atol=1e-7)
