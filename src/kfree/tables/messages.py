"""How tables are spoken of: the error, the warning, and lists of names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from kfree.plain_text import quoted

# How many names a sentence lists.
MOST_NAMES = 6
# Among how many names one that looks alike is searched: it takes a millisecond for each hundred.
MOST_COMPARED = 2_000


class TableError(ValueError):
    """A table cannot be used; the message is one sentence that says why."""


class TableWarning(UserWarning):
    """Something in a table was passed over, put right or filled in.

    Parameters
    ----------
    sentence : str
    topic : str, default: the sentence
        What it is about. Of a table that is read in blocks the examples may differ, not the topic.
    """

    def __init__(self, sentence: str, topic: str | None = None) -> None:
        super().__init__(sentence)
        self.topic = sentence if topic is None else topic


def listed(names: Iterable[Any], most: int = MOST_NAMES) -> str:
    """Names in quotes, with the number of those that are too many to be listed."""
    names = list(names)
    if len(names) > most + 1:
        return f"{', '.join(map(quoted, names[:most]))} and {len(names) - most:,} more"
    words = [quoted(name) for name in names]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def joined(parts: Sequence[str], most: int = MOST_NAMES) -> str:
    """Parts of a sentence, with the number of those that are too many."""
    if len(parts) > most + 1:
        return f"{', '.join(parts[:most])} and {len(parts) - most:,} more"
    return ", ".join(parts)


def count(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: 1 row, 2 rows."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def cells_of(counts: dict[str, int]) -> str:
    """Columns with a number of cells each: 'a' (2 cells), 'b' (1 cell)."""
    return joined([f"{quoted(name)} ({count(n, 'cell')})" for name, n in counts.items()])


def not_read(name: str, n: int, noun: str, example: str) -> str:
    """A sentence on cells of a column that are no numbers (dates)."""
    return (
        f"{quoted(name)} has {count(n, 'cell')} that "
        f"{'is not a ' + noun if n == 1 else 'are not ' + noun + 's'}, such as {quoted(example)}; "
        f"{'it was' if n == 1 else 'they were'} taken as missing."
    )


def nearest(name: str, names: Iterable[Any], most: int = 3) -> list[str]:
    """The names that look most like a name, whatever the case of their letters."""
    known = [str(other) for other in names][:MOST_COMPARED]
    lower = {other.lower(): other for other in reversed(known)}
    return [lower[found] for found in get_close_matches(name.lower(), lower, n=most, cutoff=0.5)]
