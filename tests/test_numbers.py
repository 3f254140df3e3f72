"""Numbers as people write them, and tables that are full of them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from kfree.tables import (
    TableError,
    TablePreparation,
    TableWarning,
    read_cells,
    split_target,
)
from kfree.tables.numbers import (
    Evidence,
    Style,
    decide,
    gather,
    given_style,
    parsed,
    read_columns,
)
from kfree.tables.relevance import hiding

pd = pytest.importorskip("pandas")

POINT, COMMA = Style(".", ","), Style(",", ".")


@pytest.mark.parametrize(
    ("text", "point", "comma"),
    [
        ("923", 923, 923),
        ("1,006", 1006, 1.006),
        ("1.006", 1.006, 1006),
        ("1,234,567", 1234567, None),
        ("12,34,567", 1234567, None),
        ("1.234.567,5", None, 1234567.5),
        ("$1,234.50", 1234.5, None),
        ("1.234,50 €", None, 1234.5),
        ("CHF 1'234.50", 1234.5, None),
        ("1 234,5", None, 1234.5),
        ("1\u202f234", 1234, 1234),
        ("12.5%", 0.125, None),
        ("12,5 %", None, 0.125),
        ("(300)", -300, -300),
        ("-$5", -5, -5),
        ("\u22124", -4, -4),
        ("+1.5e-3", 0.0015, None),
        (".5", 0.5, None),
        ("5.", 5, None),
        ("inf", np.inf, np.inf),
        ("1,2,3", None, None),
        ("12 34", None, None),
        ("--5", None, None),
        ("(5", None, None),
        ("(-5)", -5, -5),
        ("44.34-", -44.34, None),  # as accounting programs write it
        ("1.234,50-", None, -1234.5),
        ("2-", None, None),  # a mark at school
        ("-44.34-", None, None),
        ("5 kg", None, None),
        ("1,5", None, 1.5),
        ("", None, None),
        ("$", None, None),
    ],
)
def test_one_cell_in_either_style(text, point, comma):
    for style, expected in ((POINT, point), (COMMA, comma)):
        found = parsed([text], style)[0]
        assert np.isnan(found) if expected is None else found == expected


@pytest.mark.parametrize(
    ("texts", "decimal", "left_open"),
    [
        (["1,006", "923"], ".", False),  # 923,000 if the comma were decimal
        (["1,006", "12.50"], ".", False),
        (["1,006", "1,5"], ",", False),
        (["0,125", "1,006"], ",", False),  # no thousands begin with 0
        (["1,006", "1006"], ",", True),  # thousands are not set apart here
        (["1,006", "2,500"], ".", True),
        (["1.006", "2.500"], ".", False),  # as most of the world writes fractions
        (["1.234.567", "1.006"], ",", False),
        (["7", "12"], ".", False),
    ],
)
def test_a_column_tells_its_marks(texts, decimal, left_open):
    reading = decide(gather(texts), Evidence())
    assert (reading.style.decimal, reading.open) == (decimal, left_open)


def test_the_other_columns_tell_what_a_column_does_not():
    german = {"price": ["1,50", "2,75"], "people": ["1.006", "2.500"], "both": ["1,006", "2,500"]}
    read = read_columns(german, None, {})
    assert read["people"][0].tolist() == [1006, 2500]
    assert read["both"][0].tolist() == [1.006, 2.5]
    assert not read["people"][1].open
    english = {"price": ["1.50", "2.75"], "both": ["1,006", "2,500"]}
    assert read_columns(english, None, {})["both"][0].tolist() == [1006, 2500]


def test_what_is_asked_for_settles_it():
    cells = {"a": ["1,006", "2,500"]}
    assert read_columns(cells, given_style(",", None), {})["a"][0].tolist() == [1.006, 2.5]
    assert read_columns(cells, given_style(None, ","), {})["a"][0].tolist() == [1006, 2500]
    assert np.isnan(read_columns(cells, given_style(".", "none"), {})["a"][0]).all()
    for decimal, thousands in ((",", ","), (";", None), (None, "x")):
        with pytest.raises(TableError):
            given_style(decimal, thousands)


def frame_of(n=40, **columns):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"other": rng.normal(size=n), **columns})


def understood(source, **options):
    """A table with numbers where its cells are taken as numbers."""
    cells = read_cells(source)
    return TablePreparation(keep=list(cells.columns), **options).fit(cells).readable(cells)


class TestTables:
    def test_thousands_beside_plain_numbers(self, tmp_path):
        path = tmp_path / "t.csv"
        path.write_text('a,b\n"1,006",x\n923,y\n"12,500",x\n')
        assert understood(path)["a"].tolist() == [1006, 923, 12500]
        # As it stands, and to the model.
        assert read_cells(path)["a"].tolist() == ["1,006", "923", "12,500"]
        fitted = TablePreparation(keep=["a"]).fit(read_cells(path))
        assert fitted.median_[0] == 1006
        assert "'1,006' was read as 1006, and so on, in 'a'." in fitted.notes_

    def test_semicolons_expect_a_decimal_comma(self, tmp_path):
        path = tmp_path / "t.csv"
        path.write_text("a;b\n1,006;x\n2,500;y\n3,750;x\n")
        assert understood(path)["a"].tolist() == [1.006, 2.5, 3.75]
        assert understood(path, thousands=",")["a"].tolist() == [1006, 2500, 3750]
        notes = TablePreparation().fit(read_cells(path)).notes_
        assert any("can be read in two ways: '1,006' was taken as 1.006" in note for note in notes)

    def test_money_and_percent_are_numbers(self):
        money = [f"${1000 * i + 0.5:,.2f}" for i in range(40)]
        share = [f"{i / 2}%" for i in range(40)]
        fitted = TablePreparation().fit(frame_of(money=money, share=share))
        assert fitted.numbers_ == ["other", "money", "share"]
        assert fitted.center_[1:] == pytest.approx([19500.5, 0.0975])

    def test_several_currencies_are_said(self):
        money = [f"{'$€£'[i % 3]}{1000 * i + 0.5:,.2f}" for i in range(40)]
        notes = TablePreparation().fit(frame_of(price=money)).notes_
        expected = "'price' has several currencies, '$', '€' and '£': the amounts were taken as"
        assert any(note.startswith(expected) for note in notes)
        alone = TablePreparation().fit(frame_of(price=[f"${i:.2f}" for i in range(40)])).notes_
        assert not any("currencies" in note for note in alone)

    def test_percentages_beside_plain_numbers_are_said(self):
        share = [f"{i}%" if i % 2 else f"{i / 100}" for i in range(40)]
        notes = TablePreparation().fit(frame_of(share=share)).notes_
        assert any("'share' has numbers with a percent sign and others" in note for note in notes)
        alone = TablePreparation().fit(frame_of(share=[f"{i}%" for i in range(40)])).notes_
        assert not any("and others without" in note for note in alone)

    def test_readable(self):
        frame = frame_of(money=["$1,006", "$923"] * 20, color=[" red", "?"] * 20)
        found = TablePreparation().fit(frame).readable(frame)
        assert found["money"].tolist()[:2] == [1006.0, 923.0]
        assert found["color"].tolist()[:2] == ["red", None]
        assert list(found.columns) == list(frame.columns)

    def test_marks_that_contradict_each_other(self):
        mixed = ["1,5"] * 4 + [f"{i}.5" for i in range(36)]
        fitted = TablePreparation().fit(frame_of(mixed=mixed))
        assert "mixed" in fitted.numbers_
        assert any("cannot both be decimal marks" in note for note in fitted.notes_)
        assert any("'mixed' has 4 cells that are not numbers" in note for note in fitted.notes_)

    def test_an_open_reading_is_that_of_fit(self):
        fitted = TablePreparation().fit(frame_of(a=["1,006", "923"] * 20))
        new = pd.DataFrame({"other": [0.0], "a": ["2,500"]})
        typed = pd.DataFrame({"other": [0.0], "a": [2500.0]})
        np.testing.assert_array_equal(fitted.transform(new), fitted.transform(typed))

    def test_another_mark_than_in_fit_is_said(self):
        fitted = TablePreparation().fit(frame_of(a=["1,5", "2,25"] * 20))
        new = pd.DataFrame({"other": [0.0], "a": ["2.25"]})
        with pytest.warns(TableWarning, match=r"decimal mark '\.' here"):
            made = fitted.transform(new)
        assert made[0, 1] == pytest.approx(1.0)

    def test_numbers_too_large(self):
        with pytest.raises(TableError, match=r"column 'a' holds 1e\+308, which is too large"):
            TablePreparation().fit(frame_of(a=["1e308"] + ["2"] * 39))
        fitted = TablePreparation().fit(frame_of(a=np.arange(40) % 7))
        with pytest.raises(TableError, match="column 'a' holds"):
            fitted.transform(pd.DataFrame({"other": [0.0], "a": [1e300]}))

    def test_all_cells_infinite(self):
        fitted = TablePreparation().fit(frame_of(a=[np.inf] * 40, b=["inf", "-inf"] * 20))
        assert fitted.left_out_ == dict.fromkeys("ab", "it has no finite number")
        with pytest.raises(TableError, match="'a': it has no finite number"):
            TablePreparation().fit(pd.DataFrame({"a": [np.inf] * 9}))

    def test_nested_parquet(self, tmp_path):
        pytest.importorskip("pyarrow")
        frame = frame_of(tags=[[1, 2], [3]] * 20, record=[{"a": 1}] * 40, y=["u", "v"] * 20)
        frame.to_parquet(tmp_path / "t.parquet")
        cells = read_cells(tmp_path / "t.parquet")
        fitted = TablePreparation(drop=["y"]).fit(cells)
        assert set(fitted.left_out_) == {"tags", "record", "y"}
        with pytest.raises(TableError, match="column 'tags' cannot be predicted"):
            split_target(cells, "tags")

    def test_labels_that_differ_by_capital_letters(self):
        said = []
        frame = pd.DataFrame(
            {"a": range(6), "y": ["Open", "open ", "open", "OPEN", "shut", "shut"]}
        )
        _, labels = split_target(frame, "y", say=said.append)
        assert set(labels) == {"Open", "open", "OPEN", "shut"}
        assert (
            "Labels of 'y' that differ by capital letters only are classes of their own: "
            "'OPEN', 'Open' and 'open'."
        ) in said

    def test_labels_with_blanks_around(self):
        said = []
        frame = pd.DataFrame({"a": range(6), "y": ["u", " u", "u ", "v", "v", "v"]})
        _, labels = split_target(frame, "y", say=said.append)
        assert labels.tolist() == list("uuuvvv")
        assert said == [
            "Labels of 'y' that differ by surrounding spaces only were taken as one class: "
            "' u', 'u' and 'u '."
        ]

    def test_many_columns(self, tmp_path):
        """They are read by another way, which must give the same."""
        names = [f"c{j}" for j in range(600)]
        rows = [[f"{i * j % 7},5" if j % 2 else f"{i}.{j}" for j in range(600)] for i in range(9)]
        text = "\n".join(";".join(row) for row in [names, *rows])
        (tmp_path / "t.csv").write_text(text + "\n")
        cells = read_cells(tmp_path / "t.csv")
        assert cells.to_numpy().tolist() == rows
        assert list(cells.columns) == names
        few = TablePreparation().fit(cells[names[:20]])
        many = TablePreparation().fit(cells)
        assert [c.kind for c in many.columns_[:20]] == [c.kind for c in few.columns_]
        (tmp_path / "t.csv").write_text(text + ";1\n")
        with pytest.raises(TableError, match="601 fields"):
            read_cells(tmp_path / "t.csv")


class TestTexts:
    def table(self, n=120):
        rng = np.random.default_rng(0)
        words = {"late": ["parcel late again", "courier lost box"], "bill": ["wrong invoice"]}
        y = rng.choice(["late", "bill"], n)
        texts = [f"{rng.choice(words[label])} {rng.integers(999)}" for label in y]
        return pd.DataFrame({"x": rng.normal(size=n), "text": texts}), y

    def test_the_features_are_those_of_skrub(self):
        skrub = pytest.importorskip("skrub")
        frame, y = self.table()
        fitted = TablePreparation().fit(frame, y)
        assert fitted.texts_ == ["text"]
        encoder = skrub.StringEncoder(random_state=0).fit(frame["text"])
        new = pd.DataFrame({"x": [0.0, 0.0], "text": ["courier is late", "invoice?"]})
        expected = 2.0 * encoder.transform(new["text"]).to_numpy()
        np.testing.assert_allclose(fitted.transform(new)[:, 1:], expected, atol=1e-5)

    def test_texts_that_tell_nothing_are_left_out(self):
        pytest.importorskip("skrub")
        frame, _ = self.table()
        y = np.random.default_rng(1).choice(["u", "v"], len(frame))
        fitted = TablePreparation().fit(frame, y)
        assert fitted.left_out_["text"] == "free text on which the labels do not depend"
        assert TablePreparation(keep=["text"]).fit(frame, y).texts_ == ["text"]

    @staticmethod
    def named_places(strong_numbers):
        """Rows of nine classes; their texts tell the class of every third row."""
        random = np.random.default_rng(0)
        y = np.repeat(np.arange(9), 40)
        words = ["river", "hill", "lake", "stone", "wood", "field", "bridge", "castle", "harbor"]
        told = np.where(random.random(len(y)) < 1 / 3, y, random.integers(0, 9, len(y)))
        texts = [f"{words[t]} {''.join(random.choice(list('abcdefgh'), 12))}" for t in told]
        numbers = np.column_stack([y // 3, y % 3]) + random.normal(0, 0.2, (len(y), 2))
        if not strong_numbers:
            numbers = random.normal(size=(len(y), 2))
        return pd.DataFrame(numbers, columns=["north", "east"]).assign(name=texts), y

    def test_a_text_that_hides_what_numbers_tell(self, tmp_path):
        frame, y = self.named_places(strong_numbers=True)
        fitted = TablePreparation().fit(frame, y)
        assert fitted.left_out_ == {"name": "free text that hides what the other columns tell"}
        assert fitted.transform(frame).shape == (len(y), 2)
        again = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(again.transform(frame), fitted.transform(frame))
        # Whoever wants it has it; and what it tells counts where nothing else tells more.
        assert TablePreparation(keep=["name"]).fit(frame, y).texts_ == ["name"]
        assert TablePreparation().fit(*self.named_places(strong_numbers=False)).texts_ == ["name"]
        assert TablePreparation().fit(frame[["name"]], y).texts_ == ["name"]

    def test_of_several_texts_those_that_hide_are_found(self):
        random = np.random.default_rng(0)
        y = np.repeat(np.arange(9), 40)
        others = np.column_stack([y // 3, np.zeros(len(y))]) + random.normal(0, 0.2, (len(y), 2))
        texts = {
            "noise": random.normal(0, 0.5, (len(y), 30)),
            "tells": np.column_stack([y % 3]) + random.normal(0, 0.2, (len(y), 1)),
            "more noise": random.normal(0, 1, (len(y), 30)),
        }
        assert hiding(others, texts, y) == ["more noise", "noise"]
        # By chance nothing is found, and in a handful of rows nothing is looked for.
        assert hiding(others, {"tells": texts["tells"]}, y) == []
        assert hiding(others, texts, random.permutation(y)) == []
        few = slice(None, None, 20)
        assert hiding(others[few], {n: t[few] for n, t in texts.items()}, y[few]) == []

    def test_weekdays_that_matter(self):
        days = pd.Series(pd.date_range("2024-01-01", periods=140))
        frame = pd.DataFrame({"day": days.astype(str), "x": np.arange(140) % 5})
        weekend = np.where(days.dt.day_of_week >= 5, "free", "work")
        fitted = TablePreparation().fit(frame, weekend)
        assert fitted.circles_ == [("day", "weekday")]
        made = fitted.transform(frame)
        names = fitted.get_feature_names_out().tolist()
        sine = made[:, names.index("day (weekday, sine)")]
        # The first of January 2024 was a Monday.
        expected = np.sqrt(2) * np.sin(2 * np.pi * np.arange(7) / 7)
        np.testing.assert_allclose(sine[:7], expected, atol=1e-9)
        assert any("depend on the weekday of 'day'" in note for note in fitted.notes_)
        assert TablePreparation().fit(frame, np.arange(140) % 2).circles_ == []
