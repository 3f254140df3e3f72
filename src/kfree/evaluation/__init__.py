"""How well a classifier does: data sets, scores, and a protocol that compares estimators.

Nothing here knows the model: any scikit-learn classifier can be judged.
"""

from kfree.evaluation.data import PAPER, SUITE, DataNotFound, Dataset, load, names
from kfree.evaluation.protocol import Evaluation, Spread, cross_validate
from kfree.evaluation.scores import Scores, score

__all__ = [
    "PAPER",
    "SUITE",
    "DataNotFound",
    "Dataset",
    "Evaluation",
    "Scores",
    "Spread",
    "cross_validate",
    "load",
    "names",
    "score",
]
