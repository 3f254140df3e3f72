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
    Counts,
    Curves,
    Terms,
    TrainingSum,
    count_patterns,
    one_after_the_other,
    together,
)
from kfree.neighbors.structures import Neighborhoods, nearest_lists
from kfree.shards.lists import ShardGraph
from kfree.shards.rows import Plan, Shard, label_of
from kfree.shards.tables import join_tables
from kfree.training import guessed_k_max

# About how many patterns are evaluated at a time, and how many (pattern, beta) values are held.
EVALUATED = 1 << 15
HELD = 1 << 19


class MergedSum(TrainingSum):
    """The training sum from the patterns of all shards together."""

    def __init__(self, terms: Terms, n_k: int) -> None:
        self.n_k = n_k
        self._terms = terms

    @property
    def terms(self) -> Terms:
        return self._terms

    def up_to(self, n_k: int) -> MergedSum:
        """The same at the first n_k candidates."""
        return MergedSum(self._terms.take(np.flatnonzero(self._terms.candidate < n_k)), n_k)


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


def count_shard(shard: Shard, table: Neighborhoods) -> list[Terms] | None:
    """The patterns that the rows of a shard show at each candidate; None if it has no rows."""
    if not shard.n_points:
        return None
    n_classes = len(shard.plan.classes)
    found = count_patterns(table, np.arange(n_classes), shard.labels, n_classes, by_point=False)
    return [_small(terms) for terms in found]


def _small(terms: Terms) -> Terms:
    """The same in the smallest integers that hold them: there are many, and they travel."""

    def small(values: np.ndarray) -> np.ndarray:
        return values.astype(np.min_scalar_type(int(values.max(initial=0))))

    counts = Counts(*(small(getattr(terms.counts, field.name)) for field in fields(Counts)))
    return Terms(small(terms.candidate), terms.key, counts, small(terms.n_points))


def _large(terms: Terms) -> Terms:
    """The same in usual numbers."""
    wide = {
        field.name: getattr(terms.counts, field.name).astype(np.int64) for field in fields(Counts)
    }
    wide["divisor"] = wide["divisor"].astype(float)
    candidate, n_points = terms.candidate.astype(np.int64), terms.n_points.astype(np.int64)
    return Terms(candidate, terms.key, Counts(**wide), n_points)


def n_patterns(found: list[Terms] | None, n_k: int) -> np.ndarray:
    """How many patterns there are for each candidate: (n_k,)."""
    return np.array([0] * n_k if found is None else [len(terms.key) for terms in found])


def patterns_of(found: list[Terms] | None, which: np.ndarray) -> list[Terms] | None:
    """The patterns of some candidates."""
    return None if found is None else [found[i] for i in which]


def add_up(parts: Sequence[list[Terms] | None]) -> Terms:
    """The terms of all shards, in an order that does not depend on them."""
    each = zip(*(part for part in parts if part is not None), strict=True)
    return one_after_the_other([together([_large(t) for t in of_shards]) for of_shards in each])


def merged_curves(parts: Sequence[list[Terms] | None]) -> SeveralCurves:
    """The log likelihood of some candidates from the patterns of all shards."""
    full = [part for part in parts if part is not None]
    size = np.sum([n_patterns(part, len(part)) for part in full], axis=0)
    groups = groups_of_candidates(size, EVALUATED)
    terms = [add_up([patterns_of(part, which) for part in full]) for which in groups]
    each = [Curves(of_group, np.unique(of_group.candidate), HELD) for of_group in terms]
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


def evaluate(
    curves: SeveralCurves, beta: np.ndarray, derivatives: bool, which: np.ndarray
) -> tuple:
    """The values of the log likelihood of some candidates."""
    return curves(beta, derivatives, which)


def in_order_of_candidates(values: Sequence[tuple]) -> tuple:
    """The values of groups of candidates, one after the other."""
    return tuple(np.concatenate(part) for part in zip(*values, strict=True))


def guess_k_max(
    graphs: Sequence[ShardGraph],
    own: Sequence[np.ndarray],
    plan: Plan,
    prior: GammaPrior,
    n_points: int,
) -> int:
    """A guess at k_max from the neighbors of the pilot rows and their own codes."""
    own_codes = np.concatenate(own)
    order = np.argsort(own_codes)
    codes = np.concatenate([part.codes for part in graphs])[order]
    labels = label_of(own_codes[order], plan)
    n_classes, k = len(plan.classes), graphs[0].k
    table = nearest_lists(k, label_of(codes, plan))
    pilot = TrainingSum(table, np.arange(n_classes), n_classes, None, labels, by_point=True)
    return guessed_k_max(pilot, k, prior, len(labels), n_points)
