"""Whether features that were made of a column tell anything about the labels.

A date has a weekday and a season, and a text has letters, whether or not they matter; and features
that do not matter push apart rows that belong together. So such features are taken only if the
classes differ in them.
"""

from __future__ import annotations

import warnings

import numpy as np

# How probable a difference as large must be by chance, at most, in the best of the features.
CHANCE = 0.01


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
