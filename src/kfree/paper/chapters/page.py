"""One HTML page with all pictures inside."""

from __future__ import annotations

import base64
from html import escape

from kfree.paper.chapters.blocks import Chapter, Picture, Table, Text

STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.55 system-ui, sans-serif; max-width: 62rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; line-height: 1.25; }
h2 { font-size: 1.25rem; margin-top: 2.5rem; border-bottom: 1px solid #8888; }
p { max-width: 46rem; }
nav ul { padding-left: 1.2rem; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
caption { text-align: left; font-weight: 600; padding-bottom: .3rem; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #8884; text-align: right;
  vertical-align: top; white-space: nowrap; }
thead th { white-space: normal; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; }
tbody th { font-weight: 500; white-space: normal; min-width: 6.5rem; }
/* Where a table is wider than the screen, its first column stays in sight. */
tr > :first-child { position: sticky; left: 0; background: Canvas; }
small { opacity: .75; }
figure { margin: 1.5rem 0; }
figure img { max-width: 100%; height: auto; background: white; }
figcaption { font-size: .9rem; max-width: 46rem; }
.notice { border-left: 4px solid #d95f02; padding-left: .8rem; }
"""


def render(
    title: str, lead: list[str], notices: list[str], chapters: dict[str, Chapter], end: list[str]
) -> str:
    """The whole page; `chapters` by the names that links use."""
    links = "".join(
        f'<li><a href="#{escape(name)}">{escape(chapter.title)}</a></li>'
        for name, chapter in chapters.items()
    )
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        "</head>",
        "<body>",
        "<main>",
        f"<h1>{escape(title)}</h1>",
        *(f"<p>{escape(words)}</p>" for words in lead),
        *(f'<p class="notice">{escape(words)}</p>' for words in notices),
        f"<nav><ul>{links}</ul></nav>",
    ]
    for name, chapter in chapters.items():
        parts.append(f'<section id="{escape(name)}">')
        parts.append(f"<h2>{escape(chapter.title)}</h2>")
        parts += [_block(block) for block in chapter.blocks]
        files = ", ".join(f'<a href="{n.file}">{n.file}</a>' for n in chapter.numbers)
        parts += [f"<p>The numbers: {files}.</p>", "</section>"]
    parts += [*(f"<p>{escape(words)}</p>" for words in end), "</main>", "</body>", "</html>"]
    return "\n".join(parts) + "\n"


def _block(block: Text | Table | Picture) -> str:
    if isinstance(block, Text):
        return f"<p>{escape(block.words)}</p>"
    if isinstance(block, Picture):
        source = "data:image/png;base64," + base64.b64encode(block.png).decode("ascii")
        return (
            f'<figure><img src="{source}" alt="{escape(block.alt)}">'
            f"<figcaption>{escape(block.caption)}</figcaption></figure>"
        )
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in block.header)
    body = "".join(
        "<tr>"
        + f'<th scope="row">{_lines(row[0])}</th>'
        + "".join(f"<td>{_lines(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in block.rows
    )
    # tabindex: a table that is wider than the screen can be scrolled by the keyboard too.
    return (
        f'<div class="wide" tabindex="0"><table><caption>{escape(block.caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _lines(cell: str) -> str:
    first, *rest = cell.split("\n")
    return escape(first) + "".join(f"<br><small>{escape(line)}</small>" for line in rest)
