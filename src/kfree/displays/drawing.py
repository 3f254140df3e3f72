"""What all pictures need of matplotlib."""

from __future__ import annotations

#: Dark blue and orange stay apart for the colour-blind and in black and white.
DARK, BRIGHT = "#0b3c7d", "#d95f02"
LINE_STYLES = ("-", "--", "-.", ":")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", ">", "*", "p", "h")


def require_matplotlib() -> None:
    """Raise, and say what to install, if matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            'Drawing needs matplotlib: install it with pip install "kfree[plot]".'
        ) from error


def written(text: object, n_letters: int = 18) -> str:
    """Text from data as matplotlib shall write it: short, and without a formula."""
    words = " ".join(str(text).split())
    words = words if len(words) <= n_letters else words[: n_letters - 1] + "…"
    # A single dollar sign is one, two would begin and end a formula.
    return words.replace("$", r"\$")
