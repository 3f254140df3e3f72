"""What is in each column of a table, in a few words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kfree.report.wording import short
from kfree.tables import TablePreparation


@dataclass(frozen=True)
class ColumnSummary:
    """A column in words."""

    name: str
    kind: str
    n_missing: int
    values: str
    left_out: bool = False
    identifier: bool = False


def summarize(X: Any, table: TablePreparation | None) -> tuple[ColumnSummary, ...]:
    """One record for each column of a data frame or an array.

    Parameters
    ----------
    X : DataFrame or ndarray of shape (n_samples, n_features)
    table : TablePreparation or None
        Fitted; it knows what the columns are.
    """
    if not hasattr(X, "iloc"):
        return tuple(
            _summary(f"feature {j}", "number", X[:, j], X[:, j] != X[:, j])
            for j in range(X.shape[1])
        )
    found = []
    for j, name in enumerate(map(str, X.columns)):
        column = X.iloc[:, j]
        left_out = table is not None and name in table.left_out_
        identifier = table is not None and name in table.identifiers_
        if table is None:
            kind = "number" if column.dtype.kind in "iuf" else "other"
        elif name in table.left_out_:
            kind = f"left out: {table.left_out_[name]}"
        elif name in table.date_formats_:
            kind = "date"
        elif name in getattr(table, "texts_", ()):
            kind = "free text"
        else:
            kind = "number" if name in table.numbers_ else "category"
        missing = column.isna().to_numpy(dtype=bool)
        summary = _summary(name, kind, column.to_numpy(dtype=object), missing)
        found.append(replace(summary, left_out=left_out, identifier=identifier))
    return tuple(found)


def _summary(name: str, kind: str, cells: np.ndarray, missing: np.ndarray) -> ColumnSummary:
    there = cells[~missing]
    values = ""
    if kind == "number":
        numbers = _numbers(there)
        if 2 * len(numbers) > len(there):
            low, middle, high = np.quantile(numbers, [0.0, 0.5, 1.0])
            values = f"{low:.4g} to {high:.4g}, median {middle:.4g}"
    elif kind == "category":
        names, counts = np.unique([str(cell) for cell in there], return_counts=True)
        first = np.argsort(-counts, kind="stable")[:3]
        values = ", ".join(f"{short(names[i])} ({counts[i]:,})" for i in first)
        values += f" and {len(names) - 3} more" if len(names) > 3 else ""
    if not values and len(there):
        # Dates, free text, and numbers that are written as people write them.
        texts = sorted(map(str, there))
        values = f"such as {short(texts[len(texts) // 2])}"
    return ColumnSummary(name, kind, int(missing.sum()), values)


def _numbers(cells: np.ndarray) -> np.ndarray:
    """The cells that are finite numbers."""
    numbers = []
    for cell in cells:
        try:
            numbers.append(float(cell))
        except (TypeError, ValueError):
            continue
    numbers_there = np.array(numbers)
    return numbers_there[np.isfinite(numbers_there)]
