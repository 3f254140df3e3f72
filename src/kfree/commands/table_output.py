"""Tables written block by block, whole or not at all."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from kfree.atomic import replacing
from kfree.tables import TableError

# Digits of the numbers that are added.
DIGITS = "%.6g"

Write = Callable[[Any, dict[str, np.ndarray]], None]


@contextmanager
def table_writer(output: str) -> Iterator[Write]:
    """A function that writes a block of a table and the columns that are added to it.

    The name of the file says how: .parquet, .tsv (tabs), anything else CSV with commas and decimal
    points in UTF-8; with .gz at the end it is compressed. "-" is CSV on standard output.
    """
    with ExitStack() as stack:
        if output == "-":
            yield _text_writer(sys.stdout, ",")
            sys.stdout.flush()
            return
        suffixes = [suffix.lower() for suffix in Path(output).suffixes]
        file = stack.enter_context(replacing(output))
        if suffixes[-1:] == [".parquet"]:
            yield from _parquet_writer(file)
            return
        if suffixes[-1:] == [".gz"]:
            file = stack.enter_context(gzip.GzipFile(fileobj=file, mode="wb", filename=""))  # type: ignore[assignment]
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        yield _text_writer(text, "\t" if ".tsv" in suffixes[-2:] else ",")
        # The file below is closed by whoever opened it.
        text.flush()
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


def _parquet_writer(file: Any) -> Iterator[Write]:
    import pyarrow
    from pyarrow import parquet

    writer: Any = None

    def write(cells: Any, added: dict[str, np.ndarray]) -> None:
        nonlocal writer
        table = pyarrow.Table.from_pandas(cells.assign(**added), preserve_index=False)
        if writer is None:
            writer = parquet.ParquetWriter(file, table.schema)
        try:
            writer.write_table(table.cast(writer.schema))
        except pyarrow.ArrowException as error:
            raise TableError(
                f"The columns change their type on the way: {str(error).splitlines()[0]}"
            ) from None

    yield write
    if writer is not None:
        writer.close()
