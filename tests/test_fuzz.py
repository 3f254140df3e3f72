"""Random problems against the slow twin, and those that once failed (`make fuzz` finds more)."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fuzz_problems import TOLERANCE, difference, keep, kept, problem, shrunk

FOUND = sorted((Path(__file__).parent / "found").glob("*.json"))
# Found while the fuzzer was made, mended since: labels that draw level at a strength of 50,000, a
# row whose own term under boltzmann falls faster than beta, absent classes that do not exist.
ONCE_WRONG = [(16, 16), (5041, 40), (38, 16), (186, 16)]


@pytest.mark.parametrize("block", range(30))
def test_small_problems(block):
    for seed in range(10 * block, 10 * block + 10):
        given = problem(seed, n_most=9)
        assert difference(given) <= TOLERANCE, str(given)


@pytest.mark.parametrize(("seed", "n_most"), ONCE_WRONG)
def test_what_was_once_wrong(seed, n_most):
    assert difference(problem(seed, n_most)) <= TOLERANCE


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_what_the_fuzzer_kept(path):
    assert difference(kept(path)) <= TOLERANCE


def test_kept_problems_are_read_as_they_were(tmp_path):
    given = problem(3)
    again = kept(keep(given, tmp_path))
    assert str(again) == str(given)
    np.testing.assert_array_equal(again.X, given.X)
    np.testing.assert_array_equal(again.new, given.new)


def test_the_comparison_can_fail_and_shrinks(monkeypatch):
    """A control: with nodes that end at the mode of beta, problems differ, and are made smaller."""
    given = replace(problem(21, 9), borders={"kfree.reach.N_SLOPES": 65})
    monkeypatch.setattr("kfree.inference.quadrature.NEGLIGIBLE", -4.0)
    assert difference(given) > TOLERANCE
    small = shrunk(given)
    assert small.borders == {}
    assert len(small.z) < len(given.z) or len(given.z) <= 4
