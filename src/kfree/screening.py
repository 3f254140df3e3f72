"""Which K can matter, judged from samples of the points.

With many points the evidence of most K lies thousands below the best, and some of the points are
enough to see it: the log terms of two K at the same point hardly differ, so the mean difference
over a sample is known well. Samples grow while K drop out. What is said of a K that dropped out,
its beta and how far it lies below the best, is an estimate; all others are looked at exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kfree.inference.prior import GammaPrior
from kfree.inference.quadrature import HOPELESS_EVIDENCE, Modes, find_modes
from kfree.likelihood.lists import ListSums
from kfree.likelihood.patterns import as_function
from kfree.neighbors.structures import Neighborhoods

# Samples start with so many points and grow by this factor, while they are so small a part of all.
FIRST_SAMPLE = 256
GROWTH = 4
LARGEST_PART = 0.25
# Where all K start from if there are too few points for a sample.
FIRST_BETA = 5.0
# A K drops out if it is hopeless even so many standard errors above its estimate.
STANDARD_ERRORS = 6.0
# What a sample cannot see may add so much to a log evidence for as many points: a few points too
# rare to be in it that speak for K, and that beta moves by some of the sample's deviations.
UNSEEN = 50.0


@dataclass(frozen=True)
class Screening:
    """The K that may matter, and about where all K stand."""

    span: slice  # of K - 1
    modes: Modes  # the evidence is counted from that of the best K


def screen(
    table: Neighborhoods,
    labels: np.ndarray,
    n_classes: int,
    n_k: int,
    prior: GammaPrior,
    n_jobs: int | None,
) -> Screening:
    """The K that may matter among 1..n_k; all of them if the points are few."""
    n = len(labels)
    order = np.random.default_rng(20134).permutation(n)
    span, n_rows = slice(0, n_k), FIRST_SAMPLE
    modes = Modes(np.full(n_k, FIRST_BETA), np.ones(n_k), np.zeros(n_k))
    while n_rows <= LARGEST_PART * n:
        rows = order[:n_rows]
        sample = ListSums(table.take(rows), labels, n_classes, n_k, n_jobs, rows)
        if n_rows == FIRST_SAMPLE:
            modes = find_modes(as_function(sample), n_k, prior)
        best = int(modes.log_evidence.argmax())
        beta = modes.beta[span]
        log, spread = sample.compared(beta, span, (best + 1, modes.beta[best]))
        assert log.slope is not None and log.curvature is not None
        slope, curvature = log.slope, np.minimum(log.curvature, -np.finfo(float).tiny)
        error = STANDARD_ERRORS * spread / np.sqrt(n_rows) + UNSEEN / n_rows
        step = np.clip(-slope / curvature, -0.5 * beta, beta)
        below = log.value + slope * step + 0.5 * curvature * step**2
        below = n / n_rows * (below - below.max())
        near = np.flatnonzero(below + n * error > -HOPELESS_EVIDENCE)
        modes.beta[span] += step
        modes.std[span] = np.sqrt(n_rows / (n * -curvature)) / modes.beta[span]
        modes.log_evidence[span] = below
        span = slice(span.start + int(near[0]), span.start + int(near[-1]) + 1)
        n_rows *= GROWTH
    return Screening(span, modes)
