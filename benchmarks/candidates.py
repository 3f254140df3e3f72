"""Thin candidates of K beside every K: log loss and the largest change, data set by data set.

    python benchmarks/candidates.py --most 800

Four folds, features standardized, at most so many rows of each data set of the folder KFREE_DATA.
"""

from __future__ import annotations

import argparse

import numpy as np
from quality import REPEATED
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from kfree import KFreeClassifier
from kfree.evaluation import data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=800, help="rows of a data set, at most")
    parser.add_argument("--only", nargs="+", help="these data sets only")
    options = parser.parse_args()
    folder = data.folder()
    names = sorted(path.name.partition(".")[0] for path in folder.glob("*.csv.gz"))
    names = [name for name in names if name not in REPEATED]
    print("| data | every K | thin | difference | largest change | other classes |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    differences = []
    for name in options.only or names:
        whole = data.load(name)
        rows = np.random.default_rng(0).permutation(len(whole.y))[: options.most]
        X, y = whole.X[rows], np.unique(whole.y[rows], return_inverse=True)[1]
        found = {kind: np.zeros((len(y), y.max() + 1)) for kind in ("all", "auto")}
        for train, test in KFold(4, shuffle=True, random_state=1).split(X):
            scaler = StandardScaler().fit(X[train])
            for kind, table in found.items():
                model = KFreeClassifier(k_values=kind, k_max=min(256, len(train) - 1))
                model.fit(scaler.transform(X[train]), y[train])
                table[np.ix_(test, model.classes_)] = model.predict_proba(scaler.transform(X[test]))
        tables = [np.clip(t, 1e-15, 1.0) for t in found.values()]
        every, thin = (log_loss(y, t / t.sum(axis=1, keepdims=True)) for t in tables)
        change = np.abs(found["auto"] - found["all"])
        other = (found["auto"].argmax(axis=1) != found["all"].argmax(axis=1)).mean()
        differences.append(thin - every)
        print(
            f"| {name} | {every:.4f} | {thin:.4f} | {thin - every:+.4f} | {change.max():.3f} "
            f"| {other:.1%} |",
            flush=True,
        )
    print(
        f"\nMean difference {np.mean(differences):+.4f}, largest {np.max(np.abs(differences)):.4f}."
    )


if __name__ == "__main__":
    main()
