"""The page of the paper's tables and figures."""

from __future__ import annotations

from html import escape

from kfree.page import Text, contents, document, element, section
from kfree.paper.chapters.blocks import Chapter


def render(
    title: str, lead: list[str], notices: list[str], chapters: dict[str, Chapter], end: list[str]
) -> str:
    """The whole page; `chapters` by the names that links use."""
    body = [
        *(element(Text(words)) for words in lead),
        *(element(Text(words, notice=True)) for words in notices),
        contents({name: chapter.title for name, chapter in chapters.items()}),
    ]
    for name, chapter in chapters.items():
        files = ", ".join(
            f'<a href="{escape(n.file)}">{escape(n.file)}</a>' for n in chapter.numbers
        )
        parts = [element(block) for block in chapter.blocks]
        body.append(section(name, chapter.title, [*parts, f"<p>The numbers: {files}.</p>"]))
    return document(title, [*body, *(element(Text(words)) for words in end)])
