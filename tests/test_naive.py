"""Tests of the oracle itself: by hand, by matrix algebra with adaptive quadrature, by symmetry."""

from dataclasses import fields
from functools import cache, partial
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from scipy.stats import gamma, norm
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

import naive

structures = pytest.mark.parametrize("structure", naive.STRUCTURES)
updates = pytest.mark.parametrize("update", ["joint", "conditional"])
methods = pytest.mark.parametrize("method", [naive.dense_quadrature, naive.algorithm_1])


def clouds(n_points=14, n_classes=3, seed=0):
    """Overlapping clouds in the plane without ties in distance, and a new point between them."""
    rng = np.random.default_rng(seed)
    z = np.arange(n_points) % n_classes
    X = rng.normal(size=(n_points, 2)) + 1.2 * np.column_stack([z, z % 2])
    return X, z, np.array([0.7, 0.4])


def assert_equal_answers(a, b, tolerance):
    for field in fields(naive.Answer):
        expected = getattr(b, field.name)
        np.testing.assert_allclose(
            getattr(a, field.name), expected, rtol=0, atol=tolerance, err_msg=field.name
        )


# --- The five-point example by hand --------------------------------------------------------------
#
#   index     0    1    2         3         4 (new)
#   place     0    1    2         4         6
#   label     0    0    1         1         c
#
# Ties in distance: point 1 has 0 and 2 at distance 1, so 0 comes first. Point 2 has 0 and 3 at
# distance 2, so 0 comes first. Point 3 has 2 and the new point at distance 2, so 2 comes first.
#
# Augmented set                      K = 1                       K = 2
#                            ne(i)  reverse   U(i)      ne(i)  reverse  U(i)
#   0                          1     1         1         1 2    1 2      1 2
#   1                          0     0 2       0 2       0 2    0 2      0 2
#   2                          1     3         1 3       1 0    0 1 3 4  0 1 3 4
#   3                          2     4         2 4       2 4    4        2 4
#   4                          3     none      3         3 2    3        2 3
#
# Training points alone
#   0                          1     1         1         1 2    1 2      1 2
#   1                          0     0 2       0 2       0 2    0 2 3    0 2 3
#   2                          1     3         1 3       1 0    0 1 3    0 1 3
#   3                          2     none      2         2 1    none     1 2
#
# With two classes a term is -log(1 + exp(-beta*m)) =: f(m), where m = s_i(z_i) - s_i(other class).
# f(0) = -log 2. The counts (class 0, class 1) and m for each point, first those of K = 1:
#
# asymmetric, denominator 1
#   0: (1,0) m=1.  1: (1,0) m=1.  2: (1,0) m=-1.  3: (0,1) m=1.  4: (0,1) c=0 m=-1, c=1 m=1.
#   Training alone: the same first four.
# boltzmann, denominator 1
#   0: (2,0) m=2.  1: (2,1) m=1.  2: (1,1) m=0.  3: c=0 (1,1) m=0, c=1 (0,2) m=2.
#   4: (0,1) c=0 m=-1, c=1 m=1.     Training alone: 3: (0,1) m=1.
# boltzmann2, denominators 1 2 2 2 1
#   0: (1,0) m=1.  1: (1,1) m=0.  2: (1,1) m=0.  3: c=0 (1,1) m=0, c=1 (0,2) m=1.
#   4: (0,1) c=0 m=-1, c=1 m=1.     Training alone: 3: (0,1) over 1, m=1.
#
# and those of K = 2:
#
# asymmetric, denominator 2
#   0: (1,1) m=0.  1: (1,1) m=0.  2: (2,0) m=-1.  3: c=0 (1,1) m=0, c=1 (0,2) m=1.
#   4: (0,2) c=0 m=-1, c=1 m=1.     Training alone: 3: (1,1) m=0.
# boltzmann, denominator 2
#   0: (2,2) m=0.  1: (2,2) m=0.  2: c=0 (5,1) m=-2, c=1 (4,2) m=-1.
#   3: c=0 (2,1) m=-1/2, c=1 (0,3) m=3/2.  4: (0,3) c=0 m=-3/2, c=1 m=3/2.
#   Training alone: 0: (2,2) m=0.  1: (2,3) m=-1/2.  2: (4,1) m=-3/2.  3: (1,1) m=0.
# boltzmann2, denominators 2 2 4 2 2
#   0: (1,1) m=0.  1: (1,1) m=0.  2: c=0 (3,1) m=-1/2, c=1 (2,2) m=0.
#   3: c=0 (1,1) m=0, c=1 (0,2) m=1.  4: (0,2) c=0 m=-1, c=1 m=1.
#   Training alone, denominators 2 3 3 2: 0: (1,1) m=0.  1: (1,2) m=-1/3.  2: (2,1) m=-1/3.
#   3: (1,1) m=0.

PLACES = np.array([[0.0], [1.0], [2.0], [4.0]])
LABELS = np.array([0, 0, 1, 1])
NEW_PLACE = np.array([6.0])

AUGMENTED = {
    ("asymmetric", 1): [[1], [0], [1], [2], [3]],
    ("asymmetric", 2): [[1, 2], [0, 2], [1, 0], [2, 4], [3, 2]],
    ("boltzmann", 1): [[1, 1], [0, 0, 2], [1, 3], [2, 4], [3]],
    ("boltzmann", 2): [
        [1, 2, 1, 2], [0, 2, 0, 2], [1, 0, 0, 1, 3, 4], [2, 4, 4], [3, 2, 3],
    ],
    ("boltzmann2", 1): [[1], [0, 2], [1, 3], [2, 4], [3]],
    ("boltzmann2", 2): [[1, 2], [0, 2], [0, 1, 3, 4], [2, 4], [2, 3]],
}  # fmt: skip

# Differences m of all five points for c = 0 and c = 1, then of the four training points alone.
MARGINS = {
    ("asymmetric", 1): ([1, 1, -1, 1, -1], [1, 1, -1, 1, 1], [1, 1, -1, 1]),
    ("asymmetric", 2): ([0, 0, -1, 0, -1], [0, 0, -1, 1, 1], [0, 0, -1, 0]),
    ("boltzmann", 1): ([2, 1, 0, 0, -1], [2, 1, 0, 2, 1], [2, 1, 0, 1]),
    ("boltzmann", 2): ([0, 0, -2, -0.5, -1.5], [0, 0, -1, 1.5, 1.5], [0, -0.5, -1.5, 0]),
    ("boltzmann2", 1): ([1, 0, 0, 0, -1], [1, 0, 0, 1, 1], [1, 0, 0, 1]),
    ("boltzmann2", 2): ([0, 0, -0.5, 0, -1], [0, 0, 0, 1, 1], [0, -1 / 3, -1 / 3, 0]),
}

BETA = np.array([0.1, 1.0, 7.0])
by_hand = pytest.mark.parametrize(("structure", "n_neighbors"), list(MARGINS))


def f(m):
    return -np.log(1 + np.exp(-BETA * m))


@by_hand
def test_five_points_neighbor_lists(structure, n_neighbors):
    members, denominators = naive.neighborhood(
        structure, np.vstack([PLACES, NEW_PLACE]), n_neighbors
    )
    expected = AUGMENTED[structure, n_neighbors]
    assert members == expected
    if structure == "boltzmann2":
        assert denominators == [len(union) for union in expected]
    else:
        assert denominators == [n_neighbors] * 5


@by_hand
def test_five_points_log_pseudo_likelihood(structure, n_neighbors):
    c0, c1, training = MARGINS[structure, n_neighbors]
    own = [f(c0[-1]), f(c1[-1])]
    value = naive.log_pseudo_likelihood(structure, PLACES, LABELS, BETA, n_neighbors, 2)
    np.testing.assert_allclose(value, sum(map(f, training)), rtol=1e-13)

    arguments = structure, PLACES, LABELS, NEW_PLACE, BETA, n_neighbors, 2
    joint = naive.log_joint(*arguments, update="joint")
    assert joint.shape == (2, 3)
    np.testing.assert_allclose(joint, [sum(map(f, c0)), sum(map(f, c1))], rtol=1e-13)
    conditional = naive.log_joint(*arguments, update="conditional")
    np.testing.assert_allclose(conditional, sum(map(f, training)) + own, rtol=1e-13)


def test_five_points_written_out():
    """Two of the sums above once more in full, with no table between them and the comment."""
    b = 1.7
    log, exp = np.log, np.exp
    asymmetric = naive.log_joint("asymmetric", PLACES, LABELS, NEW_PLACE, [b], 1, 2)[:, 0]
    assert asymmetric[0] == pytest.approx(-3 * log(1 + exp(-b)) - 2 * log(1 + exp(b)), abs=1e-13)
    assert asymmetric[1] == pytest.approx(-4 * log(1 + exp(-b)) - log(1 + exp(b)), abs=1e-13)
    boltzmann = naive.log_joint("boltzmann", PLACES, LABELS, NEW_PLACE, [b], 2, 2)[:, 0]
    c0 = -2 * log(2) - log(1 + exp(2 * b)) - log(1 + exp(b / 2)) - log(1 + exp(1.5 * b))
    c1 = -2 * log(2) - log(1 + exp(b)) - 2 * log(1 + exp(-1.5 * b))
    np.testing.assert_allclose(boltzmann, [c0, c1], rtol=0, atol=1e-13)
    # pknn at a given beta is the share of each class in the joint, and vote counts its neighbors.
    beta, p = naive.pknn("boltzmann", PLACES, LABELS, NEW_PLACE, 2, 2, beta=b)
    assert beta == b
    np.testing.assert_allclose(p, exp([c0, c1]) / (exp(c0) + exp(c1)), atol=1e-13)
    label, counts = naive.vote("boltzmann", PLACES, LABELS, NEW_PLACE, 2, 2)
    assert (label, list(counts)) == (1, [0, 3])


# --- A second way to the same numbers: adjacency matrices and adaptive quadrature ----------------


def matrix_shares(structure, points, n_neighbors):
    """Row i holds the weight of every other point in s_i."""
    distances = cdist(points, points)
    np.fill_diagonal(distances, np.inf)
    ranks = np.argsort(np.argsort(distances, axis=1, kind="stable"), axis=1)
    adjacency = (ranks < n_neighbors).astype(float)
    if structure == "asymmetric":
        return adjacency / n_neighbors
    if structure == "boltzmann":
        return (adjacency + adjacency.T) / n_neighbors
    union = np.maximum(adjacency, adjacency.T)
    return union / union.sum(axis=1, keepdims=True)


def matrix_conditionals(structure, points, labels, beta, n_neighbors, n_classes):
    """p(z_i = c | others, beta, K), shape (n_points, n_classes)."""
    s = matrix_shares(structure, points, n_neighbors) @ np.eye(n_classes)[labels]
    p = np.exp(beta * s)
    return p / p.sum(axis=1, keepdims=True)


def matrix_pseudo_likelihood(structure, points, labels, beta, n_neighbors, n_classes):
    p = matrix_conditionals(structure, points, labels, beta, n_neighbors, n_classes)
    return np.prod(p[np.arange(len(labels)), labels])


def matrix_joint(structure, X, z, x_new, beta, n_neighbors, n_classes, update):
    """p(z, z'=c | beta, K), shape (n_classes,)."""
    points = np.vstack([X, x_new])
    if update == "joint":
        return np.array(
            [
                matrix_pseudo_likelihood(
                    structure, points, np.append(z, c), beta, n_neighbors, n_classes
                )
                for c in range(n_classes)
            ]
        )
    training = matrix_pseudo_likelihood(structure, X, z, beta, n_neighbors, n_classes)
    labels = np.append(z, 0)
    own = matrix_conditionals(structure, points, labels, beta, n_neighbors, n_classes)[-1]
    return training * own


def matrix_leave_one_out(structure, X, z, i, beta, n_neighbors, n_classes):
    """p(z | beta, K) / p(z_i | others) * p(z_i = c | others), shape (n_classes,)."""
    own = matrix_conditionals(structure, X, z, beta, n_neighbors, n_classes)[i]
    training = matrix_pseudo_likelihood(structure, X, z, beta, n_neighbors, n_classes)
    return training / own[z[i]] * own


def adaptive_quadrature(joint, k_max, n_classes, prior_shape=2.0, prior_scale=10.0):
    """Answer from joint(beta, K) by scipy's quad in beta (not in log beta)."""
    prior = gamma(prior_shape, scale=prior_scale)
    unit = max(joint(b, k).sum() * prior.pdf(b) for b in [0.3, 1, 3, 10] for k in [1, k_max])

    @cache  # for the integrals meet at many nodes
    def at(beta, k):
        """The unnormalized posterior, and p(z'=c | beta, K)."""
        p = joint(beta, k)
        total = p.sum()
        if total == 0:  # the product of probabilities underflows far out
            return 0.0, p
        return prior.pdf(beta) / unit * total, p / total

    def integral(function):
        """The integral of function(beta, p) against the unnormalized posterior, for each K."""

        def integrand(beta, k):
            density, p = at(beta, k)
            return density * function(beta, p)

        pieces = [0, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 200]
        return np.array(
            [
                sum(
                    quad(integrand, a, b, args=(k,), epsabs=1e-13, epsrel=1e-11)[0]
                    for a, b in pairwise(pieces)
                )
                for k in range(1, k_max + 1)
            ]
        )

    evidence = integral(lambda beta, p: 1.0)
    total = evidence.sum()

    def mean(function):
        return integral(function).sum() / total

    classes = range(n_classes)
    average = np.array([mean(lambda beta, p, c=c: p[c]) for c in classes])
    beta_mean = mean(lambda beta, p: beta)
    return naive.Answer(
        k=np.arange(1, k_max + 1),
        k_probabilities=evidence / total,
        class_probabilities=average,
        beta_mean=beta_mean,
        beta_std=np.sqrt(mean(lambda beta, p: (beta - beta_mean) ** 2)),
        class_variance_within=np.array(
            [mean(lambda beta, p, c=c: p[c] * (1 - p[c])) for c in classes]
        ),
        class_variance_between=np.array(
            [mean(lambda beta, p, c=c: (p[c] - average[c]) ** 2) for c in classes]
        ),
    )


@structures
@updates
def test_log_joint_equals_matrix_algebra(structure, update):
    X, z, x_new = clouds()
    for n_neighbors, beta in product([1, 2, 5, 13], [0.2, 3.0, 11.0]):
        expected = matrix_joint(structure, X, z, x_new, beta, n_neighbors, 3, update)
        actual = naive.log_joint(structure, X, z, x_new, beta, n_neighbors, 3, update)
        np.testing.assert_allclose(actual, np.log(expected), rtol=1e-12)


@structures
@updates
def test_dense_quadrature_equals_adaptive_quadrature(structure, update):
    X, z, x_new = clouds(n_points=8)
    joint = partial(matrix_joint, structure, X, z, x_new, n_classes=3, update=update)
    expected = adaptive_quadrature(lambda b, k: joint(beta=b, n_neighbors=k), 2, 3)
    actual = naive.dense_quadrature(structure, X, z, x_new, 2, 3, update=update)
    assert_equal_answers(actual, expected, tolerance=1e-9)


@structures
def test_conditional_leave_one_out_equals_adaptive_quadrature(structure):
    X, z, _ = clouds(n_points=8)
    joint = partial(matrix_leave_one_out, structure, X, z, 3, n_classes=3)
    expected = adaptive_quadrature(lambda b, k: joint(beta=b, n_neighbors=k), 2, 3)
    actual = naive.leave_one_out(
        naive.dense_quadrature, structure, X, z, 3, 2, 3, update="conditional"
    )
    assert_equal_answers(actual, expected, tolerance=1e-9)


def second_algorithm_1(joint, k_max, n_classes):
    """Algorithm 1 with a black-box optimizer and a difference quotient, no derivative by hand."""

    def log_density(beta, k):
        return np.log(joint(beta, k).sum()) + gamma(2.0, scale=10.0).logpdf(beta)

    def mode_of(k):
        result = minimize_scalar(
            lambda b: -log_density(b, k), bounds=(1e-3, 40), method="bounded",
            options={"xatol": 1e-9},
        )  # fmt: skip
        return result.x

    ks = range(1, k_max + 1)
    mu = np.array([mode_of(k) for k in ks])
    h = 1e-3 * mu
    # Fourth order: (-f(2h) + 16 f(h) - 30 f(0) + 16 f(-h) - f(-2h)) / 12 h^2.
    d2 = sum(
        w * np.array([log_density(m + i * step, k) for k, m, step in zip(ks, mu, h, strict=True)])
        for i, w in zip(range(-2, 3), [-1, 16, -30, 16, -1], strict=True)
    ) / (12 * h**2)
    sigma = np.sqrt(-1 / d2)
    height = np.array([np.exp(log_density(m, k)) for m, k in zip(mu, ks, strict=True)])
    alpha = height / norm.pdf(mu, mu, sigma)
    alpha /= alpha.sum()
    mu_beta = alpha @ mu
    sigma_beta = np.sqrt(alpha @ (sigma**2 + mu**2) - mu_beta**2)
    weights, values = [], []
    for i in range(-10, 11):
        beta = mu_beta + i * sigma_beta
        for k in ks:
            if beta > 0:
                weights.append(norm.pdf(beta, mu[k - 1], sigma[k - 1]) * alpha[k - 1])
                values.append(joint(beta, k) / joint(beta, k).sum())
    weights, values = np.array(weights) / sum(weights), np.array(values)
    mean = weights @ values
    return naive.Answer(
        k=np.arange(1, k_max + 1),
        k_probabilities=alpha,
        class_probabilities=mean,
        beta_mean=mu_beta,
        beta_std=sigma_beta,
        class_variance_within=weights @ (values * (1 - values)),
        class_variance_between=weights @ values**2 - mean**2,
    )


@structures
@updates
def test_algorithm_1_equals_black_box(structure, update):
    X, z, x_new = clouds(n_points=20, seed=4)

    def joint(beta, k):
        return matrix_joint(structure, X, z, x_new, beta, k, 3, update)

    actual = naive.algorithm_1(structure, X, z, x_new, 4, 3, update=update)
    # The black box finds its modes to about 1e-7 only, the root of its rounding error.
    assert_equal_answers(actual, second_algorithm_1(joint, 4, 3), tolerance=2e-6)


@structures
def test_algorithm_1_conditional_leave_one_out_equals_black_box(structure):
    X, z, _ = clouds(n_points=20, seed=4)

    def joint(beta, k):
        return matrix_leave_one_out(structure, X, z, 5, beta, k, 3)

    actual = naive.leave_one_out(naive.algorithm_1, structure, X, z, 5, 4, 3, update="conditional")
    assert_equal_answers(actual, second_algorithm_1(joint, 4, 3), tolerance=2e-6)


def test_boltzmann_terms_are_the_full_conditionals_of_a_markov_random_field():
    """Eq. 2 is p(z_i | others) of p(z) ~ exp(beta/K sum_i sum_{j in ne(i)} delta(z_i, z_j))."""
    X, z, _ = clouds(n_points=6)
    beta, n_neighbors, n_classes = 1.3, 2, 3

    def energy(labels):
        return sum(
            labels[i] == labels[j]
            for i in range(len(X))
            for j in naive.neighbors(X, i, n_neighbors)
        )

    log_conditionals = 0.0
    for i in range(len(X)):
        weights = np.exp(
            [beta / n_neighbors * energy([*z[:i], c, *z[i + 1 :]]) for c in range(n_classes)]
        )
        log_conditionals += np.log(weights[z[i]] / weights.sum())
    actual = naive.log_pseudo_likelihood("boltzmann", X, z, beta, n_neighbors, n_classes)
    assert actual == pytest.approx(log_conditionals, abs=1e-12)


# --- Neighbors -----------------------------------------------------------------------------------


def test_neighbors_equal_scikit_learn():
    X, _, _ = clouds(n_points=25)
    expected = NearestNeighbors(n_neighbors=7).fit(X).kneighbors(return_distance=False)
    assert [naive.neighbors(X, i, 7) for i in range(25)] == expected.tolist()


def test_a_duplicate_is_a_neighbor_and_self_is_not():
    points = np.array([[0.0], [0.0], [5.0], [0.0]])
    assert naive.neighbors(points, 0, 3) == [1, 3, 2]
    assert naive.neighbors(points, 1, 3) == [0, 3, 2]
    assert naive.neighbors(points, 3, 2) == [0, 1]


def test_another_distance():
    points = np.array([[0.0, 0.0], [3.0, 3.0], [4.5, 0.0]])
    assert naive.neighbors(points, 0, 1) == [1]  # 4.24 against 4.5
    assert naive.neighbors(points, 0, 1, distance=lambda a, b: np.abs(a - b).sum()) == [2]


@pytest.mark.parametrize("n_neighbors", [0, 4])
def test_neighbors_refuses_more_than_there_are(n_neighbors):
    with pytest.raises(ValueError, match=r"must be in 1\.\.3"):
        naive.neighbors(PLACES, 0, n_neighbors)


@structures
def test_all_points_are_neighbors_at_the_largest_k(structure):
    X, z, _ = clouds(n_points=9)
    beta = np.array([0.5, 4.0])
    factor = 2 if structure == "boltzmann" else 1
    expected = 0.0
    for i in range(9):
        s = [factor * sum(z[j] == c for j in range(9) if j != i) / 8 for c in range(3)]
        expected = expected + beta * s[z[i]] - np.log(sum(np.exp(beta * s_c) for s_c in s))
    actual = naive.log_pseudo_likelihood(structure, X, z, beta, 8, 3)
    np.testing.assert_allclose(actual, expected, rtol=1e-13)


# --- Likelihood, prior, mode ---------------------------------------------------------------------


@structures
def test_derivatives_equal_difference_quotients(structure):
    X, z, _ = clouds()
    beta, h = np.array([0.3, 2.0, 9.0]), 1e-4
    value, d1, d2 = naive.log_pseudo_likelihood(structure, X, z, beta, 3, 3, derivatives=True)
    above = naive.log_pseudo_likelihood(structure, X, z, beta + h, 3, 3)
    below = naive.log_pseudo_likelihood(structure, X, z, beta - h, 3, 3)
    np.testing.assert_allclose(value, naive.log_pseudo_likelihood(structure, X, z, beta, 3, 3))
    np.testing.assert_allclose(d1, (above - below) / (2 * h), atol=1e-7)
    np.testing.assert_allclose(d2, (above - 2 * value + below) / h**2, atol=1e-5)


@structures
@updates
def test_posterior_derivatives_equal_difference_quotients(structure, update):
    X, z, x_new = clouds()
    model = naive.joint_terms(structure, X, z, x_new, 3, 3, update)
    beta, h = np.array([0.3, 2.0, 9.0]), 1e-4
    density = partial(naive.log_unnormalized_posterior, model, prior_shape=1.5, prior_scale=4.0)
    value, d1, d2 = density(beta)
    above, below = density(beta + h)[0], density(beta - h)[0]
    np.testing.assert_allclose(d1, (above - below) / (2 * h), atol=1e-6)
    np.testing.assert_allclose(d2, (above - 2 * value + below) / h**2, atol=2e-5)


def test_prior_is_gamma_with_shape_and_scale():
    expected = gamma(2.5, scale=7.0).logpdf(BETA)
    np.testing.assert_allclose(naive.log_prior(BETA, 2.5, 7.0), expected, rtol=1e-12)
    assert gamma(2.0, scale=10.0).mean() == 20.0


@structures
@updates
def test_mode_is_the_highest_point_of_a_fine_grid(structure, update):
    X, z, x_new = clouds()
    model = naive.joint_terms(structure, X, z, x_new, 2, 3, update)
    mode = naive.posterior_mode(model, 2.0, 10.0)
    at_mode, slope, curvature = naive.log_unnormalized_posterior(model, mode, 2.0, 10.0)
    grid = np.geomspace(1e-4, 1e4, 5000)
    assert at_mode >= naive.log_unnormalized_posterior(model, grid, 2.0, 10.0)[0].max()
    assert abs(slope / curvature) < 1e-11  # one more Newton step would move it by no more


@pytest.mark.parametrize(("n_times", "large_wins"), [(1, True), (3, False)])
def test_highest_of_several_modes(n_times, large_wins):
    """Two classes of a new point may favor very different beta: the higher mode must win."""
    agrees, disagrees = (np.array([1.0, 0.0]), 0), (np.array([1.0, 0.0]), 1)
    for_large_beta = ([agrees] * 300 + [disagrees]) * n_times
    for_small_beta = [agrees, disagrees] * 8
    model = [for_large_beta, for_small_beta]
    mode = naive.posterior_mode(model, 2.0, 10.0)
    grid = np.geomspace(1e-4, 1e4, 5000)
    density = naive.log_unnormalized_posterior(model, grid, 2.0, 10.0)[0]
    n_modes = ((density[1:-1] > density[:-2]) & (density[1:-1] > density[2:])).sum()
    assert n_modes == 2
    assert (mode > 3) == large_wins
    assert naive.log_unnormalized_posterior(model, mode, 2.0, 10.0)[0] >= density.max()


def test_without_an_interior_mode_it_says_so():
    disagreeing = [[(np.array([1.0, 0.0]), 1)] * 5]
    with pytest.raises(ValueError, match="no mode"):
        naive.posterior_mode(disagreeing, 1.0, 10.0)


# --- Answers -------------------------------------------------------------------------------------


@methods
@structures
@updates
@pytest.mark.parametrize("average", [True, False])
def test_probabilities_and_variances_add_up(method, structure, update, average):
    X, z, x_new = clouds()
    answer = method(structure, X, z, x_new, 6, 3, update=update, average=average)
    p = answer.class_probabilities
    assert answer.k_probabilities.shape == answer.k.shape == (6,)
    assert answer.k_probabilities.sum() == pytest.approx(1, abs=1e-12)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    # An indicator's variance is p(1 - p), however it is split.
    total = answer.class_variance_within + answer.class_variance_between
    np.testing.assert_allclose(total, p * (1 - p), atol=1e-12)
    assert (answer.class_variance_between > 0).all() == average


@methods
def test_optimal_shares_all_but_the_classes_with_average(method):
    X, z, x_new = clouds()
    average = method("asymmetric", X, z, x_new, 6, 3)
    best = method("asymmetric", X, z, x_new, 6, 3, average=False)
    np.testing.assert_array_equal(best.k_probabilities, average.k_probabilities)
    assert (best.beta_mean, best.beta_std) == (average.beta_mean, average.beta_std)
    k = best.k[np.argmax(best.k_probabilities)]
    result = minimize_scalar(
        lambda b: (
            -np.log(matrix_joint("asymmetric", X, z, x_new, b, k, 3, "joint").sum())
            - gamma(2.0, scale=10.0).logpdf(b)
        ),
        bounds=(1e-3, 100),
        method="bounded",
        options={"xatol": 1e-9},
    )
    expected = matrix_joint("asymmetric", X, z, x_new, result.x, k, 3, "joint")
    np.testing.assert_allclose(best.class_probabilities, expected / expected.sum(), atol=1e-6)


@structures
@pytest.mark.parametrize(("n_points", "n_classes", "k_max"), [(12, 2, 11), (60, 3, 4), (40, 8, 3)])
def test_twice_the_nodes_change_nothing(structure, n_points, n_classes, k_max):
    X, z, x_new = clouds(n_points, n_classes)
    once = naive.dense_quadrature(structure, X, z, x_new, k_max, n_classes, n_nodes=801)
    twice = naive.dense_quadrature(structure, X, z, x_new, k_max, n_classes, n_nodes=1601)
    assert_equal_answers(once, twice, tolerance=1e-10)


@pytest.mark.parametrize("spread", [0.0, 40.0])
@pytest.mark.parametrize("prior", [(2.0, 10.0), (1.0, 0.1), (5.0, 200.0)])
def test_twice_the_nodes_change_nothing_at_the_extremes(spread, prior):
    """Labels without any order pull beta to 0, separated classes leave it to the prior."""
    X, z, x_new = clouds(n_points=40)
    X = X + spread * z[:, np.newaxis]
    answer = partial(
        naive.dense_quadrature, "boltzmann2", X, z, x_new, 6, 3,
        prior_shape=prior[0], prior_scale=prior[1],
    )  # fmt: skip
    once, twice = answer(n_nodes=801), answer(n_nodes=1601)
    np.testing.assert_allclose(once.beta_mean, twice.beta_mean, rtol=1e-10)
    np.testing.assert_allclose(once.k_probabilities, twice.k_probabilities, atol=1e-10)
    np.testing.assert_allclose(once.class_probabilities, twice.class_probabilities, atol=1e-10)


def test_with_equal_likelihoods_the_prior_comes_back():
    """One class: the likelihood is 1, so beta is Gamma(2, scale 10) and K uniform."""
    X, _, x_new = clouds()
    answer = naive.dense_quadrature("asymmetric", X, np.zeros(14, dtype=int), x_new, 5, 1)
    np.testing.assert_allclose(answer.k_probabilities, 0.2, rtol=1e-12)
    assert answer.beta_mean == pytest.approx(20.0, rel=1e-11)
    assert answer.beta_std == pytest.approx(np.sqrt(200.0), rel=1e-11)


@methods
@structures
@updates
def test_class_names_do_not_matter(method, structure, update):
    X, z, x_new = clouds()
    new_names = np.array([2, 0, 1])
    before = method(structure, X, z, x_new, 4, 3, update=update)
    after = method(structure, X, new_names[z], x_new, 4, 3, update=update)
    np.testing.assert_allclose(
        after.class_probabilities[new_names], before.class_probabilities, atol=1e-11
    )
    np.testing.assert_allclose(after.k_probabilities, before.k_probabilities, atol=1e-11)


@methods
@structures
@updates
def test_row_order_does_not_matter_without_ties(method, structure, update):
    X, z, x_new = clouds()
    order = np.random.default_rng(1).permutation(14)
    before = method(structure, X, z, x_new, 4, 3, update=update)
    after = method(structure, X[order], z[order], x_new, 4, 3, update=update)
    assert_equal_answers(after, before, tolerance=1e-10)


def test_k_is_averaged_with_its_posterior():
    """At 0, K = 2 sees one neighbor of each class; K = 1 sees -1 by the tie rule, class 0."""
    X = np.array([[-3.0], [-2.0], [-1.0], [1.0], [2.0], [3.0]])
    z = np.array([0, 1, 0, 1, 0, 1])
    k1 = naive.dense_quadrature("asymmetric", X, z, [0.0], 1, 2, update="conditional")
    both = naive.dense_quadrature("asymmetric", X, z, [0.0], 2, 2, update="conditional")
    expected = both.k_probabilities @ [k1.class_probabilities[0], 0.5]
    assert k1.class_probabilities[0] > 0.5
    assert both.class_probabilities[0] == pytest.approx(expected, abs=1e-12)


# --- Leave-one-out -------------------------------------------------------------------------------


@structures
def test_joint_leave_one_out_keeps_the_graph(structure):
    """All other rows with row i as the new point are the training set: only z_i varies."""
    X, z, _ = clouds()
    for i, n_neighbors in product([0, 7, 13], [1, 4]):
        removed = naive.log_joint(
            structure, np.delete(X, i, axis=0), np.delete(z, i), X[i], BETA, n_neighbors, 3
        )
        for c in range(3):
            labels = z.copy()
            labels[i] = c
            kept = naive.log_pseudo_likelihood(structure, X, labels, BETA, n_neighbors, 3)
            np.testing.assert_allclose(removed[c], kept, atol=1e-12)


@methods
@structures
def test_joint_leave_one_out_never_sees_the_label(method, structure):
    X, z, _ = clouds()
    other = np.where(np.arange(14) == 4, (z + 1) % 3, z)
    a = naive.leave_one_out(method, structure, X, z, 4, 3, 3)
    b = naive.leave_one_out(method, structure, X, other, 4, 3, 3)
    assert_equal_answers(a, b, tolerance=0)


@methods
@structures
@pytest.mark.parametrize("update", ["sum", "Joint"])
def test_unknown_update_is_refused(method, structure, update):
    X, z, x_new = clouds()
    with pytest.raises(ValueError, match="update must be"):
        method(structure, X, z, x_new, 2, 3, update=update)
    with pytest.raises(ValueError, match="update must be"):
        naive.leave_one_out(method, structure, X, z, 0, 2, 3, update=update)


@methods
@structures
def test_conditional_leave_one_out_sees_the_label_through_its_neighbors_only(method, structure):
    """Row i's own term is divided out; the terms of those that have i as a neighbor stay."""
    X, z, _ = clouds()
    X = np.vstack([X, [[50.0, 50.0]]])  # nobody's neighbor: with asymmetric its label is unseen
    a = naive.leave_one_out(method, structure, X, np.append(z, 0), 14, 3, 3, update="conditional")
    b = naive.leave_one_out(method, structure, X, np.append(z, 1), 14, 3, 3, update="conditional")
    if structure == "asymmetric":
        assert_equal_answers(a, b, tolerance=1e-12)
    else:
        assert np.abs(a.class_probabilities - b.class_probabilities).max() > 1e-6


# --- Baselines -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_neighbors", [1, 3, 7])
def test_asymmetric_vote_equals_scikit_learn(n_neighbors):
    X, z, _ = clouds(n_points=30, n_classes=2)
    new = np.random.default_rng(3).normal(size=(20, 2)) + 0.6
    expected = KNeighborsClassifier(n_neighbors).fit(X, z).predict(new)
    actual = [naive.vote("asymmetric", X, z, x, n_neighbors, 2)[0] for x in new]
    assert actual == expected.tolist()


def test_vote_ties_go_to_the_nearer_class():
    X = np.array([[1.0], [-2.0], [3.0], [-4.0]])
    assert naive.vote("asymmetric", X, [1, 0, 0, 1], [0.0], 4, 2)[0] == 1  # 1 4 before 2 3
    assert naive.vote("asymmetric", X, [1, 0, 0, 1], [0.0], 3, 2)[0] == 0  # no tie: 1 against 2
    assert naive.vote("asymmetric", X, [2, 1, 0, 0], [0.0], 2, 3)[0] == 2  # 1 before 2


def test_vote_ties_go_to_the_nearer_class_whatever_its_index():
    X = np.array([[4.0], [-3.0], [2.0], [-1.0]])
    assert naive.vote("asymmetric", X, [1, 0, 0, 1], [0.0], 4, 2)[0] == 1


def test_vote_at_equal_distances_goes_to_the_lower_index():
    X = np.array([[2.0], [1.0], [-1.0], [-2.0]])
    label, counts = naive.vote("asymmetric", X, [0, 1, 0, 1], [0.0], 4, 2)
    assert (label, list(counts)) == (1, [2, 2])  # both 1 2; index 1 is the first at distance 1
    assert naive.vote("asymmetric", X, [1, 0, 1, 0], [0.0], 4, 2)[0] == 0


def test_vote_counts_mutual_neighbors_twice_in_boltzmann_only():
    # K = 1, the new point at 0: ne(new) = {0}; 0 and 2 have it as their nearest, 1 has 3.
    X = np.array([[1.0], [9.0], [-1.5], [9.5]])
    z = [0, 1, 1, 1]
    assert list(naive.vote("asymmetric", X, z, [0.0], 1, 2)[1]) == [1, 0]
    assert list(naive.vote("boltzmann", X, z, [0.0], 1, 2)[1]) == [2, 1]
    label, counts = naive.vote("boltzmann2", X, z, [0.0], 1, 2)
    assert (label, list(counts)) == (0, [1, 1])  # 1 before 1.5


@structures
def test_pknn_takes_the_mode_of_the_training_posterior(structure):
    X, z, x_new = clouds()
    beta, p = naive.pknn(structure, X, z, x_new, 3, 3)
    result = minimize_scalar(
        lambda b: (
            -np.log(matrix_pseudo_likelihood(structure, X, z, b, 3, 3))
            - gamma(2.0, scale=10.0).logpdf(b)
        ),
        bounds=(1e-3, 100),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert beta == pytest.approx(result.x, abs=1e-5)
    expected = matrix_joint(structure, X, z, x_new, beta, 3, 3, "joint")
    np.testing.assert_allclose(p, expected / expected.sum(), atol=1e-12)
