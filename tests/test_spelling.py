"""One spelling, the American one, wherever people read: pages, source, examples, templates."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("docs", "src", "examples", "benchmarks")
KINDS = {".md", ".py", ".rst", ".html", ".js", ".css", ".toml", ".cff"}
# What `make docs` writes is made from the rest.
MADE = ("docs/gallery", "docs/generated")
FILES = sorted(
    [path for path in ROOT.iterdir() if path.suffix in KINDS]
    + [
        path
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in KINDS
        and not path.relative_to(ROOT).as_posix().startswith(MADE)
        and "backreferences" not in path.parts
    ]
)
ENDINGS = "(e|ed|es|er|ers|ing|ation|ations|able)"
STEMS = (
    "standard|normal|recogn|organ|optim|summar|initial|general|minim|maxim|regular|visual|categor"
    "|special|serial|penal|factor|vector|random|util|parametr|discret|memor|symmetr|stabil|emphas"
    "|real|character|local|critic"
)
BRITISH = re.compile(
    rf"\b(un|re)?({STEMS})is{ENDINGS}\b"
    r"|neighbour|colour|behaviour|favour|honour|\bcentre|\blicence|labell(ed|ing)|modell(ed|ing)|\blearnt\b"
    r"|judgement|\banalyse[ds]?\b|\bgrey\b|\bwhilst\b|artefact|\bper cent\b",
    re.IGNORECASE,
)
# Titles keep their own spelling, also where they are broken into lines.
TITLES = (
    "Efficient estimation of the number of neighbours in probabilistic K nearest neighbour "
    "classification",
    "A probabilistic nearest neighbour method",
    "Obtaining the optimal number of neighbours",
)
BREAK = r"[\s\"'#]+"


def british(text: str) -> list[str]:
    """The words of a text that are spelled the British way, titles apart."""
    for title in TITLES:
        text = re.sub(BREAK.join(map(re.escape, title.split())), "", text, flags=re.IGNORECASE)
    return [found[0] for found in BRITISH.finditer(text)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_spelling(path):
    assert british(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text", ["the Neighbours", "standardised", "a colour", "Centred", "unrecognised", "labelled"]
)
def test_british_words_are_seen(text):
    assert british(text)


@pytest.mark.parametrize(
    "text",
    [
        "neighbors, standardized, color",
        "upper center",
        f"*{TITLES[0]}*",
        '"the number"\n    "A probabilistic nearest "\n    "neighbour method"',
        "precise, promise, exercise, otherwise, advertised, realism",
    ],
)
def test_american_words_and_titles_are_not_blamed(text):
    assert british(text) == []
