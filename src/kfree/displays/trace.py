"""The picture of the sampler's walk: trace and density of K and beta."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from kfree.displays.drawing import BRIGHT, DARK, LINE_STYLES, MARKERS, require_matplotlib
from kfree.displays.fitted import last_step, one_row, row_number
from kfree.inference.metropolis import Draws, split_r_hat
from kfree.validation import check_sampler

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: More points along a trace than this are a black band.
_MOST_POINTS = 1000
_N_GRID = 200


class TraceDisplay:
    """Trace and density of the sampler's draws of K and beta, a line for each chain.

    Chains that have forgotten where they began overlap on the left and agree on the right; R-hat,
    in the titles, is then near 1.

    Parameters
    ----------
    k, beta : ndarray of shape (n_chains, n_draws)
        Draws for one row.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of shape (2, 2) of matplotlib Axes
        Above K, below beta; on the left the trace, on the right the density.
    traces_, densities_ : list of two lists of matplotlib Line2D
        For K and for beta, one line for each chain.
    legend_ : matplotlib Legend
    """

    def __init__(self, *, k: NDArray[np.integer], beta: NDArray[np.floating]) -> None:
        self.k = k
        self.beta = beta

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        row: int | None = None,
        ax: Any = None,
        **line_kw: Any,
    ) -> TraceDisplay:
        """Draw what the sampler of a fitted classifier did.

        Parameters
        ----------
        estimator : KFreeClassifier with inference="metropolis", or a Pipeline that ends in one
            Fitted.
        X : array-like of shape (n_samples, n_features), default=None
            New rows, for one of which draws are made. None: the draws given the training labels
            alone, which `fit` made.
        row : int, default=None
            Which row of `X`. May be left out if there is only one.
        ax : four matplotlib Axes, default=None
            Trace and density of K, then of beta. None makes a new figure.
        **line_kw
            Passed to matplotlib's `plot`.

        Returns
        -------
        TraceDisplay
            With the artists as attributes.
        """
        require_matplotlib()
        estimator, X = last_step(estimator, one_row(X, row))
        check_sampler(estimator)
        draws = estimator._draws if X is None else estimator.sample(X)
        return cls.from_draws(draws, ax=ax, **line_kw)

    @classmethod
    def from_draws(
        cls, draws: Draws, *, row: int | None = None, ax: Any = None, **line_kw: Any
    ) -> TraceDisplay:
        """Draw what `KFreeClassifier.sample` gave.

        Parameters
        ----------
        draws : Draws
        row : int, default=None
            Which row of the draws. May be left out if there is only one.
        ax : four matplotlib Axes, default=None
            Trace and density of K, then of beta. None makes a new figure.
        **line_kw
            Passed to matplotlib's `plot`.

        Returns
        -------
        TraceDisplay
            With the artists as attributes.
        """
        row = row_number(row, len(draws.k), "draws")
        return cls(k=draws.k[row], beta=draws.beta[row]).plot(ax=ax, **line_kw)

    def plot(self, ax: Any = None, **line_kw: Any) -> TraceDisplay:
        """Draw.

        Parameters
        ----------
        ax : four matplotlib Axes, default=None
            Trace and density of K, then of beta. None makes a new figure.
        **line_kw
            Passed to matplotlib's `plot`.

        Returns
        -------
        TraceDisplay
            Itself, with the artists as attributes.
        """
        require_matplotlib()
        import matplotlib.pyplot as plt
        from matplotlib.ticker import MaxNLocator

        if ax is None:
            _, ax = plt.subplots(
                2, 2, figsize=(9.0, 5.2), width_ratios=(3, 1), sharey="row", layout="constrained"
            )
        flat = np.ravel(np.asarray(ax, dtype=object))
        if len(flat) != 4:
            raise ValueError(
                f"ax must hold four Axes, trace and density of K and of beta; got {len(flat)}."
            )
        self.axes_, self.figure_ = flat.reshape(2, 2), flat[0].figure
        shares, curves = _k_shares(self.k), _beta_curves(self.beta)
        self.traces_, self.densities_ = [], []
        for (trace_ax, density_ax), values, lines, label in (
            (self.axes_[0], self.k, shares, "number of neighbors $K$"),
            (self.axes_[1], self.beta, curves, r"strength $\beta$"),
        ):
            self.traces_.append(_draw_traces(trace_ax, values, line_kw))
            self.densities_.append(_draw_densities(density_ax, lines, line_kw))
            trace_ax.set_ylabel(label)
            density_ax.tick_params(labelleft=False)
            if values.shape[1] >= 4:
                trace_ax.set_title(
                    f"R-hat {split_r_hat(values[None].astype(float))[0]:.3f}", fontsize=10
                )
        self.axes_[0, 0].yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        step = _stride(self.k.shape[1])
        self.axes_[1, 0].set_xlabel("draw" if step == 1 else f"draw (one in {step} is shown)")
        self.axes_[0, 1].set_xlabel("share of draws")
        self.axes_[1, 1].set_xlabel("density")
        self.legend_ = self.figure_.legend(
            handles=self.densities_[0], loc="outside upper center", ncols=8, frameon=False
        )
        return self


def _draw_traces(ax: Axes, values: NDArray, line_kw: dict[str, Any]) -> list:
    step = _stride(values.shape[1])
    draws = np.arange(1, values.shape[1] + 1)[::step]
    return [
        ax.plot(
            draws,
            chain[::step],
            **({"color": color, "linewidth": 0.7, "drawstyle": "steps-post"} | line_kw),
        )[0]
        for chain, color in zip(values, _colors(len(values)), strict=True)
    ]


def _k_shares(k: NDArray[np.integer]) -> list[tuple[NDArray, NDArray]]:
    """K, and the share of each chain's draws that have it."""
    seen = np.arange(k.min(), k.max() + 1)
    counts = [np.bincount(chain - seen[0], minlength=len(seen)) for chain in k]
    return [(seen, count / k.shape[1]) for count in counts]


def _beta_curves(beta: NDArray[np.floating]) -> list[tuple[NDArray, NDArray]]:
    """Strengths, and each chain's smoothed density; zeros for a chain that stood still."""
    grid = np.linspace(beta.min(), beta.max(), _N_GRID)
    return [
        (grid, stats.gaussian_kde(chain)(grid)) if np.ptp(chain) > 0 else (grid, np.zeros(_N_GRID))
        for chain in beta
    ]


def _draw_densities(
    ax: Axes, curves: list[tuple[NDArray, NDArray]], line_kw: dict[str, Any]
) -> list:
    lines = []
    for number, ((at, height), color) in enumerate(zip(curves, _colors(len(curves)), strict=True)):
        defaults: dict[str, Any] = {
            "color": color,
            "linestyle": LINE_STYLES[number % len(LINE_STYLES)],
            "linewidth": 1.3,
            # A K is a point of its own, a beta is not.
            "marker": MARKERS[number % len(MARKERS)] if at.dtype.kind == "i" else None,
            "markersize": 4,
            "label": f"chain {number + 1}",
        }
        # The value runs upwards, beside its trace.
        lines += ax.plot(height, at, **(defaults | line_kw))
    ax.set_xlim(left=0.0)
    return lines


def _stride(n_draws: int) -> int:
    return -(-n_draws // _MOST_POINTS)


def _colors(n_chains: int) -> list:
    if n_chains <= 2:
        return [DARK, BRIGHT][:n_chains]
    from matplotlib import colormaps

    # Not the lightest end, which would be lost on white.
    return list(colormaps["cividis"](np.linspace(0.0, 0.8, n_chains)))
