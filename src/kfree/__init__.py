"""Nearest-neighbor classification free of k."""

from kfree.baselines import PKNNClassifier, StructuredKNNClassifier
from kfree.classifier import KFreeClassifier
from kfree.inference.metropolis import Draws
from kfree.posterior import Posterior

__version__ = "0.1.0"
__all__ = ["Draws", "KFreeClassifier", "PKNNClassifier", "Posterior", "StructuredKNNClassifier"]
