"""What the flow over shards asks of whoever carries it out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Engine(Protocol):
    """Who carries out the flow."""

    def task(self, name: str, function: Callable, *args: Any, at: int | None = None) -> Any:
        """A call, now or later; tasks among the arguments stand for their results.

        `at` is the number of the shard beside which it is best made, for what it needs is there.
        """

    def keep(self, tasks: Sequence[Any]) -> list:
        """The same tasks, whose results will be wanted again."""

    def forget(self, tasks: Sequence[Any]) -> None:
        """Let go of tasks that were kept: nothing new will be made of their results."""

    def fetch(self, tasks: Sequence[Any]) -> list:
        """The results of tasks, which are small."""

    def tell(self, stage: str) -> None:
        """Say what comes next."""


def as_it_is(value: Any) -> Any:
    """The value: data that goes into a flow once, however many tasks need it."""
    return value
