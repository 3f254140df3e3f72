"""Pictures of a FieldClassifier: why a row was classified so, and how much each block counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfree.displays.drawing import BRIGHT, DARK, legend_above, require_matplotlib, written
from kfree.displays.fitted import last_step, one_row

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ContributionsDisplay:
    """What each block adds to the logit of one class against another, for one row.

    Bars to the right speak for the class, bars to the left for the other; their sum is the logit
    of the one against the other.

    Parameters
    ----------
    names : sequence of str
        The blocks.
    values : ndarray of shape (n_blocks,)
        What each adds.
    label, other : objects
        The class that the bars to the right speak for, and the one it is compared with.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    bars_ : matplotlib BarContainer
    """

    def __init__(self, *, names: Any, values: NDArray[np.floating], label: Any, other: Any) -> None:
        self.names = list(names)
        self.values = np.asarray(values, dtype=float)
        self.label = label
        self.other = other

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        *,
        row: int | None = None,
        label: Any = None,
        other: Any = None,
        ax: Axes | None = None,
        **bar_kw: Any,
    ) -> ContributionsDisplay:
        """Draw why a row was classified so.

        Parameters
        ----------
        estimator : FieldClassifier, or a Pipeline that ends in one
            Fitted.
        X : array-like of shape (n_samples, n_features)
            Rows, one of which is drawn.
        row : int, default=None
            Which row of `X`. May be left out if there is only one.
        label, other : default=None
            Two classes. None: the most probable one, and the most probable one besides `label`.
        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.
        **bar_kw
            Passed to matplotlib's `barh`.

        Returns
        -------
        ContributionsDisplay
            With the artists as attributes.
        """
        require_matplotlib()
        classifier, one = last_step(estimator, one_row(X, row))
        parts = classifier.contributions(one)
        order = np.argsort(-parts.logits[0], kind="stable")
        first = order[0] if label is None else _place(parts.classes, label)
        rest = order[order != first]
        second = rest[0] if other is None else _place(parts.classes, other)
        table = parts.values[0]
        return cls(
            names=[name.removesuffix(", shared") for name in parts.blocks],
            values=table[:, first] - table[:, second],
            label=parts.classes[first],
            other=parts.classes[second],
        ).plot(ax=ax, **bar_kw)

    def plot(self, ax: Axes | None = None, **bar_kw: Any) -> ContributionsDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.
        **bar_kw
            Passed to matplotlib's `barh`.

        Returns
        -------
        ContributionsDisplay
            Itself, with the artists as attributes.
        """
        ax = _axes(ax, len(self.names))
        place = np.arange(len(self.names))[::-1]
        pro = self.values >= 0.0
        defaults: dict[str, Any] = {
            "color": [DARK if yes else BRIGHT for yes in pro],
            "edgecolor": "black",
            "linewidth": 0.6,
        }
        self.bars_ = ax.barh(place, self.values, **(defaults | bar_kw))
        for bar, yes in zip(self.bars_, pro, strict=True):
            # Without color the direction tells; the hatch says it again.
            bar.set_hatch("" if yes else "///")
        ax.axvline(0.0, color="black", linewidth=0.8)
        ax.set_yticks(place, self.names)
        one, other = written(self.label), written(self.other)
        ax.set_xlabel(f"adds to the logit of {one} against {other}")
        ax.set_title(f"together {self.values.sum():+.2f}", fontsize="medium", loc="left")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class BlockWeightsDisplay:
    """How large the weights of each block are, and how large its prior lets them be.

    Parameters
    ----------
    names : sequence of str
        The blocks.
    sizes : ndarray of shape (n_blocks,)
        The root mean square of each block's weights.
    prior_sizes : ndarray of shape (n_blocks,)
        The prior's standard deviation, which the evidence chose.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    bars_ : matplotlib BarContainer
    legend_ : matplotlib Legend
    """

    def __init__(
        self, *, names: Any, sizes: NDArray[np.floating], prior_sizes: NDArray[np.floating]
    ) -> None:
        self.names = list(names)
        self.sizes = np.asarray(sizes, dtype=float)
        self.prior_sizes = np.asarray(prior_sizes, dtype=float)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Axes | None = None, **bar_kw: Any
    ) -> BlockWeightsDisplay:
        """Draw the weights of a fitted classifier.

        Parameters
        ----------
        estimator : FieldClassifier, or a Pipeline that ends in one
            Fitted.
        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.
        **bar_kw
            Passed to matplotlib's `barh`.

        Returns
        -------
        BlockWeightsDisplay
            With the artists as attributes.
        """
        require_matplotlib()
        classifier, _ = last_step(estimator, None)
        sizes = [np.sqrt((classifier.coef_[name] ** 2).mean()) for name in classifier.blocks_]
        return cls(
            names=classifier.blocks_,
            sizes=np.array(sizes),
            prior_sizes=1.0 / np.sqrt(classifier.precision_),
        ).plot(ax=ax, **bar_kw)

    def plot(self, ax: Axes | None = None, **bar_kw: Any) -> BlockWeightsDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.
        **bar_kw
            Passed to matplotlib's `barh`.

        Returns
        -------
        BlockWeightsDisplay
            Itself, with the artists as attributes.
        """
        ax = _axes(ax, len(self.names))
        place = np.arange(len(self.names))[::-1]
        defaults: dict[str, Any] = {
            "color": "0.75",
            "edgecolor": "black",
            "linewidth": 0.6,
            "label": "root mean square of the weights",
        }
        self.bars_ = ax.barh(place, self.sizes, **(defaults | bar_kw))
        ax.plot(
            self.prior_sizes,
            place,
            linestyle="none",
            marker="D",
            color=DARK,
            label="standard deviation of their prior",
        )
        ax.set_yticks(place, self.names)
        ax.set_xlabel("size of a weight")
        self.legend_ = legend_above(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _place(classes: np.ndarray, label: Any) -> int:
    found = np.flatnonzero(classes == label)
    if len(found) != 1:
        known = ", ".join(map(repr, classes.tolist()))
        raise ValueError(f"There is no class {label!r}; the classes are {known}.")
    return int(found[0])


def _axes(ax: Axes | None, n_bars: int) -> Axes:
    require_matplotlib()
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 1.2 + 0.3 * n_bars), layout="constrained")
    return ax
