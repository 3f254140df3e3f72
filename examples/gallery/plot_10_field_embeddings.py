"""
A field on embeddings
=====================

Embeddings mean something by their direction. A view with the cosine as its metric lets the field
look at them in that way; here the rows are tf-idf vectors of short texts, brought to 20 dimensions.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from kfree import FieldClassifier

words = {
    "garden": ["soil", "seed", "water", "leaf", "root", "spade", "bloom", "hedge", "lawn"],
    "kitchen": ["salt", "oven", "water", "knife", "leaf", "butter", "flour", "pan", "root"],
    "workshop": ["saw", "drill", "nail", "spade", "knife", "glue", "plank", "bench", "screw"],
}
rng = np.random.default_rng(0)
labels = np.repeat(list(words), 80)
common = ["the", "a", "of", "with", "and", "in", "on", "for", "some", "more"]
texts = [" ".join(rng.choice(words[label] + 2 * common, 12)) for label in labels]

settings = {
    "default views": FieldClassifier(),
    "cosine only": FieldClassifier(views=(("direction", "cosine", None),)),
    "default and cosine": FieldClassifier(
        views=("scores", "within", "forest", ("direction", "cosine", None))
    ),
}
losses = {}
for name, field in settings.items():
    model = make_pipeline(TfidfVectorizer(), TruncatedSVD(20, random_state=0), field)
    losses[name] = -cross_val_score(model, texts, labels, scoring="neg_log_loss", cv=4).mean()

fig, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
ax.barh(list(losses), list(losses.values()), color="0.8", edgecolor="black")
ax.set_xlabel("log loss, 4 folds (lower is better)")
plt.show()
