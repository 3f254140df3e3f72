"""Free text as features: words that look alike lie near each other.

skrub's StringEncoder learns them: the letters of each text in runs of three and four (so a typing
error changes little), weighted by how rare they are, and of these the directions in which the texts
differ most. What it has learned is a linear map, and only that is kept: predicting needs neither
skrub nor its second of importing.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

N_FEATURES = 30
# skrub scales the features so that all of them together vary as much as one standardized number.
# Twice the distance (four numbers) was better on all six tables of texts tried, by up to 0.25 in
# log loss.
WEIGHT = 2.0
RUNS = (3, 4)
ANALYZER = "char_wb"


@dataclass(frozen=True)
class TextMap:
    """What was learned from a column of texts.

    Attributes
    ----------
    terms : tuple of str
        The runs of letters.
    rarity : ndarray of shape (n_terms,)
        Their weights (inverse document frequency).
    directions : ndarray of shape (n_features, n_terms)
    """

    terms: tuple[str, ...]
    rarity: np.ndarray
    directions: np.ndarray


def learn(texts: Sequence[str | None]) -> TextMap:
    """Find the features of a column of texts."""
    import pandas as pd

    try:
        from skrub import StringEncoder
    except ImportError:
        raise ImportError(
            "A column of free text needs the package skrub: pip install 'kfree[cli]', or leave "
            "the column out (drop)."
        ) from None
    column = pd.Series([text or "" for text in texts], name="text", dtype=str)
    n_features = max(1, min(N_FEATURES, column.nunique() - 1))
    encoder = StringEncoder(n_features, ngram_range=RUNS, analyzer=ANALYZER, random_state=0)
    with warnings.catch_warnings():
        # Of texts with very few letters, which have no more runs than features.
        warnings.filterwarnings("ignore", message="The matrix shape is")
        encoder.fit(column)
    vectorizer = encoder.vectorizer_
    if hasattr(encoder, "tsvd_"):
        directions = encoder.tsvd_.components_
    else:
        directions = np.eye(encoder.n_components_, len(vectorizer.vocabulary_))
    return TextMap(
        terms=tuple(vectorizer.get_feature_names_out().tolist()),
        rarity=vectorizer.idf_,
        directions=np.asarray(directions * (WEIGHT / encoder.scaling_factor_), dtype=np.float32),
    )


def features(texts: Sequence[str | None], learned: TextMap) -> np.ndarray:
    """The features (n_texts, n_features) of texts; an empty cell is 0 in all of them."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(ngram_range=RUNS, analyzer=ANALYZER, vocabulary=learned.terms)
    vectorizer.idf_ = learned.rarity
    weights = vectorizer.transform([text or "" for text in texts])
    return np.asarray(weights @ learned.directions.T.astype(float))
