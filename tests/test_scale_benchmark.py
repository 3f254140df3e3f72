"""The benchmark of shards keeps each line, goes on where it stopped, and says what was reached."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def scale(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import dask_shards

    page = tmp_path / "scale.md"
    page.write_text(f"before\n{dask_shards.BEGIN}\nold\n{dask_shards.END}\nafter\n")
    monkeypatch.setattr(dask_shards, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(dask_shards, "PAGE", page)
    monkeypatch.setattr(dask_shards, "ROOT", tmp_path)
    monkeypatch.setattr(dask_shards, "digest_files", lambda _: "")
    monkeypatch.setattr(dask_shards, "data", lambda *_: ([0.0], [0], [0.0]))
    return dask_shards


def test_an_interrupted_run_goes_on(scale, monkeypatch, capsys):
    measured = []

    def alone(arguments):
        given = dict(zip(arguments[::2], arguments[1::2], strict=True))
        n_features, n_shards = int(given["--features"]), int(given.get("--shards", 0))
        partition = given.get("--partition", "one process")
        measured.append((n_features, n_shards, partition))
        if len(measured) == 5:
            raise KeyboardInterrupt
        # Twice the CPU seconds of one process: too much for 3 features, not for 8.
        seconds, growth = (2.0, 30) if n_shards else (1.0, 100)
        return scale.Measured(
            n_features, n_shards, partition, seconds, 1.0, 1.0, 0, 0, growth, 7, 32
        )

    monkeypatch.setattr(scale, "alone", alone)
    assert scale.main([]) == 130
    assert "goes on from here" in capsys.readouterr().out
    assert "old" in scale.PAGE.read_text()
    assert scale.main([]) == 0
    # 2, 4, 8, 16 shards by space and by rows, and one process; the interrupted line once more.
    assert len(set(measured)) == 18 and len(measured) == 19
    page = scale.PAGE.read_text()
    assert page.startswith("before\n") and page.endswith("after\n") and "old" not in page
    assert page.count(" by space |") == page.count(" by rows |") == 8
    assert "8 features `fit` takes 2.00 times" in page and "(aim: at most 2.5, reached)" in page
    assert "(aim: at most 1.6, missed)" in page and page.count("(aim: at most 0.5, reached)") == 2
    assert scale.main([]) == 0 and len(measured) == 19  # all is kept


def test_options_that_both_benchmarks_know(scale):
    assert scale.parse(["--quick", "--fresh"]).quick
    line = "$(filter-out --quick --fresh,$(ARGS))"
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"@$(if {line},,$(RUN) -m benchmarks.dask_shards $(ARGS))" in makefile
