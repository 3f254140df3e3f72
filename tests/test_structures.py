"""A new structure is one line: the example of docs/extending.md, against the slow twin."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import naive
from fuzz_problems import TOLERANCE, difference, problem
from kfree import KFreeClassifier, PKNNClassifier, StructuredKNNClassifier
from kfree.neighbors.structures import STRUCTURES, Structure
from test_against_naive import Case
from test_shards import check_probabilities, grid, train

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"


@pytest.fixture
def mutual(monkeypatch):
    """Adds the line of the page to the table of structures."""
    (line,) = (line for line in PAGE.read_text().splitlines() if line.startswith('    "mutual":'))
    (call,) = ast.parse("{" + line + "}", mode="eval").body.values
    numbers = {part.arg: ast.literal_eval(part.value) for part in call.keywords}
    monkeypatch.setitem(STRUCTURES, "mutual", Structure(**numbers))


@pytest.mark.parametrize("block", range(4))
def test_posteriors(mutual, block):
    """New and held-out rows, both updates, all inferences, few and many classes, ties."""
    for seed in range(10 * block, 10 * block + 10):
        given = problem(seed, n_most=11)
        given = replace(given, settings=given.settings | {"structure": "mutual"})
        assert difference(given) <= TOLERANCE, str(given)


def test_the_comparison_can_fail(monkeypatch):
    # The union of both sides under the name of their intersection.
    union = Structure(forward=1, backward=1, both=1)
    monkeypatch.setitem(STRUCTURES, "mutual", union)
    given = problem(0, n_most=11)
    assert difference(replace(given, settings=given.settings | {"structure": "mutual"})) > 1e-3


@pytest.mark.parametrize("case", [Case("duplicates", 15, 3, 6), Case("grid", 36, 4, 8)], ids=str)
def test_fixed_k(mutual, case):
    X, z = case.training
    for k in (1, case.k_max):
        model = PKNNClassifier(k, structure="mutual").fit(X, z)
        votes = StructuredKNNClassifier(k, structure="mutual").fit(X, z)
        probability, share = model.predict_proba(case.new), votes.predict_proba(case.new)
        for i, x in enumerate(case.new):
            _, expected = naive.pknn("mutual", X, z, x, k, case.n_classes, model.beta_)
            np.testing.assert_allclose(probability[i], expected, rtol=0, atol=TOLERANCE)
            _, count = naive.vote("mutual", X, z, x, k, case.n_classes)
            if count.sum() == 0:  # nobody votes
                count = np.ones(case.n_classes)
            np.testing.assert_allclose(share[i], count / count.sum(), rtol=0, atol=1e-9)


@pytest.mark.parametrize("update", ["joint", "conditional"])
def test_shards(mutual, update):
    X, y = grid(120, 2, 3)
    fitted, one = train(X, y, 3, True, k_max=9, structure="mutual", update=update)
    np.testing.assert_allclose(fitted.posterior.k_probabilities, one.k_posterior_, rtol=1e-9)
    check_probabilities(fitted, one, X[:20] + [0.5, 0.0])


def test_its_name_is_known(mutual):
    message = "structure must be one of 'asymmetric', 'boltzmann', 'boltzmann2', 'mutual'"
    with pytest.raises(ValueError, match=message):
        KFreeClassifier(structure="nearest").fit([[0.0], [1.0], [2.0]], [0, 1, 1])


@pytest.mark.parametrize("numbers", [(0, 1, 1), (1, 0, 2), (0, 0, 2), (0, 0, 0), (2, 2, 2)])
def test_counts_that_are_not_possible(numbers):
    with pytest.raises(ValueError, match=r"counts \(forward, backward, both\) as \(1, 0, 1\)"):
        Structure(*numbers)


def test_no_neighborhood_may_be_empty_if_its_size_divides():
    with pytest.raises(ValueError, match="by_size=True needs forward=1"):
        Structure(0, 0, 1, by_size=True)
