"""
Where it is unsure, and why
===========================

The variance of a class's indicator has two parts. One stays even if k and beta were known: the
neighbors disagree. The other comes from not knowing k and beta. More rows shrink the second.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from kfree import KFreeClassifier

X, y = make_moons(150, noise=0.3, random_state=0)
model = KFreeClassifier().fit(X, y)

xx, yy = np.meshgrid(np.linspace(-2.2, 3.2, 50), np.linspace(-1.8, 2.3, 36))
answer = model.posterior(np.column_stack([xx.ravel(), yy.ravel()]))
maps = {
    "p(second moon)": answer.class_probabilities[:, 1],
    "variance within:\nneighbors disagree": answer.class_variance_within[:, 1],
    "variance between:\nk and beta unknown": answer.class_variance_between[:, 1],
}

# %%
# Each map has its own scale: the part from k and beta is much smaller.

fig, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
for ax, (title, values) in zip(axes, maps.items(), strict=True):
    mesh = ax.pcolormesh(xx, yy, values.reshape(xx.shape), cmap="cividis", vmin=0, shading="auto")
    for label, marker, color in ((0, "o", "black"), (1, "s", "white")):
        ax.scatter(
            *X[y == label].T, marker=marker, s=12, color=color, edgecolor="black", linewidth=0.5
        )
    ax.set(title=title, xlabel="first feature")
    fig.colorbar(mesh, ax=ax)
axes[0].set_ylabel("second feature")
plt.show()

# %%
# How much of all the variance over this map comes from not knowing k and beta, for more and more
# rows:

for n in (20, 150, 1000):
    X, y = make_moons(n, noise=0.3, random_state=0)
    answer = KFreeClassifier().fit(X, y).posterior(np.column_stack([xx.ravel(), yy.ravel()]))
    within, between = answer.class_variance_within.sum(), answer.class_variance_between.sum()
    print(f"{n:5d} rows: {between / (within + between):.1%}")
