"""What all pictures need of matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend

#: Dark blue and orange stay apart for the color-blind and in black and white.
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


def set_k_axis(ax: Axes, k: NDArray[np.integer]) -> None:
    """Let the axis to the right hold the numbers of neighbors `k`, with whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    ax.set_xlabel("number of neighbors $K$")
    ax.set_xlim(k[0] - 0.5, k[-1] + 0.5)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def legend_above(ax: Axes, **legend_kw: Any) -> Legend:
    """A legend above the axes, where it covers nothing."""
    return ax.legend(
        loc="lower left", bbox_to_anchor=(0.0, 1.0), frameon=False, borderaxespad=0.3, **legend_kw
    )


def written(text: object, n_letters: int = 18) -> str:
    """Text from data as matplotlib shall write it: short, and without a formula."""
    words = " ".join(str(text).split())
    words = words if len(words) <= n_letters else words[: n_letters - 1] + "…"
    # A single dollar sign is one, two would begin and end a formula.
    return words.replace("$", r"\$")
