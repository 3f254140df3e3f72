"""What is found in new tables, counted over all their blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from kfree.plain_text import quoted
from kfree.tables.cells import unreadable
from kfree.tables.messages import TableError, cells_of, listed, not_read

# How many examples of new values are kept of a column.
MOST_EXAMPLES = 20


@dataclass
class Tally:
    """Counts of cells by column; it grows with each block of a table."""

    readable: Counter[str] = field(default_factory=Counter)
    filled_in: Counter[str] = field(default_factory=Counter)  # numbers and dates, with the median
    unreadable: Counter[str] = field(default_factory=Counter)  # those of them that were not empty
    example: dict[str, str] = field(default_factory=dict)  # of a cell that is unreadable
    noun: dict[str, str] = field(default_factory=dict)
    new_values: dict[str, set[str]] = field(default_factory=dict)
    read_otherwise: dict[str, str] = field(default_factory=dict)  # than in fit: column, mark
    date_formats: dict[str, str] = field(default_factory=dict)  # other than in fit
    date_examples: dict[str, tuple[str, float]] = field(default_factory=dict)  # cell, day
    unknown_columns: list[str] = field(default_factory=list)

    def add_numbers(
        self, name: str, texts: list[str | None] | None, values: np.ndarray, noun: str
    ) -> None:
        """Count the cells of a column of numbers; raise if not one so far could be read."""
        there = np.isfinite(values)
        self.noun[name] = noun
        self.readable[name] += int(there.sum())
        if there.all():
            return
        self.filled_in[name] += int((~there).sum())
        wrong = [] if texts is None else unreadable(texts, values)
        if wrong:
            self.unreadable[name] += len(wrong)
            self.example.setdefault(name, wrong[0])
            if not self.readable[name]:
                raise TableError(
                    f"The column {quoted(name)} held {noun}s in fit, but has none here: its cells "
                    f"are like {quoted(wrong[0])}."
                )

    def add_table(self, names: Sequence[str], table: np.ndarray) -> None:
        """Count the cells of columns (n_rows, n_names) that are all numbers or empty."""
        there = np.isfinite(table).sum(axis=0)
        self.noun |= dict.fromkeys(names, "number")
        self.readable.update(dict(zip(names, there.tolist(), strict=True)))
        for j in np.flatnonzero(there < len(table)).tolist():
            self.filled_in[names[j]] += len(table) - int(there[j])

    def add_values(self, name: str, new: set[str]) -> None:
        """Remember values of a category that were not there in fit."""
        kept = self.new_values.setdefault(name, set())
        if len(kept) < MOST_EXAMPLES:
            kept |= new

    def oddities(self) -> Iterator[tuple[str, str]]:
        """A sentence, and what it is about, for each thing that is not as it was in fit."""
        if self.unknown_columns:
            yield (
                "Columns that the model does not know were passed over: "
                f"{listed(self.unknown_columns)}.",
                "unknown columns",
            )
        for name, n in self.unreadable.items():
            noun = self.noun[name]
            yield (
                "The column " + not_read(name, n, noun, self.example[name]),
                f"no {noun}s in {name}",
            )
        for mark in sorted(set(self.read_otherwise.values())):
            names = [name for name, other in self.read_otherwise.items() if other == mark]
            yield (
                f"The numbers of {listed(names)} have the decimal mark {mark!r} here, which was "
                "another in fit.",
                f"decimal mark {mark}",
            )
        for name, (text, day) in self.date_examples.items():
            yield (
                f"The dates of {quoted(name)} are written in another way than in fit: "
                f"{quoted(text)} was read as {np.datetime64(int(np.floor(day)), 'D')}.",
                f"dates of {name}",
            )
        for name, new in self.new_values.items():
            yield (
                f"The column {quoted(name)} has values that were not there in fit: "
                f"{listed(sorted(new))}.",
                f"new values in {name}",
            )

    def filled(self) -> str:
        """How many cells were filled in; empty if there are none."""
        if not self.filled_in:
            return ""
        return f"Missing numbers were filled in with the median of fit: {cells_of(self.filled_in)}."
