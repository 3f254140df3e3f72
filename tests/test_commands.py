"""The commands as a user meets them: on tables as people have them, and on what is wrong."""

from __future__ import annotations

import csv
import errno
import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

import kfree
from kfree.cli import make_app
from kfree.commands import evaluate as evaluate_module
from kfree.commands import fit as fit_module
from kfree.commands import predict as predict_module
from kfree.commands import progress
from kfree.commands.k_bars import bars, credible_k, in_words
from kfree.commands.telling import told
from kfree.evaluation import Evaluation, Spread
from kfree.evaluation.scores import accuracy, log_loss
from kfree.tables import TablePreparation

APP = make_app()
SORTS = ("Birke", "Föhre", "Lärche")


def run(*arguments, stdin=None):
    return CliRunner().invoke(APP, [str(argument) for argument in arguments], input=stdin)


def fails(*arguments, stdin=None, code=1):
    """The one sentence that a command ends with; no traceback, nothing on standard output."""
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    if code == 1:
        (line,) = [text for text in result.stderr.splitlines() if not text.startswith("Note: ")]
        assert line.startswith(f"kfree {arguments[0]}: ")
        assert line.endswith((".", "?"))
    return result.stderr


def trees(n_rows: int = 60) -> str:
    """Umlauts, semicolons, a decimal comma, an id, dates, missing cells, a label with one row."""
    rng = np.random.default_rng(0)
    lines = ["Baum-Nr;Höhe (m);Umfang;Boden;gepflanzt;Land;Art"]
    for i in range(n_rows):
        kind = int(rng.integers(3))
        height, girth = 15 + 8 * kind + rng.normal(), 1 + kind * 0.3 + rng.normal() * 0.1
        day, month, year = rng.integers(1, 29), rng.integers(1, 13), rng.integers(1950, 2010)
        cells = [
            f"{i + 1:05d}",
            f"{height:.1f}".replace(".", ","),
            f"{girth:.2f}".replace(".", ","),
            ["Kalk", "Löß", "Moor"][int(rng.integers(3))],
            f"{day:02d}.{month:02d}.{year}",
            "AT",
            "Eibe" if i == 7 else "" if i == 30 else SORTS[kind],
        ]
        for j in range(1, 5):
            if rng.random() < 0.05:
                cells[j] = ""
        lines.append(";".join(cells))
    return "\r\n".join(lines) + "\r\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables and models, made once."""
    folder = tmp_path_factory.mktemp("commands")
    (folder / "bäume.csv").write_text(trees(), encoding="cp1252", newline="")
    frame = load_iris(as_frame=True).frame.rename(columns={"target": "species"})
    frame["species"] = np.array(["setosa", "versicolor", "virginica"])[frame["species"]]
    frame.to_csv(folder / "iris.csv", index=False)
    for table, target in (("bäume.csv", "Art"), ("iris.csv", "species")):
        name = table.removesuffix(".csv") + ".kfree"
        arguments = ["--target", target, "--output", folder / name, "--model", "k"]
        result = run("fit", folder / table, *arguments)
        assert result.exit_code == 0, result.output
        (folder / f"{name}.txt").write_text(result.stdout)
    return folder


class TestFit:
    def test_it_says_what_it_did(self, folder):
        text = (folder / "bäume.kfree.txt").read_text()
        for part in (
            "59 rows, 6 columns beside the labels, 4 classes (Birke: ",
            "1 row has no label in 'Art' and was left out.",
            "The class 'Eibe' has a single row.",
            "standardized: 'Höhe (m)' and 'Umfang'.",
            "'Boden' (3 values)",
            "taken as days: 'gepflanzt'",
            "'30,9' was read as 30.9",
            "filled in with the median",
            "'Baum-Nr' (it numbers the rows: an identifier), 'Land' (it is always 'AT')",
            "95% credible",
            "log loss",
        ):
            assert part in text

    def test_json_says_the_same(self, folder, tmp_path):
        arguments = ["fit", folder / "iris.csv", "-t", "species", "-o", tmp_path / "m", "--json"]
        result = run(*arguments, "--model", "k")
        found = json.loads(result.stdout)
        model = kfree.load(tmp_path / "m")
        classifier, frame = model[-1], pd.read_csv(folder / "iris.csv")
        probabilities, labels = classifier.predict_proba(None), frame["species"].to_numpy()
        assert found["n_rows"] == 150
        assert found["k_optimal"] == classifier.k_optimal_
        assert found["k_posterior"] == classifier.k_posterior_.tolist()
        scores = found["leave_one_out"]
        assert scores["log_loss"] == log_loss(labels, probabilities, classifier.classes_)
        assert scores["accuracy"] == accuracy(labels, classifier.predict(None))
        assert f"log loss {scores['log_loss']:.3f}" in (folder / "iris.kfree.txt").read_text()

    def test_options(self, folder, tmp_path):
        options = ["--structure", "boltzmann", "--drop", "Höhe (m)", "--keep", "Baum-Nr"]
        options += ["--categorical", "Umfang", "--jobs", "2"]
        result = run("fit", folder / "bäume.csv", "-t", "Art", "-o", tmp_path / "m", *options)
        assert result.exit_code == 0, result.output
        model = kfree.load(tmp_path / "m")
        assert model[-1].structure == "boltzmann"
        assert model[-1].n_jobs == 2
        assert model[0].numbers_ == ["Baum-Nr", "gepflanzt"]
        assert model[0].categories_ == ["Umfang", "Boden"]

    def test_standard_input(self, folder, tmp_path):
        text = (folder / "iris.csv").read_bytes()
        result = run("fit", "-", "-t", "species", "-o", tmp_path / "m", stdin=text)
        assert result.exit_code == 0
        assert "standard input: 150 rows" in result.stdout

    @pytest.mark.parametrize("table", ["crabs", "iris"])
    def test_shared_data(self, data_folder, tmp_path, table):
        source = data_folder / f"{table}.csv.gz"
        assert run("fit", source, "-t", "label", "-o", tmp_path / "m").exit_code == 0
        assert run("predict", tmp_path / "m", source, "-o", tmp_path / "o.csv").exit_code == 0
        made = pd.read_csv(tmp_path / "o.csv")
        assert (made["prediction"] == made["label"]).mean() > 0.8


class TestFitRefuses:
    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            (b"", "is empty"),
            (bytes(range(256)), "not a table"),
            (b"a,y\n1,x\n2,x\n", "only one class, 'x'"),
            (b"a,y\n1,1.5\n2,2.5\n3,3.75\n", "continuous numbers, such as 1.5"),
            (b"a,z\n1,x\n2,x\n", "no column 'y'"),
            (b"a b y\n1 2 x\n2 3 z\n", "the table has a single column, 'a b y'"),
            (b"5.1,3.5,x\n4.9,3.0,z\n", "the first line, '5.1', '3.5' and 'x', looks like data"),
            (b"y,id\nx,1\nz,2\nx,3\n", "No column is left to learn from"),
            (b"y\nx\nz\nx\n", "No column is left to learn from"),
        ],
    )
    def test_tables(self, tmp_path, content, expected):
        (tmp_path / "t.csv").write_bytes(content)
        old = tmp_path / "m.kfree"
        old.write_text("the old model")
        assert expected in fails("fit", tmp_path / "t.csv", "-t", "y", "-o", old)
        assert old.read_text() == "the old model"
        assert sorted(os.listdir(tmp_path)) == ["m.kfree", "t.csv"]

    def test_names(self, folder, tmp_path):
        out = tmp_path / "m"
        assert "no such file" in fails("fit", folder / "absent.csv", "-t", "y", "-o", out)
        assert "did you mean 'species'" in fails(
            "fit", folder / "iris.csv", "-t", "Spezies", "-o", out
        )
        told_so = fails("fit", folder / "iris.csv", "-t", "species", "-o", out, "--drop", "petal")
        assert "drop names the column 'petal'" in told_so
        for option in ("--drop", "--keep", "--categorical"):
            words = ("fit", folder / "iris.csv", "-t", "species", "-o", out, option, "species")
            assert f"{option} names 'species', which is the column to predict." in fails(*words)
        assert "it is a folder" in fails("fit", folder, "-t", "y", "-o", out)
        assert not out.exists()

    def test_output_is_looked_at_first(self, folder, tmp_path, monkeypatch):
        monkeypatch.setattr(fit_module, "read_task", lambda *args: pytest.fail("too late"))
        arguments = ["fit", folder / "iris.csv", "-t", "species", "-o"]
        assert "no such file or folder" in fails(*arguments, tmp_path / "absent" / "m.kfree")
        assert "it is a folder" in fails(*arguments, tmp_path)
        monkeypatch.setattr(os, "access", lambda *args: False)
        assert "permission is denied" in fails(*arguments, tmp_path / "m.kfree")

    def test_disk_full(self, folder, tmp_path, monkeypatch):
        def fail(*args):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", fail)
        out = tmp_path / "m.kfree"
        out.write_text("the old model")
        assert "no space is left" in fails("fit", folder / "iris.csv", "-t", "species", "-o", out)
        assert out.read_text() == "the old model"
        assert os.listdir(tmp_path) == ["m.kfree"]

    def test_wrong_options(self, folder, tmp_path):
        arguments = ["fit", folder / "iris.csv", "-t", "species", "-o", tmp_path / "m"]
        fails(*arguments[:2], code=2)
        fails(*arguments[:-1], "-", code=2)
        fails(*arguments, "--structure", "ring", code=2)
        fails(*arguments, "--what", code=2)


class TestPredict:
    def test_columns(self, folder, tmp_path):
        out = tmp_path / "out.csv"
        result = run("predict", folder / "iris.kfree", folder / "iris.csv", "-o", out)
        assert result.exit_code == 0
        assert "150 rows predicted" in result.stderr
        assert "passed over: 'species'" in result.stderr
        made, given = pd.read_csv(out), pd.read_csv(folder / "iris.csv")
        classes = ["setosa", "versicolor", "virginica"]
        assert list(made.columns) == [
            *given.columns,
            "prediction",
            "probability",
            *(f"probability_{name}" for name in classes),
            "uncertainty_from_k_and_beta",
        ]
        pd.testing.assert_frame_equal(made[given.columns], given)
        model = kfree.load(folder / "iris.kfree")
        features = given.drop(columns="species")
        probabilities = model.predict_proba(features)
        shown = made[[f"probability_{name}" for name in classes]].to_numpy()
        np.testing.assert_allclose(shown, probabilities, rtol=1e-5)
        np.testing.assert_array_equal(made["prediction"], model.predict(features))
        np.testing.assert_allclose(made["probability"], probabilities.max(axis=1), rtol=1e-5)
        known = model[-1].posterior(model[:-1].transform(features))
        between = known.class_variance_between.sum(axis=1)
        whole = (probabilities * (1 - probabilities)).sum(axis=1)
        np.testing.assert_allclose(
            made["uncertainty_from_k_and_beta"], between / whole, rtol=1e-5, atol=1e-9
        )

    def test_blocks_give_what_the_whole_gives(self, folder, tmp_path, monkeypatch):
        arguments = ["predict", folder / "bäume.kfree", folder / "bäume.csv", "-o"]
        run(*arguments, tmp_path / "whole.csv")
        monkeypatch.setattr(predict_module, "BLOCK_ROWS", 7)
        result = run(*arguments, tmp_path / "blocks.csv")
        assert (tmp_path / "whole.csv").read_bytes() == (tmp_path / "blocks.csv").read_bytes()
        # What is said of every block is said once.
        assert result.stderr.count("passed over") == 1

    def test_cells_stay_as_they_are_written(self, folder, tmp_path):
        out = tmp_path / "out.csv"
        run("predict", folder / "bäume.kfree", folder / "bäume.csv", "-o", out)
        made = list(csv.DictReader(io.StringIO(out.read_text(encoding="utf-8"))))
        given = list(csv.DictReader(io.StringIO(trees()), delimiter=";"))
        assert len(made) == 60
        for new, old in zip(made, given, strict=True):
            assert {name: new[name] for name in old} == old

    def test_order_missing_and_unknown_columns(self, folder, tmp_path):
        text = "Boden;neu;gepflanzt;Umfang;Höhe (m)\nTorf;1;;1,2;17,5\nLöß;2;01.02.1990;?;x\n"
        (tmp_path / "new.csv").write_text(text, encoding="utf-8")
        result = run(
            "predict", folder / "bäume.kfree", tmp_path / "new.csv", "-o", tmp_path / "o.csv"
        )
        assert result.exit_code == 0
        assert "passed over: 'neu'" in result.stderr
        assert "not there in fit: 'Torf'" in result.stderr
        assert "such as 'x'" in result.stderr
        assert "'?'" not in result.stderr
        assert len(pd.read_csv(tmp_path / "o.csv")) == 2

    def test_standard_input_and_output(self, folder):
        text = (folder / "iris.csv").read_text()
        result = run("predict", folder / "iris.kfree", "-", "-o", "-", stdin=text)
        assert result.exit_code == 0
        assert len(pd.read_csv(io.StringIO(result.stdout))) == 150

    def test_kinds_of_files(self, folder, tmp_path):
        arguments = ["predict", folder / "bäume.kfree", folder / "bäume.csv", "-o"]
        for name in ("o.csv", "o.tsv", "o.csv.gz", "o.tsv.gz", "o.parquet"):
            assert run(*arguments, tmp_path / name).exit_code == 0
        plain = (tmp_path / "o.csv").read_text()
        assert gzip.decompress((tmp_path / "o.csv.gz").read_bytes()).decode() == plain
        tabs = (tmp_path / "o.tsv").read_text()
        assert gzip.decompress((tmp_path / "o.tsv.gz").read_bytes()).decode() == tabs
        assert list(csv.reader(io.StringIO(tabs), delimiter="\t")) == list(
            csv.reader(io.StringIO(plain))
        )
        typed = pd.read_parquet(tmp_path / "o.parquet")
        assert typed["Höhe (m)"].dtype == float
        assert typed["Baum-Nr"][0] == "00001"
        again = run(
            "predict",
            folder / "bäume.kfree",
            tmp_path / "o.parquet",
            "-o",
            tmp_path / "p.csv",
        )
        assert "columns of its own named" in again.stderr
        del typed["prediction"], typed["probability"], typed["uncertainty_from_k_and_beta"]
        typed.loc[:, ~typed.columns.str.startswith("prob")].to_parquet(tmp_path / "i.parquet")
        run("predict", folder / "bäume.kfree", tmp_path / "i.parquet", "-o", tmp_path / "p.csv")
        first, second = pd.read_csv(tmp_path / "o.csv"), pd.read_csv(tmp_path / "p.csv")
        np.testing.assert_array_equal(first["probability"], second["probability"])

    def test_json(self, folder, tmp_path):
        arguments = ["predict", folder / "iris.kfree", folder / "iris.csv", "--json", "-o"]
        found = json.loads(run(*arguments, tmp_path / "o.csv").stdout)
        assert found["n_rows"] == 150
        assert sum(found["predicted"].values()) == 150
        fails(*arguments, "-", code=2)

    def test_a_classifier_without_a_posterior_of_k(self, folder, tmp_path):
        frame = pd.read_csv(folder / "iris.csv")
        model = kfree.load(folder / "iris.kfree")
        model.set_params(classifier=kfree.PKNNClassifier()).fit(
            frame.drop(columns="species"), frame["species"]
        )
        kfree.save(model, tmp_path / "m")
        assert (
            run("predict", tmp_path / "m", folder / "iris.csv", "-o", tmp_path / "o").exit_code == 0
        )
        assert "uncertainty" not in (tmp_path / "o").read_text()


class TestPredictRefuses:
    def test_what_cannot_be_predicted(self, folder, tmp_path):
        out = tmp_path / "out.csv"
        out.write_text("the old table")
        model, table = folder / "bäume.kfree", folder / "bäume.csv"
        (tmp_path / "few.csv").write_text("Boden;Umfang\nLöß;1,5\n", encoding="utf-8")
        (tmp_path / "empty.csv").write_text("")
        for arguments, expected in (
            ((model, tmp_path / "few.csv"), "lacks columns"),
            ((model, tmp_path / "empty.csv"), "is empty"),
            ((model, tmp_path / "absent.csv"), "no such file"),
            ((tmp_path / "absent.kfree", table), "no such file"),
            ((table, table), "not a model of kfree"),
        ):
            assert expected in fails("predict", *arguments, "-o", out)
        assert "no such file or folder" in fails(
            "predict", model, table, "-o", tmp_path / "a" / "b"
        )
        assert out.read_text() == "the old table"
        assert sorted(os.listdir(tmp_path)) == ["empty.csv", "few.csv", "out.csv"]

    def test_a_fault_late_in_the_table_leaves_nothing(self, folder, tmp_path, monkeypatch):
        monkeypatch.setattr(predict_module, "BLOCK_ROWS", 50)
        # Only the beginning of a file is looked at before; so the fault lies far behind it.
        lines = (folder / "iris.csv").read_text().splitlines()
        monkeypatch.setattr("kfree.tables.reading.HEAD_BYTES", 500)
        (tmp_path / "t.csv").write_text("\n".join([*lines, lines[1], "1,2,3,4,x,6,7"]) + "\n")
        message = fails("predict", folder / "iris.kfree", tmp_path / "t.csv", "-o", tmp_path / "o")
        assert "line 153" in message
        assert os.listdir(tmp_path) == ["t.csv"]

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
    def test_disk_full(self, folder):
        message = fails("predict", folder / "iris.kfree", folder / "iris.csv", "-o", "/dev/full")
        assert "'/dev/full' cannot be used: no space is left on the device." in message

    def test_a_model_without_a_table(self, folder, tmp_path):
        kfree.save(kfree.KFreeClassifier().fit(*load_iris(return_X_y=True)), tmp_path / "m.kfree")
        message = fails("predict", tmp_path / "m.kfree", folder / "iris.csv", "-o", "-")
        assert "was not fitted on a table" in message


class TestEvaluate:
    def test_all_methods_and_scores(self, folder, tmp_path):
        out = tmp_path / "e.csv"
        arguments = ["evaluate", folder / "bäume.csv", "-t", "Art", "--folds", "2"]
        names = "k,boltzmann,boltzmann2,knn"
        result = run(*arguments, "-o", out, "--json", "--with", names)
        assert result.exit_code == 0, result.output
        found = json.loads(result.stdout)
        methods = ["kfree k", "kfree boltzmann", "kfree boltzmann2", "kNN grid search"]
        assert list(found["evaluations"]) == methods
        assert any("Fewer rows than the 2 folds: 'Eibe'" in note for note in found["notes"])
        for scores in found["evaluations"].values():
            assert scores["accuracy"]["mean"] > 0.7
        fails(*arguments, "-o", "-", "--json", code=2)
        table = pd.read_csv(out)
        assert table["method"].tolist() == methods
        expected = found["evaluations"][methods[0]]["log_loss"]["mean"]
        assert table["log_loss_mean"][0] == pytest.approx(expected, rel=1e-5)

    def test_table_on_the_screen(self, folder, monkeypatch):
        spread = Spread(0.25, 0.5)
        found = dict.fromkeys(("kfree asymmetric", "kNN grid search"), Evaluation(*[spread] * 7))
        monkeypatch.setattr(evaluate_module, "_compare", lambda *args: found)
        result = run("evaluate", folder / "bäume.csv", "-t", "Art", "--folds", "2")
        for title in ("accuracy", "macro F", "log loss", "Brier", "calibration", "fit s"):
            assert title in result.stdout
        assert "…" not in result.stdout
        assert result.stdout.count("0.250") == 10
        result = run("evaluate", folder / "bäume.csv", "-t", "Art", "--folds", "2", "-o", "-")
        assert pd.read_csv(io.StringIO(result.stdout))["method"].tolist() == list(found)
        assert result.stderr.count("0.250") == 10

    def test_refuses(self, folder, tmp_path):
        table = tmp_path / "t.csv"
        table.write_text("a,y\n1.5,x\n2.5,z\n3.5,x\n")
        assert "too few for 4 folds" in fails("evaluate", table, "-t", "y")
        assert "no column 'w'" in fails("evaluate", table, "-t", "w")
        assert "no such file" in fails(
            "evaluate", table, "-t", "y", "--folds", "2", "-o", tmp_path / "absent" / "e.csv"
        )
        fails("evaluate", table, "-t", "y", "--folds", "1", code=2)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize(
    "words",
    [
        "fit secret.csv -t species -o /dev/null",
        "fit iris.csv -t species -o new.kfree",
        "predict secret.kfree iris.csv -o /dev/null",
        "predict iris.kfree secret.csv -o /dev/null",
        "predict iris.kfree iris.csv -o new.csv",
        "evaluate secret.csv -t species",
        "audit secret.csv -t species -o /dev/null",
        "audit iris.csv -t species -o iris.kfree",
        "report secret.csv -t species -o /dev/null",
        "report iris.csv -t species -o new.html",
    ],
)
def test_no_permission(folder, tmp_path, monkeypatch, words):
    """As somebody who may not read one file and write none; root may always."""
    for path in (folder / "iris.csv", folder / "iris.kfree"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
        secret = tmp_path / f"secret{path.suffix}"
        secret.write_bytes(path.read_bytes())
        secret.chmod(0o600)
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    # What is imported later may be out of reach then.
    run("predict", "iris.kfree", "iris.csv", "-o", "/dev/null")
    try:
        os.seteuid(65534)
        assert "permission is denied." in fails(*words.split())
    finally:
        os.seteuid(0)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "audit", "report"])
def test_help_has_an_example(command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"kfree {command}" in " ".join(result.stdout.replace("│", " ").split())


def test_a_terminal_with_few_letters(folder, tmp_path):
    result = subprocess.run(
        [
            sys.executable,
            "-m",
            "kfree",
            "fit",
            folder / "bäume.csv",
            "-t",
            "Art",
            "-o",
            tmp_path / "m",
        ],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert b"H?he (m)" in result.stdout


def test_the_program():
    result = subprocess.run(
        [sys.executable, "-m", "kfree", "--help"], capture_output=True, text=True, check=True
    )
    for command in ("fit", "predict", "evaluate", "paper"):
        assert command in result.stdout


def test_interrupted(folder, tmp_path, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(fit_module, "fit_model", interrupt)
    result = run("fit", folder / "iris.csv", "-t", "species", "-o", tmp_path / "m")
    assert result.exit_code == 130
    assert "Interrupted" in result.stderr
    assert os.listdir(tmp_path) == []


def test_errors_of_ours_are_not_hidden():
    @told
    def broken():
        raise KeyError("a mistake in the program")

    with pytest.raises(KeyError):
        broken()


def test_long_work_is_spoken_of(monkeypatch, capsys):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "PAUSE", 0.0)
    with progress.Working("Counting", 2, "steps") as working:
        working._timer.join()
        working.advance()
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == ["Counting: 0 of 2 steps ...", "Counting: 1 of 2 steps ..."]


def test_what_is_said_once(capsys):
    @told
    def speak():
        for value in ("red", "blue"):
            for name in ("a: b", "a: c"):
                frame = pd.DataFrame({"a: b": ["x", "y"], "a: c": ["x", "y"]})
                new = pd.DataFrame({"a: b": ["x"], "a: c": ["x"]}).assign(**{name: value})
                TablePreparation().fit(frame).transform(new)

    speak()
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("'")[1] for line in lines] == ["a: b", "a: c"]


def test_short_work_is_not_spoken_of(capsys):
    with progress.Working("Counting"):
        pass
    assert capsys.readouterr().err == ""


class TestBars:
    def test_the_credible_set_is_the_smallest(self):
        posterior = np.array([0.02, 0.5, 0.01, 0.3, 0.16, 0.01])
        assert credible_k(np.arange(1, 7), posterior).tolist() == [2, 4, 5]
        assert credible_k(np.arange(1, 5), np.full(4, 0.25)).tolist() == [1, 2, 3, 4]
        assert credible_k(np.array([3, 7]), np.array([0.0, 1.0])).tolist() == [7]

    def test_in_words(self):
        assert in_words(np.array([2, 4, 5, 6, 9]), np.arange(1, 20)) == "2, 4-6, 9"
        assert in_words(np.array([3]), np.arange(1, 20)) == "3"
        # Candidates that are neighbors make a range, whatever lies between them.
        k_values = np.array([1, 2, 32, 35, 38, 41])
        assert in_words(np.array([1, 32, 35, 38]), k_values) == "1, 32-38"

    def test_few_k_have_a_line_each(self):
        lines = bars(np.arange(1, 5), np.array([0.05, 0.5, 0.4, 0.05]))
        assert [line.split()[0] for line in lines] == ["1", "2", "3", "4"]
        assert lines[1].count("█") == 30
        assert lines[2].count("█") == 24
        assert lines[1].endswith("50.0%")

    def test_many_k_share_lines(self):
        lines = bars(np.arange(1, 101), np.full(100, 0.01))
        assert len(lines) <= 12
        assert lines[0].split()[0] == "1-8"
        shares = [float(line.split()[-1].rstrip("%")) for line in lines]
        assert sum(shares) == pytest.approx(96.0)
