"""The field the slow and obvious way: features by loops, a generic optimizer, dense Hessians.

Written from the formulas in docs/field.md and not from the fast code.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import loggamma
from scipy.stats import norm
from sklearn.covariance import ledoit_wolf

FRACTIONS = (1, 2, 4, 8, 16, 32, 64)
RANKS = (1, 2, 5, 13)


def standardized(X, new):
    mean, scale = X.mean(axis=0), X.std(axis=0)
    scale = np.where(scale == 0, 1.0, scale)
    # Half the range beyond the training rows a value counts no more.
    beyond = 0.5 * (X.max(axis=0) - X.min(axis=0))
    new = np.clip(new, X.min(axis=0) - beyond, X.max(axis=0) + beyond)
    return (new - mean) / scale


def normal_scores(X, new):
    """Mid-ranks of each column as normal quantiles of unit variance; new values in between."""
    out = np.empty(new.shape)
    for j in range(X.shape[1]):
        column = X[:, j]
        score = {}
        for value in column:
            rank = (column < value).sum() + ((column == value).sum() + 1) / 2
            score[value] = norm.ppf((rank - 0.5) / len(column))
        deviation = np.std([score[value] for value in column])
        known = sorted(score)
        for i, value in enumerate(new[:, j]):
            below = [k for k in known if k <= value]
            above = [k for k in known if k >= value]
            if deviation == 0:
                out[i, j] = 0.0
            elif not below:
                out[i, j] = score[known[0]] / deviation
            elif not above:
                out[i, j] = score[known[-1]] / deviation
            else:
                a, b = below[-1], above[0]
                share = 0.0 if a == b else (value - a) / (b - a)
                out[i, j] = ((1 - share) * score[a] + share * score[b]) / deviation
    return out


def covariance_within(X, y):
    """S, its shrinkage, and the rows minus the mean of their class."""
    z = np.array([X[i] - X[y == y[i]].mean(axis=0) for i in range(len(X))])
    covariance, shrinkage = ledoit_wolf(z, assume_centered=True)
    return covariance, shrinkage, z


def distances_scores(X, new=None):
    """(n_new, n): Manhattan between normal scores; of the training rows if `new` is None."""
    points = normal_scores(X, X)
    other = points if new is None else normal_scores(X, new)
    return np.array([[np.abs(a - b).sum() for b in points] for a in other])


def distances_within(X, y, new=None):
    """(n_new, n): by S, and between training rows by S without the row that looks."""
    points = standardized(X, X)
    covariance, shrinkage, z = covariance_within(points, y)
    other = points if new is None else standardized(X, new)
    out = np.empty((len(other), len(points)))
    for i, a in enumerate(other):
        S = covariance
        if new is None:
            n_c = (y == y[i]).sum()
            if n_c > 1:
                k = (1 - shrinkage) / len(X) * n_c / (n_c - 1)
                S = covariance - k * np.outer(z[i], z[i])
        inverse = np.linalg.inv(S)
        for j, b in enumerate(points):
            out[i, j] = np.sqrt((a - b) @ inverse @ (a - b))
    return out


def unit(D):
    """The median distance of a training row from its nearest; D is (n, n).

    Where that is zero, of the rows whose nearest is elsewhere, and 1 if there are none.
    """
    nearest = np.array([min(D[i, j] for j in range(len(D)) if j != i) for i in range(len(D))])
    if np.median(nearest) > 0:
        return np.median(nearest)
    return np.median(nearest[nearest > 0]) if (nearest > 0).any() else 1.0


def features(D, y, n_classes, r0, length, fractions, ranks, training):
    """(n_rows, n_classes, n_features) from all distances D (n_rows, n)."""
    out = np.zeros((len(D), n_classes, len(fractions) + len(ranks)))
    for i, row in enumerate(D):
        near = sorted((distance, j) for j, distance in enumerate(row) if not (training and j == i))[
            :length
        ]
        for f, K in enumerate(fractions):
            border = near[K - 1][0]
            tied = [j for d, j in near if abs(d - border) <= 1e-9 * (border + r0)]
            nearer = [j for d, j in near if d < border and j not in tied]
            for j in nearer:
                out[i, y[j], f] += 1 / K
            for j in tied:
                out[i, y[j], f] += (K - len(nearer)) / len(tied) / K
        for f, k in enumerate(ranks):
            for c in range(n_classes):
                mine = [d for d, j in near if y[j] == c]
                r = mine[k - 1] if len(mine) >= k else near[-1][0]
                out[i, c, len(fractions) + f] = -0.5 * np.log((r / r0) ** 2 + 0.01)
    return out


def scales(n, length, y):
    most = min(length, (n - 1) // 2)
    largest = np.bincount(y).max()
    return (
        [K for K in FRACTIONS if most >= K],
        [k for k in RANKS if k <= max(1, min(length, largest - 1))],
    )


def means(X, y, n_classes, new=None):
    """(n_rows, n_classes, 2): what the distance from each class's mean says.

    A training row has neither part in the mean nor in S.
    """
    points = standardized(X, X)
    covariance, shrinkage, z = covariance_within(points, y)
    rows = points if new is None else standardized(X, new)
    d = X.shape[1]
    squares = np.empty((len(rows), n_classes))
    for i, row in enumerate(rows):
        S, others = covariance, np.ones(len(X), dtype=bool)
        if new is None:
            others[i] = False
            n_c = (y == y[i]).sum()
            if n_c > 1:
                S = covariance - (1 - shrinkage) / len(X) * n_c / (n_c - 1) * np.outer(z[i], z[i])
        for c in range(n_classes):
            members = points[others & (y == c)]
            away = row - members.mean(axis=0) if len(members) else np.full(d, np.nan)
            squares[i, c] = away @ np.linalg.inv(S) @ away
        squares[i, np.isnan(squares[i])] = np.nanmax(squares[i])
    return np.stack(
        [-squares / (2 * np.sqrt(d)), -np.sqrt(d) / 2 * np.log(1 + squares / d)], axis=2
    )


def densities(X, y, n_classes, new=None):
    """(n_rows, n_classes, 1): how dense each class is around a row, each with its own covariance.

    Multivariate Student, the predictive density of a normal class under an inverse Wishart prior
    of nu rows' worth of S. A training row has a part in nothing of it, and every other class of
    more than one row is without one too: its i-th, counted round and round, for row i.
    """
    points = standardized(X, X)
    covariance, shrinkage, z = covariance_within(points, y)
    rows = points if new is None else standardized(X, new)
    n, d = X.shape
    # Beyond the rows' span and one more coordinate, dimensions add the same to all.
    p = d if d <= n else n + 1
    log_unit = np.linalg.slogdet(covariance)[1]

    def log_density(row, c, nu, gone):
        S, kept = covariance, np.array([i != gone for i in range(n)])
        if gone is not None and (n_c := (y == y[gone]).sum()) > 1:
            S = covariance - (1 - shrinkage) / n * n_c / (n_c - 1) * np.outer(z[gone], z[gone])
        if gone is not None and c != y[gone] and (y == c).sum() > 1:
            others = np.flatnonzero(y == c)
            kept[others[gone % len(others)]] = False
        members = points[kept & (y == c)]
        m = len(members)
        if m == 0:
            return np.nan
        off = members - members.mean(axis=0)
        A = nu * S + off.T @ off
        away = row - members.mean(axis=0)
        log_volume = np.linalg.slogdet(A)[1] - log_unit - (d - p) * np.log(nu)
        freedom = nu + m + 1
        return (
            loggamma((freedom + p) / 2)
            - loggamma(freedom / 2)
            - p / 2 * np.log(np.pi * (m + 1) / m)
            - log_volume / 2
            - (freedom + p) / 2 * np.log(1 + away @ np.linalg.inv(A) @ away * m / (m + 1))
        )

    grid = [p * 2.0**power for power in range(-5, 13)]
    own = [np.nansum([log_density(points[i], y[i], nu, i) for i in range(n)]) for nu in grid]
    nu = grid[int(np.argmax(own))]
    out = np.array(
        [
            [log_density(row, c, nu, i if new is None else None) for c in range(n_classes)]
            for i, row in enumerate(rows)
        ]
    )
    out = np.where(np.isnan(out), np.nanmin(out, axis=1, keepdims=True), out)
    return out[:, :, None] / np.sqrt(p)


def curves(X, new=None, leading=25):
    """(n_rows, leading) from the kernel between normal scores, all training rows being landmarks.

    No more than 300 of them.
    """
    points = normal_scores(X, X)
    rows = points if new is None else normal_scores(X, new)
    unit = np.median([np.abs(points[i] - points[j]).sum() for i in range(len(X)) for j in range(i)])

    def kernel(rows):
        return np.array([[np.exp(-np.abs(a - b).sum() / unit) for b in points] for a in rows])

    left, values, _ = np.linalg.svd(kernel(points))
    matrix = left[:, :leading] / np.sqrt(values[:leading])
    return kernel(rows) @ matrix - (kernel(points) @ matrix).mean(axis=0)


def crossed(training, G, leading=25):
    """(n_rows, leading): directions of the features of all classes, seen from training rows."""
    before, after = training.reshape(len(training), -1), G.reshape(len(G), -1)
    center = before.mean(axis=0)
    _, _, right = np.linalg.svd(before - center)
    leading = min(leading, *before.shape)
    return (after - center) @ right[:leading].T


def among_equals(X, y):
    """How much of the labels' variance lies within groups of equal rows."""
    within = total = 0.0
    for row, label in zip(X, y, strict=True):
        group = [other == label for x, other in zip(X, y, strict=True) if (x == row).all()]
        within += 1 - np.mean(group)
        total += 1 - np.mean(y == label)
    return within / total


def leading(before, after):
    """All columns, or half as many singular vectors as rows where columns are more than that."""
    n, d = before.shape
    if d <= n / 2:
        return after
    _, _, right = np.linalg.svd(before)
    return after @ right[: max(1, n // 2)].T


def design(X, y, n_classes, new=None, length=128):
    """Own-class features (n_rows, n_classes, n_shared) and what speaks linearly."""
    G = neighbors_say(X, y, n_classes, None, length)
    said = G if new is None else neighbors_say(X, y, n_classes, new, length)
    rows = X if new is None else new
    factor = np.sqrt(min(1, 50 / X.shape[1]))
    columns = [leading(make(X, X), make(X, rows)) for make in (standardized, normal_scores)]
    linear = factor * np.hstack(columns)
    linear = np.hstack([linear, curves(X, new)])
    if among_equals(X, y) <= 0.2:
        linear = np.hstack([linear, crossed(G, said)])
    own = [said, means(X, y, n_classes, new), densities(X, y, n_classes, new)]
    return np.concatenate(own, axis=2), linear


def neighbors_say(X, y, n_classes, new, length):
    """(n_rows, n_classes, n_features) of both views."""
    n = len(X)
    length = min(length, n - 1)
    fractions, ranks = scales(n, length, y)
    parts = []
    for distances in (
        lambda rows: distances_scores(X, rows),
        lambda rows: distances_within(X, y, rows),
    ):
        D = distances(None)
        r0 = unit(D)
        wanted = D if new is None else distances(new)
        parts.append(features(wanted, y, n_classes, r0, length, fractions, ranks, new is None))
    return np.concatenate(parts, axis=2)


def blocks(n_fractions, n_ranks, n_columns, n_curves, n_crossed):
    """(part, first, last) of each block in the order of the fast code."""
    found = []
    for part, widths in (
        ("shared", (n_fractions, n_ranks, n_fractions, n_ranks, 2, 1)),
        ("linear", (n_columns, n_columns, n_curves, n_crossed)),
    ):
        first = 0
        for width in widths:
            found.append((part, first, first + width))
            first += width
    return found


def unpack(w, n_shared, n_linear, n_classes):
    shared, rest = w[:n_shared], w[n_shared:].reshape(n_classes, n_linear + 1)
    return shared, rest[:, :-1], rest[:, -1]


def logits(w, G, linear):
    n_rows, n_classes, n_shared = G.shape
    shared, columns, offset = unpack(w, n_shared, linear.shape[1], n_classes)
    eta = np.empty((n_rows, n_classes))
    for i in range(n_rows):
        for c in range(n_classes):
            eta[i, c] = shared @ G[i, c] + columns[c] @ linear[i] + offset[c]
    return eta


def probabilities(w, G, linear):
    eta = logits(w, G, linear)
    p = np.exp(eta - eta.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def all_features(G, linear):
    """Z (n_rows, n_classes, n_weights): eta_ic = Z_ic . w."""
    n_rows, n_classes, n_shared = G.shape
    width = linear.shape[1] + 1
    Z = np.zeros((n_rows, n_classes, n_shared + n_classes * width))
    for i in range(n_rows):
        for c in range(n_classes):
            Z[i, c, :n_shared] = G[i, c]
            first = n_shared + c * width
            Z[i, c, first : first + width] = np.append(linear[i], 1.0)
    return Z


def mode(G, linear, y, row_weights, precision, start):
    """The mode by a generic optimizer; shared weights are zero or positive."""
    Z = all_features(G, linear)
    n_shared = G.shape[2]

    def minus_log_posterior(w):
        eta = Z @ w
        top = eta.max(axis=1)
        total = top + np.log(np.exp(eta - top[:, None]).sum(axis=1))
        return row_weights @ (total - eta[np.arange(len(y)), y]) + 0.5 * precision @ w**2

    def slope(w):
        eta = Z @ w
        p = np.exp(eta - eta.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        p[np.arange(len(y)), y] -= 1
        return np.einsum("ic,icj->j", p * row_weights[:, None], Z) + precision * w

    bounds = [(0, None)] * n_shared + [(None, None)] * (len(start) - n_shared)
    found = minimize(
        minus_log_posterior,
        start,
        jac=slope,
        method="L-BFGS-B",
        bounds=bounds,
        options={"gtol": 1e-9, "ftol": 0.0, "maxiter": 50000, "maxfun": 100000, "maxcor": 50},
    )
    return found.x


def hessian(G, linear, p, row_weights):
    """The dense matrix of which the evidence takes diagonals: no terms between classes."""
    n_rows, n_classes, n_shared = G.shape
    width = linear.shape[1] + 1
    H = np.zeros((n_shared + n_classes * width,) * 2)
    for i in range(n_rows):
        mean = sum(p[i, c] * G[i, c] for c in range(n_classes))
        for c in range(n_classes):
            off = G[i, c] - mean
            H[:n_shared, :n_shared] += row_weights[i] * p[i, c] * np.outer(off, off)
            z = np.append(linear[i], 1.0)
            part = slice(n_shared + c * width, n_shared + (c + 1) * width)
            bend = row_weights[i] * p[i, c] * (1 - p[i, c]) * n_classes / (n_classes - 1)
            H[part, part] += bend * np.outer(z, z)
    return H


def places(block, n_shared, n_linear, n_classes):
    """Which weights belong to a block."""
    part, first, last = block
    if part == "shared":
        return np.arange(first, last)
    starts = [n_shared + c * (n_linear + 1) for c in range(n_classes)]
    return np.concatenate([start + np.arange(first, last) for start in starts])


def spread(precision, parts, n_shared, n_linear, n_classes):
    every = np.full(n_shared + n_classes * (n_linear + 1), 1 / 9)
    for alpha, block in zip(precision, parts, strict=True):
        every[places(block, n_shared, n_linear, n_classes)] = alpha
    return every


def fit(G, linear, y, row_weights, parts, n_rounds=6):
    """Weights, the blocks' precisions and the log evidence."""
    n_rows, n_classes, n_shared = G.shape
    n_linear = linear.shape[1]
    precision = np.ones(len(parts))
    w = np.zeros(n_shared + n_classes * (n_linear + 1))
    for number in range(n_rounds + 1):
        every = spread(precision, parts, n_shared, n_linear, n_classes)
        w = mode(G, linear, y, row_weights, every, w)
        H = hessian(G, linear, probabilities(w, G, linear), row_weights) + np.diag(every)
        free = np.flatnonzero((w != 0) | (np.arange(len(w)) >= n_shared))
        # A weight that is held at zero has its prior's variance still.
        variance = 1 / every
        variance[free] = np.diag(np.linalg.inv(H[np.ix_(free, free)]))
        if number == n_rounds:
            break
        for b, block in enumerate(parts):
            at = places(block, n_shared, n_linear, n_classes)
            determined = (1 - precision[b] * variance[at]).sum()
            if block[0] != "shared":
                determined *= (n_classes - 1) / n_classes
            precision[b] = (determined + 1) / ((w[at] ** 2).sum() + 0.01)
    p = probabilities(w, G, linear)
    evidence = row_weights @ np.log(p[np.arange(n_rows), y]) - 0.5 * every @ w**2
    few, rest = slice(0, n_shared), slice(n_shared, None)
    for part, factor in ((few, 1.0), (rest, (n_classes - 1) / n_classes)):
        volume = np.log(every[part]).sum() - np.linalg.slogdet(H[part, part])[1]
        evidence += 0.5 * factor * volume
    return w, precision, evidence


def nothing(y, row_weights, n_classes):
    """Offsets alone, and their log evidence: the same model without a feature."""
    G, linear = np.zeros((len(y), n_classes, 0)), np.zeros((len(y), 0))
    w, _, evidence = fit(G, linear, y, row_weights, [], n_rounds=0)
    return w, evidence


def trust(log_evidence, log_evidence_of_nothing):
    odds = np.exp((log_evidence - log_evidence_of_nothing) / 2 - 3)
    return odds / (1 + odds)
