"""States of points that take up an open label.

Only the class counts around a point, its own class, how often it takes up the label and what it
loses matter to its term (`terms`), so that few states serve all points.
"""

from __future__ import annotations

import numpy as np

from kfree.likelihood.counts import of_every_class
from kfree.likelihood.terms import log_terms_joined
from kfree.neighbors.flat import distinct, distinct_hashes

# A random word for each class: of a neighbor, of the point itself; and one for the weight.
WORDS = np.random.default_rng(20131).integers(0, 1 << 64, (3, 1024), dtype=np.uint64) | np.uint64(1)


def hashes(count: np.ndarray, label: np.ndarray) -> np.ndarray:
    """A hash of the counts (n, n_classes) and the own class of each point."""
    return WORDS[1][label] + count.astype(np.uint64) @ WORDS[0, : count.shape[1]]


def states(
    count: np.ndarray, label: np.ndarray, gone: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct states of points that exchange one neighbor of a class for the open label.

    Parameters
    ----------
    count : (n, n_classes), the classes of the points' neighbors
    label, gone : (n,) the own class, and that of the neighbor that goes

    Returns
    -------
    shown_by, gone : (n_states,) a point that shows each state, and the class that goes
    state : (n,)
    """
    n_classes = count.shape[1]
    shown_by, of_point, _ = distinct_hashes(hashes(count, label))
    code = of_point * np.int64(n_classes) + gone
    codes, state = distinct(code, len(shown_by) * n_classes)
    which, gone = np.divmod(codes, n_classes)
    return shown_by[which], gone, state


def exchanged(count: np.ndarray, own: np.ndarray, gone: np.ndarray, b: np.ndarray) -> np.ndarray:
    """V(c) - V(l) where one neighbor of class l = gone goes: (n, n_classes * n_beta).

    To get back a neighbor of the class that went is to be as before, so V(l) is the present term.
    """
    rest, each = count.copy(), np.arange(len(count))
    rest[each, gone] -= 1
    points = of_every_class(rest, own)
    value = log_terms_joined(points, np.ones(len(count), dtype=np.int64), b)
    value -= points.slots.spread(value[points.slots.find(each, gone)])
    return value.reshape(len(count), -1)
