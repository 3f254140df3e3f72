"""From neighbor lists to what they say for each class.

For a row, a class c that occurs in its list, and each view:

- fractions f_K(c): the share of class c among the K nearest, K = 1, 2, 4, ...; rows that tie at the
  K-th distance share what is left of the K places;
- closeness D_k(c) = D(r_k) - D(r_end), D(r) = -1/2 log((r / r0)^2 + 0.01): r_k is the distance of
  the k-th nearest row of class c, r_end that of the list's end and r0 the median distance of a
  training row from its nearest.

Both are 0 for a class that the list does not have (or not k times), so only the classes of the list
need to be stored. Where every class is near every row, D(r_end) is added to all of them: the list
is censored at its end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FRACTIONS = (1, 2, 4, 8, 16, 32, 64)
RANKS = (1, 2, 5, 13)
# Distances that agree to this, relative to themselves and to r0, are ties.
TIE = 1e-9
# Softens the logarithm near a distance of zero.
SOFTENING = 0.01


@dataclass(frozen=True)
class Lists:
    """For each row its nearest training rows, nearest first, and their distances."""

    indices: np.ndarray  # (n_rows, length)
    distances: np.ndarray  # (n_rows, length)


@dataclass(frozen=True)
class Reading:
    """How lists of one view are read: fixed by the training rows, the same for new ones."""

    unit: float  # r0
    fractions: tuple[int, ...]  # the K
    ranks: tuple[int, ...]  # the k
    n_classes: int

    @property
    def n_features(self) -> int:
        return len(self.fractions) + len(self.ranks)

    def at_end(self, lists: Lists) -> np.ndarray:
        """What a class that a list does not have would say if it began at the list's end.

        (n_rows, n_features): 0 for the fractions and D(r_end) for the distances.
        """
        end = np.zeros((len(lists.distances), self.n_features))
        near = closeness(lists.distances[:, -1], self.unit)
        end[:, len(self.fractions) :] = near[:, None]
        return end


@dataclass(frozen=True)
class Spoken:
    """Features of pairs (row, class), ordered by row and then class; other pairs have zeros."""

    row: np.ndarray  # (n_pairs,)
    label: np.ndarray  # (n_pairs,)
    values: np.ndarray  # (n_pairs, n_features): fractions, then closeness


def learn_reading(lists: Lists, labels: np.ndarray, n_classes: int) -> Reading:
    """How to read lists like those of the training rows."""
    n_samples, length = lists.indices.shape
    nearest = lists.distances[:, 0]
    positive = nearest[(nearest > 0.0) & np.isfinite(nearest)]
    unit = float(np.median(nearest))
    if not 0.0 < unit < np.inf:
        unit = float(np.median(positive)) if len(positive) else 1.0
    most = max(1, min(length, (n_samples - 1) // 2))
    fractions = tuple(k for k in FRACTIONS if k <= most)
    largest = int(np.bincount(labels).max())
    ranks = tuple(k for k in RANKS if k <= max(1, min(length, largest - 1)))
    return Reading(unit, fractions, ranks, n_classes)


def speak(lists: Lists, labels: np.ndarray, reading: Reading) -> Spoken:
    """What the lists say of each class that they have."""
    n_rows, length = lists.indices.shape
    n_classes = reading.n_classes
    # Entries by row and class, nearest first among those.
    key = (np.arange(n_rows)[:, None] * n_classes + labels[lists.indices]).ravel()
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else key
    pair = key[first]
    row, label = pair // n_classes, pair % n_classes
    count = np.diff(np.append(first, len(key)))

    values = np.zeros((len(pair), reading.n_features))
    low, high = _tied(lists.distances, reading.unit)
    place = np.arange(length)
    for column, k in enumerate(reading.fractions):
        below, above = low[:, [k - 1]], high[:, [k - 1]]
        # Places 1..k are divided by the rows of the list, the tied ones in equal parts.
        share = (k - below) / (above - below)
        weight = np.where(place < below, 1.0, np.where(place < above, share, 0.0)) / k
        values[:, column] = np.add.reduceat(weight.ravel()[order], first)

    flat = lists.distances.ravel()
    end = closeness(lists.distances[:, -1], reading.unit)[row]
    for column, k in enumerate(reading.ranks, start=len(reading.fractions)):
        known = np.flatnonzero(count >= k)
        values[known, column] = (
            closeness(flat[order[first[known] + k - 1]], reading.unit) - end[known]
        )
    return Spoken(row, label, values)


def closeness(distance: np.ndarray, unit: float) -> np.ndarray:
    """D(r) of distances, `unit` being r0."""
    with np.errstate(over="ignore"):
        near = -0.5 * np.log((distance / unit) ** 2 + SOFTENING)
    # Rows that cannot be compared are infinitely far.
    return np.maximum(near, -50.0)


def _tied(distances: np.ndarray, unit: float) -> tuple[np.ndarray, np.ndarray]:
    """For each place the first place of its group of tied rows and the first place after it."""
    n_rows, length = distances.shape
    with np.errstate(invalid="ignore"):
        apart = distances[:, 1:] - distances[:, :-1] > TIE * (distances[:, 1:] + unit)
    place = np.arange(length)
    starts = np.concatenate([np.ones((n_rows, 1), dtype=bool), apart], axis=1)
    ends = np.concatenate([apart, np.ones((n_rows, 1), dtype=bool)], axis=1)
    low = np.maximum.accumulate(np.where(starts, place, 0), axis=1)
    backward = np.where(ends, place + 1, length)[:, ::-1]
    high = np.minimum.accumulate(backward, axis=1)[:, ::-1]
    return low, high
