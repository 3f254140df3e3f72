"""Whether features that were made of a column tell anything about the labels.

A date has a weekday and a season, and a text has letters, whether or not they matter; and features
that do not matter push apart rows that belong together. So such features are taken only if the
classes differ in them. Of texts, which are many features, that is not enough: they may tell a
little and hide what other columns tell.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np

# How probable a difference as large must be by chance, at most, in the best of the features.
CHANCE = 0.01
# Texts are judged by the votes of so many neighbors of each row, on no more rows than this; they
# must be worse with the text by so many standard errors. Of seven columns in six tables of texts
# this left out two (names of airports and their cities, beside latitude and longitude, which tell
# the state: log loss of the field 2.47 with them and 0.22 without) and none that helped.
N_VOTES = 10
MOST_ROWS = 1_000
WORSE = 3.0


def tells(features: np.ndarray, y: np.ndarray | None) -> bool:
    """Whether the means of the classes differ in one of the features (n_rows, n_features).

    By an F test for each feature, with Bonferroni's correction for their number. Without labels
    there is nothing to go by, and the answer is yes.
    """
    from sklearn.feature_selection import f_classif

    if y is None:
        return True
    classes, y, counts = np.unique(y, return_inverse=True, return_counts=True)
    if len(classes) < 2 or counts.max() < 2:
        return False
    with warnings.catch_warnings():
        # Of features that are constant.
        warnings.simplefilter("ignore")
        chance = f_classif(features, y)[1]
    chance = chance[np.isfinite(chance)]
    return len(chance) > 0 and bool(chance.min() * features.shape[1] <= CHANCE)


def hiding(others: np.ndarray, texts: Mapping[str, np.ndarray], y: np.ndarray) -> list[str]:
    """The texts without which a row's nearest neighbors tell its label better, the worst first.

    Parameters
    ----------
    others : ndarray of shape (n_rows, n_features)
        Features of all other columns.
    texts : mapping of name to ndarray of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,)
        Labels.
    """
    if len(y) <= 2 * N_VOTES:
        return []
    labels = np.unique(y, return_inverse=True)[1]
    kept = {name: _squared_distances(features) for name, features in texts.items()}
    whole = _squared_distances(others) + sum(kept.values())  # (n_rows, n_rows)
    found: list[str] = []
    while kept:
        with_all, worse = _losses(whole, labels), {}
        for name, part in kept.items():
            rise = with_all - _losses(whole - part, labels)
            worse[name] = rise.mean() / max(rise.std() / len(rise) ** 0.5, 1e-12)
        name = max(worse, key=lambda name: worse[name])
        if worse[name] < WORSE:
            break
        found.append(name)
        whole = whole - kept.pop(name)
    return found


def _squared_distances(features: np.ndarray) -> np.ndarray:
    lengths = (features**2).sum(axis=1)
    return lengths[:, None] + lengths - 2 * features @ features.T


def _losses(distances: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Of each row, -log of the share of its label among its neighbors and one vote of the shares.

    That one vote keeps the share above zero.
    """
    apart = distances + np.diag(np.full(len(labels), np.inf))
    near = np.argpartition(apart, N_VOTES, axis=1)[:, :N_VOTES]
    votes = (labels[near] == labels[:, None]).sum(axis=1)
    share = np.bincount(labels)[labels] / len(labels)
    return -np.log((votes + share) / (N_VOTES + 1))
