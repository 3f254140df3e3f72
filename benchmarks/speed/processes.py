"""What needs a process of its own: imports, the first use, peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from .timing import Result, Setting

ROOT = Path(__file__).resolve().parent.parent.parent
GIB = 2**30

IMPORT = """
import time
start = time.perf_counter()
import sklearn.neighbors
if {kfree}: import kfree
print(time.perf_counter() - start)
"""

FIRST_USE = """
import time
import numpy
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier
from kfree import KFreeClassifier
X, y = load_iris(return_X_y=True)
model = {model}
start = time.perf_counter()
model.fit(X, y).predict_proba(X)
print(time.perf_counter() - start)
"""

MEMORY = """
import json, time
from benchmarks.speed.data import embeddings, mixture
from kfree import KFreeClassifier
X, y = {draw}
train, labels, new = X[:{n_rows}].copy(), y[:{n_rows}].copy(), X[{n_rows}:].copy()
del X, y

def memory(name):
    # Not that of getrusage, whose peak a process inherits from its parent.
    with open("/proc/self/status") as lines:
        (line,) = [line for line in lines if line.startswith(name)]
    return int(line.split()[1]) * 1024

with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")  # what drawing the data took does not count
before = memory("VmRSS")
start = time.perf_counter()
model = KFreeClassifier(n_jobs={n_jobs}).fit(train, labels)
fitted = time.perf_counter()
of_fit = memory("VmHWM")
model.predict_proba(new)
done = time.perf_counter()
peak = memory("VmHWM")
print(json.dumps(dict(
    before=before, of_fit=of_fit, peak=peak, fit=fitted - start, predict=done - fitted,
    k_max=model.k_max_, k_optimal=model.k_optimal_,
)))
"""


def import_time(setting: Setting) -> list[Result]:
    """`import kfree` after `import sklearn.neighbors`, against the latter alone."""
    theirs, ours = [], []
    run(IMPORT.format(kfree=True))  # compiles what has not been
    for _ in range(setting.n_processes):
        theirs.append(float(run(IMPORT.format(kfree=False))))
        ours.append(float(run(IMPORT.format(kfree=True))))
    title = "import kfree beyond sklearn.neighbors"
    return [_beyond(title, ours, theirs, "import sklearn.neighbors", 0.1)]


def first_use(setting: Setting) -> list[Result]:
    """The first fit and predict_proba of a process, all imports done, on iris."""
    ours, theirs = [], []
    for _ in range(setting.n_processes):
        ours.append(float(run(FIRST_USE.format(model="KFreeClassifier()"))))
        theirs.append(float(run(FIRST_USE.format(model="KNeighborsClassifier()"))))
    title = "first fit + predict_proba of iris in a new process"
    return [
        Result(
            title,
            "seconds",
            min(ours),
            min(theirs),
            "sklearn k = 5",
            min(ours),
            min(ours),
            max(ours),
            0.1,
            1,
            {"rounds": setting.n_processes},
        )
    ]


def memory(kind: str, n_rows: int, n_new: int, target: float, setting: Setting) -> list[Result]:
    """Peak resident memory in a process of its own: of fit, and with predict_proba.

    The target is for both among few features, and for fit among many.
    """
    n_features = 8 if kind == "mixture" else 384
    draw = f"mixture({n_rows + n_new}, 8, 10)"
    if kind == "embeddings":
        draw = f"embeddings({n_rows + n_new}, 0)"
    given = {"n_rows": n_rows, "n_new": n_new, "n_jobs": setting.n_jobs, "draw": draw}
    found = json.loads(run(MEMORY.format(**given)))
    table = 16 * n_rows * found["k_max"] / GIB
    of_fit, of_both = found["of_fit"] / GIB, found["peak"] / GIB
    facts = {
        "N": n_rows,
        "d": n_features,
        "new": n_new,
        "k_max": found["k_max"],
        "K*": found["k_optimal"],
        "before fit, GiB": found["before"] / GIB,
        "fit, GiB": of_fit,
        "with predict_proba, GiB": of_both,
        "fit, s": found["fit"],
        "predict_proba, s": found["predict"],
    }
    title = f"peak memory, fit {n_rows:,} x {n_features}, 10 classes"
    peak = of_fit
    if kind == "mixture":
        peak, title = of_both, f"{title}, and {n_new:,} rows"
    name, n_jobs = "16 bytes x N x k_max", setting.n_jobs
    return [Result(title, "GiB", peak, table, name, peak, peak, peak, target, n_jobs, facts)]


def _beyond(title: str, ours: list[float], theirs: list[float], peer: str, target: float) -> Result:
    more = [a - b for a, b in zip(ours, theirs, strict=True)]
    value = min(ours) - min(theirs)
    facts = {"rounds": len(ours)}
    return Result(
        title,
        "seconds",
        min(ours),
        min(theirs),
        peer,
        value,
        min(more),
        max(more),
        target,
        1,
        facts,
    )


def run(code: str) -> str:
    """What a new process prints."""
    # Installed packages have been compiled, and kfree may be too.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
