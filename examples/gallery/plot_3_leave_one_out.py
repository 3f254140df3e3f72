"""
Leave-one-out without a refit
=============================

``predict_proba(None)`` gives each training row the probabilities that a model without this row
would give it. We check that against the long way, a fit for each row, and time both.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from kfree import KFreeClassifier

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)

start = time.perf_counter()
model = KFreeClassifier(k_max=40).fit(X, y)
short = model.predict_proba(None)
short_seconds = time.perf_counter() - start

start = time.perf_counter()
rows = np.arange(0, len(y), 6)  # every sixth row: the long way takes its time
others = [np.delete(np.arange(len(y)), row) for row in rows]
long = np.concatenate(
    [
        KFreeClassifier(k_max=40).fit(X[keep], y[keep]).predict_proba(X[[row]])
        for row, keep in zip(rows, others, strict=True)
    ]
)
long_seconds = (time.perf_counter() - start) * len(y) / len(rows)

print(f"largest difference: {abs(short[rows] - long).max():.1e}")
print(f"one fit: {short_seconds:.1f} s; {len(y)} fits: about {long_seconds:.0f} s")

# %%
# The two agree up to rounding. So the training rows themselves tell how good the model is:

fig, ax = plt.subplots(layout="constrained")
own = short[np.arange(len(y)), y]
for label, marker in zip(np.unique(y), "osD", strict=True):
    mine = np.flatnonzero(y == label)
    ax.scatter(
        mine,
        own[mine],
        marker=marker,
        s=22,
        label=f"class {label}",
        facecolor="none",
        edgecolor=f"C{label}",
    )
ax.axhline(0.5, color="0.6", linestyle="--")
ax.set(
    xlabel="training row",
    ylabel="leave-one-out probability of its own class",
    title=f"leave-one-out accuracy {model.score(None, y):.3f}",
)
ax.legend(loc="lower right")
plt.show()
