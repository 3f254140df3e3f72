"""Pictures. matplotlib is imported when something is drawn, never by ``import kfree``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: K outside the drawn range hold at most this much of the probability.
_LEFT_OUT = 1e-4
#: Half the drawn range of beta, in standard deviations.
_N_STD = 5.0
_N_BETA = 200


class PosteriorDisplay:
    """The posterior of the number of neighbors K and the strength beta.

    The joint density p(K, beta | Y) is a heat map; below it, on the same K axis, p(K | Y) as bars.
    Use :meth:`from_estimator` to make one.

    Parameters
    ----------
    k : ndarray of shape (n_k,)
        Numbers of neighbors, ascending without gaps.
    beta : ndarray of shape (n_beta,)
        Grid of strengths.
    density : ndarray of shape (n_k, n_beta)
        p(K, beta | Y): integrates over beta, and sums over all K, to 1.
    k_probabilities : ndarray of shape (n_k,)
        p(K | Y).

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of two matplotlib Axes
        The heat map, then the bars.
    mesh_ : matplotlib QuadMesh
        The heat map's artist.
    bars_ : matplotlib BarContainer
        The bars' artist.
    colorbar_ : matplotlib Colorbar
    """

    def __init__(
        self,
        *,
        k: NDArray[np.integer],
        beta: NDArray[np.floating],
        density: NDArray[np.floating],
        k_probabilities: NDArray[np.floating],
    ) -> None:
        self.k = k
        self.beta = beta
        self.density = density
        self.k_probabilities = k_probabilities

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike | None = None,
        *,
        row: int | None = None,
        ax: Axes | None = None,
        **mesh_kw: Any,
    ) -> PosteriorDisplay:
        """Draw the posterior of a fitted estimator.

        Parameters
        ----------
        estimator : KFreeClassifier, or a Pipeline that ends in one
            Fitted.
        X : array-like of shape (n_samples, n_features), default=None
            New rows, one of which is drawn: the posterior given the training labels and this
            row's features. None: the posterior given the training labels alone.
        row : int, default=None
            Which row of `X`. May be left out if there is only one.
        ax : matplotlib Axes, default=None
            Where to draw; the bars are put below it. None makes a new figure.
        **mesh_kw
            Passed to matplotlib's `pcolormesh`.

        Returns
        -------
        PosteriorDisplay
            With the artists as attributes.
        """
        _require_matplotlib()
        check_is_fitted(estimator)
        if X is None:
            if row is not None:
                raise ValueError(f"row={row} picks a row of X, but X is None.")
        else:
            X = _one_row(X, row)
        if isinstance(estimator, Pipeline):
            X = None if X is None else estimator[:-1].transform(X)
            estimator = estimator[-1]
        if X is None:
            k_probabilities = np.asarray(estimator.k_posterior_)
            k = np.arange(1, len(k_probabilities) + 1)
            beta = beta_grid(estimator.beta_mean_, estimator.beta_std_)
            density = estimator.training_density(beta)  # (n_k, n_beta)
        else:
            posterior = estimator.posterior(X)
            k_probabilities, k = posterior.k_probabilities[0], np.asarray(posterior.k)
            beta = beta_grid(posterior.beta_mean[0], posterior.beta_std[0])
            density = posterior.density(beta)[0]  # (n_k, n_beta)
        shown = k_range(k_probabilities)
        display = cls(
            k=k[shown], beta=beta, density=density[shown], k_probabilities=k_probabilities[shown]
        )
        return display.plot(ax=ax, **mesh_kw)

    def plot(self, ax: Axes | None = None, **mesh_kw: Any) -> PosteriorDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; the bars are put below it. None makes a new figure.
        **mesh_kw
            Passed to matplotlib's `pcolormesh`.

        Returns
        -------
        PosteriorDisplay
            Itself, with the artists as attributes.
        """
        _require_matplotlib()
        import matplotlib.pyplot as plt
        from matplotlib.ticker import MaxNLocator
        from mpl_toolkits.axes_grid1 import make_axes_locatable

        if ax is None:
            _, ax = plt.subplots(figsize=(7.0, 5.0))
        # A divider keeps the two K axes aligned whatever the colour bar takes away.
        divider = make_axes_locatable(ax)
        bar_ax = divider.append_axes("bottom", size="40%", pad=0.12, sharex=ax)
        colorbar_ax = divider.append_axes("right", size="3%", pad=0.12)

        # cividis runs from dark to light without a turn: it reads the same to the colour-blind and
        # in black and white.
        defaults: dict[str, Any] = {"cmap": "cividis", "vmin": 0.0, "rasterized": True}
        mesh_kw = defaults | mesh_kw
        self.mesh_ = ax.pcolormesh(self.k, self.beta, self.density.T, shading="nearest", **mesh_kw)
        ax.set_ylabel(r"strength $\beta$")
        ax.tick_params(labelbottom=False)
        self.colorbar_ = ax.figure.colorbar(self.mesh_, cax=colorbar_ax)
        self.colorbar_.set_label(r"$p(K, \beta \mid Y)$")

        self.bars_ = bar_ax.bar(
            self.k, self.k_probabilities, width=0.8, color="0.45", edgecolor="black", linewidth=0.6
        )
        bar_ax.set_xlabel("number of neighbors $K$")
        bar_ax.set_ylabel(r"$p(K \mid Y)$")
        bar_ax.set_xlim(self.k[0] - 0.5, self.k[-1] + 0.5)
        bar_ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))

        self.axes_ = np.array([ax, bar_ax], dtype=object)
        self.figure_ = ax.figure
        return self


def beta_grid(mean: float, std: float) -> NDArray[np.float64]:
    """Strengths from 5 standard deviations below the mean to 5 above, all positive."""
    upper = mean + _N_STD * std
    return np.linspace(max(mean - _N_STD * std, upper / _N_BETA), upper, _N_BETA)


def k_range(k_probabilities: NDArray[np.floating]) -> slice:
    """Return the shortest run of K from which each side leaves out at most half of 1e-4."""
    below = np.cumsum(k_probabilities)
    above = np.cumsum(k_probabilities[::-1])
    first = int(np.searchsorted(below, _LEFT_OUT / 2, side="right"))
    last = len(k_probabilities) - int(np.searchsorted(above, _LEFT_OUT / 2, side="right"))
    return slice(first, last)


def _one_row(X: Any, row: int | None) -> Any:
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if row is None:
        if n_rows != 1:
            raise ValueError(f"X has {n_rows} rows: say with row= which one to draw.")
        row = 0
    if not -n_rows <= row < n_rows:
        raise ValueError(f"row={row} is out of range: X has {n_rows} rows.")
    row %= n_rows
    # pandas would read [row:row + 1] as labels where its index is not an integer range.
    return X.iloc[row : row + 1] if hasattr(X, "iloc") else X[row : row + 1]


def _require_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            'Drawing needs matplotlib: install it with pip install "kfree[plot]".'
        ) from error
