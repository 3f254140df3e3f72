"""Tables written block by block, whole or not at all."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from kfree.atomic import replacing
from kfree.commands.options import STANDARD
from kfree.tables import TableError
from kfree.tables.messages import listed

# Digits of the numbers that are added.
DIGITS = "%.6g"

Write = Callable[[Any, dict[str, np.ndarray]], None]


@contextmanager
def table_writer(output: str, numbers: list[str]) -> Iterator[Write]:
    """A function that writes a block of a table and the columns that are added to it.

    Cells of a text file are written as they stand. Parquet has types: there the columns `numbers`
    become numbers.

    The name of the file says how: .parquet, .tsv (tabs), anything else CSV with commas and decimal
    points in UTF-8; with .gz at the end it is compressed. "-" is CSV on standard output.
    """
    with ExitStack() as stack:
        if output == STANDARD:
            with _as_text(sys.stdout.buffer) as text:
                yield _text_writer(text, ",")
            return
        suffixes = _suffixes(output)
        file = stack.enter_context(replacing(output))
        if has_types(output):
            yield from _parquet_writer(file, numbers)
            return
        if suffixes[-1:] == [".gz"]:
            file = stack.enter_context(gzip.GzipFile(fileobj=file, mode="wb", filename=""))  # type: ignore[assignment]
        with _as_text(file) as text:
            yield _text_writer(text, "\t" if ".tsv" in suffixes[-2:] else ",")


def refuse_taken(columns: Iterable[str], names: Iterable[str], what: str) -> None:
    """Raise if a table has columns of these names already, under which `what` ("it is") written."""
    own = set(columns)
    taken = [name for name in names if name in own]
    if taken:
        raise TableError(
            f"The table has columns of its own named {listed(taken)}; rename or remove them, since "
            f"{what} written under these names."
        )


def has_types(output: str) -> bool:
    """Whether a table of this name holds numbers as numbers: Parquet."""
    return _suffixes(output)[-1:] == [".parquet"]


def _suffixes(output: str) -> list[str]:
    return [suffix.lower() for suffix in Path(output).suffixes]


@contextmanager
def _as_text(file: BinaryIO) -> Iterator[io.TextIOWrapper]:
    """A file of bytes as one of text, in UTF-8 whatever the terminal has."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    try:
        yield text
        text.flush()
    finally:
        # The file below is closed by whoever opened it.
        with suppress(OSError):
            text.detach()


def _text_writer(stream: Any, separator: str) -> Write:
    begun = False

    def write(cells: Any, added: dict[str, np.ndarray]) -> None:
        nonlocal begun
        # Only what is added is rounded.
        rounded = {
            name: np.char.mod(DIGITS, values) if values.dtype.kind == "f" else values
            for name, values in added.items()
        }
        block = cells.assign(**rounded)
        block.to_csv(stream, sep=separator, index=False, header=not begun, lineterminator="\n")
        begun = True

    return write


def _parquet_writer(file: Any, numbers: list[str]) -> Iterator[Write]:
    import pandas as pd
    import pyarrow
    from pyarrow import parquet

    writer: Any = None

    def write(cells: Any, added: dict[str, np.ndarray]) -> None:
        nonlocal writer
        cells = cells.mask(cells == "")
        texts = [name for name in numbers if not pd.api.types.is_numeric_dtype(cells[name])]
        typed = {name: pd.to_numeric(cells[name], errors="coerce").astype(float) for name in texts}
        table = pyarrow.Table.from_pandas(cells.assign(**typed, **added), preserve_index=False)
        if writer is None:
            writer = parquet.ParquetWriter(file, table.schema)
        writer.write_table(table.cast(writer.schema))

    yield write
    if writer is not None:
        writer.close()
