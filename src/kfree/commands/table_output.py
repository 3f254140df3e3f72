"""Tables written block by block, whole or not at all."""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from kfree.atomic import replacing
from kfree.commands.files import standard_output
from kfree.commands.options import STANDARD
from kfree.tables import TableError
from kfree.tables.messages import listed

# Digits of the numbers that are added.
DIGITS = "%.6g"

# Texts that spreadsheets take as formulas; a number that begins with a sign is none.
FORMULA = re.compile(r"[=+\-@\t\r]")

Write = Callable[[Any, dict[str, np.ndarray]], None]
Numbers = Callable[[Any], dict[str, np.ndarray]]


@contextmanager
def table_writer(
    output: str, numbers: Numbers | None = None, escape_formulas: bool = False
) -> Iterator[Write]:
    """A function that writes a block of a table and the columns that are added to it.

    Cells of a text file are written as they stand. Parquet has types: `numbers`, given a block,
    says which of its columns are numbers there, and which. With `escape_formulas`, texts that a
    spreadsheet would take as formulas get an apostrophe in front, in CSV and TSV.

    The name of the file says how: .parquet, .tsv (tabs), anything else CSV with commas and decimal
    points in UTF-8; with .gz at the end it is compressed. "-" is CSV on standard output.
    """
    with ExitStack() as stack:
        if output == STANDARD:
            with _as_text(standard_output()) as text:
                yield _text_writer(text, ",", escape_formulas)
            return
        suffixes = _suffixes(output)
        file = stack.enter_context(replacing(output))
        if has_types(output):
            yield from _parquet_writer(file, numbers)
            return
        if suffixes[-1:] == [".gz"]:
            file = stack.enter_context(gzip.GzipFile(fileobj=file, mode="wb", filename=""))  # type: ignore[assignment]
        with _as_text(file) as text:
            separator = "\t" if ".tsv" in suffixes[-2:] else ","
            yield _text_writer(text, separator, escape_formulas)


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


def _text_writer(stream: Any, separator: str, escape_formulas: bool) -> Write:
    begun = False

    def write(cells: Any, added: dict[str, np.ndarray]) -> None:
        nonlocal begun
        # Only what is added is rounded.
        rounded = {
            name: np.where(np.isnan(values), "", np.char.mod(DIGITS, values))
            if values.dtype.kind == "f"
            else values
            for name, values in added.items()
        }
        block = _joined(cells, rounded)
        if escape_formulas:
            block = _escaped(block)
        block.to_csv(stream, sep=separator, index=False, header=not begun, lineterminator="\n")
        begun = True

    return write


def _joined(cells: Any, added: dict[str, np.ndarray]) -> Any:
    """A table with columns added at its end, all at once: one by one takes long if it is wide."""
    import pandas as pd

    return pd.concat([cells, pd.DataFrame(added, index=cells.index)], axis=1)


def with_values(cells: Any, changed: dict[str, Any]) -> Any:
    """A table with other values in some columns; pandas' `assign` takes no column named self."""
    columns = {name: changed.get(name, column) for name, column in cells.items()}
    table = type(cells)(columns, index=cells.index)
    table.attrs = cells.attrs
    return table


def _escaped(block: Any) -> Any:
    """The table with an apostrophe before texts that look like formulas, its header too."""
    from pandas.api.types import is_numeric_dtype

    columns = {
        name: column if is_numeric_dtype(column.dtype) else column.map(_without_formula)
        for name, column in block.items()
    }
    return type(block)(columns, index=block.index).rename(columns=_without_formula)


def _without_formula(cell: Any) -> Any:
    if not isinstance(cell, str) or not FORMULA.match(cell):
        return cell
    try:
        float(cell)
    except ValueError:
        return "'" + cell
    return cell


def _parquet_writer(file: Any, numbers: Numbers | None) -> Iterator[Write]:
    import pyarrow
    from pyarrow import parquet

    writer: Any = None

    def write(cells: Any, added: dict[str, np.ndarray]) -> None:
        nonlocal writer
        types = cells.attrs.get("types", {})
        typed = {} if numbers is None else numbers(cells)
        typed = {name: values for name, values in typed.items() if name not in types}
        cells = _joined(with_values(_without_empty_texts(cells), typed), added)
        columns = [
            pyarrow.array(column, type=types.get(name), from_pandas=True)
            for name, column in cells.items()
        ]
        table = pyarrow.table(columns, names=list(cells.columns))
        if writer is None:
            writer = parquet.ParquetWriter(file, table.schema)
        writer.write_table(table.cast(writer.schema))

    yield write
    if writer is not None:
        writer.close()


def _without_empty_texts(cells: Any) -> Any:
    """Empty texts as missing values, which Parquet has."""
    changed = {}
    for name, column in cells.items():
        empty = [isinstance(cell, str) and cell == "" for cell in column]
        if any(empty):
            changed[name] = column.mask(np.array(empty))
    return with_values(cells, changed)
