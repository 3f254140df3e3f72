"""What fit has found out, as plain arrays, and back.

Trees and neighborhoods are not kept: they follow from the points, their labels and the neighbor
lists, and come out the same to the last bit. So a saved or pickled
estimator holds nothing but parameters, arrays and numbers, which a file format can carry that runs
no code. Arrays may come from a file that somebody else made, so they are judged before they are
used: compiled code below does not look where an index points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from kfree.candidates import Candidates
from kfree.inference.metropolis import Draws
from kfree.inference.prior import GammaPrior
from kfree.inference.quadrature import BetaPosterior
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

CURVES = ("mode", "std", "log_evidence", "beta", "log_mass", "bounded")
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
        "k": graph.k,
        "indices": graph.indices,
        "radii": graph.radii,
    }


def restored_neighbors(
    state: dict[str, Any], algorithm: str, n_classes: int
) -> tuple[Space, Search, NeighborGraph, np.ndarray]:
    """The space, the search, the graph and the labels that `neighbors_state` was made of."""
    points, labels, k, indices, radii = (
        state[name] for name in ("points", "labels", "k", "indices", "radii")
    )
    points = _points(points)
    n_points, n_neighbors = points.shape[0], indices.shape[-1]
    _demand(labels.shape == (n_points,) and labels.dtype.kind == "i", "labels")
    _demand(labels.min() >= 0 and labels.max() < n_classes, "labels")
    _demand(k.ndim == 1 and len(k) > 0 and k.dtype.kind == "i", "candidates")
    _demand(k[0] > 0 and bool((np.diff(k) > 0).all()) and k[-1] == n_neighbors, "candidates")
    _demand(indices.shape == (n_points, n_neighbors) and n_neighbors < n_points, "neighbors")
    _demand(radii.shape == (n_points, len(k)) and radii.dtype == np.float64, "distances")
    _demand(indices.dtype.kind == "i", "neighbors")
    _demand(indices.min() >= 0 and indices.max() < n_points, "neighbors")
    _demand(bool((radii >= 0.0).all()), "distances")
    _demand(bool((np.diff(radii, axis=1) >= 0.0).all()) or np.isinf(radii).any(), "distances")
    space = _space(state["space"])
    search = make_search(space, points, algorithm)
    return space, search, NeighborGraph(k, indices, radii), labels


def model_state(space: Space, model: Model, draws: Draws | None) -> dict[str, Any]:
    """All that a fitted KFreeClassifier knows."""
    return neighbors_state(space, model.search.points, model.graph, model.labels) | {
        "structure": model.structure,
        "prior": [model.prior.shape, model.prior.scale],
        "log_prior": model.candidates.log_prior,
        "curves": {name: getattr(model.posterior.curves, name) for name in CURVES},
        "draws": None if draws is None else {name: getattr(draws, name) for name in DRAWS},
    }


def restored_model(
    state: dict[str, Any], algorithm: str, n_classes: int
) -> tuple[Space, Model, Draws | None]:
    """The space, model and draws that `model_state` was made of."""
    space, search, graph, labels = restored_neighbors(state, algorithm, n_classes)
    structure, (shape, scale) = state["structure"], state["prior"]
    _demand(structure in STRUCTURES, "structure")
    _demand(0.0 < shape < np.inf and 0.0 < scale < np.inf, "prior")
    n_k, log_prior = len(graph.k), state["log_prior"]
    _demand(log_prior.shape == (n_k,) and bool(np.isfinite(log_prior).all()), "candidates")
    _demand(bool(np.isclose(np.exp(log_prior).sum(), 1.0)), "candidates")
    curves = _curves(state["curves"], n_k)
    candidates, prior = Candidates(graph.k, log_prior), GammaPrior(float(shape), float(scale))
    model = assemble(search, graph, labels, n_classes, structure, candidates, prior, curves)
    draws = None if state["draws"] is None else _draws(state["draws"], graph.k)
    return space, model, draws


def _curves(state: dict[str, Any], n_k: int) -> BetaPosterior:
    curves = BetaPosterior(**{name: state[name] for name in CURVES})
    for values in (curves.mode, curves.std, curves.log_evidence):
        _demand(values.shape == (n_k,) and values.dtype == np.float64, "posteriors")
        _demand(bool(np.isfinite(values).all()), "posteriors")
    _demand(curves.bounded.shape == (n_k,) and curves.bounded.dtype == bool, "posteriors")
    _demand(curves.beta.ndim == 2 and curves.beta.shape == curves.log_mass.shape, "posteriors")
    _demand(len(curves.beta) == n_k and curves.beta.dtype == np.float64, "posteriors")
    _demand(bool((np.isfinite(curves.beta) & (curves.beta > 0)).all()), "posteriors")
    _demand(curves.log_mass.dtype == np.float64, "posteriors")
    _demand(bool((curves.log_mass < np.inf).all()), "posteriors")
    _demand(bool(np.isfinite(curves.log_mass[:, 0]).all()), "posteriors")
    _demand(bool((curves.mode > 0).all() and (curves.std > 0).all()), "posteriors")
    return curves


def _draws(state: dict[str, Any], k: np.ndarray) -> Draws:
    draws = Draws(**{name: state[name] for name in DRAWS})
    _demand(draws.k.ndim == 3 and draws.k.dtype.kind == "i", "draws")
    _demand(draws.beta.shape == draws.k.shape and draws.beta.dtype == np.float64, "draws")
    _demand(bool(np.isin(draws.k, k).all()) and draws.beta.min() > 0, "draws")
    return draws


def _points_state(points: Any) -> Any:
    if sparse.issparse(points):
        return {"data": points.data, "indices": points.indices, "indptr": points.indptr} | {
            "n_columns": points.shape[1]
        }
    if not isinstance(points, NeighborLists):
        return points
    return {name: getattr(points, name) for name in LISTS}


def _points(state: Any) -> Any:
    if not isinstance(state, dict):
        _demand(state.ndim == 2 and state.dtype.kind in "fb", "points")
        return state
    if "data" in state:
        return _sparse_points(state)
    lists = NeighborLists(*(state[name] for name in LISTS))
    for indices in (lists.indptr, lists.indices):
        _demand(indices.ndim == 1 and indices.dtype.kind == "i", "neighbors")
    _demand(isinstance(lists.n_points, int) and len(lists) == lists.n_points, "neighbors")
    _demand(lists.indptr[0] == 0 and bool((lists.lengths >= 0).all()), "neighbors")
    _demand(lists.indptr[-1] == len(lists.indices) == len(lists.distances), "neighbors")
    _demand(lists.distances.ndim == 1 and lists.distances.dtype.kind == "f", "distances")
    _demand(bool(((lists.indices >= 0) & (lists.indices < lists.n_points)).all()), "neighbors")
    return lists


def _sparse_points(state: dict[str, Any]) -> Any:
    data, indices, indptr = (state[name] for name in ("data", "indices", "indptr"))
    _demand(data.ndim == indices.ndim == indptr.ndim == 1 and len(indptr) > 0, "points")
    _demand(data.dtype == np.float64 and bool(np.isfinite(data).all()), "points")
    _demand(indices.dtype.kind == indptr.dtype.kind == "i", "points")
    _demand(indptr[0] == 0 and bool((np.diff(indptr) >= 0).all()), "points")
    _demand(len(data) == len(indices) == indptr[-1], "points")
    shape = len(indptr) - 1, state["n_columns"]
    _demand(indices.min(initial=0) >= 0 and indices.max(initial=-1) < shape[1], "points")
    return sparse.csr_array((data, indices, indptr), shape=shape)


def _space_state(space: Space) -> dict[str, Any]:
    if isinstance(space, Pairwise):
        return {"metric": space.metric, "params": space.params}
    state: dict[str, Any] = {"p": space.p, "exponent": space.exponent}
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
    _demand(isinstance(state["exponent"], int) and abs(state["exponent"]) < 1100, "metric")
    return Minkowski(state["p"], image, state["exponent"])


def _demand(fine: bool, what: str) -> None:
    if not fine:
        raise ValueError(f"The {what} of the saved model do not fit together.")
