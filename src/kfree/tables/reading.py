"""Tables from files and from standard input."""

from __future__ import annotations

import errno
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from kfree.tables.format import COMMA_NUMBER, POINTED_THOUSANDS, WESTERN, Format, detect
from kfree.tables.messages import TableError

if TYPE_CHECKING:
    import pandas as pd

    from kfree.tables.preparation import TablePreparation

STANDARD = "-"
# How much of a file is looked at to learn how it is written.
HEAD_BYTES = 1 << 18
MISSING = ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "<NA>", "?"]
COMMA_OR_THOUSANDS = f"{COMMA_NUMBER.pattern}|{POINTED_THOUSANDS.pattern}"
GZIP = b"\x1f\x8b"
PARQUET = b"PAR1"


def read_table(
    source: str | Path, *, n_rows: int | None = None, like: TablePreparation | None = None
) -> pd.DataFrame:
    """Read a table: CSV, TSV or Parquet, compressed with gzip or not.

    The encoding (UTF-8, UTF-16, Windows' western code page), the separator (comma, semicolon, tab
    or bar) and the decimal mark of a text file are found from its beginning; the name of the file
    does not matter. The first line holds the names of the columns. Empty cells, "NA", "NaN",
    "null", "None" and "?" are missing values.

    Parameters
    ----------
    source : str or Path
        The file; "-" is standard input.
    n_rows : int, default=None
        Read only so many rows.
    like : TablePreparation, default=None
        What the table is to be prepared with: columns that were text then are read as text.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    TableError
        With one sentence, if the source cannot be read as a table.
    """
    if n_rows is not None:
        with _closing(read_blocks(source, like=like, rows=n_rows)) as blocks:
            return next(blocks)
    import pandas as pd

    return pd.concat(list(read_blocks(source, like=like, rows=None)))


def read_blocks(
    source: str | Path, *, like: TablePreparation | None = None, rows: int | None = 10_000
) -> Iterator[pd.DataFrame]:
    """Read a table in blocks, so that it need not fit into memory.

    Parquet from standard input, or compressed once more with gzip, is held in memory as a file.

    Parameters
    ----------
    source : str or Path
        The file; "-" is standard input.
    like : TablePreparation, default=None
        What the table is to be prepared with: columns that were text then are read as text.
    rows : int or None, default=10_000
        How many rows a block has; None: all in one.

    Yields
    ------
    pandas.DataFrame
        At least one, each with at least one row; the index goes on from block to block.
    """
    name = _name(source)
    with _telling(name), _opened(source) as (head, stream):
        if head.startswith(PARQUET):
            yield from _parquet_blocks(stream, source, rows, name)
            return
        form = detect(head, len(head) < HEAD_BYTES, name)
        text = getattr(like, "text_columns_", [])
        kinds = {str(column): str for column in text if column in form.names}
        yield from _value_blocks(stream, form, rows, kinds)


def read_twice(source: str | Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read a whole table as values and as it is written.

    Parameters
    ----------
    source : str or Path
        The file; "-" is standard input.

    Returns
    -------
    values : pandas.DataFrame
        What `read_table` gives.
    cells : pandas.DataFrame
        The same rows and columns. Of a text file the texts of its cells as they stand, 007 and
        1,50; of Parquet, which has types, the values once more.
    """
    import pandas as pd

    name = _name(source)
    with _telling(name), _opened(source) as (head, stream):
        if head.startswith(PARQUET):
            values = pd.concat(list(_parquet_blocks(stream, source, None, name)))
            return values, values
        form = detect(head, len(head) < HEAD_BYTES, name)
        # Kept, since standard input can be read only once, and a file may change meanwhile.
        text = stream.read()
        values = pd.concat(list(_value_blocks(io.BytesIO(text), form, None, {})))
        return values, pd.concat(list(_cell_blocks(io.BytesIO(text), form, None)))


def read_cells(
    source: str | Path, *, like: TablePreparation, rows: int = 10_000
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Read a table in blocks, each as it is written and as values.

    Parameters
    ----------
    source : str or Path
        The file; "-" is standard input.
    like : TablePreparation
        What the values are to be prepared with.
    rows : int, default=10_000
        How many rows a block has.

    Yields
    ------
    cells : pandas.DataFrame
        Of a text file the texts of its cells as they stand, 007 and 1.50; only a decimal comma
        becomes a point.
    values : pandas.DataFrame
        The same as numbers and texts with missing values.
    """
    name = _name(source)
    with _telling(name), _opened(source) as (head, stream):
        if head.startswith(PARQUET):
            for block in _parquet_blocks(stream, source, rows, name):
                yield block, block
            return
        form = detect(head, len(head) < HEAD_BYTES, name)
        for cells in _cell_blocks(stream, form, rows):
            if form.decimal == ",":
                cells = _with_points(cells, form, like)
            yield cells, _values(cells, like)


def _with_points(cells: pd.DataFrame, form: Format, like: TablePreparation) -> pd.DataFrame:
    """The cells with 1.5 for 1,5, but for columns that are text to the model."""
    number = COMMA_NUMBER.pattern if form.thousands is None else COMMA_OR_THOUSANDS
    for name in set(cells.columns) - set(like.text_columns_):
        column = cells[name]
        pointed = column.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
        cells[name] = column.where(~column.str.fullmatch(number), pointed)
    return cells


def _values(cells: pd.DataFrame, like: TablePreparation) -> pd.DataFrame:
    """What the cells mean: as pandas reads them, but column by column."""
    import pandas as pd

    values = cells.mask(cells.isin(MISSING))
    for name in set(values.columns) - set(like.text_columns_):
        numbers = pd.to_numeric(values[name], errors="coerce")
        # Where cells are not numbers the texts stay, to be spoken of.
        if bool((numbers.notna() == values[name].notna()).all()):
            values[name] = numbers
    return values


def _value_blocks(
    stream: BinaryIO, form: Format, rows: int | None, kinds: Mapping[str, type]
) -> Iterator[pd.DataFrame]:
    """What the cells mean; `kinds` says of columns what they are."""
    return _text_blocks(stream, form, rows, dtype=kinds, na_values=MISSING, keep_default_na=False)


def _cell_blocks(stream: BinaryIO, form: Format, rows: int | None) -> Iterator[pd.DataFrame]:
    """The texts of the cells as they stand."""
    return _text_blocks(stream, form, rows, dtype=str, na_filter=False)


def _text_blocks(
    stream: BinaryIO, form: Format, rows: int | None, **options: Any
) -> Iterator[pd.DataFrame]:
    import pandas as pd

    decoded = io.TextIOWrapper(stream, encoding=form.encoding, errors=WESTERN, newline="")
    blocks = pd.read_csv(
        decoded,
        sep=form.separator,
        decimal=form.decimal,
        thousands=form.thousands,
        header=0,
        names=list(form.names),
        index_col=False if form.trailing else None,
        skipinitialspace=True,
        low_memory=False,
        # One chunk that no file fills; read_csv without chunks would be a second path.
        chunksize=rows or sys.maxsize,
        **options,
    )
    with blocks:
        yield from blocks


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
            start += len(block)
            # An empty text means what an empty cell of a CSV file does.
            yield block.mask(block == "")
    except pyarrow.ArrowException as error:
        first = str(error).splitlines()[0]
        raise TableError(f"{name} cannot be read as Parquet: {first}") from None


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
        raw = sys.stdin.buffer if standard else stack.enter_context(open(source, "rb"))
        head, stream = _peeked(raw)
        if head.startswith(GZIP):
            head, stream = _peeked(gzip.GzipFile(fileobj=stream))
        if not head:
            raise TableError(f"{_name(source)} is empty.")
        yield head, stream


def _name(source: str | Path) -> str:
    return "Standard input" if str(source) == STANDARD else repr(str(source))


@contextmanager
def _closing(blocks: Any) -> Iterator[Any]:
    try:
        yield blocks
    finally:
        blocks.close()


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
