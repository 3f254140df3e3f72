"""Nearest-neighbor classification free of k."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kfree.baselines import PKNNClassifier, StructuredKNNClassifier
    from kfree.classifier import KFreeClassifier
    from kfree.field.contributions import Contributions
    from kfree.field.estimator import FieldClassifier, ViewNeighbors
    from kfree.inference.metropolis import Draws
    from kfree.persistence import ModelFileError, load, save
    from kfree.posterior import Posterior

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
# Where each of them is. They are imported when they are asked for: `kfree --help` needs none, and a
# process that predicts a few rows with one classifier does not wait for the others.
_HOME = {
    "Contributions": "kfree.field.contributions",
    "Draws": "kfree.inference.metropolis",
    "FieldClassifier": "kfree.field.estimator",
    "KFreeClassifier": "kfree.classifier",
    "ModelFileError": "kfree.persistence",
    "PKNNClassifier": "kfree.baselines",
    "Posterior": "kfree.posterior",
    "StructuredKNNClassifier": "kfree.baselines",
    "ViewNeighbors": "kfree.field.estimator",
    "load": "kfree.persistence",
    "save": "kfree.persistence",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
