"""
Finding wrong labels
====================

Twelve of 240 labels are made wrong on purpose. The audit orders the rows by how much the other rows
contradict their label.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from kfree import KFreeClassifier
from kfree.audit import audit_labels

X, truth = make_blobs(240, centers=[(0, 0), (3, 0), (1.5, 2.6)], cluster_std=0.75, random_state=0)
rng = np.random.default_rng(0)
wrong = rng.choice(len(truth), 12, replace=False)
y = truth.copy()
y[wrong] = (y[wrong] + rng.integers(1, 3, len(wrong))) % 3

audit = audit_labels(KFreeClassifier().fit(X, y))
found = np.isin(audit.rows[: len(wrong)], wrong).sum()
print(f"{found} of the first {len(wrong)} rows have a wrong label")
print(f"{audit.n_contradicted} labels are contradicted")

# %%
# Circled: the first twelve rows of the audit. Crosses: labels that are really wrong. Lines lead
# from the most suspicious row to the neighbors that speak against its label.

fig, ax = plt.subplots(figsize=(7, 5.4), layout="constrained")
for label, marker in zip(range(3), "osD", strict=True):
    ax.scatter(
        *X[y == label].T,
        marker=marker,
        s=26,
        color=f"C{label}",
        alpha=0.6,
        label=f"labeled {label}",
    )
first = audit.rows[: len(wrong)]
ax.scatter(*X[first].T, s=150, facecolor="none", edgecolor="black", label="suspected")
ax.scatter(*X[wrong].T, marker="x", s=40, color="black", label="really wrong")
for neighbor in audit.neighbors_against[0]:
    ax.plot(*X[[audit.rows[0], neighbor]].T, color="black", linewidth=0.8)
ax.set(xlabel="first feature", ylabel="second feature")
ax.legend(loc="upper left")
plt.show()

# %%
# Each line of the audit says which label the others suggest, and who speaks for it:

for i in range(5):
    print(
        f"row {audit.rows[i]:3d}: labeled {audit.given[i]} ({audit.given_probability[i]:.3f}), "
        f"suggested {audit.suggested[i]} ({audit.suggested_probability[i]:.3f}), "
        f"by rows {audit.neighbors_against[i].tolist()}"
    )
