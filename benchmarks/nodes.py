"""Few nodes beside all nodes: how far probabilities are off, by the doubt that is put up with.

    python benchmarks/nodes.py --rows 4 150
    python benchmarks/nodes.py --rows 600 1500

The problems are those of `make fuzz`, new and held-out rows alike. The figures are the reason for
the numbers of nodes in kfree.inference.rules, and for the constant DOUBT of kfree.averaging: rows
in more doubt than it are done again with all nodes.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from unittest.mock import patch

import numpy as np

from kfree import KFreeClassifier, averaging

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from fuzz_problems import problem

LIMITS = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, np.inf)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=300, help="how many (default 300)")
    parser.add_argument("--rows", type=int, nargs=2, default=(4, 150), metavar=("LEAST", "MOST"))
    options = parser.parse_args(arguments)
    least, most = options.rows
    worst, n_again, n_rows, seed, done = (
        dict.fromkeys(LIMITS, 0.0),
        dict.fromkeys(LIMITS, 0),
        0,
        0,
        0,
    )
    while done < options.problems:
        given, seed = problem(seed, most), seed + 1
        if len(given.z) < least:
            continue
        done += 1
        found, again = probabilities(given)
        n_rows += len(found[-1.0])
        for limit in LIMITS:
            worst[limit] = max(worst[limit], np.abs(found[limit] - found[-1.0]).max())
            n_again[limit] += again[limit]
        if sys.stderr.isatty():
            print(f"\r{done} of {options.problems} problems ", end="", file=sys.stderr, flush=True)
    print(f"{done} problems of {least} to {most} rows, {n_rows:,} rows with open labels\n")
    print("| doubt up to | largest difference from all nodes | rows done again |")
    print("| ---: | ---: | ---: |")
    for limit in LIMITS:
        print(f"| {limit:.0e} | {worst[limit]:.1e} | {n_again[limit] / n_rows:.1%} |")
    return 0


def probabilities(given) -> tuple[dict[float, np.ndarray], dict[float, int]]:
    """Class probabilities, and how many rows were done again, by the doubt that is put up with.

    -1: all rows with all nodes.
    """
    settings = given.settings | {"inference": "quadrature", "average": True}
    found, again, add = {}, dict.fromkeys((*LIMITS, -1.0), 0), averaging._Sums.add

    def counted(self, rows, rule, in_doubt=None, only=None):
        again[averaging.DOUBT] += 0 if only is None else rows.n_rows
        return add(self, rows, rule, in_doubt, only)

    with warnings.catch_warnings(), patch.object(averaging._Sums, "add", counted):
        warnings.simplefilter("ignore")
        model = KFreeClassifier(**settings).fit(given.X, given.z)
        for limit in again:
            with patch.object(averaging, "DOUBT", limit):
                parts = model.predict_proba(given.new[None]), model.predict_proba(None)
            found[limit] = np.concatenate(parts)
    return found, again


if __name__ == "__main__":
    raise SystemExit(main())
