"""What a page is made of. All words are plain text; what they hold is never taken as HTML."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from kfree.page.charts import Bars, Calibration, Lines

# A cell that begins like a number, also as a percentage, is put to the right.
NUMBER = re.compile(r"-?[\d.,]+([eE][-+]\d+)?( ?%)?( ± .*)?|")
# Tables of more columns are printed smaller.
MANY_COLUMNS = 12
# Cards need less room if the cells of a row, the longest of each column, have so few letters.
NARROW = 30


@dataclass(frozen=True)
class Text:
    """A paragraph of plain words; a notice stands out, a lead is large."""

    kind: ClassVar[str] = "text"
    words: str
    notice: bool = False
    lead: bool = False


@dataclass(frozen=True)
class Points:
    """A list."""

    kind: ClassVar[str] = "points"
    points: tuple[str, ...]


@dataclass(frozen=True)
class Terms:
    """Terms, each with what it means; short ones stand in one line."""

    kind: ClassVar[str] = "terms"
    terms: tuple[tuple[str, str], ...]
    short: bool = False


@dataclass(frozen=True)
class Code:
    """Lines to be typed."""

    kind: ClassVar[str] = "code"
    lines: str


@dataclass(frozen=True)
class Files:
    """Files beside the page, as links after some words."""

    kind: ClassVar[str] = "files"
    words: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Tile:
    """One number that is seen first: what it is, the number, and what to compare it with."""

    name: str
    value: str
    beside: str


@dataclass(frozen=True)
class Tiles:
    """Numbers side by side."""

    kind: ClassVar[str] = "tiles"
    tiles: tuple[Tile, ...]


@dataclass(frozen=True)
class Table:
    """Cells may have a second line, which is printed smaller.

    `shades`, from 0 to 1, darken the cells after the first of each row. A sortable table can be
    sorted by a click on the head of a column.
    """

    kind: ClassVar[str] = "table"
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sortable: bool = False
    shades: tuple[tuple[float, ...], ...] | None = None

    @property
    def words(self) -> tuple[bool, ...]:
        """Whether a column holds words, which are put to the left."""
        return tuple(
            any(NUMBER.fullmatch(row[j].split("\n")[0]) is None for row in self.rows)
            for j in range(len(self.header))
        )

    @property
    def classes(self) -> str:
        """How the table is to look, as the style sheet calls it."""
        kinds = ["sortable"] * self.sortable + ["matrix"] * (self.shades is not None)
        return " ".join([*kinds, *["many"] * (len(self.header) > MANY_COLUMNS)])

    def shade(self, row: int, column: int) -> float:
        """How dark a cell is; `column` counts from the second on."""
        return 0.0 if self.shades is None else self.shades[row][column]


@dataclass(frozen=True)
class Picture:
    """A picture, the words for those who cannot see it, and its caption."""

    kind: ClassVar[str] = "picture"
    file: str
    png: bytes
    alt: str
    caption: str


@dataclass(frozen=True)
class Card:
    """A small table with a title and a sentence of its own."""

    title: str
    words: str
    table: Table


@dataclass(frozen=True)
class Cards:
    """Cards, as many beside each other as there is room for."""

    kind: ClassVar[str] = "cards"
    cards: tuple[Card, ...]

    @property
    def narrow(self) -> bool:
        """Whether the tables have room in narrow cards: by the longest cell of each column."""
        return all(
            sum(max(map(len, column)) for column in zip(*card.table.rows, strict=True)) <= NARROW
            for card in self.cards
            if card.table.rows
        )


@dataclass(frozen=True)
class Beside:
    """Blocks that stand side by side where there is room."""

    kind: ClassVar[str] = "beside"
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Details:
    """Blocks that are shown when asked for."""

    kind: ClassVar[str] = "details"
    summary: str
    blocks: tuple[Block, ...]


Block = (
    Text
    | Points
    | Terms
    | Code
    | Files
    | Tiles
    | Table
    | Picture
    | Cards
    | Beside
    | Details
    | Lines
    | Bars
    | Calibration
)


@dataclass(frozen=True)
class Section:
    """A part of a page under a title; links use its name."""

    name: str
    title: str
    blocks: tuple[Block, ...]
