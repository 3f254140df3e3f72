"""
Saving a model, and who may load it
===================================

``kfree.save`` writes a model to one file, ``kfree.load`` reads it. The file holds numbers and
text, never code: opening a file from a stranger runs nothing, and a file that was altered or cut
off is refused.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kfree
from kfree.displays import KPosteriorDisplay

X, y = load_iris(return_X_y=True)
model = make_pipeline(StandardScaler(), kfree.KFreeClassifier()).fit(X[::2], y[::2])

folder = Path(tempfile.mkdtemp())
kfree.save(model, folder / "iris.kfree")
again = kfree.load(folder / "iris.kfree")
same = np.array_equal(model.predict_proba(X[1::2]), again.predict_proba(X[1::2]))
print(f"{(folder / 'iris.kfree').stat().st_size / 1024:.0f} KiB; same probabilities: {same}")

# %%
# A file with one byte changed is not read:

content = bytearray((folder / "iris.kfree").read_bytes())
content[len(content) // 2] ^= 1
(folder / "altered.kfree").write_bytes(content)
try:
    kfree.load(folder / "altered.kfree")
except ValueError as error:
    print(str(error).replace(str(folder), "..."))

# %%
# What was loaded is the whole model, the posterior of k among it:

KPosteriorDisplay.from_estimator(again)
plt.show()
