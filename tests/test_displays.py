from __future__ import annotations

import itertools
import sys
import warnings
from dataclasses import dataclass
from types import SimpleNamespace

import matplotlib
import numpy as np
import pandas as pd
import pytest
from scipy.integrate import trapezoid
from scipy.stats import binomtest, gamma
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from kfree import KFreeClassifier, displays
from kfree.displays import (
    DecisionMapDisplay,
    KPosteriorDisplay,
    PosteriorDisplay,
    ReliabilityDisplay,
    TraceDisplay,
)
from kfree.displays.fitted import candidates
from kfree.displays.k_posterior import runs
from kfree.evaluation.scores import calibration_error
from kfree.tables import TablePreparation

matplotlib.use("Agg")
import matplotlib.pyplot as plt

K_POSTERIOR = np.array([1e-6, 1e-6, 0.2, 0.5, 0.3 - 4e-6, 1e-6, 1e-6])
SHAPE, SCALE = 40.0, 0.1


@dataclass(frozen=True)
class FakePosterior:
    """A posterior whose beta is Gamma, with a mean that tells which row it is for."""

    k: np.ndarray
    k_probabilities: np.ndarray
    beta_mean: np.ndarray
    beta_std: np.ndarray

    def density(self, beta):
        over_beta = gamma.pdf(beta, SHAPE, scale=self.beta_mean[:, None] / SHAPE)
        return self.k_probabilities[:, :, None] * over_beta[:, None, :]


class FakeClassifier(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.k_posterior_ = K_POSTERIOR
        self.beta_mean_ = SHAPE * SCALE
        self.beta_std_ = np.sqrt(SHAPE) * SCALE
        return self

    def training_density(self, beta):
        return K_POSTERIOR[:, None] * gamma.pdf(beta, SHAPE, scale=SCALE)

    def posterior(self, X):
        first = np.asarray(X, dtype=float)[:, 0]
        return FakePosterior(
            k=np.arange(1, 8),
            k_probabilities=np.tile(K_POSTERIOR[::-1], (len(first), 1)),
            beta_mean=first,
            beta_std=first / np.sqrt(SHAPE),
        )


@pytest.fixture
def fitted():
    return FakeClassifier().fit(np.zeros((2, 1)), [0, 1])


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def test_training_posterior(fitted):
    display = PosteriorDisplay.from_estimator(fitted)
    np.testing.assert_array_equal(display.k, [3, 4, 5])
    np.testing.assert_array_equal(display.k_probabilities, K_POSTERIOR[2:5])
    np.testing.assert_array_equal(display.density, fitted.training_density(display.beta)[2:5])
    # What is drawn holds nearly all of the mass: 1e-4 in K, and the tails of beta beyond 5 std.
    mass = trapezoid(display.density, display.beta, axis=1).sum()
    assert mass == pytest.approx(1.0, abs=3e-4)


def test_artists_show_the_data(fitted):
    display = PosteriorDisplay.from_estimator(fitted)
    heat, bars = display.axes_
    assert display.figure_ is heat.figure is bars.figure
    assert display.mesh_.axes is heat
    np.testing.assert_array_equal(display.mesh_.get_array().ravel(), display.density.T.ravel())
    assert [bar.get_height() for bar in display.bars_] == list(display.k_probabilities)
    assert [bar.get_x() + bar.get_width() / 2 for bar in display.bars_] == [3, 4, 5]
    assert display.mesh_.get_cmap().name == "cividis"
    assert "beta" in heat.get_ylabel()
    assert bars.get_xlabel() == "number of neighbors $K$"
    assert bars.get_ylabel()
    assert display.colorbar_.ax.get_ylabel()


def test_k_axes_are_aligned(fitted):
    display = PosteriorDisplay.from_estimator(fitted)
    heat, bars = display.axes_
    display.figure_.canvas.draw()
    assert heat.get_xlim() == bars.get_xlim() == (2.5, 5.5)
    assert heat.get_position().x0 == pytest.approx(bars.get_position().x0)
    assert heat.get_position().x1 == pytest.approx(bars.get_position().x1)
    assert heat.get_position().y0 > bars.get_position().y1


@pytest.mark.parametrize("as_frame", [False, True])
@pytest.mark.parametrize(("row", "mean"), [(0, 2.0), (1, 8.0), (-1, 8.0)])
def test_new_row(fitted, row, mean, as_frame):
    X = np.array([[2.0], [8.0]])
    X = pd.DataFrame(X, index=["p", "q"], columns=["x"]) if as_frame else X
    display = PosteriorDisplay.from_estimator(fitted, X, row=row)
    assert display.beta.mean() == pytest.approx(mean)
    np.testing.assert_array_equal(display.k, [3, 4, 5])
    np.testing.assert_array_equal(display.k_probabilities, K_POSTERIOR[::-1][2:5])
    assert display.density.shape == (3, len(display.beta))


def test_single_row_needs_no_number(fitted):
    display = PosteriorDisplay.from_estimator(fitted, [[3.0]])
    assert display.beta.mean() == pytest.approx(3.0)


def test_pipeline_transforms_the_row():
    pipeline = make_pipeline(FunctionTransformer(lambda X: 10 * X), FakeClassifier())
    pipeline.fit(np.zeros((2, 1)), [0, 1])
    display = PosteriorDisplay.from_estimator(pipeline, np.array([[0.5], [0.7]]), row=1)
    assert display.beta.mean() == pytest.approx(7.0)
    np.testing.assert_array_equal(PosteriorDisplay.from_estimator(pipeline).k, [3, 4, 5])


@pytest.mark.parametrize(
    ("X", "row", "message"),
    [
        (np.ones((5, 1)), None, "X has 5 rows: say with row="),
        (np.ones((5, 1)), 5, "row=5 is out of range: X has 5 rows"),
        (None, 0, "row=0 picks a row of X, but X is None"),
    ],
)
def test_unclear_rows_are_refused(fitted, X, row, message):
    with pytest.raises(ValueError, match=message):
        PosteriorDisplay.from_estimator(fitted, X, row=row)


def test_unfitted_is_refused():
    with pytest.raises(NotFittedError):
        PosteriorDisplay.from_estimator(FakeClassifier())


def test_draws_on_given_axes(fitted):
    figure, (left, right) = plt.subplots(1, 2)
    display = PosteriorDisplay.from_estimator(fitted, ax=right, cmap="Greys")
    assert display.figure_ is figure
    assert display.axes_[0] is right
    assert display.mesh_.get_cmap().name == "Greys"
    assert not left.collections


def test_plot_again_makes_new_artists(fitted):
    display = PosteriorDisplay.from_estimator(fitted)
    first = display.figure_
    assert display.plot() is display
    assert display.figure_ is not first


def test_single_k(fitted):
    fitted.k_posterior_ = np.array([0.0, 1.0])
    fitted.training_density = lambda beta: (
        np.array([[0.0], [1.0]]) * gamma.pdf(beta, SHAPE, scale=SCALE)
    )
    display = PosteriorDisplay.from_estimator(fitted)
    np.testing.assert_array_equal(display.k, [2])
    display.figure_.canvas.draw()
    assert display.axes_[0].get_xlim() == (1.5, 2.5)


@pytest.mark.parametrize(
    ("probabilities", "expected"),
    [
        ([0.25, 0.25, 0.25, 0.25], [0, 1, 2, 3]),
        ([4e-5, 1 - 8e-5, 4e-5], [1]),
        # A K of no weight between two that have some stays in the picture.
        ([0.5, 0.0, 0.5], [0, 1, 2]),
        ([6e-5, 1 - 6e-5], [0, 1]),
        ([1.0], [0]),
    ],
)
def test_k_range(probabilities, expected):
    probabilities = np.array(probabilities)
    shown = np.arange(len(probabilities))[displays.k_range(probabilities)]
    np.testing.assert_array_equal(shown, expected)


def test_beta_grid_is_positive():
    grid = displays.beta_grid(1.0, 1.0)
    assert grid[0] > 0
    assert grid[-1] == pytest.approx(6.0)
    assert (np.diff(grid) > 0).all()


def test_without_matplotlib_the_error_says_what_to_install(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "kfree\[plot\]"'):
        PosteriorDisplay.from_estimator(fitted)


# The posterior of K with its credible set.


@pytest.mark.parametrize(
    ("probabilities", "level", "expected"),
    [
        ([0.1, 0.5, 0.0, 0.4], 0.9, [1, 3]),
        ([0.1, 0.5, 0.0, 0.4], 0.91, [0, 1, 3]),
        # Of equals the smaller K is taken first.
        ([0.25, 0.25, 0.25, 0.25], 0.5, [0, 1]),
        ([0.2, 0.8], 0.8, [1]),
        ([0.2, 0.8], 1.0, [0, 1]),
    ],
)
def test_credible_set(probabilities, level, expected):
    np.testing.assert_array_equal(
        np.flatnonzero(displays.credible_set(probabilities, level)), expected
    )


def test_credible_set_is_the_smallest():
    probabilities = np.random.default_rng(0).dirichlet(np.full(8, 0.7))
    sizes = [
        bin(code).count("1")
        for code in range(1, 2**8)
        if probabilities[[bool(code >> i & 1) for i in range(8)]].sum() >= 0.9
    ]
    assert displays.credible_set(probabilities, 0.9).sum() == min(sizes)


@pytest.mark.parametrize("level", [0.0, 1.5, -1])
def test_impossible_level_is_refused(fitted, level):
    with pytest.raises(ValueError, match="level must be above 0 and at most 1"):
        KPosteriorDisplay.from_estimator(fitted, level=level)


def test_credible_set_is_dark_and_named(fitted):
    display = KPosteriorDisplay.from_estimator(fitted, level=0.75)
    np.testing.assert_array_equal(display.k[display.in_set], [4, 5])
    heights = {round(b.get_x() + b.get_width() / 2): b.get_height() for b in display.bars_}
    assert heights == pytest.approx(dict(enumerate(K_POSTERIOR, start=1)))
    dark = {round(b.get_x() + 0.4) for b in display.bars_ if sum(b.get_facecolor()[:3]) < 1.5}
    assert dark == {4, 5}
    words = [text.get_text() for text in display.legend_.get_texts()]
    assert words == ["credible set of 75%: K = 4-5", "other K"]
    assert display.ax_.get_xlabel() == "number of neighbors $K$"
    assert "p(K" in display.ax_.get_ylabel()


def test_the_legend_leaves_the_bars_their_room():
    gaps = np.tile([1.0, 0.0], 30) / 30
    figure = plt.figure(figsize=(4.8, 3.2), layout="constrained")
    display = KPosteriorDisplay(k=np.arange(1, 61), k_probabilities=gaps)
    display.plot(ax=figure.add_subplot())
    figure.canvas.draw()
    assert display.ax_.get_position().width > 0.75
    assert display.legend_.get_window_extent().x1 <= figure.bbox.x1


def test_k_posterior_of_a_new_row(fitted):
    display = KPosteriorDisplay.from_estimator(fitted, [[3.0]], ax=plt.figure().add_subplot())
    np.testing.assert_array_equal(display.k_probabilities, K_POSTERIOR[::-1])


@pytest.mark.parametrize(
    ("numbers", "words"),
    [([3], "3"), ([1, 2, 3, 9], "1-3, 9"), ([1, 3, 5, 7, 9, 11], "1, 3, 5, ..., 11")],
)
def test_runs_in_words(numbers, words):
    assert runs(np.array(numbers)) == words


# The reliability diagram.


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(150, centers=6, cluster_std=2.5, random_state=0)
    return X, y, KFreeClassifier(k_max=15).fit(X, y)


def test_bins_by_hand():
    probabilities = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.45, 0.55]])
    bins = displays.reliability(["a", "b", "b", "a"], probabilities, n_bins=4)
    np.testing.assert_array_equal(bins.count, [0, 0, 2, 2])
    np.testing.assert_allclose(bins.predicted, [np.nan, np.nan, 0.625, 0.85])
    np.testing.assert_allclose(bins.observed, [np.nan, np.nan, 0.5, 0.5])
    assert bins.calibration_error == pytest.approx((2 * 0.125 + 2 * 0.35) / 4)
    pooled = displays.reliability(["a", "b", "b", "a"], probabilities, kind="pooled", n_bins=4)
    np.testing.assert_array_equal(pooled.count, [2, 2, 2, 2])
    assert pooled.count.sum() == probabilities.size


def test_calibration_error_is_that_of_the_scores(blobs):
    _, y, model = blobs
    probabilities = model.predict_proba(None)
    bins = displays.reliability(y, probabilities, model.classes_)
    assert bins.calibration_error == pytest.approx(
        calibration_error(y, probabilities, model.classes_)
    )


def test_intervals_are_wilsons():
    n = 30
    bins = displays.reliability([0] * 21 + [1] * 9, np.tile([0.75, 0.25], (n, 1)), n_bins=1)
    expected = binomtest(21, n).proportion_ci(0.95, method="wilson")
    assert (bins.lower[0], bins.upper[0]) == pytest.approx((expected.low, expected.high))
    # Never upside down where all came true.
    sure = displays.reliability([0, 0], [[0.9, 0.1]] * 2, classes=[0, 1])
    assert sure.upper[-1] == sure.observed[-1] == 1.0 > sure.lower[-1]


def test_diagram_shows_the_bins(blobs):
    _, y, model = blobs
    display = ReliabilityDisplay.from_estimator(model, None, y, name="blobs")
    bins = display.reliability
    there = bins.count > 0
    points = display.line_.lines[0]
    np.testing.assert_array_equal(points.get_xdata(), bins.predicted[there])
    np.testing.assert_array_equal(points.get_ydata(), bins.observed[there])
    assert [bar.get_height() for bar in display.bars_] == list(bins.count)
    words = [text.get_text() for text in display.legend_.get_texts()]
    assert any(f"calibration error {bins.calibration_error:.3f}" in word for word in words)
    assert all(ax.get_ylabel() for ax in display.axes_)
    assert display.axes_[1].get_xlabel()
    same = ReliabilityDisplay.from_predictions(y, model.predict_proba(None))
    np.testing.assert_array_equal(same.reliability.count, bins.count)


def test_diagram_of_a_pipeline_left_out():
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), KFreeClassifier()).fit(X, y)
    display = ReliabilityDisplay.from_estimator(model, None, y)
    assert display.reliability.count.sum() == len(y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "all"}, "kind must be one of 'top', 'pooled'"),
        ({"n_bins": 0}, "n_bins must be"),
        ({"classes": [0, 1, 2]}, r"probabilities must have shape \(2, 3\)"),
    ],
)
def test_bad_bins_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        ReliabilityDisplay.from_predictions([0, 1], [[0.5, 0.5]] * 2, **settings)


# The decision map.


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    return X, names, make_pipeline(StandardScaler(), KFreeClassifier()).fit(X, names)


def test_map_is_what_the_classifier_says(iris):
    X, _, model = iris
    at = [5.0, 3.0, 0.0, 0.0]
    found = displays.decision_map(model, X, ("petal length (cm)", 3), at=at, grid_resolution=5)
    assert found.names == ("petal length (cm)", "petal width (cm)")
    assert found.x[0] < X.iloc[:, 2].min() and found.x[-1] > X.iloc[:, 2].max()
    row = np.array([[5.0, 3.0, found.x[3], found.y[1]]])
    known = model[-1].posterior(model[0].transform(pd.DataFrame(row, columns=X.columns)))
    c = known.class_probabilities[0].argmax()
    assert found.predicted[1, 3] == c
    assert found.confidence[1, 3] == pytest.approx(known.class_probabilities[0, c])
    assert found.variance_between[1, 3] == pytest.approx(known.class_variance_between[0, c])
    both = found.variance_within + found.variance_between
    np.testing.assert_allclose(both, found.confidence * (1 - found.confidence), atol=1e-12)


def test_other_features_are_held_at_the_median(iris):
    X, _, model = iris
    medians = np.median(X, axis=0)
    given = displays.decision_map(model, X, (2, 3), at=medians, grid_resolution=4)
    np.testing.assert_array_equal(
        displays.decision_map(model, X, (2, 3), grid_resolution=4).confidence, given.confidence
    )
    array = KFreeClassifier().fit(X.to_numpy(), iris[1])
    assert displays.decision_map(array, X.to_numpy(), grid_resolution=4).names[1] == "feature 1"


def test_text_columns_are_held_at_their_commonest_value(iris):
    X, y, _ = iris
    day = np.datetime64("2024-01-01")
    frame = X.assign(place=["north", "south", "south"] * 50, wet=[True, False] * 75)
    frame["day"] = day + np.arange(150).astype("timedelta64[D]")
    model = make_pipeline(TablePreparation(), KFreeClassifier()).fit(frame, y)
    at = [*np.median(X, axis=0), "south", True, day + np.timedelta64(75, "D")]
    found = displays.decision_map(model, frame, (2, 3), grid_resolution=4)
    given = displays.decision_map(model, frame, (2, 3), at=at, grid_resolution=4)
    np.testing.assert_array_equal(found.confidence, given.confidence)
    with pytest.raises(ValueError, match="'place', which is not numeric"):
        displays.decision_map(model, frame, ("place", 0))


def test_map_names_the_classes_without_color(iris):
    X, y, model = iris
    display = DecisionMapDisplay.from_estimator(model, X, y, features=(2, 3), grid_resolution=15)
    assert {text.get_text() for text in display.names_} == set(y)
    markers = [points.get_paths()[0].vertices.shape for points in display.points_]
    assert len(set(markers)) == 3
    assert sum(len(points.get_offsets()) for points in display.points_) == len(X)
    fields = (display.map.confidence, display.map.variance_within, display.map.variance_between)
    for mesh, field, ax, bar in zip(
        display.meshes_, fields, display.axes_, display.colorbars_, strict=True
    ):
        np.testing.assert_array_equal(mesh.get_array().ravel(), field.ravel())
        assert ax.get_xlabel() == "petal length (cm)" and ax.get_ylabel() == "petal width (cm)"
        assert bar.ax.get_xlabel() and mesh.get_cmap().name == "cividis"


def test_names_on_the_map_do_not_overlap(iris):
    predicted = np.repeat(np.arange(12), 5)[None, :].repeat(20, axis=0)
    flat = np.full(predicted.shape, 0.5)
    classes = np.array([f"a class with number {c}" for c in range(12)])
    crowded = displays.DecisionMap(
        ("x", "y"), np.arange(60.0), np.arange(20.0), classes, predicted, flat, flat, flat
    )
    display = DecisionMapDisplay(map=crowded).plot()
    boxes = [text.get_window_extent() for text in display.names_]
    assert boxes
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_a_dollar_in_a_name_is_no_formula():
    predicted = np.zeros((3, 3), dtype=int)
    flat = np.full((3, 3), 0.5)
    classes = np.array([r"$\foo$", "b"])
    found = displays.DecisionMap(
        ("$x^", "y$_"), np.arange(3.0), np.arange(3.0), classes, predicted, flat, flat, flat
    )
    display = DecisionMapDisplay(map=found).plot()
    display.figure_.canvas.draw()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"features": ("no such", 1)}, "'no such', which is no column of X; X has 4 columns"),
        ({"features": (1, 1)}, "two different columns"),
        ({"features": (1,)}, "must name two columns"),
        ({"features": (0, 4)}, "4, which is no column"),
        ({"at": [1.0, 2.0]}, "at must hold one value for each of the 4 features"),
        ({"grid_resolution": 1}, "grid_resolution must be at least 2"),
        ({"ax": [None], "grid_resolution": 3}, "ax must hold three Axes"),
    ],
)
def test_bad_slices_are_refused(iris, settings, message):
    with pytest.raises(ValueError, match=message):
        DecisionMapDisplay.from_estimator(iris[2], iris[0], **settings)


# The sampler's trace.


@pytest.fixture(scope="module")
def sampler():
    X, y = load_iris(return_X_y=True)
    model = KFreeClassifier(
        inference="metropolis", k_max=10, n_draws=1500, n_burn_in=50, random_state=0
    )
    with warnings.catch_warnings():
        # Short chains disagree; it is the picture that is looked at.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return X, model.fit(X, y), model.sample(X[:2])


def test_trace_shows_each_chain(sampler):
    _, _, draws = sampler
    display = TraceDisplay.from_draws(draws, row=1)
    np.testing.assert_array_equal(display.k, draws.k[1])
    for lines, values in zip(display.traces_, (draws.k[1], draws.beta[1]), strict=True):
        assert len(lines) == 2
        for line, chain in zip(lines, values, strict=True):
            np.testing.assert_array_equal(line.get_ydata(), chain[::2])
    for line, chain in zip(display.densities_[0], draws.k[1], strict=True):
        shares = dict(zip(line.get_ydata(), line.get_xdata(), strict=True))
        assert shares[chain[0]] == pytest.approx((chain == chain[0]).mean())
        assert sum(shares.values()) == pytest.approx(1.0)
    styles = {line.get_linestyle() for line in display.densities_[1]}
    assert len(styles) == 2
    words = [text.get_text() for text in display.legend_.get_texts()]
    assert words == ["chain 1", "chain 2"]
    assert "one in 2" in display.axes_[1, 0].get_xlabel()
    assert "R-hat" in display.axes_[0, 0].get_title()


def test_trace_of_training_and_of_a_row(sampler):
    X, model, draws = sampler
    training = TraceDisplay.from_estimator(model)
    np.testing.assert_array_equal(training.beta, model._draws.beta[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        display = TraceDisplay.from_estimator(model, X, row=0)
    np.testing.assert_array_equal(display.beta, draws.beta[0])


def test_many_chains_and_chains_that_stand_still():
    k = np.full((5, 3), 4)
    display = TraceDisplay(k=k, beta=np.full((5, 3), 2.0)).plot()
    display.figure_.canvas.draw()
    assert len(display.densities_[0]) == 5


def test_trace_needs_a_sampler(blobs, sampler):
    with pytest.raises(ValueError, match="needs inference='metropolis'"):
        TraceDisplay.from_estimator(blobs[2])
    with pytest.raises(ValueError, match="draws has 2 rows: say with row="):
        TraceDisplay.from_draws(sampler[2])
    with pytest.raises(ValueError, match="ax must hold four Axes"):
        TraceDisplay.from_draws(sampler[2], row=0, ax=plt.figure().subplots(1, 2))


@pytest.mark.parametrize(
    "draw",
    [
        lambda: KPosteriorDisplay(k=np.array([1]), k_probabilities=np.array([1.0])).plot(),
        lambda: ReliabilityDisplay.from_predictions([0, 1], [[0.5, 0.5]] * 2),
        lambda: TraceDisplay(k=np.ones((1, 4), dtype=int), beta=np.ones((1, 4))).plot(),
    ],
)
def test_no_picture_without_matplotlib(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "kfree\[plot\]"'):
        draw()


def test_candidates_with_gaps_are_drawn_at_their_own_numbers():
    thin = SimpleNamespace(
        k_values_=np.array([1, 2, 4, 8]), k_posterior_=np.array([0.1, 0.2, 0.3, 0.4])
    )
    np.testing.assert_array_equal(candidates(thin), [1, 2, 4, 8])
    del thin.k_values_
    np.testing.assert_array_equal(candidates(thin), [1, 2, 3, 4])
    display = KPosteriorDisplay(
        k=np.array([1, 2, 4, 8]), k_probabilities=np.array([0.1, 0.2, 0.3, 0.4])
    ).plot()
    middles = [bar.get_x() + bar.get_width() / 2 for bar in display.bars_]
    np.testing.assert_allclose(middles, [1, 2, 4, 8])
    edges = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in display.bars_]
    assert all(right < left for (_, right), (left, _) in itertools.pairwise(edges))
    plt.close(display.figure_)
