"""What cannot be done is refused in one sentence that names it, and nothing has changed then."""

import copy
import re
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

from kfree import KFreeClassifier, PKNNClassifier, StructuredKNNClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3))
Y = np.arange(20) % 2
FRAME = pd.DataFrame(X, columns=["height", "weight", "age"])

ESTIMATORS = [KFreeClassifier, PKNNClassifier, StructuredKNNClassifier]
estimators = pytest.mark.parametrize("Estimator", ESTIMATORS)


def changed(row, column, value, frame=False, dtype=float):
    out = FRAME.astype(dtype) if frame else X.astype(dtype)
    if frame:
        out.iloc[row, column] = value
    else:
        out[row, column] = value
    return out


def labels(*values):
    """Twenty labels, those given over and over."""
    return np.array(list(values) * 20, dtype=object)[:20]


def refused(call, words, kinds=(ValueError, TypeError)):
    """The call raises, and the first line of the message is a sentence with all of the words."""
    with pytest.raises(kinds) as caught:
        call()
    message = str(caught.value)
    first = message.splitlines()[0]
    for word in words:
        assert re.search(word, first), f"{word!r} is not in {first!r}"
    return message


def same_state(estimator, before):
    """Attributes are the very same objects, or equal where they were copied."""
    assert vars(estimator).keys() == before.keys()
    for name, value in before.items():
        assert vars(estimator)[name] is value, name


@cache
def fitted_once(Estimator):
    return Estimator().fit(FRAME, Y)


def check_fit(Estimator, words, X_bad=X, y_bad=Y, single=True, **parameters):
    """Refused by a new estimator, and by a fitted one that predicts afterwards as before."""
    fresh = Estimator(**parameters)
    before = dict(vars(fresh))
    message = refused(lambda: fresh.fit(X_bad, y_bad), words)
    assert not single or "\n" not in message
    same_state(fresh, before)
    with pytest.raises(NotFittedError):
        fresh.predict(X)

    fitted = copy.copy(fitted_once(Estimator))
    expected = fitted.predict_proba(FRAME)
    originals = fitted.get_params()
    fitted.set_params(**parameters)
    before = dict(vars(fitted))
    values = copy.deepcopy(before)
    refused(lambda: fitted.fit(X_bad, y_bad), words)
    same_state(fitted, before)
    for name in ("classes_", "feature_names_in_", "n_features_in_"):
        np.testing.assert_array_equal(getattr(fitted, name), values[name])
    fitted.set_params(**originals)
    np.testing.assert_array_equal(fitted.predict_proba(FRAME), expected)


# --- Features ------------------------------------------------------------------------------------

NUMBERS = {
    "NaN": (changed(3, 1, np.nan), ["NaN", "column 1", "row 3"]),
    "NaN in a frame": (changed(3, 1, np.nan, frame=True), ["NaN", "column 'weight'", "row 3"]),
    "None": (changed(3, 1, None, frame=True, dtype=object), ["NaN", "column 'weight'"]),
    "null in polars": (
        pl.DataFrame({"height": X[:, 0], "weight": [None, *X[1:, 1]]}),
        ["NaN", "column 'weight'", "row 0"],
    ),
    "infinity": (changed(4, 2, np.inf), ["infinity", "column 2", "row 4"]),
    "minus infinity": (changed(4, 2, -np.inf, frame=True), ["infinity", "column 'age'"]),
    "text": (changed(0, 1, "tall", dtype=object), ["text", "column 1", "'tall'"]),
    "text in a frame": (FRAME.assign(age="old"), ["text", "column 'age'", "'old'"]),
    "text in polars": (
        pl.DataFrame({"height": X[:, 0], "age": ["old"] * 20}),
        ["text", "column 'age'", "'old'"],
    ),
    "text in lists": ([[1.0, "tall"]] * 20, ["text", "column 1", "'tall'"]),
    "an empty array": (np.empty((0, 3)), ["0 sample"]),
    "no columns": (np.empty((20, 0)), ["0 feature"]),
    "three dimensions": (X[None], ["dim 3"]),
}


@estimators
@pytest.mark.parametrize("name", NUMBERS)
def test_features(Estimator, name):
    bad, words = NUMBERS[name]
    y = Y[:0] if name == "an empty array" else Y
    check_fit(Estimator, words, X_bad=bad, y_bad=y)
    fitted = Estimator().fit(X[:, : np.shape(bad)[-1]] if name != "no columns" else X, Y)
    expected = fitted.predict_proba(X[:, : fitted.n_features_in_])
    before = dict(vars(fitted))
    if not hasattr(bad, "columns"):  # names that were not there at fit are another matter
        refused(lambda: fitted.predict(bad), words)
        refused(lambda: fitted.predict_proba(bad), words)
    same_state(fitted, before)
    np.testing.assert_array_equal(fitted.predict_proba(X[:, : fitted.n_features_in_]), expected)


@estimators
@pytest.mark.parametrize("bad", [X[:, 0], [], None], ids=["one dimension", "empty list", "None"])
def test_not_a_table(Estimator, bad):
    """scikit-learn's message; its first line says what was expected and what came."""
    check_fit(Estimator, ["Expected 2D array"], X_bad=bad, single=False)


@estimators
def test_prediction_names_the_column_of_the_frame(Estimator):
    fitted = Estimator().fit(FRAME, Y)
    bad = changed(3, 1, np.nan, frame=True)
    refused(lambda: fitted.predict(bad), ["NaN", "column 'weight'", "row 3"])
    refused(lambda: fitted.predict(FRAME.assign(age="old")), ["text", "column 'age'"])


@estimators
def test_missing_values_pass_where_the_metric_knows_them(Estimator):
    bad = changed(3, 1, np.nan)
    model = Estimator(metric="nan_euclidean").fit(bad, Y)
    assert np.isfinite(model.predict_proba(bad)).all()
    check_fit(
        Estimator, ["infinity", "column 1"], X_bad=changed(3, 1, np.inf), metric="nan_euclidean"
    )


@estimators
@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_another_number_of_features(Estimator, method):
    fitted = Estimator().fit(X, Y)
    for bad in (X[:, :2], np.column_stack([X, X])):
        words = [f"X has {bad.shape[1]} features", f"{Estimator.__name__} is expecting 3"]
        assert "\n" not in refused(lambda bad=bad: getattr(fitted, method)(bad), words)


@estimators
def test_other_feature_names(Estimator):
    fitted = Estimator().fit(FRAME, Y)
    refused(lambda: fitted.predict(FRAME[["age", "weight", "height"]]), ["feature names"])
    refused(lambda: fitted.predict(FRAME.rename(columns={"age": "years"})), ["feature names"])


@estimators
def test_prediction_before_fit(Estimator):
    methods = ["predict", "predict_proba", "predict_log_proba", "posterior"]
    for name in methods:
        method = getattr(Estimator(), name, None)
        if method is not None:
            words = [Estimator.__name__, "not fitted", "fit"]
            message = refused(lambda method=method: method(X), words, NotFittedError)
            assert "\n" not in message
            refused(lambda method=method: method(None), words, NotFittedError)


def test_training_density_before_fit():
    refused(lambda: KFreeClassifier().training_density([1.0]), ["not fitted"], NotFittedError)


@estimators
def test_posterior_of_bad_rows(Estimator):
    if Estimator is KFreeClassifier:
        model = Estimator().fit(X, Y)
        refused(lambda: model.posterior(changed(3, 1, np.nan)), ["NaN", "column 1", "row 3"])
        refused(lambda: model.posterior(X[:, :2]), ["2 features", "3 features"])


# --- Labels --------------------------------------------------------------------------------------

LABELS = {
    "None given": (None, ["y", "None"]),
    "one class": (np.zeros(20, dtype=int), ["one class", "0", "at least 2"]),
    "one class of text": (labels("only"), ["one class", "'only'", "at least 2"]),
    "NaN": (np.where(np.arange(20) == 5, np.nan, Y), ["y contains", "row 5", "label"]),
    "None": (labels("a", "b", None), ["y contains", "row 2", "label"]),
    "NaN among text": (labels("a", np.nan, "b"), ["y contains", "row 1", "label"]),
    "None in pandas": (pd.Series(labels("a", "b", None)), ["y contains", "row 2", "label"]),
    "missing text in pandas": (
        pd.Series(list(labels("a", "b", None)), dtype="str"),
        ["y contains", "row 2", "label"],
    ),
    "missing numbers in pandas": (
        pd.Series(list(labels(1, 0, None)), dtype="Int64"),
        ["y contains", "row 2", "label"],
    ),
    "missing category": (
        pd.Series(list(labels("a", "b", None)), dtype="category"),
        ["y contains", "row 2", "label"],
    ),
    "null in polars": (pl.Series(list(labels("a", "b", None))), ["y contains", "row 2", "label"]),
    "pandas.NA": (
        pd.Series(list(labels("a", "b", pd.NA)), dtype="string"),
        ["y contains", "row 2", "label"],
    ),
    "infinity": (np.where(Y == 1, np.inf, 0.0), ["y contains infinity"]),
    "continuous": (X[:, 0], ["continuous"]),
    "two columns": (np.column_stack([Y, Y]), ["1d array", r"\(20, 2\)"]),
    "too few": (Y[:5], ["20 rows", "5 labels"]),
    "too many": (np.tile(Y, 2), ["20 rows", "40 labels"]),
}


@estimators
@pytest.mark.parametrize("name", LABELS)
def test_labels(Estimator, name):
    bad, words = LABELS[name]
    check_fit(Estimator, words, y_bad=bad)


@estimators
def test_rows_needed(Estimator):
    """It works from two rows on, one of each of two classes."""
    options = {"k_max": 1} if Estimator is KFreeClassifier else {"n_neighbors": 1}
    check_fit(Estimator, ["1", "at least 2 rows"], X_bad=X[:1], y_bad=Y[:1], **options)
    model = Estimator(**options).fit(X[:2], Y[:2])
    probability = model.predict_proba(X)
    assert probability.shape == (20, 2)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("structure", ["asymmetric", "boltzmann", "boltzmann2"])
@pytest.mark.parametrize("inference", ["quadrature", "laplace"])
def test_two_rows_are_enough(structure, inference):
    model = KFreeClassifier(structure=structure, inference=inference).fit(X[:2], Y[:2])
    assert model.k_max_ == 1
    for rows in (X, None):
        assert np.isfinite(model.predict_log_proba(rows)).all()


# --- Parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [0, -3, 2.5, 3.0, "many", None, True, np.nan])
def test_k_max_that_is_no_count(bad):
    check_fit(KFreeClassifier, ["k_max", "at least 1", re.escape(repr(bad))], k_max=bad)


@pytest.mark.parametrize("bad", [20, 21, 1000])
def test_k_max_above_the_number_of_others(bad):
    check_fit(KFreeClassifier, [f"k_max={bad}", "at most 19"], k_max=bad)
    assert KFreeClassifier(k_max=19).fit(X, Y).k_max_ == 19
    assert KFreeClassifier(k_max=np.int64(4)).fit(X, Y).k_max_ == 4


@pytest.mark.parametrize("Estimator", ESTIMATORS[1:])
@pytest.mark.parametrize("bad", [0, -3, 2.5, "auto", None, True])
def test_n_neighbors_that_is_no_count(Estimator, bad):
    check_fit(Estimator, ["n_neighbors", "at least 1", re.escape(repr(bad))], n_neighbors=bad)


@pytest.mark.parametrize("Estimator", ESTIMATORS[1:])
def test_n_neighbors_above_the_number_of_others(Estimator):
    check_fit(Estimator, ["n_neighbors=20", "at most 19"], n_neighbors=20)
    assert Estimator(19).fit(X, Y).n_neighbors_ == 19


@estimators
@pytest.mark.parametrize("bad", ["symmetric", "", None, ["asymmetric"], 1])
def test_structure(Estimator, bad):
    words = ["structure", "'asymmetric', 'boltzmann', 'boltzmann2'", re.escape(repr(bad))]
    check_fit(Estimator, words, structure=bad)


@estimators
@pytest.mark.parametrize("bad", ["euclid", None, 2])
def test_metric(Estimator, bad):
    check_fit(Estimator, ["metric", "'minkowski'", re.escape(repr(bad))], metric=bad)


@estimators
@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"algorithm": "ball_tree"}, ["algorithm", "'kd_tree'", "'ball_tree'"]),
        ({"algorithm": "kd_tree", "metric": "jaccard"}, ["kd_tree", "'jaccard'", "brute"]),
        ({"algorithm": "kd_tree", "p": 0.5}, ["kd_tree", "p=0.5", "brute"]),
        ({"p": 0}, ["p,", "positive", "0"]),
        ({"p": -2.0}, ["p,", "positive", "-2.0"]),
        ({"p": "2"}, ["p,", "positive", "'2'"]),
        ({"metric_params": [1.0]}, ["metric_params", "dict"]),
        ({"metric": "precomputed"}, ["precomputed", "square", r"\(20, 3\)"]),
        ({"metric": "haversine"}, ["haversine", "2 features", "3"]),
    ],
    ids=str,
)
def test_how_distances_are_measured(Estimator, parameters, words):
    check_fit(Estimator, words, **parameters)


@estimators
@pytest.mark.parametrize("bad", [0, 1.5, "2", True, np.nan])
def test_number_of_threads(Estimator, bad):
    words = ["n_jobs", "None or a whole number other than 0", re.escape(repr(bad))]
    check_fit(Estimator, words, n_jobs=bad)


@estimators
@pytest.mark.parametrize("good", [None, 1, -1, np.int64(2)])
def test_numbers_of_threads_that_joblib_knows(Estimator, good):
    assert np.isfinite(Estimator(n_jobs=good).fit(X, Y).predict_proba(X)).all()


BENT = np.diag([1.0, 2.0, -0.5])
METRIC_PARAMS = {
    "VI not definite": ("mahalanobis", {"VI": BENT}, ["'VI'", "positive semidefinite", "-0.5"]),
    "V not definite": ("mahalanobis", {"V": BENT}, ["'V'", "positive semidefinite", "-0.5"]),
    "VI with NaN": ("mahalanobis", {"VI": np.full((3, 3), np.nan)}, ["'VI'", "NaN", "finite"]),
    "VI of text": ("mahalanobis", {"VI": "close"}, ["'VI'", "numbers", "'close'"]),
    "V as variances": ("mahalanobis", {"V": [1.0, 1.0, 1.0]}, ["'V'", r"\(3, 3\)"]),
    "V as a matrix": ("seuclidean", {"V": np.eye(3)}, ["'V'", r"shape \(3,\)"]),
    "negative variance": ("seuclidean", {"V": [1.0, -1.0, 1.0]}, ["'V'", "negative", "-1"]),
    "negative weight": ("minkowski", {"w": [1.0, -2.0, 1.0]}, ["'w'", "negative", "-2"]),
    "negative weight of hamming": ("hamming", {"w": [1, -2, 1]}, ["'w'", "negative", "-2"]),
    "p": ("minkowski", {"p": -1}, ["metric_params", "'p'", "positive", "-1"]),
    "p of text": ("minkowski", {"p": "2"}, ["metric_params", "'p'", "positive", "'2'"]),
    "unknown": ("canberra", {"weights": [1]}, ["'canberra'", "no parameter 'weights'", "'w'"]),
    "none at all": ("nan_euclidean", {"copy": True}, ["no parameter 'copy'", "none"]),
}


@estimators
@pytest.mark.parametrize("name", METRIC_PARAMS)
def test_values_of_metric_params(Estimator, name):
    metric, params, words = METRIC_PARAMS[name]
    check_fit(Estimator, words, metric=metric, metric_params=params)


def test_tree_and_power_in_metric_params():
    words = ["kd_tree", "p=0.5", "brute"]
    check_fit(KFreeClassifier, words, algorithm="kd_tree", metric_params={"p": 0.5})


def test_matrices_of_any_rank_are_taken():
    """A covariance of few rows is singular, and rounding puts its eigenvalues below zero."""
    low = RNG.normal(size=(3, 2))
    for matrix in (low @ low.T, np.zeros((3, 3)), np.triu(np.ones((3, 3)))):
        model = KFreeClassifier(metric="mahalanobis", metric_params={"VI": matrix})
        assert np.isfinite(model.fit(X, Y).predict_proba(X)).all()


@pytest.mark.parametrize("bad", ["sampler", None, 1])
def test_inference(bad):
    words = ["inference", "'quadrature', 'laplace'", re.escape(repr(bad))]
    check_fit(KFreeClassifier, words, inference=bad)


@pytest.mark.parametrize("bad", ["both", None, True])
def test_update(bad):
    words = ["update", "'joint', 'conditional'", re.escape(repr(bad))]
    check_fit(KFreeClassifier, words, update=bad)


@pytest.mark.parametrize("bad", ["yes", None, 1, 0.0])
def test_average(bad):
    check_fit(KFreeClassifier, ["average", "True or False", re.escape(repr(bad))], average=bad)


@pytest.mark.parametrize("Estimator", [KFreeClassifier, PKNNClassifier])
@pytest.mark.parametrize("name", ["prior_shape", "prior_scale"])
@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, "10", None, True])
def test_prior(Estimator, name, bad):
    check_fit(Estimator, [name, "positive", re.escape(repr(bad))], **{name: bad})


@pytest.mark.parametrize("options", [{"inference": "laplace"}, {"average": False}], ids=str)
@pytest.mark.parametrize("bad", [1.0, 0.5])
def test_a_prior_without_a_mode_where_one_is_needed(options, bad):
    words = ["prior_shape", "above 1", "mode", str(bad)]
    check_fit(KFreeClassifier, words, prior_shape=bad, **options)


def test_strength():
    check_fit(PKNNClassifier, ["prior_shape", "above 1", "beta"], prior_shape=1.0)
    for bad in (0, -2.0, np.nan, np.inf, "5"):
        check_fit(PKNNClassifier, ["beta", "positive", re.escape(repr(bad))], beta=bad)
    assert PKNNClassifier(beta=3, prior_shape=1.0).fit(X, Y).beta_ == 3.0


@pytest.mark.parametrize("bad", [[], [0.0], [-1.0], [np.nan], [np.inf], 1.0, [[1.0]]], ids=str)
def test_grid_of_a_density(bad):
    model = KFreeClassifier().fit(X, Y)
    words = ["beta", "one-dimensional", "positive"]
    assert "\n" not in refused(lambda: model.training_density(bad), words)
    assert "\n" not in refused(lambda: model.posterior(X[:2]).density(bad), words)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"metric": "euclidean", "metric_params": {"w": [1.0, 1.0]}}, "no parameter 'w'"),
        ({"metric": "minkowski", "metric_params": {"weights": [1.0]}}, "no parameter 'weights'"),
        ({"metric": "minkowski", "metric_params": {"w": [1.0]}}, "must have shape"),
        ({"metric": "seuclidean", "metric_params": {"V": [1.0, 1.0, 1.0]}}, "must have shape"),
        ({"metric": "mahalanobis", "metric_params": {"VI": [1.0, 1.0]}}, "must have shape"),
    ],
)
def test_parameters_of_the_metric(params, words):
    X = np.arange(12.0).reshape(6, 2)
    with pytest.raises(ValueError, match=words):
        KFreeClassifier(**params).fit(X, [0, 1, 0, 1, 0, 1])


def test_negative_precomputed_distances():
    with pytest.raises(ValueError, match="negative"):
        KFreeClassifier(metric="precomputed").fit(-np.ones((4, 4)), [0, 1, 0, 1])


def test_labels_of_two_kinds():
    # The last begins with a text, the first with a number: scikit-learn tells these apart.
    for y in ([1, "a", 1, "a"], ["a", 1, "a", 1], ["a", 1, 2, "a"]):
        with pytest.raises(ValueError, match="y mixes labels"):
            KFreeClassifier().fit(np.arange(4.0)[:, None], np.array(y, dtype=object))


def test_one_class_is_named_as_people_write_it():
    with pytest.raises(ValueError, match="only one class, 0;"):
        KFreeClassifier().fit(X, np.zeros(20, dtype=int))


@pytest.mark.parametrize(
    "dates", [pd.date_range("2024", periods=20, tz="UTC"), pd.to_timedelta(np.arange(20), "h")]
)
def test_dates_are_refused_by_the_name_of_their_column(dates):
    refused(lambda: KFreeClassifier().fit(FRAME.assign(due=dates), Y), ["dates", "column 'due'"])
    days = np.arange(20).astype("M8[D]")[:, None]
    refused(lambda: KFreeClassifier().fit(days, Y), ["dates", "column 0"])


def test_vote_has_no_leave_one_out():
    model = StructuredKNNClassifier(1).fit(np.arange(4.0)[:, None], [0, 0, 1, 1])
    with pytest.raises(ValueError, match="leave-one-out"):
        model.predict(None)
