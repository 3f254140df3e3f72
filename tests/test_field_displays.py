import matplotlib
import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kfree import FieldClassifier
from kfree.audit import audit_labels
from kfree.displays import BlockWeightsDisplay, ContributionsDisplay

matplotlib.use("Agg")
import matplotlib.pyplot as plt

X, Y = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def fitted():
    return FieldClassifier().fit(X, load_iris().target_names[Y])


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def test_bars_sum_to_the_logit_of_one_class_against_another(fitted):
    display = ContributionsDisplay.from_estimator(fitted, X, row=70)
    eta = fitted.decision_function(X[70:71])[0]
    first, second = np.argsort(-eta)[:2]
    assert (display.label, display.other) == tuple(fitted.classes_[[first, second]])
    assert display.values.sum() == pytest.approx(eta[first] - eta[second])
    assert [bar.get_width() for bar in display.bars_] == pytest.approx(display.values.tolist())
    assert len(set(display.names)) == len(display.names)
    assert not any("shared" in name for name in display.names)


def test_classes_can_be_chosen(fitted):
    display = ContributionsDisplay.from_estimator(
        fitted, X[:1], label="virginica", other="versicolor"
    )
    eta = fitted.decision_function(X[:1])[0]
    assert display.values.sum() == pytest.approx(eta[2] - eta[1])
    with pytest.raises(ValueError, match="There is no class 'rose'; the classes are 'setosa'"):
        ContributionsDisplay.from_estimator(fitted, X[:1], label="rose")


def test_block_weights(fitted):
    display = BlockWeightsDisplay.from_estimator(fitted)
    assert display.names == list(fitted.blocks_)
    np.testing.assert_allclose(display.prior_sizes, fitted.precision_**-0.5)
    assert display.bars_[-1].get_width() == pytest.approx(
        np.sqrt((fitted.coef_["offset"] ** 2).mean())
    )


def test_pipeline_and_given_axes():
    pipeline = make_pipeline(StandardScaler(), FieldClassifier()).fit(X, Y)
    _, axes = plt.subplots(2)
    assert ContributionsDisplay.from_estimator(pipeline, X, row=0, ax=axes[0]).ax_ is axes[0]
    assert BlockWeightsDisplay.from_estimator(pipeline, ax=axes[1]).ax_ is axes[1]


def test_audit_finds_exchanged_labels():
    y = Y.copy()
    y[10], y[60] = y[60], y[10]
    model = FieldClassifier().fit(X, y)
    audit = audit_labels(model)
    assert sorted(audit.rows[:2].tolist()) == [10, 60]
    assert (y[audit.neighbors_against[0]] == audit.suggested[0]).all()
    forest = FieldClassifier(views=("forest",)).fit(X, y)
    with pytest.raises(ValueError, match="no view that has any"):
        audit_labels(forest)
