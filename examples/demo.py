"""The wine data: both estimators beside a grid search over k, and what is known about k.

Run by `make demo`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from kfree import FieldClassifier, KFreeClassifier
from kfree.displays import PosteriorDisplay
from kfree.evaluation import Evaluation, cross_validate

matplotlib.use("Agg")

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "demo" / "posterior.png"
BAR_WIDTH = 40
MOST_BARS = 15
# A bar ends on an eighth of a character.
EIGHTHS = " ▏▎▍▌▋▊▉█"


def main() -> None:
    X, y = load_wine(return_X_y=True)
    print(f"The wine data: {X.shape[0]} rows, {X.shape[1]} features, 3 classes; 4 folds.\n")
    estimators = {
        "FieldClassifier()": FieldClassifier(),
        "KFreeClassifier()": KFreeClassifier(),
        "grid search, k = 1..50": GridSearchCV(
            KNeighborsClassifier(), {"n_neighbors": list(range(1, 51))}, cv=4
        ),
    }
    # One core for each: threads that compete for cores would make the seconds a matter of chance.
    with threadpool_limits(1):
        results = cross_validate(estimators, X, y)
    print(table(results))
    print(
        "\nFieldClassifier for the best predictions; KFreeClassifier to know k, with its posterior."
    )

    model = KFreeClassifier().fit(StandardScaler().fit_transform(X), y)
    print(
        f"\nHow sure is the choice of k? p(K | Y) from all {len(y)} rows, "
        f"most probable K = {model.k_optimal_}:\n"
    )
    print(bar_chart(model.k_values_, model.k_posterior_, can_draw_blocks(sys.stdout.encoding)))
    save_picture(model, PICTURE)
    print(f"\nThe posterior of K and beta as a picture: {PICTURE.relative_to(ROOT)}")


def table(results: dict[str, Evaluation]) -> str:
    """Means over the folds; seconds are for one fit and one predict_proba."""
    lines = [f"{'':24}{'F-measure':>11}{'accuracy':>11}{'log loss':>11}{'seconds':>11}"]
    for name, r in results.items():
        seconds = r.fit_seconds.mean + r.predict_seconds.mean
        lines.append(
            f"{name:24}{r.f_measure.mean:11.4f}{r.accuracy.mean:11.4f}"
            f"{r.log_loss.mean:11.4f}{seconds:11.3f}"
        )
    return "\n".join(lines)


def bar_chart(k: np.ndarray, k_probabilities: np.ndarray, blocks: bool) -> str:
    """The K that hold all but 1%, on few lines: neighboring K share one where there are many."""
    first = int(np.searchsorted(np.cumsum(k_probabilities), 0.005))
    last = len(k_probabilities) - int(np.searchsorted(np.cumsum(k_probabilities[::-1]), 0.005))
    width = -(-(last - first) // MOST_BARS)
    starts = np.arange(first, last, width)
    heights = np.add.reduceat(k_probabilities[:last], starts)
    lines = []
    for start, height in zip(starts, heights, strict=True):
        low, high = k[start], k[min(start + width, last) - 1]
        name = f"{low}" if low == high else f"{low}-{high}"
        n_eighths = round(8 * BAR_WIDTH * height / heights.max())
        if blocks:
            bar = EIGHTHS[8] * (n_eighths // 8) + EIGHTHS[n_eighths % 8]
        else:
            bar = "#" * round(n_eighths / 8)
        lines.append(f"  k = {name:9}{height:6.1%}  {bar}".rstrip())
    lines.append(f"  all others   {max(1.0 - heights.sum(), 0.0):6.1%}")
    return "\n".join(lines)


def can_draw_blocks(encoding: str | None) -> bool:
    try:
        EIGHTHS.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def save_picture(model: KFreeClassifier, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Written beside, then renamed: nobody ever sees half a picture.
    part = path.with_name(path.name + ".part")
    display = PosteriorDisplay.from_estimator(model)
    display.figure_.savefig(part, format="png", dpi=150, bbox_inches="tight")
    os.replace(part, path)


if __name__ == "__main__":
    main()
