"""What a fitted field holds, as plain arrays, and back.

What follows from the rows and labels is not kept (scales, whitening, directions, searches), so that
a file is hardly larger than the rows and the trees. Arrays may come from a file that somebody else
made, so they are judged before they are used.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from kfree.field.assembly import Assembly, prepare
from kfree.field.crossed import Crossed
from kfree.field.curves import Curves, landmarks_of
from kfree.field.design import Weights
from kfree.field.features import Reading
from kfree.field.forest import Forest
from kfree.field.linear import Projection, make_projection
from kfree.field.views import Spec
from kfree.neighbors.given_graph import NeighborLists

NOT_FITTING = "The {} of the saved model do not fit together."

HeldOut = tuple[np.ndarray, np.ndarray, np.ndarray]


def field_state(assembly: Assembly, weights: Weights, held_out: HeldOut) -> dict[str, Any]:
    """All that a fitted FieldClassifier knows."""
    prepared, curves = assembly.prepared, assembly.curves
    rows = prepared.rows
    return {
        "specs": [[spec.name, spec.metric, spec.params] for spec in prepared.specs],
        "rows": _plain(rows) if isinstance(rows, NeighborLists) else rows,
        "labels": prepared.labels,
        "length": assembly.length,
        "readings": [[one.unit, list(one.fractions), list(one.ranks)] for one in assembly.readings],
        "projections": [one.of_rows for one in assembly.projections],
        # The landmarks follow from the rows.
        "curves": None
        if curves is None
        else {"unit": curves.unit, "matrix": curves.matrix, "center": curves.center},
        "forest": _plain(assembly.forest),
        "crossed": _plain(assembly.crossed),
        "weights": _plain(weights),
        "held_out": list(held_out),
    }


def restored_field(state: dict[str, Any], n_classes: int) -> tuple[Assembly, Weights, HeldOut]:
    """The parts that `field_state` was made of."""
    rows, labels, length = state["rows"], state["labels"], state["length"]
    if isinstance(rows, dict):
        rows = NeighborLists(**rows)
    n_rows = len(rows)
    _demand(labels.shape == (n_rows,) and labels.dtype.kind == "i", "labels")
    _demand(labels.min() >= 0 and labels.max() < n_classes, "labels")
    _demand(0 < length < n_rows, "neighbors")
    specs = [Spec(*spec) for spec in state["specs"]]
    if all(spec.metric != "precomputed" for spec in specs):
        _demand(bool(np.isfinite(rows).all()), "rows")
    prepared, scaled = prepare(rows, labels, n_classes, specs)
    readings = tuple(
        Reading(unit, tuple(fractions), tuple(ranks), n_classes)
        for unit, fractions, ranks in state["readings"]
    )
    for reading in readings:
        within = all(0 < k <= length for k in reading.fractions + reading.ranks)
        _demand(within and reading.unit > 0.0, "readings")
    projections: tuple[Projection, ...] = ()
    curves = None
    if state["curves"] is not None:
        if scaled is None or len(state["projections"]) != 2:
            raise ValueError(NOT_FITTING.format("columns"))
        of_standardized, of_scores = state["projections"]
        projections = (
            make_projection(of_standardized, scaled.standardized),
            make_projection(of_scores, scaled.scores),
        )
        n_landmarks = len(state["curves"]["matrix"])
        _demand(0 < n_landmarks <= n_rows, "curves")
        curves = Curves(landmarks=landmarks_of(scaled.scores, n_landmarks), **state["curves"])
    forest = None if state["forest"] is None else _forest(state["forest"], n_classes)
    crossed = None if state["crossed"] is None else Crossed(**state["crossed"])
    weights = Weights(**state["weights"])
    for field in fields(Weights):
        _demand(bool(np.isfinite(getattr(weights, field.name)).all()), "weights")
    _demand(weights.offset.shape == (n_classes,), "weights")
    row, starts, eta = state["held_out"]
    _demand(row.shape == eta.shape and starts.shape == (n_classes + 1,), "logits")
    _demand(len(row) > 0 and row.min() >= 0 and row.max() < n_rows, "logits")
    _demand(starts[0] == 0 and starts[-1] == len(row), "logits")
    _demand(bool((np.diff(starts) >= 0).all()), "logits")
    assembly = Assembly(prepared, length, readings, projections, curves, forest, crossed)
    return assembly, weights, (row, starts, eta)


def _forest(state: dict[str, Any], n_classes: int) -> Forest:
    forest = Forest(**state)
    nodes = np.arange(len(forest.left))
    _demand(forest.shares.shape == (len(nodes), n_classes), "trees")
    leaf = (forest.left == nodes) & (forest.right == nodes)
    # Children come after their parent, so that every walk ends.
    down = (forest.left > nodes) & (forest.right > nodes)
    _demand(bool((leaf | down).all()), "trees")
    _demand(forest.left.max() < len(nodes) and forest.right.max() < len(nodes), "trees")
    _demand(forest.roots.min() >= 0 and forest.roots.max() < len(nodes), "trees")
    return forest


def _plain(record: Any) -> dict[str, Any] | None:
    if record is None:
        return None
    return {field.name: getattr(record, field.name) for field in fields(record)}


def _demand(fine: bool, what: str) -> None:
    if not fine:
        raise ValueError(NOT_FITTING.format(what))
