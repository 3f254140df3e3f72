"""What commands say: results on standard output, everything else on standard error.

The one place that turns errors which users can do something about into a sentence and an exit code:
1 for a problem with the data or a file, 130 after Ctrl-C. Wrong options are typer's, with 2.
"""

from __future__ import annotations

import errno
import io
import json
import os
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import typer
from rich.console import Console

from kfree.tables import TableWarning

PROBLEM = 1
INTERRUPTED = 130
# TableError, ModelFileError and what kfree's validation raises are ValueErrors.
EXPECTED = (ValueError, OSError, ImportError, MemoryError)
REASONS = {
    errno.ENOENT: "there is no such file or folder",
    errno.EISDIR: "it is a folder",
    errno.EACCES: "permission is denied",
    errno.ENOSPC: "no space is left on the device",
}


def told(command: Callable) -> Callable:
    """A command that ends with one sentence and an exit code where something is wrong."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        name = f"kfree {command.__name__}"
        for stream in (sys.stdout, sys.stderr):
            # A terminal that does not know a letter shows another one, and the work goes on.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", TableWarning)
                warnings.showwarning = _warnings_once()
                command(*args, **kwargs)
                sys.stdout.flush()
        except KeyboardInterrupt:
            say("Interrupted; nothing was written.")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            # Whoever read our output has had enough. Python would complain once more on its way
            # out, when it flushes.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(PROBLEM) from None
        except EXPECTED as error:
            say(f"{name}: {sentence(error)}", style="red")
            raise typer.Exit(PROBLEM) from None

    return run


def sentence(error: BaseException) -> str:
    """One line for an error."""
    if isinstance(error, MemoryError):
        return "There is not enough memory for this table."
    if isinstance(error, OSError) and error.errno is not None:
        reason = REASONS.get(error.errno, (error.strerror or os.strerror(error.errno)).lower())
        what = f"{str(error.filename)!r} cannot be used" if error.filename else "It failed"
        return f"{what}: {reason}."
    return " ".join(str(error).split()) or type(error).__name__


def say(text: str, style: str | None = None) -> None:
    """A line on standard error."""
    _print(Console(stderr=True), text, style)


def show(text: str, style: str | None = None) -> None:
    """A line of the result on standard output."""
    _print(Console(), text, style)


def show_json(value: Any) -> None:
    """The result for machines, on standard output."""
    print(json.dumps(value, indent=2, default=_plain))


def _print(console: Console, text: str, style: str | None) -> None:
    console.print(text, style=style, highlight=False, markup=False, soft_wrap=True)


def _warnings_once() -> Callable:
    """What shows warnings, each once: a table that is read in blocks has the same to say of many.

    Python's own filter "once" begins anew whenever some library changes the filters.
    """
    shown = set()

    def show_warning(message: Any, *args: Any, **kwargs: Any) -> None:
        text = " ".join(str(message).split())
        topic = getattr(message, "topic", text)
        if topic not in shown:
            shown.add(topic)
            say(f"Note: {text}", style="yellow")

    return show_warning


def _plain(value: Any) -> Any:
    """What JSON does not know."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return str(value)
