"""`kfree audit`: suspects from a table, as a table."""

import csv
import gzip
import io
import json

import numpy as np
import pytest
from sklearn.datasets import load_iris

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("skops")
pd = pytest.importorskip("pandas")

from typer.testing import CliRunner  # noqa: E402

from kfree.cli import make_app  # noqa: E402

TOLD = [
    "row_number",
    "given_label",
    "given_probability",
    "suggested_label",
    "suggested_probability",
    "neighbors_against",
]


def kfree(*args, **kwargs):
    return CliRunner().invoke(make_app(), ["audit", *map(str, args)], **kwargs)


@pytest.fixture(scope="module")
def iris():
    """Every other flower; rows 6 and 31 have a wrong label, row 11 has none."""
    data = load_iris()
    frame = pd.DataFrame(data.data[::2], columns=["a", "b", "c", "d"])
    frame["species"] = data.target_names[data.target[::2]]
    frame.loc[5, "species"] = "virginica"
    frame.loc[30, "species"] = "setosa"
    frame.loc[10, "species"] = None
    return frame


@pytest.fixture
def table(iris, tmp_path):
    path = tmp_path / "iris.csv"
    iris.to_csv(path, index=False)
    return path


def test_suspects_are_written(table, iris, tmp_path):
    result = kfree(table, "--target", "species", "--output", tmp_path / "suspects.csv")
    assert result.exit_code == 0, result.output
    assert "1 row has no label" in result.output
    found = pd.read_csv(tmp_path / "suspects.csv")
    assert list(found.columns) == [*TOLD, "a", "b", "c", "d"]
    assert set(found["row_number"][:2]) == {6, 31}
    assert (found["suggested_probability"] > found["given_probability"]).all()
    rows = iris.iloc[found["row_number"] - 1]
    assert found["given_label"].tolist() == rows["species"].tolist()
    np.testing.assert_allclose(found["a"], rows["a"])


def test_neighbors_have_the_suggested_label_and_are_near(table, iris, tmp_path):
    kfree(table, "-t", "species", "-o", tmp_path / "s.csv", "--neighbors", 3, "--top", 2)
    found = pd.read_csv(tmp_path / "s.csv")
    assert len(found) == 2
    for _, line in found.iterrows():
        against = [int(number) for number in line["neighbors_against"].split()]
        assert len(against) == 3
        assert set(iris["species"].iloc[np.array(against) - 1]) == {line["suggested_label"]}


def test_json(table, tmp_path):
    result = kfree(table, "-t", "species", "-o", tmp_path / "s.csv", "--json", "--top", 1)
    said = json.loads(result.stdout)
    assert said["n_contradicted"] >= 2
    assert said["n_estimated"] >= 1
    assert len(said["suspects"]) == 1
    assert said["suspects"][0]["row_number"] in (6, 31)


def test_standard_input_and_output(table):
    result = kfree("-", "-t", "species", "-o", "-", input=table.read_bytes())
    assert result.exit_code == 0
    assert list(pd.read_csv(io.StringIO(result.stdout)).columns[:6]) == TOLD
    assert "contradict" in result.stderr


def measured(n_rows=40):
    """Rows as a German office writes them; row 3 has a wrong label."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(n_rows):
        size = (5.0 if i % 2 else 1.0) + 0.1 * rng.normal()
        label = "groß" if (i % 2 == 1) != (i == 2) else "klein"
        weight = "k. A." if i == 5 else f"{1000 * size:.0f},50"
        day = f"{1 + i % 28:02d}.03.2024"
        rows.append([f"{i + 1:05d}", f"{size:.2f}0".replace(".", ","), weight, day, label])
    return [["Nr", "Größe", "Gewicht", "Tag", "Klasse"], *rows]


@pytest.mark.parametrize("way", ["semicolons", "tabs", "gzip", "standard input"])
def test_cells_are_written_as_they_stand(way, tmp_path):
    rows = measured()
    separator = "\t" if way == "tabs" else ";"
    text = "".join(separator.join(row) + "\r\n" for row in rows).encode("cp1252")
    source = tmp_path / "t.csv"
    source.write_bytes(gzip.compress(text) if way == "gzip" else text)
    given = {"input": text} if way == "standard input" else {}
    name = "-" if given else source
    result = kfree(name, "-t", "Klasse", "-o", tmp_path / "s.csv", **given)
    assert result.exit_code == 0, result.output
    header, *found = csv.reader(io.StringIO((tmp_path / "s.csv").read_text(encoding="utf-8")))
    assert header == [*TOLD, "Nr", "Größe", "Gewicht", "Tag"]
    assert found[0][:2] == ["3", "groß"]
    for line in found:
        number = int(line[0])
        assert line[len(TOLD) :] == rows[number][:-1]
        assert line[1] == rows[number][-1]


def test_numbers_are_numbers_in_parquet(tmp_path):
    rows = measured()
    text = "".join(";".join(row) + "\n" for row in rows)
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    kfree(tmp_path / "t.csv", "-t", "Klasse", "-o", tmp_path / "s.parquet")
    found = pd.read_parquet(tmp_path / "s.parquet")
    first = rows[found["row_number"][0]]
    assert found["Größe"][0] == float(first[1].replace(",", "."))
    # Left out by the model, a cell that is no number, a date: text.
    assert [found[name][0] for name in ("Nr", "Gewicht", "Tag")] == [first[0], first[2], first[3]]


def test_parquet_keeps_its_types(iris, tmp_path):
    typed = iris.assign(n=np.arange(75, dtype=np.int16) % 7, day=pd.Timestamp("2024-02-29"))
    typed.to_parquet(tmp_path / "t.parquet")
    for output in ("s.parquet", "s.csv"):
        kfree(tmp_path / "t.parquet", "-t", "species", "-o", tmp_path / output)
    found = pd.read_parquet(tmp_path / "s.parquet")
    own = ["a", "n", "day"]
    assert found[own].dtypes.tolist() == typed[own].dtypes.tolist()
    first = typed.iloc[found["row_number"][0] - 1]
    assert found.loc[0, own].tolist() == first[own].tolist()
    assert pd.read_csv(tmp_path / "s.csv")["day"][0] == "2024-02-29"


def test_rows_are_counted_as_a_spreadsheet_does_but_for_the_header(tmp_path):
    lines = [";".join(row) for row in measured()]
    # A row without a label counts; a cell of two lines is one cell; empty lines at the end.
    lines[1] = '"0000\n1";1,00;10,00;01.03.2024;'
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n\n\n", encoding="utf-8")
    kfree(tmp_path / "t.csv", "-t", "Klasse", "-o", tmp_path / "s.csv")
    (first, *_) = csv.DictReader(io.StringIO((tmp_path / "s.csv").read_text(encoding="utf-8")))
    assert first["row_number"] == "3" and first["Nr"] == "00003"


def test_no_suspects_is_a_table_without_rows(tmp_path):
    frame = pd.DataFrame({"x": np.r_[np.linspace(0, 1, 20), np.linspace(9, 10, 20)]})
    frame["kind"] = ["a"] * 20 + ["b"] * 20
    frame.to_csv(tmp_path / "clear.csv", index=False)
    result = kfree(tmp_path / "clear.csv", "-t", "kind", "-o", tmp_path / "none.csv")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "none.csv").read_text() == ",".join([*TOLD, "x"]) + "\n"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda frame: frame.rename(columns={"a": "row_number"}), "columns of its own named"),
        (lambda frame: frame.assign(species="setosa"), "only one class"),
        (lambda frame: frame.drop(columns="species"), "no column 'species'"),
    ],
)
def test_what_cannot_be_done_is_said(iris, change, sentence, tmp_path):
    change(iris).to_csv(tmp_path / "t.csv", index=False)
    result = kfree(tmp_path / "t.csv", "-t", "species", "-o", tmp_path / "s.csv")
    assert result.exit_code == 1
    assert sentence in " ".join(result.stderr.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv"]


def test_unwritable_output_is_said_before_the_work(table, monkeypatch, tmp_path):
    monkeypatch.setattr("kfree.commands.audit.audit_labels", lambda *a, **k: pytest.fail("worked"))
    result = kfree(table, "-t", "species", "-o", tmp_path / "absent" / "s.csv")
    assert result.exit_code == 1
    assert "no such file or folder" in " ".join(result.stderr.split())


def test_json_and_rows_cannot_share_standard_output(table):
    assert kfree(table, "-t", "species", "-o", "-", "--json").exit_code == 2
