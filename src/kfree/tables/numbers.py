r"""Numbers as people write them: 1,006 and 1.006,50, $1,234.50, 12.5 %, (300).

A point or a comma is a decimal mark or sets thousands apart. Which of them, no single cell tells:
1,006 can be read both ways. So a column is read in one style, which all its cells decide, and where
they leave it open, the other columns of the table.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kfree.plain_text import quoted
from kfree.tables.messages import TableError

# A cell with one of these texts is empty.
MISSING = frozenset(
    ("", "NA", "N/A", "n/a", "n.a.", "#N/A", "NaN", "nan", "NULL", "null", "None", "<NA>", "?")
    + ("-", "--", "\u2013", "\u2014", ".", "..")
    # What a database writes where a date is not known.
    + ("0000-00-00", "0000-00-00 00:00:00")
    # What a spreadsheet writes where a formula failed.
    + ("#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!")
)
SPACES = " \u00a0\u2009\u202f"
APOSTROPHES = "'\u2019"
MINUS = "\u2212-"  # in this order: it is used inside the brackets of a pattern
CURRENCY = (
    r"(?:(?:US|C|A|R|HK|NZ)?[$¢£¤¥฿\u20a0-\u20cf]|Kč|zł|kr\.?|Fr\.|Rs\.?"
    r"|USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|SEK|NOK|DKK|PLN|CZK|HUF|BRL)"
)
# Sign, currency, digits with their marks, exponent, percent. Parentheses are a bookkeeper's minus.
WRITTEN = re.compile(
    rf"(?P<open>\()?\s*(?P<sign>[+{MINUS}]?)\s*(?P<before>{CURRENCY})?\s*(?P<sign2>[+{MINUS}]?)\s*"
    rf"(?P<digits>[.,]?\d(?:[\d.,{SPACES}{APOSTROPHES}]*\d)?[.,]?)(?P<exponent>[eE][+\-]?\d+)?"
    rf"(?P<behind>[{MINUS}]?)\s*(?P<after>%|{CURRENCY})?\s*(?P<close>\))?"
)
GROUPED = re.compile(rf"\d{{1,3}}(?:[{SPACES}{APOSTROPHES}]\d{{3}})+(?=[.,]|$)")
# 1,006 or 1.006: either way. A leading zero sets no thousands apart.
EITHER = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")
# Two groups or more, as in India too: 12,34,567.
GROUPS = re.compile(r"\d{1,3}(?P<mark>[.,])(?:\d{2,3}(?P=mark))*\d{3}")

POINT, COMMA = ".", ","
OTHER = {POINT: COMMA, COMMA: POINT}


@dataclass(frozen=True)
class Style:
    """How the numbers of a column are written.

    Attributes
    ----------
    decimal : str
        "." or ",".
    thousands : str
        What sets thousands apart besides spaces and apostrophes; "" is nothing.
    """

    decimal: str = POINT
    thousands: str = COMMA


@dataclass(frozen=True)
class Evidence:
    """What the cells of one column, or of many, say about their marks. All are counts of cells."""

    point: int = 0  # the point can only be the decimal mark: 1.5, 1,234.5, 1,234,567
    comma: int = 0  # the comma can only be
    either_point: int = 0  # 1.006
    either_comma: int = 0  # 1,006
    short: int = 0  # whole numbers of up to three digits without a mark
    long: int = 0  # and of more
    example: str = ""  # of a cell that can be read both ways

    def __add__(self, other: Evidence) -> Evidence:
        counts = {name: getattr(self, name) + getattr(other, name) for name in COUNTS}
        return Evidence(**counts, example=self.example or other.example)


COUNTS = ("point", "comma", "either_point", "either_comma", "short", "long")


@dataclass(frozen=True)
class Reading:
    """The style of a column, and whether its cells leave room for another."""

    style: Style
    open: bool = False  # it can be read in two ways
    mixed: bool = False  # its cells contradict each other


def given_style(decimal: str | None, thousands: str | None) -> Style | None:
    """The style that a user asks for; None if it is to be found out."""
    if decimal is None and thousands is None:
        return None
    if decimal not in (None, POINT, COMMA):
        raise TableError(f"The decimal mark must be '.' or ',', got {decimal!r}.")
    named = {"space": " ", "none": "", "point": POINT, "comma": COMMA, "apostrophe": "'"}
    thousands = None if thousands is None else named.get(thousands, thousands)
    if thousands is not None and thousands not in ("", POINT, COMMA, *SPACES, *APOSTROPHES):
        raise TableError(
            "Thousands are set apart by ',', '.', a space, an apostrophe or 'none' of them, "
            f"got {thousands!r}."
        )
    if decimal is None:
        decimal = OTHER.get(thousands or "", POINT)
    if thousands is None:
        thousands = OTHER[decimal]
    if thousands == decimal:
        raise TableError(
            f"{quoted(str(decimal))} cannot be the decimal mark and set thousands apart."
        )
    # Spaces and apostrophes are read in every style.
    return Style(decimal, thousands if thousands in OTHER else "")


def gather(texts: Iterable[str]) -> Evidence:
    """What texts say about their marks."""
    counts: Counter[str] = Counter()
    example = ""
    for text in texts:
        written = WRITTEN.fullmatch(text)
        if written is None:
            continue
        digits = written["digits"]
        n_points, n_commas = digits.count(POINT), digits.count(COMMA)
        if not n_points and not n_commas:
            if digits.isdigit():
                counts["short" if len(digits) <= 3 else "long"] += 1
        elif n_points and n_commas:
            # The decimal mark comes last.
            counts["point" if digits.rfind(POINT) > digits.rfind(COMMA) else "comma"] += 1
        elif n_points + n_commas > 1:
            # Several of one kind set thousands apart, so the other one is the decimal mark.
            if GROUPS.fullmatch(digits):
                counts["comma" if n_points else "point"] += 1
        elif EITHER.fullmatch(digits) and not written["exponent"]:
            counts["either_point" if n_points else "either_comma"] += 1
            example = example or text
        else:
            counts["point" if n_points else "comma"] += 1
    return Evidence(**counts, example=example)


def decide(found: Evidence, elsewhere: Evidence, hint: str = POINT) -> Reading:
    """The style of a column.

    Parameters
    ----------
    found : Evidence
        Of its cells.
    elsewhere : Evidence
        Of all columns of the table.
    hint : str
        The decimal mark to be expected if the table says nothing: "," where semicolons separate
        the cells, or what it was in fit.
    """
    if found.point or found.comma:
        decimal = POINT if found.point >= found.comma else COMMA
        return Reading(Style(decimal, OTHER[decimal]), mixed=bool(found.point and found.comma))
    if found.either_comma and not found.either_point:
        # 923 beside 1,006: with a decimal comma it would be 923,000. 1006 beside 1,006: thousands
        # are not set apart here.
        if found.long:
            return Reading(Style(COMMA, POINT), open=True)
        if found.short:
            return Reading(Style(POINT, COMMA))
    elif not found.either_comma and not found.either_point:
        return Reading(Style(hint, OTHER[hint]))  # nothing but whole numbers
    if elsewhere.point != elsewhere.comma:
        hint = POINT if elsewhere.point > elsewhere.comma else COMMA
    settled = bool(elsewhere.point) != bool(elsewhere.comma)
    # Three digits after a point are an everyday decimal fraction: not worth a word.
    everyday = hint == POINT and not found.either_comma
    return Reading(Style(hint, OTHER[hint]), open=not (settled or everyday))


def signs_of(texts: Iterable[str | None]) -> Counter[str]:
    """How many texts have each currency or percent sign; "" is none."""
    written = [WRITTEN.fullmatch(text) for text in texts if text is not None]
    return Counter(
        found["before"] or found["after"] or "" for found in written if found is not None
    )


def parsed(texts: Sequence[str | None], style: Style) -> np.ndarray:
    """The numbers (n_cells,) that texts are in a style; NaN for what is none."""
    number = _pattern(style)
    values = np.full(len(texts), np.nan)
    for i, text in enumerate(texts):
        if text is not None:
            values[i] = _one(text, style, number)
    return values


def plain(texts: Sequence[str | None]) -> np.ndarray | None:
    """The numbers if all texts are written as a computer writes them; None if one is not."""
    try:
        return np.array([np.nan if text is None else float(text) for text in texts])
    except ValueError:
        return None


def read_columns(
    columns: Mapping[str, Sequence[str | None]],
    given: Style | None,
    hints: Mapping[str, str],
) -> dict[str, tuple[np.ndarray, Reading]]:
    """The numbers of columns of text (NaN for what is none), and how each was read.

    Parameters
    ----------
    columns : mapping of name to texts
        None for empty cells.
    given : Style or None
        What the user said.
    hints : mapping of name to decimal mark
        What is expected of a column whose cells do not tell.
    """
    known = {name: plain(texts) for name, texts in columns.items()}
    if given is not None:
        return {name: (parsed(texts, given), Reading(given)) for name, texts in columns.items()}
    usual = Reading(Style())
    if all(values is not None for values in known.values()) and COMMA not in hints.values():
        return {name: (values, usual) for name, values in known.items() if values is not None}
    found = {
        name: gather(text for text in texts if text is not None) for name, texts in columns.items()
    }
    elsewhere = sum(found.values(), Evidence())
    answer = {}
    for name, texts in columns.items():
        reading = decide(found[name], elsewhere, hints.get(name, POINT))
        values = known[name] if reading.style.decimal == POINT else None
        answer[name] = (parsed(texts, reading.style) if values is None else values, reading)
    return answer


def _one(text: str, style: Style, number: re.Pattern) -> float:
    written = WRITTEN.fullmatch(text)
    if written is None:
        return _infinite(text)
    signs = [written[name] for name in ("sign", "sign2", "behind") if written[name]]
    if bool(written["open"]) != bool(written["close"]) or len(signs) > 1:
        return np.nan
    digits = written["digits"]
    # Some programs write the sign behind an amount; a mark of 2- at school is no amount.
    if written["behind"] and style.decimal not in digits:
        return np.nan
    if GROUPED.match(digits):
        for mark in SPACES + APOSTROPHES:
            digits = digits.replace(mark, "")
    if not number.fullmatch(digits):
        return np.nan
    if style.thousands:
        digits = digits.replace(style.thousands, "")
    value = float(digits.replace(style.decimal, POINT) + (written["exponent"] or ""))
    if written["after"] == "%":
        value /= 100.0
    return -value if written["open"] or signs not in ([], ["+"]) else value


def _infinite(text: str) -> float:
    return np.inf if text.lstrip("+-").lower() in ("inf", "infinity") else np.nan


def _pattern(style: Style) -> re.Pattern:
    decimal = re.escape(style.decimal)
    whole = r"\d+"
    if style.thousands:
        mark = re.escape(style.thousands)
        whole = rf"(?:\d{{1,3}}(?:{mark}\d{{2,3}})*{mark}\d{{3}}|\d+)"
    return re.compile(rf"{whole}(?:{decimal}\d*)?|{decimal}\d+")
