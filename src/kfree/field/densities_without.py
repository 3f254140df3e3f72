"""The log densities of training rows, each left out as in `densities`, without one more row.

Partners stay out of this: only the own class loses the row itself.

Row i leaves first: with z_i its distance from the mean of its class, A_c loses a multiple of
z_i z_i', and the mean of its own class moves. Then row j, of which the density is asked, leaves
what remains. nu stays, and so does k, the share of a row in the identity.
"""

from __future__ import annotations

import numpy as np

from kfree.field.densities import Densities, product, remaining, student
from kfree.field.within import Whitening, own_share


def densities_without(
    points: np.ndarray,
    labels: np.ndarray,
    whitening: Whitening,
    densities: Densities,
    gone: np.ndarray,
) -> np.ndarray:
    """(n_gone, n_points, n_classes), as `training_densities` has them, not paired, with `gone`."""
    nu, sizes, share = densities.nu, densities.sizes, own_share(labels, whitening)
    z = points - densities.means[labels]
    leaving = z[gone]  # z_i
    fewer = 1.0 / np.maximum(sizes - 1.0, 1.0)
    # What the leaving of i adds to z_j, in units of z_i: (n_gone, n_points)
    g = np.where(labels[gone][:, None] == labels, fewer[labels], 0.0)
    out = np.empty((len(gone), len(points), len(sizes)))
    for c, (mean, scatter) in enumerate(zip(densities.means, densities.scatters, strict=True)):
        away, directions = points - mean, scatter.directions
        along_a, along_z, along_i = away @ directions, z @ directions, leaving @ directions
        # Products by A_c^-1 of rows minus the mean (a) and of z: (n_points,)
        aa = product(np.einsum("ij,ij->i", away, away), along_a**2, scatter, nu)
        az = product(np.einsum("ij,ij->i", away, z), along_a * along_z, scatter, nu)
        zz = product(np.einsum("ij,ij->i", z, z), along_z**2, scatter, nu)
        # The same with z_i: (n_gone, n_points)
        factor = scatter.values / (nu * (nu + scatter.values))
        ia = leaving @ away.T / nu - (along_i * factor) @ along_a.T
        iz = leaving @ z.T / nu - (along_i * factor) @ along_z.T
        ii = zz[gone][:, None]
        # Row i leaves: its class's mean moves by -e z_i.
        left = labels[gone][:, None] == c
        e = np.where(left, fewer[c], 0.0)
        lost = nu * share[gone][:, None] + np.where(left, sizes[c] * fewer[c], 0.0)
        down = remaining(lost * ii)
        log_determinant = scatter.log_determinant(nu) + np.log(down)
        kappa = lost / down
        to_a, to_z = ia + e * ii, iz + g * ii
        aa_left = aa + 2.0 * e * ia + e**2 * ii + kappa * to_a**2
        az_left = az + g * ia + e * iz + e * g * ii + kappa * to_a * to_z
        zz_left = zz + 2.0 * g * iz + g**2 * ii + kappa * to_z**2
        # Row j leaves.
        own = labels == c
        n_left = sizes[c] - left
        farther = np.where(own, n_left / np.maximum(n_left - 1.0, 1.0), 1.0)
        lost = nu * share + np.where(own, farther, 0.0)
        down = remaining(lost * zz_left)
        squares = farther**2 * (aa_left + lost * az_left**2 / down)
        count = n_left - own
        found = student(
            squares, log_determinant + np.log(down), np.maximum(count, 1.0), nu, len(mean)
        )
        out[:, :, c] = np.where(count > 0.0, found, np.inf)
    # A class that is left without rows: as thin as the thinnest, as in `densities`. Where no class
    # is left with any, none is denser than another.
    thinnest = out.min(axis=2, keepdims=True)
    return np.where(np.isinf(out), np.where(np.isinf(thinnest), 0.0, thinnest), out)
