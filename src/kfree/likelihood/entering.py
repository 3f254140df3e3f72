"""What becomes of the training points' terms when a new row enters their lists.

Among lists of nearest neighbors a point exchanges its last neighbor for the row. What that does to
its term depends on the row's class and on the point's state alone, so that it is worked out once
for a fitted model, for the candidates and betas that most rows are averaged over. Candidates that
were left out, but that a label might bring back, are looked at at the mode of beta.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kfree.likelihood.counts import RisingCounts
from kfree.likelihood.exchange import exchanged, states
from kfree.neighbors.graph import NeighborGraph
from kfree.neighbors.structures import Neighborhoods


@dataclass(frozen=True)
class Entering:
    """States of the points and the changes of their log terms, by the place of the candidate."""

    # The state of each point (n_points,); betas (n_beta,); changes (n_states, n_classes, n_beta).
    known: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]

    def at(self, i: int, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """States and their changes (n_states, n_classes * n_beta) at the i-th candidate.

        None if they are not known at these betas, which must be the first of those there.
        """
        if i not in self.known:
            return None
        state, there, changes = self.known[i]
        if not np.array_equal(there[: len(beta)], beta):
            return None
        return state, changes[:, :, : len(beta)].reshape(len(changes), -1)


def entering(
    graph: NeighborGraph,
    table: Neighborhoods,
    labels: np.ndarray,
    n_classes: int,
    betas: dict[int, np.ndarray],
) -> Entering:
    """The changes at some candidates, by their place, and at betas (n_beta,) of each."""
    counts = RisingCounts(table, labels, labels, n_classes)
    known = {}
    for i in sorted(betas):
        count = counts.by_class(i)
        shown_by, gone, state = states(count, labels, labels[graph.last(i)])
        those = count[shown_by], labels[shown_by], gone
        changes = exchanged(*those, betas[i][None] / table.k[i])
        known[i] = state.astype(np.int32), betas[i], changes
    return Entering(known)
