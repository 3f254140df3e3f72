"""What the paper leaves open, and how much is computed."""

from __future__ import annotations

from dataclasses import dataclass

from kfree.paper.published import DATA, STRUCTURES


@dataclass(frozen=True)
class Settings:
    """The choices behind every number on the page.

    Attributes
    ----------
    data, structures : names
    n_splits : folds of the cross validation
    k_max : the largest K considered; fewer where there are fewer other rows
    n_neighbors : K of the rows KNN and PKNN
    other_neighbors : further K for the table that shows what this choice changes
    n_candidates : the search over k tries 1..n_candidates
    n_iterations : steps of the sampler in the table of times
    n_burn_in : how many of the sampler's first draws are dropped
    n_chains : chains of the similarity measures
    counts : numbers of draws after which the similarity is measured
    n_beta : cells of the images of p(K, beta | Y) along beta
    n_dense_rows : test rows whose integrals are computed densely
    repeats : how often a fast method is timed; the shortest time counts
    random_state : seed of the folds and of the sampler
    """

    quick: bool
    data: tuple[str, ...] = DATA
    structures: tuple[str, ...] = STRUCTURES
    n_splits: int = 4
    k_max: int = 50
    n_neighbors: int = 3
    other_neighbors: tuple[int, ...] = (1, 5, 10, 20)
    n_candidates: int = 50
    n_iterations: int = 10_000
    n_burn_in: int = 1_000
    n_chains: int = 8
    counts: tuple[int, ...] = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
    n_beta: int = 60
    n_dense_rows: int = 5
    repeats: int = 15
    random_state: int = 0

    def k_most(self, n_train: int) -> int:
        """The largest K that so many training rows allow."""
        return min(self.k_max, n_train - 1)


FULL = Settings(quick=False)
QUICK = Settings(
    quick=True,
    data=("wine", "iris"),
    structures=("asymmetric",),
    k_max=15,
    other_neighbors=(1, 10),
    n_candidates=15,
    n_iterations=2_000,
    n_burn_in=200,
    n_chains=2,
    counts=(100, 300, 1_000, 3_000),
    n_beta=40,
    n_dense_rows=2,
    repeats=2,
)
