"""Whether the parts of a model that came from a file fit together.

Somebody may have changed the arrays of a file. What would then fail, or give nonsense, in `predict`
is found when the file is loaded: labels must be a sorted list of different ones, and each step
before the classifier is tried on one row, which must come out finite and as wide as the next step
expects. What the classifier itself holds is judged where it is restored, in `fitted_state`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn import compose, pipeline, preprocessing

from kfree.tables import TablePreparation

# Steps that choose columns by name, or take texts: of these no row is known that they must take.
UNTRIED = (
    compose.ColumnTransformer,
    pipeline.FeatureUnion,
    preprocessing.FunctionTransformer,
    preprocessing.OneHotEncoder,
    preprocessing.OrdinalEncoder,
)
PLAIN_METRICS = ("minkowski", "euclidean", "manhattan", "chebyshev")


def check_parts(model: Any) -> None:
    """Raise ValueError unless the steps of a fitted model fit together."""
    steps = list(_steps(model))
    classes = steps[-1].classes_
    _demand(isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) > 0, "classes")
    _demand(classes.dtype.kind in "OUSbiuf", "classes")
    if classes.dtype.kind == "f":
        _demand(bool(np.isfinite(classes).all()), "classes")
    _demand(bool((classes[1:] > classes[:-1]).all()), "classes")
    _check_arrays(steps[-1])
    for step, after in pairwise(steps):
        made = _tried(step)
        expected = getattr(after, "n_features_in_", None)
        if made is not None and expected is not None:
            _demand(made == expected, f"{type(step).__name__} and {type(after).__name__}")


def _check_arrays(classifier: Any) -> None:
    """No number that a classifier keeps is NaN, and its points are as wide as it says.

    Points of other metrics than these are kept in a form of their own, which only `fitted_state`
    knows, and those of nan_euclidean may be NaN.
    """
    state = classifier.__getstate__()
    metric = getattr(classifier, "metric", None)
    for values in _arrays(state):
        if values.dtype.kind == "f" and metric != "nan_euclidean":
            _demand(not np.isnan(values).any(), "numbers")
    fitted = state.get("_fitted")
    points = fitted.get("points") if isinstance(fitted, dict) else None
    if isinstance(points, np.ndarray) and metric in PLAIN_METRICS:
        width = (classifier.n_features_in_,)
        _demand(points.shape[1:] == width and bool(np.isfinite(points).all()), "points")


def _arrays(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _arrays(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _arrays(part)


def _steps(model: Any) -> Iterator[Any]:
    """The steps of a pipeline, those of pipelines in it too."""
    if isinstance(model, pipeline.Pipeline):
        for _, step in model.steps:
            if step is not None and step != "passthrough":
                yield from _steps(step)
    else:
        yield model


def _tried(step: Any) -> int | None:
    """How many features a step makes of one row; None if no row is known that it must take."""
    if isinstance(step, UNTRIED):
        return None
    if isinstance(step, TablePreparation):  # judged when it was restored
        return len(step.get_feature_names_out())
    with warnings.catch_warnings():
        # The row has no names, and no more is asked of it than that it can be used.
        warnings.simplefilter("ignore")
        # Ones: all scalers take them, logarithms included.
        n_features = step.n_features_in_
        _demand(isinstance(n_features, int) and n_features > 0, type(step).__name__)
        made = step.transform(np.ones((1, n_features)))
        made = np.asarray(made, dtype=float)
    _demand(made.ndim == 2 and len(made) == 1, type(step).__name__)
    _demand(bool(np.isfinite(made).all()), type(step).__name__)
    return made.shape[1]


def _demand(fine: bool, what: str) -> None:
    if not fine:
        raise ValueError(f"The {what} of the saved model do not fit together.")
