"""What a report needs from a classifier: one contract, in one place.

A classifier that can be reported on says of its own training rows what the others tell about each,
by `predict_proba(None)`. One with a posterior of the number of neighbors, `posterior(None)`, is
asked for that instead; the chapter on k is about it. `audit_labels` must take the classifier too,
as it names the rows that speak against a label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from kfree.classifier import KFreeClassifier
from kfree.displays.fitted import candidates


@dataclass(frozen=True)
class KPosterior:
    """How probable each number of neighbors is, given the training labels.

    Attributes
    ----------
    k : ndarray of shape (n_k,) of int
        The candidates, ascending.
    probabilities : ndarray of shape (n_k,)
    best : int
        The most probable one.
    beta_mean, beta_std : float
        Of the strength of a neighbor's pull.
    """

    k: NDArray[np.integer]
    probabilities: NDArray[np.floating]
    best: int
    beta_mean: float
    beta_std: float


@dataclass(frozen=True)
class HeldOut:
    """What is said of each training row when its own label is unknown.

    Attributes
    ----------
    probabilities : ndarray of shape (n_samples, n_classes)
    from_k : ndarray of shape (n_samples, n_classes) or None
        The share of the variance of each class that comes from not knowing k and beta.
    k : KPosterior or None
        None for a classifier without a number of neighbors.
    """

    probabilities: NDArray[np.floating]
    from_k: NDArray[np.floating] | None
    k: KPosterior | None


def parts(model: Any) -> tuple[Any, Any]:
    """What comes before the classifier, or None, and the classifier."""
    classifier = model[-1] if isinstance(model, Pipeline) else model
    if not (isinstance(classifier, KFreeClassifier) or _is_field(classifier)):
        raise TypeError(
            "A report is about a FieldClassifier or a KFreeClassifier, or a Pipeline that ends in "
            "one; "
            f"got {type(classifier).__name__}."
        )
    if getattr(classifier, "metric", None) == "precomputed":
        raise ValueError("A report needs the features; metric='precomputed' has none.")
    before = model[:-1] if isinstance(model, Pipeline) and len(model) > 1 else None
    return before, classifier


def _is_field(classifier: Any) -> bool:
    # Its rows that speak are what no classifier of scikit-learn has.
    return all(hasattr(classifier, name) for name in ("predict_proba", "neighbors"))


def check_fitted_on(classifier: Any, y: NDArray) -> None:
    """Raise if the classifier was not fitted on these labels."""
    fitted = getattr(classifier, "_model", None) or classifier._assembly
    labels = classifier.classes_[fitted.labels]
    if len(labels) == len(y) and (labels == y).all():
        return
    raise ValueError(
        f"The model was fitted on other rows than the {len(y)} that are to be reported on; "
        "give the rows and labels of fit, or an unfitted model."
    )


def hold_out(classifier: Any) -> HeldOut:
    """Ask a fitted classifier for each training row, once."""
    if not hasattr(classifier, "posterior"):
        return HeldOut(classifier.predict_proba(None), None, None)
    found = classifier.posterior(None)
    within, between = found.class_variance_within, found.class_variance_between
    whole = within + between
    share = np.divide(between, whole, out=np.zeros_like(whole), where=whole > 0)
    about_k = KPosterior(
        k=candidates(classifier),
        probabilities=np.asarray(classifier.k_posterior_),
        best=int(classifier.k_optimal_),
        beta_mean=float(classifier.beta_mean_),
        beta_std=float(classifier.beta_std_),
    )
    return HeldOut(found.class_probabilities, share, about_k)
