"""Which candidates of K, and which beta, the label of a row may reach.

Candidates of no weight are left out, and the nodes of beta end where the posterior of the training
labels ends. One more label changes the likelihood, but by no more than a slope in beta: this bounds
what it can bring back.
"""

from __future__ import annotations

import numpy as np

from kfree.inference.quadrature import log_sum
from kfree.inference.rules import NEGLIGIBLE
from kfree.likelihood.conditional import by_label
from kfree.likelihood.open_labels import OpenLabels
from kfree.likelihood.segments import segment_max
from kfree.likelihood.slots import ByLabel
from kfree.training import Model

# The slopes at which the bound for candidates that were left out is worked out.
N_SLOPES = 65


def most_slope(model: Model, rows: OpenLabels) -> np.ndarray:
    """At most how fast each row's label changes the log likelihood with beta: (n_rows, n_k).

    A neighbor more or less changes a log term by at most beta / K; where counts are divided by the
    size of the neighborhood, by twice that. The own term of a held-out row leaves the sum, and its
    slope is the largest share: at most one, but where neighbors count on both sides and are divided
    by K.
    """
    slope = np.zeros((rows.n_rows, model.n_k))
    by_size = model.table.by_size
    if rows.joint or not (model.table.nearest or by_size or rows.own_labels is None):
        changes = rows.rows.n_changes() / model.candidates.k
    if rows.own_labels is not None:
        # Each neighbor on both sides gains and loses.
        slope += 1.0 if model.table.nearest or by_size else 0.5 * changes
    if rows.joint:
        slope += (2.0 if by_size else 1.0) * changes
    return slope


def returning(
    model: Model, rows: OpenLabels, most: np.ndarray, log_total: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose label may bring back candidates that were left out, and these candidates.

    What a label does to log p(z | beta, K) changes with beta at most by a slope, which bounds the
    weight of a candidate: first from nothing at beta = 0, then, where that is not enough, from the
    value at the candidate's mode.

    Parameters
    ----------
    most : (n_rows, n_k) as `most_slope` gives it
    log_total : (n_rows,) the log mass of the candidates looked at so far

    Returns
    -------
    rows, candidates : rising
    """
    posterior, curves = model.posterior, model.posterior.curves
    others = np.setdiff1d(np.arange(model.n_k), posterior.rule.candidate)
    constant = posterior.log_prior - posterior.log_normalizer
    grid = max(1.0, float(most.max())) * np.linspace(0.0, 1.0, N_SLOPES) ** 2

    def reached(which: np.ndarray, at: np.ndarray, origin: np.ndarray | float, more) -> np.ndarray:
        """Log of the integrals of exp(slope |beta - origin| + more), or above: (n_rows, n).

        No likelihood is above one, so that no integral is above the candidate's prior.
        """
        table, each = np.empty((N_SLOPES, len(which))), np.arange(len(which))
        away = np.abs(curves.beta[which] - np.reshape(origin, (-1, 1)))
        for j in np.unique(at):
            inside = log_sum(curves.log_mass[which] + grid[j] * away)
            before = curves.log_before(grid[j], model.prior.shape)[which] + grid[j] * origin
            beyond = curves.log_beyond(grid[j])[which] - grid[j] * origin
            table[j] = np.logaddexp(np.logaddexp(inside, before), beyond)
        return np.minimum(table[at, each] + more, 0.0) + constant[which]

    place = np.searchsorted(grid, most)
    own = 0.0 if rows.own_labels is None else np.log(rows.n_classes)
    limit = log_total[:, None] - NEGLIGIBLE
    back = reached(others, place[:, others], 0.0, own) > limit
    which, others = np.flatnonzero(back.any(axis=1)), others[back.any(axis=0)]
    if not len(which):
        return which, others
    values, mode = by_label(rows.take(which)), curves.mode[others]
    at_mode = np.stack(
        [
            values(int(i), one[None]).conditional().log_total[:, 0]
            for i, one in zip(others, mode, strict=True)
        ],
        axis=1,
    )
    bound = reached(others, place[which][:, others], mode, at_mode)
    back = bound > limit[which]
    return which[back.any(axis=1)], others[back.any(axis=0)]


def ends_in_doubt(model: Model, most: np.ndarray) -> np.ndarray:
    """Candidates of which a label may carry the posterior of beta beyond its nodes: (n_k,) bool.

    By the slopes (n_rows, n_k), which bound what a label does.
    """
    return ~model.posterior.curves.covers(most.max(axis=0))


def log_outside(model: Model, i: int, values: ByLabel) -> np.ndarray:
    """At most the log mass outside the nodes of the i-th candidate: (n_rows,).

    From the values at the `ends` of its nodes. For each label the log likelihood is concave in
    beta, as that of an exponential family, so that beyond the nodes it falls at least as it does
    before the last ones.
    """
    posterior, curves = model.posterior, model.posterior.curves
    beta, log_mass = curves.ends(i)
    log_mass = log_mass + posterior.log_prior[i] - posterior.log_normalizer
    outside = curves.log_outside(i, beta, log_mass + values.value, model.prior.shape)
    return segment_max(outside, values.slots.indptr, -np.inf) + np.log(values.slots.n_classes)
