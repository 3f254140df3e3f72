"""
Three ways to be a neighbor
============================

``structure`` says whose labels speak for a row. Asymmetric: its k nearest rows. Boltzmann: these,
and the rows that have it among their own k nearest; who is both counts twice. Boltzmann 2: the same
rows, each counted once.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from kfree import KFreeClassifier
from kfree.displays import KPosteriorDisplay

X, y = make_moons(120, noise=0.25, random_state=1)
# The lower moon is seen less often: neighbors are nearer in the upper one.
keep = (y == 0) | (np.arange(len(y)) % 3 == 0)
X, y = X[keep], y[keep]

names = ["asymmetric", "boltzmann", "boltzmann2"]
models = {name: KFreeClassifier(structure=name, k_max=25).fit(X, y) for name in names}

# %%
# Probability of the upper moon over the plane, with the line where it is 1/2:

xx, yy = np.meshgrid(np.linspace(-2, 3, 40), np.linspace(-1.5, 2, 28))
plane = np.column_stack([xx.ravel(), yy.ravel()])
fig, axes = plt.subplots(1, 3, figsize=(10.5, 3.6), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    upper = model.predict_proba(plane)[:, 0].reshape(xx.shape)
    mesh = ax.pcolormesh(xx, yy, upper, cmap="cividis", vmin=0, vmax=1, shading="auto")
    ax.contour(xx, yy, upper, levels=[0.5], colors="white", linewidths=1.5)
    for label, marker, color in ((0, "o", "black"), (1, "s", "white")):
        ax.scatter(
            *X[y == label].T, marker=marker, s=16, color=color, edgecolor="black", linewidth=0.5
        )
    ax.set(title=name, xlabel="first feature")
axes[0].set_ylabel("second feature")
fig.colorbar(mesh, ax=axes, label="p(upper moon)")
plt.show()

# %%
# What each makes of k, and its leave-one-out log loss. The same k means more neighbors for the two
# symmetric structures.

fig, axes = plt.subplots(3, 1, sharex=True, figsize=(6.4, 5.2), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    KPosteriorDisplay.from_estimator(model, ax=ax).legend_.remove()
    loss = -np.log(model.predict_proba(None)[np.arange(len(y)), y]).mean()
    ax.set(title=f"{name}: leave-one-out log loss {loss:.3f}")
    ax.label_outer()
plt.show()
