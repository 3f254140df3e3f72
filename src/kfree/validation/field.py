"""The parameters and the training rows of a FieldClassifier."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from kfree.validation.metrics import check_metric, check_metric_param
from kfree.validation.rows import Rows
from kfree.validation.scalars import check_jobs, positive, whole


def check_field(estimator: Any, names: tuple[str, ...]) -> list[tuple[str, Any, dict | None]]:
    """Judge the parameters of a FieldClassifier; its views as (name, metric, params)."""
    if not isinstance(estimator.linear, (bool, np.bool_)):
        raise ValueError(f"linear must be True or False; got {estimator.linear!r}.")
    whole("n_neighbors", estimator.n_neighbors, least=2)
    whole("max_iter", estimator.max_iter)
    positive("tol", estimator.tol)
    check_jobs(estimator.n_jobs)
    views = [_view(view, names) for view in _views(estimator.views)]
    taken = [name for name, _, _ in views]
    twice = sorted({name for name in taken if taken.count(name) > 1})
    if twice:
        raise ValueError(f"Every view needs a name of its own; views has {twice[0]!r} twice.")
    if any(metric == "precomputed" for _, metric, _ in views):
        if len(views) > 1:
            raise ValueError(
                "A 'precomputed' view must be the only one, as X holds distances and no columns; "
                f"views has {len(views)}."
            )
        if estimator.linear:
            raise ValueError(
                "A 'precomputed' view needs linear=False, as X holds distances and no columns."
            )
    return views


def _views(views: Any) -> list[Any]:
    if isinstance(views, str) or not isinstance(views, (tuple, list)) or len(views) == 0:
        raise ValueError(
            "views must be a list or tuple of at least one view, such as ('scores', 'within'); "
            f"got {views!r}."
        )
    return list(views)


def _view(view: Any, names: tuple[str, ...]) -> tuple[str, Any, dict | None]:
    known = ", ".join(map(repr, names))
    if isinstance(view, str):
        if view not in names:
            raise ValueError(
                f"There is no view {view!r}; a view is one of {known}, or a tuple "
                "(name, metric, params)."
            )
        return view, None, None
    if not isinstance(view, (tuple, list)) or len(view) != 3 or not isinstance(view[0], str):
        raise ValueError(
            f"A view is one of {known}, or a tuple (name, metric, params); got {view!r}."
        )
    name, metric, params = view
    if name in names:
        raise ValueError(f"{name!r} is a view of its own; give the view of a metric another name.")
    try:
        check_metric(metric, 2, params, "auto")
    except ValueError as error:
        raise ValueError(f"The view {name!r}: {error}") from None
    return name, metric, params


def check_field_rows(views: Any, rows: Rows, n_classes: int, few_classes: int) -> None:
    """Judge the training rows by what each view asks of them; trees speak for `few_classes`."""
    if n_classes > few_classes and all(view.name == "forest" for view in views):
        raise ValueError(
            f"The view 'forest' alone speaks for up to {few_classes} classes; y has {n_classes}. "
            "Give views that have neighbors too, such as ('scores', 'within')."
        )
    for view in views:
        if view.metric == "haversine" and rows.shape[1] != 2:
            raise ValueError(
                f"The view {view.name!r}: metric='haversine' needs 2 features, latitude and "
                f"longitude in radians; X has {rows.shape[1]}."
            )
        if isinstance(view.metric, str):
            for name, value in (view.params or {}).items():
                if name != "p":
                    label = f"The view {view.name!r}: params[{name!r}]"
                    check_metric_param(label, value, view.metric, rows.shape[1])


def check_sample_weight(weights: Any, n_samples: int) -> np.ndarray:
    """Weights of rows, 1 for each where none are given."""
    if weights is None:
        return np.ones(n_samples)
    if isinstance(weights, numbers.Real):
        weights = np.full(n_samples, float(weights))
    try:
        checked = np.asarray(weights, dtype=float)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must hold numbers.") from None
    if checked.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has shape {checked.shape}; it needs one weight for each of the "
            f"{n_samples} rows."
        )
    if not np.isfinite(checked).all():
        row = int((~np.isfinite(checked)).argmax())
        raise ValueError(
            f"sample_weight contains NaN or infinity, first in row {row}; all must be finite."
        )
    if checked.min() < 0.0:
        row = int((checked < 0.0).argmax())
        raise ValueError(
            f"sample_weight contains a negative weight, {checked[row]:g} in row {row}; weights "
            "must be zero or positive."
        )
    if checked.sum() == 0.0:
        raise ValueError("sample_weight is zero for every row; at least one must be positive.")
    return checked


def check_class_weight(by_class: np.ndarray, weights: np.ndarray) -> None:
    """Raise unless what `class_weight` makes of rows with these weights can be fitted."""
    if not (np.isfinite(by_class).all() and by_class.min() >= 0.0):
        raise ValueError("class_weight must hold finite weights that are zero or positive.")
    if (by_class * weights).sum() == 0.0:
        raise ValueError(
            "class_weight leaves every row a weight of zero; at least one must be positive."
        )
