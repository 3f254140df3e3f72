"""Nearest-neighbor classification free of k."""

from typing import TYPE_CHECKING, Any

from kfree.baselines import PKNNClassifier, StructuredKNNClassifier
from kfree.classifier import KFreeClassifier
from kfree.field.contributions import Contributions
from kfree.field.estimator import FieldClassifier, ViewNeighbors
from kfree.inference.metropolis import Draws
from kfree.posterior import Posterior

if TYPE_CHECKING:
    from kfree.persistence import ModelFileError, load, save

__version__ = "0.1.0"
__all__ = [
    "Contributions",
    "Draws",
    "FieldClassifier",
    "KFreeClassifier",
    "ModelFileError",
    "PKNNClassifier",
    "Posterior",
    "StructuredKNNClassifier",
    "ViewNeighbors",
    "load",
    "save",
]


def __getattr__(name: str) -> Any:
    # Files are read and written seldom, and what that needs is imported then.
    if name in ("ModelFileError", "load", "save"):
        from kfree import persistence

        return getattr(persistence, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
