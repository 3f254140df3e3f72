"""What commands say: results on standard output, everything else on standard error.

The one place that turns errors which users can do something about into a sentence and an exit code:
1 for a problem with the data or a file, 130 after Ctrl-C. Wrong options are typer's, with 2. It is
also the last one that a text passes on its way to the terminal: control characters are shown there,
never sent.
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
from rich.padding import Padding
from rich.text import Text

from kfree.plain_text import LONGEST_SENTENCE, quoted, shown, without_controls
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
                if sys.stdout is not None:
                    sys.stdout.flush()
        except KeyboardInterrupt:
            say("Interrupted; nothing was written.")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            # Whoever read our output has had enough.
            _leave_standard_output()
            raise typer.Exit(PROBLEM) from None
        except EXPECTED as error:
            say(f"{name}: {sentence(error)}", style="red")
            if isinstance(error, OSError):
                _leave_standard_output()
            raise typer.Exit(PROBLEM) from None

    return run


def sentence(error: BaseException) -> str:
    """One line for an error."""
    if isinstance(error, MemoryError):
        return "There is not enough memory for this table."
    if isinstance(error, OSError) and error.errno is not None:
        reason = REASONS.get(error.errno, (error.strerror or os.strerror(error.errno)).lower())
        what = f"{quoted(error.filename, 200)} cannot be used" if error.filename else "It failed"
        return f"{what}: {reason}."
    return shown(" ".join(str(error).split()), LONGEST_SENTENCE) or type(error).__name__


def say(text: str, style: str | None = None) -> None:
    """A line on standard error."""
    _print(console(stderr=True), text, style)


def show(text: str, style: str | None = None) -> None:
    """A line of the result on standard output."""
    _print(console(), text, style)


def show_json(value: Any) -> None:
    """The result for machines, on standard output. JSON has its own way to write any character."""
    print(json.dumps(value, indent=2, default=_plain))


def console(stderr: bool = False) -> Console:
    """A console on a standard stream; what is written to a closed one is lost."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(file=io.StringIO()) if stream is None else Console(stderr=stderr)


def _print(console: Console, text: str, style: str | None) -> None:
    for line in without_controls(text).split("\n"):
        if console.is_terminal and line:
            # Lines break between words, and go on as far to the right as they began.
            margin = len(line) - len(line.lstrip(" "))
            words = Text(line[margin:], style=style or "")
            console.print(Padding(words, (0, 0, 0, margin), expand=False))
        else:
            console.print(line, style=style, highlight=False, markup=False, soft_wrap=True)


def _leave_standard_output() -> None:
    """Nothing more can be written there; Python would complain when it flushes on its way out."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except AttributeError:  # it is closed
        pass


def _warnings_once() -> Callable:
    """What shows warnings, each once: a table that is read in blocks has the same to say of many.

    Python's own filter "once" begins anew whenever some library changes the filters.
    """
    known = set()

    def show_warning(message: Any, *args: Any, **kwargs: Any) -> None:
        text = " ".join(str(message).split())
        topic = getattr(message, "topic", text)
        if topic not in known:
            known.add(topic)
            say(f"Note: {shown(text, LONGEST_SENTENCE)}", style="yellow")

    return show_warning


def _plain(value: Any) -> Any:
    """What JSON does not know."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return str(value)
