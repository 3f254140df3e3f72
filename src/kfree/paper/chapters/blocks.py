"""The chapters of the page: words, tables and pictures about what was measured."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Text:
    """A paragraph of plain words."""

    words: str


@dataclass(frozen=True)
class Table:
    """Cells may have a second line, which is printed smaller."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Picture:
    """A picture, the words for those who cannot see it, and its caption."""

    file: str
    png: bytes
    alt: str
    caption: str


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
