"""What the labels of a shard say about K and beta.

The training sum is a sum over points. Neighbors come with their labels, so that a shard's part of
it needs no other shard. Tables of neighborhoods hold labels in place of points here: the label of
"point" c is c.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kfree.inference.prior import GammaPrior
from kfree.likelihood.terms import take
from kfree.likelihood.training_sum import (
    FEW_CLASSES,
    PART_EDGES,
    Curves,
    Terms,
    TrainingSum,
    count_patterns,
    together,
)
from kfree.neighbors.structures import Neighborhoods, nearest_lists
from kfree.shards.lists import Lists, make_graph
from kfree.shards.rows import Plan, Shard, label_of
from kfree.shards.tables import join_tables
from kfree.training import pilot_k_max

_NO_TERMS = np.empty(0, dtype=np.int64)


class MergedSum(TrainingSum):
    """The training sum from the patterns of all shards together."""

    def __init__(self, terms: Terms, n_k: int) -> None:
        self.n_k = n_k
        self.few = True
        self._every = np.arange(n_k)
        self._terms = terms

    @property
    def _patterns(self) -> Terms:
        return self._terms


def count_shard(shard: Shard, table: Neighborhoods) -> Terms | None:
    """The patterns that the rows of a shard show; None if it has no rows."""
    if not shard.n_points:
        return None
    n_classes = len(shard.plan.classes)
    n, labels = shard.n_points, np.arange(n_classes)
    step = max(1, PART_EDGES // max(1, len(table.neighbors) // n))
    parts = [np.arange(a, min(a + step, n)) for a in range(0, n, step)]
    return together(
        [count_patterns(table.take(part), labels, shard.labels[part], n_classes) for part in parts]
    )


def n_terms(terms: Terms | None, n_k: int) -> np.ndarray:
    """How many patterns there are for each candidate: (n_k,)."""
    return np.bincount(_NO_TERMS if terms is None else terms.candidate, minlength=n_k)


def add_up(parts: Sequence[Terms | None]) -> Terms:
    """The patterns of all shards, in an order that does not depend on them."""
    return together([terms for terms in parts if terms is not None])


def terms_of(terms: Terms | None, which: np.ndarray) -> Terms | None:
    """The patterns of candidates that follow each other."""
    if terms is None:
        return None
    chosen = np.arange(*np.searchsorted(terms.candidate, [which[0], which[-1] + 1]))
    counts = take(terms.counts, chosen)
    return Terms(terms.candidate[chosen], terms.key[chosen], counts, terms.n_points[chosen])


def merged_curves(parts: Sequence[Terms | None], which: np.ndarray) -> Curves:
    """The log likelihood of some candidates from the patterns of all shards."""
    return Curves(add_up(parts), which)


def whole_sum(
    shards: Sequence[Shard], tables: Sequence[Neighborhoods], n_classes: int
) -> TrainingSum:
    """The training sum of little data, all of it in one place and in the order of the whole."""
    order = np.argsort(np.concatenate([shard.ids for shard in shards]))
    labels = np.concatenate([shard.labels for shard in shards])[order]
    table = join_tables(tables, 0, 0, tables[0].k).take(order)
    return TrainingSum(table, np.arange(n_classes), n_classes, None, labels)


def groups_of_candidates(size: np.ndarray, most: int) -> list[np.ndarray]:
    """Candidates that take so much memory each (n_k,), in groups that take about `most`."""
    group = np.cumsum(size) // most
    return [np.flatnonzero(group == g) for g in np.unique(group)]


def shard_curves(shard: Shard, table: Neighborhoods, which: np.ndarray) -> Curves | None:
    """A shard's part of the log likelihood of some candidates; None if it has no rows."""
    if not shard.n_points:
        return None
    n_classes = len(shard.plan.classes)
    sums = TrainingSum(table, np.arange(n_classes), n_classes, None, shard.labels)
    return sums.curves(which)


def evaluate(
    curves: Curves | None, beta: np.ndarray, derivatives: bool, which: np.ndarray
) -> tuple | None:
    """The values of a shard's part."""
    return None if curves is None else curves(beta, derivatives, which)


def in_order_of_candidates(values: Sequence[tuple]) -> tuple:
    """The values of groups of candidates, one after the other."""
    return tuple(np.concatenate(part) for part in zip(*values, strict=True))


def sum_of_shards(values: Sequence[tuple | None]) -> tuple:
    """The values of all shards, added up in their order."""
    there = [value for value in values if value is not None]
    return tuple(sum(part[1:], start=part[0]) for part in zip(*there, strict=True))


def guess_k_max(
    lists: Sequence[Lists], own: Sequence[np.ndarray], plan: Plan, k: np.ndarray, prior: GammaPrior
) -> int:
    """The first guess at k_max from the lists of the pilot rows and their own codes."""
    own_codes = np.concatenate(own)
    order = np.argsort(own_codes)
    codes = np.concatenate([part.codes for part in lists])[order]
    labels = label_of(own_codes[order], plan)
    n_classes = len(plan.classes)
    graph = make_graph(Lists(codes, np.zeros(codes.shape)), k)
    table = nearest_lists(k, label_of(graph.codes, plan))
    pilot = TrainingSum(table, np.arange(n_classes), n_classes, None, labels, by_point=True)
    return pilot_k_max(pilot, k, prior)


def few(n_classes: int) -> bool:
    """Whether patterns repeat, so that they are worth counting."""
    return n_classes <= FEW_CLASSES
