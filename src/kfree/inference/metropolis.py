"""The paper's sampler: a Metropolis-Hastings walk over (K, beta, z'), many chains side by side.

Proposals: K uniform on its candidates, beta normal around its current value, z' from its
conditional given the proposed K and beta. With these the acceptance probability is the ratio of

    p(K) p(beta) sum_c p(z, z' = c | beta, K)

at the proposal and at the current state (section "Estimation of PKNN by Markov chain Monte Carlo",
the simplified acceptance probability; the normal proposal is symmetric, so its ratio is one). Every
draw is kept, also the repeated one after a rejection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

# Split R-hat above this is worth a warning.
DISAGREEMENT = 1.05

# From the candidate of K and the beta of each state: the log target, and p(z' = c | beta, K)
# (n_states, n_classes), or None if there is no open label.
Target = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray | None]]


@dataclass(frozen=True)
class Settings:
    """How long and how widely the sampler walks."""

    n_draws: int
    n_burn_in: int
    n_chains: int
    proposal_variance: float


@dataclass(frozen=True)
class Draws:
    """Draws from p(K, beta, z' | Y), for each row and chain.

    Attributes
    ----------
    k, beta : ndarray of shape (n_rows, n_chains, n_draws)
    label : ndarray of shape (n_rows, n_chains, n_draws) or None
        The class of the open label, as its index in `classes_`.
    acceptance : ndarray of shape (n_rows, n_chains)
        The share of proposals accepted after the burn-in.
    class_probabilities, class_squares : ndarray of shape (n_rows, n_classes) or None
        Means over the draws of p(z' = c | beta, K, Y) and of its square.
    """

    k: np.ndarray
    beta: np.ndarray
    label: np.ndarray | None
    acceptance: np.ndarray
    class_probabilities: np.ndarray | None
    class_squares: np.ndarray | None

    def take(self, rows: slice) -> Draws:
        """The draws of some of the rows."""
        parts: Any = (None if values is None else values[rows] for values in self._fields())
        return Draws(*parts)

    @staticmethod
    def together(parts: list[Draws]) -> Draws:
        """The draws of several blocks of rows, one after the other."""
        columns = zip(*(part._fields() for part in parts), strict=True)
        whole: Any = (None if c[0] is None else np.concatenate(c) for c in columns)
        return Draws(*whole)

    def _fields(self) -> tuple:
        return (
            self.k,
            self.beta,
            self.label,
            self.acceptance,
            self.class_probabilities,
            self.class_squares,
        )

    def to_arviz(self) -> Any:
        """The draws as an xarray DataTree, the form that ArviZ 1.x takes: (chain, draw, row)."""
        base, _ = _arviz()
        data = {"n_neighbors": self.k, "beta": self.beta}
        if self.label is not None:
            data["label"] = self.label
        posterior = {name: np.moveaxis(values, 0, -1) for name, values in data.items()}
        return base.from_dict({"posterior": posterior}, dims={name: ["row"] for name in posterior})

    def diagnostics(self) -> Diagnostics:
        """Effective sample size, rank-normalized R-hat and Monte Carlo error, by ArviZ."""
        _, stats = _arviz()

        def each(name: str, values: np.ndarray, method: str) -> np.ndarray:
            function = getattr(stats, name)
            values = values.astype(float)
            return np.asarray(function(values, chain_axis=1, draw_axis=2, method=method))

        return Diagnostics(
            acceptance=self.acceptance.mean(axis=1),
            k_ess=each("ess", self.k, "bulk"),
            beta_ess=each("ess", self.beta, "bulk"),
            k_r_hat=each("rhat", self.k, "rank"),
            beta_r_hat=each("rhat", self.beta, "rank"),
            k_mcse=each("mcse", self.k, "mean"),
            beta_mcse=each("mcse", self.beta, "mean"),
        )


@dataclass(frozen=True)
class Diagnostics:
    """How well the chains of each row have mixed; all of shape (n_rows,)."""

    acceptance: np.ndarray
    k_ess: np.ndarray
    beta_ess: np.ndarray
    k_r_hat: np.ndarray
    beta_r_hat: np.ndarray
    k_mcse: np.ndarray
    beta_mcse: np.ndarray


def sample(
    target: Target,
    k_values: np.ndarray,
    start_beta: np.ndarray,
    settings: Settings,
    streams: list[np.random.Generator],
    progress: Callable[[float], None] | None = None,
) -> Draws:
    """Walk from a random K in all chains of all rows at once.

    Parameters
    ----------
    target : of the n_rows * n_chains states, the chains of a row side by side
    k_values : (n_k,) the candidates of K
    start_beta : (n_k,) where beta starts, by candidate
    streams : a generator for each row, so that a row's draws do not depend on the others
    progress : called with the share that is done
    """
    n_steps = settings.n_burn_in + settings.n_draws
    shape = (settings.n_chains, n_steps)
    n_k = len(k_values)
    proposed_k = np.concatenate([s.integers(1, n_k + 1, shape) for s in streams]) - 1
    stride = np.concatenate([s.standard_normal(shape) for s in streams])
    stride *= np.sqrt(settings.proposal_variance)
    log_uniform = np.log(np.concatenate([s.random(shape) for s in streams]))
    uniform = np.concatenate([s.random(shape) for s in streams])
    k = np.concatenate([s.integers(1, n_k + 1, settings.n_chains) for s in streams]) - 1
    scatter = np.concatenate([s.standard_normal(settings.n_chains) for s in streams])
    beta = start_beta[k] * np.exp(0.3 * scatter)

    log_p, chances = target(k, beta)
    label = None if chances is None else _draw(chances, np.full(len(k), 0.5))
    n_states = len(k)
    kept_k = np.empty((n_states, settings.n_draws), dtype=np.int32)
    kept_beta = np.empty((n_states, settings.n_draws))
    kept_label = None if label is None else np.empty_like(kept_k)
    total = None if chances is None else np.zeros_like(chances)
    squares = None if chances is None else np.zeros_like(chances)
    n_accepted = np.zeros(n_states)
    for step in range(n_steps):
        new_k, new_beta = proposed_k[:, step], beta + stride[:, step]
        # The prior of beta is zero there.
        possible = new_beta > 0.0
        new_log_p, new_chances = target(new_k, np.where(possible, new_beta, beta))
        accept = possible & (log_uniform[:, step] < new_log_p - log_p)
        k = np.where(accept, new_k, k)
        beta = np.where(accept, new_beta, beta)
        log_p = np.where(accept, new_log_p, log_p)
        if chances is not None and new_chances is not None and label is not None:
            label = np.where(accept, _draw(new_chances, uniform[:, step]), label)
            chances = np.where(accept[:, None], new_chances, chances)
        draw = step - settings.n_burn_in
        if draw >= 0:
            kept_k[:, draw], kept_beta[:, draw] = k, beta
            n_accepted += accept
            if kept_label is not None and total is not None and squares is not None:
                assert label is not None and chances is not None
                kept_label[:, draw] = label
                total += chances
                squares += chances * chances
        if progress is not None and step % 100 == 99:
            progress((step + 1) / n_steps)

    by_row = (len(streams), settings.n_chains, settings.n_draws)

    def average(values: np.ndarray | None) -> np.ndarray | None:
        if values is None:
            return None
        mean = values.reshape(len(streams), settings.n_chains, -1).mean(axis=1)
        return mean / settings.n_draws

    return Draws(
        k_values.astype(np.int32)[kept_k].reshape(by_row),
        kept_beta.reshape(by_row),
        None if kept_label is None else kept_label.reshape(by_row),
        n_accepted.reshape(by_row[:2]) / settings.n_draws,
        average(total),
        average(squares),
    )


def split_r_hat(values: np.ndarray) -> np.ndarray:
    """Gelman and Rubin's R-hat of half chains: (n_rows,) from (n_rows, n_chains, n_draws)."""
    half = values.shape[2] // 2
    parts = np.concatenate([values[:, :, :half], values[:, :, half : 2 * half]], axis=1)
    within = parts.var(axis=2, ddof=1).mean(axis=1)
    between = parts.mean(axis=2).var(axis=1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt((within * (half - 1) / half + between) / within)
    # Chains that do not move agree only if they stand at the same place.
    return np.where(within > 0, ratio, np.where(between > 0, np.inf, 1.0))


def disagreement(draws: Draws) -> str | None:
    """A sentence that names the parameter whose chains disagree, or None."""
    if draws.k.shape[2] < 4:
        return None
    worst = {
        "K": split_r_hat(draws.k.astype(float)),
        "beta": split_r_hat(draws.beta),
    }
    named = [
        f"{name} (R-hat up to {values.max():.2f} in {(values > DISAGREEMENT).sum()} of "
        f"{len(values)} rows)"
        for name, values in worst.items()
        if (values > DISAGREEMENT).any()
    ]
    if not named:
        return None
    return f"The chains disagree about {' and '.join(named)}; raise n_draws or n_burn_in."


def _draw(chances: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """One class for each state by its probabilities."""
    below = np.cumsum(chances, axis=1)[:, :-1] < uniform[:, None]
    return below.sum(axis=1)


def _arviz() -> tuple[Any, Any]:
    try:
        import arviz_base
        from arviz_stats.base import array_stats
    except ImportError as error:
        raise ImportError(
            "Diagnostics of the sampler need ArviZ; install it with pip install 'kfree[mcmc]'."
        ) from error
    return arviz_base, array_stats
