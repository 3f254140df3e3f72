"""What reaches the terminal and the disk: nothing that it would obey, nothing that was read."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from kfree.cli import COMMANDS, make_app
from kfree.commands import telling
from kfree.commands.evaluate import SCORES
from kfree.plain_text import quoted, shown, without_controls

APP = make_app()
EVIL = "\x1b]0;title\x07evil"
FORMULA = '=HYPERLINK("x")'


def run(*arguments, stdin=None):
    return CliRunner().invoke(APP, [str(argument) for argument in arguments], input=stdin)


def in_a_shell(line, cwd, **variables):
    """A line of the shell, with the command of this environment."""
    line = line.replace("kfree ", f"'{sys.executable}' -m kfree ", 1)
    environment = {**os.environ, **variables}
    return subprocess.run(
        ["sh", "-c", line], cwd=cwd, capture_output=True, text=True, env=environment
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with hostile names, labels and cells, and a model of it."""
    folder = tmp_path_factory.mktemp("terminal")
    rng = np.random.default_rng(0)
    with open(folder / "t.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a\x1b[31mred", "b", "note", "y"])
        for i in range(60):
            k = i % 2
            note = "x" * 300_000 if i == 7 else f"n\x1b[2J{i % 5}"
            label = FORMULA if k else EVIL
            writer.writerow([f"{rng.normal(2 * k):.3f}", f"{rng.normal():.3f}", note, label])
    result = run("fit", folder / "t.csv", "-t", "y", "-o", folder / "m.kfree")
    assert result.exit_code == 0, result.output
    (folder / "fit.txt").write_text(result.output)
    return folder


@pytest.mark.parametrize("width", [30, 60, 200])
def test_no_score_is_cut_where_the_terminal_is_narrow(folder, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    result = run("evaluate", folder / "t.csv", "-t", "y", "--with", "k,commonest")
    assert result.exit_code == 0, result.output
    shown_scores = result.stdout.partition("Means over 4 folds")[2]
    assert "\u2026" not in shown_scores
    assert all(title in shown_scores for title, _, _ in SCORES)
    lines = [line for line in shown_scores.splitlines() if line.startswith("commonest class")]
    assert (len(lines) == 1) == (width == 200)
    assert sum(len(line.split()) - 2 for line in lines) == len(SCORES)


class TestText:
    def test_shown(self):
        assert shown("a\x1b[31m\u202eb\n") == "a\\x1b[31m\\u202eb\\n"
        assert shown("grün 木 🌲") == "grün 木 🌲"
        assert len(shown("x" * 300_000)) == 60
        assert quoted("it's") == '"it\'s"'
        # Spaces of all kinds are spaces.
        assert shown("1\u202f234\u00a0€") == "1 234 €"
        assert quoted("1\u2009234\u200b") == "'1 234\\u200b'"
        assert without_controls("a\nb\x07") == "a\nb\\x07"

    @pytest.mark.parametrize("style", [None, "red"])
    def test_lines_break_between_words(self, style):
        stream = io.StringIO()
        console = Console(file=stream, force_terminal=True, width=30, color_system=None)
        telling._print(console, "  " + "some words that are many " * 3 + "\x07", style)
        lines = stream.getvalue().splitlines()
        assert len(lines) > 2
        assert all(line.startswith("  ") and len(line) <= 30 for line in lines)
        assert " ".join(stream.getvalue().split()).endswith("that are many \\x07")

    def test_empty_lines_stay(self):
        stream = io.StringIO()
        console = Console(file=stream, force_terminal=True, width=30, color_system=None)
        telling._print(console, "\nb", None)
        assert [line.rstrip() for line in stream.getvalue().splitlines()] == ["", "b"]


class TestControlCharacters:
    def clean(self, text):
        return all(c == "\n" or c.isprintable() for c in text) and len(text) < 20_000

    def test_fit(self, folder):
        text = (folder / "fit.txt").read_text()
        assert self.clean(text)
        assert "\\x1b]0;title\\x07evil: 30" in text

    def test_audit_and_predict(self, folder, tmp_path):
        result = run("audit", folder / "t.csv", "-t", "y", "-o", tmp_path / "s.csv")
        assert result.exit_code == 0
        assert self.clean(result.output)
        result = run("predict", folder / "m.kfree", folder / "t.csv", "-o", tmp_path / "p.csv")
        assert result.exit_code == 0
        assert self.clean(result.output)

    @pytest.mark.parametrize(
        "words",
        [
            ["fit", "t.csv", "-t", "note\x1b[2J", "-o", "m"],
            ["fit", "t.csv", "-t", "y", "-o", "m", "--drop", "a\x1b["],
            ["evaluate", "t.csv", "-t", "b"],
            ["predict", "t.csv", "t.csv", "-o", "o.csv"],
        ],
    )
    def test_errors(self, folder, monkeypatch, words):
        monkeypatch.chdir(folder)
        result = run(*words)
        assert result.exit_code == 1
        assert self.clean(result.output)


class TestFormulas:
    def test_they_are_escaped_if_asked_for(self, folder, tmp_path):
        for option, expected in (([], FORMULA), (["--escape-formulas"], "'" + FORMULA)):
            out = tmp_path / "p.csv"
            run("predict", folder / "m.kfree", folder / "t.csv", "-o", out, *option)
            rows = pd.read_csv(out, dtype=str).to_dict("records")
            assert {row["prediction"] for row in rows} == {EVIL, expected}
            assert {row["y"] for row in rows} == {EVIL, expected}
            # A number that begins with a sign is none.
            assert any(row["b"].startswith("-") for row in rows)


class TestNothingIsOverwritten:
    @pytest.fixture
    def files(self, folder, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        for name in ("t.csv", "m.kfree"):
            (tmp_path / name).write_bytes((folder / name).read_bytes())
        (tmp_path / "link.csv").symlink_to("t.csv")
        os.link("t.csv", "hard.csv")
        return tmp_path

    @pytest.mark.parametrize(
        "words",
        [
            "fit t.csv -t y -o t.csv",
            "fit link.csv -t y -o ./t.csv",
            "audit t.csv -t y -o hard.csv",
            "evaluate hard.csv -t y -o link.csv",
            "report t.csv -t y -o link.csv",
            "predict m.kfree t.csv -o m.kfree",
            "predict m.kfree t.csv -o link.csv",
            "paper --data . --output .",
        ],
    )
    def test_an_output_that_is_an_input(self, files, words):
        before = {path.name: path.read_bytes() for path in files.iterdir()}
        result = run(*words.split())
        assert result.exit_code == 1
        assert "is also what is read; choose another --output" in result.stderr
        assert result.stderr.count("\n") == 1
        assert {path.name: path.read_bytes() for path in files.iterdir()} == before

    @pytest.mark.parametrize(
        "words", ["predict m.kfree t.csv -o p.xlsx", "fit t.csv -t y -o m.XLS"]
    )
    def test_spreadsheets_are_not_written(self, files, words):
        result = run(*words.split())
        assert result.exit_code == 1
        assert "has the ending of a spreadsheet, which kfree does not write" in result.stderr
        assert not {"p.xlsx", "m.XLS"} & {path.name for path in files.iterdir()}

    @pytest.mark.parametrize(
        "words",
        [
            "predict m.kfree t.csv -o p.json",
            "predict m.kfree t.csv -o p.csv.BZ2",
            "audit t.csv -t y -o s.parquet.gz",
            "report t.csv -t y -o r.pdf",
        ],
    )
    def test_nothing_is_written_under_a_foreign_ending(self, files, words):
        result = run(*words.split())
        assert result.exit_code == 1
        assert "has the ending of something that kfree does not write" in result.stderr
        assert not (files / words.split()[-1]).exists()

    def test_marks_that_exclude_each_other(self, files):
        marks = ("--decimal", ",", "--thousands", ",")
        result = run("fit", "t.csv", "-t", "y", "-o", "m2.kfree", *marks)
        assert result.exit_code == 1
        assert result.stderr.startswith("kfree fit: ',' cannot be the decimal mark and set")

    def test_an_output_without_a_name(self, files):
        result = run("predict", "m.kfree", "t.csv", "-o", "")
        assert result.exit_code == 1
        assert result.stderr == "kfree predict: --output needs the name of a file.\n"

    def test_behind_standard_input_and_output(self, files):
        before = (files / "t.csv").read_bytes()
        for line in (
            "kfree predict m.kfree - -o t.csv < t.csv",
            "kfree audit t.csv -t y -o - >> t.csv",
        ):
            result = in_a_shell(line, files)
            assert result.returncode == 1
            assert "is also what is read" in result.stderr
        assert (files / "t.csv").read_bytes() == before


class TestStreams:
    def test_closed_ones(self, folder):
        result = in_a_shell("kfree predict m.kfree - -o o.csv <&-", folder)
        assert result.returncode == 1
        assert result.stderr == "kfree predict: Standard input is closed.\n"
        result = in_a_shell("kfree predict m.kfree t.csv -o - >&-", folder)
        assert result.returncode == 1
        assert result.stderr.endswith("kfree predict: Standard output is closed.\n")

    def test_a_full_device(self, folder):
        if not os.path.exists("/dev/full"):
            pytest.skip("there is no /dev/full")
        result = in_a_shell("kfree predict m.kfree t.csv -o - >/dev/full", folder)
        assert result.returncode == 1
        assert "no space is left" in result.stderr
        assert "Traceback" not in result.stderr

    def test_help_and_version_need_no_extras(self, tmp_path):
        # Packages of these names that cannot be imported stand before the real ones.
        for package in ("typer", "rich", "pandas", "skops", "matplotlib"):
            (tmp_path / f"{package}.py").write_text("raise ImportError('not installed')\n")
        from kfree.cli import installed_version

        result = in_a_shell("kfree --version", tmp_path, PYTHONPATH=str(tmp_path))
        assert (result.returncode, result.stdout) == (0, f"kfree {installed_version()}\n")
        result = in_a_shell("kfree --help", tmp_path, PYTHONPATH=str(tmp_path))
        assert result.returncode == 0
        assert all(f"  {name} " in result.stdout for name in COMMANDS)


def test_with_chooses_what_is_compared(folder, monkeypatch):
    result = run("evaluate", folder / "t.csv", "-t", "y", "--with", "nonsense")
    assert result.exit_code == 2
    arguments = ["evaluate", folder / "t.csv", "-t", "y", "--folds", "2", "-o", "-"]
    result = run(*arguments, "--with", "commonest, logistic", "--with", "knn")
    methods = [line.split('"')[1] for line in result.stdout.splitlines()[1:]]
    assert methods == ["commonest class", "logistic", "kNN grid search"]
    result = run(*arguments)
    methods = [line.split('"')[1] for line in result.stdout.splitlines()[1:]]
    assert methods == ["kfree k", "kfree field", "kNN grid search"]
