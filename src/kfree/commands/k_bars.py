"""The posterior of the number of neighbors as lines of text."""

from __future__ import annotations

import numpy as np

from kfree.displays.k_posterior import credible_set, runs

LEVEL = 0.95
# More values of k than this share lines.
MOST_LINES = 12
WIDTH = 30
EIGHTHS = " ▏▎▍▌▋▊▉█"


def credible_k(k_values: np.ndarray, k_posterior: np.ndarray) -> np.ndarray:
    """The smallest set of k that holds at least `LEVEL` of the probability, in order."""
    return np.asarray(k_values)[credible_set(k_posterior, LEVEL)]


def in_words(numbers: np.ndarray, k_values: np.ndarray) -> str:
    """Some of the candidates, with runs of neighboring ones drawn together: 3-5, 9, 32-41."""
    return runs(numbers, n_most=len(numbers), among=k_values)


def bars(k_values: np.ndarray, k_posterior: np.ndarray) -> list[str]:
    """A line with a bar for each k, or range of k, that matters."""
    inside = np.flatnonzero(credible_set(k_posterior, LEVEL))
    # A neighbor on each side shows how the posterior ends.
    first, last = max(0, int(inside[0]) - 1), min(len(k_posterior) - 1, int(inside[-1]) + 1)
    step = -(-(last - first + 1) // MOST_LINES)
    starts = np.arange(first, last + 1, step)
    ends = np.minimum(starts + step - 1, last)
    shares = [float(k_posterior[a : b + 1].sum()) for a, b in zip(starts, ends, strict=True)]
    names = [
        str(k_values[a]) if a == b else f"{k_values[a]}-{k_values[b]}"
        for a, b in zip(starts, ends, strict=True)
    ]
    margin = max(map(len, names))
    return [
        f"{name:>{margin}} {_bar(share / max(shares)):<{WIDTH}} {share:6.1%}"
        for name, share in zip(names, shares, strict=True)
    ]


def _bar(share: float) -> str:
    eighths = round(share * WIDTH * 8)
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8]).rstrip()
