"""The picture of p(K | Y) with its credible set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfree.displays.drawing import legend_above, require_matplotlib, set_k_axis
from kfree.displays.fitted import candidates, last_step, one_row
from kfree.displays.ranges import k_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: K outside the drawn range hold at most this much of the probability.
_LEFT_OUT = 2e-3
#: Fewer bars than this look like boxes.
_LEAST_BARS = 10
_MANY_BARS = 40


class KPosteriorDisplay:
    """The posterior of the number of neighbors K as bars, with its credible set marked.

    The credible set is the smallest set of K that holds at least `level` of the probability; it may
    have gaps. Its bars are dark, those of the other K are white.

    Parameters
    ----------
    k : ndarray of shape (n_k,)
        Numbers of neighbors, ascending: the candidates.
    k_probabilities : ndarray of shape (n_k,)
        p(K | Y).
    level : float, default=0.95
        Probability of the credible set.

    Attributes
    ----------
    in_set : ndarray of shape (n_k,) of bool
        Whether a K belongs to the credible set.
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    bars_ : matplotlib BarContainer
    legend_ : matplotlib Legend
    """

    def __init__(
        self,
        *,
        k: NDArray[np.integer],
        k_probabilities: NDArray[np.floating],
        level: float = 0.95,
    ) -> None:
        self.k = k
        self.k_probabilities = k_probabilities
        self.level = level
        self.in_set = credible_set(k_probabilities, level)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike | None = None,
        *,
        row: int | None = None,
        level: float = 0.95,
        ax: Axes | None = None,
        **bar_kw: Any,
    ) -> KPosteriorDisplay:
        """Draw the posterior of K of a fitted estimator.

        Parameters
        ----------
        estimator : KFreeClassifier, or a Pipeline that ends in one
            Fitted.
        X : array-like of shape (n_samples, n_features), default=None
            New rows, one of which is drawn. None: the posterior given the training labels alone.
        row : int, default=None
            Which row of `X`. May be left out if there is only one.
        level : float, default=0.95
            Probability of the credible set.
        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.
        **bar_kw
            Passed to matplotlib's `bar`.

        Returns
        -------
        KPosteriorDisplay
            With the artists as attributes.
        """
        require_matplotlib()
        estimator, X = last_step(estimator, one_row(X, row))
        if X is None:
            k, k_probabilities = candidates(estimator), np.asarray(estimator.k_posterior_)
        else:
            posterior = estimator.posterior(X)
            k, k_probabilities = np.asarray(posterior.k), posterior.k_probabilities[0]
        return cls(k=k, k_probabilities=k_probabilities, level=level).plot(ax=ax, **bar_kw)

    def plot(self, ax: Axes | None = None, **bar_kw: Any) -> KPosteriorDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.
        **bar_kw
            Passed to matplotlib's `bar`.

        Returns
        -------
        KPosteriorDisplay
            Itself, with the artists as attributes.
        """
        require_matplotlib()
        import matplotlib.pyplot as plt
        from matplotlib.patches import Patch

        if ax is None:
            _, ax = plt.subplots(figsize=(6.0, 3.6), layout="constrained")
        drawn = _drawn(self.k_probabilities, self.in_set)
        dark, white = "0.35", "white"
        # Edges of many bars would be all that is seen of them.
        edge = 0.6 if drawn.stop - drawn.start <= _MANY_BARS else 0.2
        defaults: dict[str, Any] = {
            "width": bar_widths(self.k)[drawn],
            "color": [dark if inside else white for inside in self.in_set[drawn]],
            "edgecolor": "black",
            "linewidth": edge,
        }
        self.bars_ = ax.bar(self.k[drawn], self.k_probabilities[drawn], **(defaults | bar_kw))
        inside = (
            f"credible set of {100 * self.level:g}%: K = {runs(self.k[self.in_set], among=self.k)}"
        )
        handles = [Patch(facecolor=dark, edgecolor="black", linewidth=0.6, label=inside)]
        if not self.in_set[drawn].all():
            handles.append(
                Patch(facecolor=white, edgecolor="black", linewidth=0.6, label="other K")
            )
        self.legend_ = legend_above(ax, handles=handles)
        set_k_axis(ax, self.k[drawn])
        ax.set_ylabel(r"probability $p(K \mid Y)$")
        ax.set_ylim(bottom=0.0)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def credible_set(probabilities: ArrayLike, level: float = 0.95) -> NDArray[np.bool_]:
    """Mark the smallest set that holds at least `level` of the probability.

    Parameters
    ----------
    probabilities : array-like of shape (n_k,)
        They sum to 1.
    level : float, default=0.95
        Above 0, at most 1.

    Returns
    -------
    ndarray of shape (n_k,) of bool

    Examples
    --------
    >>> credible_set([0.1, 0.5, 0.0, 0.4], level=0.9)
    array([False,  True, False,  True])
    """
    if not 0.0 < level <= 1.0:
        raise ValueError(f"level must be above 0 and at most 1; got {level!r}.")
    probabilities = np.asarray(probabilities, dtype=float)
    # Stable: of equally probable K the smaller ones come first.
    order = np.argsort(-probabilities, kind="stable")
    held = np.cumsum(probabilities[order])
    # Rounding: 0.5 + 0.4 need not reach 0.9.
    n = int(np.searchsorted(held, level - 1e-12)) + 1
    inside = np.zeros(len(probabilities), dtype=bool)
    inside[order[:n]] = True
    return inside


def _drawn(probabilities: NDArray[np.floating], in_set: NDArray[np.bool_]) -> slice:
    """The K that have a bar: those of some weight and all of the credible set, without gaps."""
    weighty, inside = k_range(probabilities, _LEFT_OUT), np.flatnonzero(in_set)
    first, stop = min(weighty.start, inside[0]), max(weighty.stop, inside[-1] + 1)
    first = max(0, first - max(0, _LEAST_BARS - (stop - first)) // 2)
    return slice(first, min(len(probabilities), max(stop, first + _LEAST_BARS)))


def bar_widths(k: NDArray[np.integer]) -> NDArray[np.float64]:
    """How wide the bar of each candidate may be without touching the next."""
    gaps = np.diff(k) if len(k) > 1 else np.ones(1)
    return 0.8 * np.minimum(np.append(gaps, gaps[-1]), np.insert(gaps, 0, gaps[0]))[: len(k)]


def runs(
    numbers: NDArray[np.integer], n_most: int = 4, among: NDArray[np.integer] | None = None
) -> str:
    """Ascending numbers in words: 3-7, 9. After `n_most` runs only the last number is named.

    `among` are all the candidates there are, should they have gaps of their own.

    Examples
    --------
    >>> runs(np.array([3, 4, 5, 9]))
    '3-5, 9'
    >>> runs(np.array([32, 36, 44]), among=np.array([31, 32, 36, 40, 44]))
    '32-36, 44'
    """
    places = numbers if among is None else np.searchsorted(among, numbers)
    breaks = np.flatnonzero(np.diff(places) > 1) + 1
    parts = [
        str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}"
        for part in np.split(np.asarray(numbers), breaks)
    ]
    if len(parts) > n_most:
        return ", ".join(parts[: n_most - 1]) + f", ..., {numbers[-1]}"
    return ", ".join(parts)
