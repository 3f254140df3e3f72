"""Log likelihoods as functions of beta: known at a few points, wanted everywhere in between.

A log term ends to be analytic where sum_c exp(beta m_c / D) is zero. With n classes the zeros that
are nearest to the positive numbers are at about log(n - 1) + i pi, far away from them as long as
beta is measured by u = arcsinh(beta / 2), which is linear near zero and a logarithm beyond. There
polynomials through Chebyshev's points converge fast, and how fast is known beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import chebyshev

# The interpolation errs by about e^-28 of the function's size where it is analytic.
DIGITS = 28.0
MOST_POINTS = 128


@dataclass(frozen=True)
class Intervals:
    """Where each of some functions, or groups of them, is interpolated."""

    low: np.ndarray  # (n_k,) least beta, 0 or more
    high: np.ndarray  # (n_k,)
    n_points: int

    @cached_property
    def beta(self) -> np.ndarray:
        """Chebyshev's points: (n_k, n_points)."""
        t = chebyshev.chebpts1(self.n_points)
        middle, half = self._span
        return 2.0 * np.sinh(middle[:, None] + half[:, None] * t)

    @cached_property
    def _span(self) -> tuple[np.ndarray, np.ndarray]:
        low, high = np.arcsinh(0.5 * self.low), np.arcsinh(0.5 * self.high)
        return 0.5 * (low + high), 0.5 * (high - low)

    def basis(self, beta: np.ndarray) -> np.ndarray:
        """Chebyshev's polynomials at betas (n_k, ...): (n_k, ..., n_points).

        Outside the intervals they are those of the nearest end.
        """
        shape = (-1,) + (1,) * (beta.ndim - 1)
        middle, half = (values.reshape(shape) for values in self._span)
        t = (np.arcsinh(0.5 * beta) - middle) / half
        return chebyshev.chebvander(np.clip(t, -1.0, 1.0), self.n_points - 1)

    def inside(self, beta: np.ndarray) -> np.ndarray:
        """Whether betas (n_k, ...) are within the interval of their row."""
        shape = (-1,) + (1,) * (beta.ndim - 1)
        return (beta >= self.low.reshape(shape)) & (beta <= self.high.reshape(shape))

    def slopes(self, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First and second derivative of the polynomials' variable at betas (n_k, ...)."""
        half = self._span[1].reshape((-1,) + (1,) * (beta.ndim - 1))
        root = 1.0 / np.sqrt(4.0 + beta * beta)
        return root / half, -beta * root**3 / half


def intervals(
    low: np.ndarray, high: np.ndarray, n_classes: int, often: float = 1.0
) -> Intervals | None:
    """Intervals with as many points as likelihoods ask for; None: too many.

    Parameters
    ----------
    low, high : (n_k,) the ends of the intervals
    often : how often an edge may count
    """
    zero = complex(np.log(max(1, n_classes - 1)), np.pi) / often
    nearest = np.arcsinh(0.5 * zero).imag
    widest = float(0.5 * (np.arcsinh(0.5 * high) - np.arcsinh(0.5 * low)).max())
    n_points = int(np.ceil(DIGITS / np.arcsinh(nearest / widest))) + 2
    return Intervals(low, high, n_points) if n_points <= MOST_POINTS else None


class Interpolants:
    """Polynomials through values (n_k, ..., n_points) at the points of intervals."""

    def __init__(self, where: Intervals, values: np.ndarray) -> None:
        n = where.n_points
        t = chebyshev.chebpts1(n)
        to_coefficients = (2.0 / n) * chebyshev.chebvander(t, n - 1)  # (point, degree)
        to_coefficients[:, 0] *= 0.5
        self.where = where
        self._coefficients = values @ to_coefficients
        derivative = np.zeros((n, n))
        derivative[:, : n - 1] = chebyshev.chebder(np.eye(n), axis=1)
        once = self._coefficients @ derivative
        self._derivatives = np.stack([self._coefficients, once, once @ derivative])

    @property
    def tail(self) -> np.ndarray:
        """The size of the last coefficients, about that of the error: (n_k, ...)."""
        return np.abs(self._coefficients[..., -2:]).max(axis=-1)

    def at(self, beta: np.ndarray) -> np.ndarray:
        """Values at some betas.

        Parameters
        ----------
        beta : (n_k, n_rows, n_beta), for functions (n_k, n_rows, n_functions)

        Returns
        -------
        (n_k, n_rows, n_functions, n_beta)
        """
        return self._coefficients @ self.where.basis(beta).transpose(0, 1, 3, 2)

    def derivatives(self, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Value, slope and curvature in beta at betas (n_k, n_rows): (n_k, n_rows, n_functions)."""
        basis = self.where.basis(beta)
        value, slope, curvature = np.einsum("dkrcn,krn->dkrc", self._derivatives, basis)
        first, second = (part[:, :, None] for part in self.where.slopes(beta))
        return value, slope * first, curvature * first * first + slope * second
