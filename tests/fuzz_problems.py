"""Random problems for the fast classifier and its slow twin (`naive.py`), and what they differ by.

A problem is a seed: everything else is drawn from it, so that a seed is all that has to be kept.
Kinds of data are drawn that have been trouble: ties, duplicates, separated classes, mislabeled
hubs, rare classes, replicates, extreme priors and sizes of numbers; and the borders at which the
fast code takes another way are moved down to the sizes that the slow twin can answer.
"""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np

import naive
from kfree import KFreeClassifier, averaging

# Differences above this are failures: the aim for every class probability and every p(K | Y).
TOLERANCE = 1e-6
STRUCTURES = naive.STRUCTURES
KINDS = (
    "noise",
    "overlapping",
    "separated",
    "ties",
    "duplicates",
    "hub",
    "replicates",
    "rare classes",
)
# Borders between the ways, moved to where small problems cross them.
BORDERS = {
    "kfree.likelihood.few_classes.MOST_CLASSES": (1, 1, 3, 1024),
    "kfree.likelihood.few_classes.STATE_NUMBERS": (30, 1 << 24),
    "kfree.likelihood.slots.DENSE_CLASSES": (1, 1, 16),
    "kfree.likelihood.counts.DENSE_CLASSES": (1, 16),
    "kfree.likelihood.terms.BLOCK_NUMBERS": (30, 1 << 19),
    "kfree.likelihood.training_sum.PART_EDGES": (30, 1 << 22),
    "kfree.likelihood.training_sum.GROUP_ENTRIES": (50, 1 << 23),
    "kfree.likelihood.few_classes.MOST_CELLS": (0, 4, 10**6),
    "kfree.likelihood.few_classes.COLUMNS_PER_CELL": (10, 1e-6),
    "kfree.neighbors.brute.SINGLE_POINTS": (0, 1 << 14),
    "kfree.neighbors.brute.BLOCK_DISTANCES": (30, 1 << 21),
    "kfree.neighbors.ordering.ORDERED": (2, 32),
    "kfree.candidates.EVERY_UP_TO": (4, 32),
    "kfree.averaging.DOUBT": (0.0, averaging.DOUBT),
    "kfree.training.USUAL_SLOPE": (0.0, 4.0),
    "kfree.blocks.KEPT_NUMBERS": (0, 1 << 25),
    "kfree.inference.quadrature.FIRST_TILT": (0.0, 4.0),
    "kfree.reach.N_SLOPES": (5, 65),
}


@dataclass(frozen=True)
class Problem:
    """Training rows with labels 0..n_classes-1, a new row, and how the classifier is set."""

    seed: int
    kind: str
    X: np.ndarray
    z: np.ndarray
    new: np.ndarray
    scale: float  # multiplies all features, for the fast classifier only
    settings: dict
    borders: dict

    @property
    def n_classes(self) -> int:
        return int(self.z.max()) + 1

    def __str__(self) -> str:
        n, d = self.X.shape
        return (
            f"seed {self.seed}: {self.kind}, {n} x {d}, {self.n_classes} classes, "
            f"scale {self.scale:g}, {self.settings}, {self.borders}"
        )


def problem(seed: int, n_most: int = 40) -> Problem:
    """The problem of a seed."""
    rng = np.random.default_rng([20_26, seed])
    kind = str(rng.choice(KINDS))
    n = int(rng.integers(4, n_most + 1))
    n_classes = int(min(n, rng.choice([2, 2, 3, 4, 6, 10])))
    d = int(rng.choice([1, 2, 3, 30]))
    z = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    centers = rng.normal(size=(n_classes, d)) * float(rng.choice([0.5, 2.0, 10.0]))
    X = centers[z] + rng.normal(size=(n, d))
    if kind == "noise":
        X = rng.normal(size=(n, d))
    if kind == "separated":
        X[:, 0] = 100.0 * z + rng.normal(size=n)
    if kind == "ties":
        X = rng.integers(0, 4, (n, d)).astype(float)
    if kind == "duplicates":
        X = X[rng.integers(0, max(1, n // 4), n)]
    if kind == "hub":
        X[:, 0] = 20.0 * (z > 0)
        X[0] = X[z > 0].mean(axis=0) if (z > 0).any() else X[0]  # of class 0, amid the others
    if kind == "replicates":  # the subject's effect exceeds that of the class
        subject = rng.integers(0, max(2, n // 5), n)
        X = 10.0 * rng.normal(size=(n, d))[subject] + 0.1 * rng.normal(size=(n, d))
        z = (subject % n_classes + (rng.random(n) < 0.2)) % n_classes
        z = np.unique(z, return_inverse=True)[1]
    if kind == "rare classes":
        z = np.where(np.arange(n) < n_classes, np.arange(n) % n_classes, 0)
    if len(np.unique(z)) < 2:
        z[0] = 1 - z[0]
    near = X[rng.integers(0, n)]
    new = [near, near + rng.normal(size=d), X.mean(axis=0), X.max(axis=0) + 50.0]
    candidates = ["auto", "all", None]
    settings = {
        "structure": str(rng.choice(STRUCTURES)),
        "update": str(rng.choice(["joint", "joint", "conditional"])),
        "inference": str(rng.choice(["quadrature", "quadrature", "quadrature", "laplace"])),
        "average": bool(rng.random() < 0.8),
        "algorithm": str(rng.choice(["auto", "brute", "kd_tree"])),
        "prior_shape": float(rng.choice([2.0, 2.0, 1.5, 5.0, 50.0])),
        "prior_scale": float(rng.choice([10.0, 10.0, 1.0, 0.1, 1000.0])),
    }
    k_values = candidates[int(rng.integers(0, 3))]
    k_max = int(rng.integers(1, min(n - 1, 24) + 1))
    if k_values is None:
        chosen = rng.choice(np.arange(1, n), min(n - 1, int(rng.integers(1, 6))), replace=False)
        settings["k_values"] = sorted(int(k) for k in chosen)
    else:
        settings |= {"k_values": k_values, "k_max": k_max}
    borders = {
        name: values[int(rng.integers(0, len(values)))]
        for name, values in BORDERS.items()
        if rng.random() < 0.3
    }
    scale = float(rng.choice([1.0, 1.0, 1.0, 2.0**-600, 2.0**500]))
    if "k_max" in settings and rng.random() < 0.3:
        settings["k_max"] = "auto"
    return Problem(seed, kind, X, z, new[int(rng.integers(0, 4))], scale, settings, borders)


def shrunk(given: Problem) -> Problem:
    """A smaller problem that fails too: borders left alone and rows left out one at a time."""
    smaller = True
    while smaller:
        smaller = False
        for attempt in _smaller(given):
            if fails(attempt):
                given, smaller = attempt, True
                break
    return given


def _smaller(given: Problem):
    for name in given.borders:
        kept = {key: value for key, value in given.borders.items() if key != name}
        yield replace(given, borders=kept)
    if given.scale != 1.0:
        yield replace(given, scale=1.0)
    k_values = given.settings["k_values"]
    k = max(k_values) if isinstance(k_values, list) else given.settings["k_max"]
    k = 1 if k == "auto" else k
    for row in range(len(given.z)):
        z = np.delete(given.z, row)
        whole = len(np.unique(z)) == int(z.max()) + 1 and z.max() > 0
        if whole and len(z) > k:
            yield replace(given, X=np.delete(given.X, row, axis=0), z=z)


def fails(given: Problem) -> bool:
    """Whether the fast classifier differs from the slow twin, or breaks."""
    try:
        return difference(given) > TOLERANCE
    except Exception:
        return True


def keep(given: Problem, folder: Path) -> Path:
    """Write a problem into a file, from which `kept` reads it."""
    values = asdict(given)
    for name in ("X", "z", "new"):
        values[name] = values[name].tolist()
    folder.mkdir(exist_ok=True)
    path = folder / f"seed_{given.seed}.json"
    path.write_text(json.dumps(values, indent=1) + "\n")
    return path


def kept(path: Path) -> Problem:
    """The problem that a file holds."""
    values = json.loads(path.read_text())
    for name in ("X", "z", "new"):
        values[name] = np.array(values[name])
    return Problem(**values)


@contextmanager
def moved(borders: dict):
    """The borders between the ways where a problem has them."""
    with ExitStack() as stack:
        for name, value in borders.items():
            stack.enter_context(patch(name, value))
        yield


def difference(given: Problem) -> float:
    """The largest difference of a class probability or p(K | Y) from the slow twin's.

    Of the new row, of a row that is held out, and of p(K | training labels).
    """
    settings, z, n_classes = given.settings, given.z, given.n_classes
    structure, update = settings["structure"], settings["update"]
    method = {"quadrature": naive.dense_quadrature, "laplace": naive.algorithm_1}
    method = method[settings["inference"]]
    with moved(given.borders):
        model = KFreeClassifier(**settings).fit(given.X * given.scale, z)
        k, log_prior = model.k_values_, model._model.candidates.log_prior
        # Many rows at a time are looked at in another way than one; every other problem has many.
        n_rows = 1 + given.seed % 2 * len(z)
        found = model.posterior(np.repeat(given.new[None], n_rows, axis=0) * given.scale)
        held = given.seed % len(z)
        held_out = model.posterior(None)
    # All conditional quantities are the same with fewer candidates; only the weights change.
    options = {"k_values": k, "log_prior": log_prior}
    prior = settings["prior_shape"], settings["prior_scale"]
    average = settings["average"]
    if settings["inference"] == "quadrature":
        options["n_nodes"] = 1601
    expected = method(
        structure, given.X, z, given.new, None, n_classes, update, average, *prior, **options
    )
    left_out = naive.leave_one_out(
        method, structure, given.X, z, held, None, n_classes, update, average, *prior, **options
    )
    return max(
        _apart(found, n_rows - 1, expected),
        0.0 if _breaks_ties(given, held) else _apart(held_out, held, left_out),
    )


def _breaks_ties(given: Problem, row: int) -> bool:
    """Whether removing a row and adding it last changes the order of equal distances."""
    if given.settings["update"] == "conditional":
        return False
    distances = np.sqrt(((given.X[:, None] - given.X) ** 2).sum(axis=2))
    for i in range(len(given.X)):
        others = np.delete(distances[i], [i, row] if i != row else [row])
        tied = np.abs(others - distances[i, row]) <= 1e-9 * (1.0 + distances[i, row])
        if i != row and tied.any():
            return True
    return False


def _apart(found, row: int, expected) -> float:
    parts = (
        found.class_probabilities[row] - expected.class_probabilities,
        found.k_probabilities[row] - expected.k_probabilities,
    )
    return float(max(np.abs(part).max() for part in parts))
