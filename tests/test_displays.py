from __future__ import annotations

import sys
from dataclasses import dataclass

import matplotlib
import numpy as np
import pandas as pd
import pytest
from scipy.integrate import trapezoid
from scipy.stats import gamma
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from kfree import displays
from kfree.displays import PosteriorDisplay

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
