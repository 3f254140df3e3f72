"""How much memory `fit` and `predict_proba` take, by rows and features.

Run by `make memory`. Each size runs in a process of its own, since memory that was taken once is
never given back to be measured again. What was measured is kept in build/memory until the source
changes, so an interrupted run goes on where it stopped. Writes the table into docs/many_rows.md;
with --quick it only prints it, for small sizes, and keeps nothing.
"""

from __future__ import annotations

import argparse
import platform
import resource
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

from kfree import KFreeClassifier
from kfree.evaluation.store import Store, digest_model, write

from .speed.data import mixture

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "many_rows.md"
BUILD = ROOT / "build" / "memory"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
N_CLASSES, N_NEW = 4, 10_000
SIZES = [(10_000, 8), (10_000, 64), (10_000, 512), (100_000, 8), (100_000, 64), (300_000, 8)]
QUICK = [(1_000, 8), (2_000, 16)]


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    if options.one:
        print(*measured(Path(options.one)))
        return 0
    store, lines = Store(BUILD), []
    for n_rows, n_features in QUICK if options.quick else SIZES:
        name, conditions = f"{n_rows} x {n_features}", {"model": digest_model()}
        kept = None if options.quick else store.get(name, conditions)
        if kept is not None:
            lines.append((n_rows, n_features, *kept))
            continue
        print(f"{n_rows:,} x {n_features} ...", file=sys.stderr)
        with tempfile.TemporaryDirectory() as folder:
            points(Path(folder), n_rows, n_features)
            child = subprocess.run(
                [sys.executable, "-m", "benchmarks.memory", "--one", folder],
                capture_output=True,
                text=True,
                cwd=ROOT,
            )
        if child.returncode:
            print(child.stderr, file=sys.stderr)
            return 1
        found = [float(word) for word in child.stdout.split()]
        lines.append((n_rows, n_features, *found))
        if not options.quick:
            store.put(name, conditions, found)
    text = table(lines)
    print(text)
    if not options.quick:
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        write(PAGE, f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, printed only")
    parser.add_argument("--one", metavar="FOLDER", help="measure the points that are there")
    return parser.parse_args(arguments)


def points(folder: Path, n_rows: int, n_features: int) -> None:
    """Draw the points and keep them in files: drawing them takes memory of its own."""
    X, y = mixture(n_rows + N_NEW, n_features, N_CLASSES)
    np.save(folder / "rows.npy", X[:n_rows])
    np.save(folder / "labels.npy", y[:n_rows])
    np.save(folder / "new.npy", X[n_rows:])


def measured(folder: Path) -> tuple[float, float, float, int]:
    """MiB of the training rows, the most that fit and then predict_proba add, and k_max_."""
    rows, labels, new = (np.load(folder / f"{name}.npy") for name in ("rows", "labels", "new"))
    start = highest()
    model = KFreeClassifier().fit(rows, labels)
    after_fit = highest()
    model.predict_proba(new)
    return rows.nbytes / 2**20, after_fit - start, highest() - start, model.k_max_


def highest() -> float:
    """The most memory that this process ever had, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 2**10
    # Not on Linux: there ru_maxrss begins with what the parent process had.
    # macOS counts in bytes, others in KiB.
    unit = 2**20 if platform.system() == "Darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def table(lines: list[tuple[int, int, float, float, float, float]]) -> str:
    head = (
        f"{N_NEW:,} new rows, {N_CLASSES} classes (`benchmarks/speed/data.py`), one core; kfree "
        f"{version('kfree')}, numpy {np.__version__}. Memory in MiB, the most at any time.\n\n"
        "| rows | features | the rows themselves | `fit` adds | with `predict_proba` | `k_max_` |\n"
        "| ---: | ---: | ---: | ---: | ---: | ---: |"
    )
    body = [
        f"| {rows:,} | {features} | {data:,.0f} | {fit:,.0f} | {predict:,.0f} | {k_max:.0f} |"
        for rows, features, data, fit, predict, k_max in lines
    ]
    return "\n".join([head, *body])


if __name__ == "__main__":
    sys.exit(main())
