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


def states_of_pairs(
    count: np.ndarray, label: np.ndarray, point: np.ndarray, gone: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct states of points that may each lose neighbors of several classes.

    Of the class that goes, only how many neighbors it has matters, and whether it is the point's
    own: what the point becomes at any third class is the same. Leave-one-out of 3,000 rows of 40
    classes takes 15 s so, and 34 s with a state for each class.

    Parameters
    ----------
    count : (n, n_classes), the classes of the points' neighbors
    label : (n,) the own class
    point, gone : (n_pairs,) a point, and the class that it loses a neighbor of

    Returns
    -------
    shown_by, gone : (n_states,) a point that shows each state, and a class that goes
    state : (n_pairs,)
    """
    _, of_point, _ = distinct_hashes(hashes(count, label))
    number = count[point, gone]
    n_ways = 2 * (int(number.max(initial=0)) + 1)
    code = of_point[point] * np.int64(n_ways) + 2 * number + (gone == label[point])
    codes, state = distinct(code, (int(of_point.max(initial=0)) + 1) * n_ways)
    pair = np.empty(len(codes), dtype=np.int64)
    pair[state] = np.arange(len(state))
    return point[pair], gone[pair], state


def exchanged(count: np.ndarray, own: np.ndarray, gone: np.ndarray, b: np.ndarray) -> np.ndarray:
    """V(c) - V(l) where one neighbor of class l = gone goes: (n, n_classes, n_beta).

    To get back a neighbor of the class that went is to be as before, so V(l) is the present term.
    """
    rest, each = count.copy(), np.arange(len(count))
    rest[each, gone] -= 1
    points = of_every_class(rest, own)
    value = log_terms_joined(points, np.ones(len(count), dtype=np.int64), b)
    value -= points.slots.spread(value[points.slots.find(each, gone)])
    return value.reshape(*count.shape, -1)


def exchanged_for_any(
    count: np.ndarray, own: np.ndarray, gone: np.ndarray, b: np.ndarray
) -> np.ndarray:
    """The same for any class that has as many neighbors as `gone`, but at the class that goes.

    There it is zero, and here what it is where another one of these classes goes.
    """
    value, each = exchanged(count, own, gone, b), np.arange(len(count))
    alike = count == count[each, gone][:, None]
    alike[each, gone] = alike[each, own] = False
    other = alike.argmax(axis=1)
    has_other = alike[each, other]
    value[each[has_other], gone[has_other]] = value[each[has_other], other[has_other]]
    return value
