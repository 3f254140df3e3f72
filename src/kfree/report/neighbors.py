"""The posterior of the number of neighbors, in words and as a picture."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kfree.displays import credible_set
from kfree.displays.k_posterior import runs
from kfree.page import Axis, Bars, Beside, Block, Text, axis
from kfree.report.findings import Findings
from kfree.report.wording import percent

#: K with less than this share of the most probable one are not drawn at the ends.
K_MATTERS = 1e-2


def how_many_neighbors(found: Findings) -> tuple[Block, ...]:
    """The posterior of k over the k that matter."""
    about = found.held_out.k
    assert about is not None
    inside = credible_set(about.probabilities)
    matters = np.flatnonzero(about.probabilities >= K_MATTERS * about.probabilities.max())
    drawn = slice(matters[0], matters[-1] + 1)
    held = float(about.probabilities[drawn].sum())
    best = float(about.probabilities[about.k == about.best].sum())
    words = (
        f"The most probable number of neighbors is {about.best} (probability {best:.2f}). The "
        "smallest set that holds 95% of the probability: "
        f"{runs(about.k[inside], 8, about.k)}. The strength of a neighbor's pull, beta, is "
        f"{about.beta_mean:.2f} ± {about.beta_std:.2f}."
    )
    if inside.sum() <= 2:
        spread = "Nearly all of the probability is there."
    else:
        spread = "Nothing has to be chosen: every prediction is averaged over all k, by these "
        spread += "probabilities."
        if best < 0.5:
            spread = f"Several k explain the labels about equally well. {spread}"
    places, heights = about.k[drawn], about.probabilities[drawn]
    picture = Bars(
        "How probable each number of neighbors k is",
        f"Bars of the probability of each number of neighbors. {words}",
        tuple(
            (float(k), float(p), bool(dark))
            for k, p, dark in zip(places, heights, inside[drawn], strict=True)
        ),
        _k_axis(places),
        axis(0.0, float(heights.max()), 4),
        legend=(
            "the smallest set that holds 95%",
            f"other k; those not drawn hold {percent(1 - held)}",
        ),
    )
    return (
        Beside(
            (
                Text(
                    "kfree does not choose the number of neighbors k. It computes from the labels "
                    f"how probable each k is. {words} {spread}"
                ),
                picture,
            )
        ),
    )


def _k_axis(k: NDArray[np.integer]) -> Axis:
    """Whole numbers, with room for at least a few bars."""
    low, high = int(k[0]), int(k[-1])
    half = 0.5 * max(1, (high - low) // 40)
    extra = max(0, 6 - (high - low)) / 2
    step = max(1, int(np.ceil((high - low) / 8)))
    step = next(m for m in (1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 10**6) if m >= step)
    first = low if step == 1 else -(-low // step) * step
    ticks = tuple((float(v), str(v)) for v in range(first, high + 1, step))
    return Axis(low - half - extra, high + half + extra, ticks, "number of neighbors k")
