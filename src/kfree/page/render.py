"""Blocks as a page of HTML. Words from outside are escaped by Jinja, all of them and always."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from kfree.page.blocks import Block, Section

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

# After these signs, before a letter, a name may go on in the next line; numbers and dates never.
JOINT = re.compile(r"(?<=[_./-])(?=[^\W\d])")


def render(
    title: str,
    sections: Sequence[Section],
    *,
    lead: Sequence[Block] = (),
    end: Sequence[Block] = (),
    sorting: bool = False,
) -> str:
    """The whole page.

    Parameters
    ----------
    title : str
    sections : sequence of Section
    lead, end : sequence of blocks
        What stands above the list of the sections, and below the last one.
    sorting : bool, default=False
        Whether the page has the script that sorts tables.
    """
    script = _file("sort.js") if sorting else ""
    page = _environment().get_template("page.html")
    return page.render(
        title=title,
        sections=sections,
        lead=lead,
        end=end,
        style=_file("style.css"),
        script=script,
        policy=_policy(script),
    )


def require_jinja() -> None:
    """Raise an ImportError of one sentence if Jinja is not installed."""
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise ImportError('Pages need Jinja2: pip install "kfree[report]".') from error


@cache
def _environment() -> Environment:
    require_jinja()
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("kfree.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"breakable": _breakable, "base64": _base64}
    return environment


def _breakable(name: str) -> Markup:
    """A name that a narrow column may break where its parts meet, and nowhere else."""
    from markupsafe import Markup

    return Markup("<wbr>").join(JOINT.split(name))


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _policy(script: str) -> str:
    """What the page may load: nothing. What it may run: its own script, should there be one."""
    allowed = "'none'"
    if script:
        allowed = f"'sha256-{_base64(hashlib.sha256(script.encode('utf-8')).digest())}'"
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {allowed}"


def _file(name: str) -> str:
    return files("kfree.page").joinpath(name).read_text(encoding="utf-8")
