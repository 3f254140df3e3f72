"""The examples in docstrings give what they say."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "name",
    [
        "kfree.classifier",
        "kfree.baselines",
        "kfree.audit",
        "kfree.displays.k_posterior",
        "kfree.displays.reliability",
        "kfree.tables.preparation",
        "kfree.tables.target",
    ],
)
def test_examples(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
