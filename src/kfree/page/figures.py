"""Figures for a page, as PNG."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(width: float, height: float) -> Figure:
    """A figure of so many inches."""
    from matplotlib.figure import Figure

    # Not by pyplot, which would keep the figure and ask for a screen.
    return Figure(figsize=(width, height), layout="constrained")


def as_png(figure: Figure, dpi: int = 110, crop: bool = False) -> bytes:
    """The figure as a file; with `crop` just large enough for all that is drawn."""
    out = io.BytesIO()
    # No date inside: the same numbers give the same file.
    figure.savefig(
        out,
        format="png",
        dpi=dpi,
        bbox_inches="tight" if crop else None,
        metadata={"Software": None},
    )
    return out.getvalue()
