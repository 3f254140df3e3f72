"""The generic KOREA algorithm against closed forms, quadrature, and the kNN model's own Laplace."""

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale

from kfree import KFreeClassifier, korea
from kfree.inference.order import OrderModel, laplace, optimal_order, order_posterior
from kfree.knn_order import KNNOrderModel

ROOT = Path(__file__).resolve().parent.parent
STRUCTURES = ("asymmetric", "boltzmann", "boltzmann2")


@pytest.fixture
def example(monkeypatch):
    """Import a file of examples/."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    return lambda name: __import__(name)


class Only:
    """A model with some of the methods of another, which counts how often an order is started."""

    def __init__(self, model, *methods):
        self.n_starts = {}
        self.model = model
        for name in methods:
            setattr(self, name, getattr(model, name))

    def start(self, order):
        self.n_starts[order] = self.n_starts.get(order, 0) + 1
        return self.model.start(order)


class Given:
    """Orders with a given log evidence and no parameters."""

    def __init__(self, log_evidence):
        self.log_evidence = log_evidence

    def start(self, order):
        return np.zeros(0)

    def log_joint(self, parameters, order):
        return self.log_evidence(order)


class Function:
    """One function of the parameters for every order."""

    def __init__(self, function, start=(0.0, 0.0)):
        self.function = function
        self.first = np.array(start)

    def start(self, order):
        return self.first

    def log_joint(self, parameters, order):
        return self.function(parameters)


# --- The degree of a polynomial: Laplace is exact ------------------------------------------------


def test_polynomial_example_is_exact(example, capsys):
    posterior, exact = example("order_polynomial").main()
    assert_allclose(posterior.log_evidence, exact, rtol=0, atol=1e-8)
    assert_allclose(posterior.probabilities, np.exp(exact - logsumexp(exact)), atol=1e-8)
    assert posterior.optimal == 3
    assert "most probable degree is 3" in capsys.readouterr().out


@pytest.mark.parametrize("methods", [("log_joint", "gradient"), ("log_joint",)])
def test_polynomial_with_badly_scaled_parameters(example, methods):
    # x in 0..6: the coefficient of x^4 is known 1000 times better than the constant.
    module = example("order_polynomial")
    base = module.example()
    stretched = module.PolynomialRegression(3.0 * (base.x + 1.0), base.y, 0.3, 2.0)
    posterior = order_posterior(Only(stretched, *methods), range(5))
    exact = [stretched.exact_log_evidence(degree) for degree in range(5)]
    # Here the closed form is what loses digits: its covariance matrix is nearly singular.
    assert_allclose(posterior.log_evidence, exact, rtol=0, atol=1e-6)


def test_mode_and_covariance_of_the_polynomial(example):
    model = example("order_polynomial").example()
    fit = laplace(model, 4)
    powers = model.powers(4)
    precision = powers.T @ powers / model.noise**2 + np.eye(5) / model.spread**2
    assert_allclose(fit.covariance, np.linalg.inv(precision), rtol=1e-6, atol=1e-12)
    mode = np.linalg.solve(precision, powers.T @ model.y / model.noise**2)
    assert_allclose(fit.mode, mode, atol=1e-5)
    assert fit.log_joint == model.log_joint(fit.mode, 4)


def test_the_comparison_sees_a_coarse_hessian(example):
    # BFGS's own inverse Hessian, which is not used, would be off by far more than the tolerance.
    from scipy.optimize import minimize

    model = example("order_polynomial").example()
    found = minimize(
        lambda x: -model.log_joint(x, 6), model.start(6), jac=lambda x: -model.gradient(x, 6)
    )
    _, log_det = np.linalg.slogdet(found.hess_inv)
    coarse = -found.fun + 0.5 * (7 * np.log(2 * np.pi) + log_det)
    assert abs(coarse - model.exact_log_evidence(6)) > 1e-4


# --- A Poisson likelihood: Laplace is close ------------------------------------------------------


def test_poisson_example_is_close_to_sampling(example, capsys):
    posterior, sampled, error = example("order_poisson").main(n_draws=5000)
    # Laplace's own error grows with the number of parameters; it stays below 0.05 here.
    assert (np.abs(posterior.log_evidence - sampled) < 0.05 + 4 * error).all()
    assert_allclose(posterior.probabilities, np.exp(sampled - logsumexp(sampled)), atol=0.005)
    assert posterior.optimal == 2
    assert "most probable number of harmonics is 2" in capsys.readouterr().out


def test_poisson_example_against_quadrature(example):
    module = example("order_poisson")
    model = module.example()
    rng = np.random.default_rng(5)
    for order in range(3):
        fit = laplace(model, order)
        exact = module.log_evidence_by_quadrature(model, fit, n_nodes=8)
        # Order 2 has 5 parameters: 10^5 nodes are enough to see that 8^5 were.
        more = module.log_evidence_by_quadrature(model, fit, n_nodes=10)
        assert_allclose(exact, more, atol=2e-4)
        assert abs(fit.log_evidence - exact) < 0.01
        sampled, error = module.log_evidence_by_sampling(model, fit, 5000, rng)
        assert abs(sampled - exact) < 4 * error


def test_derivatives_may_be_left_out(example):
    model = example("order_poisson").example()
    with_gradient = order_posterior(Only(model, "log_joint", "gradient"), range(4))
    without = order_posterior(Only(model, "log_joint"), range(4))
    assert_allclose(with_gradient.log_evidence, without.log_evidence, atol=1e-6)


# --- The kNN model -------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=STRUCTURES)
def classifier(request):
    X, y = load_wine(return_X_y=True)
    return KFreeClassifier(structure=request.param, inference="laplace", k_max=25).fit(scale(X), y)


@pytest.mark.parametrize(
    "methods", [("log_joint", "gradient", "hessian"), ("log_joint", "gradient"), ("log_joint",)]
)
def test_knn_is_one_model_of_the_algorithm(classifier, methods):
    model = Only(KNNOrderModel(classifier), *methods)
    posterior = order_posterior(model, range(1, 26))
    assert_allclose(posterior.probabilities, classifier.k_posterior_, atol=1e-6)
    assert posterior.optimal == classifier.k_optimal_
    gauss = korea.training_gaussians(classifier._model)
    assert_allclose([fit.mode[0] for fit in posterior.fits], gauss.mean[0], rtol=1e-4)
    std = [np.sqrt(fit.covariance[0, 0]) for fit in posterior.fits]
    assert_allclose(std, gauss.std[0], rtol=1e-4)


def test_knn_evidence_is_normalized(classifier):
    posterior = order_posterior(KNNOrderModel(classifier), range(1, 26))
    # Laplace in beta and exact quadrature differ a little.
    exact = classifier._model.posterior.log_normalizer
    assert_allclose(logsumexp(posterior.log_evidence), exact, atol=0.1)


def test_knn_of_two_rows():
    classifier = KFreeClassifier(inference="laplace").fit([[0.0], [1.0]], ["a", "b"])
    posterior = order_posterior(KNNOrderModel(classifier), [1])
    assert_allclose(posterior.probabilities, classifier.k_posterior_)


def test_knn_model_refuses_what_it_cannot_use(classifier):
    with pytest.raises(TypeError, match="needs a KFreeClassifier; got KNeighborsClassifier"):
        KNNOrderModel(KNeighborsClassifier())
    with pytest.raises(NotFittedError):
        KNNOrderModel(KFreeClassifier())
    for order in (0, 26):
        with pytest.raises(ValueError, match=rf"one of the 25 values in 1\.\.25 .* got {order}"):
            laplace(KNNOrderModel(classifier), order)


# --- The search over a real-valued order ---------------------------------------------------------


def test_search_looks_at_few_orders_and_at_each_once():
    model = Only(Given(lambda order: -0.5 * ((order - 137) / 20) ** 2), "log_joint")
    search = optimal_order(model, 1000)
    assert search.optimal == search.fit.order == 137
    assert set(model.n_starts.values()) == {1}
    assert sorted(model.n_starts) == list(search.evaluated.orders)
    assert len(model.n_starts) < 100


@pytest.mark.parametrize("best", [1, 2, 30, 59, 60])
def test_search_finds_optima_at_and_near_the_ends(best):
    search = optimal_order(Given(lambda order: -(abs(order - best) ** 1.5)), 60)
    assert search.optimal == best


@pytest.mark.parametrize(("low", "high"), [(0, 0), (1, 1), (0, 1), (3, 5), (1, 2)])
def test_search_in_short_ranges(low, high):
    search = optimal_order(Given(lambda order: float(order)), high, min_order=low)
    assert search.optimal == high


def test_search_for_the_degree(example):
    model = example("order_polynomial").example()
    assert optimal_order(model, 8, min_order=0).optimal == 3


def test_search_for_the_number_of_neighbors(classifier):
    model = Only(KNNOrderModel(classifier), "log_joint", "gradient", "hessian")
    search = optimal_order(model, 25, n_starts=8)
    assert search.optimal == classifier.k_optimal_
    assert max(model.n_starts.values()) == 1


def test_search_may_end_in_a_local_optimum_and_more_starts_help():
    # A spike at 40 that a search from 1 alone never sees.
    def two_peaks(order):
        return 5.0 * (order == 40) - 0.1 * order

    assert optimal_order(Given(two_peaks), 60, n_starts=1).optimal == 1
    assert order_posterior(Given(two_peaks), range(1, 61)).optimal == 40
    assert optimal_order(Given(two_peaks), 60, n_starts=60).optimal == 40


def test_search_ends_no_worse_than_its_neighbors():
    rng = np.random.default_rng(0)
    for _ in range(20):
        values = rng.normal(size=41).cumsum()
        search = optimal_order(Given(lambda order, v=values: v[order]), 40)
        near = values[max(search.optimal - 1, 1) : search.optimal + 2]
        assert values[search.optimal] == near.max()


# --- What the parameters may look like -----------------------------------------------------------


def test_a_support_with_an_edge():
    # A gamma density, mode (a - 1) s, curvature (a - 1) / mode^2; -inf at and below zero.
    a, s = 5.0, 1e-3

    def log_gamma(x):
        return (a - 1) * np.log(x[0]) - x[0] / s if x[0] > 0 else -np.inf

    fit = laplace(Function(log_gamma, [1.0]), 1)
    assert_allclose(fit.mode, [(a - 1) * s], rtol=1e-4)
    assert_allclose(fit.covariance, [[(a - 1) * s**2]], rtol=1e-4)


def test_parameters_of_very_different_scales():
    scales = np.array([1e-5, 1.0, 1e5])
    target = Function(lambda x: -0.5 * ((x / scales - 1.0) ** 2).sum(), np.zeros(3))
    fit = laplace(target, 1)
    assert_allclose(fit.mode, scales, rtol=1e-4)
    assert_allclose(fit.covariance, np.diag(scales**2), rtol=1e-5, atol=1e-8)
    assert_allclose(fit.log_evidence, 1.5 * np.log(2 * np.pi), atol=1e-5)


def test_a_start_at_the_mode():
    fit = laplace(Function(lambda x: -np.cosh(1e4 * x).sum()), 1)
    assert_allclose(fit.covariance, np.eye(2) * 1e-8, rtol=1e-6, atol=1e-14)


def test_no_parameters():
    posterior = order_posterior(Given(lambda order: np.log(order)), [1, 3])
    assert_allclose(posterior.probabilities, [0.25, 0.75])
    assert posterior.fits[0].covariance.shape == (0, 0)


def test_order_of_the_candidates_is_kept():
    posterior = order_posterior(Given(lambda order: np.log(order)), (k for k in (3, 1)))
    assert list(posterior.orders) == [3, 1]
    assert_allclose(posterior.probabilities, [0.75, 0.25])


# --- Errors --------------------------------------------------------------------------------------


def test_what_a_model_lacks_is_named():
    class Half:
        def start(self, order):
            return np.zeros(1)

    class Nothing:
        start = None

    for function in (order_posterior, optimal_order):
        with pytest.raises(TypeError, match=r"needs log_joint\(parameters, order\); Half has not"):
            function(Half(), [1] if function is order_posterior else 3)
    with pytest.raises(TypeError, match=r"start\(order\) and log_joint\(parameters, order\)"):
        order_posterior(Nothing(), [1])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[0] ** 2 - x[1] ** 2,  # a saddle
        lambda x: -(x[0] ** 2),  # flat in the other direction
        lambda x: x[0] - x[1] ** 2,  # no maximum
        lambda x: 0.0,
    ],
)
def test_a_hessian_that_is_not_positive_definite(function):
    with pytest.raises(ValueError, match="order 7 is not positive definite"):
        laplace(Function(function), 7)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_log_joint_that_is_not_finite(value):
    with pytest.raises(ValueError, match=r"must be finite at start\(2\).*it is"):
        order_posterior(Given(lambda order: value), [2])


def test_a_log_joint_that_becomes_infinite():
    pole = Function(lambda x: np.inf if x[0] > 0.5 else x[0], [0.0])
    with pytest.raises(ValueError, match="order 1 is infinite"):
        laplace(pole, 1)


def test_a_mode_at_an_edge():
    # Rises up to an edge where it ends.
    edge = Function(lambda x: x[0] if x[0] < 1.0 else -np.inf, [0.0])
    with pytest.raises(ValueError, match="order 1"):
        laplace(edge, 1)


def test_parameters_must_be_a_vector():
    with pytest.raises(ValueError, match=r"one-dimensional.*shape \(1, 2\)"):
        laplace(Function(lambda x: 0.0, [[0.0, 0.0]]), 1)


@pytest.mark.parametrize("orders", [[], [1, 2, 1]])
def test_candidates_must_be_different_integers(orders):
    with pytest.raises(ValueError, match="one or more different integers"):
        order_posterior(Given(float), orders)
    with pytest.raises(TypeError):
        order_posterior(Given(float), [1.5])


def test_an_empty_range_is_refused():
    with pytest.raises(ValueError, match="max_order must be at least min_order=1; got 0"):
        optimal_order(Given(float), 0)
    with pytest.raises(ValueError, match="n_starts must be at least 1"):
        optimal_order(Given(float), 5, n_starts=0)


# --- Records and docs ----------------------------------------------------------------------------


def test_records_are_frozen():
    search = optimal_order(Given(float), 5)
    for record, name in [
        (search, "optimal"),
        (search.fit, "order"),
        (search.evaluated, "probabilities"),
    ]:
        with pytest.raises(AttributeError):
            setattr(record, name, None)


def test_the_contract_is_small():
    methods = {name for name in vars(OrderModel) if not name.startswith("_")}
    assert methods == {"start", "log_joint"}


def test_the_page_of_the_docs_runs(capsys):
    text = (ROOT / "docs" / "order.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    namespace: dict = {}
    for block in blocks:
        exec(compile(block, "docs/order.md", "exec"), namespace)
    printed = capsys.readouterr().out.splitlines()
    assert f"This prints `{printed[0]}`" in text
    assert printed[1].split()[0] == "2"
    assert float(printed[2]) < 1e-6
    assert len(blocks) == 4 and "log lik." in printed[3]
