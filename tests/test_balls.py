"""Reverse neighbors by cells: every pair that all distances give, whatever the scale."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree

from kfree.neighbors import balls
from kfree.neighbors.balls import Balls
from kfree.neighbors.metric import make_space


def scattered(kind: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X, new = rng.normal(size=(700, 3)), rng.normal(size=(90, 3))
    if kind == "far clusters":
        far = 1e6 * rng.integers(-2, 3, size=(790, 1))
        return X + far[:700], new + far[700:]
    scale = {"plain": 1.0, "huge": 1e25, "tiny": 1e-25}[kind]
    return X * scale, new * scale


SMALL = {"CELL": 7, "GROUP": 4, "CHUNK": 50, "FEW": 5, "STRIP": 40}


@pytest.mark.parametrize("least", [0, 3, 9])
@pytest.mark.parametrize(
    "cut",
    [{}, {"WORTH": 0.0}, {"WORTH": np.inf}, SMALL | {"WORTH": 0.0}, SMALL | {"WORTH": np.inf}],
)
@pytest.mark.parametrize("kind", ["plain", "far clusters", "huge", "tiny"])
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, np.inf])
def test_all_pairs_within_the_radii(p, kind, cut, least, monkeypatch):
    for name, value in cut.items():
        monkeypatch.setattr(balls, name, value)
    X, new = scattered(kind)
    space = make_space("minkowski", p, None, X)
    tree = cKDTree(X)
    radii = tree.query(X, 9, p=p)[0][:, -1]
    distance = space.between(new[:, None, :], X[None, :, :])
    # Balls up to the distance of the so-manyth nearest need not come out.
    beyond = np.sort(distance, axis=1)[:, least - 1] if least else np.zeros(len(new))
    row, point = Balls(space, X, radii, tree.indices).around(new, beyond)
    within = set(zip(*np.nonzero(distance < radii), strict=True))
    wanted = set(zip(*np.nonzero((distance < radii) & (radii > beyond[:, None])), strict=True))
    found = set(zip(row, point, strict=True))
    assert len(found) == len(row)
    assert wanted <= found
    # Candidates are few beyond those: the margins are rounding, not slack.
    assert len(found - within) <= 0.02 * len(within) + 5


def test_cells_that_are_too_far_are_passed_over(monkeypatch):
    monkeypatch.setattr(balls, "CELL", 20)
    X, new = scattered("far clusters")
    tree = cKDTree(X)
    radii = tree.query(X, 9)[0][:, -1]
    cells = Balls(make_space("minkowski", 2.0, None, X), X, radii, tree.indices)
    assert max(len(cells._near(row[None])) for row in new) < len(X) / 3


def test_a_new_point_far_from_all_enters_nothing():
    X, _ = scattered("plain")
    cells = Balls(make_space("minkowski", 2.0, None, X), X, np.ones(len(X)), np.arange(len(X)))
    row, point = cells.around(np.full((1, 3), 1e3), np.zeros(1))
    assert len(row) == len(point) == 0


def test_balls_that_are_too_narrow_are_not_compared():
    X, new = scattered("plain")
    radii = np.linspace(0.1, 1.0, len(X))
    cells = Balls(make_space("minkowski", 2.0, None, X), X, radii, np.arange(len(X)))
    _, point = cells.around(new, np.full(len(new), 0.7))
    assert len(point) and radii[point].min() > 0.6
    _, point = cells.around(new, np.full(len(new), 2.0))
    assert len(point) == 0
