"""The examples in docstrings give what they say."""

import doctest
import importlib

import pytest

MODULES = [
    "kfree.audit",
    "kfree.baselines",
    "kfree.classifier",
    "kfree.displays.k_posterior",
    "kfree.displays.reliability",
    "kfree.persistence",
    "kfree.tables.preparation",
    "kfree.tables.target",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
