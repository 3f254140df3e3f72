"""What the labels of a shard say about K and beta.

The training sum is a sum over points. Neighbors come with their labels, so that a shard's part of
it needs no other shard. Tables of neighborhoods hold labels in place of points here: the label of
"point" c is c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from kfree.inference.prior import GammaPrior
from kfree.likelihood.training_sum import (
    FEW_CLASSES,
    Curves,
    Patterns,
    Terms,
    TrainingSum,
    one_after_the_other,
    pattern_terms,
    patterns_by_candidate,
)
from kfree.neighbors.structures import Neighborhoods, nearest_lists
from kfree.shards.lists import ShardGraph
from kfree.shards.rows import Plan, Shard, label_of
from kfree.shards.tables import join_tables
from kfree.training import pilot_k_max

# About how many patterns are evaluated at a time, and how many (pattern, beta) values are held.
EVALUATED = 1 << 15
HELD = 1 << 19


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


@dataclass(frozen=True)
class SeveralCurves:
    """The log likelihood of candidates in groups, of which one at a time is evaluated."""

    first: np.ndarray  # (n_groups + 1,) the first candidate of each
    each: list[Curves]

    def __call__(self, beta: np.ndarray, derivatives: bool, which: np.ndarray) -> tuple:
        """As `Curves`."""
        group = np.searchsorted(self.first, which, side="right") - 1
        values = []
        for g in np.unique(group):
            here = group == g
            values.append(self.each[g](beta[here], derivatives, which[here] - self.first[g]))
        return in_order_of_candidates(values)


def count_shard(shard: Shard, table: Neighborhoods) -> list[Patterns] | None:
    """The patterns that the rows of a shard show at each candidate; None if it has no rows."""
    if not shard.n_points:
        return None
    n_classes = len(shard.plan.classes)
    found = patterns_by_candidate(table, np.arange(n_classes), shard.labels, n_classes)
    return [_small(patterns) for patterns in found]


def _small(patterns: Patterns) -> Patterns:
    """The same in the smallest integers that hold them: there are many, and they travel."""

    def small(values: np.ndarray) -> np.ndarray:
        return values.astype(np.min_scalar_type(int(values.max(initial=0))))

    counts = np.ascontiguousarray(small(patterns.counts))
    rest = small(patterns.own), small(patterns.divisor), small(patterns.n_points)
    return Patterns(patterns.key, counts, *rest)


def n_patterns(found: list[Patterns] | None, n_k: int) -> np.ndarray:
    """How many patterns there are for each candidate: (n_k,)."""
    return np.array([0] * n_k if found is None else [len(patterns.key) for patterns in found])


def patterns_of(found: list[Patterns] | None, which: np.ndarray) -> list[Patterns] | None:
    """The patterns of some candidates."""
    return None if found is None else [found[i] for i in which]


def add_up(parts: Sequence[list[Patterns] | None]) -> Terms:
    """The terms of all shards, in an order that does not depend on them."""
    each = zip(*(part for part in parts if part is not None), strict=True)
    terms = [pattern_terms(i, _merged(of_shards)) for i, of_shards in enumerate(each)]
    return one_after_the_other(terms)


def _merged(parts: Sequence[Patterns]) -> Patterns:
    """The patterns of one candidate in all shards."""
    key, counts, own, divisor, n_points = (
        np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Patterns)
    )
    order = np.argsort(key, kind="stable")
    key = key[order]
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
    number = np.add.reduceat(n_points[order].astype(np.int64), starts)
    order = order[starts]
    of_terms = own[order].astype(np.int64), divisor[order].astype(float), number
    return Patterns(key[starts], counts[order].astype(np.int64), *of_terms)


def merged_curves(parts: Sequence[list[Patterns] | None]) -> SeveralCurves:
    """The log likelihood of some candidates from the patterns of all shards."""
    full = [part for part in parts if part is not None]
    size = np.sum([n_patterns(part, len(part)) for part in full], axis=0)
    groups = groups_of_candidates(size, EVALUATED)
    each = [
        Curves(add_up([patterns_of(part, which) for part in full]), np.arange(len(which)), HELD)
        for which in groups
    ]
    return SeveralCurves(np.array([*(which[0] for which in groups), len(size)]), each)


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
    curves: Curves | SeveralCurves | None, beta: np.ndarray, derivatives: bool, which: np.ndarray
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
    graphs: Sequence[ShardGraph], own: Sequence[np.ndarray], plan: Plan, prior: GammaPrior
) -> int:
    """The first guess at k_max from the neighbors of the pilot rows and their own codes."""
    own_codes = np.concatenate(own)
    order = np.argsort(own_codes)
    codes = np.concatenate([part.codes for part in graphs])[order]
    labels = label_of(own_codes[order], plan)
    n_classes, k = len(plan.classes), graphs[0].k
    table = nearest_lists(k, label_of(codes, plan))
    pilot = TrainingSum(table, np.arange(n_classes), n_classes, None, labels, by_point=True)
    return pilot_k_max(pilot, k, prior)


def few(n_classes: int) -> bool:
    """Whether patterns repeat, so that they are worth counting."""
    return n_classes <= FEW_CLASSES
