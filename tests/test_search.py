"""Neighbors, forward and reverse, against sorting all distances by (distance, index).

Where order at equal distances matters, coordinates are small whole numbers, so that equal distances
are equal to the last digit however they are computed.
"""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import pairwise_distances

from kfree.neighbors import brute, ordering, tree
from kfree.neighbors import metric as metric_module
from kfree.neighbors import search as search_module
from kfree.neighbors.brute import BruteSearch
from kfree.neighbors.metric import BOOLEAN, METRICS, POWER, make_space
from kfree.neighbors.search import make_search
from kfree.neighbors.tree import TreeSearch

ALGORITHMS = ("kd_tree", "brute")
algorithms = pytest.mark.parametrize("algorithm", ALGORITHMS)


def every(k):
    """Every K up to k as candidates: lists are then in order throughout, and radii complete."""
    return np.arange(1, k + 1)


def searcher(X, metric="euclidean", p=2, params=None, algorithm="brute"):
    """A search over X, and the function that prepares new rows."""
    X = np.asarray(X, dtype=float)
    space = make_space(metric, p, params, X)
    return make_search(space, space.points(X), algorithm), space.points


def nearest(distances, k, left_out=None):
    """The k nearest, where distances that agree to a relative 1e-12 are ties, settled by index."""
    order = [int(j) for j in np.argsort(distances, kind="stable") if j != left_out]
    group, groups = 0, {}
    for before, j in zip([order[0], *order], order, strict=False):
        group += distances[j] > distances[before] * (1.0 + 1e-12)
        groups[j] = group
    return sorted(order, key=lambda j: (groups[j], j))[:k]


def sorted_graph(D, k):
    """The k nearest others of every point of a square table of distances."""
    indices = np.array([nearest(D[i], k, i) for i in range(len(D))]).reshape(len(D), k)
    return indices, np.take_along_axis(D, indices, axis=1)


def sorted_arrivals(D, D_new, k):
    """Forward neighbors of new points, and whom they come near to: (row, point) -> rank.

    D: distances between training points, D_new: from new points (rows) to training points.
    """
    forward = np.array([nearest(distances, k) for distances in D_new])
    _, table = sorted_graph(D, k)
    reverse = {}
    for row in range(len(D_new)):
        for point in range(len(D)):
            ahead = sum(d <= D_new[row, point] * (1.0 + 1e-12) for d in table[point])
            if ahead < k:
                reverse[row, point] = ahead
    return forward, reverse


def assert_graph(graph, D, k, scale=lambda d: d, rtol=1e-11, atol=0.0):
    # Of a chain of ties, each 1e-12 from the next, all have the distance of the largest before.
    indices, distances = sorted_graph(D, k)
    np.testing.assert_array_equal(graph.indices, indices)
    np.testing.assert_allclose(graph.radii, scale(distances), rtol=rtol, atol=atol)


def assert_arrivals(arrivals, D, D_new, k, **_):
    forward, reverse = sorted_arrivals(D, D_new, k)
    np.testing.assert_array_equal(arrivals.forward, forward)
    row, point = arrivals.reverse_row, arrivals.reverse_point
    pairs = list(zip(row.tolist(), point.tolist(), strict=True))
    assert pairs == sorted(reverse)  # ordered by new point, then training point, each once
    assert arrivals.reverse_cell.tolist() == [reverse[pair] for pair in pairs]


def assert_same(a, b):
    """Two graphs, or two arrivals, agree to the last digit."""
    for name in vars(b):
        if not name.startswith("_") and isinstance(getattr(b, name), np.ndarray):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


# --- Every metric --------------------------------------------------------------------------------

RNG = np.random.default_rng(12)
PLANE = RNG.normal(size=(40, 3)) * [1.0, 5.0, 0.3]
NEW = RNG.normal(size=(9, 3)) * [1.0, 5.0, 0.3]
SPREAD = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, -0.2], [0.0, -0.2, 3.0]])
WEIGHT = np.array([2.0, 0.5, 7.0])


def chord(d):
    """Cosine distance 1 - cos as the length of the chord, which orders the same way."""
    return np.sqrt(2.0 * d)


# metric, p, params, the same for pairwise_distances, what kfree calls the distance
MINKOWSKI = [
    *((name, 2, None, {}, np.sqrt if name == "sqeuclidean" else None) for name in sorted(POWER)),
    *(("minkowski", p, None, {"p": p}, None) for p in (0.5, 1, 1.5, 2, 3)),
    ("minkowski", np.inf, None, {"p": np.inf}, None),
    *(
        ("minkowski", p, {"w": WEIGHT}, {"p": p, "w": WEIGHT}, None)
        for p in (0.5, 1, 1.5, 2, 3, np.inf)
    ),
    ("minkowski", 2, {"p": 3}, {"p": 3}, None),
    ("seuclidean", 2, None, {"V": PLANE.var(axis=0, ddof=1)}, None),
    ("seuclidean", 2, {"V": WEIGHT}, {"V": WEIGHT}, None),
    ("mahalanobis", 2, None, {"VI": np.linalg.inv(np.cov(PLANE.T))}, None),
    ("mahalanobis", 2, {"V": SPREAD}, {"VI": np.linalg.inv(SPREAD)}, None),
    ("mahalanobis", 2, {"VI": SPREAD}, {"VI": SPREAD}, None),
    ("cosine", 2, None, {}, chord),
    ("correlation", 2, None, {}, chord),
]


def case_name(case):
    metric, p, params = case[:3]
    return f"{metric}-p{p}-{'+'.join(params) if params else 'plain'}"


def sklearn_name(metric):
    """pairwise_distances knows one metric by fewer names than the neighbor searches."""
    return {"infinity": "chebyshev"}.get(metric, metric)


@pytest.mark.parametrize("case", MINKOWSKI, ids=case_name)
@algorithms
def test_minkowski_like_metrics(case, algorithm):
    metric, p, params, options, scale = case
    if algorithm == "kd_tree" and p < 1:
        pytest.skip("p below 1 is no metric, so no tree can search it")
    search, points = searcher(PLANE, metric, p, params, algorithm)
    D = pairwise_distances(PLANE, metric=sklearn_name(metric), **options)
    D_new = pairwise_distances(NEW, PLANE, metric=sklearn_name(metric), **options)
    # scikit-learn takes euclidean and cosine from a matrix product, which costs it some digits.
    how = {"scale": scale or (lambda d: d), "rtol": 1e-7, "atol": 1e-7}
    for k in (1, 7, 39):
        graph = search.graph(every(k), None)
        assert_graph(graph, D, k, **how)
        arrivals = search.arrivals(points(NEW), every(k), graph.radii, None)
        assert_arrivals(arrivals, D, D_new, k, **how)


def test_two_dimensional_boolean_and_other_metrics_are_all_covered():
    covered = {case[0] for case in MINKOWSKI} | BOOLEAN
    covered |= {"braycurtis", "canberra", "hamming", "haversine", "nan_euclidean", "precomputed"}
    assert covered == set(METRICS)


def check_pairwise(X, new, metric, params, D, D_new, **how):
    search, points = searcher(X, metric, 2, params)
    for k in (1, 5, len(X) - 1):
        graph = search.graph(every(k), None)
        assert_graph(graph, D, k, **how)
        arrivals = search.arrivals(
            points(np.asarray(new, dtype=float)), every(k), graph.radii, None
        )
        assert_arrivals(arrivals, D, D_new, k, **how)


@pytest.mark.parametrize("metric", sorted(BOOLEAN))
def test_boolean_metrics(metric):
    """Three of seven features: most distances are tied."""
    rng = np.random.default_rng(3)
    X, new = rng.integers(0, 2, (30, 7)).astype(bool), rng.integers(0, 2, (8, 7)).astype(bool)
    X[0], new[0] = False, False  # where a metric divides by the number of ones
    D, D_new = (np.array(pairwise_distances(a, X, metric=metric)) for a in (X, new))
    # Rows that the metric cannot compare are never near.
    D[np.isnan(D)], D_new[np.isnan(D_new)] = np.inf, np.inf
    check_pairwise(X, new, metric, None, D, D_new)


@pytest.mark.parametrize("metric", ["braycurtis", "canberra", "hamming"])
def test_metrics_of_whole_numbers(metric):
    rng = np.random.default_rng(4)
    X, new = rng.integers(1, 4, (30, 3)).astype(float), rng.integers(1, 4, (8, 3)).astype(float)
    D, D_new = pairwise_distances(X, metric=metric), pairwise_distances(new, X, metric=metric)
    check_pairwise(X, new, metric, None, D, D_new)


def test_hamming_with_weights():
    rng = np.random.default_rng(4)
    X, new = rng.integers(1, 4, (30, 3)).astype(float), rng.integers(1, 4, (8, 3)).astype(float)
    D, D_new = (pairwise_distances(a, X, metric="hamming", w=WEIGHT) for a in (X, new))
    check_pairwise(X, new, "hamming", {"w": WEIGHT}, D, D_new)


def test_haversine():
    rng = np.random.default_rng(5)
    high = [np.pi / 2, np.pi]
    X, new = rng.uniform(-1, 1, (30, 2)) * high, rng.uniform(-1, 1, (8, 2)) * high
    D, D_new = (pairwise_distances(a, X, metric="haversine") for a in (X, new))
    check_pairwise(X, new, "haversine", None, D, D_new)


def test_nan_euclidean():
    """Missing values are left out and the rest is scaled up; nothing in common is never near."""
    rng = np.random.default_rng(6)
    X, new = rng.integers(0, 5, (30, 4)).astype(float), rng.integers(0, 5, (8, 4)).astype(float)
    X[rng.random(X.shape) < 0.3] = np.nan
    new[rng.random(new.shape) < 0.3] = np.nan
    X[3], new[2] = np.nan, np.nan

    def distances(A):
        D = np.empty((len(A), len(X)))
        for i, a in enumerate(A):
            for j, b in enumerate(X):
                known = ~(np.isnan(a) | np.isnan(b))
                squares = ((a - b)[known] ** 2).sum()
                D[i, j] = np.sqrt(squares * (4 / known.sum())) if known.any() else np.inf
        return D

    D, D_new = distances(X), distances(new)
    np.testing.assert_allclose(  # the same metric as scikit-learn's, which has NaN for infinity
        np.where(np.isinf(D_new), np.nan, D_new),
        pairwise_distances(new, X, metric="nan_euclidean"),
        atol=1e-7,
    )
    check_pairwise(X, new, "nan_euclidean", None, D, D_new)


def test_precomputed():
    D, D_new = pairwise_distances(PLANE, metric="l1"), pairwise_distances(NEW, PLANE, metric="l1")
    before = D.copy(), D_new.copy()
    check_pairwise(D, D_new, "precomputed", None, D, D_new)
    np.testing.assert_array_equal(D, before[0])
    np.testing.assert_array_equal(D_new, before[1])


def test_precomputed_that_is_not_symmetric():
    """Row i holds the distances that i sees; the matrix is taken as it is."""
    rng = np.random.default_rng(7)
    D, D_new = rng.integers(1, 6, (20, 20)).astype(float), rng.integers(1, 6, (6, 20)).astype(float)
    check_pairwise(D, D_new, "precomputed", None, D, D_new)


def test_precomputed_needs_no_zero_diagonal():
    D = pairwise_distances(PLANE, metric="l1")
    np.fill_diagonal(D, 5.0)
    check_pairwise(D, D[:4], "precomputed", None, D, D[:4])


def taxi(a, b, power=1.0):
    return (np.abs(a - b) ** power).sum()


@pytest.mark.parametrize("params", [None, {"power": 2.0}])
def test_callable(params):
    rng = np.random.default_rng(8)
    X, new = rng.integers(0, 4, (25, 2)).astype(float), rng.integers(0, 4, (7, 2)).astype(float)
    D, D_new = (np.array([[taxi(a, b, **(params or {})) for b in X] for a in A]) for A in (X, new))
    check_pairwise(X, new, taxi, params, D, D_new)


def test_cosine_of_zero_and_of_multiples():
    """A row of zeros is at cosine distance 1 from every direction; multiples are tied."""
    X = np.array([[1.0, 0.0], [0.0, 0.0], [2.0, 0.0], [0.0, 4.0], [-1.0, 0.0], [8.0, 0.0]])
    for algorithm in ALGORITHMS:
        search, _ = searcher(X, "cosine", algorithm=algorithm)
        graph = search.graph(every(5), None)
        D = pairwise_distances(X, metric="cosine")
        np.testing.assert_allclose(graph.radii[0] ** 2 / 2, np.sort(D[0])[1:], atol=1e-15)
        assert graph.indices[0].tolist() == [2, 5, 1, 3, 4]
        assert graph.indices[1].tolist() == [0, 2, 3, 4, 5]


def test_seuclidean_and_mahalanobis_with_a_constant_column():
    X = np.column_stack([PLANE, np.full(len(PLANE), 4.0)])
    plain = make_search(*prepared(PLANE, "seuclidean"), "brute").graph(every(9), None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same = make_search(*prepared(X, "seuclidean"), "brute").graph(every(9), None)
        singular = make_search(*prepared(X, "mahalanobis"), "brute").graph(every(9), None)
    np.testing.assert_array_equal(same.indices, plain.indices)
    regular = make_search(*prepared(PLANE, "mahalanobis"), "brute").graph(every(9), None)
    np.testing.assert_array_equal(singular.indices, regular.indices)


def prepared(X, metric):
    space = make_space(metric, 2, None, X)
    return space, space.points(X)


# --- Ties, duplicates, self ----------------------------------------------------------------------

EXACT = ["euclidean", "manhattan", "chebyshev"]


def crowded(kind, n=60, seed=0):
    """Training points and new points with very many equal distances."""
    rng = np.random.default_rng(seed)
    if kind == "grid":
        return rng.integers(0, 5, (n, 2)).astype(float), rng.integers(0, 6, (15, 2)).astype(float)
    if kind == "places":  # more rows in one place than any k
        return rng.integers(0, 2, (n, 1)).astype(float), np.array([[0.0], [1.0], [0.5], [7.0]])
    if kind == "equal":
        return np.full((n, 3), 2.0), np.array([[2.0, 2.0, 2.0], [2.0, 2.0, 3.0]])
    angle = np.arange(n) % 4  # a cross: four points at each distance
    X = np.column_stack([np.cos(angle * np.pi / 2), np.sin(angle * np.pi / 2)]).round()
    return X * (1 + np.arange(n) // 4)[:, None], np.zeros((2, 2))


@pytest.mark.parametrize("kind", ["grid", "places", "equal", "cross"])
@pytest.mark.parametrize("metric", EXACT)
@algorithms
def test_ties(kind, metric, algorithm):
    X, new = crowded(kind)
    D, D_new = pairwise_distances(X, metric=metric), pairwise_distances(new, X, metric=metric)
    search, points = searcher(X, metric, algorithm=algorithm)
    for k in (1, 2, 3, 10, 31, 58, 59):
        graph = search.graph(every(k), None)
        assert_graph(graph, D, k)
        arrivals = search.arrivals(points(new), every(k), graph.radii, None)
        assert_arrivals(arrivals, D, D_new, k)


@pytest.mark.parametrize("case", MINKOWSKI, ids=case_name)
def test_tree_and_brute_agree_to_the_last_digit(case):
    """With ties, where rounding would decide if the two did not compute the same number."""
    metric, p, params, _, _ = case
    if p < 1:
        pytest.skip("p below 1 is no metric, so no tree can search it")
    rng = np.random.default_rng(9)
    X, new = rng.integers(0, 4, (150, 3)) / 3.0, rng.integers(0, 5, (40, 3)) / 3.0
    found = []
    for algorithm in ALGORITHMS:
        search, points = searcher(X, metric, p, params, algorithm)
        graph = search.graph(every(12), None)
        found.append((graph, search.arrivals(points(new), every(12), graph.radii, None)))
    assert_same(found[0][0], found[1][0])
    assert_same(found[0][1], found[1][1])


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "seuclidean", "cosine"])
@algorithms
def test_a_smaller_table_is_the_beginning_of_a_larger_one(metric, algorithm):
    X, _ = crowded("grid", n=80, seed=3)
    search, _ = searcher(X + 1.0, metric, algorithm=algorithm)
    whole = search.graph(every(79), None)
    tied = whole.radii[:, 1:] == whole.radii[:, :-1]
    assert (whole.radii[:, 1:] >= whole.radii[:, :-1]).all()
    assert (whole.indices[:, 1:] > whole.indices[:, :-1])[tied].all()
    assert (np.sort(whole.indices, axis=1) != np.arange(80)[:, None]).all()  # never itself
    for k in (1, 4, 40):
        part = search.graph(every(k), None)
        np.testing.assert_array_equal(part.indices, whole.indices[:, :k])
        np.testing.assert_array_equal(part.radii, whole.radii[:, :k])


@algorithms
def test_self_is_left_out_by_index_and_duplicates_are_not(algorithm):
    search, _ = searcher([[0.0], [0.0], [5.0], [0.0]], algorithm=algorithm)
    graph = search.graph(every(3), None)
    assert graph.indices.tolist() == [[1, 3, 2], [0, 3, 2], [0, 1, 3], [0, 1, 2]]
    assert graph.radii.tolist() == [[0, 0, 5], [0, 0, 5], [5, 5, 5], [0, 0, 5]]


@algorithms
def test_a_new_point_comes_after_training_points_at_its_distance(algorithm):
    # Training points at 0, 0, 0 and 2; the new point equals the first three.
    search, points = searcher([[0.0], [0.0], [0.0], [2.0]], algorithm=algorithm)
    for k, entered in [(1, []), (2, []), (3, [(0, 2), (1, 2), (2, 2)])]:
        graph = search.graph(every(k), None)
        found = search.arrivals(points(np.array([[0.0]])), every(k), graph.radii, None)
        assert found.forward.tolist() == [[0, 1, 2][:k]]
        # Point 3 has 0, 1, 2 at distance 2 and the new point after them: never, up to k = 3.
        pairs = zip(found.reverse_point.tolist(), found.reverse_cell.tolist(), strict=True)
        assert list(pairs) == entered


@algorithms
def test_without_a_table_no_reverse_neighbors_are_sought(algorithm):
    X, new = crowded("grid")
    search, points = searcher(X, algorithm=algorithm)
    found = search.arrivals(points(new), every(4), None, None)
    assert len(found.reverse_row) == len(found.reverse_point) == 0
    D_new = pairwise_distances(new, X)
    np.testing.assert_array_equal(found.forward, np.argsort(D_new, axis=1, kind="stable")[:, :4])


@algorithms
@pytest.mark.parametrize("shift", [1e8, -3e9])
def test_near_duplicates_far_from_the_origin(algorithm, shift):
    """A matrix product would lose every digit of these differences: they are exact in X itself."""
    rng = np.random.default_rng(10)
    small = rng.integers(0, 9, (70, 2)) * 2.0**-10
    new = rng.integers(0, 9, (10, 2)) * 2.0**-10
    outlier = np.array([[5.0, 5.0]])  # far from all, so that no centering helps
    X = np.vstack([small, outlier]) + [shift, -shift]
    D = pairwise_distances(np.vstack([small, outlier]))
    exact = np.array([[np.hypot(*(a - b)) for b in [*small, *outlier]] for a in small])
    D[:70] = np.sqrt(np.round(exact**2 * 2**20)) / 2**10
    D[70] = np.array([np.sqrt(((outlier[0] - b) ** 2).sum()) for b in [*small, *outlier]])
    D_new = np.array([[np.sqrt(((a - b) ** 2).sum()) for b in [*small, *outlier]] for a in new])
    search, points = searcher(X, algorithm=algorithm)
    graph = search.graph(every(12), None)
    assert_graph(graph, D, 12)
    arrivals = search.arrivals(points(new + [shift, -shift]), every(12), graph.radii, None)
    assert_arrivals(arrivals, D, D_new, 12)


@algorithms
def test_widely_different_scales(algorithm):
    """A cluster 1e-4 wide beside points 1e5 away."""
    rng = np.random.default_rng(11)
    X = np.vstack([rng.integers(0, 4, (40, 2)) * 2.0**-14, rng.integers(1, 4, (10, 2)) * 2.0**16])
    D = np.array([[np.sqrt(((a - b) ** 2).sum()) for b in X] for a in X])
    search, points = searcher(X, algorithm=algorithm)
    for k in (3, 45):
        graph = search.graph(every(k), None)
        assert_graph(graph, D, k)
        assert_arrivals(search.arrivals(points(X), every(k), graph.radii, None), D, D, k)


@algorithms
@pytest.mark.parametrize("n_features", [1, 40])
def test_few_and_many_features(algorithm, n_features):
    rng = np.random.default_rng(13)
    X, new = (rng.integers(0, 2, (n, n_features)).astype(float) for n in (50, 12))
    D, D_new = (np.sqrt(((A[:, None] - X) ** 2).sum(axis=2)) for A in (X, new))
    search, points = searcher(X, algorithm=algorithm)
    graph = search.graph(every(8), None)
    assert_graph(graph, D, 8)
    assert_arrivals(search.arrivals(points(new), every(8), graph.radii, None), D, D_new, 8)


@algorithms
def test_two_points(algorithm):
    search, points = searcher([[0.0], [1.0]], algorithm=algorithm)
    graph = search.graph(every(1), None)
    assert graph.indices.tolist() == [[1], [0]]
    found = search.arrivals(points(np.array([[0.25]])), every(1), graph.radii, None)
    assert found.forward.tolist() == [[0]]
    assert found.reverse_point.tolist() == [0, 1]


# --- How the work is cut up ----------------------------------------------------------------------

CUTS = [
    {"BLOCK_DISTANCES": 1, "BLOCK_ROWS": 1, "PAIR_COORDINATES": 1},
    {"BLOCK_DISTANCES": 500, "BLOCK_ROWS": 7, "PAIR_COORDINATES": 5},
]


@pytest.mark.parametrize("cut", CUTS, ids=["ones", "odd"])
@pytest.mark.parametrize("kind", ["grid", "places", "continuous"])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine", "canberra"])
@algorithms
def test_blocks_change_nothing(cut, kind, metric, algorithm, monkeypatch):
    if algorithm == "kd_tree" and metric == "canberra":
        pytest.skip("no tree for this metric")
    rng = np.random.default_rng(14)
    # An angle or a ratio of such numbers is rounded, so the last digit would show a difference.
    X, new = (rng.normal(size=(60, 3)), rng.normal(size=(15, 3)))
    if kind != "continuous":
        X, new = (A + 1.0 for A in crowded(kind))
    search, points = searcher(X, metric, algorithm=algorithm)
    graph = search.graph(every(6), None)
    arrivals = search.arrivals(points(new), every(6), graph.radii, None)
    for name, value in cut.items():
        module = {"PAIR_COORDINATES": ordering, "BLOCK_ROWS": tree}.get(name, brute)
        monkeypatch.setattr(module, name, value)
    search, points = searcher(X, metric, algorithm=algorithm)
    for n_jobs in (None, 2):
        assert_same(search.graph(every(6), n_jobs), graph)
        assert_same(search.arrivals(points(new), every(6), graph.radii, n_jobs), arrivals)


@algorithms
def test_one_new_point_at_a_time(algorithm):
    rng = np.random.default_rng(15)
    X, new = rng.normal(size=(200, 4)), rng.normal(size=(20, 4))
    for metric in ("euclidean", "mahalanobis", "correlation"):
        search, points = searcher(X, metric, algorithm=algorithm)
        table = search.graph(every(10), None).radii
        together = search.arrivals(points(new), every(10), table, None)
        for i in range(len(new)):
            alone = search.arrivals(points(new[[i]]), every(10), table, None)
            mine = together.reverse_row == i
            np.testing.assert_array_equal(alone.forward[0], together.forward[i])
            np.testing.assert_array_equal(alone.reverse_point, together.reverse_point[mine])
            np.testing.assert_array_equal(alone.reverse_cell, together.reverse_cell[mine])


# --- Negative control ----------------------------------------------------------------------------


def test_the_comparison_sees_ties_turned_round():
    X, new = crowded("grid")
    D, D_new = pairwise_distances(X), pairwise_distances(new, X)
    search, points = searcher(X[::-1])
    graph = search.graph(every(5), None)
    turned = type(graph)(graph.k, len(X) - 1 - graph.indices[::-1], graph.radii[::-1])
    with pytest.raises(AssertionError):
        assert_graph(turned, D, 5)
    search, points = searcher(X)
    table = search.graph(every(5), None).radii * (1.0 + 1e-9)
    with pytest.raises(AssertionError):
        assert_arrivals(search.arrivals(points(new), every(5), table, None), D, D_new, 5)


@pytest.mark.parametrize(
    ("n_points", "n_features", "p", "kind"),
    [
        (2_000, 2, 2.0, "TreeOrProducts"),
        (2_000, 8, 2.0, "BruteSearch"),
        (2_000, 8, 1.0, "TreeSearch"),
        (2_000, 8, 0.5, "BruteSearch"),
        (30, 5_000, 2.0, "BruteSearch"),
    ],
)
def test_the_search_suits_the_points(n_points, n_features, p, kind):
    points = np.zeros((n_points, n_features))
    space = make_space("minkowski", p, None, points)
    assert type(search_module.make_search(space, points, "auto")).__name__ == kind


def test_few_neighbors_by_a_tree_and_many_by_products_are_the_same_neighbors(monkeypatch):
    rng = np.random.default_rng(5)
    X, new = rng.integers(0, 9, (600, 2)).astype(float), rng.integers(0, 9, (40, 2)).astype(float)
    search, points = searcher(X, algorithm="auto")
    D, D_new = pairwise_distances(X), pairwise_distances(new, X)
    answered = []
    for part in (TreeSearch, BruteSearch):
        for name in ("_nearest", "_arrive"):
            monkeypatch.setattr(part, name, noting(answered, part, getattr(part, name)))
    few, many = int(search._most), int(search._most) + 1
    for k, part in ((few, TreeSearch), (many, BruteSearch)):
        graph = search.graph(every(k), None)
        assert_graph(graph, D, k)
        answered.clear()
        assert_arrivals(search.arrivals(points(new), every(k), graph.radii, None), D, D_new, k)
        np.testing.assert_array_equal(
            search.nearest(points(new), k)[0], [nearest(d, k) for d in D_new]
        )
        assert set(answered) == {part}


def noting(answered, part, method):
    """The same method, which notes whose it is when it is called."""

    def noted(*args, **kwargs):
        answered.append(part)
        return method(*args, **kwargs)

    return noted


# --- Candidates of K: lists in cells -------------------------------------------------------------

CELLS = np.array([1, 2, 5, 33, 34, 40, 60, 90])


@pytest.mark.parametrize("single", [0, 1 << 14], ids=["float32 products", "float64 products"])
@pytest.mark.parametrize("kind", ["grid", "continuous", "many features"])
@algorithms
def test_lists_are_in_order_across_the_candidates(kind, algorithm, single, monkeypatch):
    monkeypatch.setattr(brute, "SINGLE_POINTS", single)
    rng = np.random.default_rng(21)
    n_features = 30 if kind == "many features" else 3
    X, new = rng.normal(size=(200, n_features)), rng.normal(size=(30, n_features))
    if kind == "grid":
        X, new = (rng.integers(0, 5, A.shape).astype(float) for A in (X, new))
    D, D_new = pairwise_distances(X), pairwise_distances(new, X)
    indices, distances = sorted_graph(D.round(11), 90)
    search, points = searcher(X, algorithm=algorithm)
    graph = search.graph(CELLS, None)
    for k in CELLS:
        np.testing.assert_array_equal(np.sort(graph.indices[:, :k]), np.sort(indices[:, :k]))
    np.testing.assert_array_equal(graph.indices[:, CELLS - 1], indices[:, CELLS - 1])
    np.testing.assert_array_equal(graph.indices[:, :32], indices[:, :32])
    np.testing.assert_allclose(graph.radii, distances[:, CELLS - 1], atol=1e-10)
    arrivals = search.arrivals(points(new), CELLS, graph.radii, None)
    cell = (graph.radii <= D_new[:, :, None] * (1.0 + 1e-11)).sum(axis=2)
    row, point = np.nonzero(cell < len(CELLS))
    np.testing.assert_array_equal(arrivals.reverse_row, row)
    np.testing.assert_array_equal(arrivals.reverse_point, point)
    np.testing.assert_array_equal(arrivals.reverse_cell, cell[row, point])
    some = search.graph(CELLS, None, np.array([3, 77]))
    np.testing.assert_array_equal(some.indices, graph.indices[[3, 77]])


@pytest.mark.parametrize("prepared", [0, metric_module.PREPARED_NUMBERS])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_sparse_and_single_precision_rows_have_the_neighbors_of_the_same_numbers(
    metric, prepared, monkeypatch
):
    monkeypatch.setattr(metric_module, "PREPARED_NUMBERS", prepared)
    rng = np.random.default_rng(22)
    X = (rng.random((150, 40)) * (rng.random((150, 40)) < 0.2)).astype(np.float32)
    X[7] = 0.0  # a row without a direction
    new = X[:20] * np.float32(0.5) + (rng.random((20, 40)) < 0.05)
    exact, points = searcher(X.astype(float), metric)
    graph = exact.graph(CELLS, None)
    arrivals = exact.arrivals(points(new.astype(float)), CELLS, graph.radii, None)
    for convert in (np.asarray, sparse.csr_array):
        space = make_space(metric, 2, None, convert(X))
        kept = space.points(convert(X))
        double = sparse.issparse(kept) or (metric == "cosine" and prepared)
        assert kept.dtype == (np.float64 if double else np.float32)
        search = make_search(space, kept, "auto")
        found = search.graph(CELLS, None)
        np.testing.assert_array_equal(found.indices, graph.indices)
        np.testing.assert_allclose(found.radii, graph.radii, rtol=1e-9, atol=1e-9)
        queries = space.points(convert(new.astype(np.float32)))
        assert_same(search.arrivals(queries, CELLS, graph.radii, None), arrivals)


@algorithms
def test_ties_do_not_hang_on_rounding(algorithm):
    """Standardized whole numbers: equal distances differ in the last digit, whatever the order."""
    rng = np.random.default_rng(23)
    X = rng.integers(1, 6, (300, 4)).astype(float)
    D = pairwise_distances((X * 1.0), metric="sqeuclidean").round()
    scaled = (X - X.mean()) / 1.4142135623730951
    found = searcher(scaled, algorithm=algorithm)[0].graph(every(20), None)
    np.testing.assert_array_equal(found.indices, sorted_graph(D, 20)[0])


@pytest.mark.parametrize("size", [1e-170, 1e-300, 1e155, 1e307])
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation", "manhattan"])
@algorithms
def test_any_size_of_numbers(size, metric, algorithm):
    rng = np.random.default_rng(24)
    X, new = rng.normal(size=(60, 3)), rng.normal(size=(10, 3))
    search, points = searcher(X, metric, algorithm=algorithm)
    plain = search.graph(every(9), None)
    arrived = search.arrivals(points(new), every(9), plain.radii, None)
    search, points = searcher(X * size, metric, algorithm=algorithm)
    graph = search.graph(every(9), None)
    np.testing.assert_array_equal(graph.indices, plain.indices)
    assert_same(search.arrivals(points(new * size), every(9), graph.radii, None), arrived)
