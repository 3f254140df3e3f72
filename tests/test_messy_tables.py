"""Tables that are messier than most, through the commands and the classifiers."""

import datetime as dt
import decimal
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")

import pyarrow as pa
from pyarrow import parquet
from typer.testing import CliRunner

import kfree
from kfree import FieldClassifier, KFreeClassifier
from kfree.cli import make_app
from kfree.commands.models import MODELS, usual_model
from kfree.report import make_report
from kfree.tables import TableError, TablePreparation, split_target

N_ROWS = 40


def run(*arguments):
    return CliRunner().invoke(make_app(), [str(word) for word in arguments])


@pytest.fixture(scope="module")
def nested():
    """What Parquet can hold: lists, records, maps, decimals, times, gaps."""
    random = np.random.default_rng(0)
    label = random.integers(0, 2, N_ROWS)
    gaps = [None if i % 9 == 0 else int(i) for i in random.integers(0, 99, N_ROWS)]
    pairs = pa.array([[("key", 1)]] * N_ROWS, pa.map_(pa.string(), pa.int64()))
    return pa.table(
        {
            "list": [[1, 2]] * N_ROWS,
            "record": [{"a": 1}] * N_ROWS,
            "map": pairs,
            "price": [decimal.Decimal(f"{value:.2f}") for value in random.normal(3 * label)],
            "gaps": gaps,
            "clock": pa.array([dt.time(int(h), 30) for h in random.integers(0, 24, N_ROWS)]),
            "late": [None] * (N_ROWS - 1) + ["text"],
            "kind": [bool(value) for value in label],
        }
    )


class TestNestedParquet:
    def test_predict_keeps_the_types(self, nested, tmp_path, monkeypatch):
        # Blocks of ten rows: the last column has nothing in the first ones.
        monkeypatch.setattr("kfree.commands.predict.BLOCK_ROWS", 10)
        table, model, out = (tmp_path / name for name in ("t.parquet", "m", "o.parquet"))
        parquet.write_table(nested, table)
        fitted = run("fit", table, "-t", "kind", "-o", model)
        assert fitted.exit_code == 0, fitted.output
        assert "'map' (its cells, of the type list, are no numbers or texts)" in fitted.stdout
        assert "standardized: 'price', 'gaps' and 'clock'" in fitted.stdout
        result = run("predict", model, table, "-o", out)
        assert result.exit_code == 0, result.output
        made = parquet.read_table(out)
        assert made.select(nested.column_names).cast(nested.schema).equals(nested)
        assert made.schema.field("map").type == nested.schema.field("map").type
        assert made.schema.field("gaps").type == pa.int64()

    def test_audit_and_report(self, nested, tmp_path):
        table, out = tmp_path / "t.parquet", tmp_path / "o.parquet"
        parquet.write_table(nested, table)
        result = run("audit", table, "-t", "kind", "-o", out)
        assert result.exit_code == 0, result.output
        assert parquet.read_schema(out).field("price").type == nested.schema.field("price").type
        result = run("report", table, "-t", "kind", "-o", tmp_path / "o.html")
        assert result.exit_code == 0, result.output

    def test_hours(self, nested):
        frame = nested.to_pandas()[["clock", "price"]]
        hours = TablePreparation().fit(frame).numbers_of(frame)["clock"]
        assert hours[0] == frame["clock"][0].hour + 0.5


class TestNames:
    LABELS = np.array(["u", "v"] * (N_ROWS // 2))

    @pytest.fixture
    def numbers(self):
        return np.random.default_rng(0).normal(size=(N_ROWS, 3))

    @pytest.mark.parametrize("classifier", [KFreeClassifier(), FieldClassifier()])
    def test_twice(self, numbers, classifier):
        frame = pd.DataFrame(numbers, columns=["a", "b", "a"])
        with pytest.raises(ValueError, match="X has more than one column named 'a'"):
            classifier.fit(frame, self.LABELS)

    def test_a_target_twice(self, numbers):
        frame = pd.DataFrame(numbers, columns=["a", "t", "t"])
        with pytest.raises(TableError, match="more than one column named 't'"):
            split_target(frame, "t")

    def test_names_and_labels_that_end_in_nul(self, numbers, tmp_path):
        frame = pd.DataFrame(numbers, columns=["a\0", "a", "b"]).assign(
            **{"c\0": [f"some text {i}" for i in range(N_ROWS)]}
        )
        labels = np.where(self.LABELS == "u", "u\0", "v").astype(object)
        model = kfree.report.make_report(frame, self.LABELS).findings
        assert [column.name for column in model.columns] == ["a\0", "a", "b", "c\0"]
        assert TablePreparation().fit(frame, labels).numbers_ == ["a\0", "a", "b"]

    def test_polars(self):
        polars = pytest.importorskip("polars")
        table = polars.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "t": ["x", "y", "x", "y"]})
        features, labels = split_target(table, "t")
        assert list(features.columns) == ["a"]
        assert labels.tolist() == ["x", "y", "x", "y"]


class TestFewRows:
    def test_a_fold_that_leaves_nothing_to_learn_from(self, tmp_path):
        (tmp_path / "t.csv").write_text("x,y\n1,a\n2,b\n1,a\n1,b\n1,a\n1,b\n1,a\n1,b\n")
        result = run("evaluate", tmp_path / "t.csv", "-t", "y", "--with", "knn")
        assert result.exit_code == 1
        assert "too few for 4 folds; without one of them: No column is left" in result.stderr
        result = run("report", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "o.html")
        assert result.exit_code == 0, result.output
        assert "too few rows to compare" in (tmp_path / "o.html").read_text()

    def test_leave_one_out_by_the_field_is_not_praised(self, tmp_path):
        rows = "".join(f"{i // 3 + 0.1 * (i % 3)},c{i // 3}\n" for i in range(24))
        (tmp_path / "t.csv").write_text("x,y\n" + rows)
        arguments = ["fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m"]
        assert "this is too hopeful" in run(*arguments).stdout
        assert "this is too hopeful" not in run(*arguments, "--model", "k").stdout


class TestUsualModel:
    def test_by_structure(self):
        assert MODELS[usual_model("asymmetric")].make is FieldClassifier
        assert MODELS[usual_model("boltzmann")].make is KFreeClassifier

    def test_fit_and_predict(self, tmp_path):
        random = np.random.default_rng(1)
        table = pd.DataFrame({"a": random.normal(size=30), "y": random.choice(["u", "v"], 30)})
        table.to_csv(tmp_path / "t.csv", index=False)
        arguments = ["fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m", "--json"]
        assert json.loads(run(*arguments).stdout)["classifier"] == "FieldClassifier"
        run("predict", tmp_path / "m", tmp_path / "t.csv", "-o", tmp_path / "o.csv")
        assert "uncertainty_from_k_and_beta" not in pd.read_csv(tmp_path / "o.csv").columns
        assert json.loads(run(*arguments, "--model", "k").stdout)["k_optimal"] > 0

    def test_report(self):
        random = np.random.default_rng(1)
        X, y = random.normal(size=(30, 2)), np.tile([0, 1], 15)
        assert isinstance(make_report(X, y).findings.classifier, FieldClassifier)

    def test_of_many_columns(self, tmp_path):
        random = np.random.default_rng(1)
        table = pd.DataFrame(random.normal(size=(60, 1500)).round(3))
        table = table.add_prefix("gene ").assign(y=np.tile(["u", "v"], 30))
        table.to_csv(tmp_path / "t.csv", index=False)
        run("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m")
        assert isinstance(kfree.load(tmp_path / "m")[-1], FieldClassifier)
        size = (tmp_path / "t.csv").stat().st_size
        assert (tmp_path / "m").stat().st_size < 2 * size


def test_a_command_does_not_import_all_of_scikit_learn(tmp_path):
    (tmp_path / "t.csv").write_text(
        "x,y\n" + "".join(f"{i % 7},{'ab'[i % 2]}\n" for i in range(30))
    )
    code = f"""
import sys
sys.argv = ["kfree", "fit", {str(tmp_path / "t.csv")!r}, "-t", "y", "-o", {str(tmp_path / "m")!r}]
from kfree import cli
try:
    cli.main()
except SystemExit as end:
    assert not end.code
print(*sys.modules, file=sys.stderr)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    loaded = result.stderr.split()
    assert "skops.io" in loaded
    assert "sklearn.gaussian_process" not in loaded
    assert kfree.load(tmp_path / "m").predict(pd.DataFrame({"x": [1]})).shape == (1,)
