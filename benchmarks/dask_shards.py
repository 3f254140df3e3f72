"""What shards cost: CPU seconds, bytes moved, memory and tasks of kfree.dask beside one process.

Run by `make scale`. Training rows are 100,000 x 8 and x 3 of 10 classes, 2 workers of one thread,
2 to 16 shards by space and by rows; then 2,000 new rows. Everything runs in processes of its own,
so that CPU seconds and peak memory are theirs. Writes the table into docs/scale.md; with --quick it
only prints it, for few rows.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from kfree.evaluation.store import write

from .speed.data import mixture

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "scale.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
N_CLASSES = 10
N_NEW = 2_000
SHARDS = (2, 4, 8, 16)
IDLE_SECONDS = 5
MIB = 2**20
# As docs/scale.md advises: what Dask sets otherwise has every large array cost page faults.
MALLOC = {
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**27,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**25,
}


@dataclass(frozen=True)
class Measured:
    """One row of the table."""

    n_features: int
    n_shards: int  # 0: one process without Dask
    partition: str
    fit_cpu: float  # seconds of all processes
    predict_cpu: float
    fit_received: int  # bytes, all workers
    predict_received: int
    growth: int  # bytes of peak memory above what was there before the data, of the worst worker
    n_tasks: int
    k_max: int
    fit_idle: float  # CPU seconds that an idle cluster takes in the time of the fit


def data(n_rows: int, n_features: int):
    X, y = mixture(n_rows + N_NEW, n_features, N_CLASSES)
    return X[:n_rows].copy(), y[:n_rows].copy(), X[n_rows:].copy()


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def present() -> int:
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[1]) * resource.getpagesize()


def one_process(n_rows: int, n_features: int) -> Measured:
    from kfree import KFreeClassifier

    X, y, new = data(n_rows, n_features)
    before = present()
    start = time.process_time()
    model = KFreeClassifier().fit(X, y)
    fitted = time.process_time()
    model.predict_proba(new)
    done = time.process_time()
    growth = peak() - before
    times = fitted - start, done - fitted
    return Measured(n_features, 0, "one process", *times, 0, 0, growth, 0, model.k_max_, 0.0)


def part(name: str, folder: str, first: int, last: int):
    """Rows of a file, read where they are needed."""
    return np.load(Path(folder) / f"{name}.npy", mmap_mode="r")[first:last].copy()


def on_worker(dask_worker=None) -> dict:
    received = sum(entry["total"] for entry in dask_worker.transfer_incoming_log)
    n_tasks = dask_worker.state.executed_count
    return {
        "cpu": time.process_time(),
        "received": received,
        "peak": peak(),
        "present": present(),
        "tasks": n_tasks,
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

    dask.config.set(MALLOC)
    quiet = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(host="127.0.0.1", **quiet) as cluster, Client(cluster) as client:
        client.run(_import)
        before, mine_before = client.run(on_worker), time.process_time()
        time.sleep(IDLE_SECONDS)
        base, mine = client.run(on_worker), time.process_time()
        idle = (more(before, base, "cpu") + mine - mine_before) / IDLE_SECONDS
        start = time.monotonic()
        X, y = collection("X", n_rows, 8, n_features), collection("y", n_rows, 8, None)
        new = collection("new", N_NEW, 2, n_features)
        model = kfree.dask.KFreeClassifier(n_shards=n_shards, partition=partition).fit(X, y)
        middle, mine_then = client.run(on_worker), time.process_time()
        idle *= time.monotonic() - start
        model.predict_proba(new).compute()
        end, mine_now = client.run(on_worker), time.process_time()
    return Measured(
        n_features,
        n_shards,
        partition,
        more(base, middle, "cpu") + mine_then - mine,
        more(middle, end, "cpu") + mine_now - mine_then,
        int(more(base, middle, "received")),
        int(more(middle, end, "received")),
        max(end[worker]["peak"] - base[worker]["present"] for worker in base),
        int(more(base, end, "tasks")),
        model.k_max_,
        idle,
    )


def _import() -> None:
    import kfree.dask  # noqa: F401


def alone(arguments: list[str]) -> Measured:
    """One measurement in a process of its own."""
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    command = [sys.executable, "-m", "benchmarks.dask_shards", "--one", *arguments]
    result = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=ROOT, env={**os.environ, **single}
    )
    return Measured(**json.loads(result.stdout.splitlines()[-1]))


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    if options.one:
        print(json.dumps(asdict(_one(options))))
        return 0
    import tempfile

    n_rows = options.rows or (5_000 if options.quick else 100_000)
    shards = (2, 4) if options.quick else SHARDS
    found = []
    for n_features in (8, 3):
        with tempfile.TemporaryDirectory() as folder:
            for name, values in zip(("X", "y", "new"), data(n_rows, n_features), strict=True):
                np.save(Path(folder) / f"{name}.npy", values)
            common = ["--rows", str(n_rows), "--features", str(n_features), "--folder", folder]
            found.append(alone(common))
            print(said(found[-1]), flush=True)
            for partition in ("space", "rows"):
                for n_shards in shards:
                    more = ["--shards", str(n_shards), "--partition", partition]
                    found.append(alone(common + more))
                    print(said(found[-1]), flush=True)
    text = table(found, n_rows)
    print("\n" + text)
    if not options.quick:
        page = PAGE.read_text(encoding="utf-8")
        before, after = page[: page.index(BEGIN)], page[page.index(END) :]
        write(PAGE, f"{before}{BEGIN}\n{text}\n{after}")
        print(f"\nWritten: {PAGE.relative_to(ROOT)}")
    return 0


def _one(options: argparse.Namespace) -> Measured:
    if options.shards is None:
        return one_process(options.rows, options.features)
    of = options.rows, options.features, options.shards, options.partition, options.folder
    return sharded(*of)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dask_shards", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows, writes nothing")
    parser.add_argument("--rows", type=int, metavar="N", help="training rows; default: 100,000")
    parser.add_argument("--one", action="store_true", help="one measurement, in this process")
    parser.add_argument("--features", type=int)
    parser.add_argument("--shards", type=int)
    parser.add_argument("--partition")
    parser.add_argument("--folder")
    return parser.parse_args(arguments)


def said(one: Measured) -> str:
    return (
        f"d = {one.n_features}, {one.n_shards or 'no'} shards, {one.partition}: fit "
        f"{one.fit_cpu:.1f} s, predict {one.predict_cpu:.1f} s of CPU"
    )


def table(found: list[Measured], n_rows: int) -> str:
    header = [
        "features",
        "shards",
        "fit, CPU s",
        "of it idling",
        "the rest against one process",
        "predict, CPU s",
        "received in fit, MiB",
        "received per new row, KiB",
        "peak memory of a worker, MiB",
        "tasks",
    ]
    lines = [header, ["---:"] * len(header)]
    for one in found:
        base = next(o for o in found if o.n_features == one.n_features and not o.n_shards)
        lines.append(
            [
                str(one.n_features),
                f"{one.n_shards} by {one.partition}" if one.n_shards else one.partition,
                f"{one.fit_cpu:.1f}",
                f"{one.fit_idle:.1f}",
                f"{(one.fit_cpu - one.fit_idle) / base.fit_cpu:.2f}",
                f"{one.predict_cpu:.1f}",
                f"{one.fit_received / MIB:.0f}",
                f"{one.predict_received / 1024 / N_NEW:.1f}",
                f"{one.growth / MIB:.0f}",
                str(one.n_tasks),
            ]
        )
    text = (
        f"{n_rows:,} training rows, {N_NEW:,} new rows, {N_CLASSES} classes "
        "(`benchmarks/speed/data.py`), 2 workers of one thread on one machine. CPU seconds are of "
        "all processes together; idling is what a cluster that does nothing takes in as many "
        "seconds by the clock, measured just before. Memory is what a process had at its peak "
        "above what it had before it saw a row."
    )
    return text + "\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
