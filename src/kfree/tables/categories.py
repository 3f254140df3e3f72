"""Categories as features: one for each value, which is 1 where the cell has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

# Values beyond this number share a feature, the rarest first.
MOST_CATEGORIES = 100
MISSING = "(missing)"
OTHER = "(other)"


def learn_values(texts: Sequence[str | None]) -> tuple[list[str], list[str]]:
    """The values that have a feature each, the shared one last, and the rare values that share it.

    Values that are equally frequent are taken in alphabetical order.
    """
    counts = Counter(MISSING if text is None else text for text in texts)
    if len(counts) <= MOST_CATEGORIES:
        return sorted(counts), []
    order = sorted(counts, key=lambda value: (-counts[value], value))
    return [*sorted(order[: MOST_CATEGORIES - 1]), OTHER], sorted(order[MOST_CATEGORIES - 1 :])


def one_hot(
    texts: Sequence[str | None], values: Sequence[str], rare: Collection[str]
) -> tuple[np.ndarray, set[str]]:
    """A feature (n_texts, n_values) for each value, and the texts that `learn_values` did not see.

    Where there is a shared feature, these have it too; otherwise they are none of the values.
    """
    place = {value: j for j, value in enumerate(values)}
    shared = place[OTHER] if rare else -1
    columns = np.array([place.get(MISSING if text is None else text, -1) for text in texts])
    strange = {t for t, j in zip(texts, columns, strict=True) if j < 0 and t is not None}
    columns = np.where(columns < 0, shared, columns)
    features = np.zeros((len(texts), len(values)))
    rows = np.flatnonzero(columns >= 0)
    features[rows, columns[rows]] = 1.0
    return features, strange - set(rare)
