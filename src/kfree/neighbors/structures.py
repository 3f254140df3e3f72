"""The three neighborhood structures: what the neighbor table becomes, and what a new point changes.

A structure answers two questions without knowing any label. Which points are in whose
neighborhood at K (`neighborhoods`)? And when the label of one point is open, a new point that
joins or a training row that is held out: whose neighborhoods does that touch (`Visit.changes`)?

| structure | neighborhood of i | divided by |
|---|---|---|
| asymmetric (eq. 1) | ne(i) | K |
| boltzmann (eq. 2) | ne(i), and once more every j that has i in ne(j) | K |
| boltzmann2 ("equal weights") | ne(i) united with every j that has i in ne(j) | its size |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from kfree.neighbors.flat import expand, only_once
from kfree.neighbors.graph import NeighborGraph
from kfree.neighbors.search import Arrivals

STRUCTURES = ("asymmetric", "boltzmann", "boltzmann2")
# Those under which a new point joins whoever it has as a neighbor, and edges go on both sides.
JOINING = ("boltzmann", "boltzmann2")


@dataclass(frozen=True)
class Neighborhoods:
    """Who belongs to whose neighborhood from which K on.

    `neighbors[indptr[i]:indptr[i + 1]]` are i's, and each belongs to it for K > its rank. They are
    ordered by rank.
    """

    indptr: np.ndarray
    neighbors: np.ndarray
    ranks: np.ndarray
    by_size: bool  # divided by the size of the neighborhood instead of K
    k_max: int | None = None  # the length of every list, if they are all as long and in order

    def take(self, points: np.ndarray) -> Neighborhoods:
        """The neighborhoods of some of the points."""
        if self.k_max is not None:
            return nearest_table(self.neighbors.reshape(-1, self.k_max)[points])
        _, edge = expand(self.indptr, points)
        indptr = np.concatenate([[0], np.cumsum(np.diff(self.indptr)[points])])
        return Neighborhoods(indptr, self.neighbors[edge], self.ranks[edge], self.by_size)

    def of(self, points: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Flat (position in `points`, neighbor) for the neighborhoods at K = k."""
        if self.k_max is not None:  # all lists are as long, nearest first
            lists = self.neighbors.reshape(-1, self.k_max)
            return np.repeat(np.arange(len(points)), k), lists[points, :k].ravel()
        owner, edge = expand(self.indptr, points)
        kept = self.ranks[edge] < k
        return owner[kept], self.neighbors[edge[kept]]


@dataclass(frozen=True)
class Changes:
    """What the open label of each row touches at one K.

    A row is a new point or a training row that is held out. A pair is a row and a training point
    whose neighborhood changes: it takes up the row `weight` times, and loses neighbors.
    """

    n_rows: int
    own_row: np.ndarray  # the row's own neighborhood, flat: which row,
    own_neighbor: np.ndarray  # and which training point
    pair_row: np.ndarray  # (n_pairs,) in increasing order
    pair_point: np.ndarray  # (n_pairs,)
    weight: np.ndarray  # (n_pairs,)
    lost_pair: np.ndarray  # which pair loses
    lost_neighbor: np.ndarray  # which training point from its neighborhood
    by_point: bool  # weight and losses are the same in all pairs of a training point


class Visit(ABC):
    """Rows whose labels are open."""

    n_rows: int

    @abstractmethod
    def changes(self, k: int, touch: bool) -> Changes:
        """What the rows touch at K = k; only their own neighborhoods if not `touch`."""

    @abstractmethod
    def take(self, rows: np.ndarray) -> Visit:
        """The same for some of the rows, given by increasing index."""


def neighborhoods(structure: str, graph: NeighborGraph) -> Neighborhoods:
    """The neighborhoods of the training points for every K up to the table's."""
    if structure == "asymmetric":
        return nearest_table(graph.indices)
    n, k_max = graph.indices.shape
    forward = np.tile(np.arange(k_max, dtype=np.int32), n)
    source = np.repeat(np.arange(n, dtype=np.int32), k_max)
    target = graph.indices.ravel()
    if structure == "boltzmann2":
        # An edge is there from the smaller of its two ranks on; each is listed once.
        mutual = graph.mutual_rank.ravel()
        once = (forward < mutual) | ((forward == mutual) & (source < target))
        source, target, forward = source[once], target[once], forward[once]
    owner = np.concatenate([source, target])
    neighbor = np.concatenate([target, source])
    rank = np.concatenate([forward, forward])
    return _in_lists(n, owner, neighbor, rank, by_size=structure == "boltzmann2")


def _in_lists(
    n: int, owner: np.ndarray, neighbor: np.ndarray, rank: np.ndarray, by_size: bool
) -> Neighborhoods:
    """Neighborhoods of n points from edges in any order."""
    # Values sort faster than an order does, so the order is packed into them.
    bits = len(owner).bit_length()
    key = owner * (np.int64(rank.max(initial=0)) + 1) + rank
    order = np.sort((key << bits) | np.arange(len(owner))) & ((1 << bits) - 1)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n))])
    return Neighborhoods(indptr, neighbor[order], rank[order], by_size)


def nearest_table(indices: np.ndarray) -> Neighborhoods:
    """Lists of nearest neighbors (n, k_max), nearest first, as neighborhoods."""
    n, k_max = indices.shape
    ranks = np.tile(np.arange(k_max, dtype=np.int32), n)
    indptr = np.arange(0, n * k_max + 1, k_max)
    return Neighborhoods(indptr, indices.ravel(), ranks, by_size=False, k_max=k_max)


@dataclass(frozen=True)
class NewPoints(Visit):
    """New points that join the field one at a time."""

    structure: str
    graph: NeighborGraph
    arrivals: Arrivals

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        return len(self.arrivals.forward)

    def take(self, rows: np.ndarray) -> NewPoints:
        return NewPoints(self.structure, self.graph, self.arrivals.take(rows))

    def entered(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, the points whose K nearest they enter, and whom they push out there."""
        inside = self.arrivals.reverse_rank < k
        point = self.arrivals.reverse_point[inside].astype(np.int64)
        pushed = self.graph.indices[point, k - 1].astype(np.int64)
        return self.arrivals.reverse_row[inside], point, pushed

    def gone(self, k: int, row: np.ndarray, point: np.ndarray, pushed: np.ndarray) -> np.ndarray:
        """Which of the edges point - pushed, as `entered` gives them, go.

        Under boltzmann every edge counts for itself. In the undirected graph of boltzmann2 an edge
        stays while its other direction does: `point` has a rank below k - 1 in the list of
        `pushed`, or k - 1 and the new point did not push it out there too. Edges that go in both
        directions are counted once.
        """
        if self.structure != "boltzmann2":
            return np.ones(len(row), dtype=bool)
        n = self.graph.n_points
        back = self.graph.mutual_rank[point, k - 1]
        gone = back >= k
        last = np.flatnonzero(back == k - 1)
        both = np.isin(row[last] * n + pushed[last], row * n + point)
        gone[last[both & (point[last] < pushed[last])]] = True
        return gone

    def changes(self, k: int, touch: bool) -> Changes:
        near = self.arrivals
        n = self.graph.n_points
        forward_row = np.repeat(np.arange(self.n_rows), k)
        forward_point = near.forward[:, :k].ravel().astype(np.int64)
        row, point, pushed = self.entered(k)
        if self.structure == "asymmetric":
            own_row, own_neighbor = forward_row, forward_point
        else:
            own_row = np.concatenate([forward_row, row])
            own_neighbor = np.concatenate([forward_point, point])
            if self.structure == "boltzmann2":
                own_row, own_neighbor = np.divmod(only_once(own_row * n + own_neighbor), n)
        if not touch:
            return _untouched(self.n_rows, own_row, own_neighbor)
        if self.structure == "asymmetric":
            pairs = np.arange(len(row))
            one = np.ones(len(row), dtype=np.int64)
            return Changes(
                self.n_rows, own_row, own_neighbor, row, point, one, pairs, pushed, by_point=True
            )
        gone = self.gone(k, row, point, pushed)
        row, point, pushed = row[gone], point[gone], pushed[gone]
        # The neighborhoods are symmetric: the row's own neighbors take it up as often, and an edge
        # that goes is gone on both sides.
        losers = np.concatenate([row * n + point, row * n + pushed])
        key, where = np.unique(
            np.concatenate([own_row * n + own_neighbor, losers]), return_inverse=True
        )
        weight = np.bincount(where[: len(own_row)], minlength=len(key))
        pair_row, pair_point = np.divmod(key, n)
        return Changes(
            self.n_rows,
            own_row,
            own_neighbor,
            pair_row,
            pair_point,
            weight,
            where[len(own_row) :],
            np.concatenate([pushed, point]),
            by_point=False,
        )


@dataclass(frozen=True)
class HeldOut(Visit):
    """Training rows, each with its own label unknown: the graph stays, only the label is open."""

    structure: str
    graph: NeighborGraph
    table: Neighborhoods
    rows: np.ndarray = field(repr=False)

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        return len(self.rows)

    def take(self, rows: np.ndarray) -> HeldOut:
        return HeldOut(self.structure, self.graph, self.table, self.rows[rows])

    def changes(self, k: int, touch: bool) -> Changes:
        own_row, own_neighbor = self.table.of(self.rows, k)
        own_neighbor = own_neighbor.astype(np.int64)
        if not touch:
            return _untouched(self.n_rows, own_row, own_neighbor)
        if self.structure == "asymmetric":
            indptr, source, rank = self.graph.reverse
            row, edge = expand(indptr, self.rows)
            kept = rank[edge] < k
            row, point = row[kept], source[edge[kept]].astype(np.int64)
        else:
            row, point = own_row, own_neighbor
        key, where = np.unique(row * self.graph.n_points + point, return_inverse=True)
        pair_row, pair_point = np.divmod(key, self.graph.n_points)
        weight = np.bincount(where, minlength=len(key))
        lost_neighbor = self.rows[pair_row[where]]
        return Changes(
            self.n_rows,
            own_row,
            own_neighbor,
            pair_row,
            pair_point,
            weight,
            where,
            lost_neighbor,
            by_point=False,
        )


def _untouched(n_rows: int, own_row: np.ndarray, own_neighbor: np.ndarray) -> Changes:
    none = np.empty(0, dtype=np.int64)
    return Changes(n_rows, own_row, own_neighbor, none, none, none, none, none, by_point=False)
