"""What fit has found out, as plain arrays, and back.

Trees, histograms and quadrature nodes are not kept: they follow from the points, their labels, the
neighbor table and the modes of beta, and come out the same to the last bit. So a saved or pickled
estimator holds nothing but parameters, arrays and numbers, which a file format can carry that runs
no code. Arrays may come from a file that somebody else made, so they are judged before they are
used: compiled code below does not look where an index points.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kfree.inference.metropolis import Draws
from kfree.inference.prior import GammaPrior
from kfree.inference.quadrature import Modes
from kfree.neighbors.given_graph import NeighborLists
from kfree.neighbors.graph import NeighborGraph
from kfree.neighbors.metric import (
    PAIRWISE,
    Direction,
    Linear,
    Map,
    Minkowski,
    Pairwise,
    Scale,
    Space,
)
from kfree.neighbors.search import Search, make_search
from kfree.neighbors.structures import STRUCTURES
from kfree.training import Model, assemble

LISTS = ("indptr", "indices", "distances", "n_points")
DRAWS = ("k", "beta", "label", "acceptance", "class_probabilities", "class_squares")


def neighbors_state(
    space: Space, points: Any, graph: NeighborGraph, labels: np.ndarray
) -> dict[str, Any]:
    """The training points, their labels and their neighbors."""
    return {
        "space": _space_state(space),
        "points": _points_state(points),
        "labels": labels,
        "indices": graph.indices,
        "distances": graph.distances,
    }


def restored_neighbors(
    state: dict[str, Any], algorithm: str, n_classes: int
) -> tuple[Space, Search, NeighborGraph, np.ndarray]:
    """The space, the search, the graph and the labels that `neighbors_state` was made of."""
    points, labels, indices, distances = (
        state[name] for name in ("points", "labels", "indices", "distances")
    )
    points = _points(points)
    n_points, n_neighbors = len(points), indices.shape[-1]
    _demand(labels.shape == (n_points,) and labels.dtype.kind == "i", "labels")
    _demand(labels.min() >= 0 and labels.max() < n_classes, "labels")
    _demand(indices.shape == distances.shape == (n_points, n_neighbors), "neighbors")
    _demand(0 < n_neighbors < n_points, "neighbors")
    _demand(indices.dtype.kind == "i" and distances.dtype.kind == "f", "neighbors")
    _demand(indices.min() >= 0 and indices.max() < n_points, "neighbors")
    _demand(not np.isnan(distances).any(), "distances")
    space = _space(state["space"])
    search = make_search(space, points, algorithm)
    return space, search, NeighborGraph(indices, distances), labels


def model_state(space: Space, model: Model, draws: Draws | None) -> dict[str, Any]:
    """All that a fitted KFreeClassifier knows."""
    modes = model.modes
    return neighbors_state(space, model.search.points, model.graph, model.labels) | {
        "structure": model.structure,
        "prior": [model.prior.shape, model.prior.scale],
        "modes": {"beta": modes.beta, "std": modes.std, "log_evidence": modes.log_evidence},
        "draws": None if draws is None else {name: getattr(draws, name) for name in DRAWS},
    }


def restored_model(
    state: dict[str, Any], algorithm: str, n_classes: int, every_k: bool
) -> tuple[Space, Model, Draws | None]:
    """The space, model and draws that `model_state` was made of; `every_k` as in `train`."""
    space, search, graph, labels = restored_neighbors(state, algorithm, n_classes)
    structure, (shape, scale) = state["structure"], state["prior"]
    _demand(structure in STRUCTURES, "structure")
    _demand(0.0 < shape < np.inf and 0.0 < scale < np.inf, "prior")
    modes = Modes(**state["modes"])
    for values in (modes.beta, modes.std, modes.log_evidence):
        _demand(values.shape == (graph.k_max,) and values.dtype == np.float64, "modes")
        _demand(bool(np.isfinite(values).all()), "modes")
    _demand(bool((modes.beta > 0).all() and (modes.std > 0).all()), "modes")
    prior = GammaPrior(float(shape), float(scale))
    model = assemble(search, graph, labels, n_classes, structure, prior, modes, every_k=every_k)
    draws = None if state["draws"] is None else _draws(state["draws"], graph.k_max)
    return space, model, draws


def _draws(state: dict[str, Any], n_k: int) -> Draws:
    draws = Draws(**{name: state[name] for name in DRAWS})
    _demand(draws.k.ndim == 3 and draws.k.dtype.kind == "i", "draws")
    _demand(draws.beta.shape == draws.k.shape and draws.beta.dtype == np.float64, "draws")
    _demand(draws.k.min() > 0 and draws.k.max() <= n_k and draws.beta.min() > 0, "draws")
    return draws


def _points_state(points: Any) -> Any:
    if not isinstance(points, NeighborLists):
        return points
    return {name: getattr(points, name) for name in LISTS}


def _points(state: Any) -> Any:
    if not isinstance(state, dict):
        _demand(state.ndim == 2 and state.dtype.kind in "fb", "points")
        return state
    lists = NeighborLists(*(state[name] for name in LISTS))
    for indices in (lists.indptr, lists.indices):
        _demand(indices.ndim == 1 and indices.dtype.kind == "i", "neighbors")
    _demand(isinstance(lists.n_points, int) and len(lists) == lists.n_points, "neighbors")
    _demand(lists.indptr[0] == 0 and bool((lists.lengths >= 0).all()), "neighbors")
    _demand(lists.indptr[-1] == len(lists.indices) == len(lists.distances), "neighbors")
    _demand(lists.distances.ndim == 1 and lists.distances.dtype.kind == "f", "distances")
    _demand(bool(((lists.indices >= 0) & (lists.indices < lists.n_points)).all()), "neighbors")
    return lists


def _space_state(space: Space) -> dict[str, Any]:
    if isinstance(space, Pairwise):
        return {"metric": space.metric, "params": space.params}
    state: dict[str, Any] = {"p": space.p}
    if isinstance(space.map, Scale):
        state["factors"] = space.map.factors
    elif isinstance(space.map, Linear):
        state["matrix"] = space.map.matrix
    elif isinstance(space.map, Direction):
        state["center"] = space.map.center
    return state


def _space(state: dict[str, Any]) -> Space:
    if "metric" in state:
        metric = state["metric"]
        _demand(callable(metric) or metric in PAIRWISE or metric == "precomputed", "metric")
        return Pairwise(metric, state["params"])
    _demand(state["p"] > 0.0, "metric")
    image: Map | None = None
    if "factors" in state:
        image = Scale(state["factors"])
    elif "matrix" in state:
        image = Linear(state["matrix"])
    elif "center" in state:
        image = Direction(state["center"])
    return Minkowski(state["p"], image)


def _demand(fine: bool, what: str) -> None:
    if not fine:
        raise ValueError(f"The {what} of the saved model do not fit together.")
