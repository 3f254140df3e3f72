"""The points that the times are measured on."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.preprocessing import StandardScaler

from kfree.evaluation import data as shared

SEED = 0
LATENT = 8
ROWS_PER_CLUSTER = 50
WIDTH = 0.7
NOISE = 0.25
WRONG = 0.1


def mixture(
    n_rows: int,
    n_features: int,
    n_classes: int,
    n_clusters: int | None = None,
    n_latent: int = LATENT,
) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping Gaussian clusters, of which each class has several: X float64 and y.

    Clusters have about 50 rows, whatever the number of rows, so that more data show more detail, as
    real data do, and the best number of neighbors stays between 10 and 40. They lie in `n_latent`
    dimensions (fewer if there are fewer features), turned at random, with some noise in all
    features. Their width is 0.7 times the typical distance between centers, n_clusters ** (-1 /
    n_latent), so that neighboring clusters overlap, and a tenth of the rows have a label drawn at
    random. Cluster c belongs to class c modulo n_classes: with `n_clusters` given, the same rows
    can be had with few classes or many. The seed is 0.
    """
    random = np.random.default_rng(SEED)
    if n_clusters is None:
        n_clusters = max(3 * n_classes, n_rows // ROWS_PER_CLUSTER)
    n_latent = min(n_features, n_latent)
    width = WIDTH * n_clusters ** (-1.0 / n_latent)
    centers = random.normal(size=(n_clusters, n_latent))
    cluster = random.integers(n_clusters, size=n_rows)
    latent = centers[cluster] + width * random.normal(size=(n_rows, n_latent))
    turn, _ = np.linalg.qr(random.normal(size=(n_features, n_features)))
    X = latent @ turn[:n_latent]
    X += NOISE * width * random.normal(size=X.shape)
    wrong = random.random(n_rows) < WRONG
    cluster[wrong] = random.integers(n_clusters, size=int(wrong.sum()))
    return X, cluster % n_classes


def embeddings(n_rows: int, seed: int, n_classes: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors of 384 numbers in float32, classes that kNN separates perfectly."""
    random = np.random.default_rng([1, seed])
    y = random.integers(n_classes, size=n_rows)
    X = random.normal(size=(n_classes, 384))[y] + random.normal(size=(n_rows, 384))
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32), y


def informative(n_rows: int, n_features: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """make_classification: 6 features tell, 4 classes of 3 clusters each, 10 % flipped."""
    return make_classification(
        n_rows,
        n_features,
        n_informative=6,
        n_redundant=0,
        n_classes=4,
        n_clusters_per_class=3,
        flip_y=0.1,
        random_state=seed,
    )


def real(name: str) -> tuple[np.ndarray, np.ndarray]:
    """iris, wine or wdbc as scikit-learn brings them, others of the data folder; standardized."""
    load = {"iris": load_iris, "wine": load_wine, "wdbc": load_breast_cancer}.get(name)
    if load is None:
        found = shared.load(name)
        X, y = found.X, found.y
    else:
        X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y
