"""Dask carries out the flow of `kfree.shards`: tasks, a client, collections in and out.

Nothing is ever scattered: all that workers hold comes from tasks, so that what a lost worker held
is computed again.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from itertools import islice
from typing import Any
from uuid import uuid4

import numpy as np
from scipy import sparse

from kfree.shards import counting, held_out_rows, lists, new_rows, rows, small_model, tables

CLOSED = (
    "The Dask client was closed or lost its scheduler, and with it what the workers held for this "
    "classifier; connect a new client and fit again."
)
NOT_AGAIN = (
    "went with a lost worker and cannot be computed again, because the rows came from no file and "
    "no task; read them inside tasks (dask.array.from_delayed, dask.dataframe.read_parquet) "
    "instead of scattering them, and fit again."
)
LOST = ("cancelled", "lost")  # of a future


def task(name: str, function: Callable, *args: Any) -> Any:
    """A call that Dask makes when it is asked to; its name is what the dashboard shows.

    Lists of tasks are handed over one by one: of a task inside a list Dask (2026.8) does not keep
    the futures that it needs, and a lazy prediction would lose them with the model.
    """
    from dask import delayed

    key = f"kfree-{name}-{uuid4().hex}"
    lengths = [len(arg) if isinstance(arg, list) else None for arg in args]
    each = [one for arg in args for one in (arg if isinstance(arg, list) else [arg])]
    return delayed(_call, pure=False)(function, lengths, *each, dask_key_name=key)


def _call(function: Callable, lengths: Sequence[int | None], *each: Any) -> Any:
    """The call, its lists put together again."""
    _tell_sizes()
    rest = iter(each)
    args = [next(rest) if n is None else list(islice(rest, n)) for n in lengths]
    return function(*args)


@cache
def _tell_sizes() -> None:
    """Have Dask know how large records are, which otherwise takes them for nothing.

    Where to run a task and when to move data to disk is decided by it.
    """
    from dask.sizeof import sizeof

    modules = counting, held_out_rows, lists, new_rows, rows, small_model, tables
    for value in [value for module in modules for value in vars(module).values()]:
        if isinstance(value, type) and is_dataclass(value):
            sizeof.register(value, _size)


def _size(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    if is_dataclass(value):
        return sum(_size(getattr(value, field.name)) for field in fields(value))
    return sys.getsizeof(value)


class Engine:
    """What one client has under way: kept on the workers, fetched, or dropped all at once."""

    def __init__(self, client: Any, verbose: int = 0, kept: Sequence[Any] = ()) -> None:
        self.client = client
        self._workers = sorted(client.nthreads())
        self._verbose = verbose
        self._kept = list(kept)
        self._start = time.monotonic()

    def task(self, name: str, function: Callable, *args: Any, at: int | None = None) -> Any:
        """A call; `at` a shard, if possible on the worker that has it, else wherever there is one.

        Dask by itself would rather move what is long than wait for a worker.
        """
        import dask

        if at is None or not self._workers:
            return task(name, function, *args)
        worker = self._workers[at % len(self._workers)]
        with dask.annotate(workers=[worker], allow_other_workers=True):
            return task(name, function, *args)

    def tell(self, stage: str) -> None:
        """Say what comes next."""
        if self._verbose:
            print(f"kfree.dask [{time.monotonic() - self._start:7.1f} s] {stage}", flush=True)

    def keep(self, tasks: Sequence[Any]) -> list:
        """Start tasks whose results stay on the workers."""
        kept = list(self.client.persist(list(tasks)))
        self._kept += kept
        return kept

    def forget(self, tasks: Sequence[Any]) -> None:
        """Let go of results that were kept; what is being made of them goes on."""
        gone = set(map(id, tasks))
        self._kept = [kept for kept in self._kept if id(kept) not in gone]
        _release(_futures(tasks))

    def fetch(self, tasks: Sequence[Any]) -> list:
        """The results of tasks, which are small."""
        from concurrent.futures import CancelledError

        from distributed.client import FutureCancelledError

        futures = self.client.compute(list(tasks))
        try:
            return self.client.gather(futures)
        except BaseException as error:
            lost = any(future.status in LOST for future in futures)
            _release(futures)
            if isinstance(error, Exception) and self.client.status != "running":
                raise RuntimeError(CLOSED) from error
            if lost or isinstance(error, (CancelledError, FutureCancelledError)):
                self.check_kept()
                raise RuntimeError(f"Data {NOT_AGAIN}") from error
            raise

    def check_kept(self) -> None:
        """Raise if shards, or the partitions they come from, were lost for good."""
        for name, what in (("shard", "Shard"), ("read", "Partition")):
            mine = [kept for kept in self._kept if kept.key.startswith(f"kfree-{name}-")]
            lost = [str(i) for i, kept in enumerate(mine) if kept.dask[kept.key].status in LOST]
            if lost:
                which = f"{what}{'s' if len(lost) > 1 else ''} {', '.join(lost)}"
                raise RuntimeError(f"{which} {NOT_AGAIN}")

    def drop(self) -> None:
        """Leave nothing on the workers."""
        _release(_futures(self._kept))
        self._kept = []


def _futures(tasks: Sequence[Any]) -> list:
    from distributed import futures_of

    return futures_of([task for task in tasks if task is not None])


def _release(futures: Sequence[Any]) -> None:
    """Let go of futures; what nobody else wants is stopped and forgotten.

    Not `client.cancel`, which also cancels what others make of them, and in distributed 2026.8
    breaks the connection if one of these is wanted by nobody.
    """
    for future in futures:
        future.release()


def find_client(client: Any) -> Any:
    """The client to work with: the one given, or the one that is in use here."""
    from distributed import Client, get_client

    if client is None:
        try:
            client = get_client()
        except ValueError:
            raise ValueError(
                "kfree.dask.KFreeClassifier needs a Dask client and none is running; start one "
                "with `from dask.distributed import Client; client = Client()`, which uses the "
                "cores of this machine, or give client=."
            ) from None
    if not isinstance(client, Client) or client.asynchronous:
        kind = "an asynchronous one" if isinstance(client, Client) else type(client).__name__
        raise TypeError(
            f"client must be a dask.distributed.Client that is not asynchronous; got {kind}. "
            "Client(address or cluster) makes one."
        )
    check_open(client)
    return client


def check_open(client: Any) -> None:
    """Raise if a client was closed."""
    if client.status not in ("running", "connecting"):
        raise RuntimeError(CLOSED)


def n_threads(client: Any) -> int:
    """How many threads the workers have together."""
    return max(1, sum(client.nthreads().values()))


@dataclass(frozen=True)
class Rows:
    """The partitions of a collection of rows, each a task."""

    parts: list
    lengths: list  # of the partitions, where they are known without computing; else NaN
    frame: bool = False  # whether they are dataframes
    meta: Any = None  # an empty one
    sparse: bool = False  # whether they are known to be sparse


def rows_of(X: Any) -> Rows:
    """The partitions of a dask array or dataframe of rows."""
    import dask.array as da

    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise ValueError(f"X must have 2 dimensions, rows and features; got {X.ndim}.")
        if np.isnan(X.shape[1]):
            raise ValueError("X does not say how many features it has; give its shape (nan, n).")
        if X.numblocks[1] > 1:
            X = X.rechunk({1: X.shape[1]})
        meta = np.empty((0, X.shape[1]), dtype=X.dtype)
        parts, lengths = list(X.to_delayed().ravel()), list(X.chunks[0])
        return Rows(parts, lengths, meta=meta, sparse=sparse.issparse(X._meta))
    if _is_frame(X) and X.ndim == 2:
        parts = list(X.to_delayed())
        return Rows(parts, [np.nan] * len(parts), True, X._meta)
    raise TypeError(
        f"X must be a dask array or dataframe; got {type(X).__name__}. For rows in memory use "
        "kfree.KFreeClassifier, or kfree.dask.predict_proba for new rows."
    )


def labels_of(y: Any, rows: Rows) -> list:
    """The labels of the rows, partition by partition."""
    import dask.array as da

    if isinstance(y, da.Array):
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if y.ndim != 1:
            raise ValueError(f"y must have one column of labels; got shape {y.shape}.")
        known = not np.isnan([*rows.lengths, *y.chunks[0]]).any()
        if known and sum(rows.lengths) == len(y) and list(y.chunks[0]) != rows.lengths:
            y = y.rechunk((tuple(rows.lengths),))
        parts = list(y.to_delayed().ravel())
    elif _is_frame(y):
        if y.ndim == 2 and len(y.columns) != 1:
            raise ValueError(
                f"y must have one column of labels; got {len(y.columns)}: {list(y.columns)}."
            )
        parts = list(y.to_delayed())
    else:
        raise TypeError(
            f"y must be a dask array, or a dask series or dataframe of one column; got "
            f"{type(y).__name__}."
        )
    if len(parts) != len(rows.parts):
        raise ValueError(
            f"X has {len(rows.parts)} partitions but y has {len(parts)}; every partition of X "
            "needs the labels of its rows in the partition of y at the same place."
        )
    return parts


def _is_frame(X: Any) -> bool:
    """Whether X is a dask dataframe or series, told without importing what it may not need."""
    return hasattr(X, "_meta") and hasattr(X, "to_delayed") and hasattr(X, "npartitions")


def collection_of(parts: Sequence[Any], rows: Rows, columns: Any, dtype: Any) -> Any:
    """Tasks that each give what belongs to a partition of rows, as a collection of their kind.

    `columns` names the columns of a table; None for one value a row.
    """
    if not rows.frame:
        import dask.array as da

        width = () if columns is None else (len(columns),)
        arrays = [
            da.from_delayed(part, (n, *width), dtype=dtype)
            for part, n in zip(parts, rows.lengths, strict=True)
        ]
        return da.concatenate(arrays, axis=0, allow_unknown_chunksizes=True)
    import dask.dataframe as dd
    import pandas as pd

    empty = np.empty((0, len(columns)) if columns is not None else 0, dtype=dtype)
    meta = pd.DataFrame(empty, columns=columns) if columns is not None else pd.Series(empty)
    frames = [
        task("with-index", _with_index, part, given, columns)
        for part, given in zip(parts, rows.parts, strict=True)
    ]
    return dd.from_delayed(frames, meta=meta, verify_meta=False)


def _with_index(values: np.ndarray, given: Any, columns: Any) -> Any:
    """Values of the rows of a dataframe, with its index."""
    import pandas as pd

    if columns is None:
        return pd.Series(values, index=given.index)
    return pd.DataFrame(values, index=given.index, columns=columns)
