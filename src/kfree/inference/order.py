"""KOREA for any model that has an order: the posterior of the order by Laplace's formula.

The paper, section "Obtaining the optimal number of neighbours K*": with data Y, an order K and
parameters f,

    p(K | Y)  is proportional to  p(Y, f, K) / p_G(f | Y, K)   at the mode f*(K) of f.

p_G is the Gaussian with mean f* whose covariance S is the inverse of the negative Hessian of
log p(Y, f, K) there. In d dimensions its log density at f* is -(d log(2 pi) + log det S) / 2.

A model is any object with the methods of `OrderModel`. `order_posterior` looks at every candidate;
`optimal_order` searches among many and looks at few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import index
from typing import Any, Protocol

import numpy as np
from scipy.optimize import minimize

# Step of the difference formulas, in standard deviations of p_G. They are of fourth order, so that
# it may be large, and rounding does not matter.
STEP = 0.02
# Newton's decrement, which is how far the log joint is below its maximum, at which a mode is found.
DECREMENT = 1e-10
MOST_ROUNDS = 40
# In one round no direction is taken for longer than this many times its present length.
MOST_STRETCH = 32.0


class OrderModel(Protocol):
    """What a model must give.

    A model may also have `gradient(parameters, order)` and `hessian(parameters, order)`, the first
    and second derivatives of `log_joint`. What is missing is computed from differences.
    """

    def start(self, order: int) -> np.ndarray:
        """Parameters (n_parameters,) where the search for the mode begins."""
        ...

    def log_joint(self, parameters: np.ndarray, order: int) -> float:
        """log p(Y, f, K) = log p(Y | f, K) + log p(f | K) + log p(K); -inf where f cannot be.

        Constants that are the same for all orders, such as a uniform log p(K), may be left out.
        """
        ...


@dataclass(frozen=True)
class OrderFit:
    """Laplace's approximation for one order."""

    order: int
    mode: np.ndarray  # (n_parameters,) f*
    covariance: np.ndarray  # (n_parameters, n_parameters) of p_G
    log_joint: float  # log p(Y, f*, K)
    log_evidence: float  # the approximate log p(Y, K)


@dataclass(frozen=True)
class OrderPosterior:
    """The approximate posterior of the order."""

    orders: np.ndarray  # (n_orders,)
    log_evidence: np.ndarray  # (n_orders,) log p(Y, K)
    probabilities: np.ndarray  # (n_orders,) p(K | Y), for K among `orders`
    fits: tuple[OrderFit, ...]  # (n_orders,)

    @property
    def optimal(self) -> int:
        """K*, the most probable order."""
        return int(self.orders[self.probabilities.argmax()])


@dataclass(frozen=True)
class OrderSearch:
    """What a search among many orders found."""

    optimal: int  # K*, the best order of those looked at
    fit: OrderFit  # for that order
    evaluated: OrderPosterior  # of the orders looked at, as if there were no others


def order_posterior(model: OrderModel, orders: Iterable[int]) -> OrderPosterior:
    """The posterior of the order, each candidate looked at.

    Parameters
    ----------
    model : object with the methods of `OrderModel`
    orders : iterable of int
        The candidates, `range(1, k_max + 1)` in the paper.

    Returns
    -------
    OrderPosterior
    """
    check_model(model)
    candidates = [index(order) for order in orders]
    if not candidates or len(set(candidates)) < len(candidates):
        raise ValueError(f"orders must be one or more different integers; got {candidates}.")
    return _posterior([laplace(model, order) for order in candidates])


def optimal_order(
    model: OrderModel, max_order: int, *, min_order: int = 1, n_starts: int = 4
) -> OrderSearch:
    """The most probable order, found without looking at every candidate.

    The paper's way when K_max is large: the order is taken for a real number, a quasi-Newton method
    (scipy's L-BFGS-B) climbs log p(Y, K), and the end is rounded. Between integers the log evidence
    is interpolated by a cubic with a continuous slope, so that the model is asked for integers
    only, and for each at most once. From the rounded end single steps lead to an order that is no
    worse than both its neighbors. Starts are evenly spread in the logarithm of the order.

    It can end in a local optimum: p(K | Y) may have several, and what lies between the starts may
    never be seen. More starts make that less likely; only `order_posterior` rules it out.

    Parameters
    ----------
    model : object with the methods of `OrderModel`
    max_order : int
        The largest candidate, K_max.
    min_order : int, default=1
        The smallest candidate.
    n_starts : int, default=4
        How many searches.

    Returns
    -------
    OrderSearch
    """
    check_model(model)
    low, high = index(min_order), index(max_order)
    if low > high:
        raise ValueError(f"max_order must be at least min_order={low}; got {high}.")
    if n_starts < 1:
        raise ValueError(f"n_starts must be at least 1; got {n_starts}.")
    fits: dict[int, OrderFit] = {}

    def log_evidence(order: int) -> float:
        if order not in fits:
            fits[order] = laplace(model, order)
        return fits[order].log_evidence

    def cost(u: np.ndarray) -> tuple[float, np.ndarray]:
        order = min(low - 1 + np.exp(float(u[0])), float(high))
        value, slope = _between(log_evidence, order, low, high)
        return -value, np.array([-slope * (order - low + 1)])

    def climb(order: int) -> None:
        while True:
            near = [k for k in (order, order - 1, order + 1) if low <= k <= high]
            best = max(near, key=log_evidence)
            if best == order:
                return
            order = best

    # In u = log(order - min_order + 1), so that steps are larger among large orders. On 24 kNN
    # posteriors of K = 1..120 this took a quarter fewer evaluations than steps in the order itself
    # and missed the best K once instead of four times.
    end = np.log(high - low + 1)
    for start in np.linspace(0.0, end, n_starts):
        found = minimize(cost, [start], jac=True, method="L-BFGS-B", bounds=[(0.0, end)])
        climb(int(np.rint(low - 1 + np.exp(found.x[0]))))
    # The best may be an order that a search only passed.
    climb(max(list(fits), key=log_evidence))
    evaluated = _posterior([fits[order] for order in sorted(fits)])
    return OrderSearch(evaluated.optimal, fits[evaluated.optimal], evaluated)


def laplace(model: OrderModel, order: int) -> OrderFit:
    """Mode, covariance and evidence for one order.

    The mode is found by a quasi-Newton method (scipy's BFGS). Its own estimate of the Hessian is
    too coarse for an evidence, so Newton's method goes on from there with an accurate one.
    """
    target = _Target(model, order)
    start = target.start()
    n = len(start)
    if n == 0:
        value = target.value(start)
        return OrderFit(order, start, np.zeros((0, 0)), value, value)
    # Trial points may lie where the log joint overflows or does not exist: the search steps back.
    with np.errstate(all="ignore"):
        found = minimize(
            lambda x: -target.value(x),
            start,
            jac=(lambda x: -target.gradient(x)) if target.has_gradient else "3-point",
            method="BFGS",
            options={"gtol": 1e-6},
        )
        mode = found.x if target.value(found.x) >= target.value(start) else start
        mode, covariance, log_det = _settle(target, mode, _root(found.hess_inv))
    value = target.value(mode)
    log_evidence = value + 0.5 * (n * np.log(2.0 * np.pi) + log_det)
    return OrderFit(order, mode, covariance, value, float(log_evidence))


def check_model(model: Any) -> None:
    """Raise unless a model has the methods that are needed."""
    wanted = {"start": "start(order)", "log_joint": "log_joint(parameters, order)"}
    missing = [call for name, call in wanted.items() if not callable(getattr(model, name, None))]
    if missing:
        name = type(model).__name__
        raise TypeError(f"A model with an order needs {' and '.join(missing)}; {name} has not.")


class _Target:
    """log p(Y, f, K) of one order as a function of f, with derivatives in a basis."""

    def __init__(self, model: Any, order: int) -> None:
        self.model = model
        self.order = order
        self.has_gradient = callable(getattr(model, "gradient", None))
        self.has_hessian = callable(getattr(model, "hessian", None))

    def start(self) -> np.ndarray:
        start = np.array(self.model.start(self.order), dtype=float)
        if start.ndim != 1:
            raise ValueError(
                f"start({self.order}) must give a one-dimensional array of parameters; "
                f"it has shape {start.shape}."
            )
        value = float(self.model.log_joint(start, self.order))
        if not np.isfinite(value):
            raise ValueError(
                f"log_joint must be finite at start({self.order}), where the search for the mode "
                f"of order {self.order} begins; it is {value}."
            )
        return start

    def value(self, x: np.ndarray) -> float:
        """The log joint; -inf where it does not exist."""
        if not np.isfinite(x).all():
            return -np.inf
        value = float(self.model.log_joint(x, self.order))
        if value == np.inf:
            raise ValueError(
                f"log_joint of order {self.order} is infinite at {x}; its maximum must be finite."
            )
        return -np.inf if np.isnan(value) else value

    def gradient(self, x: np.ndarray) -> np.ndarray:
        if not np.isfinite(self.value(x)):
            return np.full(len(x), np.nan)
        return np.asarray(self.model.gradient(x, self.order), dtype=float)

    def slope(self, x: np.ndarray, basis: np.ndarray) -> np.ndarray:
        """First derivatives along the columns of the basis."""
        if self.has_gradient:
            return self.gradient(x) @ basis
        return np.array([_first(lambda t, b=b: self.value(x + t * b)) for b in basis.T])

    def curvature(self, x: np.ndarray, basis: np.ndarray) -> np.ndarray:
        """Second derivatives along pairs of columns of the basis."""
        if self.has_hessian:
            return basis.T @ np.asarray(self.model.hessian(x, self.order), dtype=float) @ basis
        if self.has_gradient:
            rows = [_first(lambda t, b=b: self.gradient(x + t * b)) for b in basis.T]
            half = np.array(rows) @ basis
            return 0.5 * (half + half.T)
        n = len(x)
        out = np.empty((n, n))
        for i in range(n):
            out[i, i] = _second(lambda t, i=i: self.value(x + t * basis[:, i]))
            for j in range(i):
                diagonal = (basis[:, i] + basis[:, j]) / np.sqrt(2.0)
                along = _second(lambda t, b=diagonal: self.value(x + t * b))
                out[i, j] = out[j, i] = along - 0.5 * (out[i, i] + out[j, j])
        return out


def _settle(
    target: _Target, x: np.ndarray, basis: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Newton's method near a mode: the mode, the covariance there and its log determinant.

    The columns of the basis become those of a square root of the covariance. In these coordinates
    the Hessian is nearly -1, however differently the parameters are scaled, and differences with
    one step serve all of them.
    """
    basis = _scaled(target, x, basis)
    eigenvalues = np.zeros(len(x))
    for _ in range(MOST_ROUNDS):
        slope, curvature = target.slope(x, basis), target.curvature(x, basis)
        if not (np.isfinite(slope).all() and np.isfinite(curvature).all()):
            raise ValueError(
                f"The log joint of order {target.order} has no finite derivatives around {x}, "
                "where its mode should be."
            )
        eigenvalues, vectors = np.linalg.eigh(-curvature)
        positive = np.maximum(eigenvalues, MOST_STRETCH**-2)
        slope = slope @ vectors
        found = 0.5 * (slope * slope / positive).sum() < DECREMENT
        sound = eigenvalues.min() > (0.0 if target.has_hessian else 0.5)
        if found and sound:
            root = basis @ (vectors / np.sqrt(eigenvalues))
            return x, root @ root.T, 2.0 * float(np.linalg.slogdet(root)[1])
        x = _uphill(target, x, basis @ (vectors @ (slope / positive)))
        basis = basis @ (vectors / np.sqrt(positive))
    if eigenvalues.min() <= 0.0:
        raise ValueError(
            f"The Hessian of the negative log joint of order {target.order} is not positive "
            f"definite at {x}: Laplace's formula needs a mode at which every direction falls."
        )
    raise ValueError(
        f"No mode of the log joint of order {target.order} was found; the search ended at {x}."
    )


def _uphill(target: _Target, x: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Newton's step, halved until the log joint does not fall."""
    value = target.value(x)
    enough = value - 1e-12 * max(1.0, abs(value))
    for _ in range(30):
        if target.value(x + step) >= enough:
            return x + step
        step = 0.5 * step
    return x


def _scaled(target: _Target, x: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """The basis with each column as long as it takes for the log joint to fall by about 1/2.

    The mean of both sides is taken, which the slope does not change.
    """
    value = target.value(x)
    columns = []
    for column in basis.T:
        for _ in range(80):
            sides = target.value(x + column) + target.value(x - column)
            fall = value - 0.5 * sides
            if 0.1 < fall < 2.0:
                break
            column = column * (2.0 if fall <= 0.1 else 0.5)
            if not 1e-12 < np.abs(column).max() < 1e12:
                break
        columns.append(column)
    return np.column_stack(columns)


def _root(covariance: np.ndarray) -> np.ndarray:
    """A square root of BFGS's inverse Hessian, of the identity where that has none."""
    if np.isfinite(covariance).all():
        eigenvalues, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
        if eigenvalues.min() > 1e-12 * eigenvalues.max():
            return vectors * np.sqrt(eigenvalues)
    return np.eye(len(covariance))


def _first(f: Callable) -> Any:
    """The first derivative at zero, to fourth order."""
    h = STEP
    return (8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * h)


def _second(f: Callable) -> Any:
    """The second derivative at zero, to fourth order."""
    h = STEP
    near, far = f(h) + f(-h), f(2.0 * h) + f(-2.0 * h)
    return (16.0 * near - far - 30.0 * f(0.0)) / (12.0 * h * h)


def _between(
    log_evidence: Callable[[int], float], order: float, low: int, high: int
) -> tuple[float, float]:
    """Value and slope of the cubic between two integers.

    At an integer the slope is that from one neighbor to the other.
    """
    if low == high:
        return log_evidence(low), 0.0
    k = min(int(np.floor(order)), high - 1)
    t = order - k
    values = [log_evidence(k), log_evidence(k + 1)]
    slopes = []
    for i in (k, k + 1):
        below, above = max(i - 1, low), min(i + 1, high)
        slopes.append((log_evidence(above) - log_evidence(below)) / (above - below))
    rise = values[1] - values[0]
    # Hermite's cubic: a + b t + c t^2 + d t^3.
    c = 3.0 * rise - 2.0 * slopes[0] - slopes[1]
    d = slopes[0] + slopes[1] - 2.0 * rise
    value = values[0] + t * (slopes[0] + t * (c + t * d))
    return value, slopes[0] + t * (2.0 * c + 3.0 * t * d)


def _posterior(fits: list[OrderFit]) -> OrderPosterior:
    log_evidence = np.array([fit.log_evidence for fit in fits])
    weight = np.exp(log_evidence - log_evidence.max())
    orders = np.array([fit.order for fit in fits])
    return OrderPosterior(orders, log_evidence, weight / weight.sum(), tuple(fits))
