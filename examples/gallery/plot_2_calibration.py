"""
Probabilities without exact zeros: kfree beside a grid search
=============================================================

Of the rows that get a probability of 80%, about 80% should be of that class. We look at kfree and
at plain k-nearest neighbors with the k that a grid search has chosen. The latter gives some
classes probability 0 because none of so few neighbors has them, and some of these are the true
class.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier

from kfree import KFreeClassifier

X, y = make_classification(
    n_samples=3000, n_features=6, n_informative=4, n_classes=3, class_sep=1.2, random_state=0
)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=500, random_state=0)

grid = {"n_neighbors": [1, 3, 5, 7, 9, 11, 15, 21, 31]}
models = {
    "grid search": GridSearchCV(KNeighborsClassifier(), grid, cv=4).fit(X_train, y_train),
    "kfree": KFreeClassifier().fit(X_train, y_train),
}

# %%
# Rows are put into ten bins by the probability of their most probable class. On the diagonal, that
# probability is also how often the class is right. Numbers are rows in the bin.

fig, axes = plt.subplots(1, 2, figsize=(9, 4.4), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    proba = model.predict_proba(X_test)
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == y_test
    bins = np.minimum((confidence * 10).astype(int), 9)
    used = np.unique(bins)
    said = [confidence[bins == b].mean() for b in used]
    held = [right[bins == b].mean() for b in used]
    ax.plot([0.3, 1], [0.3, 1], color="0.6", linestyle="--", label="perfectly calibrated")
    ax.plot(said, held, marker="o", color="black", label=name)
    for x, h, b in zip(said, held, used, strict=True):
        ax.annotate(str((bins == b).sum()), (x, h), xytext=(6, -11), textcoords="offset points")
    zeros = (proba[np.arange(len(y_test)), y_test] == 0).sum()
    loss = log_loss(y_test, proba)
    ax.set(
        title=f"{name}: log loss {loss:.3f},\n{zeros} true classes with probability 0",
        xlabel="probability of the predicted class",
    )
    ax.legend(loc="upper left")
axes[0].set_ylabel("share of rows that are of that class")
plt.show()

# %%
# Neither is perfect. Where kfree says 0.75 to 0.85 it is too sure on these data: it has one
# strength beta for all regions, and here some are cleaner than others. But it never rules out what
# then happens, and that is what the log loss punishes. The chosen k, and how accurate both are:

print(f"grid search chose k = {models['grid search'].best_params_['n_neighbors']}")
for name, model in models.items():
    print(f"{name:12} accuracy {model.score(X_test, y_test):.3f}")
