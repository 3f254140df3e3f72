"""The benchmark of the label audit runs, keeps what it measured, and finds flipped labels."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cleanlab")

FILE = Path(__file__).resolve().parent.parent / "benchmarks" / "audit.py"


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("audit_benchmark", FILE)
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look their module up by name.
    sys.modules[spec.name] = module
    sys.path.insert(0, str(FILE.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(FILE.parent))
    yield module
    del sys.modules[spec.name]


def test_flip(benchmark):
    labels = np.repeat([0, 1, 2], 100)
    changed, flipped = benchmark.flip(labels, 0.05, 0)
    assert flipped.sum() == 15
    assert (changed[flipped] != labels[flipped]).all()
    np.testing.assert_array_equal(changed[~flipped], labels[~flipped])
    np.testing.assert_array_equal(benchmark.flip(labels, 0.05, 0)[0], changed)
    assert (benchmark.flip(labels, 0.05, 1)[1] != flipped).any()


def test_clean_sets_have_labels_that_x_explains(benchmark):
    kinds = set()
    for seed in range(12):
        kind, X, y = benchmark.make_clean(seed)
        kinds.add(kind)
        assert len(X) == len(y)
        assert np.isfinite(X).all()
        np.testing.assert_array_equal(np.unique(y), np.arange(y.max() + 1))
    assert kinds == set(benchmark.KINDS)
    assert benchmark.within((3, 9), 5) == 1.0
    assert benchmark.within((3, 9), 10) == 0.0


def test_judge_knows_good_from_bad(benchmark):
    flipped = np.arange(100) < 10
    for score, auroc, precision in ((~flipped, 1.0, 1.0), (flipped, 0.0, 0.0)):
        said = benchmark.Suspicion(score.astype(float), 20)
        found = benchmark.judge(lambda X, y, said=said: said, None, np.zeros(100), flipped)
        assert (found.auroc, found.precision, found.estimate_ratio) == (auroc, precision, 2.0)


def test_quick_run_and_resumption(benchmark, data_folder, tmp_path, capsys, monkeypatch):
    arguments = ["--quick", "--cache", str(tmp_path)]
    assert benchmark.main(arguments) == 0
    first = capsys.readouterr().out
    assert "AUROC" in first
    monkeypatch.setattr(benchmark, "judge", lambda *args: pytest.fail("measured again"))
    assert benchmark.main(arguments) == 0
    assert (
        capsys.readouterr().out.split("over the data sets")[1]
        == first.split("over the data sets")[1]
    )


def test_report(benchmark, data_folder, tmp_path):
    found = benchmark.Found(0.9, 0.5, 1.5, 1.0, 0.0, 0.2)
    clean = [benchmark.Clean("moons", 300, 20, 21.5, 2, low, 9) for low in (0, 0, 1)]
    cells = [
        benchmark.Cell("iris", 150, 4, 3, rate, 0, method, found)
        for rate in benchmark.RATES
        for method in benchmark.METHODS
    ]
    text = benchmark.report(cells, clean)
    assert "make audit" in text
    assert "Of 3 made data sets without a wrong label" in text
    assert "contains 0 on 2." in text
    assert "kfree field to kfree k: AUROC 0.900 to 0.900, higher on 0 of 1 data sets" in text
    assert "kfree field to cleanlab on random forest: AUROC" in text
    assert len(benchmark.as_csv(cells).splitlines()) == 1 + len(cells)


def test_missing_data_is_said(benchmark, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("KFREE_DATA", str(tmp_path / "absent"))
    assert benchmark.main([]) == 1
    assert "measured nothing" in capsys.readouterr().err
