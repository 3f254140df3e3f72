"""Text from data and from files, made fit to be printed.

Whatever comes from a table or from a model file (labels, names, cells, fields of a header, names of
types) goes through here before it reaches a terminal or an error message: a control character is
shown and not sent, and a text of any length takes a line at most.
"""

from __future__ import annotations

# How many characters of a text are shown.
LONGEST = 60
# And of a whole sentence that somebody else composed, such as the message of a parser.
LONGEST_SENTENCE = 1_000
# Spaces that are not the plain one; Python counts them among what cannot be printed.
SPACES = str.maketrans(dict.fromkeys("\u00a0\u1680\u202f\u205f\u3000", " "))
SPACES |= dict.fromkeys(range(0x2000, 0x200B), " ")


def shown(value: object, most: int = LONGEST) -> str:
    r"""A value as text: what cannot be printed is escaped, what is too long is cut.

    >>> shown("a\x1b[31mb"), shown("ab" * 99, most=6)
    ('a\\x1b[31mb', 'ababa…')
    """
    return "".join(map(_visible, _cut(str(value), most)))


def quoted(value: object, most: int = LONGEST) -> str:
    """The same in quotes."""
    return repr(_cut(str(value), most))


def without_controls(text: str) -> str:
    """A whole message with its lines kept, but without anything that a terminal would obey."""
    return "".join(c if c == "\n" else _visible(c) for c in text)


def _cut(text: str, most: int) -> str:
    text = text if len(text) <= most else text[: most - 1] + "…"
    return text.translate(SPACES)


def _visible(character: str) -> str:
    return character if character.isprintable() else repr(character)[1:-1]
