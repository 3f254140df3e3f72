"""A forest of extra trees as one more voice: class probabilities, out of bag for training rows.

    g_ic = log((p_ic + e) / e),    e = 0.5 / 37

e is half a vote where 37 trees of 100 are out of bag for a row. Extra trees draw their thresholds
at random, which is quicker than to seek the best, and smoother. The trees are kept as plain arrays,
so that a model file can hold them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kfree.field.features import Spoken

N_TREES = 150
FEATURES = 1
FLOOR = 0.5 / 37


@dataclass(frozen=True)
class Forest:
    """Trees one after the other; a leaf is a node that is its own left child."""

    roots: np.ndarray  # (n_trees,)
    column: np.ndarray  # (n_nodes,) which column a node looks at
    threshold: np.ndarray  # (n_nodes,) a row goes left if its value is at most this
    left: np.ndarray  # (n_nodes,)
    right: np.ndarray  # (n_nodes,)
    shares: np.ndarray  # (n_nodes, n_classes) class probabilities, zero but in leaves

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """The mean of all trees: (n_rows, n_classes)."""
        # As scikit-learn's trees compare: in single precision.
        X = np.asarray(X, dtype=np.float32)
        total = np.zeros((len(X), self.shares.shape[1]))
        rows = np.arange(len(X))
        for root in self.roots:
            node = np.full(len(X), root)
            while True:
                lower = X[rows, self.column[node]] <= self.threshold[node]
                below = np.where(lower, self.left[node], self.right[node])
                if (below == node).all():
                    break
                node = below
            total += self.shares[node]
        return total / len(self.roots)

    def speak(self, probabilities: np.ndarray) -> Spoken:
        """What the trees say of each class that they see in a row."""
        row, label = np.nonzero(probabilities)
        values = np.log((probabilities[row, label] + FLOOR) / FLOOR)
        return Spoken(row, label, values[:, None])


def grow(
    X: np.ndarray, labels: np.ndarray, n_classes: int, random_state: Any, n_jobs: int | None
) -> tuple[Forest, np.ndarray]:
    """A forest, and what its trees say of the training rows that they did not see."""
    # Here, since a process that only predicts needs no trees of scikit-learn.
    from sklearn.ensemble import ExtraTreesClassifier

    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    model = ExtraTreesClassifier(
        N_TREES, bootstrap=True, oob_score=True, random_state=seed, n_jobs=n_jobs
    )
    with warnings.catch_warnings():
        # A row that every tree saw; with so many trees that does not happen, unless rows are few.
        warnings.filterwarnings("ignore", message="Some inputs do not have OOB scores")
        warnings.filterwarnings("ignore", category=RuntimeWarning)
        model.fit(X, labels)
    out_of_bag = model.oob_decision_function_
    unseen = ~np.isfinite(out_of_bag).all(axis=1)
    out_of_bag[unseen] = np.bincount(labels, minlength=n_classes) / len(labels)
    parts: list[list[np.ndarray]] = [[] for _ in range(6)]
    first = 0
    for estimator in model.estimators_:
        tree = estimator.tree_
        nodes = np.arange(tree.node_count)
        leaf = tree.children_left < 0
        left, right = (
            np.where(leaf, nodes, side) for side in (tree.children_left, tree.children_right)
        )
        value = tree.value[:, 0, :]
        shares = np.where(leaf[:, None], value / value.sum(axis=1, keepdims=True), 0.0)
        for part, array in zip(
            parts,
            (
                np.array([first]),
                np.maximum(tree.feature, 0),
                tree.threshold,
                left + first,
                right + first,
                shares,
            ),
            strict=True,
        ):
            part.append(array)
        first += tree.node_count
    return Forest(*(np.concatenate(part) for part in parts)), out_of_bag
