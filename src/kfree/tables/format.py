"""How a text file writes a table: its encoding and separator, from its beginning."""

from __future__ import annotations

import codecs
import csv
import io
import re
import sys
from collections import Counter
from dataclasses import dataclass

from kfree.tables.messages import TableError, count, listed

SEPARATORS: tuple[str, ...] = (",", ";", "\t", "|")
# Beginnings of files that are not tables of text, and what they are.
KNOWN = {
    b"PK\x03\x04": "a zip archive or an Excel file; save it as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel file; save it as CSV",
    b"%PDF": "a PDF file",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"BZh": "compressed with bzip2; unpack it first, or use gzip",
    b"\xfd7zXZ": "compressed with xz; unpack it first, or use gzip",
    b"(\xb5/\xfd": "compressed with zstd; unpack it first, or use gzip",
    b"SQLite format 3": "a SQLite database",
}
# Excel writes the separator above the names of the columns.
SAID = re.compile(r'"?sep=(?P<separator>[^\r\n])"?[^\S\r\n]*\r?\n', re.IGNORECASE)
MARKUP = re.compile(r"\s*(<(!doctype|html|\?xml)|\{\s*[\"}]|\[\s*[\[{])", re.IGNORECASE)


@dataclass(frozen=True)
class Format:
    """What a reader of the file has to know."""

    encoding: str
    separator: str
    names: tuple[str, ...]  # of the columns
    n_above: int  # lines above the names
    trailing: bool  # whether each row, but not the header, ends with a separator


def _western(error: UnicodeError) -> tuple[str, int]:
    """Bytes that are not UTF-8 are taken as Windows' western code page, which defines nearly all.

    So no file has to be read twice to learn its encoding: text in UTF-8 or in cp1252 is decoded
    as it comes.
    """
    if not isinstance(error, UnicodeDecodeError):
        raise error
    wrong = error.object[error.start : error.end]
    try:
        return wrong.decode("cp1252"), error.end
    except UnicodeDecodeError:
        return wrong.decode("latin-1"), error.end


WESTERN = "kfree.western"
codecs.register_error(WESTERN, _western)


def detect(head: bytes, whole: bool, name: str) -> Format:
    """The format of a file from its beginning, which is all of it if `whole`."""
    text, encoding = _decoded(head, name)
    if not text.strip():
        raise TableError(f"{name} is empty.")
    if MARKUP.match(text):
        raise TableError(f"{name} is not a table: it looks like HTML, XML or JSON.")
    if not whole:
        # The last line may be cut.
        text = text[: text.rfind("\n") + 1] or text
    said, separators = SAID.match(text), SEPARATORS
    if said:
        text, separators = text[said.end() :], (said["separator"],)
        if not text.strip():
            raise TableError(f"{name} is empty.")
    rows, separator = max(
        ((_rows(text, separator), separator) for separator in separators),
        key=lambda pair: _regularity(pair[0]),
    )
    if not rows:
        raise TableError(f"{name} is empty: it has separators and quotes only.")
    header, data = [field.strip() for field in rows[0]], rows[1:]
    longer = bool(data) and all(len(row) == len(header) + 1 for row in data)
    trailing = longer and all(row[-1].strip() == "" for row in data)
    if longer and not trailing:
        # As R writes a table: the first column holds the names of the rows and has none itself.
        header = ["row names", *header]
    _refuse_wrong(header, data, whole, trailing, name)
    return Format(
        encoding=encoding,
        separator=separator,
        names=tuple(field or f"column {i + 1}" for i, field in enumerate(header)),
        n_above=int(said is not None),
        trailing=trailing,
    )


def _decoded(head: bytes, name: str) -> tuple[str, str]:
    for start, what in KNOWN.items():
        if head.startswith(start):
            raise TableError(f"{name} is not a table of text: it is {what}.")
    encoding = "utf-8-sig"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif head[1:200:2].count(0) > 50 or (len(head) < 200 and head[1::2].count(0) * 4 > len(head)):
        encoding = "utf-16-le"
    elif b"\0" in head:
        raise TableError(f"{name} is not a table: it holds bytes that are not text.")
    text = codecs.getincrementaldecoder(encoding)(errors=WESTERN).decode(head)
    if sum(not (c.isprintable() or c in "\r\n\t\v\f") for c in text[:4096]) > 0.05 * len(
        text[:4096]
    ):
        raise TableError(f"{name} is not a table: it holds bytes that are not text.")
    return text, encoding


def _rows(text: str, separator: str) -> list[list[str]]:
    csv.field_size_limit(sys.maxsize)  # Python's own is half of what is looked at
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    try:
        return [row for row in reader if any(field.strip() for field in row)]
    except csv.Error:
        return [[text]]


def _regularity(rows: list[list[str]]) -> tuple[float, int]:
    """How well a separator fits: the share of rows as long as the first; then how many fields."""
    n_fields = len(rows[0]) if rows else 0
    if n_fields <= 1:
        return 0.0, n_fields
    alike = sum(len(row) in (n_fields, n_fields + 1) for row in rows)
    return alike / len(rows), n_fields


def _refuse_wrong(
    header: list[str], data: list[list[str]], whole: bool, trailing: bool, name: str
) -> None:
    if not data and whole:
        raise TableError(f"{name} has a first line, {listed(header)}, but no rows below it.")
    twice = sorted(field for field, n in Counter(header).items() if field and n > 1)
    if twice:
        raise TableError(
            f"{name} has more than one column named {listed(twice)}; "
            "every column needs a name of its own in the first line."
        )
    # Lines above the names of the columns, such as a title, have fewer fields.
    title = len(header) == 1 or sum(len(row) > len(header) for row in data) > 0.5 * len(data)
    for number, row in enumerate(data, start=2):
        if len(row) > len(header) + trailing:
            raise TableError(
                f"{name} is not a regular table: row {number} has {count(len(row), 'field')}, "
                f"but the first has {len(header)}"
                + ("; remove what stands above the names of the columns." if title else ".")
            )
