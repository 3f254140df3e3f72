"""Which classifier is taken where nobody names one."""

from __future__ import annotations

from kfree.classifier import KFreeClassifier
from kfree.field.estimator import FieldClassifier

# The field whitens all columns at once, which takes memory by the square of their number.
MOST_COLUMNS = 1_000


def usual_classifier(n_columns: int) -> type[FieldClassifier] | type[KFreeClassifier]:
    """The classifier that is measured to be better (docs/field.md, docs/audit.md), if it can be.

    Parameters
    ----------
    n_columns : int
        Of the table.
    """
    return FieldClassifier if n_columns <= MOST_COLUMNS else KFreeClassifier
