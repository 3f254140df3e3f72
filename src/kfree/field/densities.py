"""How dense each class is where a row stands, every class having a covariance of its own.

In the coordinates of "within", where the covariance of all classes together is the identity, class
c of n_c rows with scatter T_c around its mean m_c has the covariance that T_c and nu rows' worth of
the identity suggest. A new row x of that class then has Student's density of nu + n_c + 1 degrees
of freedom (the predictive density under an inverse Wishart prior):

    A_c = T_c + nu I,    D = (x - m_c)' A_c^-1 (x - m_c) n_c / (n_c + 1)
    log density = log G((nu + n_c + 1 + p) / 2) - log G((nu + n_c + 1) / 2)
                  - 1/2 log |pi A_c (n_c + 1) / n_c| - (nu + n_c + 1 + p) / 2 log(1 + D)

with p coordinates and G the gamma function. One nu for all classes: that of the grid p / 32,
p / 16, ..., 4096 p under which the training rows, each left out, are densest in their own classes.
Small classes lean on the others, and where nu is large the density says no more than the means.

Without row i, which is z_i off the mean of its class, the identity becomes I - k_i z_i z_i' (see
`within`) and the own class loses its row. Every other class loses a row too, the partner of i there
(the i-th member, counted round and round): a class with one row less is thinner in the direction of
that row, and if only the own class were, the features would give the label away. With 60 rows of
1,000 columns they did: rows found their own class denser by 2.5, of 4,000 by more. A_c loses
multiples of z_i z_i' and of the partner's, and Sherman and Morrison's formula gives D and the
determinant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from kfree.field.design import Design
from kfree.field.within import Within

FEATURES = 1
# nu in units of the number of coordinates. From 1/2 on, the densities bring 1.0 % instead of 1.5.
GRID = 2.0 ** np.arange(-5, 13)
# A direction along which a class differs by less than this, compared with the first, is none.
NO_DIRECTION = 1e-12


@dataclass(frozen=True)
class Scatter:
    """The eigenvectors of T_c that have eigenvalues above 0: no more than the class has rows."""

    directions: np.ndarray  # (n_coordinates, n_kept), orthonormal
    values: np.ndarray  # (n_kept,)

    def log_determinant(self, nu: float) -> float:
        """log |A_c|."""
        n_others = len(self.directions) - len(self.values)
        return float(np.log(nu + self.values).sum() + n_others * np.log(nu))

    def whitened(self, rows: np.ndarray, nu: float) -> np.ndarray:
        """A_c^-1/2 times rows, whose products are those by A_c^-1: (n_rows, n_coordinates)."""
        change = 1.0 / np.sqrt(nu + self.values) - 1.0 / np.sqrt(nu)
        return np.asarray(
            rows / np.sqrt(nu) + (rows @ self.directions * change) @ self.directions.T
        )


@dataclass(frozen=True)
class Densities:
    """The classes' covariances: fixed by the training rows."""

    sizes: np.ndarray  # (n_classes,) n_c
    means: np.ndarray  # (n_classes, n_coordinates) m_c
    scatters: tuple[Scatter, ...]  # one for each class
    nu: float


def learn_densities(within: Within) -> Densities:
    """The covariances of the classes of whitened training rows, and the nu that suits them."""
    members = [np.flatnonzero(within.labels == c) for c in range(len(within.sizes))]
    scatters = tuple(_scatter(within.z[rows]) for rows in members)
    grid = GRID * within.points.shape[1]
    total = np.zeros(len(grid))
    for rows, scatter in zip(members, scatters, strict=True):
        n_c, z, share = float(len(rows)), within.z[rows], within.share[rows]
        if n_c == 1.0:
            continue
        plain, along = np.einsum("ij,ij->i", z, z), (z @ scatter.directions) ** 2
        # T_c loses n_c / (n_c - 1) z z', and the mean without the row is as much farther off.
        farther = n_c / (n_c - 1.0)
        for number, nu in enumerate(grid):
            zz = plain / nu - along @ (scatter.values / (nu * (nu + scatter.values)))
            lost = nu * share + farther
            down = remaining(lost * zz)
            log_determinant = scatter.log_determinant(nu) + np.log(down)
            squares = farther**2 * (zz + lost * zz**2 / down)
            total[number] += student(squares, log_determinant, n_c - 1.0, nu, z.shape[1]).sum()
    return Densities(within.sizes, within.whitening.means, scatters, float(grid[total.argmax()]))


def training_densities(
    within: Within, densities: Densities, pairs: Design, paired: bool = True
) -> np.ndarray:
    """The log densities of whitened training rows, each left out: (n_pairs,).

    `paired`: every other class leaves one of its rows out too.
    """
    nu, out = densities.nu, np.empty(len(pairs.row))
    for c, (mean, scatter) in enumerate(zip(densities.means, densities.scatters, strict=True)):
        part = pairs.of_class(c)
        rows = pairs.row[part]
        n_c, members = densities.sizes[c], np.flatnonzero(within.labels == c)
        own = within.labels[rows] == c
        partner = np.where(own, rows, members[rows % len(members)])
        # For which rows the class loses one, and how far that moves its mean.
        loses = (own | paired) & (n_c > 1.0)
        fewer = np.where(loses, 1.0 / max(n_c - 1.0, 1.0), 0.0)
        y, z = (scatter.whitened(within.z[each], nu) for each in (partner, rows))
        x = scatter.whitened(within.points[rows] - mean, nu) + fewer[:, None] * y
        # The partner leaves, then the row leaves the identity.
        down_y, lost = remaining(n_c * fewer * _products(y, y)), n_c * fewer
        xy, yz = _products(x, y), _products(y, z)
        xx, xz, zz = (
            _products(a, b) + lost / down_y * ay * by
            for a, b, ay, by in ((x, x, xy, xy), (x, z, xy, yz), (z, z, yz, yz))
        )
        lost = nu * within.share[rows]
        down_z = remaining(lost * zz)
        log_determinant = scatter.log_determinant(nu) + np.log(down_y) + np.log(down_z)
        squares = xx + lost * xz**2 / down_z
        out[part] = student(squares, log_determinant, n_c - loses, nu, len(mean))
    return out


def densities_without(within: Within, densities: Densities, c: int, gone: np.ndarray) -> np.ndarray:
    """The log density in class c of training rows, each left out, and without one of its rows more.

    (n_gone, n_points), for each of the rows `gone`, without partners. The identity stays.
    """
    nu, mean, scatter = densities.nu, densities.means[c], densities.scatters[c]
    left = densities.sizes[c] - 1.0
    own, e = within.labels == c, 1.0 / left
    x, z = (scatter.whitened(rows, nu) for rows in (within.points - mean, within.z))
    y = z[gone]
    xx, xz, zz, yy = _products(x, x), _products(x, z), _products(z, z), _products(y, y)[:, None]
    xy, yz = y @ x.T, y @ z.T  # (n_gone, n_points)
    # The row of `gone` leaves: the mean moves by -e y, for x and for the z of its class.
    f = np.where(own, e, 0.0)
    lost = (left + 1.0) * e
    down = remaining(lost * yy)
    log_determinant = scatter.log_determinant(nu) + np.log(down)
    to_x, to_z = xy + e * yy, yz + f * yy
    xx = xx + 2.0 * e * xy + e**2 * yy + lost / down * to_x**2
    xz = xz + f * xy + e * yz + e * f * yy + lost / down * to_x * to_z
    zz = zz + 2.0 * f * yz + f**2 * yy + lost / down * to_z**2
    # Then the row of which the density is asked.
    farther = np.where(own, left / max(left - 1.0, 1.0), 1.0)
    lost = nu * within.share + np.where(own, farther, 0.0)
    down = remaining(lost * zz)
    squares = farther**2 * (xx + lost * xz**2 / down)
    count = np.maximum(left - own, 1.0)
    return student(squares, log_determinant + np.log(down), count, nu, len(mean))


def new_densities(points: np.ndarray, densities: Densities, pairs: Design) -> np.ndarray:
    """The log densities of whitened new rows: (n_pairs,)."""
    nu, out = densities.nu, np.empty(len(pairs.row))
    for c, (mean, scatter) in enumerate(zip(densities.means, densities.scatters, strict=True)):
        part = pairs.of_class(c)
        x = scatter.whitened(points[pairs.row[part]] - mean, nu)
        log_determinant = scatter.log_determinant(nu)
        out[part] = student(_products(x, x), log_determinant, densities.sizes[c], nu, len(mean))
    return out


def speak(log_density: np.ndarray, n_coordinates: int) -> np.ndarray:
    """(..., FEATURES)."""
    return np.asarray(log_density[..., None] / np.sqrt(n_coordinates))


def _scatter(z: np.ndarray) -> Scatter:
    """From the rows of a class minus their mean, by the smaller of z'z and z z'."""
    n_rows, n_coordinates = z.shape
    if n_coordinates <= n_rows:
        values, vectors = np.linalg.eigh(z.T @ z)
    else:
        values, vectors = np.linalg.eigh(z @ z.T)
        vectors = z.T @ vectors / np.sqrt(np.where(values > 0.0, values, 1.0))
    kept = values > NO_DIRECTION * max(values[-1], 0.0)
    return Scatter(np.ascontiguousarray(vectors[:, kept]), values[kept])


def _products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of the rows of a with those of b: (n_rows,)."""
    return np.asarray(np.einsum("ij,ij->i", a, b))


def remaining(lost: np.ndarray) -> np.ndarray:
    """1 - lost, which is 0 but for rounding where a row alone spans a direction."""
    return np.maximum(1.0 - lost, 1e-6)


def student(
    squares: np.ndarray,
    log_determinant: np.ndarray | float,
    n_c: np.ndarray | float,
    nu: float,
    p: int,
) -> np.ndarray:
    """The log density from (x - m_c)' A_c^-1 (x - m_c) and log |A_c|."""
    freedom = nu + n_c + 1.0
    constant = gammaln((freedom + p) / 2.0) - gammaln(freedom / 2.0)
    constant -= 0.5 * p * np.log(np.pi * (n_c + 1.0) / n_c)
    tail = 0.5 * (freedom + p) * np.log1p(squares * n_c / (n_c + 1.0))
    return np.asarray(constant - 0.5 * log_determinant - tail)
