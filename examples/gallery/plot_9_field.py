"""
The field beside a forest and boosting
======================================

``FieldClassifier`` listens to all scales of neighborhood at once, in several spaces. Here it stands
beside a random forest and scikit-learn's boosting, all at their defaults, and then tells why it
classified a row as it did.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import cross_val_score

from kfree import FieldClassifier
from kfree.displays import BlockWeightsDisplay, ContributionsDisplay

models = {
    "FieldClassifier": FieldClassifier(),
    "random forest": RandomForestClassifier(300, random_state=0),
    "boosting": HistGradientBoostingClassifier(random_state=0),
}
data_sets = {"wine": load_wine(), "breast cancer": load_breast_cancer()}
losses = {
    name: [
        -cross_val_score(model, d.data, d.target, scoring="neg_log_loss", cv=4).mean()
        for d in data_sets.values()
    ]
    for name, model in models.items()
}

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for number, (name, values) in enumerate(losses.items()):
    place = np.arange(len(values)) + 0.25 * (number - 1)
    hatch = ("", "//", "..")[number]
    ax.barh(place, values, height=0.22, label=name, color="0.85", edgecolor="black", hatch=hatch)
ax.set_yticks(range(len(data_sets)), list(data_sets))
ax.set_xlabel("log loss, 4 folds (lower is better)")
ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, frameon=False)
plt.show()

# %%
# Why was a row classified so? The row that leave-one-out is least sure of, block by block: bars to
# the right speak for its class, and their sum is the logit.

wine = load_wine(as_frame=True)
model = FieldClassifier().fit(wine.data, wine.target_names[wine.target])
sure = model.predict_proba(None).max(axis=1)
row = int(sure.argmin())
ContributionsDisplay.from_estimator(model, wine.data, row=row)
plt.show()

# %%
# The evidence gave each block a prior of its own. Where its standard deviation is 0.1, the block
# has nothing to tell.

BlockWeightsDisplay.from_estimator(model)
plt.show()

# %%
# And these are the rows that spoke, in each view:

for view, found in model.neighbors(wine.data.iloc[[row]]).items():
    print(view, found.indices[0, :5], found.labels[0, :5])
