"""The fast estimators against the slow oracle, and controls that show the comparison can fail.

Coordinates are small whole numbers wherever ties matter, so that equal distances are equal to the
last digit on both sides.
"""

import copy
from dataclasses import dataclass, replace
from functools import cache
from math import dist

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import naive
from kfree import KFreeClassifier, PKNNClassifier, StructuredKNNClassifier
from kfree.neighbors.search import Search

TOLERANCE = 1e-6
METHODS = {"quadrature": naive.dense_quadrature, "laplace": naive.algorithm_1}
INTEGRATORS = {
    "quadrature": naive.integrate_densely,
    "laplace": naive.integrate_by_algorithm_1,
}

structures = pytest.mark.parametrize("structure", naive.STRUCTURES)
updates = pytest.mark.parametrize("update", ["joint", "conditional"])
inferences = pytest.mark.parametrize("inference", ["quadrature", "laplace"])
BOTH = (True, False)
averages = pytest.mark.parametrize("average", BOTH)


@dataclass(frozen=True)
class Case:
    """A training set with labels 0..n_classes-1, the last class in one row only, and new points."""

    kind: str
    n: int
    n_classes: int
    k_max: int

    def __str__(self):
        return f"{self.kind}-n{self.n}-c{self.n_classes}-k{self.k_max}"

    @property
    def training(self):
        rng = np.random.default_rng([self.n, self.n_classes, self.k_max])
        side = max(2, round(np.sqrt(self.n)))
        X = rng.integers(0, side, size=(self.n, 2)).astype(float)
        if self.kind == "duplicates":  # three places, far more rows than places
            X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])[rng.integers(0, 3, self.n)]
        if self.kind == "equal":
            X = np.ones((self.n, 2))
        if self.kind == "continuous":
            X = rng.normal(size=(self.n, 2)) * side / 2
        if self.kind == "separated":
            X[:, 1] %= 2
        z = self._labels(rng, X)
        # A constant column says nothing and must change nothing.
        return np.column_stack([X, np.full(self.n, 3.0)]), z

    def _labels(self, rng, X):
        common = self.n_classes - 1  # all classes but the last
        noise = rng.integers(0, common, self.n)
        z = np.where(rng.random(self.n) < 0.3, noise, X[:, 0].astype(int) % common)
        if self.kind == "noise":
            z = noise
        if self.kind == "separated":
            z = np.arange(self.n) % common
            X[:, 0] = 10.0 * z
        z[:common] = np.arange(common)  # every class occurs
        z[self.n // 2] = common if self.n // 2 >= common else z[self.n // 2]
        if not (z == common).any():
            z[-1] = common
        return z

    @property
    def new(self):
        """Equal to a training point; on the grid, in ties with many; far away from all."""
        X, _ = self.training
        place = X.mean(axis=0).round() if self.kind != "continuous" else X.mean(axis=0)
        return np.array([X[1], place, X.max(axis=0) + [7.0, 5.0, 0.0]])


CASES = [
    Case("grid", 5, 2, 4),
    Case("noise", 5, 3, 1),
    Case("equal", 6, 3, 5),
    Case("grid", 7, 4, 3),
    Case("separated", 9, 2, 8),
    Case("noise", 12, 2, 11),
    Case("duplicates", 15, 3, 6),
    Case("grid", 20, 10, 4),
    Case("continuous", 24, 4, 12),
    Case("separated", 30, 4, 9),
    Case("grid", 40, 7, 3),
    Case("duplicates", 45, 2, 10),
    Case("grid", 60, 2, 14),
    Case("noise", 60, 5, 3),
]
cases = pytest.mark.parametrize("case", CASES, ids=str)


def fit(case, update="joint", average=True, **options):
    # update and average are read when predicting (a test below holds that): one fit serves them.
    model = copy.copy(fit_once(case, **options))
    return model.set_params(update=update, average=average)


@cache
def fit_once(case, **options):
    X, z = case.training
    return KFreeClassifier(k_max=case.k_max, **options).fit(X, z)


@cache
def models(case, structure, update, i_new):
    """The oracle's models of K = 1..k_max for one new point."""
    X, z = case.training
    # On whole numbers math.dist is the oracle's own distance, only sooner there.
    return naive.models_of_all_k(
        structure, X, z, case.new[i_new], case.k_max, case.n_classes, update, dist
    )


@cache
def oracle(case, structure, update, inference, average, i_new, prior=(2.0, 10.0)):
    found = models(case, structure, update, i_new)
    if average:
        return INTEGRATORS[inference](found, True, *prior)
    answer = oracle(case, structure, update, inference, True, i_new, prior)
    return at_best(answer, found, prior)


def at_best(answer, found, prior=(2.0, 10.0)):
    """What the oracle gives for average=False, without integrating once more."""
    best = found[np.argmax(answer.k_probabilities)]
    return naive.optimal(answer, best, naive.posterior_mode(best, *prior))


def assert_equal(posterior, row, expected):
    """Every number of one row of a posterior record within the tolerance of the oracle's."""
    np.testing.assert_array_equal(posterior.k, expected.k)
    for name in (
        "class_probabilities",
        "k_probabilities",
        "class_variance_within",
        "class_variance_between",
    ):
        np.testing.assert_allclose(
            getattr(posterior, name)[row],
            getattr(expected, name),
            rtol=0,
            atol=TOLERANCE,
            err_msg=f"{name} of row {row}",
        )
    for name in ("beta_mean", "beta_std"):  # of the order of 20: as many digits
        np.testing.assert_allclose(
            getattr(posterior, name)[row],
            getattr(expected, name),
            rtol=TOLERANCE,
            atol=TOLERANCE,
            err_msg=f"{name} of row {row}",
        )


# --- New points ----------------------------------------------------------------------------------


@inferences
def test_update_and_average_are_read_when_predicting(inference):
    case = Case("grid", 7, 4, 3)
    X, z = case.training
    for update in ("joint", "conditional"):
        for average in (True, False):
            options = {"inference": inference, "update": update, "average": average}
            again = KFreeClassifier(k_max=case.k_max, **options).fit(X, z)
            once = fit(case, **options)
            assert again.get_params() == once.get_params()
            np.testing.assert_array_equal(
                again.predict_proba(case.new), once.predict_proba(case.new)
            )


@cases
@structures
@updates
@inferences
@averages
def test_new_points(case, structure, update, inference, average):
    model = fit(case, structure=structure, update=update, inference=inference, average=average)
    posterior = model.posterior(case.new)
    np.testing.assert_array_equal(posterior.class_probabilities, model.predict_proba(case.new))
    # The oracle is slow: one new point for each of the larger sets, the one in ties with many.
    for i in range(len(case.new)) if case.n <= 12 else [1]:
        assert_equal(posterior, i, oracle(case, structure, update, inference, average, i))


@pytest.mark.parametrize("n", [5, 6, 7, 8, 10])
@structures
def test_few_points_that_one_label_can_turn_round(n, structure):
    """Labels without order: one more label changes the terms of most points, and the posterior."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n_classes, k_max = 2 + seed % 2, min(4, n - 1)
        z, X = np.arange(n) % n_classes, rng.normal(size=(n, 2))
        new = rng.normal(size=(1, 2))
        posterior = KFreeClassifier(structure=structure, k_max=k_max).fit(X, z).posterior(new)
        expected = naive.dense_quadrature(structure, X, z, new[0], k_max, n_classes)
        assert_equal(posterior, 0, expected)


@pytest.mark.parametrize("prior", [(1.5, 0.5), (5.0, 3.0), (2.0, 200.0)], ids=str)
@structures
@inferences
def test_other_priors(prior, structure, inference):
    case = Case("grid", 12, 3, 6)
    options = {"prior_shape": prior[0], "prior_scale": prior[1]}
    model = fit(case, structure=structure, inference=inference, **options)
    posterior = model.posterior(case.new)
    for i in range(len(case.new)):
        assert_equal(posterior, i, oracle(case, structure, "joint", inference, True, i, prior))


@structures
@updates
def test_a_prior_without_a_mode(structure, update):
    """With a shape of at most 1 the density of beta is highest at zero; the average exists."""
    case = Case("noise", 10, 3, 5)
    model = fit(case, structure=structure, update=update, prior_shape=0.7, prior_scale=4.0)
    posterior = model.posterior(case.new)
    for i in range(len(case.new)):
        expected = oracle(case, structure, update, "quadrature", True, i, (0.7, 4.0))
        assert_equal(posterior, i, expected)


# --- Many classes: only those that occur near a point have a place of their own there ------------

MANY = [Case("grid", 40, 17, 3), Case("noise", 60, 30, 1), Case("grid", 62, 60, 1)]
# scikit-learn wonders whether so many classes were meant as numbers.
wondering = pytest.mark.filterwarnings("ignore:The number of unique classes is greater than 50%")


@wondering
@pytest.mark.parametrize("case", MANY, ids=str)
@structures
@updates
def test_many_classes(case, structure, update):
    """The oracle is slow in C squared, so most classes are compared on Algorithm 1's few nodes."""
    for inference, average in [("quadrature", True), ("laplace", True), ("laplace", False)]:
        if inference == "quadrature" and case.n_classes > 30:
            continue
        model = fit(case, structure=structure, update=update, inference=inference, average=average)
        expected = oracle(case, structure, update, inference, average, 1)
        assert_equal(model.posterior(case.new), 1, expected)


# --- Given the training labels alone -------------------------------------------------------------


def training_models(case, structure):
    """One model of a single 'class' for each K: nothing is open."""
    X, z = case.training
    return [
        [naive.terms_of(naive.neighborhood(structure, X, k), z, case.n_classes)]
        for k in range(1, case.k_max + 1)
    ]


@pytest.mark.parametrize("case", [Case("grid", 12, 3, 11), Case("noise", 40, 4, 6)], ids=str)
@structures
@inferences
def test_training_posterior(case, structure, inference):
    model = fit(case, structure=structure, inference=inference)
    expected = INTEGRATORS[inference](training_models(case, structure), True, 2.0, 10.0)
    np.testing.assert_allclose(model.k_posterior_, expected.k_probabilities, rtol=0, atol=TOLERANCE)
    assert model.k_optimal_ == expected.k[expected.k_probabilities.argmax()]
    assert model.beta_mean_ == pytest.approx(expected.beta_mean, rel=TOLERANCE)
    assert model.beta_std_ == pytest.approx(expected.beta_std, rel=TOLERANCE)


# --- Densities -----------------------------------------------------------------------------------

# Fine and wide enough in log(beta) for the trapezoidal rule to be exact.
LOG_BETA = np.linspace(-25.0, 7.5, 1200)


def naive_density(found, beta):
    """p(K, beta | Y) at beta from the oracle's log joint: (n_k, n_beta)."""

    def log_density(b):
        return np.array([logsumexp(naive.log_sums(m, b), axis=0) for m in found]) + naive.log_prior(
            b, 2.0, 10.0
        )

    step = LOG_BETA[1] - LOG_BETA[0]
    total = logsumexp(log_density(np.exp(LOG_BETA)) + LOG_BETA) + np.log(step)
    return np.exp(log_density(beta) - total)


def integral(density):
    """Over beta, from values at exp(LOG_BETA)."""
    return (density * np.exp(LOG_BETA)).sum(axis=-1) * (LOG_BETA[1] - LOG_BETA[0])


@structures
@updates
def test_density(structure, update):
    case = Case("grid", 14, 3, 6)
    beta = np.array([0.01, 0.5, 2.0, 7.0, 30.0, 200.0])
    posterior = fit(case, structure=structure, update=update).posterior(case.new)
    found = posterior.density(beta)
    assert found.shape == (3, 6, 6)
    for i in range(3):
        expected = naive_density(models(case, structure, update, i), beta)
        np.testing.assert_allclose(found[i], expected, rtol=TOLERANCE, atol=1e-9)
    np.testing.assert_allclose(
        integral(posterior.density(np.exp(LOG_BETA))), posterior.k_probabilities, atol=1e-7
    )


@structures
def test_training_density(structure):
    case = Case("grid", 14, 3, 6)
    beta = np.array([0.01, 0.5, 2.0, 7.0, 30.0, 200.0])
    model = fit(case, structure=structure)
    expected = naive_density(training_models(case, structure), beta)
    np.testing.assert_allclose(model.training_density(beta), expected, rtol=TOLERANCE, atol=1e-12)
    np.testing.assert_allclose(
        integral(model.training_density(np.exp(LOG_BETA))), model.k_posterior_, atol=1e-9
    )


@structures
def test_density_by_laplace_is_a_mixture_of_gaussians(structure):
    case = Case("grid", 14, 3, 6)
    beta = np.array([0.5, 2.0, 7.0, 30.0])
    model = fit(case, structure=structure, inference="laplace")
    posterior = model.posterior(case.new)

    def mixture(found, weights):
        modes = np.array([naive.posterior_mode(m, 2.0, 10.0) for m in found])
        curvature = np.array(
            [
                naive.log_unnormalized_posterior(m, b, 2.0, 10.0)[2]
                for m, b in zip(found, modes, strict=True)
            ]
        )
        return weights[:, None] * norm(modes[:, None], (-1 / curvature[:, None]) ** 0.5).pdf(beta)

    for i in range(3):
        weights = oracle(case, structure, "joint", "laplace", True, i).k_probabilities
        expected = mixture(models(case, structure, "joint", i), weights)
        np.testing.assert_allclose(posterior.density(beta)[i], expected, rtol=0, atol=TOLERANCE)
    expected = mixture(training_models(case, structure), model.k_posterior_)
    np.testing.assert_allclose(model.training_density(beta), expected, rtol=0, atol=TOLERANCE)


# --- Leave-one-out -------------------------------------------------------------------------------

# Without ties in distance: the row that comes back as a new point would lose its place in them.
LEFT_OUT = [
    Case("continuous", 5, 2, 3),
    Case("continuous", 9, 3, 7),
    Case("continuous", 16, 2, 14),
    Case("continuous", 30, 10, 4),
    Case("continuous", 60, 4, 6),
]


def some_rows(case):
    """The only row of its class among them."""
    _, z = case.training
    return [0, case.n - 1, int(np.flatnonzero(z == case.n_classes - 1)[0])]


@pytest.mark.parametrize("case", LEFT_OUT, ids=str)
@structures
@inferences
def test_joint_leave_one_out(case, structure, inference):
    averaged = fit(case, structure=structure, inference=inference).posterior(None)
    optimal = fit(case, structure=structure, inference=inference, average=False).posterior(None)
    assert averaged.class_probabilities.shape == (case.n, case.n_classes)
    for i in some_rows(case) if case.n <= 10 else some_rows(case)[2:]:
        found = models_without(case, structure, i)
        expected = INTEGRATORS[inference](found, True, 2.0, 10.0)
        assert_equal(averaged, i, expected)
        assert_equal(optimal, i, at_best(expected, found))


@cache
def models_without(case, structure, i):
    """The oracle's models of row i as a new point among all others."""
    X, z = case.training
    others, labels = np.delete(X, i, axis=0), np.delete(z, i)
    return naive.models_of_all_k(
        structure, others, labels, X[i], case.k_max, case.n_classes, "joint", dist
    )


@pytest.mark.parametrize(
    "case", [*LEFT_OUT[:3], Case("grid", 12, 3, 11), Case("duplicates", 30, 3, 5)], ids=str
)
@structures
@inferences
def test_conditional_leave_one_out(case, structure, inference):
    """Row i's own term is divided out; the graph stays, so ties and k_max = N - 1 do no harm."""
    X, z = case.training
    options = {"structure": structure, "update": "conditional", "inference": inference}
    posterior = fit(case, **options).posterior(None)
    for i in some_rows(case) if case.n <= 10 else some_rows(case)[2:]:
        expected = naive.leave_one_out(
            METHODS[inference], structure, X, z, i, case.k_max, case.n_classes, "conditional",
            distance=dist,
        )  # fmt: skip
        assert_equal(posterior, i, expected)


@structures
@inferences
@pytest.mark.parametrize(("n", "n_classes"), [(8, 2), (40, 4), (60, 20)])
def test_leave_one_out_is_fitting_without_the_row(structure, inference, n, n_classes):
    rng = np.random.default_rng(n)
    z = np.arange(n) % n_classes
    X = rng.normal(size=(n, 3)) + z[:, None] / 2
    options = {"structure": structure, "inference": inference, "k_max": 4}
    whole = KFreeClassifier(**options).fit(X, z)
    together = {average: whole.set_params(average=average).predict_proba(None) for average in BOTH}
    for i in range(0, n, max(1, n // 5)):
        kept = np.arange(n) != i
        apart = KFreeClassifier(**options).fit(X[kept], z[kept])
        np.testing.assert_array_equal(apart.classes_, whole.classes_)
        for average in BOTH:
            probability = apart.set_params(average=average).predict_proba(X[[i]])[0]
            np.testing.assert_allclose(together[average][i], probability, rtol=0, atol=TOLERANCE)


# --- Baselines -----------------------------------------------------------------------------------

FIXED = [
    (Case("grid", 5, 2, 4), [1, 4]),
    (Case("duplicates", 15, 3, 6), [1, 2, 6]),
    (Case("grid", 36, 4, 8), [1, 2, 8, 35]),
    (Case("equal", 6, 3, 5), [2, 5]),
    (Case("grid", 62, 40, 1), [1, 4]),
]
fixed = pytest.mark.parametrize(("case", "ks"), FIXED, ids=[str(c) for c, _ in FIXED])


@wondering
@fixed
@structures
def test_pknn(case, ks, structure):
    X, z = case.training
    for k in ks:
        model = PKNNClassifier(k, structure=structure).fit(X, z)
        probability = model.predict_proba(case.new)
        for i, x in enumerate(case.new):
            given = None if i == 0 else model.beta_
            beta, expected = naive.pknn(structure, X, z, x, k, case.n_classes, beta=given)
            assert model.beta_ == pytest.approx(beta, rel=1e-9)
            np.testing.assert_allclose(probability[i], expected, rtol=0, atol=TOLERANCE)


@structures
def test_pknn_with_another_prior(structure):
    X, z = CASES[3].training
    model = PKNNClassifier(2, structure=structure, prior_shape=3.0, prior_scale=0.5).fit(X, z)
    expected = naive.pknn(
        structure, X, z, X[0], 2, CASES[3].n_classes, prior_shape=3.0, prior_scale=0.5
    )
    assert model.beta_ == pytest.approx(expected[0], rel=1e-9)


@structures
def test_pknn_leave_one_out(structure):
    """Its beta has seen the row; given beta, the row has a label unknown."""
    case = Case("continuous", 20, 4, 1)
    X, z = case.training
    for k in (1, 5):
        model = PKNNClassifier(k, structure=structure).fit(X, z)
        probability = model.predict_proba(None)
        for i in range(case.n):
            _, expected = naive.pknn(
                structure, np.delete(X, i, axis=0), np.delete(z, i), X[i], k, case.n_classes,
                beta=model.beta_,
            )  # fmt: skip
            np.testing.assert_allclose(probability[i], expected, rtol=0, atol=TOLERANCE)


@wondering
@fixed
@structures
def test_vote(case, ks, structure):
    X, z = case.training
    rng = np.random.default_rng(5)
    new = np.vstack([case.new, X[rng.integers(0, case.n, 12)] + rng.integers(-1, 2, (12, 3))])
    for k in ks:
        model = StructuredKNNClassifier(k, structure=structure).fit(X, z)
        share, labels = model.predict_proba(new), model.predict(new)
        for i, x in enumerate(new):
            label, count = naive.vote(structure, X, z, x, k, case.n_classes)
            assert labels[i] == label
            np.testing.assert_allclose(share[i], count / count.sum(), rtol=0, atol=1e-9)


def test_votes_are_often_tied():
    """Otherwise the test above would say nothing about ties."""
    case, _ = FIXED[2]
    X, z = case.training
    n_tied = 0
    for x in X + [1.0, 0.0, 0.0]:
        _, count = naive.vote("asymmetric", X, z, x, 8, case.n_classes)
        n_tied += (count == count.max()).sum() > 1
    assert n_tied > 3


# --- Negative controls: each mistake must be seen at the tolerance that the tests use ------------

CONTROL = Case("grid", 18, 3, 6)


def largest_difference(model, structure, update="joint", rows=(0, 1)):
    """In any class probability or p(K|Y), between an estimator and the oracle."""
    posterior = model.posterior(CONTROL.new)
    worst = 0.0
    for i in rows:
        expected = oracle(CONTROL, structure, update, "quadrature", True, i)
        for name in ("class_probabilities", "k_probabilities"):
            difference = np.abs(getattr(posterior, name)[i] - getattr(expected, name))
            worst = max(worst, difference.max())
    return worst


@structures
def test_control_itself_agrees(structure):
    assert largest_difference(fit(CONTROL, structure=structure), structure) < TOLERANCE


@structures
def test_control_reverse_neighbors_left_out(structure, monkeypatch):
    complete = Search.arrivals

    def arrivals(self, *arguments, **options):
        found = complete(self, *arguments, **options)
        nothing = {
            name: getattr(found, name)[:0]
            for name in ("reverse_row", "reverse_point", "reverse_cell")
        }
        return replace(found, **nothing)

    monkeypatch.setattr(Search, "arrivals", arrivals)
    assert largest_difference(fit(CONTROL, structure=structure), structure) > 100 * TOLERANCE


@structures
def test_control_later_index_first(structure):
    X, z = CONTROL.training
    model = KFreeClassifier(structure=structure, k_max=CONTROL.k_max).fit(X[::-1], z[::-1])
    assert largest_difference(model, structure) > 100 * TOLERANCE


@structures
def test_control_new_point_first(structure, monkeypatch):
    """Radii one digit up: a new point at a training point's distance comes before it."""
    right = Search.arrivals

    def arrivals(self, queries, k, table, n_jobs=None):
        return right(self, queries, k, np.nextafter(table, np.inf), n_jobs)

    monkeypatch.setattr(Search, "arrivals", arrivals)
    assert largest_difference(fit(CONTROL, structure=structure), structure) > 100 * TOLERANCE


@structures
@updates
def test_control_rate_instead_of_scale(structure, update):
    model = fit(CONTROL, structure=structure, update=update, prior_scale=1 / 10)
    assert largest_difference(model, structure, update) > 100 * TOLERANCE


@structures
def test_control_posterior_not_updated(structure):
    model = fit(CONTROL, structure=structure, update="conditional")
    assert largest_difference(model, structure, "joint") > 100 * TOLERANCE


@structures
def test_control_another_structure(structure):
    other = naive.STRUCTURES[naive.STRUCTURES.index(structure) - 1]
    assert largest_difference(fit(CONTROL, structure=other), structure) > 100 * TOLERANCE


@inferences
def test_control_the_other_inference(inference):
    """Algorithm 1 is an approximation, and the oracles tell it from the integral."""
    case = CASES[0]
    model = fit(case, inference=inference)
    other = "laplace" if inference == "quadrature" else "quadrature"
    with pytest.raises(AssertionError):
        assert_equal(
            model.posterior(case.new), 1, oracle(case, "asymmetric", "joint", other, True, 1)
        )


def test_many_rows_among_hundreds_of_classes_are_answered_like_few():
    # What is worked out once for many rows is for few classes only.
    rng = np.random.default_rng(0)
    z = np.concatenate([np.arange(300), rng.integers(0, 300, 300)])
    X = 3.0 * rng.normal(size=(300, 4))[z] + rng.normal(size=(600, 4))
    model = KFreeClassifier(k_max=4).fit(X, z)
    together = model.predict_proba(X + 0.1)
    apart = np.concatenate([model.predict_proba(row[None] + 0.1) for row in X[:3]])
    np.testing.assert_allclose(together[:3], apart, rtol=1e-9)
    assert np.isfinite(model.predict_proba(None)).all()
