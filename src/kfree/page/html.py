"""Blocks as HTML. Every word from outside is escaped here, and nowhere else."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import singledispatch
from html import escape
from importlib.resources import files

from kfree.page.blocks import Block, Code, Details, Picture, Points, Table, Terms, Text

# A cell that begins like a number, also as a percentage, is put to the right.
NUMBER = re.compile(r"-?[\d.,]+([eE][-+]\d+)?( ?%)?( ± .*)?|")

# Tables of more columns are printed smaller.
MANY_COLUMNS = 12
# After these signs, before a letter, a name may go on in the next line; numbers and dates never.
JOINT = re.compile(r"(?<=[_./-])(?=[^\W\d])")


def document(title: str, body: list[str], *, sorting: bool = False) -> str:
    """The whole page; `sorting` adds the script that sorts tables."""
    style = _file("style.css")
    script = _file("sort.js") if sorting else ""
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title>",
        f"<style>{style}</style>",
        "</head>",
        "<body>",
        "<main>",
        f"<h1>{escape(title)}</h1>",
        *body,
        "</main>",
        *([f"<script>{script}</script>"] if script else []),
        "</body>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def contents(titles: dict[str, str]) -> str:
    """Links to the sections, by their names."""
    links = "".join(
        f'<li><a href="#{escape(name)}">{escape(title)}</a></li>' for name, title in titles.items()
    )
    return f'<nav aria-label="Contents"><ul>{links}</ul></nav>'


def section(name: str, title: str, parts: list[str]) -> str:
    """A section under its name, which links use."""
    inside = "\n".join(parts)
    return f'<section id="{escape(name)}">\n<h2>{escape(title)}</h2>\n{inside}\n</section>'


@singledispatch
def element(block: Block) -> str:
    """A block as HTML."""
    raise TypeError(f"A page has no blocks of the type {type(block).__name__}.")


@element.register
def _(block: Text) -> str:
    kind = ' class="notice"' if block.notice else ""
    return f"<p{kind}>{escape(block.words)}</p>"


@element.register
def _(block: Points) -> str:
    return "<ul>" + "".join(f"<li>{escape(point)}</li>" for point in block.points) + "</ul>"


@element.register
def _(block: Terms) -> str:
    inside = "".join(
        f"<dt>{escape(term)}</dt><dd>{escape(meaning)}</dd>" for term, meaning in block.terms
    )
    return f"<dl>{inside}</dl>"


@element.register
def _(block: Code) -> str:
    return f'<pre tabindex="0"><code>{escape(block.lines)}</code></pre>'


@element.register
def _(block: Details) -> str:
    inside = "\n".join(element(part) for part in block.blocks)
    return f"<details><summary>{escape(block.summary)}</summary>\n{inside}\n</details>"


@element.register
def _(block: Picture) -> str:
    source = "data:image/png;base64," + base64.b64encode(block.png).decode("ascii")
    width = "" if block.width is None else f' width="{block.width}"'
    return (
        f'<figure><img src="{source}"{width} alt="{escape(block.alt)}">'
        f"<figcaption>{escape(block.caption)}</figcaption></figure>"
    )


@element.register
def _(block: Table) -> str:
    words = [
        any(NUMBER.fullmatch(row[j].split("\n")[0]) is None for row in block.rows)
        for j in range(len(block.header))
    ]
    head = "".join(
        f'<th scope="col"{_class(is_words)}>{_breakable(cell)}</th>'
        for cell, is_words in zip(block.header, words, strict=True)
    )
    body = []
    for i, row in enumerate(block.rows):
        shades = block.shades[i] if block.shades is not None else (0.0,) * (len(row) - 1)
        cells = "".join(
            f"<td{_class(is_words, shade)}>{_lines(cell)}</td>"
            for cell, is_words, shade in zip(row[1:], words[1:], shades, strict=True)
        )
        body.append(f'<tr><th scope="row"{_class(words[0])}>{_lines(row[0])}</th>{cells}</tr>')
    kinds = ["sortable"] * block.sortable + ["matrix"] * (block.shades is not None)
    kinds += ["many"] * (len(block.header) > MANY_COLUMNS)
    kind = f' class="{" ".join(kinds)}"' if kinds else ""
    # tabindex: a table that is wider than the screen can be scrolled by the keyboard too.
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(block.caption)}">'
        f"<table{kind}><caption>{escape(block.caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _class(is_words: bool, shade: float = 0.0) -> str:
    if shade > 0.0:
        return f' class="shaded" style="--shade: {shade:.2f}"'
    return ' class="words"' if is_words else ""


def _breakable(name: str) -> str:
    """A name that a narrow column may break where its parts meet, and nowhere else."""
    return "<wbr>".join(escape(part) for part in JOINT.split(name))


def _lines(cell: str) -> str:
    first, *rest = cell.split("\n")
    return _breakable(first) + "".join(f"<br><small>{escape(line)}</small>" for line in rest)


def _policy(script: str) -> str:
    """What the page may load: nothing. What it may run: its own script, should there be one."""
    allowed = "'none'"
    if script:
        digest = hashlib.sha256(script.encode("utf-8")).digest()
        allowed = f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {allowed}"


def _file(name: str) -> str:
    return files("kfree.page").joinpath(name).read_text(encoding="utf-8")
