"""Neighborhood structures: who is in whose neighborhood, and what an open label touches.

A structure says how often a point counts in the neighborhood of another. Without knowing any label,
two questions are answered from that: which points are in whose neighborhood at each candidate of K
(`neighborhoods`)? And when the label of one point is open, a new point that joins or a training row
that is held out: whose neighborhoods does that touch (`touched`)?
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import sparse

from kfree.neighbors.flat import expand
from kfree.neighbors.graph import NEVER, NeighborGraph, cells
from kfree.neighbors.search import Arrivals


@dataclass(frozen=True)
class Structure:
    """How often j counts in the neighborhood of i, ne(i) being the K nearest neighbors of i.

    Counts are divided by K, or by the size of the neighborhood.
    """

    forward: int  # if j is in ne(i), but i not in ne(j)
    backward: int  # if i is in ne(j), but j not in ne(i)
    both: int  # if each is in the other's
    by_size: bool = False

    def __post_init__(self) -> None:
        numbers = self.forward, self.backward, self.both
        symmetric = (0, 0, 1), (1, 1, 1), (1, 1, 2)
        if numbers != (1, 0, 1) and numbers not in symmetric:
            raise ValueError(
                "A structure counts (forward, backward, both) as (1, 0, 1), the nearest neighbors, "
                f"or on both sides alike as one of {symmetric}; got {numbers}."
            )
        if self.by_size and not self.forward:
            raise ValueError("by_size=True needs forward=1: a neighborhood may be empty otherwise.")

    @property
    def nearest(self) -> bool:
        """Whether neighborhoods are the lists of nearest neighbors."""
        return not self.backward and bool(self.forward)

    @property
    def needs_both(self) -> bool:
        """Whether what one direction counts depends on the other."""
        return self.both != self.forward + self.backward


# A new structure is a line here (docs/extending.md).
STRUCTURES = {
    "asymmetric": Structure(forward=1, backward=0, both=1),  # eq. 1
    "boltzmann": Structure(forward=1, backward=1, both=2),  # eq. 2
    "boltzmann2": Structure(forward=1, backward=1, both=1, by_size=True),  # "equal weights"
}


@dataclass(frozen=True)
class Neighborhoods:
    """Who belongs to whose neighborhood from which candidate of K on.

    `neighbors[indptr[i]:indptr[i + 1]]` are i's, and each belongs to it from the candidate `cell`
    on. They are ordered by cell. Lists of nearest neighbors all have the same cells (k[-1],).
    """

    k: np.ndarray  # (n_k,) the candidates
    indptr: np.ndarray
    neighbors: np.ndarray
    cell: np.ndarray
    by_size: bool  # divided by the size of the neighborhood instead of K
    nearest: bool  # every list is the k[-1] nearest

    @property
    def n_points(self) -> int:
        return len(self.indptr) - 1

    def take(self, points: np.ndarray) -> Neighborhoods:
        """The neighborhoods of some of the points."""
        if self.nearest:
            return nearest_lists(self.k, self.neighbors.reshape(-1, self.k[-1])[points])
        _, edge = expand(self.indptr, points)
        indptr = np.concatenate([[0], np.cumsum(np.diff(self.indptr)[points])])
        return Neighborhoods(
            self.k, indptr, self.neighbors[edge], self.cell[edge], self.by_size, nearest=False
        )

    def up_to(self, n_k: int) -> Neighborhoods:
        """The same at the first n_k candidates."""
        k = self.k[:n_k]
        if self.nearest:
            lists = self.neighbors.reshape(-1, self.k[-1])[:, : k[-1]]
            return nearest_lists(k, np.ascontiguousarray(lists))
        kept = self.cell < n_k
        indptr = np.concatenate([[0], np.cumsum(kept)])[self.indptr]
        return Neighborhoods(
            k, indptr, self.neighbors[kept], self.cell[kept], self.by_size, nearest=False
        )

    def of(self, points: np.ndarray, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Flat (position in `points`, neighbor) for the neighborhoods at the i-th candidate."""
        if self.nearest:
            lists, k = self.neighbors.reshape(-1, self.k[-1]), self.k[i]
            return np.repeat(np.arange(len(points)), k), lists[points, :k].ravel()
        owner, edge = expand(self.indptr, points)
        kept = self.cell[edge] <= i
        return owner[kept], self.neighbors[edge[kept]]

    def joining(self, i: int, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The point of each neighbor that counts from the i-th candidate on, and what is known.

        `known` is an array beside `neighbors`, such as `neighbors` itself.
        """
        if self.nearest:
            first, last = (0 if i == 0 else self.k[i - 1]), self.k[i]
            lists = known.reshape(-1, self.k[-1])[:, first:last]
            return np.repeat(np.arange(len(lists)), last - first), lists.ravel()
        owner, order, start = self._by_cell
        part = slice(start[i], start[i + 1])
        return owner[part], known[order[part]]

    @cached_property
    def _by_cell(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Owners in the order of their neighbors' cells, that order, and where each cell starts."""
        small = self.cell.astype(np.uint16)  # which numpy sorts by counting
        order = np.argsort(small, kind="stable")
        owner = np.repeat(np.arange(self.n_points, dtype=np.int32), np.diff(self.indptr))
        start = np.searchsorted(small[order], np.arange(len(self.k) + 1))
        return owner[order], order, start


@dataclass(frozen=True)
class Touched:
    """What the open label of each row touches at one candidate of K.

    A row is a new point or a training row that is held out. A pair is a row and a training point
    whose neighborhood changes: it takes up the row `weight` times, and loses neighbors.
    """

    n_rows: int
    own_row: np.ndarray  # the row's own neighborhood, flat: which row,
    own_neighbor: np.ndarray  # and which training point
    pair_row: np.ndarray  # (n_pairs,)
    pair_point: np.ndarray  # (n_pairs,)
    weight: np.ndarray  # (n_pairs,)
    lost_pair: np.ndarray  # which pair loses, rising
    lost_neighbor: np.ndarray  # which training point from its neighborhood
    # Whether every pair takes up the row once and loses one neighbor, the same in all pairs of a
    # training point: new points among lists of nearest neighbors.
    by_point: bool = False


class OpenRows(ABC):
    """Rows whose labels are open."""

    n_rows: int

    @abstractmethod
    def touched(self, i: int, joint: bool) -> Touched:
        """What the rows touch at the i-th candidate; only their own neighborhoods if not joint."""

    @abstractmethod
    def points(self) -> np.ndarray:
        """The training points that the rows may touch at any candidate, rising."""

    @abstractmethod
    def own_lists(self) -> Neighborhoods:
        """The neighborhoods of the rows themselves, among lists of nearest neighbors."""

    @abstractmethod
    def exchanges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Flat (row, point, cell), by row: from which candidate on the row is in a point's list."""

    @abstractmethod
    def n_changes(self) -> np.ndarray:
        """At most how many neighbors points gain and lose for each row and candidate."""

    @abstractmethod
    def take(self, rows: np.ndarray) -> OpenRows:
        """The same for some of the rows, given by increasing index."""


def neighborhoods(structure: str, graph: NeighborGraph) -> Neighborhoods:
    """The neighborhoods of the training points at the candidates of a graph."""
    counted = STRUCTURES[structure]
    if counted.nearest:
        return nearest_lists(graph.k, graph.indices)
    n, k_max = graph.indices.shape
    cell = np.tile(cells(graph.k), n)
    source = np.repeat(np.arange(n, dtype=np.int32), k_max)
    target = graph.indices.ravel()
    if counted.needs_both:
        # Each pair is listed once: from the smaller of its two cells on, or from the larger.
        mutual = graph.mutual_cell.ravel()
        once = (cell < mutual) | ((cell == mutual) & (source < target))
        if not counted.forward:
            once &= mutual < NEVER
            cell = mutual
        source, target, cell = source[once], target[once], cell[once]
    owner = np.concatenate([source, target])
    neighbor = np.concatenate([target, source])
    cell = np.concatenate([cell, cell])
    return in_lists(graph.k, n, owner, neighbor, cell, counted.by_size)


def in_lists(
    k: np.ndarray,
    n: int,
    owner: np.ndarray,
    neighbor: np.ndarray,
    cell: np.ndarray,
    by_size: bool,
) -> Neighborhoods:
    """Neighborhoods of n points from edges in any order."""
    # By cell and then by owner, by counting: a third of the time of one sort by both.
    by_cell = np.argsort(cell.astype(np.uint16), kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=len(k)))])
    by_owner = sparse.csr_array((by_cell, owner[by_cell], starts), shape=(len(k), n)).tocsc()
    order, indptr = by_owner.data, by_owner.indptr.astype(np.int64)
    return Neighborhoods(k, indptr, neighbor[order], cell[order], by_size, nearest=False)


def nearest_lists(k: np.ndarray, indices: np.ndarray) -> Neighborhoods:
    """Lists of the nearest neighbors (n, k[-1]) as neighborhoods."""
    n, k_max = indices.shape
    indptr = np.arange(0, n * k_max + 1, k_max)
    return Neighborhoods(k, indptr, indices.reshape(-1), cells(k), by_size=False, nearest=True)


@dataclass(frozen=True)
class NewPoints(OpenRows):
    """New points that join the field one at a time."""

    structure: str
    graph: NeighborGraph
    arrivals: Arrivals

    @property
    def _counted(self) -> Structure:
        return STRUCTURES[self.structure]

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        return len(self.arrivals.forward)

    def take(self, rows: np.ndarray) -> NewPoints:
        return NewPoints(self.structure, self.graph, self.arrivals.take(rows))

    def points(self) -> np.ndarray:
        near = self.arrivals
        there = np.zeros(self.graph.n_points, dtype=bool)
        there[near.reverse_point] = True
        if not self._counted.nearest:
            # Its neighbors take the new point up, and whoever it pushes out loses a neighbor.
            k = near.forward.shape[1]
            there[self.graph.indices[np.flatnonzero(there), :k]] = True
            there[near.forward] = True
        return np.flatnonzero(there)

    def own_lists(self) -> Neighborhoods:
        return nearest_lists(self.graph.k, self.arrivals.forward)

    def exchanges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        near = self.arrivals
        return near.reverse_row, near.reverse_point, near.reverse_cell

    def n_changes(self) -> np.ndarray:
        n_k = len(self.graph.k)
        slot = self.arrivals.reverse_row * np.int64(n_k) + self.arrivals.reverse_cell
        entered = np.bincount(slot, minlength=self.n_rows * n_k).reshape(-1, n_k).cumsum(axis=1)
        # The point entered gains and loses one; if edges go on both sides, whoever is pushed out
        # loses one too, and the row's own neighbors gain it.
        return 2 * entered if self._counted.nearest else 3 * entered + self.graph.k

    def touched(self, i: int, joint: bool) -> Touched:
        near, k = self.arrivals, int(self.graph.k[i])
        inside = np.flatnonzero(near.reverse_cell <= i)
        row, point = near.reverse_row[inside], near.reverse_point[inside]
        forward = near.forward[:, :k]
        if self._counted.nearest:
            own_row, own_neighbor = np.repeat(np.arange(self.n_rows), k), forward.ravel()
            if not joint:
                return _untouched(self.n_rows, own_row, own_neighbor)
            one, pair = np.ones(len(row), dtype=np.int64), np.arange(len(row))
            pushed = self.graph.indices[point, k - 1]
            return Touched(
                self.n_rows, own_row, own_neighbor, row, point, one, pair, pushed, by_point=True
            )
        return self._touched_on_both_sides(i, joint, row, point, forward)

    def _touched_on_both_sides(
        self, i: int, joint: bool, row: np.ndarray, point: np.ndarray, forward: np.ndarray
    ) -> Touched:
        """Neighborhoods are symmetric: whoever the row counts takes it up as often.

        The points that the row enters let go of their last neighbor, and an edge that goes is gone
        on both sides. Sorted by row and point, what happens to one point stands together.
        """
        n, n_forward = self.graph.n_points, forward.size
        pushed = self.graph.indices[point, self.graph.k[i] - 1]
        gone = np.flatnonzero(self._gone(i, row, point, pushed)) if joint else np.empty(0, int)
        base = row.astype(np.int64) * n
        key = np.concatenate(
            [
                ((np.arange(self.n_rows) * n)[:, None] + forward).ravel(),
                base + point,
                base[gone] + point[gone],
                base[gone] + pushed[gone],
            ]
        )
        # Merging takes an eighth of the time of other sorts, for the four parts are nearly sorted.
        event = np.argsort(key, kind="stable")
        key = key[event]
        first = np.diff(key, prepend=-1) != 0
        pair = np.cumsum(first) - 1
        pair_row, pair_point = np.divmod(key[first], n)
        losing = np.flatnonzero(event >= n_forward + len(row))
        n_sides = np.bincount(pair[event < n_forward + len(row)], minlength=len(pair_row))
        weight = np.array([0, self._counted.forward, self._counted.both])[n_sides]
        own_row, own_neighbor = np.repeat(pair_row, weight), np.repeat(pair_point, weight)
        if not joint:
            return _untouched(self.n_rows, own_row, own_neighbor)
        lost = np.concatenate([pushed[gone], point[gone]])[event[losing] - n_forward - len(row)]
        return Touched(
            self.n_rows, own_row, own_neighbor, pair_row, pair_point, weight, pair[losing], lost
        )

    def _gone(self, i: int, row: np.ndarray, point: np.ndarray, pushed: np.ndarray) -> np.ndarray:
        """Which of the edges point - pushed go when the rows enter the lists of the points.

        The direction from `point` goes. What that takes away may depend on whether the other one is
        there: `point` is in the list of `pushed`, and not as its last, or the new point did not
        push it out there too. Of two directions that both go, one goes first.
        """
        if not self._counted.needs_both:
            return np.ones(len(row), dtype=bool)
        n = np.int64(self.graph.n_points)
        other = self.graph.mutual_cell[point, self.graph.k[i] - 1] <= i
        last = np.flatnonzero(other & (self.graph.last(i)[pushed] == point))
        both = np.isin(row[last] * n + pushed[last], row * n + point)
        other[last[both & (point[last] < pushed[last])]] = False
        return other if not self._counted.forward else ~other


@dataclass(frozen=True)
class HeldOut(OpenRows):
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

    def points(self) -> np.ndarray:
        there = np.zeros(self.graph.n_points, dtype=bool)
        if self.table.nearest:
            indptr, source, _ = self.graph.reverse
            there[source[expand(indptr, self.rows)[1]]] = True
        else:
            there[self.table.of(self.rows, len(self.graph.k) - 1)[1]] = True
        return np.flatnonzero(there)

    def own_lists(self) -> Neighborhoods:
        return self.table.take(self.rows)

    def exchanges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        indptr, source, cell = self.graph.reverse
        row, edge = expand(indptr, self.rows)
        return row, source[edge], cell[edge]

    def n_changes(self) -> np.ndarray:
        if self.table.nearest:
            indptr, _, cell = self.graph.reverse
        else:
            indptr, cell = self.table.indptr, self.table.cell
        n_k = len(self.graph.k)
        row, edge = expand(indptr, self.rows)
        number = np.bincount(row * np.int64(n_k) + cell[edge], minlength=self.n_rows * n_k)
        return 2 * number.reshape(-1, n_k).cumsum(axis=1)

    def touched(self, i: int, joint: bool) -> Touched:
        own_row, own_neighbor = self.table.of(self.rows, i)
        if not joint:
            return _untouched(self.n_rows, own_row, own_neighbor)
        if self.table.nearest:
            row, point, cell = self.exchanges()
            row, point = row[cell <= i], point[cell <= i]
            one, pair = np.ones(len(row), dtype=np.int64), np.arange(len(row))
            lost = self.rows[row]
            return Touched(self.n_rows, own_row, own_neighbor, row, point, one, pair, lost)
        # Whoever is in the row's neighborhood has the row in its own, as often.
        n = np.int64(self.graph.n_points)
        key = np.sort(own_row * n + own_neighbor, kind="stable")
        first = np.diff(key, prepend=-1) != 0
        pair = np.cumsum(first) - 1
        pair_row, pair_point = np.divmod(key[first], n)
        weight = np.bincount(pair, minlength=len(pair_row))
        lost = self.rows[pair_row[pair]]
        return Touched(self.n_rows, own_row, own_neighbor, pair_row, pair_point, weight, pair, lost)


def _untouched(n_rows: int, own_row: np.ndarray, own_neighbor: np.ndarray) -> Touched:
    none = np.empty(0, dtype=np.int64)
    return Touched(n_rows, own_row, own_neighbor, none, none, none, none, none)
