"""Reading the data sets of the evaluation.

A data set is a file ``<name>.csv.gz``: comma separated, one header row, numeric features, and a
last column ``label``. The folder is the one that the environment variable ``KFREE_DATA`` names, or
``../shared/data`` as seen from the project's root.
"""

from __future__ import annotations

import csv
import gzip
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

#: The data sets of the paper.
PAPER = ("crabs", "fglass", "meat", "oliveoil", "wine", "iris")

#: Further data sets. Not independent of one another: `digits` is a part of `optdigits`, and `glass`
#: has the rows of `fglass` with more classes.
SUITE = (
    "sonar",
    "ionosphere",
    "pima",
    "vehicle",
    "glass",
    "segment",
    "letter",
    "satimage",
    "optdigits",
    "digits",
    "yeast",
    "ecoli",
    "heart_statlog",
    "australian",
    "wdbc",
    "banknote",
    "spambase",
    "waveform40",
    "page_blocks",
    "phoneme",
    "haberman",
    "balance_scale",
    "twonorm",
    "mfeat_zernike",
    "bupa",
    "shuttle",
    "breast_w",
    "german_numeric",
)

_SUFFIX = ".csv.gz"


class DataNotFound(FileNotFoundError):
    """The folder of data sets, or a data set in it, is not there."""


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """One data set, rows in the order of its file (often sorted by class)."""

    name: str
    X: NDArray[np.float64]  # (n_samples, n_features)
    y: NDArray  # (n_samples,), integers where every label is one, else text
    feature_names: tuple[str, ...]


def folder() -> Path:
    """Return the folder of data sets, or raise `DataNotFound` with the way to name another."""
    chosen = os.environ.get("KFREE_DATA")
    if chosen:
        path = Path(chosen).expanduser()
    else:
        root = _project_root()
        if root is None:
            raise DataNotFound(
                "There is no default folder of data sets outside the project's own tree: set the "
                f"environment variable KFREE_DATA to a folder of <name>{_SUFFIX} files."
            )
        path = root.parent / "shared" / "data"
    if not path.is_dir():
        raise DataNotFound(
            f"The folder of data sets {path} does not exist: set the environment variable "
            f"KFREE_DATA to a folder of <name>{_SUFFIX} files."
        )
    return path


def names() -> list[str]:
    """Return the names of the data sets that are there, sorted."""
    return _names(folder())


def _names(where: Path) -> list[str]:
    return sorted(path.name.removesuffix(_SUFFIX) for path in where.glob(f"*{_SUFFIX}"))


def path(name: str) -> Path:
    """The file of a data set in `folder()`."""
    return folder() / f"{name}{_SUFFIX}"


def load(name: str, where: Path | None = None) -> Dataset:
    """Read one data set by its name, from `folder()` or another folder."""
    file = path(name) if where is None else where / f"{name}{_SUFFIX}"
    if not file.is_file():
        there = ", ".join(_names(file.parent)) or "none"
        raise DataNotFound(f"There is no data set {name!r} in {file.parent}, which has: {there}.")
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        header, *rows = csv.reader(lines)
    if not header or header[-1] != "label":
        raise ValueError(f"{file.name}: the last column must be 'label', got {header[-1:]}.")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise ValueError(
                f"{file.name}, row {number}: expected {len(header)} values, got {len(row)}."
            )
    return Dataset(
        name=name,
        X=np.array([row[:-1] for row in rows], dtype=np.float64).reshape(len(rows), -1),
        y=_labels([row[-1] for row in rows]),
        feature_names=tuple(header[:-1]),
    )


def _labels(texts: list[str]) -> NDArray:
    """Integers if every label is one in its usual spelling ("7", not "07"), else text."""
    try:
        numbers = [int(text) for text in texts]
    except ValueError:
        return np.array(texts, dtype=str)
    if all(str(number) == text for number, text in zip(numbers, texts, strict=True)):
        return np.array(numbers, dtype=np.int64)
    return np.array(texts, dtype=str)


def _project_root() -> Path | None:
    """Look for the project's folder upwards from where we are, then from this file."""
    for start in (Path.cwd(), Path(__file__).resolve().parent):
        for candidate in (start, *start.parents):
            if _is_project(candidate / "pyproject.toml"):
                return candidate
    return None


def _is_project(path: Path) -> bool:
    # The name is checked because the current directory may lie in somebody else's project.
    try:
        with path.open("rb") as file:
            return tomllib.load(file).get("project", {}).get("name") == "kfree"
    except (OSError, tomllib.TOMLDecodeError):
        return False
