"""Posterior times conditional: class probabilities averaged over K and beta.

    p(z' = c | Y) = sum over K and beta of p(K, beta | Y) p(z' = c | beta, K, Y)

with the exact p(K, beta | Y) by quadrature, averaged ("KOREA average") or taken at its best ("KOREA
optimal"). Algorithm 1's approximation of it is in `korea`; which candidates and which beta a row
needs, in `reach`.
"""

from __future__ import annotations

import dataclasses
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from scipy.interpolate import CubicSpline

from kfree import reach
from kfree.candidates import most_probable
from kfree.inference.mode import maximize
from kfree.inference.quadrature import COVERED, Rule
from kfree.likelihood.class_sums import ClassSums, normalized
from kfree.likelihood.conditional import by_label
from kfree.likelihood.open_labels import OpenLabels
from kfree.training import Model, beta_posterior

# Rows in more doubt than this, at a candidate that has some weight, are done again with all nodes.
# On the fuzzer's kinds of problems, with 24 nodes among 4 to 150 points, the others were off by at
# most 2.4e-8, and all rows by up to 4e-4 (`python benchmarks/nodes.py --problems 60 --rows 4 150`).
# At 1e-4 `make fuzz` found a row that was off by 1.6e-6; the time that 1e-5 takes is the same but
# for a tenth where K is broad (waveform40).
DOUBT = 1e-5
# Some weight is this much: nodes that miss where the posterior of a row lies give a candidate far
# too little of it (once 1e-9 instead of 0.2). Zero would make embeddings take four times as long.
SOME_WEIGHT = 1e-20
# From the values at so many betas a spline is made, and among so many points of it the highest mode
# is looked for.
MODE_NODES = 32
SPLINE_POINTS = 257
SPLINE_STEPS = 20
# The slope and the curvature of a row's density come from its values at seven points, exactly for
# polynomials up to the sixth degree. So far apart, in standard deviations of beta, they err by
# less than 1e-9 of the curvature in tests/test_row_modes.py.
STENCIL = np.arange(-3.0, 4.0)
STENCIL_WEIGHTS = np.array([[-1, 9, -45, 0, 45, -9, 1], [2, -27, 270, -490, 270, -27, 2]])
STENCIL_WEIGHTS = STENCIL_WEIGHTS / np.array([[60.0], [180.0]])
STENCIL_STEP = 0.03
# A smaller step to the mode, in standard deviations, is the last: the mode is then off by its
# square. The spline mostly leads there, so that one evaluation is enough.
MODE_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Average:
    """What is known of a block of rows."""

    k_probabilities: np.ndarray  # (n_rows, n_k)
    class_probabilities: np.ndarray  # (n_rows, n_classes)
    class_squares: np.ndarray  # (n_rows, n_classes) mean of the squared conditional
    beta_mean: np.ndarray  # (n_rows,)
    beta_std: np.ndarray  # (n_rows,)


class _Sums:
    """The sums over K and beta of a block of rows, candidate by candidate."""

    def __init__(self, model: Model, rows: OpenLabels) -> None:
        self._model, n_k = model, model.n_k
        self.classes = ClassSums(rows.n_rows, rows.n_classes)
        self.log_mass = np.full((rows.n_rows, n_k), -np.inf)
        self.beta_mean, self.beta_square = np.zeros((2, rows.n_rows, n_k))
        self.doubt = np.zeros((rows.n_rows, n_k))
        self.log_outside = np.full(rows.n_rows, -np.inf)  # at most what the nodes leave out

    def take(self, rows: np.ndarray) -> _Sums:
        """The sums of some of the rows."""
        some = copy(self)
        some.classes = self.classes.take(rows)
        for name in ("log_mass", "beta_mean", "beta_square", "doubt", "log_outside"):
            setattr(some, name, getattr(self, name)[rows])
        return some

    def add(self, rows: OpenLabels, rule: Rule, in_doubt: np.ndarray | None = None) -> None:
        """Add the candidates of a rule, none of which was added before.

        Where it is `in_doubt` (n_k,) whether the nodes reach far enough, their ends are looked at.
        """
        values = by_label(rows)
        for j, i in enumerate(rule.candidate.tolist()):
            beta, log_weight = rule.of(j)
            if in_doubt is not None and in_doubt[i]:
                with_ends = np.concatenate([beta, self._model.posterior.curves.ends(i)[0]])
                found = values(i, with_ends)
                ends = found.part(slice(len(beta), None))
                outside = reach.log_outside(self._model, i, ends)
                self.log_outside = np.maximum(self.log_outside, outside)
                known = found.part(slice(len(beta))).conditional()
            else:
                known = values(i, beta).conditional()
            weight, self.log_mass[:, i] = normalized(log_weight + known.log_total)
            self.classes.add(known, weight, self.log_mass[:, i])
            self.beta_mean[:, i], self.beta_square[:, i] = weight @ beta, weight @ (beta * beta)
            self.doubt[:, i] = rule.doubt(j, weight)

    def average(self) -> tuple[Average, np.ndarray]:
        """The average, and how far each row's may be off: (n_rows,)."""
        k_weight, _ = normalized(self.log_mass)
        mean = (k_weight * self.beta_mean).sum(axis=1)
        variance = (k_weight * self.beta_square).sum(axis=1) - mean * mean
        std = np.sqrt(np.maximum(variance, 0.0))
        average = Average(k_weight, *self.classes.result(), mean, std)
        return average, np.where(k_weight > SOME_WEIGHT, self.doubt, 0.0).max(axis=1)


def average_by_quadrature(model: Model, rows: OpenLabels) -> Average:
    """The exact average over K and beta."""
    most = reach.most_slope(model, rows)
    in_doubt = reach.ends_in_doubt(model, most)
    sums = _Sums(model, rows)
    sums.add(rows, model.posterior.rule, in_doubt)
    average, doubt = sums.average()
    log_outside, (_, log_total) = sums.log_outside, normalized(sums.log_mass)
    back, others = reach.returning(model, rows, most, log_total)
    candidates = np.union1d(model.posterior.rule.candidate, others)
    coarse = np.zeros(rows.n_rows, dtype=bool)
    if len(back):
        more = sums.take(back)
        more.add(rows.take(back), model.posterior.fine.take(others), in_doubt)
        log_outside[back], (_, log_total[back]) = more.log_outside, normalized(more.log_mass)
        raised, doubt[back] = more.average()
        _replace(average, back, raised)
        hopeless = model.posterior.coarse(others)
        coarse[back] = (raised.k_probabilities[:, hopeless] > SOME_WEIGHT).any(axis=1)
    far = log_outside > log_total - COVERED
    again = far | coarse | (doubt > DOUBT)
    if again.any():
        # Once more, with all nodes and all candidates that one of these rows brings back.
        which = np.flatnonzero(again)
        some, rule = rows.take(which), model.posterior.fine.take(candidates)
        if (far | coarse).any():
            tilt = most[which].max(axis=0)
            curves = beta_posterior(model.likelihood, model.prior, tilt=tilt, which=candidates)
            rule = model.posterior.with_nodes_of(curves, candidates)
        better = _Sums(model, some)
        better.add(some, rule)
        _replace(average, which, better.average()[0])
    return average


def average_at(model: Model, rows: OpenLabels, i: int) -> Average:
    """The average over beta alone, where K is known to be the i-th candidate."""
    sums = _Sums(model, rows)
    sums.add(rows, model.posterior.fine.take(np.array([i])))
    return sums.average()[0]


def optimal_by_quadrature(model: Model, rows: OpenLabels) -> Average:
    """K at its largest posterior, beta at its mode there (KOREA optimal), from exact p(K | Y)."""
    average = average_by_quadrature(model, rows)
    best = most_probable(average.k_probabilities)
    mode = np.empty(rows.n_rows)
    for i in np.unique(best):
        chosen = np.flatnonzero(best == i)
        mode[chosen] = RowDensities(model, rows.take(chosen), int(i)).modes()
    class_probabilities = class_probabilities_at(rows, best, mode)
    return at_best(average, class_probabilities)


def density_by_quadrature(model: Model, rows: OpenLabels, beta: np.ndarray) -> np.ndarray:
    """p(K, beta | Y) of each row at the betas (n_beta,): (n_rows, n_k, n_beta)."""
    average = average_by_quadrature(model, rows)
    with np.errstate(divide="ignore"):
        log_k = np.log(average.k_probabilities)
    out = np.zeros((rows.n_rows, model.n_k, len(beta)))
    fine = model.posterior.fine
    for i in np.flatnonzero((average.k_probabilities > 0.0).any(axis=0)):
        field = rows.at(int(i))
        node, log_weight = fine.of(int(i))
        _, log_mass = normalized(log_weight + field.by_label(node).conditional().log_total)
        log_p = training_density(model, np.array([i]), beta)[0]
        log_p = log_p + field.by_label(beta).conditional().log_total
        out[:, i] = np.exp(log_p - log_mass[:, None] + log_k[:, i, None])
    return out


def training_density(model: Model, which: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """log p(K, beta | z) of some candidates at the betas (n_beta,): (n, n_beta)."""
    nodes = np.broadcast_to(beta, (len(which), len(beta)))
    (value,) = model.likelihood.curves(which)(nodes, False, np.arange(len(which)))
    log_k = model.posterior.log_prior[which] - model.posterior.log_normalizer
    return value + model.prior.log_density(beta) + log_k[:, None]


class RowDensities:
    """log p(beta) sum_c p(z, z' = c | beta, K) of rows at the i-th candidate, and its modes.

    The training labels and the prior give their derivatives. What the open label adds is small and
    known by its values alone.
    """

    def __init__(self, model: Model, rows: OpenLabels, i: int) -> None:
        self._model, self._rows, self._candidate, self._field = model, rows, i, rows.at(i)
        self._curves = model.likelihood.curves(np.array([i]))
        self._width = min(1.0, float(model.posterior.curves.std[i]))  # of log(beta)

    def derivatives(self, beta: np.ndarray) -> tuple:
        """Value, slope and curvature in beta at one beta (n_rows,) for each row."""
        step = STENCIL_STEP * self._width * beta
        at_points = self._field.by_label(beta[:, None] + step[:, None] * STENCIL)
        log_total = at_points.conditional().log_total
        value = log_total[:, len(STENCIL) // 2]
        # Less what is common, so that the sums lose no digits.
        slope, curvature = STENCIL_WEIGHTS @ (log_total - value[:, None]).T
        return self._whole(beta, value, slope / step, curvature / step**2)

    def modes(self) -> np.ndarray:
        """The highest mode of each row: (n_rows,).

        A sum over classes may have several. It is looked for on a spline of what the label adds, in
        v = arcsinh(beta / 2), which is linear near zero and a logarithm beyond, as likelihoods are.
        """
        node, _ = self._model.posterior.fine.of(self._candidate)
        low, high = np.arcsinh(0.5 * node[[0, -1]])
        v = np.linspace(low, high, MODE_NODES)
        at_nodes = by_label(self._rows)(self._candidate, 2.0 * np.sinh(v))
        spline = CubicSpline(v, at_nodes.conditional().log_total, axis=1)
        among = np.linspace(low, high, SPLINE_POINTS)
        nothing = np.zeros_like(among)
        height = spline(among) + self._whole(2.0 * np.sinh(among), nothing, nothing, nothing)[0]

        def between(beta: np.ndarray) -> tuple:
            x = np.clip(np.arcsinh(0.5 * beta), low, high)
            left = np.clip(np.searchsorted(v, x) - 1, 0, len(v) - 2)
            cubic, square, line, value = spline.c[:, left, np.arange(len(x))]
            x = x - v[left]
            value = value + x * (line + x * (square + x * cubic))
            slope, curvature = line + x * (2 * square + x * 3 * cubic), 2 * square + x * 6 * cubic
            rate = 1.0 / np.sqrt(4.0 + beta * beta)  # of v in beta
            curvature = (curvature - slope * beta * rate) * rate * rate
            return self._whole(beta, value, slope * rate, curvature)

        start, tolerance = 2.0 * np.sinh(among), MODE_TOLERANCE * self._width
        start = maximize(between, start[height.argmax(axis=1)], SPLINE_STEPS, tolerance)
        start = np.clip(start, node[0], node[-1])
        return maximize(self.derivatives, start, tolerance=tolerance)

    def _whole(
        self, beta: np.ndarray, value: np.ndarray, slope: np.ndarray, curvature: np.ndarray
    ) -> tuple:
        """With what the label adds."""
        of_data = (part[0] for part in self._curves(beta[None], True, np.zeros(1, dtype=int)))
        of_prior = self._model.prior.derivatives(beta)
        added = value, slope, curvature
        return tuple(a + b + c for a, b, c in zip(added, of_data, of_prior, strict=True))


def class_probabilities_at(rows: OpenLabels, candidate: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Class probabilities at one candidate and one beta for each row: (n_rows, n_classes)."""
    out = np.empty((rows.n_rows, rows.n_classes))
    for i in np.unique(candidate):
        chosen = np.flatnonzero(candidate == i)
        known = rows.take(chosen).at(int(i)).by_label(beta[chosen, None]).conditional()
        out[chosen] = known.table()[:, :, 0]
    # A probability can underflow only where beta is beyond any reason; it is never zero.
    return np.maximum(out, np.finfo(float).tiny)


def at_best(average: Average, class_probabilities: np.ndarray) -> Average:
    """The same knowledge of K and beta, with the class probabilities at its best."""
    squares = class_probabilities**2
    return replace(average, class_probabilities=class_probabilities, class_squares=squares)


def _replace(average: Average, rows: np.ndarray, better: Average) -> None:
    for name in (field.name for field in dataclasses.fields(Average)):
        getattr(average, name)[rows] = getattr(better, name)
