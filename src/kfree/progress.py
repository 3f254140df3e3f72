"""A line that tells how far long work has come."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

WIDTH = 30


def progress(verbose: int, name: str) -> Callable[[float], None] | None:
    """A function that takes the share done and draws a bar on standard error, if `verbose`."""
    if not verbose:
        return None
    start = time.monotonic()

    def show(share: float) -> None:
        filled = round(WIDTH * share)
        taken = time.monotonic() - start
        left = taken / share - taken if share > 0 else 0.0
        bar = "#" * filled + "." * (WIDTH - filled)
        end = "\n" if share >= 1.0 else ""
        print(f"\r{name} [{bar}] {share:4.0%}, {left:.0f} s left ", end=end, file=sys.stderr)

    return show
