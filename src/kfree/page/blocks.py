"""What a page is made of. All words are plain text; what they hold is never taken as HTML."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Text:
    """A paragraph of plain words; a notice stands out."""

    words: str
    notice: bool = False


@dataclass(frozen=True)
class Points:
    """A list."""

    points: tuple[str, ...]


@dataclass(frozen=True)
class Terms:
    """Terms, each with what it means."""

    terms: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Code:
    """Lines to be typed."""

    lines: str


@dataclass(frozen=True)
class Table:
    """Cells may have a second line, which is printed smaller.

    `shades`, from 0 to 1, darken the cells after the first of each row. A sortable table can be
    sorted by a click on the head of a column.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sortable: bool = False
    shades: tuple[tuple[float, ...], ...] | None = None


@dataclass(frozen=True)
class Picture:
    """A picture, the words for those who cannot see it, and its caption.

    `width` is that on the page, in pixels; None: as wide as the picture is.
    """

    file: str
    png: bytes
    alt: str
    caption: str
    width: int | None = None


@dataclass(frozen=True)
class Details:
    """Blocks that are shown when asked for."""

    summary: str
    blocks: tuple[Text | Table, ...]


Block = Text | Points | Terms | Code | Table | Picture | Details
