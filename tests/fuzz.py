"""`make fuzz`: random problems against the slow twin, for as long as one likes.

    make fuzz ARGS="--minutes 30"

Goes on where the last run stopped (build/fuzz.json), unless --first names a seed. What fails is
made smaller and kept in tests/found/, where `make test` looks at it again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

from fuzz_problems import TOLERANCE, difference, keep, problem, shrunk

FOUND = Path(__file__).parent / "found"
STATE = Path("build/fuzz.json")


def main() -> int:
    """Try problems until the time is up; the number of failures is the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5.0, help="how long (default 5)")
    parser.add_argument("--first", type=int, default=None, help="the first seed")
    parser.add_argument("--rows", type=int, default=24, help="most training rows (default 24)")
    options = parser.parse_args()
    known = json.loads(STATE.read_text()) if STATE.exists() else {"next": 1_000_000}
    seed = first = known["next"] if options.first is None else options.first
    end, told, worst, failures = time.monotonic() + 60.0 * options.minutes, 0.0, 0.0, 0
    warnings.simplefilter("error")
    try:
        while time.monotonic() < end:
            given = problem(seed, options.rows)
            try:
                found = difference(given)
            except Exception as error:
                print(f"\n{given}\n  {type(error).__name__}: {error}")
                found = float("inf")
            if found > TOLERANCE:
                failures += 1
                path = keep(shrunk(given), FOUND)
                print(f"\n{given}\n  differs by {found:.3g}; kept in {path}", flush=True)
            else:
                worst = max(worst, found)
            seed += 1
            if time.monotonic() > told + 10.0:
                told = time.monotonic()
                left = (end - told) / 60.0
                print(
                    f"\r{seed - first} problems, {failures} failures, worst of the others "
                    f"{worst:.1e}, {left:.1f} minutes left ",
                    end="",
                    flush=True,
                )
    except KeyboardInterrupt:
        print("\nstopped")
    STATE.parent.mkdir(exist_ok=True)
    STATE.write_text(json.dumps({"next": seed}) + "\n")
    print(
        f"\n{seed - first} problems (seeds {first} to {seed - 1}): {failures} failures; the "
        f"largest difference of the others is {worst:.2e}."
    )
    return min(failures, 100)


if __name__ == "__main__":
    raise SystemExit(main())
