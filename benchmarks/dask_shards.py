"""What shards cost: CPU seconds, bytes moved, memory and tasks of kfree.dask beside one process.

Run by `make scale`. Training rows are 100,000 x 8 and x 3 of 10 classes, 2 workers of one thread,
2 to 16 shards by space and by rows; then 2,000 new rows. Every measurement runs in processes of its
own, so that CPU seconds and peak memory are theirs, and is kept in build/scale until the source
changes, so that an interrupted run goes on where it stopped. A complete run writes the table into
docs/scale.md; with --quick it is only printed, for few rows, and with --alone for one process only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import numpy as np

from kfree.evaluation.store import Store, digest_files, digest_model, write

from .speed.data import mixture

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "scale.md"
KEPT = ROOT / "build" / "scale"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
N_CLASSES = 10
N_ROWS, N_NEW = 100_000, 2_000
QUICK_ROWS = 5_000
FEATURES = (8, 3)
SHARDS = (2, 4, 8, 16)
MIB = 2**20
# As docs/scale.md advises.
SETTINGS = {
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**27,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**25,
    "distributed.worker.profile.enabled": False,
    "optimization.fuse.active": False,
}
# What is aimed at with 4 shards by space: at most so many times the CPU seconds of one process, by
# features, and at most this part of its memory.
AIMED_CPU = {8: 2.5, 3: 1.6}
AIMED_MEMORY = 0.5


@dataclass(frozen=True)
class Measured:
    """One row of the table."""

    n_features: int
    n_shards: int  # 0: one process without Dask
    partition: str
    fit_cpu: float  # seconds of all processes
    predict_cpu: float
    fit_seconds: float  # by the clock
    fit_received: int  # bytes, all workers
    predict_received: int
    growth: int  # bytes of peak memory above what was there before the data, of the worst worker
    n_tasks: int
    k_max: int


def data(n_rows: int, n_features: int):
    X, y = mixture(n_rows + N_NEW, n_features, N_CLASSES)
    return X[:n_rows].copy(), y[:n_rows].copy(), X[n_rows:].copy()


def memory(what: str) -> int:
    """Bytes of this process: "VmRSS" now, "VmHWM" at its peak."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(rf"^{what}:\s*(\d+)", status, re.MULTILINE)[1])


def one_process(n_features: int, folder: str) -> Measured:
    from kfree import KFreeClassifier

    before = memory("VmRSS")
    X, y, new = (np.load(Path(folder) / f"{name}.npy") for name in ("X", "y", "new"))
    start, clock = time.process_time(), time.monotonic()
    model = KFreeClassifier().fit(X, y)
    fitted, clock = time.process_time(), time.monotonic() - clock
    model.predict_proba(new)
    done = time.process_time()
    growth = memory("VmHWM") - before
    times = fitted - start, done - fitted, clock
    return Measured(n_features, 0, "one process", *times, 0, 0, growth, 0, model.k_max_)


def part(name: str, folder: str, first: int, last: int):
    """Rows of a file, read where they are needed."""
    return np.load(Path(folder) / f"{name}.npy", mmap_mode="r")[first:last].copy()


def on_worker(dask_worker=None) -> dict:
    return {
        "cpu": time.process_time(),
        "received": sum(entry["total"] for entry in dask_worker.transfer_incoming_log),
        "peak": memory("VmHWM"),
        "present": memory("VmRSS"),
        "tasks": dask_worker.state.executed_count,
    }


def sharded(n_rows: int, n_features: int, n_shards: int, partition: str, folder: str) -> Measured:
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster

    import kfree.dask

    def collection(name: str, length: int, n_parts: int, width: int | None):
        bounds = np.linspace(0, length, n_parts + 1).astype(int).tolist()
        shape = () if width is None else (width,)
        dtype = float if width else int
        return da.concatenate(
            [
                da.from_delayed(dask.delayed(part)(name, folder, a, b), (b - a, *shape), dtype)
                for a, b in pairwise(bounds)
            ]
        )

    def more(a: dict, b: dict, what: str) -> float:
        return sum(b[worker][what] - a[worker][what] for worker in a)

    dask.config.set(SETTINGS)
    quiet = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    # The scheduler and those who watch over the workers are threads of this process.
    with LocalCluster(host="127.0.0.1", **quiet) as cluster, Client(cluster) as client:
        client.run(_import)
        X, y = collection("X", n_rows, 8, n_features), collection("y", n_rows, 8, None)
        new = collection("new", N_NEW, 2, n_features)
        base, mine, clock = client.run(on_worker), time.process_time(), time.monotonic()
        model = kfree.dask.KFreeClassifier(n_shards=n_shards, partition=partition).fit(X, y)
        clock = time.monotonic() - clock
        middle, mine_then = client.run(on_worker), time.process_time()
        model.predict_proba(new).compute()
        end, mine_now = client.run(on_worker), time.process_time()
    return Measured(
        n_features,
        n_shards,
        partition,
        more(base, middle, "cpu") + mine_then - mine,
        more(middle, end, "cpu") + mine_now - mine_then,
        clock,
        int(more(base, middle, "received")),
        int(more(middle, end, "received")),
        max(end[worker]["peak"] - base[worker]["present"] for worker in base),
        int(more(base, end, "tasks")),
        model.k_max_,
    )


def _import() -> None:
    import kfree.dask  # noqa: F401


def alone(arguments: list[str]) -> Measured:
    """One measurement in a process of its own."""
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    command = [sys.executable, "-m", "benchmarks.dask_shards", "--one", *arguments]
    result = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT, env=os.environ | single
    )
    return Measured(**json.loads(result.stdout.splitlines()[-1]))


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    if options.one:
        print(json.dumps(asdict(_one(options))))
        return 0
    if options.fresh:
        shutil.rmtree(KEPT, ignore_errors=True)
    n_rows, shards = (QUICK_ROWS, SHARDS[:2]) if options.quick else (N_ROWS, SHARDS)
    if options.alone:
        n_rows, shards = options.alone, ()
    try:
        found = measure(n_rows, shards, Store(KEPT))
    except KeyboardInterrupt:
        print("\nInterrupted. The same command goes on from here; --fresh starts anew.")
        return 130
    text = report(found, n_rows)
    print("\n" + text)
    if (n_rows, shards) == (N_ROWS, SHARDS):
        page = PAGE.read_text(encoding="utf-8")
        before, after = page[: page.index(BEGIN)], page[page.index(END) :]
        write(PAGE, f"{before}{BEGIN}\n{text}\n{after}")
        print(f"\nWritten: {PAGE.relative_to(ROOT)}")
    return 0


def measure(n_rows: int, shards: tuple[int, ...], store: Store) -> list[Measured]:
    """All rows of the table, each measured unless it was before."""
    settings = [("one process", 0), *((how, n) for how in ("space", "rows") for n in shards)]
    found, key = [], conditions(n_rows)
    with tempfile.TemporaryDirectory() as folder:
        for n_features in FEATURES:
            for i, (partition, n_shards) in enumerate(settings):
                name = f"{n_features} {partition} {n_shards}"
                kept = store.get(name, key)
                if kept is None:
                    place = Path(folder) / str(n_features)
                    if not place.exists():
                        place.mkdir()
                        of = data(n_rows, n_features)
                        for file, values in zip(("X", "y", "new"), of, strict=True):
                            np.save(place / f"{file}.npy", values)
                    common = f"--rows {n_rows} --features {n_features} --folder {place}".split()
                    more = f"--shards {n_shards} --partition {partition}".split() if i else []
                    kept = asdict(alone(common + more))
                    store.put(name, key, kept)
                found.append(Measured(**kept))
                print(said(found[-1]), flush=True)
    return found


def conditions(n_rows: int) -> dict[str, object]:
    """All that a measurement depends on, apart from the machine."""
    packages = ("numpy", "scipy", "scikit-learn", "dask", "distributed")
    return {
        "kfree": digest_model(),
        "benchmark": digest_files([Path(__file__), ROOT / "benchmarks" / "speed" / "data.py"]),
        "rows": n_rows,
        **{name: version(name) for name in packages},
    }


def _one(options: argparse.Namespace) -> Measured:
    if options.shards is None:
        return one_process(options.features, options.folder)
    of = options.rows, options.features, options.shards, options.partition, options.folder
    return sharded(*of)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dask_shards", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows, writes nothing")
    parser.add_argument(
        "--alone", type=int, metavar="N", help="one process with N rows, no shards; writes nothing"
    )
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    one = parser.add_argument_group("one measurement, in this process")
    one.add_argument("--one", action="store_true")
    one.add_argument("--rows", type=int, metavar="N")
    one.add_argument("--features", type=int)
    one.add_argument("--shards", type=int)
    one.add_argument("--partition")
    one.add_argument("--folder")
    return parser.parse_args(arguments)


def said(one: Measured) -> str:
    return (
        f"d = {one.n_features}, {one.n_shards or 'no'} shards, {one.partition}: fit "
        f"{one.fit_cpu:.1f} s, predict {one.predict_cpu:.1f} s of CPU, {one.growth / MIB:.0f} MiB"
    )


def report(found: list[Measured], n_rows: int) -> str:
    """The table and what it says of the aims."""
    header = [
        "features",
        "shards",
        "fit, CPU s",
        "against one process",
        "fit, s by the clock",
        "predict, CPU s",
        "received in fit, MiB",
        "received per new row, KiB",
        "peak memory of a worker, MiB",
        "against one process",
        "tasks",
    ]
    lines = [header, ["---:"] * len(header)]
    for one in found:
        base = _one_process(found, one.n_features)
        lines.append(
            [
                str(one.n_features),
                f"{one.n_shards} by {one.partition}" if one.n_shards else one.partition,
                f"{one.fit_cpu:.1f}",
                f"{one.fit_cpu / base.fit_cpu:.2f}",
                f"{one.fit_seconds:.1f}",
                f"{one.predict_cpu:.1f}",
                f"{one.fit_received / MIB:.0f}",
                f"{one.predict_received / 1024 / N_NEW:.1f}",
                f"{one.growth / MIB:.0f}",
                f"{one.growth / base.growth:.2f}",
                str(one.n_tasks),
            ]
        )
    text = (
        f"{n_rows:,} training rows, {N_NEW:,} new rows, {N_CLASSES} classes "
        "(`benchmarks/speed/data.py`), 2 workers of one thread on one machine with the settings "
        "under [Settings](#settings). Each line was measured once. "
        "CPU seconds are those of all processes together, workers, scheduler and client, from the "
        "start of `fit` to its end, and what they take while they wait is among them. Memory is "
        "what a process had at its peak, with the prediction, above what it had before it saw a "
        "row; of workers, the one that had most."
    )
    body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    said = f"\n\n{verdict(found)}" if n_rows == N_ROWS and len(found) > len(FEATURES) else ""
    return f"{text}\n\n{body}{said}"


def verdict(found: list[Measured]) -> str:
    """Whether what is aimed at was reached."""
    said = []
    for n_features, most in AIMED_CPU.items():
        base = _one_process(found, n_features)
        (one,) = [
            one
            for one in found
            if (one.n_features, one.n_shards, one.partition) == (n_features, 4, "space")
        ]
        cpu, growth = one.fit_cpu / base.fit_cpu, one.growth / base.growth
        said.append(
            f"With 4 shards by space and {n_features} features `fit` takes {cpu:.2f} times the CPU "
            f"seconds of one process (aim: at most {most}, {_met(cpu, most)}), and a worker "
            f"{growth:.2f} of its memory (aim: at most {AIMED_MEMORY}, "
            f"{_met(growth, AIMED_MEMORY)})."
        )
    return " ".join(said)


def _met(value: float, most: float) -> str:
    return "reached" if value <= most else "missed"


def _one_process(found: list[Measured], n_features: int) -> Measured:
    return next(one for one in found if one.n_features == n_features and not one.n_shards)


if __name__ == "__main__":
    sys.exit(main())
