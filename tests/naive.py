"""The model the slow obvious way, straight from the paper's equations: the oracle for fast code.

Loops over points, neighbors from sorting all distances, no tables and no shortcuts; only beta (and
the classes of one term) are numpy arrays. Labels are 0..C-1. The augmented set is the training
points in order, then the new point at index N, so sorting by (distance, index) is the tie rule.
Distances that agree to a relative 1e-12 are equal.

A log pseudo-likelihood is kept as a list of terms (s_i, z_i), one for each point, where s_i[c] is
the share of class c in point i's neighborhood, and a model of one K as one such list for each
class c that the new point may have.
"""

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp

STRUCTURES = ("asymmetric", "boltzmann", "boltzmann2")


def euclidean(a, b):
    return np.sqrt(((a - b) ** 2).sum())


@dataclass(frozen=True)
class Answer:
    """Posterior summaries for one new point; shapes (n_k,) or (n_classes,), else numbers."""

    k: np.ndarray
    k_probabilities: np.ndarray
    class_probabilities: np.ndarray
    beta_mean: float
    beta_std: float
    class_variance_within: np.ndarray
    class_variance_between: np.ndarray


def augment(X, x_new):
    """The training points and, last, the new point."""
    return np.vstack([np.asarray(X, dtype=float), np.asarray(x_new, dtype=float)])


# --- Neighbors -----------------------------------------------------------------------------------


def neighbors(points, i, n_neighbors, distance=euclidean):
    """ne(i): the K nearest other points, nearest first, the lower index first in a tie."""
    points = np.asarray(points, dtype=float)
    if not 1 <= n_neighbors <= len(points) - 1:
        raise ValueError(f"n_neighbors must be in 1..{len(points) - 1}, got {n_neighbors}.")
    return in_order(points.tobytes(), points.shape, i, distance)[:n_neighbors]


@lru_cache(maxsize=1000)
def in_order(points, shape, i, distance):
    """All points but i, nearest first; found once for all K."""
    points = np.frombuffer(points).reshape(shape)
    others = [j for j in range(len(points)) if j != i]
    apart = {j: distance(points[i], points[j]) for j in others}
    others.sort(key=lambda j: apart[j])
    # Where the next distance is larger by more than rounding, a new group of ties begins.
    group = {others[0]: 0}
    for before, j in pairwise(others):
        group[j] = group[before] + (apart[j] > apart[before] * (1 + 1e-12))
    return sorted(others, key=lambda j: (group[j], j))


def neighborhood(structure, points, n_neighbors, distance=euclidean):
    """For every point its neighbors (with repetition) and the denominator of its shares.

    asymmetric: ne(i) and K (eq. 1). boltzmann: ne(i), then every k with i in ne(k), and K (eq. 2).
    boltzmann2: U(i), the union of the two without repetition, and |U(i)| ("equal weights").
    mutual, the example of docs/extending.md: those in ne(i) that have i in theirs, and K.
    """
    if structure not in (*STRUCTURES, "mutual"):
        raise ValueError(f"structure must be one of {STRUCTURES}, got {structure!r}.")
    n_points = len(points)
    forward = [neighbors(points, i, n_neighbors, distance) for i in range(n_points)]
    members, denominators = [], []
    for i in range(n_points):
        reverse = [k for k in range(n_points) if i in forward[k]]
        if structure == "asymmetric":
            members.append(list(forward[i]))
            denominators.append(n_neighbors)
        elif structure == "boltzmann":
            members.append(forward[i] + reverse)
            denominators.append(n_neighbors)
        elif structure == "mutual":
            members.append([j for j in forward[i] if j in reverse])
            denominators.append(n_neighbors)
        else:
            union = sorted(set(forward[i]) | set(reverse))
            members.append(union)
            denominators.append(len(union))
    return members, denominators


# --- Terms of the log pseudo-likelihood ----------------------------------------------------------


def counts(members, labels, n_classes):
    """How often each class occurs among the given neighbors, shape (n_classes,)."""
    count = np.zeros(n_classes, dtype=int)
    for j in members:
        count[labels[j]] += 1
    return count


def terms_of(graph, labels, n_classes):
    """The terms (s_i, z_i) of all points of a neighborhood graph; s_i has shape (n_classes,)."""
    return [
        (counts(members, labels, n_classes) / denominator, label)
        for members, denominator, label in zip(*graph, labels, strict=True)
    ]


def log_sum_of_terms(terms, beta, derivatives=False):
    """Sum over terms of beta*s(z) - log sum_c exp(beta*s(c)), like beta (eqs. 1 and 2).

    With derivatives=True also the first and second derivative in beta.
    """
    if derivatives:
        return tuple(part[0] for part in log_sums([terms], beta, derivatives))
    return log_sums([terms], beta)[0]


def log_sums(model, beta, derivatives=False):
    """The same for each list of terms of a model, log p(z, z'=c | beta, K): (n_lists, *beta.shape).

    Equal terms, in whichever list, are worked out once, and all of them side by side: arrays are
    (n_terms, n_classes, n_beta), and (n_terms, n_beta) once the classes are summed up.
    """
    beta = np.asarray(beta, dtype=float)
    numbers = [Counter((tuple(s.tolist()), label) for s, label in terms) for terms in model]
    different = list(set().union(*numbers))
    number = np.array([[terms[term] for term in different] for terms in numbers])
    s = np.array([shares for shares, _ in different])[:, :, np.newaxis]
    own = s[np.arange(len(different)), [label for _, label in different]]
    exponents = s * beta.ravel()
    # The largest exponent is taken out: exp must not overflow.
    largest = exponents.max(axis=1)
    shifted = np.exp(exponents - largest[:, np.newaxis])
    total = shifted.sum(axis=1)
    parts = [own * beta.ravel() - largest - np.log(total)]
    if derivatives:
        probability = shifted / total[:, np.newaxis]
        mean = (s * probability).sum(axis=1)
        parts += [own - mean, mean**2 - (s**2 * probability).sum(axis=1)]
    parts = [(number @ part).reshape(-1, *beta.shape) for part in parts]
    return tuple(parts) if derivatives else parts[0]


def log_pseudo_likelihood(
    structure, points, labels, beta, n_neighbors, n_classes, distance=euclidean, derivatives=False
):
    """log p(z | beta, K) of a fully labeled set (eq. 1, eq. 2, "equal weights"), like beta."""
    graph = neighborhood(structure, points, n_neighbors, distance)
    return log_sum_of_terms(terms_of(graph, labels, n_classes), beta, derivatives)


def joint_terms(structure, X, z, x_new, n_neighbors, n_classes, update, distance=euclidean):
    """For each class c the terms whose sum is log p(z, z'=c | beta, K)."""
    if update not in ("joint", "conditional"):
        raise ValueError(f"update must be 'joint' or 'conditional', got {update!r}.")
    graph = neighborhood(structure, augment(X, x_new), n_neighbors, distance)
    # The new point joins the field, all N+1 points have a term.
    model = [terms_of(graph, [*z, c], n_classes) for c in range(n_classes)]
    if update == "conditional":  # p(z | beta, K) of the training points alone, then z' given z
        training = terms_of(neighborhood(structure, X, n_neighbors, distance), z, n_classes)
        model = [[*training, terms[-1]] for terms in model]
    return model


def log_joint(
    structure, X, z, x_new, beta, n_neighbors, n_classes, update="joint", distance=euclidean
):
    """log p(z, z'=c | beta, K), shape (n_classes, n_beta)."""
    model = joint_terms(structure, X, z, x_new, n_neighbors, n_classes, update, distance)
    return log_sums(model, beta)


# --- The posterior of beta for one K -------------------------------------------------------------


def log_prior(beta, prior_shape, prior_scale):
    """log Gamma(beta; shape, scale)."""
    return (
        (prior_shape - 1) * np.log(beta)
        - beta / prior_scale
        - gammaln(prior_shape)
        - prior_shape * np.log(prior_scale)
    )


def log_unnormalized_posterior(model, beta, prior_shape, prior_scale):
    """log[p(beta) sum_c p(z, z'=c | beta, K)] with its first and second derivative in beta."""
    beta = np.asarray(beta, dtype=float)
    value, d1, d2 = log_sums(model, beta, derivatives=True)  # (n_classes, *beta.shape)
    log_marginal = logsumexp(value, axis=0)
    weight = np.exp(value - log_marginal)
    slope = (weight * d1).sum(axis=0)
    curvature = (weight * (d2 + (d1 - slope) ** 2)).sum(axis=0)
    return (
        log_marginal + log_prior(beta, prior_shape, prior_scale),
        slope + (prior_shape - 1) / beta - 1 / prior_scale,
        curvature - (prior_shape - 1) / beta**2,
    )


def posterior_mode(model, prior_shape, prior_scale):
    """beta*(K), the highest mode in beta > 0: every sign change of the slope, then its root."""

    def slope(beta):
        return float(log_unnormalized_posterior(model, beta, prior_shape, prior_scale)[1])

    grid = np.geomspace(1e-6 * min(1, prior_scale), 1e3 + 10 * prior_shape * prior_scale, 250)
    d1 = log_unnormalized_posterior(model, grid, prior_shape, prior_scale)[1]
    modes = [
        brentq(slope, grid[q], grid[q + 1], xtol=1e-13, rtol=1e-14)
        for q in range(len(grid) - 1)
        if d1[q] > 0 >= d1[q + 1]
    ]
    if not modes:
        raise ValueError("The posterior of beta has no mode inside beta > 0.")
    # A sum over c of log-concave functions may have several modes.
    return max(
        modes, key=lambda b: log_unnormalized_posterior(model, b, prior_shape, prior_scale)[0]
    )


def conditional(log_p):
    """p(z'=c | beta, Y, K) from log p(z, z'=c | beta, K): the share of each class (axis -2)."""
    return np.exp(log_p - logsumexp(log_p, axis=-2, keepdims=True))


# --- Both methods, for the models of all candidates of K -----------------------------------------


def averaged(weights, p, k_probabilities, beta_mean, beta_std):
    """KOREA (average): E(z'|Y) and the two parts of V(z'|Y), for the indicator of each class.

    weights: (n_k, n_beta), sum 1. p: p(z'=c | beta, Y, K), shape (n_k, n_classes, n_beta).
    """
    weights = weights[:, np.newaxis, :]
    mean = (weights * p).sum(axis=(0, 2))
    return Answer(
        k=np.arange(1, len(k_probabilities) + 1),
        k_probabilities=k_probabilities,
        class_probabilities=mean,
        beta_mean=beta_mean,
        beta_std=beta_std,
        class_variance_within=(weights * p * (1 - p)).sum(axis=(0, 2)),
        class_variance_between=(weights * (p - mean[:, np.newaxis]) ** 2).sum(axis=(0, 2)),
    )


def optimal(answer, model, beta):
    """KOREA (optimal): the conditional at one K and beta takes the place of the average."""
    p = conditional(log_sums(model, [beta]))[:, 0]
    return replace(
        answer,
        class_probabilities=p,
        class_variance_within=p * (1 - p),
        class_variance_between=np.zeros_like(p),
    )


def first_largest(probabilities):
    """The place of the largest; of those that are equal but for rounding, the first."""
    return np.argmax(probabilities >= (1 - 1e-9) * max(probabilities))


def integrate_densely(models, average, prior_shape, prior_scale, n_nodes=801, log_prior_k=0.0):
    """p(K, beta | Y) by the trapezoidal rule in u = log(beta); log p(K) is 0 if uniform."""
    # Toward 0 the density falls as beta**shape, toward infinity at least as exp(-beta / scale).
    low = min(0.0, np.log(prior_scale)) - 7 - 40 / prior_shape
    high = np.log(prior_scale * (prior_shape + 100))
    u = np.linspace(low, high, n_nodes)
    beta = np.exp(u)
    log_p = np.array([log_sums(model, beta) for model in models])  # (n_k, n_classes, n_nodes)
    # The Jacobian, d beta = beta du, is the + u.
    log_density = logsumexp(log_p, axis=1) + log_prior(beta, prior_shape, prior_scale) + u
    log_density += np.reshape(log_prior_k, (-1, 1))
    weights = np.exp(log_density - log_density.max())
    weights[:, [0, -1]] /= 2
    weights /= weights.sum()
    if weights[:, [0, -1]].sum() > 1e-14:
        raise ValueError("The grid in log(beta) cuts off a tail of the posterior.")
    k_probabilities = weights.sum(axis=1)
    beta_mean = (weights * beta).sum()
    beta_std = np.sqrt((weights * (beta - beta_mean) ** 2).sum())
    answer = averaged(weights, conditional(log_p), k_probabilities, beta_mean, beta_std)
    if average:
        return answer
    best = models[first_largest(k_probabilities)]
    return optimal(answer, best, posterior_mode(best, prior_shape, prior_scale))


def log_normal(x, mu, sigma):
    return -0.5 * ((x - mu) / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2 * np.pi)


def integrate_by_algorithm_1(models, average, prior_shape, prior_scale, log_prior_k=0.0):
    """Algorithm 1: Laplace for each K, then the grid mu_beta + i sigma_beta."""
    mu, sigma, log_alpha = [], [], []
    for model in models:
        mode = posterior_mode(model, prior_shape, prior_scale)
        value, _, d2 = log_unnormalized_posterior(model, mode, prior_shape, prior_scale)
        mu.append(mode)
        sigma.append(np.sqrt(-1 / d2))
        log_alpha.append(value - log_normal(mode, mode, sigma[-1]))
    mu, sigma, log_alpha = np.array(mu), np.array(sigma), np.array(log_alpha) + log_prior_k
    alpha = np.exp(log_alpha - logsumexp(log_alpha))
    # The moments of the mixture, eq. "marginal posterior of beta".
    mu_beta = (alpha * mu).sum()
    sigma_beta = np.sqrt((alpha * (sigma**2 + (mu_beta - mu) ** 2)).sum())
    grid = np.array([mu_beta + i * sigma_beta for i in range(-10, 11)])
    grid = grid[grid > 1e-6 * sigma_beta]  # S_beta, its center included
    log_weights = np.array(
        [log_normal(grid, m, s) + a for m, s, a in zip(mu, sigma, log_alpha, strict=True)]
    )
    weights = np.exp(log_weights - logsumexp(log_weights))  # lambda, (n_k, n_grid)
    tau = np.array([conditional(log_sums(model, grid)) for model in models])
    answer = averaged(weights, tau, alpha, mu_beta, sigma_beta)
    best = first_largest(alpha)
    return answer if average else optimal(answer, models[best], mu[best])


# --- The whole way from data to an answer --------------------------------------------------------


def models_of_all_k(structure, X, z, x_new, k_max, n_classes, update, distance, k_values=None):
    """The models of K = 1..k_max, or of `k_values`."""
    return [
        joint_terms(structure, X, z, x_new, k, n_classes, update, distance)
        for k in (range(1, k_max + 1) if k_values is None else k_values)
    ]


def dense_quadrature(
    structure, X, z, x_new, k_max, n_classes, update="joint", average=True,
    prior_shape=2.0, prior_scale=10.0, n_nodes=801, distance=euclidean, k_values=None,
    log_prior=0.0,
):  # fmt: skip
    """The exact posterior of K, beta and z' for one new point."""
    models = models_of_all_k(structure, X, z, x_new, k_max, n_classes, update, distance, k_values)
    return integrate_densely(models, average, prior_shape, prior_scale, n_nodes, log_prior)


def algorithm_1(
    structure, X, z, x_new, k_max, n_classes, update="joint", average=True,
    prior_shape=2.0, prior_scale=10.0, distance=euclidean, k_values=None, log_prior=0.0,
):  # fmt: skip
    """Algorithm 1 of the paper to the letter for one new point."""
    models = models_of_all_k(structure, X, z, x_new, k_max, n_classes, update, distance, k_values)
    return integrate_by_algorithm_1(models, average, prior_shape, prior_scale, log_prior)


def leave_one_out(
    method, structure, X, z, i, k_max, n_classes, update="joint", average=True,
    prior_shape=2.0, prior_scale=10.0, distance=euclidean, **options,
):  # fmt: skip
    """Row i's answer with its label unknown; method is dense_quadrature or algorithm_1.

    joint: row i is removed and comes back as the new point. conditional: row i stays in the
    training graph, p(z | beta, K) is divided by its own conditional, and that one is averaged.
    """
    X, z = np.asarray(X, dtype=float), np.asarray(z)
    if update == "joint":
        return method(
            structure, np.delete(X, i, axis=0), np.delete(z, i), X[i], k_max, n_classes, update,
            average, prior_shape, prior_scale, distance=distance, **options,
        )  # fmt: skip
    if update != "conditional":
        raise ValueError(f"update must be 'joint' or 'conditional', got {update!r}.")
    models = []
    k_values = options.pop("k_values", None)
    options["log_prior_k"] = options.pop("log_prior", 0.0)
    for k in range(1, k_max + 1) if k_values is None else k_values:
        terms = terms_of(neighborhood(structure, X, k, distance), z, n_classes)
        s_i, others = terms[i][0], terms[:i] + terms[i + 1 :]
        models.append([[*others, (s_i, c)] for c in range(n_classes)])
    integrate = {dense_quadrature: integrate_densely, algorithm_1: integrate_by_algorithm_1}
    return integrate[method](models, average, prior_shape, prior_scale, **options)


# --- Baselines -----------------------------------------------------------------------------------


def vote(structure, X, z, x_new, n_neighbors, n_classes, distance=euclidean):
    """Majority vote for the new point: the label and the counts; in a tie the nearer class."""
    points, new = augment(X, x_new), len(X)
    members = neighborhood(structure, points, n_neighbors, distance)[0][new]
    count = counts(members, z, n_classes)

    def nearness(c):
        ranked = sorted((distance(points[new], points[j]), j) for j in members if z[j] == c)
        return [d for d, _ in ranked], [j for _, j in ranked]

    tied = [c for c in range(n_classes) if count[c] == count.max()]
    return min(tied, key=nearness), count


def pknn(
    structure, X, z, x_new, n_neighbors, n_classes, beta=None,
    prior_shape=2.0, prior_scale=10.0, distance=euclidean,
):  # fmt: skip
    """Fixed K: beta at the mode of p(beta | z, K), and p(z'=c | z, beta, K) of the joint model."""
    if beta is None:
        training = terms_of(neighborhood(structure, X, n_neighbors, distance), z, n_classes)
        beta = posterior_mode([training], prior_shape, prior_scale)
    log_p = log_joint(structure, X, z, x_new, [beta], n_neighbors, n_classes, "joint", distance)
    return beta, conditional(log_p)[:, 0]
