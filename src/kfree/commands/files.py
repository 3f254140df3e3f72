"""Files that commands read and write: nothing that is read is written over."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import typer

from kfree.atomic import check_writable
from kfree.commands.options import STANDARD
from kfree.plain_text import quoted
from kfree.tables import TableError

# Endings of what kfree does not write: under them a file would not open, or not as what it is.
SPREADSHEETS = (".xlsx", ".xls", ".ods")
OTHERS = (".json", ".jsonl", ".feather", ".arrow", ".orc", ".pkl", ".pdf", ".doc", ".docx")
PACKED = (".zip", ".bz2", ".xz", ".zst", ".7z", ".parquet.gz")


def check_output(
    output: str | Path,
    inputs: Iterable[str | Path],
    *,
    as_json: bool = False,
    folder: bool = False,
) -> None:
    """Raise, before the work, if an output cannot or must not be written.

    Parameters
    ----------
    output : str or Path
        A file, a folder, or "-".
    inputs : iterable of str or Path
        What is read. An output that is one of them, also through a link or another spelling of its
        path, or as what the shell put behind standard input, is refused.
    as_json : bool
        Whether the result for machines goes to standard output too.
    folder : bool
        Whether the output is a folder, which need not be there.
    """
    if as_json and str(output) == STANDARD:
        raise typer.BadParameter("--json and --output - would both write to standard output.")
    _refuse_ending(output)
    target = _identity(output, standard=1)
    for source in inputs:
        if target is not None and target == _identity(source, standard=0):
            raise TableError(
                f"{_name(output, 'Standard output')} is also what is read; choose another "
                "--output, or it would be lost."
            )
    if str(output) != STANDARD and not folder:
        check_writable(output)


def _refuse_ending(output: str | Path) -> None:
    """Raise if the name of an output is empty, or promises what is not written."""
    name = _name(output, "Standard output")
    if not str(output):
        raise TableError("--output needs the name of a file.")
    if str(output).lower().endswith(SPREADSHEETS):
        raise TableError(
            f"{name} has the ending of a spreadsheet, which kfree does not write; a table that "
            "ends in .csv opens in a spreadsheet too."
        )
    if str(output).lower().endswith((*OTHERS, *PACKED)):
        raise TableError(
            f"{name} has the ending of something that kfree does not write; tables end in .csv, "
            ".tsv, .csv.gz, .tsv.gz or .parquet, a report in .html and a model in .kfree."
        )


def standard_output() -> BinaryIO:
    """Standard output for bytes; raises if the shell has closed it."""
    if sys.stdout is None:
        raise TableError("Standard output is closed.")
    return sys.stdout.buffer


def _identity(path: str | Path, standard: int) -> tuple[int, int] | None:
    """What a file is, whatever it is called; None if it is not there, or no file or folder.

    A terminal or a pipe may be read and written at once.
    """
    try:
        found = os.fstat(standard) if str(path) == STANDARD else os.stat(path)
    except OSError:
        return None
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        return None
    return found.st_dev, found.st_ino


def _name(path: str | Path, standard: str) -> str:
    return standard if str(path) == STANDARD else quoted(path, 200)
