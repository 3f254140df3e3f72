"""How fast kfree is beside scikit-learn and scipy, run by `make bench`."""
