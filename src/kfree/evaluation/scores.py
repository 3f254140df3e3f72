"""Scores of predicted labels and of predicted class probabilities.

Throughout, `probabilities` is (n_samples, n_classes) with columns in the order of `classes`, and
`classes` is sorted, as in the attribute `classes_` of a fitted classifier.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import metrics

from kfree.candidates import most_probable


@dataclass(frozen=True, slots=True)
class Scores:
    """All scores of one set of predictions."""

    f_measure: float
    accuracy: float
    log_loss: float
    brier: float
    calibration_error: float


def score(
    y: ArrayLike, predicted: ArrayLike, probabilities: ArrayLike, classes: ArrayLike
) -> Scores:
    """Judge labels and probabilities that were predicted for the same rows."""
    return Scores(
        f_measure=f_measure(y, predicted),
        accuracy=accuracy(y, predicted),
        log_loss=log_loss(y, probabilities, classes),
        brier=brier(y, probabilities, classes),
        calibration_error=calibration_error(y, probabilities, classes),
    )


def f_measure(y: ArrayLike, predicted: ArrayLike) -> float:
    """Mean over classes of the harmonic mean of precision and recall (macro F1).

    Classes that occur neither in `y` nor in `predicted` do not count; a class that was never
    hit counts as 0.
    """
    return float(metrics.f1_score(y, predicted, average="macro", zero_division=0))


def accuracy(y: ArrayLike, predicted: ArrayLike) -> float:
    """Share of rows whose label was predicted."""
    return float(metrics.accuracy_score(y, predicted))


def log_loss(y: ArrayLike, probabilities: ArrayLike, classes: ArrayLike) -> float:
    """Mean of -log of the probability given to the true class.

    Probabilities are clipped to [eps, 1 - eps] with eps of float64 (2.2e-16), as scikit-learn does
    it: a true class with probability 0 costs 36.04 and not infinity.
    """
    probabilities = np.asarray(probabilities, dtype=np.float64)
    return float(metrics.log_loss(y, probabilities, labels=np.asarray(classes)))


def brier(y: ArrayLike, probabilities: ArrayLike, classes: ArrayLike) -> float:
    """Mean squared distance between the probabilities and the indicator of the true class.

    The sum runs over all classes, so the range is 0 to 2, also with two classes.
    """
    errors = np.asarray(probabilities) - _indicators(y, classes)  # (n_samples, n_classes)
    return float(np.mean(np.sum(errors**2, axis=1)))


def calibration_error(
    y: ArrayLike, probabilities: ArrayLike, classes: ArrayLike, n_bins: int = 10
) -> float:
    """Expected calibration error of the most probable class.

    Rows are put into `n_bins` bins of equal width by the probability of their most probable class.
    In each bin the mean of this probability is compared with the share of rows where that class
    is true; the absolute differences are averaged with the number of rows as weight.
    """
    probabilities = np.asarray(probabilities)
    confidence = probabilities.max(axis=1)
    correct = np.asarray(classes)[most_probable(probabilities)] == np.asarray(y)
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    # Sums per bin: the weight n_bin / n and the mean's 1 / n_bin cancel.
    gaps = np.bincount(bins, weights=confidence - correct, minlength=n_bins)
    return float(np.abs(gaps).sum() / len(confidence))


def _indicators(y: ArrayLike, classes: ArrayLike) -> NDArray[np.bool_]:
    return np.asarray(y)[:, None] == np.asarray(classes)[None, :]  # (n_samples, n_classes)
