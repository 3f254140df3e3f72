"""A chapter of the page: words, tables and pictures, and the files with its numbers."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import Any

from kfree.page import Picture, Table, Text


@dataclass(frozen=True)
class Numbers:
    """A CSV file."""

    file: str
    header: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def text(self) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.header)
        for row in self.rows:
            writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in row])
        return out.getvalue()


@dataclass(frozen=True)
class Chapter:
    """A chapter of the page with its files."""

    title: str
    blocks: tuple[Text | Table | Picture, ...]
    numbers: tuple[Numbers, ...]
