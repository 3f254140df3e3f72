"""p(z' = c | beta, K, Y): the class of a row whose label is open, given the strength and K.

There are two ways to it:

| way | where | when |
|---|---|---|
| few classes: states | `few_classes` | up to `FEW_CLASSES` |
| in general: classes near a row | `open_labels` | more, and where each row has its own beta |

With few classes the first takes a half to a quarter of the time of the second.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kfree.likelihood.few_classes import FEW_CLASSES, FewClasses
from kfree.likelihood.open_labels import OpenLabels
from kfree.likelihood.slots import ByLabel


def by_label(rows: OpenLabels) -> Callable[[int, np.ndarray], ByLabel]:
    """A function of a candidate, rising from call to call, and betas (n_beta,)."""
    if rows.n_classes <= FEW_CLASSES:
        return FewClasses(rows).by_label
    return lambda i, beta: rows.at(i).by_label(beta)
