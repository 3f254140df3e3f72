"""Which labels the audit suspects, and what it says of them."""

import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kfree import FieldClassifier, KFreeClassifier
from kfree.audit import audit_labels, nearest_with_label
from kfree.label_noise import depth_by_rank, lapse_rate

STRUCTURES = ["asymmetric", "boltzmann", "boltzmann2"]


@pytest.fixture(scope="module")
def flipped():
    """Iris as text labels, ten of them wrong."""
    X, y = load_iris(return_X_y=True)
    wrong = np.random.default_rng(0).choice(len(y), 10, replace=False)
    y[wrong] = (y[wrong] + 1) % 3
    return X, np.array(["setosa", "versicolor", "virginica"])[y], wrong


@pytest.fixture(scope="module")
def audit(flipped):
    X, y, _ = flipped
    return audit_labels(KFreeClassifier(k_max=16).fit(X, y))


def test_every_row_is_there_once_with_its_label(audit, flipped):
    _, y, _ = flipped
    np.testing.assert_array_equal(np.sort(audit.rows), np.arange(len(y)))
    np.testing.assert_array_equal(audit.given, y[audit.rows])
    assert (audit.suggested != audit.given).all()


def test_contradicted_rows_come_first(audit):
    assert (np.diff(audit.score) >= 0).all()
    assert 0 < audit.n_contradicted < len(audit.rows)
    assert (audit.score[: audit.n_contradicted] < 0).all()
    assert (audit.score[audit.n_contradicted :] >= 0).all()


def test_wrong_labels_come_first(audit, flipped):
    _, _, wrong = flipped
    assert len(set(audit.rows[:12]) & set(wrong)) == 10


def test_probabilities_are_those_of_leaving_out(audit, flipped):
    X, y, _ = flipped
    model = KFreeClassifier(k_max=16).fit(X, y)
    proba = model.predict_proba(None)[audit.rows]
    column = {name: i for i, name in enumerate(model.classes_)}
    rows = np.arange(len(y))
    given = np.array([column[name] for name in audit.given])
    suggested = np.array([column[name] for name in audit.suggested])
    np.testing.assert_array_equal(audit.given_probability, proba[rows, given])
    np.testing.assert_array_equal(audit.suggested_probability, proba[rows, suggested])
    proba[rows, given] = 0.0
    np.testing.assert_array_equal(audit.suggested_probability, proba.max(axis=1))


def test_probabilities_that_are_known_are_not_computed_again(audit, flipped, monkeypatch):
    X, y, _ = flipped
    model = KFreeClassifier(k_max=16).fit(X, y)
    known = model.posterior(None).class_probabilities
    monkeypatch.setattr(KFreeClassifier, "_averages", lambda *args: pytest.fail("computed again"))
    again = audit_labels(model, probabilities=known)
    for name, value in vars(audit).items():
        np.testing.assert_array_equal(getattr(again, name), value)


def test_probabilities_of_other_rows_are_refused(flipped):
    X, y, _ = flipped
    model = KFreeClassifier(k_max=4).fit(X, y)
    with pytest.raises(ValueError, match=r"shape \(150, 3\).*got \(2, 3\)"):
        audit_labels(model, probabilities=np.full((2, 3), 1 / 3))
    with pytest.raises(ValueError, match="must all be positive"):
        audit_labels(model, probabilities=np.tile([0.0, 0.5, 0.5], (150, 1)))


@pytest.mark.parametrize("structure", STRUCTURES)
def test_own_label_has_no_say(flipped, structure):
    """Whatever label the row has, the others' view of it is the same."""
    X, y, _ = flipped
    row, classes = 7, np.unique(y)
    views = []
    for label in classes:
        changed = y.copy()
        changed[row] = label
        audit = audit_labels(KFreeClassifier(structure=structure, k_max=20).fit(X, changed))
        at = int(np.flatnonzero(audit.rows == row)[0])
        views.append({audit.given[at]: audit.given_probability[at]})
        views[-1][audit.suggested[at]] = audit.suggested_probability[at]
    for view in views[1:]:
        for label in view.keys() & views[0].keys():
            assert view[label] == pytest.approx(views[0][label], rel=1e-6)


def test_neighbors_against_are_the_nearest_with_the_suggested_label(audit, flipped):
    X, y, _ = flipped
    for at in range(20):
        row, label = audit.rows[at], audit.suggested[at]
        distance = np.sqrt(((X - X[row]) ** 2).sum(axis=1))
        distance[(y != label) | (np.arange(len(y)) == row)] = np.inf
        nearest = np.lexsort((np.arange(len(y)), distance))[:5]
        found = audit.neighbors_against[at]
        there = found >= 0
        np.testing.assert_array_equal(found[there], nearest[there])
        np.testing.assert_allclose(audit.distances_against[at][there], distance[nearest][there])


def test_too_few_neighbors_with_a_label_are_marked():
    indices = np.array([[1, 2], [0, 2], [1, 0]])
    distances = np.array([[1.0, 3.0], [1.0, 2.0], [2.0, 3.0]])
    labels, wanted = np.array([0, 1, 1]), np.array([1, 0, 0])
    found, far = nearest_with_label(
        indices, lambda row, column: distances[row, column], labels, wanted, 2
    )
    np.testing.assert_array_equal(found, [[1, 2], [0, -1], [0, -1]])
    np.testing.assert_array_equal(far, [[1.0, 3.0], [1.0, np.nan], [3.0, np.nan]])


def test_depth_by_rank():
    neighbors = np.array([[1, 2, 3], [0, 2, 3], [3, 1, 0], [2, 1, 0]])
    predicted = np.array([0, 0, 1, 1])
    np.testing.assert_allclose(np.exp(depth_by_rank(predicted, neighbors, 1)), [2, 2, 2, 2])
    # Two others stand in the second and third place; a third there is not.
    np.testing.assert_allclose(np.exp(depth_by_rank(predicted, neighbors, 2)), [3, 3, 3, 3])
    np.testing.assert_allclose(np.exp(depth_by_rank(predicted, neighbors, 3)), [4, 4, 4, 4])


def test_lapse_rate_is_found_again():
    """Contradictions drawn from the curve itself: the interval holds the truth, and 0 or not."""
    rng = np.random.default_rng(0)
    depth = rng.uniform(0, 4, 3000)
    overlap = 0.5 / (1 + np.exp(2 * depth))
    for share in (0.0, 0.08):
        bad = rng.random(3000) < share + (1 - share) * overlap
        found, low, high = lapse_rate(depth, bad, 2)
        assert low <= share <= high
        assert (low == 0) == (share == 0)
        assert abs(found - share) < 0.02


def test_overlap_alone_is_said_to_be_overlap():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    X = rng.normal(size=(400, 2)) + y[:, None] * [1.5, 0.0]
    audit = audit_labels(KFreeClassifier().fit(X, y))
    assert audit.n_contradicted > 60
    assert audit.wrong.explained_by_overlap
    assert "Overlap of the classes may explain that" in audit.wrong.in_words


def test_wrong_labels_beyond_overlap_are_said():
    X, y = make_blobs(400, centers=[[0, 0], [6, 0], [0, 6]], random_state=0)
    wrong = np.random.default_rng(0).choice(400, 40, replace=False)
    y[wrong] = (y[wrong] + 1) % 3
    audit = audit_labels(KFreeClassifier(k_max=32).fit(X, y))
    low, high = audit.wrong.interval
    assert 0 < low <= 40 <= high
    assert f"about {audit.n_estimated} labels are wrong" in audit.wrong.in_words


def test_no_contradiction_at_all():
    X, y = make_blobs(60, centers=[[0, 0], [90, 0]], random_state=0)
    wrong = audit_labels(KFreeClassifier(k_max=8).fit(X, y)).wrong
    assert (wrong.n_estimated, wrong.interval[0]) == (0, 0)
    assert wrong.in_words == "No label looks wrong."


def test_no_more_are_estimated_than_contradicted():
    X, y = make_blobs(90, centers=3, cluster_std=4.0, random_state=0)
    y[5] = 3
    audit = audit_labels(KFreeClassifier().fit(X, y))
    assert 0 <= audit.n_estimated <= audit.wrong.interval[1] <= audit.n_contradicted


def test_estimated_number_is_near_on_separate_classes():
    X, y = make_blobs(300, centers=[[0, 0], [6, 0], [0, 6]], random_state=0)
    wrong = np.random.default_rng(0).choice(300, 15, replace=False)
    y[wrong] = (y[wrong] + 1) % 3
    assert abs(audit_labels(KFreeClassifier(k_max=16).fit(X, y)).n_estimated - 15) <= 3


def test_pipeline_and_its_last_step_agree(flipped):
    X, y, _ = flipped
    model = make_pipeline(StandardScaler(), KFreeClassifier(k_max=16)).fit(X, y)
    np.testing.assert_array_equal(audit_labels(model).rows, audit_labels(model[-1]).rows)


def test_take_and_frame(audit):
    pytest.importorskip("pandas")
    first = audit.take(3)
    frame = first.to_frame()
    assert len(frame) == 3
    assert first.n_estimated == audit.n_estimated
    assert frame["row"].tolist() == audit.rows[:3].tolist()
    assert frame["neighbors_against"][0] == [i for i in audit.neighbors_against[0] if i >= 0]
    assert (frame["score"] == audit.score[:3]).all()


def test_wrong_use_is_refused(flipped):
    X, y, _ = flipped
    with pytest.raises(TypeError, match=r"needs a KFreeClassifier.*KNeighborsClassifier"):
        audit_labels(KNeighborsClassifier().fit(X, y))
    with pytest.raises(NotFittedError):
        audit_labels(KFreeClassifier())
    with pytest.raises(ValueError, match="n_neighbors must be a whole number"):
        audit_labels(KFreeClassifier(k_max=16).fit(X, y), n_neighbors=0)


def test_long_names_of_classes_are_not_copied_for_each_neighbor():
    rng = np.random.default_rng(0)
    names = np.array(["a" * 5_000, "b" * 5_000])  # 20 kB in an array of text
    y = names[np.arange(120) % 2]
    model = FieldClassifier().fit(rng.normal(size=(120, 3)) + (y == names[1])[:, None], y)
    probabilities = model.predict_proba(None)
    tracemalloc.start()
    audit_labels(model, probabilities=probabilities)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # One for each row and neighbor would be 280 MB and more for each view.
    assert peak < 60e6
