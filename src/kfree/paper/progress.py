"""Telling how far the work has come: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Bar:
    """Shows each piece of work that is done. To be used as a context."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("looking for data", total=None)
        self._n_units = self._n_done = 0
        self._start = time.monotonic()

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def begin(self, n_units: int, n_kept: int) -> None:
        """Say what is to be done and what is there already."""
        self._n_units, self._n_done = n_units, n_kept
        self._bar.update(self._task, description="working", total=n_units, completed=n_kept)
        if n_kept:
            self._say(f"{n_kept} of {n_units} pieces of work are kept from before.")

    def done(self, name: str, seconds: float) -> None:
        """Say that a piece of work is done."""
        self._n_done += 1
        self._bar.update(self._task, completed=self._n_done)
        self._say(f"[{self._n_done:3d}/{self._n_units}] {name}, {seconds:.1f} s")

    def _say(self, words: str) -> None:
        self._console.print(words, highlight=False, markup=False, soft_wrap=True)
