"""The models that commands offer under ``--model``, each with what makes it.

A new one is one line in `MODELS`; its classifier must also be among `kfree.persistence.CLASSIFIERS`
to be saved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kfree.classifier import KFreeClassifier
from kfree.field.estimator import FieldClassifier
from kfree.tables import TableError

# Who counts as a neighbor unless something else is asked for.
USUAL_STRUCTURE = "asymmetric"


@dataclass(frozen=True)
class Kind:
    """A model that can be asked for."""

    words: str  # what it is, for the help
    make: Callable[..., Any]  # takes n_jobs, and structure if it has one
    has_structure: bool = False


MODELS = {
    "k": Kind("one average over the number of neighbors k", KFreeClassifier, has_structure=True),
    "field": Kind("all scales and several neighbor graphs at once", FieldClassifier),
}


def usual_model(structure: str) -> str:
    """The name of the model that is taken if none is asked for: the one measured to be better."""
    return "field" if str(structure) == USUAL_STRUCTURE else "k"


def make_classifier(model: str, structure: str, jobs: int) -> Any:
    """The unfitted classifier that the options ask for."""
    kind = MODELS[str(model)]
    if kind.has_structure:
        return kind.make(structure=str(structure), n_jobs=jobs)
    if str(structure) != USUAL_STRUCTURE:
        raise TableError(f"--structure is not for --model {model}; --model k has it.")
    return kind.make(n_jobs=jobs)
