"""The posterior of beta for each candidate of K, from the labels of all shards.

Little data are brought together. Patterns of labels are counted in each shard and added up, all of
them in one place or a few candidates at a time; so the sums do not depend on the shards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kfree.candidates import Candidates
from kfree.inference.prior import GammaPrior
from kfree.inference.quadrature import BetaPosterior, integrate
from kfree.shards import counting
from kfree.shards.engine import Engine, as_it_is
from kfree.shards.rows import Plan
from kfree.training import KnownPosteriors, beta_posterior

# Up to so many neighbors in all (8 MB as labels), the training sum is made in one place.
FEW_NEIGHBORS = 1 << 20
# Up to so many patterns of all shards (about 20 MB) are added up on one worker and go along with
# the rows to be predicted. More of them are added up for a few candidates of K at a time, about so
# many patterns.
FEW_PATTERNS = 1 << 17
# What goes along then are posteriors of beta. With many classes, where few points decide, there is
# a second one that allows for open labels of this slope: of rows that enter hundreds of
# neighborhoods at once. With few hardly a row would need it, and it takes a quarter of a fit in 3
# dimensions.
MANY_CLASSES = 16
LARGE_SLOPE = 300.0


def find_posteriors(
    engine: Engine,
    each: list,
    plan: Plan,
    candidates: Candidates,
    prior: GammaPrior,
    average: bool,
) -> tuple[BetaPosterior, Any]:
    """The posteriors of beta, and a task for what predictions know of the training labels.

    Parameters
    ----------
    each : tasks for each shard and its neighborhoods
    """
    task, n_classes = engine.task, len(plan.classes)

    def integrated(likelihood: Any) -> BetaPosterior:
        curves = task("integrate", beta_posterior, likelihood, prior)
        return engine.fetch([curves])[0]

    if plan.n_points * int(candidates.k[-1]) <= FEW_NEIGHBORS:
        engine.tell("the posterior of K and beta")
        shards, around = ([pair[i] for pair in each] for i in (0, 1))
        whole = task("likelihood", counting.whole_sum, shards, around, n_classes)
        (likelihood,) = engine.keep([whole])
        return integrated(likelihood), likelihood
    engine.tell("patterns of labels")
    terms = engine.keep(
        [task("count-patterns", counting.count_shard, *pair, at=s) for s, pair in enumerate(each)]
    )
    numbers = [
        task("n-patterns", counting.n_patterns, part, len(candidates), at=s)
        for s, part in enumerate(terms)
    ]
    number = np.sum(engine.fetch(numbers), axis=0)
    engine.tell("the posterior of K and beta")
    if number.sum() <= FEW_PATTERNS or not average:
        whole = task("add-patterns", counting.add_up, terms)
        merged = task("likelihood", counting.MergedSum, whole, len(candidates))
        (likelihood,) = engine.keep([merged])
        engine.forget(terms)
        return integrated(likelihood), likelihood
    known = _by_candidates(engine, terms, number, prior, n_classes)
    return known.each[0], task("likelihood", as_it_is, known)


def _by_candidates(
    engine: Engine, terms: list, number: np.ndarray, prior: GammaPrior, n_classes: int
) -> KnownPosteriors:
    """The posteriors of beta, where patterns are added up for a few candidates at a time."""
    task, groups = engine.task, counting.groups_of_candidates(number, FEW_PATTERNS)
    parts = [
        [task("patterns", counting.patterns_of, part, which, at=s) for s, part in enumerate(terms)]
        for which in groups
    ]
    curves = engine.keep(
        [task("curves", counting.merged_curves, of_group, at=g) for g, of_group in enumerate(parts)]
    )
    engine.forget(terms)

    def log_likelihood(beta: np.ndarray, derivatives: bool, some: np.ndarray) -> tuple:
        values = []
        for part, which in zip(curves, groups, strict=True):
            here = np.flatnonzero((some >= which[0]) & (some <= which[-1]))
            if len(here):
                args = beta[here], derivatives, some[here] - which[0]
                values.append(task("log-likelihood", counting.evaluate, part, *args))
        return counting.in_order_of_candidates(engine.fetch(values))

    first = integrate(log_likelihood, len(number), prior)
    if n_classes <= MANY_CLASSES:
        return KnownPosteriors((first,))
    large = np.full(len(number), LARGE_SLOPE)
    again = integrate(log_likelihood, len(number), prior, large, first.mode)
    return KnownPosteriors((first, again))
