"""The page of the paper's tables and figures."""

from __future__ import annotations

from kfree import page
from kfree.page import Files, Section, Text
from kfree.paper.chapters.blocks import Chapter


def render(
    title: str, lead: list[str], notices: list[str], chapters: dict[str, Chapter], end: list[str]
) -> str:
    """The whole page; `chapters` by the names that links use."""
    return page.render(
        title,
        [
            Section(
                name,
                chapter.title,
                (
                    *chapter.blocks,
                    Files("The numbers:", tuple(numbers.file for numbers in chapter.numbers)),
                ),
            )
            for name, chapter in chapters.items()
        ],
        lead=[
            *(Text(words) for words in lead),
            *(Text(words, notice=True) for words in notices),
        ],
        end=[Text(words) for words in end],
    )
