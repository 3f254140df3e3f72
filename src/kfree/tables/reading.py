"""Tables from files and from standard input."""

from __future__ import annotations

import csv
import errno
import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from kfree.plain_text import quoted, shown
from kfree.tables.cells import WIDE
from kfree.tables.format import WESTERN, Format, detect
from kfree.tables.messages import TableError
from kfree.tables.numbers import COMMA, POINT

if TYPE_CHECKING:
    import pandas as pd

STANDARD = "-"
# How much of a file is looked at to learn how it is written.
HEAD_BYTES = 1 << 18
GZIP = b"\x1f\x8b"
PARQUET = b"PAR1"
# The column that a separator at the end of each row makes; no other can have this name.
AFTER_LAST = "\0"
# A line that is added to the last one: where it is found in a cell, the cell did not end.
END = "\x1aend\x1a"


def read_cells(source: str | Path) -> pd.DataFrame:
    """Read a whole table as it is written: CSV, TSV or Parquet, compressed with gzip or not.

    The encoding (UTF-8, UTF-16, Windows' western code page) and the separator (comma, semicolon,
    tab or bar) of a text file are found from its beginning; the name of the file does not matter.
    The first line holds the names of the columns.

    Parameters
    ----------
    source : str or Path
        The file; "-" is standard input.

    Returns
    -------
    pandas.DataFrame
        Of a text file the texts of its cells as they stand, 007 and 1,50, and "" for empty ones; of
        Parquet, which has types, values. `TablePreparation` takes either, and its `readable` gives
        numbers where it takes cells as numbers.

    Raises
    ------
    TableError
        With one sentence, if the source cannot be read as a table.
    """
    import pandas as pd

    blocks = list(read_blocks(source, rows=None))
    return blocks[0] if len(blocks) == 1 else pd.concat(blocks)


def read_blocks(source: str | Path, *, rows: int | None = 10_000) -> Iterator[pd.DataFrame]:
    """Read a table as it is written, in blocks, so that it need not fit into memory.

    Parquet from standard input, or compressed once more with gzip, is held in memory as a file.

    Parameters
    ----------
    source : str or Path
        The file; "-" is standard input.
    rows : int or None, default=10_000
        How many rows a block has; None: all in one.

    Yields
    ------
    pandas.DataFrame
        At least one, each with at least one row; the index goes on from block to block. The
        attribute `attrs["decimal"]` is the decimal mark to be expected from the separator.
    """
    name = _name(source)
    with _telling(name), _opened(source) as (head, stream):
        if head.startswith(PARQUET):
            yield from _parquet_blocks(stream, source, rows, name)
            return
        form = detect(head, len(head) < HEAD_BYTES, name)
        for block in _text_blocks(stream, form, rows):
            # Programs of countries with a decimal comma separate by semicolons.
            block.attrs["decimal"] = COMMA if form.separator == ";" else POINT
            yield block


def _text_blocks(stream: BinaryIO, form: Format, rows: int | None) -> Iterator[pd.DataFrame]:
    """The texts of the cells as they stand."""
    import pandas as pd

    decoded = io.TextIOWrapper(stream, encoding=form.encoding, errors=WESTERN, newline="")
    if len(form.names) >= WIDE:
        yield from _wide_blocks(decoded, form, rows)
        return
    blocks = pd.read_csv(
        decoded,
        sep=form.separator,
        header=0,
        skiprows=form.n_above,
        names=[*form.names, *([AFTER_LAST] if form.trailing else [])],
        index_col=False,
        skipinitialspace=True,
        low_memory=False,
        dtype=str,
        na_filter=False,
        # One chunk that no file fills; read_csv without chunks would be a second path.
        chunksize=rows or sys.maxsize,
    )
    with blocks:
        for block in blocks:
            yield block.drop(columns=AFTER_LAST) if form.trailing else block


def _wide_blocks(lines: io.TextIOWrapper, form: Format, rows: int | None) -> Iterator[pd.DataFrame]:
    """The same for thousands of columns, for each of which pandas takes as long as for many cells.

    All cells are one array of texts, which takes more memory, and no time for a column.
    """
    import numpy as np
    import pandas as pd

    n_columns = len(form.names)
    csv.field_size_limit(sys.maxsize)
    filled = _filled_rows(lines, form.separator)
    for _ in range(form.n_above + 1):
        next(filled)  # the header
    start = 0
    while True:
        block = list(islice(filled, rows or sys.maxsize))
        if not block:
            return
        cells = np.full((len(block), n_columns), "", dtype=object)
        for i, row in enumerate(block):
            if len(row) > n_columns + form.trailing:
                raise TableError(
                    f"The table is not regular: row {start + i + 2} has {len(row):,} fields, but "
                    f"the first has {n_columns:,}."
                )
            cells[i, : min(len(row), n_columns)] = row[:n_columns]
        index = pd.RangeIndex(start, start + len(block))
        # Names as Python's texts: those of pandas take microseconds each, whenever they are read.
        names = pd.Index(form.names, dtype=object)
        yield pd.DataFrame(cells, columns=names, index=index, dtype=object)
        start += len(block)


def _filled_rows(lines: Iterable[str], separator: str) -> Iterator[list[str]]:
    """The rows that are not empty; raises where a quote is never closed, which csv passes over."""
    reader = csv.reader(chain(lines, [END]), delimiter=separator, skipinitialspace=True)
    for row in reader:
        if row == [END]:
            return
        if row and row[-1].endswith(END):
            raise TableError(
                "The table is not regular: a quote that opens in its last row is never closed."
            )
        if len(row) > 1 or any(row):
            yield row


def _parquet_blocks(
    stream: BinaryIO, source: str | Path, rows: int | None, name: str
) -> Iterator[pd.DataFrame]:
    import pandas as pd
    import pyarrow
    from pyarrow import parquet

    try:
        whole: Any = source if _is_parquet_file(source) else io.BytesIO(stream.read())
        file = parquet.ParquetFile(whole)
        n_rows = file.metadata.num_rows
        if n_rows == 0:
            raise TableError(f"{name} has no rows.")
        start = 0
        for batch in file.iter_batches(batch_size=rows or n_rows):
            # With the metadata of pandas some columns would become an index.
            block = batch.to_pandas(ignore_metadata=True)
            block.columns = [str(column) for column in block.columns]
            block.index = pd.RangeIndex(start, start + len(block))
            # What pandas has no type for (maps, whole numbers with gaps) can be written as it was.
            block.attrs["types"] = _Types(zip(batch.schema.names, batch.schema.types, strict=True))
            start += len(block)
            yield block
    except pyarrow.ArrowException as error:
        first = shown((str(error).splitlines() or [""])[0], 200)
        raise TableError(f"{name} cannot be read as Parquet: {first}") from None


class _Types(dict):
    """The types of the columns in Parquet, which pandas would copy with every column."""

    def __deepcopy__(self, memo: Any) -> _Types:
        return self


def _is_parquet_file(source: str | Path) -> bool:
    if str(source) == STANDARD:
        return False
    with open(source, "rb") as file:
        return file.read(len(PARQUET)) == PARQUET


@contextmanager
def _opened(source: str | Path) -> Iterator[tuple[bytes, BinaryIO]]:
    """The beginning of a source, unpacked, and a stream of all of it."""
    with ExitStack() as stack:
        standard = str(source) == STANDARD
        if standard and sys.stdin is None:
            raise TableError("Standard input is closed.")
        raw = sys.stdin.buffer if standard else stack.enter_context(open(source, "rb"))
        head, stream = _peeked(raw)
        if head.startswith(GZIP):
            head, stream = _peeked(gzip.GzipFile(fileobj=stream))
        if not head:
            raise TableError(f"{_name(source)} is empty.")
        yield head, stream


def _name(source: str | Path) -> str:
    return "Standard input" if str(source) == STANDARD else quoted(source, 200)


@contextmanager
def _telling(name: str) -> Iterator[None]:
    """Turn what may go wrong while reading into one sentence."""
    from pandas.errors import EmptyDataError, ParserError

    try:
        yield
    except TableError:
        raise
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise TableError(f"{name} is damaged or cut off: its gzip data do not end.") from None
    except UnicodeError:
        raise TableError(f"{name} is damaged or cut off: its text cannot be decoded.") from None
    except EmptyDataError:
        raise TableError(f"{name} is empty.") from None
    except ParserError as error:
        what = str(error).removeprefix("Error tokenizing data. C error: ").strip().rstrip(".")
        inside = re.fullmatch(r"EOF inside string starting at row (\d+)", what)
        if inside:
            what = f"a quote that opens in row {int(inside[1]) + 1} is never closed"
        what = shown(what, 200)
        raise TableError(f"{name} is not a regular table: {what}.") from None
    except OSError as error:
        raise TableError(f"{name} cannot be read: {_reason(error)}.") from None


def _reason(error: OSError) -> str:
    known = {
        errno.ENOENT: "there is no such file",
        errno.EISDIR: "it is a folder",
        errno.EACCES: "permission is denied",
    }
    if error.errno is None:
        return str(error)
    return known.get(error.errno, os.strerror(error.errno).lower())


def _peeked(stream: Any) -> tuple[bytes, BinaryIO]:
    """The beginning of a stream, and a stream that still begins with it."""
    head = stream.read(HEAD_BYTES)
    return head, io.BufferedReader(_Rejoined(head, stream))


class _Rejoined(io.RawIOBase):
    """Bytes that were read already, then the rest of a stream."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head = memoryview(head)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._head:
            return self._rest.readinto(buffer)
        n_bytes = min(len(buffer), len(self._head))
        buffer[:n_bytes] = self._head[:n_bytes]
        self._head = self._head[n_bytes:]
        return n_bytes
