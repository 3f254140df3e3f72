"""From parts of a table to shards of training rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree
from sklearn.preprocessing import LabelEncoder

from kfree import validation
from kfree.neighbors.metric import Minkowski, Space, make_space
from kfree.neighbors.search import Search, make_search

# How many rows decide where the cuts go.
SAMPLE_ROWS = 20_000
# Distances to boxes are compared with this relative margin for rounding.
MARGIN = 1e-9
SPARSE = (
    "X has sparse chunks, but rows in shards are dense; make them so with "
    "X.map_blocks(lambda block: block.toarray()), or use kfree.KFreeClassifier."
)


@dataclass(frozen=True)
class Part:
    """Some rows of the training table as they were given, in order; or what is wrong with them."""

    X: np.ndarray  # (n_rows, n_features)
    y: np.ndarray  # (n_rows,) labels as they were given
    problem: str | None = None


@dataclass(frozen=True)
class Summary:
    """What has to be known of a part before rows are moved."""

    n_rows: int
    n_features: int
    dtype: str
    largest: float  # absolute value
    labels: np.ndarray  # distinct
    problem: str | None


def read_part(settings: Any, X: Any, y: Any) -> Part:
    """Rows and labels, judged; `settings` is an estimator that has the metric."""
    none = Part(np.empty((0, X.shape[1])), np.empty(0))
    n_rows, n_labels = X.shape[0], len(y)
    if sparse.issparse(X):
        return replace(none, problem=SPARSE)
    if n_rows != n_labels:
        return replace(none, problem=f"X has {n_rows} rows but y has {n_labels} labels.")
    if n_rows == 0:
        return none
    if np.ndim(y) == 2:
        y = np.asarray(y)[:, 0] if np.shape(y)[1] == 1 else y
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a part may well have one row for each class
            return Part(validation.check_part(settings, X), validation.check_labels_of_part(y))
    except ValueError as error:
        return replace(none, problem=str(error))


def read_new(settings: Any, X: Any, plan: Plan, number: int) -> np.ndarray:
    """The new rows of a part, judged, as the space has them."""
    where, n_features = f"Partition {number}: ", plan.n_features
    if sparse.issparse(X):
        raise ValueError(where + SPARSE)
    if X.shape[1] != n_features:
        raise ValueError(
            f"{where}X has {X.shape[1]} features, but KFreeClassifier is expecting "
            f"{n_features} features as input."
        )
    if len(X) == 0:
        return plan.space.points(np.empty((0, n_features)))
    try:
        return plan.space.points(validation.check_part(settings, X))
    except ValueError as error:
        raise ValueError(where + str(error)) from None


def summarize(part: Part) -> Summary:
    """What the client hears of a part."""
    with np.errstate(invalid="ignore"):
        largest = float(np.nanmax(np.abs(part.X), initial=0.0)) if part.X.size else 0.0
    return Summary(
        len(part.X),
        part.X.shape[1],
        str(part.X.dtype),
        largest,
        np.unique(part.y),
        part.problem,
    )


@dataclass(frozen=True)
class Plan:
    """How the rows of the whole are brought to shards."""

    space: Space
    algorithm: str
    dtype: str
    classes: np.ndarray
    n_features: int  # of rows as they were given
    n_points: int  # of all shards
    n_shards: int
    by_space: bool

    def prepared(self, X: np.ndarray) -> np.ndarray:
        """Rows as they are compared, in double precision."""
        points = self.space.points(X.astype(self.dtype, copy=False))
        return self.space.prepared(points) if isinstance(self.space, Minkowski) else points

    @property
    def code_type(self) -> type:
        """Integers that hold the codes of all rows."""
        n_codes = self.n_points * self.n_shards * len(self.classes)
        return np.int32 if n_codes < 1 << 31 else np.int64


def make_plan(settings: Any, parts: Sequence[Summary], n_shards: int, by_space: bool) -> Plan:
    """The plan for parts that were judged; `settings` is a kfree.KFreeClassifier."""
    for i, part in enumerate(parts):
        if part.problem is not None:
            raise ValueError(f"Partition {i}: {part.problem}")
    n_points = sum(part.n_rows for part in parts)
    if n_points < 2:
        raise ValueError(f"at least 2 rows, of 2 classes, are needed; X has {n_points}.")
    full = [part for part in parts if part.n_rows]
    n_features = full[0].n_features
    for i, part in enumerate(parts):
        if part.n_rows and part.n_features != n_features:
            raise ValueError(
                f"Partition {i}: X has {part.n_features} features, but the partitions before "
                f"have {n_features}."
            )
    classes = _classes_of([part.labels for part in full])
    validation.check_features_of_metric(settings, n_features)
    dtype = np.result_type(*(part.dtype for part in full))
    largest = np.full((1, n_features), max(part.largest for part in full), dtype=dtype)
    space = make_space(settings.metric, settings.p, settings.metric_params, largest)
    if by_space and not isinstance(space, Minkowski):
        raise ValueError(
            f"partition='space' cannot cut a space whose metric is {settings.metric!r}, which has "
            "no axes; use partition='rows'."
        )
    n_shards = min(n_shards, n_points)
    of = n_features, n_points, n_shards, by_space
    return Plan(space, settings.algorithm, str(dtype), classes, *of)


def _classes_of(labels: Sequence[np.ndarray]) -> np.ndarray:
    """The classes of all parts."""
    if len({part.dtype.kind in "OUS" for part in labels}) > 1:
        raise ValueError(
            "y has text in some partitions and numbers in others; use one kind of label."
        )
    classes = LabelEncoder().fit(np.concatenate(labels)).classes_
    if len(classes) < 2:
        raise ValueError(
            f"y has only one class, {classes[0]!r}; a classifier needs at least 2 classes."
        )
    return classes


@dataclass(frozen=True)
class Cuts:
    """A tree of k-d cuts; a child that is negative is the shard -1 - child."""

    axis: np.ndarray  # (n_cuts,)
    value: np.ndarray  # (n_cuts,) rows below it go to the first child, all others to the second
    children: np.ndarray  # (n_cuts, 2)

    def shard_of(self, points: np.ndarray) -> np.ndarray:
        """The shard of each point: (n_points,)."""
        node = np.zeros(len(points), dtype=np.int64)
        if not len(self.axis):
            return node
        going = np.arange(len(points))
        while len(going):
            at = node[going]
            second = points[going, self.axis[at]] >= self.value[at]
            node[going] = self.children[at, second.astype(np.int64)]
            going = going[node[going] >= 0]
        return -1 - node


def sample_rows(part: Part, plan: Plan) -> np.ndarray:
    """Evenly spaced rows of a part, ready to be compared."""
    step = max(1, plan.n_points // SAMPLE_ROWS)
    return plan.prepared(part.X[::step])


def make_cuts(samples: Sequence[np.ndarray], n_shards: int) -> Cuts:
    """Cuts across the widest direction, each so that shards get about as many rows."""
    axis: list[int] = []
    value: list[float] = []
    children: list[list[int]] = []
    n_leaves = 0

    def cut(points: np.ndarray, n: int) -> int:
        nonlocal n_leaves
        if n == 1:
            n_leaves += 1
            return -n_leaves
        node = len(axis)
        widest = int(np.argmax(points.std(axis=0))) if len(points) else 0
        low = n // 2
        at = float(np.quantile(points[:, widest], low / n)) if len(points) else 0.0
        axis.append(widest)
        value.append(at)
        children.append([0, 0])
        below = points[:, widest] < at
        children[node] = [cut(points[below], low), cut(points[~below], n - low)]
        return node

    cut(np.concatenate([sample for sample in samples if len(sample)]), n_shards)
    return Cuts(np.array(axis, dtype=int), np.array(value), np.array(children, dtype=int))


@dataclass(frozen=True)
class Piece:
    """The rows of one part that go to one shard, in order."""

    ids: np.ndarray  # (n,) places in the whole, rising
    points: np.ndarray  # (n, n_features) as the space has them
    labels: np.ndarray  # (n,) integers from 0


def split_part(part: Part, plan: Plan, first: int, cuts: Cuts | None) -> list[Piece]:
    """The pieces of a part for all shards; its first row is the row `first` of the whole.

    Without cuts, shards are equal runs of rows as they come.
    """
    n = len(part.X)
    ids = first + np.arange(n)
    labels = np.searchsorted(plan.classes, part.y) if n else np.empty(0, dtype=np.int64)
    if not n:
        none = Piece(ids, np.empty((0, part.X.shape[1])), labels)
        return [none] * plan.n_shards
    points = plan.space.points(part.X.astype(plan.dtype, copy=False))
    if cuts is None:
        shard = ids * plan.n_shards // plan.n_points
    else:
        shard = cuts.shard_of(plan.prepared(part.X))
    chosen = [np.flatnonzero(shard == s) for s in range(plan.n_shards)]
    return [Piece(ids[rows], points[rows], labels[rows]) for rows in chosen]


@dataclass(frozen=True)
class Shard:
    """Training rows that are searched together."""

    number: int
    plan: Plan
    ids: np.ndarray  # (n,) places in the whole, rising
    points: np.ndarray  # (n, n_features) as the space has them
    labels: np.ndarray  # (n,) integers from 0

    @property
    def n_points(self) -> int:
        return len(self.ids)

    @cached_property
    def search(self) -> Search:
        return make_search(self.plan.space, self.points, self.plan.algorithm)

    @cached_property
    def codes(self) -> np.ndarray:
        """What others know the rows by: (n,)."""
        plan = self.plan
        key = self.ids.astype(np.int64) * plan.n_shards + self.number
        return (key * len(plan.classes) + self.labels).astype(plan.code_type)

    @cached_property
    def spatial_order(self) -> np.ndarray:
        """The rows in an order in which those that lie together come together: (n,)."""
        return spatial_order(self.points)

    def __getstate__(self) -> dict:
        # Trees are planted anew where the shard arrives.
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def spatial_order(points: np.ndarray) -> np.ndarray:
    """Points in an order in which those that lie together come together: (n,)."""
    if points.dtype.kind != "f":
        return np.arange(len(points))
    return cKDTree(points, balanced_tree=False, compact_nodes=False).indices


def label_of(codes: np.ndarray, plan: Plan) -> np.ndarray:
    """The labels of rows that are known by their codes."""
    return codes % len(plan.classes)


def shard_of(codes: np.ndarray, plan: Plan) -> np.ndarray:
    """The shards in which they are."""
    return codes // len(plan.classes) % plan.n_shards


def id_of(codes: np.ndarray, plan: Plan) -> np.ndarray:
    """Their places in the whole."""
    return codes // (len(plan.classes) * plan.n_shards)


def make_shard(number: int, plan: Plan, pieces: Sequence[Piece]) -> Shard:
    """A shard of its pieces, which come in the order of the parts."""
    full = [piece for piece in pieces if len(piece.ids)]
    if not full:
        full = list(pieces[:1])
    ids, points, labels = (
        np.concatenate([getattr(piece, name) for piece in full])
        for name in ("ids", "points", "labels")
    )
    return Shard(number, plan, ids, points, labels)


@dataclass(frozen=True)
class Boxes:
    """The box of each shard, in which all of its points lie; none for spaces without axes."""

    n_points: np.ndarray  # (n_shards,)
    low: np.ndarray | None  # (n_shards, n_features)
    high: np.ndarray | None

    def gap(self, space: Space, points: np.ndarray, shard: int) -> np.ndarray:
        """At least how far points (n, n_features) are from all of a shard's: (n,)."""
        if self.low is None or self.high is None or not isinstance(space, Minkowski):
            return np.zeros(len(points))
        rows = space.prepared(points)
        away = np.maximum(np.maximum(self.low[shard] - rows, rows - self.high[shard]), 0.0)
        return space.between(away, np.zeros(1)) * (1.0 - MARGIN)


def box_of(shard: Shard) -> tuple[np.ndarray, np.ndarray] | None:
    """The lowest and the highest coordinates of a shard's points."""
    space = shard.plan.space
    if not isinstance(space, Minkowski) or not shard.n_points:
        return None
    points = space.prepared(shard.points)
    return points.min(axis=0), points.max(axis=0)


def make_boxes(n_points: Sequence[int], boxes: Sequence[tuple | None]) -> Boxes:
    """The boxes of all shards; those of empty shards are never looked at."""
    known = [box for box in boxes if box is not None]
    if not known:
        return Boxes(np.array(n_points), None, None)
    low, high = (
        np.stack([known[0][side] if box is None else box[side] for box in boxes]) for side in (0, 1)
    )
    return Boxes(np.array(n_points), low, high)
