"""What the numbers of a report mean, in plain words."""

from __future__ import annotations

from kfree.page import Terms
from kfree.report.findings import Findings

TERMS = (
    (
        "Leave-one-out",
        "Each row is predicted from all other rows, as if its own label were unknown. The "
        "columns were prepared (scales, medians) on all rows, labels apart; on the folds they "
        "were prepared without the fold.",
    ),
    (
        "Fold",
        "A part of the rows that is kept aside, predicted by a model fitted on the rest. Each "
        "row is in one fold.",
    ),
    ("Accuracy", "The share of rows whose class was named correctly."),
    (
        "Macro F",
        "For each class the harmonic mean of two shares (of the rows named so, how many are; "
        "of the rows that are, how many were named so), then the mean over the classes. Rare "
        "classes count as much as common ones.",
    ),
    (
        "Log loss",
        "The mean of minus the logarithm of the probability given to the true class. 0 is "
        "perfect; being sure and wrong is punished hard.",
    ),
    (
        "Brier",
        "The mean squared distance between the probabilities and the truth, from 0 (perfect) to 2.",
    ),
    (
        "Calibration error",
        "How far, on average, the predicted probability is from the share that came true, in "
        "ten bins. 0 is perfect; with few rows chance alone makes it larger.",
    ),
    (
        "95% interval",
        "Where the true value lies with 95% confidence, as far as the number of rows goes; "
        "it does not cover a change in where the data come from.",
    ),
    (
        "Contradicted label",
        "A label that is less probable than some other class, judged by all other rows. Where "
        "classes overlap, right labels are contradicted too; only those that overlap does not "
        "explain speak for wrong labels.",
    ),
)
ABOUT_K = (
    (
        "Posterior of k",
        "How probable each number of neighbors is, given the labels. The 95% credible set "
        "is the smallest set of k that holds 95% of it.",
    ),
    (
        "Beta",
        "How strongly neighbors pull a row toward their own class. Near 0 they say nothing.",
    ),
)


def meaning(found: Findings) -> Terms:
    """The terms that the page uses."""
    return Terms(TERMS if found.held_out.k is None else TERMS + ABOUT_K)
