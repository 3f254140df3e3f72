"""Pages of HTML that need nothing but themselves: blocks of words, tables and pictures, as text."""

from kfree.page.blocks import Block, Code, Details, Picture, Points, Table, Terms, Text
from kfree.page.html import contents, document, element, section

__all__ = [
    "Block",
    "Code",
    "Details",
    "Picture",
    "Points",
    "Table",
    "Terms",
    "Text",
    "contents",
    "document",
    "element",
    "section",
]
