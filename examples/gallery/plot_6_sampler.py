"""
The exact posterior beside the sampler
======================================

``inference="quadrature"``, the default, integrates over k and beta exactly. The sampler of the
paper, ``inference="metropolis"``, walks through the same posterior by chance. With enough steps the
two must agree, and they do: a check of the one by a method that shares no integral with it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from kfree import KFreeClassifier

X, y = load_iris(return_X_y=True)
train = np.arange(len(y)) % 10 != 0
exact = KFreeClassifier(k_max=20).fit(X[train], y[train])
sampler = KFreeClassifier(k_max=20, inference="metropolis", n_draws=10_000, random_state=0).fit(
    X[train], y[train]
)

# %%
# Bars: how often the sampler visited each k. Points: the exact probabilities.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
k = np.arange(1, 21)
left.bar(k, sampler.k_posterior_, color="0.8", edgecolor="0.4", label="sampler")
left.plot(k, exact.k_posterior_, "ko", label="exact")
left.set(xlabel="k", ylabel="p(k | labels)", xticks=k[::3])
left.legend()

proba_exact = exact.predict_proba(X[~train])
proba_sampled = sampler.predict_proba(X[~train])
right.plot([0, 1], [0, 1], color="0.7")
right.plot(proba_exact.ravel(), proba_sampled.ravel(), "k.")
right.set(xlabel="class probability, exact", ylabel="class probability, sampler")
right.set_title(f"15 new rows: largest difference {abs(proba_exact - proba_sampled).max():.3f}")
plt.show()
