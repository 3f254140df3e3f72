"""p(z' = c | beta, K, Y): the class of a row whose label is open, given the strength and K.

There are two ways to it:

| way | where | when |
|---|---|---|
| few classes: states | `few_classes` | up to 32, or twice as many as neighbors are looked at |
| in general: classes near a row | `open_labels` | more, and where each row has its own beta |

With few classes the first takes a half to a twentieth of the time of the second.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kfree.likelihood.few_classes import FewClasses, are_few
from kfree.likelihood.open_labels import OpenLabels
from kfree.likelihood.slots import ByLabel


def by_label(rows: OpenLabels) -> Callable[[int, np.ndarray], ByLabel]:
    """A function of a candidate, rising from call to call, and betas (n_beta,)."""
    if are_few(rows.n_classes, rows.table.k[-1]):
        return FewClasses(rows).by_label
    return lambda i, beta: rows.at(i).by_label(beta)
