"""The reliability diagram: how often what was said to be probable came true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfree.displays.drawing import DARK, legend_above, require_matplotlib
from kfree.displays.fitted import last_step

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = ("top", "pooled")
#: Of the normal distribution, for intervals of 95%.
_Z = 1.959963984540054


@dataclass(frozen=True)
class Reliability:
    """Predicted probabilities in bins of equal width, with what came true.

    Attributes
    ----------
    kind : {"top", "pooled"}
        Whether the most probable class of each row was judged, or every class of every row.
    edges : ndarray of shape (n_bins + 1,)
        Edges of the bins, from 0 to 1.
    count : ndarray of shape (n_bins,)
        Number of predictions in each bin.
    predicted : ndarray of shape (n_bins,)
        Mean predicted probability; NaN in an empty bin.
    observed : ndarray of shape (n_bins,)
        Share of predictions that came true; NaN in an empty bin.
    lower, upper : ndarray of shape (n_bins,)
        Ends of the 95% interval of `observed` (Wilson); NaN in an empty bin. With "pooled" the
        predictions of one row depend on each other, and the interval is only a rough guide.
    calibration_error : float
        Mean of `|observed - predicted|`, weighted with `count` (the expected calibration error).
    """

    kind: str
    edges: NDArray[np.float64]
    count: NDArray[np.int64]
    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    calibration_error: float


def reliability(
    y_true: ArrayLike,
    probabilities: ArrayLike,
    classes: ArrayLike | None = None,
    *,
    kind: str = "top",
    n_bins: int = 10,
) -> Reliability:
    """Put predicted probabilities into bins and compare them with what came true.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    probabilities : array-like of shape (n_samples, n_classes)
        Predicted probabilities.
    classes : array-like of shape (n_classes,), default=None
        The class of each column. None: the sorted labels of `y_true`.
    kind : {"top", "pooled"}, default="top"
        "top" judges the most probable class of each row; "pooled" judges every class of every row.
    n_bins : int, default=10
        Number of bins of equal width.

    Returns
    -------
    Reliability

    Examples
    --------
    >>> bins = reliability(["a", "b"], [[0.9, 0.1], [0.7, 0.3]], n_bins=2)
    >>> bins.count, bins.observed.round(2)
    (array([0, 2]), array([nan, 0.5]))
    >>> print(f"{bins.calibration_error:.2f}")
    0.30
    """
    y, probabilities = np.asarray(y_true), np.asarray(probabilities, dtype=float)
    classes = np.unique(y) if classes is None else np.asarray(classes)
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}; got {kind!r}.")
    if n_bins < 1:
        raise ValueError(f"n_bins must be a whole number of at least 1; got {n_bins!r}.")
    if probabilities.shape != (len(y), len(classes)):
        raise ValueError(
            f"probabilities must have shape {(len(y), len(classes))}, a row for each label and a "
            f"column for each class; got {probabilities.shape}."
        )
    if kind == "top":
        said = probabilities.max(axis=1)
        true = classes[probabilities.argmax(axis=1)] == y
    else:
        said = probabilities.ravel()
        true = (y[:, None] == classes[None, :]).ravel()
    bins = np.minimum((said * n_bins).astype(int), n_bins - 1)
    count = np.bincount(bins, minlength=n_bins)
    sum_said = np.bincount(bins, weights=said, minlength=n_bins)
    sum_true = np.bincount(bins, weights=true, minlength=n_bins)
    n = np.where(count > 0, count, np.nan)
    observed = sum_true / n
    middle = (observed + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * np.sqrt(observed * (1 - observed) / n + _Z**2 / (4 * n * n))
    return Reliability(
        kind=kind,
        edges=np.linspace(0.0, 1.0, n_bins + 1),
        count=count,
        predicted=sum_said / n,
        observed=observed,
        # Rounding puts the end a trifle past a share of exactly 0 or 1.
        lower=np.minimum(np.clip(middle - half, 0.0, 1.0), observed),
        upper=np.maximum(np.clip(middle + half, 0.0, 1.0), observed),
        calibration_error=float(np.abs(sum_said - sum_true).sum() / len(said)),
    )


class ReliabilityDisplay:
    """Reliability diagram for any number of classes.

    Above, the share of predictions that came true over the predicted probability, with 95%
    intervals: on the diagonal, probabilities mean what they say. Below, the number of predictions
    in each bin.

    Parameters
    ----------
    reliability : Reliability
        What is drawn.
    name : str, default=None
        Name for the legend.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of two matplotlib Axes
        The diagram, then the counts.
    line_ : matplotlib ErrorbarContainer
        The points and their intervals.
    diagonal_ : matplotlib Line2D
    bars_ : matplotlib BarContainer
        The counts.
    legend_ : matplotlib Legend
    """

    def __init__(self, *, reliability: Reliability, name: str | None = None) -> None:
        self.reliability = reliability
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        kind: str = "top",
        n_bins: int = 10,
        name: str | None = None,
        ax: Axes | None = None,
        **line_kw: Any,
    ) -> ReliabilityDisplay:
        """Draw how far the probabilities of a fitted classifier can be relied on.

        Parameters
        ----------
        estimator : classifier with `predict_proba`, or a Pipeline that ends in one
            Fitted.
        X : array-like of shape (n_samples, n_features) or None
            Rows that were not in training. None: the training rows, each left out once; for a
            KFreeClassifier only.
        y : array-like of shape (n_samples,)
            True labels of `X`; with X=None those of `fit`.
        kind : {"top", "pooled"}, default="top"
            "top" judges the most probable class of each row; "pooled" every class of every row.
        n_bins : int, default=10
            Number of bins.
        name : str, default=None
            Name for the legend.
        ax : matplotlib Axes, default=None
            Where to draw; the counts are put below it. None makes a new figure.
        **line_kw
            Passed to matplotlib's `errorbar`.

        Returns
        -------
        ReliabilityDisplay
            With the artists as attributes.
        """
        require_matplotlib()
        estimator, X = last_step(estimator, X)
        bins = reliability(
            y, estimator.predict_proba(X), estimator.classes_, kind=kind, n_bins=n_bins
        )
        return cls(reliability=bins, name=name).plot(ax=ax, **line_kw)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        kind: str = "top",
        n_bins: int = 10,
        name: str | None = None,
        ax: Axes | None = None,
        **line_kw: Any,
    ) -> ReliabilityDisplay:
        """Draw how far given probabilities can be relied on.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels.
        y_proba : array-like of shape (n_samples, n_classes)
            Predicted probabilities.
        classes : array-like of shape (n_classes,), default=None
            The class of each column. None: the sorted labels of `y_true`.
        kind : {"top", "pooled"}, default="top"
            "top" judges the most probable class of each row; "pooled" every class of every row.
        n_bins : int, default=10
            Number of bins.
        name : str, default=None
            Name for the legend.
        ax : matplotlib Axes, default=None
            Where to draw; the counts are put below it. None makes a new figure.
        **line_kw
            Passed to matplotlib's `errorbar`.

        Returns
        -------
        ReliabilityDisplay
            With the artists as attributes.
        """
        bins = reliability(y_true, y_proba, classes, kind=kind, n_bins=n_bins)
        return cls(reliability=bins, name=name).plot(ax=ax, **line_kw)

    def plot(self, ax: Axes | None = None, **line_kw: Any) -> ReliabilityDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; the counts are put below it. None makes a new figure.
        **line_kw
            Passed to matplotlib's `errorbar`.

        Returns
        -------
        ReliabilityDisplay
            Itself, with the artists as attributes.
        """
        require_matplotlib()
        import matplotlib.pyplot as plt
        from mpl_toolkits.axes_grid1 import make_axes_locatable

        bins = self.reliability
        if ax is None:
            _, ax = plt.subplots(figsize=(5.0, 5.4))
        # A divider keeps the two axes aligned in any figure.
        count_ax = make_axes_locatable(ax).append_axes("bottom", size="32%", pad=0.12, sharex=ax)

        (self.diagonal_,) = ax.plot(
            [0, 1], [0, 1], linestyle="--", color="0.4", linewidth=1.0, label="perfectly calibrated"
        )
        there = bins.count > 0
        observed = bins.observed[there]
        intervals = np.array([observed - bins.lower[there], bins.upper[there] - observed])
        label = f"calibration error {bins.calibration_error:.3f}"
        defaults: dict[str, Any] = {
            "fmt": "o-",
            "color": DARK,
            "markersize": 5,
            "linewidth": 1.2,
            "capsize": 3,
            "elinewidth": 1.0,
            "label": label if self.name is None else f"{self.name}, {label}",
        }
        self.line_ = ax.errorbar(
            bins.predicted[there], observed, yerr=intervals, **(defaults | line_kw)
        )
        ax.set_ylabel("share that came true (95% interval)")
        ax.set_ylim(-0.03, 1.03)
        ax.tick_params(labelbottom=False)
        self.legend_ = legend_above(ax)

        width = np.diff(bins.edges)
        self.bars_ = count_ax.bar(
            bins.edges[:-1] + width / 2,
            bins.count,
            width=0.9 * width,
            color="0.75",
            edgecolor="black",
            linewidth=0.6,
        )
        count_ax.bar_label(
            self.bars_,
            labels=[f"{n:,}" if n else "" for n in bins.count],
            fontsize=8 if len(bins.count) <= 10 else 6,
            padding=1,
        )
        # Room for the number on the highest bar.
        count_ax.set_ylim(0, 1.25 * max(1, bins.count.max()))
        count_ax.set_xlim(-0.02, 1.02)
        judged = "the most probable class" if bins.kind == "top" else "a class"
        count_ax.set_xlabel(f"predicted probability of {judged}")
        count_ax.set_ylabel("rows" if bins.kind == "top" else "predictions")
        self.axes_ = np.array([ax, count_ax], dtype=object)
        self.figure_ = ax.figure
        return self
