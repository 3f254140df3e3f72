"""The candidates for the number of neighbors K, and the prior mass of each.

Every K up to 32, then 8 to the octave. Each stands for the numbers that are nearer to it than to
any other candidate, so that its prior mass is how many these are. This is a prior with fewer atoms,
not an approximation: the posterior under it is exact.

How thin they may be was measured on the data sets of `make quality` (docs/quality.md): with 8 to
the octave the mean log loss is the same as with every K up to a few thousandths, in both
directions. The work for a new point grows with the sum of all K looked at, which is 131,000 for
every K up to 512 and 6,300 for these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

EVERY_UP_TO = 32
PER_OCTAVE = 8
# Probabilities that differ by less than this part are equal but for rounding.
EQUAL = 1e-9


@dataclass(frozen=True)
class Candidates:
    """Numbers of neighbors, rising, and the logarithm of their prior mass."""

    k: np.ndarray  # (n_k,) int64
    log_prior: np.ndarray  # (n_k,) of masses that add up to one

    def __len__(self) -> int:
        return len(self.k)


def make_candidates(k_values: str | np.ndarray, k_max: int) -> Candidates:
    """The candidates up to `k_max`, which is one of them.

    Parameters
    ----------
    k_values : "auto" for thin candidates, "all" for 1..k_max, or distinct numbers, all as probable
    """
    if isinstance(k_values, str):
        k = thin_candidates(k_max) if k_values == "auto" else np.arange(1, k_max + 1)
        border = (k[1:] + k[:-1]) // 2  # the last number that belongs to the lower neighbor
        mass = np.diff(np.concatenate([[0], border, [k_max]])).astype(float)
    else:
        k = np.sort(np.asarray(k_values, dtype=np.int64))
        mass = np.ones(len(k))
    return Candidates(k, np.log(mass / mass.sum()))


def most_probable(probabilities: np.ndarray) -> np.ndarray:
    """The place of the largest probability on the last axis; the first of equal ones."""
    largest = probabilities.max(axis=-1, keepdims=True)
    return (probabilities >= (1.0 - EQUAL) * largest).argmax(axis=-1)


def thin_candidates(k_max: int) -> np.ndarray:
    """Every K up to 32, then 8 to the octave, and `k_max` itself."""
    n_octaves = max(0.0, np.log2(k_max / EVERY_UP_TO))
    step = np.arange(1, int(n_octaves * PER_OCTAVE) + 2)
    beyond = np.round(EVERY_UP_TO * 2.0 ** (step / PER_OCTAVE)).astype(np.int64)
    k = np.unique(np.concatenate([np.arange(1, EVERY_UP_TO + 1), beyond]))
    return np.append(k[k < k_max], k_max)
