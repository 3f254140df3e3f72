from __future__ import annotations

import gzip
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kfree.classifier import KFreeClassifier
from kfree.evaluation import (
    PAPER,
    SUITE,
    DataNotFound,
    Evaluation,
    cross_validate,
    data,
    load,
    names,
    scores,
)
from kfree.evaluation.baseline import SearchedKNN
from kfree.evaluation.protocol import splitter

EPS = np.finfo(np.float64).eps


def put(folder, name, text):
    with gzip.open(folder / f"{name}.csv.gz", "wt", encoding="utf-8") as file:
        file.write(text)


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    monkeypatch.setenv("KFREE_DATA", str(tmp_path))
    return tmp_path


class TestData:
    def test_reads_numbers_text_and_order(self, tiny):
        put(tiny, "fruit", 'width,"height, cm",label\n1.5,2,pear\n-3e2,0.25,apple\n0,7,pear\n')
        fruit = load("fruit")
        assert fruit.name == "fruit"
        assert fruit.feature_names == ("width", "height, cm")
        assert fruit.X.dtype == np.float64
        np.testing.assert_array_equal(fruit.X, [[1.5, 2.0], [-300.0, 0.25], [0.0, 7.0]])
        np.testing.assert_array_equal(fruit.y, ["pear", "apple", "pear"])
        with pytest.raises(FrozenInstanceError):
            fruit.name = "other"

    @pytest.mark.parametrize(
        ("labels", "expected"),
        [
            (["2", "-1", "10"], np.array([2, -1, 10])),
            (["2", "x", "10"], np.array(["2", "x", "10"])),
            # "01" and "1" are two labels: as integers they would be one.
            (["01", "1", "2"], np.array(["01", "1", "2"])),
        ],
    )
    def test_labels_are_integers_only_where_nothing_is_lost(self, tiny, labels, expected):
        put(tiny, "some", "a,label\n" + "".join(f"0,{label}\n" for label in labels))
        y = load("some").y
        assert y.dtype.kind == expected.dtype.kind
        np.testing.assert_array_equal(y, expected)

    def test_names_lists_what_is_there(self, tiny):
        put(tiny, "b", "x,label\n1,0\n")
        put(tiny, "a", "x,label\n1,0\n")
        (tiny / "README.md").write_text("not data")
        assert names() == ["a", "b"]

    def test_absent_data_set_names_the_ones_there(self, tiny):
        put(tiny, "here", "x,label\n1,0\n")
        with pytest.raises(DataNotFound, match=r"no data set 'gone'.*has: here"):
            load("gone")

    def test_absent_folder_names_the_variable(self, tmp_path, monkeypatch):
        monkeypatch.setenv("KFREE_DATA", str(tmp_path / "nowhere"))
        with pytest.raises(DataNotFound, match=r"nowhere does not exist: set .* KFREE_DATA"):
            names()

    def test_default_folder_is_beside_the_project(self, tmp_path, monkeypatch):
        project = tmp_path / "somewhere" / "project"
        inside = project / "docs" / "deep"
        inside.mkdir(parents=True)
        (project / "pyproject.toml").write_text('[project]\nname = "kfree"\n')
        folder = tmp_path / "somewhere" / "shared" / "data"
        folder.mkdir(parents=True)
        monkeypatch.delenv("KFREE_DATA", raising=False)
        monkeypatch.chdir(inside)
        assert data.folder() == folder

    def test_foreign_project_is_passed_over(self, tmp_path, monkeypatch):
        (tmp_path / "pyproject.toml").write_text('[project]\nname = "other"\n')
        monkeypatch.chdir(tmp_path)
        assert data._project_root() != tmp_path

    def test_last_column_must_be_the_label(self, tiny):
        put(tiny, "bad", "label,x\n0,1\n")
        with pytest.raises(ValueError, match=r"bad\.csv\.gz: the last column must be 'label'"):
            load("bad")

    def test_short_row_is_named(self, tiny):
        put(tiny, "bad", "x,z,label\n1,2,0\n1,0\n")
        with pytest.raises(ValueError, match="row 3: expected 3 values, got 2"):
            load("bad")

    def test_lists_of_names(self):
        assert len(PAPER) == 6
        assert len(SUITE) == 28
        assert len(set(PAPER) | set(SUITE)) == 34

    @pytest.mark.parametrize("name", PAPER + SUITE)
    def test_every_data_set_can_be_read(self, data_folder, name):
        dataset = load(name)
        n_samples, n_features = dataset.X.shape
        assert dataset.y.shape == (n_samples,)
        assert len(dataset.feature_names) == n_features
        assert np.isfinite(dataset.X).all()
        assert len(np.unique(dataset.y)) >= 2

    def test_iris_is_the_iris_of_scikit_learn(self, data_folder):
        iris = load("iris")
        X, y = load_iris(return_X_y=True)
        np.testing.assert_array_equal(iris.X, X)
        np.testing.assert_array_equal(np.unique(iris.y, return_inverse=True)[1], y)


class TestScores:
    y = np.array(["a", "a", "b", "c"])
    predicted = np.array(["a", "b", "b", "b"])
    classes = np.array(["a", "b", "c"])
    probabilities = np.array(
        [[0.5, 0.25, 0.25], [0.25, 0.75, 0.0], [0.0, 1.0, 0.0], [0.25, 0.75, 0.0]]
    )

    def test_f_measure(self):
        # a: precision 1, recall 1/2 -> 2/3; b: precision 1/3, recall 1 -> 1/2; c: never hit -> 0.
        assert scores.f_measure(self.y, self.predicted) == pytest.approx((2 / 3 + 1 / 2 + 0) / 3)

    def test_accuracy(self):
        assert scores.accuracy(self.y, self.predicted) == 0.5

    def test_log_loss_clips_exact_zeros(self):
        # The last row gives its true class probability 0.
        expected = -(np.log(0.5) + np.log(0.25) + np.log(1.0) + np.log(EPS)) / 4
        assert scores.log_loss(self.y, self.probabilities, self.classes) == pytest.approx(expected)

    def test_log_loss_clips_float32_like_float64(self):
        single = self.probabilities.astype(np.float32)
        assert scores.log_loss(self.y, single, self.classes) == pytest.approx(
            scores.log_loss(self.y, self.probabilities, self.classes)
        )

    def test_log_loss_of_labels_absent_from_y(self):
        probabilities = [[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]]
        loss = scores.log_loss(["a", "a"], probabilities, self.classes)
        assert loss == pytest.approx(np.log(2))

    def test_brier(self):
        rows = [0.25 + 2 * 0.0625, 2 * 0.5625, 0.0, 0.0625 + 0.5625 + 1.0]
        expected = np.mean(rows)
        assert scores.brier(self.y, self.probabilities, self.classes) == pytest.approx(expected)

    def test_calibration_error(self):
        # Bins of width 0.1: one row at 0.5 (right), two at 0.75 (both wrong), one at 1.0 (right).
        expected = (abs(0.5 - 1.0) + abs(1.5 - 0.0) + abs(1.0 - 1.0)) / 4
        error = scores.calibration_error(self.y, self.probabilities, self.classes)
        assert error == pytest.approx(expected)

    def test_calibration_error_lets_rows_of_a_bin_cancel(self):
        probabilities = np.tile([0.75, 0.25], (4, 1))
        y = ["a", "a", "a", "b"]
        assert scores.calibration_error(y, probabilities, ["a", "b"]) == pytest.approx(0.0)

    def test_all_together(self):
        together = scores.score(self.y, self.predicted, self.probabilities, self.classes)
        assert together.accuracy == 0.5
        assert together.brier == scores.brier(self.y, self.probabilities, self.classes)
        with pytest.raises(FrozenInstanceError):
            together.accuracy = 1.0


class Nosy(KNeighborsClassifier):
    """Remembers what it was shown."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y):
        Nosy.seen.append(X)
        return super().fit(X, y)


class TestProtocol:
    def test_iris(self):
        X, y = load_iris(return_X_y=True)
        results = cross_validate(
            {"nearest": KNeighborsClassifier(5), "prior": DummyClassifier(strategy="prior")}, X, y
        )
        assert list(results) == ["nearest", "prior"]
        # Balanced classes and stratified folds: 1/3 each, up to fold sizes of 37 or 38.
        prior = results["prior"]
        assert prior.accuracy.mean == pytest.approx(1 / 3, abs=0.02)
        assert prior.f_measure.mean == pytest.approx(1 / 6, abs=0.01)
        assert prior.log_loss.mean == pytest.approx(np.log(3), abs=0.01)
        assert prior.brier.mean == pytest.approx(2 / 3, abs=0.01)
        assert results["nearest"].accuracy.mean > 0.9
        assert results["nearest"].brier.mean < 0.2
        for result in results.values():
            for field in fields(Evaluation):
                spread = getattr(result, field.name)
                assert spread.mean >= 0
                assert spread.std >= 0

    def test_equals_folds_by_hand(self):
        X, y = load_iris(return_X_y=True)
        folds = StratifiedKFold(3, shuffle=True, random_state=7)
        by_hand = []
        for train, test in folds.split(X, y):
            mean, std = X[train].mean(axis=0), X[train].std(axis=0)
            model = KNeighborsClassifier(3).fit((X[train] - mean) / std, y[train])
            by_hand.append(np.mean(model.predict((X[test] - mean) / std) == y[test]))
        result = cross_validate({"": KNeighborsClassifier(3)}, X, y, n_splits=3, random_state=7)[""]
        assert result.accuracy.mean == pytest.approx(np.mean(by_hand))
        assert result.accuracy.std == pytest.approx(np.std(by_hand))

    def test_same_seed_same_scores(self):
        X, y = load_iris(return_X_y=True)
        one, two, other = (
            cross_validate({"": KNeighborsClassifier()}, X, y, random_state=seed)[""]
            for seed in (0, 0, 1)
        )
        assert one.log_loss == two.log_loss
        assert one.log_loss != other.log_loss

    def test_standardized_on_the_training_part_only(self):
        X, y = load_iris(return_X_y=True)
        Nosy.seen = []
        cross_validate({"": Nosy()}, X, y)
        assert len(Nosy.seen) == 4
        for shown in Nosy.seen:
            np.testing.assert_allclose(shown.mean(axis=0), 0, atol=1e-12)
            np.testing.assert_allclose(shown.std(axis=0), 1)

    def test_estimators_are_left_unfitted(self):
        X, y = load_iris(return_X_y=True)
        estimator = KNeighborsClassifier()
        cross_validate({"": estimator}, X, y)
        assert not hasattr(estimator, "classes_")

    def test_constant_feature(self):
        X, y = load_iris(return_X_y=True)
        with_constant = np.column_stack([X, np.full(len(X), 3.0)])
        expected = cross_validate({"": KNeighborsClassifier()}, X, y)[""]
        result = cross_validate({"": KNeighborsClassifier()}, with_constant, y)[""]
        assert result.log_loss == expected.log_loss

    def test_plain_folds_where_a_class_is_small(self):
        assert isinstance(splitter(np.repeat([0, 1], [10, 4])), StratifiedKFold)
        assert isinstance(splitter(np.repeat([0, 1], [10, 3])), KFold)

    def test_class_absent_from_a_training_part(self):
        # One row of class "z": in the fold that tests it nobody knows "z", elsewhere it is known.
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(40, 2)), np.array(["a", "m"] * 19 + ["a", "z"])
        prior = cross_validate({"": DummyClassifier(strategy="prior")}, X, y)[""]
        expected = []
        for train, test in KFold(4, shuffle=True, random_state=0).split(X):
            share = {c: np.mean(y[train] == c) for c in "amz"}
            expected.append(np.mean([-np.log(max(share[c], EPS)) for c in y[test]]))
        assert max(expected) > -np.log(EPS) / 10
        assert prior.log_loss.mean == pytest.approx(np.mean(expected))


class TestBaseline:
    """The kNN with a searched k."""

    def test_it_is_that_of_scikit_learn(self):
        X, y = make_blobs(160, centers=4, cluster_std=3.0, random_state=1)
        grid = {"n_neighbors": range(1, 51)}
        search = GridSearchCV(KNeighborsClassifier(), grid, cv=splitter(y, 4)).fit(X, y)
        ours = SearchedKNN().fit(X, y)
        assert ours.k_ == search.best_params_["n_neighbors"] > 1
        new = X[:30] + 0.1
        np.testing.assert_allclose(ours.predict_proba(new), search.predict_proba(new))
        np.testing.assert_array_equal(ours.predict(new), search.predict(new))

    def test_it_uses_the_metric(self):
        X = np.array([[0.0, 0.0], [3.0, 3.0], [0.0, 4.5], [3.1, 3.1], [0.0, 4.6]])
        y = np.array([1, 2, 1, 2])
        for p, nearest in ((2, 1), (1, 2)):
            knn = SearchedKNN(p=p).fit(X[1:], y)
            knn.k_ = 1
            assert knn.predict(X[:1])[0] == nearest

    def test_few_rows(self):
        X, y = np.arange(5.0)[:, None], np.array([0, 0, 0, 1, 1])
        assert SearchedKNN().fit(X, y).k_ <= 3

    def test_evaluate_and_report_compare_with_the_same(self, data_folder):
        """The same k in each fold, and the same rows right; one pools them, one takes means."""
        pd = pytest.importorskip("pandas")
        from kfree.commands.evaluate import COMPARED
        from kfree.report.comparison import KNN, compare

        data = load("pima")
        X, y = pd.DataFrame(data.X[:300]).rename(columns=str), data.y[:300]
        prepare = make_pipeline(StandardScaler())
        title, make = COMPARED["knn"]
        ours = cross_validate({title: make(1)}, X, y, 4, 0, preparation=prepare)[title]
        found, _ = compare(prepare, KFreeClassifier(k_max=5), X, y, lambda words: None)
        assert found.scores[KNN].accuracy == pytest.approx(ours.accuracy.mean, abs=1e-12)
        chosen = []
        for rest, _ in splitter(y, 4).split(X, y):
            knn = make(1).fit(StandardScaler().fit_transform(X.iloc[rest]), y[rest])
            chosen.append(knn.k_)
        assert tuple(chosen) == found.knn_k
