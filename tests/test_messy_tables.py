"""Tables that are messier than most, through the commands and the classifiers."""

import datetime as dt
import decimal
import io
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")

import pyarrow as pa
from pyarrow import parquet
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

import kfree
from kfree import FieldClassifier, KFreeClassifier
from kfree.cli import make_app
from kfree.commands.models import MODELS, usual_model
from kfree.report import make_report
from kfree.tables import TableError, TablePreparation, read_cells, split_target
from kfree.tables.cells import plain_numbers
from kfree.tables.tally import Tally

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


UNITS = pd.DataFrame(
    {
        "weight": [f"{60 + i % 9}.5 kg" for i in range(40)],
        "heat": [f"{20 + i % 5},{i % 7}°C" for i in range(40)],
        "lead": ["<0.1" if i % 8 == 0 else f"0.{i % 6 + 1}" for i in range(40)],
        "range": [("<5", ">=5")[i % 2] for i in range(40)],
        "start": [f"{i % 24:02d}:{i % 60:02d}" for i in range(40)],
    }
)


class TestUnitsLimitsTimes:
    def test_they_are_numbers(self):
        fitted = TablePreparation().fit(UNITS)
        numbers = fitted.numbers_of(UNITS)
        assert numbers["weight"][:2].tolist() == [60.5, 61.5]
        assert numbers["heat"][:2].tolist() == [20.0, 21.1]
        assert numbers["lead"][:2].tolist() == [0.1, 0.2]
        assert "'60.5 kg' was read as 60.5, and so on, in 'weight'." in fitted.notes_
        assert "1 column of times of day: 'start'." in fitted.notes_

    def test_limits_alone_are_names_of_ranges(self):
        assert TablePreparation().fit(UNITS).values_["range"] == ["<5", ">=5"]

    def test_new_rows(self):
        fitted = TablePreparation().fit(UNITS)
        expected = fitted.transform(UNITS.iloc[[1]])
        # One cell alone would not tell the unit; fit does.
        bare = UNITS.iloc[[1]].assign(weight=["61.5"], lead=["> 0.2"])
        np.testing.assert_array_equal(fitted.transform(bare), expected)
        with pytest.raises(TableError, match=r"'weight' held numbers in fit, .* like '61500 g'"):
            fitted.transform(UNITS.iloc[[1]].assign(weight=["61500 g"]))

    def test_units_are_saved(self, tmp_path):
        labels = np.tile(["u", "v"], 20)
        model = make_pipeline(TablePreparation(), KFreeClassifier())
        kfree.save(model.fit(UNITS, labels), tmp_path / "m")
        again = kfree.load(tmp_path / "m")
        np.testing.assert_array_equal(again.predict_proba(UNITS), model.predict_proba(UNITS))

    def test_codes_keep_their_letters(self):
        rooms = pd.DataFrame({"room": [f"{i % 4}{'ABC'[i % 3]}" for i in range(40)]})
        assert TablePreparation().fit(rooms).categories_ == ["room"]


def table(n_rows=30):
    rows = (f"{i},{i % 7}.5,{i % 5},{'pq'[i % 2]}" for i in range(n_rows))
    return "\n".join(["nr,a,b,kind", *rows]) + "\n"


class TestRowsThatAreNoData:
    def fit(self, tmp_path, text, target="kind"):
        (tmp_path / "t.csv").write_text(text)
        return run("fit", tmp_path / "t.csv", "-t", target, "-o", tmp_path / "m", "--model", "k")

    def test_units_below_the_names(self, tmp_path):
        result = self.fit(tmp_path, table(9).replace("kind\n", "kind\n,cm,kg,\n"))
        assert "second line of names or units ('cm' and 'kg') and was left out" in result.stdout
        assert "2 columns of numbers, standardized: 'a' and 'b'" in result.stdout
        assert "not a number" not in result.stdout

    def test_a_total(self, tmp_path):
        result = self.fit(tmp_path, table() + "Total:,99,77,p\n")
        assert "The last row looks like a total ('Total') and was left out." in result.stdout
        assert "(p: 15, q: 15)" in result.stdout

    def test_audit_counts_the_rows_of_the_file(self, tmp_path):
        (tmp_path / "t.csv").write_text("a,b,kind\ncm,kg,\n" + "1,2,p\n3,4,q\n" * 20 + "1,2,q\n")
        run("audit", tmp_path / "t.csv", "-t", "kind", "-o", tmp_path / "o.csv", "--model", "k")
        assert pd.read_csv(tmp_path / "o.csv")["row_number"].tolist() == [42]

    @pytest.mark.parametrize(
        "text",
        [
            table().replace("0,0.5,0,p", "0,unknown,0,p"),  # one cell may be a slip
            table() + "30,1.5,2,total\n31,1.5,2,total\n",
        ],
    )
    def test_other_rows_are_kept(self, tmp_path, text):
        assert "was left out" not in self.fit(tmp_path, text).stdout

    def predict(self, tmp_path, text, name="o.csv"):
        assert self.fit(tmp_path, table()).exit_code == 0
        (tmp_path / "n.csv").write_text(text)
        result = run("predict", tmp_path / "m", tmp_path / "n.csv", "-o", tmp_path / name)
        assert result.exit_code == 0, result.output
        return result

    @pytest.mark.parametrize("n_rows", [1, 2, 9])
    def test_predict_leaves_them_without_a_prediction(self, tmp_path, n_rows):
        text = table(n_rows).replace("kind\n", "kind\n,cm,kg,\n") + "Total:,99,77,\n"
        result = self.predict(tmp_path, text)
        assert "units ('cm' and 'kg'); it has no prediction" in result.stderr
        assert "a total ('Total'); it has no prediction" in result.stderr
        assert "filled in" not in result.stderr
        assert f"{n_rows} row{'s' * (n_rows > 1)} predicted" in result.stderr
        made = pd.read_csv(tmp_path / "o.csv", dtype=str, keep_default_na=False)
        assert made["a"].iloc[[0, -1]].tolist() == ["cm", "99"]
        assert (made.iloc[[0, -1], 4:] == "").all(axis=None)
        assert made["prediction"].iloc[1:-1].isin(["p", "q"]).all()

    def test_predict_finds_them_in_blocks(self, tmp_path, monkeypatch):
        monkeypatch.setattr("kfree.commands.predict.BLOCK_ROWS", 4)
        text = table(7).replace("kind\n", "kind\n,cm,kg,\n") + "Total,99,77,\n"
        self.predict(tmp_path, text, "o.parquet")
        made = parquet.read_table(tmp_path / "o.parquet").to_pandas()
        assert made["prediction"].isna().tolist() == [True, *[False] * 7, True]
        assert made["probability_p"].isna().tolist() == [True, *[False] * 7, True]
        # The last block is the total alone.
        assert "8 rows predicted" in self.predict(tmp_path, table(8) + "Total,1,2,\n").stderr

    @pytest.mark.parametrize(
        "text",
        [
            "nr,a,b\n1,unknown,0\n2,1.5,3\n",  # one cell may be a slip
            "nr,a,b\nTotal,1.5,0\n",  # a single row
            "nr,a,b\n1,2,3\nTotal,2,3\n2,2,3\n4,2,3\n5,2,3\nTotal,2,3\n",  # not alone
        ],
    )
    def test_predict_keeps_other_rows(self, tmp_path, text, monkeypatch):
        monkeypatch.setattr("kfree.commands.predict.BLOCK_ROWS", 5)
        assert "no prediction" not in self.predict(tmp_path, text).stderr

    def test_predict_knows_the_values_of_fit(self, tmp_path):
        brands = "a,b,brand,kind\n" + "1,2,Total,p\n3,4,Shell,q\n" * 9
        assert self.fit(tmp_path, brands).exit_code == 0
        (tmp_path / "n.csv").write_text("a,b,brand\n1,2,Shell\n3,4,Total\n")
        result = run("predict", tmp_path / "m", tmp_path / "n.csv", "-o", tmp_path / "o.csv")
        assert "2 rows predicted" in result.stderr

    def test_predict_leaves_empty_rows_and_a_source_alone(self, tmp_path, monkeypatch):
        monkeypatch.setattr("kfree.commands.predict.BLOCK_ROWS", 4)
        # Spreadsheets write rows that somebody cleared, and people a source below the table.
        rows = "".join(f"{i}.5 kg,{i % 3},{'pq'[i % 2]}\n" for i in range(9))
        assert self.fit(tmp_path, "a,b,kind\n" + rows).exit_code == 0
        text = "a,b,kind\n" + rows + ",,\n,,p\nSource: the 1995 survey,,\n7.5 kg,,\n"
        (tmp_path / "n.csv").write_text(text)
        result = run("predict", tmp_path / "m", tmp_path / "n.csv", "-o", tmp_path / "o.csv")
        assert "3 rows are empty in all columns that the model uses" in result.stderr
        assert "10 rows predicted" in result.stderr
        assert "filled in with the median of fit: 'b' (1 cell)" in result.stderr
        made = pd.read_csv(tmp_path / "o.csv")["prediction"].isna()
        assert np.flatnonzero(made).tolist() == [9, 10, 11]

    def test_predict_of_empty_rows_alone(self, tmp_path):
        assert self.fit(tmp_path, table()).exit_code == 0
        (tmp_path / "n.csv").write_text("a,b\n,\n,NA\n")
        words = ("predict", tmp_path / "m", tmp_path / "n.csv", "-o", tmp_path / "o.csv", "--json")
        told = json.loads(run(*words).stdout)
        assert (told["n_rows"], told["n_predicted"], told["mean_probability"]) == (2, 0, None)
        assert "0 rows predicted; written to" in run(*words[:-1]).stderr

    def test_predict_below_a_title(self, tmp_path):
        assert self.fit(tmp_path, table()).exit_code == 0
        (tmp_path / "n.csv").write_text("All sizes,,\n,,\na,b,kind\n1,2,p\n")
        result = run("predict", tmp_path / "m", tmp_path / "n.csv", "-o", tmp_path / "o.csv")
        assert "('a' stands below the first line: remove what is above it)" in result.stderr
        assert not (tmp_path / "o.csv").exists()

    @pytest.mark.parametrize(("line", "mark"), [("sep=;", ";"), ('"sep=;"', ";"), ("SEP=^", "^")])
    @pytest.mark.parametrize("wide", [False, True])
    def test_excel_says_the_separator(self, tmp_path, monkeypatch, line, mark, wide):
        monkeypatch.setattr("kfree.tables.reading.WIDE", 2 if wide else 500)
        (tmp_path / "t.csv").write_text(f"{line}\r\n" + table(9).replace(",", mark))
        read = read_cells(tmp_path / "t.csv")
        expected = pd.read_csv(io.StringIO(table(9)), dtype=str)
        assert read.to_dict("list") == expected.to_dict("list")

    def test_nothing_below_the_separator(self, tmp_path):
        (tmp_path / "t.csv").write_text("sep=;\n\n")
        with pytest.raises(TableError, match="is empty"):
            read_cells(tmp_path / "t.csv")

    def test_names_in_the_second_line(self, tmp_path):
        result = self.fit(tmp_path, "Sample,Sizes,,Result\n" + table())
        assert "but a cell below it is called so" in result.stderr
        result = self.fit(tmp_path, "# made by a machine\n" + table())
        assert "remove what stands above the names of the columns" in result.stderr


def numbered(n_rows=60):
    random = np.random.default_rng(0)
    return pd.DataFrame({"size": random.normal(size=n_rows).round(3).astype(str)})


class TestMissing:
    @pytest.mark.parametrize("mark", [".", "..", "\u2013", "#DIV/0!", "#VALUE!"])
    def test_marks(self, mark):
        frame = numbered()
        frame.loc[::2, "size"] = mark
        fitted = TablePreparation().fit(frame)
        assert fitted.notes_[-1] == (
            "Missing numbers were filled in with the median: 'size' (30 cells)."
        )
        np.testing.assert_array_equal(
            fitted.numbers_of(frame)["size"], pd.to_numeric(frame["size"], errors="coerce")
        )

    def test_a_label_that_is_a_point(self):
        frame = numbered().assign(kind=["p", "q", "."] * 20)
        assert len(split_target(frame, "kind", say=lambda words: None)[1]) == 40

    def test_one_word_for_what_is_not_known(self):
        frame = numbered()
        frame.loc[::3, "size"] = "not measured"
        fitted = TablePreparation().fit(frame)
        assert fitted.numbers_ == ["size"]
        assert "20 cells that are not numbers, such as 'not measured'" in fitted.notes_[1]

    def test_several_words_and_codes_are_categories(self):
        frame = numbered().assign(code=[str(i % 5) if i % 3 else "other" for i in range(60)])
        frame.loc[::3, "size"] = "small"
        frame.loc[1::9, "size"] = "large"
        fitted = TablePreparation().fit(frame)
        assert fitted.numbers_ == []
        assert fitted.categories_ == ["code"]


class TestIdentifiersByName:
    def test_most_rows_have_one_of_their_own(self):
        # Of 60 rows 45 persons, two visits of some.
        who = [i % 45 for i in range(60)]
        frame = numbered().assign(
            patient_id=[100 * i for i in who], PatientID=[f"P {i}" for i in who], group_no=who
        )
        fitted = TablePreparation().fit(frame)
        assert fitted.left_out_ == dict.fromkeys(
            ["patient_id", "PatientID"], "by its name an identifier"
        )
        assert fitted.numbers_ == ["size", "group_no"]
        kept = TablePreparation(keep=["patient_id", "PatientID"]).fit(frame)
        assert kept.left_out_ == {}
        assert "By name, 'patient_id' and 'PatientID' could be identifiers" in str(kept.notes_)

    def test_few_values_are_kept_and_named(self):
        frame = numbered().assign(id=[i % 6 for i in range(60)])
        fitted = TablePreparation().fit(frame)
        assert fitted.numbers_ == ["size", "id"]
        assert "By name, 'id' could be an identifier; --drop leaves it out." in fitted.notes_

    def test_fractions_are_none(self):
        frame = numbered().assign(grid=1.0).rename(columns={"size": "valid id"})
        assert TablePreparation().fit(frame).numbers_ == ["valid id"]


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

    def test_names_that_pandas_uses(self, numbers, tmp_path):
        names = ["self", "index", "values"]
        pd.DataFrame(numbers, columns=names).assign(T=self.LABELS).to_csv(
            tmp_path / "t.csv", index=False
        )
        data, model, out = (tmp_path / name for name in ("t.csv", "m", "o.parquet"))
        given = ["-t", "T", "--model", "k", "-o"]
        run("fit", data, *given, model)
        for words in (["predict", model, data, "-o", out], ["audit", data, *given, out]):
            result = run(*words)
            assert result.exit_code == 0, result.output
            kinds = parquet.read_schema(out)
            assert [kinds.field(name).type for name in names] == [pa.float64()] * 3

    def test_polars(self):
        polars = pytest.importorskip("polars")
        table = polars.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "t": ["x", "y", "x", "y"]})
        features, labels = split_target(table, "t")
        assert list(features.columns) == ["a"]
        assert labels.tolist() == ["x", "y", "x", "y"]


class TestFewRows:
    def test_a_row_for_each_class(self, tmp_path):
        data = tmp_path / "t.csv"
        data.write_text("x,y\n" + "".join(f"{i}.5,c{i}\n" for i in range(6)))
        for command, *given in (
            ("fit", "-o", tmp_path / "m"),
            ("audit", "-o", tmp_path / "o.csv"),
            ("evaluate", "--with", "k,knn"),
        ):
            result = run(command, data, "-t", "y", *given)
            assert result.exit_code == 0, result.output
            assert "have a single row each" in result.stdout

    def test_a_fold_that_leaves_nothing_to_learn_from(self, tmp_path):
        (tmp_path / "t.csv").write_text("x,y\n1,a\n2,b\n1,a\n1,b\n1,a\n1,b\n1,a\n1,b\n")
        result = run("evaluate", tmp_path / "t.csv", "-t", "y", "--with", "knn")
        assert result.exit_code == 1
        assert "too few for 4 folds; without one of them: No column is left" in result.stderr
        result = run("report", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "o.html")
        assert result.exit_code == 0, result.output
        assert "too few rows to compare" in (tmp_path / "o.html").read_text()

    def test_leave_one_out_by_the_field_is_not_praised(self, tmp_path):
        rows = [f"{i // 3 + 0.1 * (i % 3)},c{i // 3}\n" for i in range(48)]
        (tmp_path / "t.csv").write_text("x,y\n" + "".join(rows))
        arguments = ["fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m"]
        assert "this is too hopeful" in run(*arguments).stdout
        assert "this is too hopeful" not in run(*arguments, "--model", "k").stdout
        # So few rows that each is left out by a refit.
        (tmp_path / "t.csv").write_text("x,y\n" + "".join(rows[:15]))
        assert "this is too hopeful" not in run(*arguments).stdout


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


@pytest.mark.parametrize(
    ("top", "verdict"), [(0.2, "tell next to nothing"), (0.35, "judge the model by its")]
)
def test_fit_says_what_the_shares_alone_achieve(tmp_path, top, verdict):
    # Rare everywhere, or rare in the upper half and absent below: nowhere is a row rather rare.
    random = np.random.default_rng(1)
    numbers = random.uniform(-1, 1, size=300)
    chance = np.where(numbers > 0, top, 0.2 if top == 0.2 else 0.0)
    labels = np.where(random.random(300) < chance, "q", "p")
    pd.DataFrame({"a": numbers, "y": labels}).to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m", "--model", "k")
    said = run(*words).stdout
    assert f"p for every row, have an accuracy of {np.mean(labels == 'p'):.3f} and a log" in said
    assert verdict in said


def test_numbers_of_many_columns_are_read_at_once():
    random = np.random.default_rng(2)
    numbers = pd.DataFrame(random.normal(size=(12, 30)).round(3)).add_prefix("c")
    texts = numbers.astype(str)
    texts.iloc[3, 4] = " NA "
    numbers.iloc[3, 4] = np.nan
    fitted = TablePreparation().fit(texts)
    assert plain_numbers(texts, fitted.numbers_) is not None
    np.testing.assert_array_equal(fitted.transform(texts), fitted.transform(numbers))
    tally, columnwise = Tally(), Tally()
    fitted.transform_block(texts, tally)
    fitted.transform_block(numbers, columnwise)
    assert tally == columnwise
    for other in ("1,5", "$3", "x", "inf", 1.5, None):
        assert plain_numbers(texts.astype(object).assign(c7=other), fitted.numbers_) is None


def test_help_and_names_import_nothing():
    code = "import sys, kfree, kfree.cli; dir(kfree); print('numpy' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "False\n"
    assert set(kfree.__all__) <= set(dir(kfree))
    assert all(getattr(kfree, name) is not None for name in kfree.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        kfree.nothing  # noqa: B018


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


def test_two_rows_of_ten_thousand_columns(tmp_path):
    """A model file of at most twice the data, and a prediction in CPU seconds that can be counted.

    The aim is 2 seconds, and 1.2 were measured; the test allows twice the aim on any machine.
    """
    resource = pytest.importorskip("resource")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 10_000)).round(5)).add_prefix("g")
    data, new, model = (tmp_path / name for name in ("t.csv", "new.csv", "m.kfree"))
    table.assign(y=["p", "q"] * 30).to_csv(data, index=False)
    table.iloc[:2].to_csv(new, index=False)
    command = [sys.executable, "-m", "kfree"]
    subprocess.run([*command, "fit", data, "-t", "y", "-o", model], check=True, capture_output=True)
    assert model.stat().st_size <= 2 * data.stat().st_size
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = tmp_path / "out.csv"
    subprocess.run([*command, "predict", model, new, "-o", out], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert len(pd.read_csv(out)) == 2
    assert after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime <= 4.0
