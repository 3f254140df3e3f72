"""The picture of p(K, beta | Y)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfree.displays.drawing import require_matplotlib, set_k_axis
from kfree.displays.fitted import candidates, last_step, one_row
from kfree.displays.k_posterior import bar_widths
from kfree.displays.ranges import beta_grid, k_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        require_matplotlib()
        estimator, X = last_step(estimator, one_row(X, row))
        if X is None:
            k_probabilities = np.asarray(estimator.k_posterior_)
            k = candidates(estimator)
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
        require_matplotlib()
        import matplotlib.pyplot as plt
        from mpl_toolkits.axes_grid1 import make_axes_locatable

        if ax is None:
            _, ax = plt.subplots(figsize=(7.0, 5.0))
        # A divider keeps the two K axes aligned whatever the color bar takes away.
        divider = make_axes_locatable(ax)
        bar_ax = divider.append_axes("bottom", size="40%", pad=0.12, sharex=ax)
        colorbar_ax = divider.append_axes("right", size="3%", pad=0.12)

        # cividis runs from dark to light without a turn: it reads the same to the color-blind and
        # in black and white.
        defaults: dict[str, Any] = {"cmap": "cividis", "vmin": 0.0, "rasterized": True}
        mesh_kw = defaults | mesh_kw
        self.mesh_ = ax.pcolormesh(self.k, self.beta, self.density.T, shading="nearest", **mesh_kw)
        ax.set_ylabel(r"strength $\beta$")
        ax.tick_params(labelbottom=False)
        self.colorbar_ = ax.figure.colorbar(self.mesh_, cax=colorbar_ax)
        self.colorbar_.set_label(r"$p(K, \beta \mid Y)$")

        self.bars_ = bar_ax.bar(
            self.k,
            self.k_probabilities,
            width=bar_widths(self.k),
            color="0.45",
            edgecolor="black",
            linewidth=0.6,
        )
        set_k_axis(bar_ax, self.k)
        bar_ax.set_ylabel(r"$p(K \mid Y)$")

        self.axes_ = np.array([ax, bar_ax], dtype=object)
        self.figure_ = ax.figure
        return self
