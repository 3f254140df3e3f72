"""Pages of HTML that need nothing but themselves.

`blocks` and `charts` say what is on a page, `render` makes the page with the templates.
"""

from kfree.page.blocks import (
    Beside,
    Block,
    Card,
    Cards,
    Code,
    Details,
    Files,
    Picture,
    Points,
    Section,
    Table,
    Terms,
    Text,
    Tile,
    Tiles,
)
from kfree.page.charts import Axis, Bars, Calibration, Line, Lines, axis
from kfree.page.render import render, require_jinja

__all__ = [
    "Axis",
    "Bars",
    "Beside",
    "Block",
    "Calibration",
    "Card",
    "Cards",
    "Code",
    "Details",
    "Files",
    "Line",
    "Lines",
    "Picture",
    "Points",
    "Section",
    "Table",
    "Terms",
    "Text",
    "Tile",
    "Tiles",
    "axis",
    "render",
    "require_jinja",
]
