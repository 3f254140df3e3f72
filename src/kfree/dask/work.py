"""Tasks that a client has under way: kept on the workers, fetched, or dropped all at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any


def find_client(client: Any) -> Any:
    """The client to work with: the one given, or the one that is in use here."""
    if client is None:
        from distributed import get_client

        try:
            client = get_client()
        except ValueError:
            raise ValueError(
                "kfree.dask.KFreeClassifier needs a Dask client and none is running; start one "
                "with `from dask.distributed import Client; client = Client()`, which uses the "
                "cores of this machine, or give client=."
            ) from None
    check_open(client)
    return client


def check_open(client: Any) -> None:
    """Raise if a client was closed."""
    if client.status not in ("running", "connecting"):
        raise RuntimeError(
            "The Dask client was closed, and with it what the workers held for this classifier; "
            "connect a new client and fit again."
        )


class Work:
    """What one fit has under way."""

    def __init__(self, client: Any, verbose: int) -> None:
        self.client = client
        self._verbose = verbose
        self._kept: list = []
        self._start = time.monotonic()

    def tell(self, stage: str) -> None:
        """Say what comes next."""
        if self._verbose:
            print(f"kfree.dask [{time.monotonic() - self._start:7.1f} s] {stage}", flush=True)

    def keep(self, tasks: Sequence[Any]) -> list:
        """Start tasks whose results stay on the workers."""
        kept = list(self.client.persist(list(tasks)))
        self._kept += kept
        return kept

    def fetch(self, tasks: Sequence[Any], what: str) -> list:
        """The results of tasks, which are small; `what` names them if they are lost."""
        futures = self.client.compute(list(tasks))
        try:
            return self.client.gather(futures)
        except BaseException as error:
            lost = [i for i, future in enumerate(futures) if future.status in ("cancelled", "lost")]
            _release(futures)
            if lost or _means_lost(error):
                raise RuntimeError(lost_sentence(what, lost)) from error
            raise

    def fetch_one(self, one: Any, what: str) -> Any:
        """The result of one task."""
        return self.fetch([one], what)[0]

    def drop(self) -> None:
        """Leave nothing on the workers."""
        from distributed import futures_of

        _release(futures_of(self._kept))
        self._kept = []


def _release(futures: Sequence[Any]) -> None:
    """Let go of futures; what nobody else wants is stopped and forgotten.

    Not `client.cancel`, which also cancels what others make of them, and in distributed 2026.8
    breaks the connection if one of these is wanted by nobody.
    """
    for future in futures:
        future.release()


def _means_lost(error: BaseException) -> bool:
    from concurrent.futures import CancelledError

    from distributed.client import FutureCancelledError

    return isinstance(error, (CancelledError, FutureCancelledError))


def lost_sentence(what: str, lost: Sequence[int]) -> str:
    """What to say of data that is gone."""
    which = f" {', '.join(map(str, lost))}" if lost else ""
    return (
        f"A worker was lost, and {what}{which} cannot be computed again because the data it held "
        "came from no file or task; read the data inside tasks (dask.array.from_delayed, "
        "read_parquet) instead of scattering it, and fit again."
    )
