"""
How many neighbors? The posterior of k
=======================================

A grid search returns one k. The posterior says how probable every k is, so you see whether the data
distinguish k = 5 from k = 15 at all. Here they hardly do, and that is worth knowing.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from kfree import KFreeClassifier
from kfree.displays import PosteriorDisplay

X, y = load_iris(return_X_y=True)
model = KFreeClassifier().fit(X, y)

# %%
# The joint posterior of k and of the strength beta, and below it that of k alone:

PosteriorDisplay.from_estimator(model)
plt.show()

# %%
# The most probable k holds only a small part of the probability. The smallest set of k that holds
# 90% of it has many members:

order = np.argsort(-model.k_posterior_)
n_needed = int(np.searchsorted(np.cumsum(model.k_posterior_[order]), 0.9)) + 1
print(f"most probable: k = {model.k_optimal_}, with {model.k_posterior_.max():.2f}")
print(f"90% credible set: k = {sorted(int(k) for k in order[:n_needed] + 1)}")

# %%
# What is probable depends on how many rows there are. The same flowers, every third and every tenth
# of them: with 15 rows, 5 of each kind, a fifth neighbor must be of another kind, and only small k
# can be right.

fig, axes = plt.subplots(3, 1, sharex=True, figsize=(6.4, 5.5), layout="constrained")
for ax, step in zip(axes, (1, 3, 10), strict=True):
    fitted = KFreeClassifier().fit(X[::step], y[::step])
    ax.bar(fitted.k_values_, fitted.k_posterior_, color="0.35")
    ax.set(ylabel="p(k | labels)", title=f"{len(y[::step])} rows", xlim=(0, 50))
axes[-1].set_xlabel("number of neighbors k")
plt.show()
