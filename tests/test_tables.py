"""Tables as people have them: reading, the target, and columns made ready for distances."""

from __future__ import annotations

import datetime
import gzip
import io
import os
import pickle
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from kfree.tables import (
    TableError,
    TablePreparation,
    TableWarning,
    read_blocks,
    read_cells,
    split_target,
)
from kfree.tables.tally import Tally

pd = pytest.importorskip("pandas")

# All that a table may bring: umlauts, semicolons, a decimal comma, an identifier, dates, missing
# cells, a constant, a row without a label, and a label with one row.
GERMAN = """Kunden-Nr;Größe;Gewicht;Farbe;Kauf am;Land;Güte
1001;1,75;70,5;grün;01.02.2024;DE;gut
1002;1,80;;rot;15.02.2024;DE;mäßig
1003;1,62;55,0;;20.03.2024;DE;gut
1004;1,91;92,1;blau;;DE;mäßig
1005;1,70;66,6;grün;02.04.2024;DE;gut
1006;1,66;60,2;rot;11.04.2024;DE;schön
1007;1,85;88,0;blau;30.04.2024;DE;mäßig
1008;1,79;77,7;grün;01.05.2024;DE;gut
1009;1,83;81,3;rot;05.05.2024;DE;
1010;1,72;69,9;grün;09.05.2024;DE;gut
"""
PLAIN = "a,b,kind\n1.5,x,yes\n2.5,y,no\n3.5,x,yes\n"


@pytest.fixture
def file(tmp_path):
    """A function that writes text or bytes to a file and gives its path."""

    def make(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make


class Standard:
    """Standard input with given bytes."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


def understood(source, **options):
    """A table with numbers where its cells are taken as numbers."""
    cells = read_cells(source)
    return TablePreparation(keep=list(cells.columns), **options).fit(cells).readable(cells)


class TestReading:
    @pytest.mark.parametrize(
        "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252", "latin-1"]
    )
    def test_encodings(self, file, encoding):
        frame = understood(file(GERMAN.encode(encoding)))
        assert list(frame.columns)[1] == "Größe"
        assert frame["Güte"][1] == "mäßig"
        assert frame["Größe"].tolist()[:2] == [1.75, 1.80]
        assert np.isnan(frame["Gewicht"][1])

    def test_an_umlaut_of_windows_far_into_the_file(self, file):
        rows = "".join(f"{i},plain\n" for i in range(60_000))
        frame = read_cells(file(("n,text\n" + rows + "60000,grün\n").encode("cp1252")))
        assert frame["text"].iloc[-1] == "grün"

    @pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
    def test_separators(self, file, separator):
        frame = read_cells(file(PLAIN.replace(",", separator)))
        assert frame.to_dict("list") == read_cells(file(PLAIN)).to_dict("list")
        assert list(frame.columns) == ["a", "b", "kind"]

    def test_cells_longer_than_python_allows(self, file):
        frame = read_cells(
            file("a,text,kind\n" + "".join(f"{i},{'x' * 140_000},p\n" for i in "12"))
        )
        assert list(frame.columns) == ["a", "text", "kind"]
        assert frame["a"].tolist() == ["1", "2"]

    def test_separator_inside_quotes(self, file):
        frame = read_cells(file('name;n\n"one, two";1\n"three; four";2\n'))
        assert frame["name"].tolist() == ["one, two", "three; four"]

    def test_decimal_comma_in_quotes(self, file):
        frame = understood(file('a,b\n"1,5","x"\n"2,5","y"\n'))
        assert frame["a"].tolist() == [1.5, 2.5]

    def test_thousands_with_points(self, file):
        assert understood(file("a;b\n1.234,5;1\n2,5;2\n"))["a"].tolist() == [1234.5, 2.5]

    def test_a_pointed_date_is_no_number(self, file):
        frame = understood(file("a;b\n1.234,5;01.02.2024\n2,5;03.02.2024\n"))
        assert frame["b"].tolist() == ["01.02.2024", "03.02.2024"]

    def test_rows_that_end_with_a_separator(self, file):
        assert read_cells(file("a,b\n1,2,\n3,4,\n")).to_dict("list") == {
            "a": ["1", "3"],
            "b": ["2", "4"],
        }

    def test_names_of_rows_as_r_writes_them(self, file):
        frame = read_cells(file('"a","b"\n"r1",1,2\n"r2",3,4\n'))
        assert frame.to_dict("list") == {
            "row names": ["r1", "r2"],
            "a": ["1", "3"],
            "b": ["2", "4"],
        }

    def test_gzip_whatever_the_name(self, file):
        frame = read_cells(file(gzip.compress(PLAIN.encode()), "table.csv"))
        assert frame.to_dict("list") == read_cells(file(PLAIN)).to_dict("list")

    def test_parquet(self, tmp_path):
        pytest.importorskip("pyarrow")
        frame = pd.DataFrame({"a": [1.5, 2.5], "day": [datetime.date(2024, 1, 2)] * 2})
        frame.to_parquet(tmp_path / "t.parquet")
        assert read_cells(tmp_path / "t.parquet")["a"].tolist() == [1.5, 2.5]
        blocks = list(read_blocks(tmp_path / "t.parquet", rows=1))
        assert [block.index.tolist() for block in blocks] == [[0], [1]]

    def test_an_index_in_parquet_is_a_column(self, tmp_path):
        pytest.importorskip("pyarrow")
        frame = pd.DataFrame({"a": [1.5, 2.5]}, index=pd.Index(["x", "y"], name="name"))
        frame.to_parquet(tmp_path / "t.parquet")
        assert read_cells(tmp_path / "t.parquet")["name"].tolist() == ["x", "y"]

    def test_parquet_from_standard_input(self, tmp_path, monkeypatch):
        pytest.importorskip("pyarrow")
        pd.DataFrame({"a": [1.5, 2.5]}).to_parquet(tmp_path / "t.parquet")
        monkeypatch.setattr(sys, "stdin", Standard((tmp_path / "t.parquet").read_bytes()))
        assert read_cells("-")["a"].tolist() == [1.5, 2.5]

    @pytest.mark.parametrize("pack", [bytes, gzip.compress])
    def test_standard_input(self, monkeypatch, pack):
        monkeypatch.setattr(sys, "stdin", Standard(pack(PLAIN.encode())))
        assert read_cells("-")["kind"].tolist() == ["yes", "no", "yes"]

    def test_blocks_are_the_table(self, file):
        path = file("a,b\n" + "".join(f"{i},{'x' if i % 3 else ''}\n" for i in range(25)))
        blocks = list(read_blocks(path, rows=10))
        assert [len(block) for block in blocks] == [10, 10, 5]
        pd.testing.assert_frame_equal(pd.concat(blocks), read_cells(path))
        assert pd.concat(blocks)["a"].tolist() == [str(i) for i in range(25)]
        assert understood(path)["a"].tolist() == list(range(25))

    def test_blocks_do_not_hold_the_whole_file(self, monkeypatch):
        class Endless(io.RawIOBase):
            """Standard input that never ends; whoever wants all of it waits for ever."""

            n_read = 0

            def readable(self):
                return True

            def readinto(self, buffer):
                line = b"1.5,x,yes\n" if self.n_read else b"a,b,kind\n"
                text = (line * (len(buffer) // len(line) + 1))[: len(line)]
                buffer[: len(text)] = text
                Endless.n_read += 1
                return len(text)

        standard = Standard(b"")
        standard.buffer = io.BufferedReader(Endless())
        monkeypatch.setattr(sys, "stdin", standard)
        blocks = read_blocks("-", rows=100)
        assert len(next(blocks)) == 100
        assert len(next(blocks)) == 100
        blocks.close()


WRONG = {
    "quotes only": ('""\n" "\n', "is empty: it has separators and quotes only"),
    "blanks and a separator": (" |\n", "no rows below it"),
    "empty": (b"", "is empty"),
    "only blanks": (b"\n \n", "is empty"),
    "only a header": (b"a,b,c\n", "no rows"),
    "a zip archive": (b"PK\x03\x04rest", "Excel"),
    "a picture": (b"\x89PNG\r\n\x1a\n", "picture"),
    "bytes": (bytes(range(256)) * 20, "not text"),
    "control characters": (bytes(range(1, 32)) * 20, "not text"),
    "a page": (b"<!DOCTYPE html><html><body>a,b\n1,2</body>", "HTML"),
    "JSON": (b'{"a": [1, 2],\n "b": [3, 4]}', "JSON"),
    "prose": (b"Dear all,\nplease find, as agreed, the table, below,\nbest,\nA.\n", "regular"),
    "two names alike": (b"a,b,a\n1,2,3\n", "more than one column named 'a'"),
    "a longer row": (b"a,b\n1,2\n3,4,5\n6,7\n", "row 3 has 3 fields, but the first has 2"),
    "half a gzip file": (gzip.compress(PLAIN.encode() * 500)[:60], "cut off"),
    "a damaged gzip file": (
        gzip.compress(os.urandom(999))[:40] + bytes(400),
        "damaged",
    ),
    "half a parquet file": (b"PAR1" + bytes(50), "Parquet"),
    "an open quote": (b'a,b\n1,"x\n2,y\n3,z\n', "regular"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_table_gets_one_sentence(file, what):
    content, expected = WRONG[what]
    with pytest.raises(TableError, match=expected) as error:
        read_cells(file(content))
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(".")


def test_a_long_row_far_into_the_file(file):
    rows = "1,2\n" * 100_000
    with pytest.raises(TableError, match="line 100002"):
        read_cells(file("a,b\n" + rows + "1,2,3\n"))


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("end", ["", "\n", "\n5,6\n"])
def test_a_quote_that_is_never_closed(file, monkeypatch, wide, end):
    monkeypatch.setattr("kfree.tables.reading.WIDE", 2 if wide else 500)
    source = file('a,b\n1,2\n3,"4' + end)
    with pytest.raises(
        TableError, match=r"regular.*: a quote that opens in (row 3|its last row) is"
    ):
        read_cells(source)
    with pytest.raises(TableError, match="is never closed"):
        list(read_blocks(source, rows=1))
    # One that is closed is none, whether or not the last line ends.
    assert read_cells(file('a,b\n1,2\n3,"4\n"' + end))["b"][1] == "4\n"


def test_files_that_cannot_be_opened(tmp_path, monkeypatch):
    with pytest.raises(TableError, match="no such file"):
        read_cells(tmp_path / "absent.csv")
    with pytest.raises(TableError, match="folder"):
        read_cells(tmp_path)

    def refuse(*args):
        raise PermissionError(13, "Permission denied")

    # Not by chmod: the superuser may read everything.
    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(TableError, match="permission is denied"):
        read_cells(tmp_path / "secret.csv")


class TestTarget:
    def test_features_and_labels(self, file):
        said = []
        features, labels = split_target(read_cells(file(GERMAN)), "Güte", say=said.append)
        assert labels.tolist() == ["gut", "mäßig"] * 2 + ["gut", "schön", "mäßig", "gut", "gut"]
        assert features.index.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 9]
        assert "Güte" not in features
        assert said == [
            "1 row has no label in 'Güte' and was left out.",
            "The class 'schön' has a single row.",
        ]

    def test_it_warns_where_nobody_listens(self):
        with pytest.warns(TableWarning, match="left out"):
            split_target(pd.DataFrame({"a": range(5), "y": [0, 0, 1, 1, None]}), "y")

    @pytest.mark.parametrize(
        ("labels", "kind"),
        [
            (["a", "a", "b", "b"], "U"),
            ([3, 3, 7, 7], "i"),
            ([3.0, 3.0, 7.0, 7.0], "i"),
            ([True, True, False, False], "b"),
            (pd.Categorical(["a", "a", "b", "b"]), "U"),
            (pd.array([1, 1, 2, 2], dtype="Int64"), "i"),
            ([datetime.date(2024, 1, 2)] * 2 + [datetime.date(2024, 1, 3)] * 2, "U"),
        ],
    )
    def test_labels_are_of_a_plain_kind(self, labels, kind):
        _, found = split_target(pd.DataFrame({"y": labels, "a": range(4)}), "y")
        assert found.dtype.kind == kind
        assert [str(label) for label in found] == [
            str(int(label)) if kind == "i" else str(label) for label in labels
        ]

    def test_names_with_a_percent_or_currency_sign_stay_as_they_are(self):
        for names in (["10%", "20%", "30%"], ["$5", "$10", "$1,000"]):
            _, labels = split_target(pd.DataFrame({"x": range(9), "y": names * 3}), "y")
            assert labels.tolist() == names * 3
        prices = [f"${i}.50" for i in range(40)]
        with pytest.raises(TableError, match="40 different values in 40 rows"):
            split_target(pd.DataFrame({"x": range(40), "y": prices}), "y")

    def test_codes_keep_their_zeros(self):
        frame = pd.DataFrame({"a": range(4), "y": ["01", "1", "007", "01"]})
        assert split_target(frame, "y", say=[].append)[1].tolist() == ["01", "1", "007", "01"]

    def test_what_counts_as_missing_is_named(self):
        frame = pd.DataFrame({"a": range(5), "y": ["p", "q", "None", "None", ""]})
        said = []
        split_target(frame, "y", say=said.append)
        assert (
            "3 rows have no label in 'y' and were left out; 'None' (2 cells) counts as missing: "
            "write a class another way." in said
        )
        with pytest.raises(TableError, match=r"at least two are needed; 'None' \(2 cells\) counts"):
            split_target(frame[frame["y"] != "q"], "y", say=said.append)

    def test_accents_in_two_encodings(self):
        frame = pd.DataFrame({"a": range(4), "y": ["caf\u00e9", "cafe\u0301", "bar", "bar"]})
        said = []
        assert split_target(frame, "y", say=said.append)[1].tolist()[:2] == ["caf\u00e9"] * 2
        assert any("differ by how accents are encoded only were taken as one" in s for s in said)

    def test_a_text_of_any_length_is_no_name_of_a_class(self):
        frame = pd.DataFrame({"x": range(40), "y": ["short", "L" * 300_000] * 20})
        with pytest.raises(TableError, match=r"a text of 300,000 characters, 'L{59}…', which is"):
            split_target(frame, "y")

    def test_many_numbers_are_said_to_have_no_order(self):
        said = []
        ratings = np.arange(200) % 25
        split_target(pd.DataFrame({"x": ratings, "stars": ratings}), "stars", say=said.append)
        assert said == [
            "The 25 different numbers of 'stars' were taken as classes without an order; if they "
            "are a quantity, put them into a few classes, or use a regression."
        ]
        few = []
        split_target(pd.DataFrame({"x": ratings, "stars": ratings % 5}), "stars", say=few.append)
        assert not few

    @pytest.mark.parametrize(
        ("target", "labels", "expected"),
        [
            ("Y", list("aabb"), "did you mean 'y'"),
            ("zzzzzz", list("aabb"), "there are 'a' and 'y'"),
            ("y", list("aaaa"), "only one class, 'a'"),
            ("y", [1.5, 2.25, 3.5, 1.0], "continuous numbers, such as 1.5"),
            ("y", [1.0, np.inf, 2.0, 1.0], "infinity"),
            ("y", [None] * 4, "no labels"),
            ("y", range(100), "100 different values in 100 rows"),
            ("y", [f"name {i}" for i in range(100)], "value of its own"),
        ],
    )
    def test_what_is_no_target(self, target, labels, expected):
        frame = pd.DataFrame({"a": np.arange(len(labels)), "y": labels})
        with pytest.raises(TableError, match=expected):
            split_target(frame, target)


class TestKinds:
    """What each column is taken for."""

    N = 40

    @pytest.fixture
    def rng(self):
        return np.random.default_rng(0)

    def kinds(self, **columns):
        fitted = TablePreparation().fit(pd.DataFrame({**columns, "other": np.arange(self.N) % 7}))
        return fitted

    @pytest.mark.parametrize(
        ("name", "values"),
        [
            ("anything", range(40)),
            ("anything", range(1000, 1040)),
            ("anything", np.random.default_rng(0).permutation(40)),
            ("anything", np.sort(np.random.default_rng(0).permutation(60)[:40])),
            ("customer_id", np.random.default_rng(0).permutation(10**6)[:40]),
            ("Kunden-Nr", np.random.default_rng(0).permutation(10**6)[:40]),
            ("anything", [f"C{i}" for i in range(40)]),
        ],
    )
    def test_identifiers(self, name, values):
        fitted = self.kinds(**{name: values})
        assert fitted.identifiers_ == [name]
        assert "identifier" in fitted.left_out_[name]
        again = TablePreparation(keep=[name]).fit(pd.DataFrame({name: values, "b": [0, 1] * 20}))
        assert again.left_out_ == {}

    @pytest.mark.parametrize(
        "values",
        [
            np.arange(40) * 25.0,
            np.arange(40) % 20,
            np.random.default_rng(0).integers(0, 1000, 40),
            np.arange(40) + 0.5,
            [None, *range(39)],
        ],
    )
    def test_numbers_are_no_identifiers(self, values):
        assert "a" in self.kinds(a=values).numbers_

    def test_constants_and_empty_columns(self):
        fitted = self.kinds(one=["DE"] * 40, two=[3.0] * 40, three=[None] * 40)
        assert fitted.left_out_ == {
            "one": "it is always 'DE'",
            "two": "it is always 3",
            "three": "it is empty",
        }

    def test_one_text_and_missing_cells_tell_something(self):
        assert "a" in self.kinds(a=["x", None] * 20).categories_

    def test_free_text(self, rng):
        words = [f"note {i}" for i in rng.integers(0, 60, 40)]
        assert self.kinds(a=words).texts_ == ["a"]
        # Sentences are no identifiers though each is different.
        assert self.kinds(a=[f"note {i}" for i in range(40)]).texts_ == ["a"]

    def test_cells_of_a_strange_type(self):
        assert "list" in self.kinds(a=[[1, 2]] * 40).left_out_["a"]

    @pytest.mark.parametrize("values", [[True, False] * 20, [True, None] * 20, ["ja", "nein"] * 20])
    def test_booleans_are_categories(self, values):
        assert self.kinds(a=values).categories_ == ["a"]

    def test_codes_are_categories_if_asked(self):
        frame = pd.DataFrame({"a": [1, 2, 3, 4] * 10, "b": np.arange(40.0) ** 2})
        fitted = TablePreparation(categorical=["a"]).fit(frame)
        assert fitted.get_feature_names_out().tolist() == ["b", "a=1", "a=2", "a=3", "a=4"]
        # With a missing cell the same codes are floats.
        new = pd.DataFrame({"a": [1.0, None], "b": [0.0, 0.0]})
        assert fitted.transform(new)[:, 1:].tolist() == [[1, 0, 0, 0], [0, 0, 0, 0]]

    @pytest.mark.parametrize(
        ("values", "days"),
        [
            (["1970-01-02", "1970-01-11"], [1, 10]),
            (["1970-01-02T12:00:00", "1970-01-11T00:00:00"], [1.5, 10]),
            (["02.01.1970", "11.01.1970"], [1, 10]),
            (["2/1/1970", "11/1/1970"], [1, 10]),
            (["1/2/1970", "1/31/1970"], [1, 30]),
            (["1/2/70", "1/31/70"], [1, 30]),
            (["2/1/70 12:00", "31/1/70 00:00"], [1.5, 30]),
            (["02-Jan-70", "11-Jan-70"], [1, 10]),
            (["Jan 2 1970", "May 11 1970"], [1, 130]),
            (["Jan 1970", "Feb 1970"], [0, 31]),
            (["January 1970", "February 1970"], [0, 31]),
            (["Jan-70", "Feb-70"], [0, 31]),
            (["1970/01/02", "1970/01/11"], [1, 10]),
            (["January 2, 1970", "May 11, 1970"], [1, 130]),
            (["01/02/1970 12:00 PM", "01/31/1970 06:00 AM"], [1.5, 30.25]),
            (["1970-01", "1970-02"], [0, 31]),
            (["1970-01-02", "11.01.1970"], [1, 10]),
            ([datetime.date(1970, 1, 2), datetime.date(1970, 1, 11)], [1, 10]),
            ([pd.Timestamp("1970-01-02"), pd.Timestamp("1970-01-11")], [1, 10]),
            ([pd.Timedelta(hours=12), pd.Timedelta(days=10)], [0.5, 10]),
            (["9999-12-31", "0001-01-01"], [2_932_896, -719_162]),
            ([datetime.date(9999, 12, 31), datetime.date(1, 1, 1)], [2_932_896, -719_162]),
            (["31.12.9999", "01.01.1970"], [2_932_896, 0]),
            (["1970-W02", "1970W03"], [4, 11]),
            (["1970-Q1", "1970-Q2"], [0, 90]),
            (["Q1 1970", "Q2/1970"], [0, 90]),
            (["Fri, 02 Jan 1970 12:00:00 GMT", "Sun, 11 Jan 1970 00:00:00 GMT"], [1.5, 10]),
            (["Friday, January 2, 1970", "Sunday, January 11, 1970"], [1, 10]),
            (["1970-01-02 12:00:00 UTC", "1970-01-11 00:00:00.5 UTC"], [1.5, 10 + 0.5 / 86_400]),
            (["19700102T120000", "19700111T000000Z"], [1.5, 10]),
            (["36:00:00", "2:00:00.5"], [1.5, (2 + 0.5 / 3600) / 24]),
            (["89:30", "0:30"], [89.5 / 24, 0.5 / 24]),
            (["2 days 12:00:00", "-1 days +12:00:00"], [2.5, -0.5]),
            (["2 days, 12:00:00", "1 day, 0:00:00"], [2.5, 1]),
            (["PT36H", "P1DT12H30M15S"], [1.5, 1.5 + (30 + 15 / 60) / 1440]),
            (["1h 30m", "3 days"], [1.5 / 24, 3]),
            (["90 min", "1 week"], [1.5 / 24, 7]),
        ],
    )
    def test_dates_are_days(self, values, days):
        fitted = self.kinds(a=values * 20)
        assert list(fitted.date_formats_) == ["a"]
        assert fitted.center_[0] == pytest.approx(np.mean(days))
        assert any("days" in note for note in fitted.notes_)

    @pytest.mark.parametrize(
        "values",
        [["1234-Q1", "1235-Q7"], ["5 XL", "6 months"], ["Sun Tan 3", "1A 2B"], ["P", "PT"]],
    )
    def test_codes_are_no_dates_or_durations(self, values):
        assert not self.kinds(a=values * 20).date_formats_

    def test_durations_have_no_weekday(self, tmp_path):
        rng = np.random.default_rng(0)
        days = rng.integers(0, 70, 400)
        clocks = [f"{24 * day}:00:00" for day in days]
        for values in (clocks, pd.to_timedelta(days, "D")):
            fitted = TablePreparation().fit(pd.DataFrame({"took": values}), days % 7 == 0)
            assert fitted.circles_ == []
            assert "1 column of durations, taken as days: 'took'." in fitted.notes_
        # And they are not read as dates in a new table.
        with pytest.raises(TableError, match="held durations in fit, but has none here"):
            fitted.transform(pd.DataFrame({"took": ["2024-01-31", "2024-02-01"]}))

    def test_numbers_that_begin_with_zeros(self):
        fitted = TablePreparation().fit(pd.DataFrame({"zip": ["01067", "80331", "10115"] * 9}))
        assert any("such as '01067'" in note and "--categorical" in note for note in fitted.notes_)
        fitted = TablePreparation().fit(pd.DataFrame({"a": ["0.5", "0", "10"] * 9}))
        assert not any("--categorical" in note for note in fitted.notes_)

    def test_one_category_in_two_encodings(self):
        fitted = self.kinds(a=["caf\u00e9", "cafe\u0301", "bar", "bar"] * 10)
        assert fitted.values_["a"] == ["bar", "caf\u00e9"]

    def test_dates_in_several_formats(self):
        # Every row has a value of its own, and is still no identifier.
        days = pd.date_range("2024-01-01", periods=60)
        ways = ("%Y-%m-%d", "%d.%m.%Y", "%b %d, %Y")
        cells = [day.strftime(ways[i % 3]) for i, day in enumerate(days)]
        fitted = TablePreparation().fit(pd.DataFrame({"due": [*cells[:-1], "soon"]}))
        assert "The dates of 'due' are written in 3 ways." in fitted.notes_
        assert any(
            "'due' has 1 cell that is not a date, such as 'soon'" in n for n in fitted.notes_
        )
        new = pickle.loads(pickle.dumps(fitted)).transform(pd.DataFrame({"due": cells[:3]}))
        assert np.diff(new[:, 0]) * fitted.scale_[0] == pytest.approx([1, 1])

    def test_day_and_month_are_not_read_both_ways_in_one_column(self):
        cells = [f"{i % 15 + 13}/{i % 12 + 1}/2024" for i in range(self.N // 2)]
        cells += [f"{i % 12 + 1}/{i % 15 + 13}/2024" for i in range(self.N // 2)]
        assert not self.kinds(a=cells).date_formats_

    def test_other_columns_tell_whether_the_month_is_first(self):
        open_dates = [f"{i % 12 + 1:02d}/{i % 11 + 1:02d}/2024" for i in range(self.N)]
        american = [f"{i % 12 + 1:02d}/{i % 28 + 1:02d}/2024" for i in range(self.N)]
        alone = self.kinds(a=open_dates)
        assert alone.date_formats_["a"] == "%d/%m/%Y"
        assert any("though month/day/year fits as well" in note for note in alone.notes_)
        beside = self.kinds(a=open_dates, b=american)
        assert beside.date_formats_["a"] == "%m/%d/%Y"
        assert any("'a' were read as month/day/year, as in other" in note for note in beside.notes_)
        german = [f"{i % 28 + 1:02d}/{i % 12 + 1:02d}/2024 10:00" for i in range(self.N)]
        assert self.kinds(a=open_dates, b=american, c=german).date_formats_["a"] == "%d/%m/%Y"

    @pytest.mark.parametrize(
        ("usual", "other", "example"),
        [
            ("%m/%d/%y", "%Y-%m-%d", "2024-01-05"),
            ("%m/%d/%Y", "%d.%m.%Y", "05.01.2024"),
            ("%Y-%m-%d", "%b %d, %Y", "Jan 05, 2024"),
            # The month comes first in both, though these cells could be read otherwise.
            ("%m/%d/%Y", "%m-%d-%Y", "01-05-2024"),
        ],
    )
    def test_new_dates_that_are_written_in_another_way(self, usual, other, example):
        days = pd.Series(pd.date_range("2024-01-01", periods=100))
        fitted = TablePreparation().fit(pd.DataFrame({"due": days.dt.strftime(usual)}))
        expected = fitted.transform(pd.DataFrame({"due": days.dt.strftime(usual)[4:12]}))
        new = pd.DataFrame({"due": [None, *days.dt.strftime(other)[4:12]]})
        with pytest.warns(TableWarning, match=f"'{example}' was read as 2024-01-05"):
            np.testing.assert_array_equal(fitted.transform(new)[1:], expected)
        # What holds for the first block of a table holds for the others.
        tally = Tally()
        for part in (new.iloc[:3], new.iloc[3:]):
            fitted.transform_block(part, tally)
        assert len(tally.date_formats) == 1 and tally.filled_in["due"] == 1

    def test_new_cells_that_are_no_dates(self):
        days = [f"2024-01-{i % 28 + 1:02d}" for i in range(60)]
        fitted = TablePreparation().fit(pd.DataFrame({"a": days}))
        for text in ("soon", "10:30"):
            with pytest.raises(TableError, match=f"held dates in fit, .* like '{text}'"):
                fitted.transform(pd.DataFrame({"a": [text] * 3}))

    def test_a_database_has_a_date_for_what_is_not_known(self):
        fitted = self.kinds(a=["0000-00-00", "2024-01-31", "2024-02-01", "0000-00-00"] * 10)
        assert list(fitted.date_formats_) == ["a"]
        assert "Missing numbers were filled in with the median: 'a' (20 cells)." in fitted.notes_

    def test_missing_dates(self):
        fitted = self.kinds(a=["2024-01-01", "2024-02-01", None, "2024-01-15"] * 10)
        assert any("'a' (10 cells)" in note for note in fitted.notes_)

    def test_a_few_words_among_numbers(self):
        fitted = self.kinds(a=["unknown", *(f"{i}.5" for i in range(39))])
        assert "a" in fitted.numbers_
        assert any("'unknown'" in note for note in fitted.notes_)

    def test_infinity_is_missing(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fitted = self.kinds(a=[np.inf, *np.linspace(0, 1, 39)])
        assert np.isfinite(fitted.center_).all()


class TestPreparation:
    @pytest.fixture
    def frame(self, file):
        return split_target(read_cells(file(GERMAN)), "Güte", say=lambda sentence: None)[0]

    def test_notes(self, frame):
        assert TablePreparation().fit(frame).notes_ == [
            "2 columns of numbers, standardized: 'Größe' and 'Gewicht'.",
            "1 column of categories, one feature for each value: 'Farbe' (3 values).",
            "1 column of dates, taken as days: 'Kauf am'.",
            "'1,75' was read as 1.75, and so on, in 'Größe' and 'Gewicht'.",
            "Missing numbers were filled in with the median: 'Gewicht' (1 cell), "
            "'Kauf am' (1 cell).",
            "Missing categories count as a value of their own: 'Farbe' (1 cell).",
            "Left out: 'Kunden-Nr' (it numbers the rows: an identifier), "
            "'Land' (it is always 'DE').",
        ]

    def test_values(self, frame):
        fitted = TablePreparation().fit(frame)
        made = fitted.transform(frame)
        names = fitted.get_feature_names_out().tolist()
        assert names == [
            "Größe",
            "Gewicht",
            "Kauf am",
            *(f"Farbe={value}" for value in ("(missing)", "blau", "grün", "rot")),
        ]
        assert made.shape == (9, 7)
        np.testing.assert_allclose(made[:, :3].mean(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(made[:, :3].std(axis=0), 1.0)
        assert made[2, 3:].tolist() == [1, 0, 0, 0]
        weights = [70.5, 55.0, 92.1, 66.6, 60.2, 88.0, 77.7, 69.9]
        filled = np.array([*weights, np.median(weights)])
        assert made[1, 1] == pytest.approx((filled[-1] - filled.mean()) / filled.std())

    def test_the_order_of_columns_does_not_matter(self, frame):
        fitted = TablePreparation().fit(frame)
        other = frame[frame.columns[::-1]]
        np.testing.assert_array_equal(fitted.transform(other), fitted.transform(frame))

    def test_a_missing_column(self, frame):
        fitted = TablePreparation().fit(frame)
        with pytest.raises(TableError, match=r"lacks a column .* 'Größe'"):
            fitted.transform(frame.drop(columns="Größe"))
        with pytest.raises(TableError, match="perhaps 'Groesse'"):
            fitted.transform(frame.rename(columns={"Größe": "Groesse"}))

    def test_columns_that_were_left_out_are_not_needed(self, frame):
        fitted = TablePreparation().fit(frame)
        without = frame.drop(columns=["Kunden-Nr", "Land"])
        np.testing.assert_array_equal(fitted.transform(without), fitted.transform(frame))

    def test_columns_too_many(self, frame):
        fitted = TablePreparation().fit(frame)
        with pytest.warns(TableWarning, match="passed over: 'more'"):
            made = fitted.transform(frame.assign(more=1))
        np.testing.assert_array_equal(made, fitted.transform(frame))

    def test_an_unknown_value_is_none_of_the_known(self, frame):
        fitted = TablePreparation().fit(frame)
        with pytest.warns(TableWarning, match="'Farbe' has values .* 'lila'"):
            made = fitted.transform(frame.assign(Farbe="lila"))
        assert (made[:, 3:] == 0).all()

    def test_rare_values_share_a_feature(self):
        values = [f"v{i}" for i in range(150) for _ in range(3 if i < 50 else 2)]
        fitted = TablePreparation().fit(pd.DataFrame({"a": values}))
        names = fitted.get_feature_names_out()
        assert len(names) == 100
        assert names[-1] == "a=(other)"
        assert fitted.transform(pd.DataFrame({"a": values})).shape == (len(values), 100)
        with pytest.warns(TableWarning, match="'new'"):
            assert fitted.transform(pd.DataFrame({"a": ["new"]}))[0, -1] == 1

    def test_text_where_numbers_were(self, frame):
        fitted = TablePreparation().fit(frame)
        column = frame["Gewicht"].astype(object)
        column.iloc[0] = "schwer"
        with pytest.warns(TableWarning, match="1 cell .* 'schwer'; it was taken as missing"):
            assert np.isfinite(fitted.transform(frame.assign(Gewicht=column))).all()
        with pytest.raises(TableError, match="held numbers in fit, but has none here"):
            fitted.transform(frame.iloc[:1].assign(Gewicht="schwer"))
        # An empty cell is only missing.
        assert np.isfinite(fitted.transform(frame.iloc[:1].assign(Gewicht=""))).all()

    def test_no_rows(self, frame):
        assert TablePreparation().fit(frame).transform(frame.iloc[:0]).shape == (0, 7)

    def test_nothing_to_learn_from(self):
        with pytest.raises(TableError, match="No column is left"):
            TablePreparation().fit(pd.DataFrame({"id": range(9), "b": [1] * 9}))

    @pytest.mark.parametrize("given", ["drop", "keep", "categorical"])
    def test_parameters_name_columns(self, frame, given):
        with pytest.raises(TableError, match=f"{given} names the column 'Grösse'.*'Größe'"):
            TablePreparation(**{given: ["Grösse"]}).fit(frame)

    def test_drop(self, frame):
        fitted = TablePreparation(drop=["Größe"]).fit(frame)
        assert fitted.left_out_["Größe"] == "as asked for"

    def test_arrays_have_no_names(self):
        with pytest.raises(TableError, match="got ndarray"):
            TablePreparation().fit(np.zeros((3, 2)))

    def test_other_frames(self, frame):
        pl = pytest.importorskip("polars")
        pytest.importorskip("pyarrow")
        fitted = TablePreparation().fit(frame)
        np.testing.assert_array_equal(
            fitted.transform(pl.from_pandas(frame)), fitted.transform(frame)
        )

    def test_scikit_learn_can_clone_it_and_name_its_output(self, frame):
        fitted = clone(TablePreparation(drop=["Größe"])).set_output(transform="pandas").fit(frame)
        assert list(fitted.transform(frame).columns) == fitted.get_feature_names_out().tolist()

    def test_nothing_is_learnt_in_transform(self, frame):
        fitted = TablePreparation().fit(frame)
        alone = fitted.transform(frame.iloc[[3]])
        np.testing.assert_array_equal(alone, fitted.transform(frame)[[3]])
