"""Telling on standard error that work which takes long is going on."""

from __future__ import annotations

import threading
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from kfree.commands.telling import say

# Work that is shorter is not spoken of; where there is no terminal, a line comes so often.
PATIENCE = 2.0
PAUSE = 10.0


class Working:
    """Says how far the work has come once it has taken two seconds. To be used as a context.

    Parameters
    ----------
    what : str
        The work: "Fitting".
    total : int, default=None
        How many steps it has, if that is known.
    noun : str, default=""
        What a step is: "rows".
    """

    def __init__(self, what: str, total: int | None = None, noun: str = "") -> None:
        self._what, self._total, self._noun = what, total, noun
        self._n_done = 0
        self._bar: Progress | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(PATIENCE, self._begin)
        self._timer.daemon = True
        self._told = 0.0

    def __enter__(self) -> Working:
        self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()
        with self._lock:
            if self._bar is not None:
                self._bar.stop()

    def advance(self, n_steps: int = 1) -> None:
        """Some more steps are done."""
        with self._lock:
            self._n_done += n_steps
            if self._bar is not None:
                self._bar.update(self._task, completed=self._n_done, description=self._words())
            elif self._told and time.monotonic() - self._told > PAUSE:
                self._tell()

    def _begin(self) -> None:
        with self._lock:
            console = Console(stderr=True)
            if not console.is_terminal:
                self._tell()
                return
            columns = [SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()]
            if self._total is not None:
                columns.insert(2, BarColumn())
            self._bar = Progress(*columns, console=console, transient=True)
            self._task = self._bar.add_task(
                self._words(), total=self._total, completed=self._n_done
            )
            self._bar.start()

    def _tell(self) -> None:
        self._told = time.monotonic()
        say(self._words() + " ...")

    def _words(self) -> str:
        if self._total is not None:
            return f"{self._what}: {self._n_done:,} of {self._total:,} {self._noun}".rstrip()
        if self._n_done:
            return f"{self._what}: {self._n_done:,} {self._noun}".rstrip()
        return self._what
