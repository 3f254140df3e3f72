"""The one place where what users give is judged.

Every check raises before anything of an estimator has changed, with one sentence that says what
was wrong and what is expected.
"""

from kfree.validation.field import (
    check_class_weight,
    check_field,
    check_field_rows,
    check_sample_weight,
)
from kfree.validation.metrics import check_features_of_metric, takes_sparse
from kfree.validation.parameters import (
    check_candidates,
    check_classifier,
    check_fixed,
    check_n_listed,
    check_n_neighbors,
    check_sampler,
    check_strength,
)
from kfree.validation.rows import (
    check_given,
    check_held_out,
    check_labels_of_part,
    check_names,
    check_new,
    check_part,
    check_training,
    remember_features,
)
from kfree.validation.scalars import check_beta, one_of

__all__ = [
    "check_beta",
    "check_candidates",
    "check_class_weight",
    "check_classifier",
    "check_features_of_metric",
    "check_field",
    "check_field_rows",
    "check_fixed",
    "check_given",
    "check_held_out",
    "check_labels_of_part",
    "check_n_listed",
    "check_n_neighbors",
    "check_names",
    "check_new",
    "check_part",
    "check_sample_weight",
    "check_sampler",
    "check_strength",
    "check_training",
    "one_of",
    "remember_features",
    "takes_sparse",
]
