"""kfree beside its peers, in seconds: `make bench`.

Each workload runs kfree and its peer in the same process, in turn, several times. What has been
measured is kept in build/bench, so an interrupted run goes on where it stopped; a change of the
library's source or of the benchmark starts anew. A complete run writes docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path

from kfree.evaluation.store import Store, digest_files, digest_model, write

from . import plots, report
from .timing import Result, Setting
from .workloads import Workload, workloads

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build" / "bench"
DOCS = ROOT / "docs"


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    build = Path(options.output)
    chosen = workloads(options.quick, options.jobs)
    names = [workload.name for workload in chosen]
    if absent := sorted(set(options.only or []) - set(names)):
        print(f"No workload is called {', '.join(absent)}; there are {', '.join(names)}.")
        return 1
    if options.only:
        chosen = [workload for workload in chosen if workload.name in options.only]
    if options.fresh:
        shutil.rmtree(build / "kept", ignore_errors=True)
    store = Store(build / "kept")
    results: dict[str, list[Result]] = {}
    try:
        for number, workload in enumerate(chosen, start=1):
            print(f"[{number:2d}/{len(chosen)}] {workload.name:16}", end="", flush=True)
            results[workload.name] = measured(workload, store, options.quick)
    except KeyboardInterrupt:
        print("\nInterrupted. The same command goes on from here; --fresh starts anew.")
        return 130
    print("\n" + report.in_terminal(results))
    write(build / "results.json", as_json(results))
    pictures = plots.draw(results)
    for name, picture in pictures.items():
        write(build / f"{name}.png", picture)
    print(f"\nWritten: {build}/results.json" + (" and plots" if pictures else ""))
    if options.quick:
        print("Tiny sizes: the times and verdicts say nothing about real ones.")
    if options.only or options.quick:
        print("Not the complete run: docs/performance.md stays as it is.")
        return 0
    for name, picture in pictures.items():
        write(DOCS / "images" / f"speed-{name}.png", picture)
    write(DOCS / "performance.md", report.page(results, list(pictures), options.jobs))
    print("Written: docs/performance.md and its pictures")
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run at all?")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these workloads, no report")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="cores for each contender")
    parser.add_argument("--output", default=BUILD, metavar="FOLDER", help="default: build/bench")
    return parser.parse_args(arguments)


def measured(workload: Workload, store: Store, quick: bool) -> list[Result]:
    """Results from the cache if nothing has changed since, measured otherwise."""
    found = []
    for n_jobs in workload.n_jobs:
        key = conditions(n_jobs, quick)
        kept = store.get(workload.name, key)
        start = time.perf_counter()
        if kept is None:
            lines = workload.measure(Setting(n_jobs, quick))
            store.put(workload.name, key, [asdict(line) for line in lines])
            print(f"  {n_jobs} jobs: {time.perf_counter() - start:.1f} s", end="", flush=True)
        else:
            lines = [Result(**values) for values in kept]
            print(f"  {n_jobs} jobs: kept", end="", flush=True)
        # The targets are for the first number of jobs, the others are for comparison.
        first = n_jobs == workload.n_jobs[0]
        found += lines if first else [replace(line, target=None) for line in lines]
    print()
    return found


def conditions(n_jobs: int, quick: bool) -> dict[str, object]:
    """All that a time depends on, apart from the machine."""
    return {
        "kfree": digest_model(),
        "benchmark": digest_files(sorted(Path(__file__).parent.glob("*.py"))),
        "jobs": n_jobs,
        "quick": quick,
        **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
    }


def as_json(results: dict[str, list[Result]]) -> str:
    values = {
        name: [{**asdict(line), "verdict": line.verdict} for line in lines]
        for name, lines in results.items()
    }
    return json.dumps(values, indent=1) + "\n"


if __name__ == "__main__":
    sys.exit(main())
