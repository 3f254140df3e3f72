"""The decision map: how sure the classifier is over a slice of feature space, and why not surer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from kfree.candidates import most_probable
from kfree.displays.drawing import MARKERS, require_matplotlib, written
from kfree.displays.fitted import last_step

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The slice reaches this share of the range of the data beyond them.
_MARGIN = 0.08
_PANELS = (
    ("confidence", "probability of the most probable class", "confidence"),
    ("variance_within", "variance if k and $\\beta$ were known", "within models"),
    ("variance_between", "variance from not knowing k and $\\beta$", "between models"),
)


@dataclass(frozen=True)
class DecisionMap:
    """What a classifier says on a grid of two features, the other features held fixed.

    Attributes
    ----------
    names : tuple of two str
        Of the feature to the right and of the feature upwards.
    x, y : ndarray of shape (n_x,) and (n_y,)
        Grid of the two features.
    classes : ndarray of shape (n_classes,)
    predicted : ndarray of shape (n_y, n_x) of int
        The most probable class, as its index in `classes`.
    confidence : ndarray of shape (n_y, n_x)
        The probability p of that class.
    variance_within, variance_between : ndarray of shape (n_y, n_x)
        The parts of its variance p (1 - p): what stays when K and beta are known, and what comes
        from not knowing them.
    """

    names: tuple[str, str]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    classes: NDArray[Any]
    predicted: NDArray[np.intp]
    confidence: NDArray[np.float64]
    variance_within: NDArray[np.float64]
    variance_between: NDArray[np.float64]


def decision_map(
    estimator: Any,
    X: Any,
    features: Sequence[Any] = (0, 1),
    *,
    at: Any = None,
    grid_resolution: int = 60,
) -> DecisionMap:
    """Ask a classifier on a grid of two features.

    Parameters
    ----------
    estimator : KFreeClassifier, or a Pipeline that ends in one
        Fitted.
    X : array-like or DataFrame of shape (n_samples, n_features)
        The grid covers the range of these rows, and a little more.
    features : two int or str, default=(0, 1)
        Numeric features of the slice: column numbers or, for a data frame, names.
    at : array-like of shape (n_features,), default=None
        Where the other features are held. None: at the median of `X`, or at the most frequent
        value of a column that is not numeric.
    grid_resolution : int, default=60
        Number of grid points along each feature.

    Returns
    -------
    DecisionMap
    """
    frame: Any = X if hasattr(X, "iloc") else np.asarray(X, dtype=float)
    columns, n_features = _columns(frame), frame.shape[1]
    right, up = _column_numbers(columns, features)
    if at is not None and np.shape(at) != (n_features,):
        raise ValueError(
            f"at must hold one value for each of the {n_features} features; "
            f"got shape {np.shape(at)}."
        )
    if grid_resolution < 2:
        raise ValueError(f"grid_resolution must be at least 2; got {grid_resolution!r}.")
    x, y = (_grid(frame, columns, number, grid_resolution) for number in (right, up))
    fixed = list(at) if at is not None else [_middle(frame, j) for j in range(n_features)]
    flat = {right: np.tile(x, len(y)), up: np.repeat(y, len(x))}  # (n_y * n_x,) each
    rows = _rows(frame, columns, fixed, flat)

    classifier, rows = last_step(estimator, rows)
    known = classifier.posterior(rows)
    predicted = most_probable(known.class_probabilities)

    def of_predicted(values: NDArray) -> NDArray:
        return values[np.arange(len(predicted)), predicted].reshape(len(y), len(x))

    named = hasattr(frame, "iloc")
    names = [str(columns[j]) if named else f"feature {j}" for j in (right, up)]
    return DecisionMap(
        names=(names[0], names[1]),
        x=x,
        y=y,
        classes=classifier.classes_,
        predicted=predicted.reshape(len(y), len(x)),
        confidence=of_predicted(known.class_probabilities),
        variance_within=of_predicted(known.class_variance_within),
        variance_between=of_predicted(known.class_variance_between),
    )


class DecisionMapDisplay:
    """Confidence and the two parts of the uncertainty over a slice of feature space.

    Three panels: the probability p of the most probable class; the part of the variance p (1 - p)
    that would stay if the number of neighbors and the strength were known; the part that comes
    from not knowing them. Lines separate the classes, whose names are written where they are most
    probable, and rows of data have a marker for each class: no color is needed to tell them apart.

    Parameters
    ----------
    map : DecisionMap
        What is drawn.
    points : ndarray of shape (n_samples, 2), default=None
        Rows of data to draw on the map of the confidence.
    labels : ndarray of shape (n_samples,), default=None
        Their labels.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of three matplotlib Axes
    meshes_ : list of three matplotlib QuadMesh
    colorbars_ : list of three matplotlib Colorbar
    names_ : list of matplotlib Text
        The names of the classes that found room.
    points_ : list of matplotlib PathCollection
        One for each class; empty without labels.
    """

    def __init__(
        self,
        *,
        map: DecisionMap,
        points: NDArray | None = None,
        labels: NDArray | None = None,
    ) -> None:
        self.map = map
        self.points = points
        self.labels = labels

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        features: Sequence[Any] = (0, 1),
        at: Any = None,
        grid_resolution: int = 60,
        ax: Sequence[Axes] | None = None,
        **mesh_kw: Any,
    ) -> DecisionMapDisplay:
        """Draw the decision map of a fitted classifier.

        Parameters
        ----------
        estimator : KFreeClassifier, or a Pipeline that ends in one
            Fitted.
        X : array-like or DataFrame of shape (n_samples, n_features)
            The map covers the range of these rows, and a little more.
        y : array-like of shape (n_samples,), default=None
            Labels of `X`. If given, the rows are drawn on the first panel; those off the slice,
            as their other features differ, are drawn too.
        features : two int or str, default=(0, 1)
            Numeric features of the slice: column numbers or, for a data frame, names.
        at : array-like of shape (n_features,), default=None
            Where the other features are held. None: at the median of `X`, or at the most frequent
            value of a column that is not numeric.
        grid_resolution : int, default=60
            Number of grid points along each feature.
        ax : three matplotlib Axes, default=None
            Where to draw. None makes a new figure.
        **mesh_kw
            Passed to matplotlib's `pcolormesh`.

        Returns
        -------
        DecisionMapDisplay
            With the artists as attributes.
        """
        require_matplotlib()
        found = decision_map(estimator, X, features, at=at, grid_resolution=grid_resolution)
        points = labels = None
        if y is not None:
            frame: Any = X if hasattr(X, "iloc") else np.asarray(X)
            numbers = _column_numbers(_columns(frame), features)
            points = np.column_stack([_values(frame, j) for j in numbers]).astype(float)
            labels = np.asarray(y)
        return cls(map=found, points=points, labels=labels).plot(ax=ax, **mesh_kw)

    def plot(self, ax: Sequence[Axes] | None = None, **mesh_kw: Any) -> DecisionMapDisplay:
        """Draw.

        Parameters
        ----------
        ax : three matplotlib Axes, default=None
            Where to draw. None makes a new figure.
        **mesh_kw
            Passed to matplotlib's `pcolormesh`.

        Returns
        -------
        DecisionMapDisplay
            Itself, with the artists as attributes.
        """
        require_matplotlib()
        import matplotlib.pyplot as plt
        from matplotlib.ticker import MaxNLocator

        if ax is None:
            _, ax = plt.subplots(
                1, 3, figsize=(13.0, 4.6), sharex=True, sharey=True, layout="constrained"
            )
        axes = np.ravel(np.asarray(ax, dtype=object))
        if len(axes) != 3:
            raise ValueError(f"ax must hold three Axes, one for each panel; got {len(axes)}.")
        self.axes_, self.figure_ = axes, axes[0].figure
        self.meshes_, self.colorbars_ = [], []
        shown = self.map
        for panel, (field, label, title) in zip(axes, _PANELS, strict=True):
            defaults: dict[str, Any] = {"cmap": "cividis", "rasterized": True}
            if field != "confidence":
                defaults["vmin"] = 0.0
            mesh = panel.pcolormesh(
                shown.x, shown.y, getattr(shown, field), shading="nearest", **(defaults | mesh_kw)
            )
            bar = self.figure_.colorbar(
                mesh, ax=panel, location="bottom", label=label, aspect=30, ticks=MaxNLocator(5)
            )
            self.meshes_.append(mesh)
            self.colorbars_.append(bar)
            self._draw_borders(panel)
            panel.set_title(title)
            panel.set_xlabel(written(shown.names[0], 40))
            panel.set_ylabel(written(shown.names[1], 40))
        self.points_ = self._draw_points(axes[0])
        self.names_ = self._draw_names(axes[-1] if self.points_ else axes[0])
        return self

    def _draw_borders(self, panel: Axes) -> None:
        shown = self.map
        for c in np.unique(shown.predicted):
            inside = (shown.predicted == c).astype(float)
            if inside.all():
                return
            # White on black: one of the two stands out from any shade.
            for color, width in (("black", 2.2), ("white", 0.9)):
                panel.contour(
                    shown.x, shown.y, inside, levels=[0.5], colors=color, linewidths=width
                )

    def _draw_points(self, panel: Axes) -> list:
        if self.points is None or self.labels is None:
            return []
        drawn = []
        for c, name in enumerate(self.map.classes):
            mine = self.points[self.labels == name]
            drawn.append(
                panel.scatter(
                    mine[:, 0],
                    mine[:, 1],
                    marker=MARKERS[c % len(MARKERS)],
                    s=16,
                    # The second dozen of classes has the same markers, filled.
                    facecolor="white" if c < len(MARKERS) else "0.6",
                    edgecolor="black",
                    linewidth=0.7,
                    label=written(name),
                )
            )
        self.figure_.legend(
            handles=drawn, loc="outside lower center", ncols=min(len(drawn), 8), frameon=False
        )
        return drawn

    def _draw_names(self, panel: Axes) -> list:
        """Write each class's name where it is farthest from other classes, if there is room."""
        shown = self.map
        placed: list[Any] = []
        texts: list[Any] = []
        self.figure_.canvas.draw()
        classes, sizes = np.unique(shown.predicted, return_counts=True)
        for c in classes[np.argsort(-sizes, kind="stable")]:
            # The edge of the map is an edge, too: names stay inside.
            inside = np.pad(shown.predicted == c, 1)
            depth = ndimage.distance_transform_edt(inside)[1:-1, 1:-1]
            i, j = np.unravel_index(depth.argmax(), depth.shape)
            text = panel.text(
                float(shown.x[j]),
                float(shown.y[i]),
                written(shown.classes[c], 14),
                ha="center",
                va="center",
                fontsize=9,
                bbox={"boxstyle": "round,pad=0.2", "facecolor": "white", "linewidth": 0.6},
            )
            box = text.get_window_extent().padded(6)
            if any(box.overlaps(other) for other in placed):
                text.remove()
                continue
            placed.append(box)
            texts.append(text)
        return texts


def _columns(frame: Any) -> list:
    return list(frame.columns) if hasattr(frame, "iloc") else list(range(frame.shape[1]))


def _column_numbers(columns: list, features: Sequence[Any]) -> tuple[int, int]:
    if isinstance(features, str) or len(features) != 2:
        raise ValueError(f"features must name two columns; got {features!r}.")
    numbers = []
    for feature in features:
        if feature in columns:
            numbers.append(columns.index(feature))
        elif isinstance(feature, (int, np.integer)) and 0 <= feature < len(columns):
            numbers.append(int(feature))
        else:
            raise ValueError(
                f"features has {feature!r}, which is no column of X; X has {len(columns)} columns."
            )
    if numbers[0] == numbers[1]:
        raise ValueError(f"features must name two different columns; got {features!r}.")
    return numbers[0], numbers[1]


def _values(frame: Any, number: int) -> NDArray:
    return np.asarray(frame.iloc[:, number] if hasattr(frame, "iloc") else frame[:, number])


def _grid(frame: Any, columns: list, number: int, n: int) -> NDArray[np.float64]:
    try:
        values = _values(frame, number).astype(float)
    except (TypeError, ValueError):
        raise ValueError(
            f"features has {columns[number]!r}, which is not numeric; a slice needs two numeric "
            "columns."
        ) from None
    low, high = np.nanmin(values), np.nanmax(values)
    margin = _MARGIN * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, n)


def _middle(frame: Any, number: int) -> Any:
    """The median of numbers and dates, the most frequent value of anything else."""
    values = _values(frame, number)
    there = (
        ~np.asarray(frame.iloc[:, number].isna()) if hasattr(frame, "iloc") else values == values
    )
    values = values[there]
    if not len(values):
        return np.nan
    if values.dtype.kind in "Mm":
        return np.sort(values)[len(values) // 2]
    if values.dtype.kind != "b":
        try:
            return float(np.median(values.astype(float)))
        except (TypeError, ValueError):
            pass
    return Counter(values.tolist()).most_common(1)[0][0]


def _rows(frame: Any, columns: list, fixed: list, flat: dict[int, NDArray]) -> Any:
    """Rows of the same kind as those of `frame`."""
    n = len(next(iter(flat.values())))
    if not hasattr(frame, "iloc"):
        rows = np.tile(np.asarray(fixed, dtype=float), (n, 1))
        for number, values in flat.items():
            rows[:, number] = values
        return rows
    filled = {
        column: flat[j] if j in flat else np.array([fixed[j]] * n)
        for j, column in enumerate(columns)
    }
    return type(frame)(filled, columns=columns)
