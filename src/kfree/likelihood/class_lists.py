"""Class counts at any candidate of K, read off lists of neighbors that are sorted by class.

With many classes a point has few of them near it. Each neighbor knows here how many nearer ones
have its class and from which candidate on the next of its class counts; at a candidate, the last of
each class that counts speaks for its class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kfree.likelihood.terms import Counts
from kfree.neighbors.structures import Neighborhoods

# How many neighbors are sorted at a time: so many fit the cache.
SORTED_EDGES = 1 << 17


@dataclass(frozen=True)
class ClassLists:
    """The neighbors of n points: point p has `indptr[p]:indptr[p + 1]`, sorted by class and cell.

    A neighbor counts from the candidate `cell` on.
    """

    k: np.ndarray  # (n_k,) the candidates
    indptr: np.ndarray  # (n + 1,)
    classes: np.ndarray  # (n_edges,)
    own: np.ndarray  # (n_edges,) whether it is the point's own class
    cell: np.ndarray  # (n_edges,)
    number: np.ndarray  # (n_edges,) neighbors of this class up to this one
    again: np.ndarray  # (n_edges,) the cell of the next of this class, beyond all if none follows
    n_classes: int
    by_size: bool

    @property
    def n_points(self) -> int:
        return len(self.indptr) - 1

    def at(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """The classes around each point at the i-th candidate.

        Returns
        -------
        edge : (n_entries,) the edges that speak for their classes, increasing
        indptr : (n + 1,) point p has `edge[indptr[p]:indptr[p + 1]]`
        """
        edge = np.flatnonzero((self.cell <= i) & (self.again > i))
        return edge, np.searchsorted(edge, self.indptr)

    def counts(self, i: int) -> Counts:
        """The class counts around each point at the i-th candidate."""
        edge, indptr = self.at(i)
        value = self.number[edge].astype(np.int64)
        mine = np.flatnonzero(self.own[edge])
        own = np.zeros(self.n_points, dtype=np.int64)
        own[np.searchsorted(indptr, mine, side="right") - 1] = value[mine]
        divisor = np.full(self.n_points, float(self.k[i]))
        if self.by_size:
            divisor = np.add.reduceat(value, indptr[:-1]).astype(float)
        return Counts(indptr, value, self.n_classes - np.diff(indptr), own, divisor)


def class_lists(
    table: Neighborhoods, labels: np.ndarray, own: np.ndarray, n_classes: int
) -> ClassLists:
    """The lists of a table.

    Parameters
    ----------
    table : Neighborhoods of some points
    labels : (n,) integers from 0, of all points
    own : labels of the points of the table
    """
    n, n_edges = table.n_points, len(table.neighbors)
    longest = int(np.diff(table.indptr).max(initial=0))
    cell_type = np.min_scalar_type(len(table.k))
    lists = ClassLists(
        table.k,
        table.indptr,
        np.empty(n_edges, dtype=np.min_scalar_type(n_classes)),
        np.empty(n_edges, dtype=bool),
        np.empty(n_edges, dtype=cell_type),
        np.empty(n_edges, dtype=np.min_scalar_type(longest)),
        np.empty(n_edges, dtype=cell_type),
        n_classes,
        table.by_size,
    )
    step = max(1, SORTED_EDGES // max(1, n_edges // max(1, n)))
    for start in range(0, n, step):
        _sort(table, labels, own, slice(start, min(start + step, n)), lists)
    return lists


def _sort(
    table: Neighborhoods, labels: np.ndarray, own: np.ndarray, part: slice, lists: ClassLists
) -> None:
    """Fill in the lists of a part of the points."""
    edges = slice(table.indptr[part.start], table.indptr[part.stop])
    indptr = table.indptr[part.start : part.stop + 1] - edges.start
    length = np.diff(indptr)
    bits = int(length.max()).bit_length()
    near = labels[table.neighbors[edges]]
    if table.nearest:
        # Short rows sort faster than all edges together.
        wide = np.int32 if lists.n_classes << bits < 1 << 31 else np.int64
        packed = near.reshape(len(length), -1).astype(wide) << bits
        packed |= np.arange(packed.shape[1], dtype=wide)
        packed.sort(axis=1)
        packed = packed.ravel()
        classes, place = packed >> bits, packed & ((1 << bits) - 1)
        cell = table.cell[place]
    else:
        owner = np.repeat(np.arange(len(length)), length)
        place = np.arange(len(near)) - indptr[owner]
        packed = np.sort(((owner * lists.n_classes + near) << bits) | place)
        classes = (packed >> bits) - owner * lists.n_classes
        cell = table.cell[edges][indptr[owner] + (packed & ((1 << bits) - 1))]
    begins = np.empty(len(classes), dtype=bool)
    np.not_equal(classes[1:], classes[:-1], out=begins[1:])
    begins[indptr[:-1][length > 0]] = True
    first = np.flatnonzero(begins)
    number = np.arange(1, len(classes) + 1)
    number -= np.repeat(first, np.diff(first, append=len(classes)))
    lists.classes[edges] = classes
    lists.own[edges] = classes == np.repeat(own[part], length)
    lists.cell[edges] = cell
    lists.number[edges] = number
    again = lists.again[edges]
    again[:] = np.iinfo(again.dtype).max
    np.copyto(again[:-1], cell[1:], where=~begins[1:], casting="unsafe")
