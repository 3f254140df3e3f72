"""Dask collections in and out: partitions as tasks, and tasks as collections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np


def task(name: str, function: Callable, *args: Any) -> Any:
    """A call that Dask makes when it is asked to; its name is what the dashboard shows."""
    from dask import delayed

    key = f"kfree-{name}-{uuid4().hex}"
    return delayed(function, pure=False)(*args, dask_key_name=key)


def as_it_is(value: Any) -> Any:
    """The value: data that goes into a graph once, however many tasks need it."""
    return value


@dataclass(frozen=True)
class Rows:
    """The partitions of a collection of rows, each a task."""

    parts: list
    lengths: list  # of the partitions, where they are known without computing; else NaN
    frame: bool  # whether they are dataframes
    meta: Any  # an empty one


def rows_of(X: Any, what: str = "X") -> Rows:
    """The partitions of a dask array or dataframe of rows."""
    import dask.array as da

    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise ValueError(f"{what} must have 2 dimensions, rows and features; got {X.ndim}.")
        if X.numblocks[1] > 1:
            X = X.rechunk({1: X.shape[1]})
        meta = np.empty((0, X.shape[1]), dtype=X.dtype)
        return Rows(list(X.to_delayed().ravel()), list(X.chunks[0]), False, meta)
    if _is_frame(X) and X.ndim == 2:
        parts = list(X.to_delayed())
        return Rows(parts, [np.nan] * len(parts), True, X._meta)
    raise TypeError(
        f"{what} must be a dask array or dataframe; got {type(X).__name__}. For rows in memory use "
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


def array_of(parts: Sequence[Any], lengths: Sequence, width: int | None, dtype: Any) -> Any:
    """Tasks that each give an array of rows, as one lazy dask array."""
    import dask.array as da

    arrays = [
        da.from_delayed(part, (n,) if width is None else (n, width), dtype=dtype)
        for part, n in zip(parts, lengths, strict=True)
    ]
    return da.concatenate(arrays, axis=0, allow_unknown_chunksizes=True)


def collection_of(parts: Sequence[Any], rows: Rows, columns: Any, dtype: Any) -> Any:
    """Tasks that each give what belongs to a partition of rows, as a collection of their kind.

    `columns` names the columns of a table; None for one value a row.
    """
    if not rows.frame:
        return array_of(parts, rows.lengths, None if columns is None else len(columns), dtype)
    import dask.dataframe as dd
    import pandas as pd

    empty = np.empty((0, len(columns)) if columns is not None else 0, dtype=dtype)
    meta = pd.DataFrame(empty, columns=columns) if columns is not None else pd.Series(empty)
    frames = [
        task("with-index", with_index, part, given, columns)
        for part, given in zip(parts, rows.parts, strict=True)
    ]
    return dd.from_delayed(frames, meta=meta, verify_meta=False)


def with_index(values: np.ndarray, given: Any, columns: Any) -> Any:
    """Values of the rows of a dataframe, with its index."""
    import pandas as pd

    if columns is None:
        return pd.Series(values, index=given.index)
    return pd.DataFrame(values, index=given.index, columns=columns)
