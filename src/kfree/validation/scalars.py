"""Single parameters: names, numbers, counts."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np


def one_of(name: str, value: Any, choices: Any) -> None:
    """Raise unless a parameter is one of the known names."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")


def positive(name: str, value: Any) -> None:
    """Raise unless a parameter is a finite number above zero."""
    if not is_number(value) or not 0.0 < value < np.inf:
        raise ValueError(f"{name} must be a positive finite number; got {value!r}.")


def whole(name: str, value: Any, before: str = "", least: int = 1) -> None:
    """Raise unless a parameter is a whole number that is large enough."""
    if not _is_whole(value) or value < least:
        raise ValueError(
            f"{name} must be {before}a whole number of at least {least}; got {value!r}."
        )


def is_number(value: Any) -> bool:
    """Whether a value is a real number and no boolean."""
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def check_jobs(n_jobs: Any) -> None:
    """Raise unless the number of threads is one that joblib knows."""
    if n_jobs is not None and (not _is_whole(n_jobs) or n_jobs == 0):
        raise ValueError(
            "n_jobs must be None or a whole number other than 0, where -1 means all cores; "
            f"got {n_jobs!r}."
        )


def check_beta(beta: Any) -> np.ndarray:
    """A grid of betas."""
    beta = np.asarray(beta, dtype=float)
    if beta.ndim != 1 or len(beta) == 0 or not (np.isfinite(beta).all() and (beta > 0).all()):
        raise ValueError("beta must be a one-dimensional array of positive finite numbers.")
    return beta


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))
