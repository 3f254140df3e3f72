"""kfree on a Dask cluster: training rows in shards, or one model for many new rows.

`KFreeClassifier` spreads the training rows over the workers and gives the answers that
`kfree.KFreeClassifier` gives on one machine. `predict_proba` and `predict` take a model that was
fitted on one machine to the rows of a Dask collection.
"""

from kfree.dask.classifier import KFreeClassifier, LazyPosterior
from kfree.dask.replicated import predict, predict_proba

__all__ = ["KFreeClassifier", "LazyPosterior", "predict", "predict_proba"]
