"""Training rows of all shards, each with its own label held out: leave-one-out.

The points that a held-out row touches may be in any shard, and are described by their own shards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from kfree.averaging import Average
from kfree.likelihood.training_sum import TrainingSum
from kfree.neighbors.flat import expand
from kfree.neighbors.structures import HeldOut, Neighborhoods
from kfree.shards.lists import NOBODY
from kfree.shards.rows import Shard, label_of
from kfree.shards.small_model import Knowledge, SmallGraph, average_rows, join_averages
from kfree.shards.tables import Described, ShardTable, join_tables
from kfree.training import KnownPosteriors


@dataclass(frozen=True)
class Block:
    """Training rows of a shard whose labels are held out, and whom they touch."""

    rows: np.ndarray  # (n,) places in the shard
    wanted: np.ndarray  # codes, rising: the points that have to be described


def hold_out(
    rows: np.ndarray,
    table: ShardTable | None,
    incoming: ShardTable | None,
    knowledge: Knowledge,
) -> Block:
    """Some rows of a shard, held out."""
    touching = incoming if knowledge.nearest else table
    if not knowledge.joint or touching is None:
        return Block(rows, NOBODY)
    return Block(rows, np.unique(touching.codes[expand(touching.indptr, rows)[1]]))


def average_held_out(
    block: Block,
    shard: Shard,
    own: Neighborhoods,
    table: ShardTable | None,
    incoming: ShardTable | None,
    described: Sequence[Described],
    knowledge: Knowledge,
    likelihood: TrainingSum | KnownPosteriors,
) -> Average:
    """Class probabilities and all else that is known of training rows, each label unknown.

    Parameters
    ----------
    own : the neighborhoods of all rows of the shard, with labels in place of points
    """
    plan, k = knowledge.plan, knowledge.candidates.k
    codes = np.concatenate([part.codes for part in described])
    order = np.argsort(codes)
    n_rows, n_classes = len(block.rows), len(plan.classes)
    n = n_rows + len(codes)  # then come the labels
    labels = np.concatenate([shard.labels[block.rows], label_of(codes, plan), np.arange(n_classes)])
    mine = own.take(block.rows)
    joined = join_tables([mine, *(part.table(k) for part in described)], n, n_classes, k)
    reverse = None
    if knowledge.joint and knowledge.nearest:
        assert incoming is not None
        owner, edge = expand(incoming.indptr, block.rows)
        at = order[np.searchsorted(codes, incoming.codes[edge], sorter=order)]
        indptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n_rows))])
        reverse = indptr, n_rows + at, incoming.cell[edge]
    elif not knowledge.nearest and knowledge.joint:
        assert table is not None
        _, edge = expand(table.indptr, block.rows)
        at = order[np.searchsorted(codes, table.codes[edge], sorter=order)]
        joined.neighbors[: len(edge)] = n_rows + at
    elif knowledge.nearest:
        reverse = np.zeros(n_rows + 1, dtype=np.int64), NOBODY, NOBODY
    graph = SmallGraph(
        k, np.empty((n + n_classes, 0), dtype=np.int64), np.empty((0, 0)), reverse=reverse
    )
    rows = HeldOut(knowledge.structure, graph, joined, np.arange(n_rows))
    own_labels = shard.labels[block.rows]
    return average_rows(knowledge, likelihood, graph, joined, labels, rows, own_labels)


def in_whole_order(parts: Sequence[tuple[np.ndarray, Average]]) -> Average:
    """Averages of rows (their ids, what is known) from several shards in the order of the whole."""
    joined = join_averages([part for _, part in parts])
    order = np.argsort(np.concatenate([ids for ids, _ in parts]))
    return Average(*(getattr(joined, f.name)[order] for f in fields(Average)))


def part_of_average(
    ids: np.ndarray, average: Average, first: int, last: int
) -> tuple[np.ndarray, Average]:
    """What is known of the rows first..last-1 of the whole; `ids` (n,) rise."""
    a, b = np.searchsorted(ids, [first, last])
    return ids[a:b], Average(*(getattr(average, f.name)[a:b] for f in fields(Average)))
