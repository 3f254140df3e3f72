"""The benchmark runs, keeps what it measured, and judges by the best times."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def speed(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.speed import __main__, data, report, timing

    return __main__, data, report, timing


# Workloads that are others once more, with sizes that --quick makes equal.
TWINS = {"fit-100k-8", "predict-100k-8", "predict-20k-64", "embeddings-20k", "informative-64"}
TWINS |= {"classes-100k", "search-4"}


def test_quick_run_and_what_it_keeps(speed, tmp_path, capsys, monkeypatch):
    main, every = speed[0].main, speed[0].workloads
    assert {workload.name for workload in every(True, 1)} > TWINS
    monkeypatch.setattr(
        speed[0], "workloads", lambda *given: [w for w in every(*given) if w.name not in TWINS]
    )
    monkeypatch.setattr("benchmarks.speed.workloads.CANDIDATES", (1, 5))
    monkeypatch.setattr("benchmarks.speed.workloads.N_FOLDS", 2)
    arguments = ["--quick", "--jobs", "1", "--output", str(tmp_path)]
    assert main(arguments) == 0
    first = capsys.readouterr().out
    assert "jobs: kept" not in first
    results = json.loads((tmp_path / "results.json").read_text())
    assert {"fit-20k-8", "predict-20k-256", "structures", "grid-20k-8", "memory"} <= set(results)
    for line in (line for lines in results.values() for line in lines):
        assert line["ours"] > 0 and line["low"] <= line["high"]
        if line["kind"] == "ratio":
            assert line["value"] == pytest.approx(line["ours"] / line["peer"])
            assert line["facts"]["rounds"] >= 2
    pictures = {path.name for path in tmp_path.glob("*.png")}
    assert pictures == {"points.png", "new.png", "classes.png", "dimensions.png"}

    assert main(arguments) == 0
    assert "jobs: kept" in capsys.readouterr().out


def test_report_has_every_line(speed):
    _, _, report, timing = speed
    setting = timing.Setting(n_jobs=2, quick=True)
    facts = {"N": 10, "d": 2, "K*": 3, "k_max": 5}
    fast = timing.ratio("fast", {"kfree": [1.0, 3.0], "peer": [2.0, 4.0]}, 1.0, setting, facts)
    slow = timing.ratio("slow", {"kfree": [5.0], "a": [9.0], "b": [2.0]}, 1.0, setting, facts)
    known = {"N": 10, "d": 2, "latent": 2, "series": "search", "kd_tree": 2e-6, "brute": 1e-6}
    search = timing.ratio("search", {"kd_tree": [2.0], "brute": [1.0]}, None, setting, known)
    assert (fast.value, fast.low, fast.high, fast.verdict) == (0.5, 0.5, 0.75, "met")
    assert (slow.value, slow.peer_name, slow.verdict) == (2.5, "b", "MISSED")
    page = report.page({"fit": [fast, slow], "search-2": [search]}, [], 2)
    assert "1 met, 1 missed" in page
    assert "| fast | 2 | 1 s | 2 s (peer) | 0.5 (0.5..0.75) | 1 | met |" in page
    assert "**MISSED**" in page
    assert "| 10 | 2 | 2 | 2 | **1** |" in page


def test_an_unknown_workload_is_named(speed, capsys):
    assert speed[0].main(["--only", "nothing"]) == 1
    assert "No workload is called nothing; there are import, first" in capsys.readouterr().out


def test_same_rows_with_few_classes_and_many(speed):
    mixture = speed[1].mixture
    X, few = mixture(500, 4, 2, n_clusters=40)
    X_again, many = mixture(500, 4, 20, n_clusters=40)
    np.testing.assert_array_equal(X, X_again)
    np.testing.assert_array_equal(many % 2, few)
    assert X.shape == (500, 4) and len(np.unique(many)) == 20


def test_approximate_neighbors_come_close(speed, capsys):
    from benchmarks import approximate

    assert approximate.main(["--quick", "--features", "4"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| exact")]
    recall = [float(line.split("|")[5]) for line in lines]
    change = [float(line.split("|")[7]) for line in lines]
    assert len(lines) == 4
    # Longer lists hold more of the reverse neighbors, and the answers come closer.
    assert recall == sorted(recall) and recall[0] < recall[-1]
    assert change == sorted(change, reverse=True) and 0.0 <= change[-1] < 1e-4 < change[0]


def test_memory_of_a_model_does_not_depend_on_who_asks(monkeypatch, capsys):
    """A process can begin with the largest size of its parent; then little would seem enough."""
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import memory

    monkeypatch.setattr(memory, "QUICK", [(2_000, 16)])

    large = np.ones(50_000_000)  # 400 MB
    assert memory.main(["--quick"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    # 2,000 rows have at least 2,000 x 16 x 8 bytes of points and as many of neighbors.
    assert 1.0 < float(line.split("|")[4]) < 300.0 and large.sum() > 0


def test_doubt_finds_the_rows_that_need_all_nodes(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import nodes

    assert nodes.main(["--problems", "6", "--rows", "4", "12"]) == 0
    lines = [line.split("|") for line in capsys.readouterr().out.splitlines() if "e-" in line]
    off, again = ([float(line[i].strip(" %")) for line in lines] for i in (2, 3))
    # More doubt put up with: farther off, and fewer rows done again.
    assert off == sorted(off) and again == sorted(again, reverse=True) and again[0] > 0.0
