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

from kfree.field.features import Spoken
from kfree.neighbors.threads import run

# Between 100 and 200, which have a mean log loss of 0.2301 and 0.2292 on 15 data sets; time.
N_TREES = 150
# In how many parts threads share them.
N_BLOCKS = 10
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
    X: np.ndarray, labels: np.ndarray, n_classes: int, seed: int, n_jobs: int | None
) -> tuple[Forest, np.ndarray]:
    """A forest, and what its trees say of the training rows that they did not see.

    The trees are those of scikit-learn's ExtraTreesClassifier with bootstrap samples, one by one:
    on few rows its own work takes as long as the trees.
    """
    # As scikit-learn's trees compare: in single precision.
    X = np.ascontiguousarray(X, dtype=np.float32)
    seeds = np.random.RandomState(seed).randint(np.iinfo(np.int32).max, size=N_TREES)
    with warnings.catch_warnings():
        # The same from every tree; `fit` has said it once.
        warnings.filterwarnings("ignore", message="The number of unique classes is greater")
        blocks = run(
            lambda some: [_grow_one(X, labels, int(one)) for one in some],
            np.array_split(seeds, N_BLOCKS),
            n_jobs,
        )
    found = [one for block in blocks for one in block]
    total, count = np.zeros((len(X), n_classes)), np.zeros(len(X))
    for tree, unseen in found:
        total[unseen] += tree.predict(X[unseen])
        count[unseen] += 1.0
    # A row that every tree saw; with so many trees that does not happen, unless rows are few.
    total[count == 0.0] = np.bincount(labels, minlength=n_classes) / len(labels)
    return _joined([tree for tree, _ in found]), total / np.maximum(count, 1.0)[:, None]


def _grow_one(X: np.ndarray, labels: np.ndarray, seed: int) -> tuple[Any, np.ndarray]:
    """One tree of rows drawn with replacement, and the rows that were not drawn."""
    # Here, since a process that only predicts needs no trees of scikit-learn.
    from sklearn.tree import ExtraTreeClassifier

    drawn = np.random.RandomState(seed).randint(0, len(X), len(X))
    times = np.bincount(drawn, minlength=len(X))
    tree = ExtraTreeClassifier(max_features="sqrt", random_state=seed)
    tree.fit(X, labels, sample_weight=times.astype(float), check_input=False)
    return tree.tree_, np.flatnonzero(times == 0)


def _joined(trees: list[Any]) -> Forest:
    """Trees of scikit-learn one after the other."""
    sizes = [tree.node_count for tree in trees]
    roots = np.cumsum([0, *sizes[:-1]])
    first = np.repeat(roots, sizes)
    nodes = np.arange(len(first))
    left = np.concatenate([tree.children_left for tree in trees])
    right = np.concatenate([tree.children_right for tree in trees])
    leaf = left < 0
    value = np.concatenate([tree.value[:, 0, :] for tree in trees])
    return Forest(
        roots,
        np.maximum(np.concatenate([tree.feature for tree in trees]), 0),
        np.concatenate([tree.threshold for tree in trees]),
        np.where(leaf, nodes, left + first),
        np.where(leaf, nodes, right + first),
        np.where(leaf[:, None], value / value.sum(axis=1, keepdims=True), 0.0),
    )
