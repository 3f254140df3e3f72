"""What becomes of the training points' terms when a new row enters their lists.

Among lists of nearest neighbors a point exchanges its last neighbor for the row. What that does to
its term depends on the row's class alone, so that it is worked out once for a fitted model, for the
candidates and betas that most rows are averaged over. What a prediction then adds up is a product.
Candidates that were left out, but that a label might bring back, are looked at at the mode of beta.
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
    """Changes of the points' log terms, by the place of the candidate."""

    # Pairs of betas (n_beta,) and the changes there (n_points, n_classes * n_beta).
    known: dict[int, list[tuple[np.ndarray, np.ndarray]]]

    def at(self, i: int, beta: np.ndarray) -> np.ndarray | None:
        """The changes at the i-th candidate; None if they are not known at these betas."""
        for there, changes in self.known.get(i, ()):
            if np.array_equal(there, beta):
                return changes
        return None


def entering(
    graph: NeighborGraph,
    table: Neighborhoods,
    labels: np.ndarray,
    n_classes: int,
    betas: dict[int, list[np.ndarray]],
) -> Entering:
    """The changes at some candidates, by their place, and at several betas of each."""
    counts = RisingCounts(table, labels, n_classes)
    known = {}
    for i in sorted(betas):
        count = counts.rise_to(i)
        shown_by, gone, state = states(count, labels, labels[graph.last(i)])
        those = count[:, shown_by], labels[shown_by], gone
        known[i] = [(beta, exchanged(*those, beta[None] / table.k[i])[state]) for beta in betas[i]]
    return Entering(known)
