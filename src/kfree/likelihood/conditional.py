"""p(z' = c | beta, K, Y): the class of a row whose label is open, given the strength and K.

There are three ways to it, and this is the table of them:

| way | where | when |
|---|---|---|
| few classes: states | `few_classes` | up to `FEW_CLASSES`, any structure |
| many classes: sparse lists | `many_classes` | more, joint, lists of nearest neighbors |
| in general | `open_labels` | all else, and where each row has its own beta |
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kfree.likelihood.few_classes import FEW_CLASSES, FewClasses
from kfree.likelihood.many_classes import ManyClasses
from kfree.likelihood.open_labels import OpenLabels
from kfree.likelihood.slots import every_class


def conditionals(rows: OpenLabels) -> Callable:
    """A function of a candidate, rising, and betas: slots, conditionals, log of the total mass."""
    if rows.n_classes <= FEW_CLASSES:
        few, slots = FewClasses(rows), every_class(rows.n_rows, rows.n_classes)

        def of_every_class(i: int, beta: np.ndarray) -> tuple:
            log_class = few.at(i, beta)  # (n_rows, n_classes, n_beta)
            high = log_class.max(axis=1)
            log_class -= high[:, None, :]
            share = np.exp(log_class, out=log_class)
            total = share.sum(axis=1)
            share /= total[:, None, :]
            absent = np.zeros_like(total)
            return slots, share.reshape(-1, total.shape[1]), absent, np.log(total) + high

        return of_every_class
    many = ManyClasses(rows) if rows.joint and rows.table.nearest else None

    def in_general(i: int, beta: np.ndarray) -> tuple:
        found = None if many is None else many.predictive(i, beta)
        predictive, leaves = rows.at(i).predictive(beta) if found is None else found
        listed, absent, log_total = predictive.conditional()
        if leaves is not None:
            log_total = log_total + leaves.value
        return predictive.slots, listed, absent, log_total

    return in_general


def likelihoods_by_label(rows: OpenLabels) -> Callable:
    """A function of a candidate, rising, and betas: (row (n,), values (n, n_beta)) of all labels.

    The values are log p(z, z' = c | beta, K) - log p(z | beta, K).
    """
    if rows.n_classes <= FEW_CLASSES:
        few, row = FewClasses(rows), np.repeat(np.arange(rows.n_rows), rows.n_classes)
        return lambda i, beta: [(row, few.at(i, beta).reshape(len(row), -1))]

    def in_general(i: int, beta: np.ndarray) -> list:
        predictive, leaves = rows.at(i).predictive(beta)
        gone = np.zeros((rows.n_rows, 1)) if leaves is None else leaves.value
        every = np.arange(rows.n_rows)
        found = (predictive.slots.owner, predictive.listed), (every, predictive.absent)
        return [(row, label.value + gone[row]) for row, label in found]

    return in_general
