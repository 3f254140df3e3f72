"""Times of several ways to do the same, taken in turn in one process."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass

from threadpoolctl import threadpool_limits

KFREE = "kfree"
# At least so many rounds; more while they are short, up to a number and a total of seconds.
LEAST_ROUNDS = 3
MOST_ROUNDS = 25
SECONDS = 3.0


@dataclass(frozen=True)
class Setting:
    """How a workload is run: cores for each contender, and whether it is only tried."""

    n_jobs: int
    quick: bool

    @property
    def n_processes(self) -> int:
        """How often what needs a process of its own is repeated."""
        return 1 if self.quick else 7


@dataclass(frozen=True)
class Result:
    """One line of the report.

    `value` is what `target` bounds from above: a ratio of best times, or for other kinds seconds or
    GiB. `low` and `high` are its smallest and largest value over the rounds.
    """

    title: str
    kind: str  # "ratio", "seconds" or "GiB"
    ours: float
    peer: float | None
    peer_name: str
    value: float
    low: float
    high: float
    target: float | None
    n_jobs: int
    facts: dict[str, float | int | str]  # sizes and what the model found

    @property
    def verdict(self) -> str:
        if self.target is None:
            return ""
        return "met" if self.value <= self.target else "MISSED"


def in_turn(
    contenders: dict[str, Callable[[], object]], setting: Setting, least: int = LEAST_ROUNDS
) -> dict[str, list[float]]:
    """Seconds that each contender took in each round."""
    least, budget = (2, 0.0) if setting.quick else (least, SECONDS)
    with threadpool_limits(setting.n_jobs):
        first = _round(contenders)
        total = sum(first.values())
        # What is short is warmed up: its first round does not count.
        rounds = [first] if total > budget else []
        while len(rounds) < least or (len(rounds) < MOST_ROUNDS and total < budget):
            rounds.append(_round(contenders))
            total += sum(rounds[-1].values())
    return {name: [one[name] for one in rounds] for name in contenders}


def _round(contenders: dict[str, Callable[[], object]]) -> dict[str, float]:
    seconds = {}
    for name, work in contenders.items():
        gc.collect()
        start = time.perf_counter()
        work()
        seconds[name] = time.perf_counter() - start
    return seconds


def compare(
    title: str,
    contenders: dict[str, Callable[[], object]],
    target: float | None,
    setting: Setting,
    facts: dict,
) -> Result:
    """kfree, the first contender, beside the fastest of the others."""
    seconds = in_turn(contenders, setting)
    return ratio(title, seconds, target, setting, facts)


def ratio(
    title: str, seconds: dict[str, list[float]], target: float | None, setting: Setting, facts: dict
) -> Result:
    """The first contender's best time by that of the best of the others."""
    ours, *others = seconds
    peer = min(others, key=lambda name: min(seconds[name]))
    paired = [a / b for a, b in zip(seconds[ours], seconds[peer], strict=True)]
    best, best_peer = min(seconds[ours]), min(seconds[peer])
    facts = {**facts, "rounds": len(paired)}
    if ours != KFREE:
        facts["ours"] = ours
    return Result(
        title,
        "ratio",
        best,
        best_peer,
        peer,
        best / best_peer,
        min(paired),
        max(paired),
        target,
        setting.n_jobs,
        facts,
    )
