"""The table of criteria against slow calculations from the oracle's terms."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier

import naive
from kfree import KFreeClassifier
from kfree.blocks import PreparedPoints, held_out
from kfree.selection import BOUND_PER_DIVISOR, SelectionTable, selection_table

N_CLASSES = 3
K_MAX = 5
CRITERIA = ["posterior", "aic", "bic", "dic", "loo_accuracy", "loo_log_score"]

structures = pytest.mark.parametrize("structure", naive.STRUCTURES)
updates = pytest.mark.parametrize("update", ["joint", "conditional"])
kinds = pytest.mark.parametrize("kind", ["overlapping", "separated", "noise"])


@cache
def data(kind):
    """Rows without ties in distance, so that a row that comes back keeps its place."""
    rng = np.random.default_rng(7)
    n = 18
    z = np.arange(n) % N_CLASSES
    if kind == "noise":
        return rng.normal(size=(n, 2)), rng.permutation(z)
    apart = {"overlapping": 1.5, "separated": 20.0}[kind]
    return rng.normal(size=(n, 2)) + apart * np.column_stack([z == 0, z == 1]), z


@cache
def table(kind, structure, update="joint", **options):
    X, z = data(kind)
    model = KFreeClassifier(k_max=K_MAX, structure=structure, update=update, **options)
    return selection_table(model.fit(X, z))


def terms(kind, structure, k):
    X, z = data(kind)
    return naive.terms_of(naive.neighborhood(structure, X, k), z, N_CLASSES)


@kinds
@structures
def test_likelihood_aic_and_bic(kind, structure):
    _, z = data(kind)
    found = table(kind, structure)
    for i, k in enumerate(found.k):
        sums = terms(kind, structure, k)
        at_beta = naive.log_sum_of_terms(sums, found.beta[i])
        assert_allclose(found.log_likelihood[i], at_beta, atol=1e-9)
        # In log(1 + beta), because the top may be far out.
        best = minimize_scalar(
            lambda u, sums=sums: -naive.log_sum_of_terms(sums, np.expm1(u)),
            bounds=(0.0, np.log(1e4)),
            method="bounded",
            options={"xatol": 1e-10},
        )
        assert_allclose(found.log_likelihood[i], -best.fun, atol=1e-6)
    assert_allclose(found.aic, 2.0 - 2.0 * found.log_likelihood)
    assert_allclose(found.bic, np.log(len(z)) - 2.0 * found.log_likelihood)


@structures
def test_a_likelihood_without_a_maximum_is_bounded(structure):
    found = table("separated", structure)
    # All neighbors are of the own class: the limit is log 1 for each row.
    assert found.at_bound.all()
    assert_allclose(found.log_likelihood, 0.0, atol=1e-12)
    assert (found.beta >= BOUND_PER_DIVISOR * (1 if structure == "boltzmann2" else found.k)).all()
    assert np.isfinite(found.beta).all()
    assert_allclose(found.aic, 2.0)
    # Equal to rounding: the smallest K is chosen.
    assert found.chosen["aic"] == found.chosen["bic"] == found.chosen["loo_accuracy"] == 1
    assert "> the likelihood rises with beta for ever" in str(found)


@structures
def test_a_limit_that_is_not_zero(structure):
    # K = 2: some rows have one neighbor of each class, so that their terms tend to log(1/2), and
    # no row has more neighbors of the other class.
    X = np.array([[0.0], [1.0], [2.1], [3.0], [4.0], [5.2]])
    z = np.array([0, 0, 0, 1, 1, 1])
    found = selection_table(KFreeClassifier(k_max=2, structure=structure).fit(X, z))
    sums = naive.terms_of(naive.neighborhood(structure, X, 2), z, 2)
    far = naive.log_sum_of_terms(sums, np.array([1e3, 1e4]))
    assert_allclose(far[0], far[1], atol=1e-12)
    assert found.at_bound[1]
    assert_allclose(found.log_likelihood[1], far[1], atol=1e-12)


def test_a_likelihood_that_is_largest_without_neighbors():
    # Every row's nearest neighbors are of the other class.
    X = np.array([[0.0], [1.0], [10.0], [11.0], [20.0], [21.0]])
    z = np.array([0, 1, 0, 1, 0, 1])
    found = selection_table(KFreeClassifier(k_max=1).fit(X, z))
    assert found.beta[0] == 0.0 and not found.at_bound[0]
    assert_allclose(found.log_likelihood, 6 * np.log(0.5))


@kinds
@structures
def test_dic(kind, structure):
    found = table(kind, structure)
    u = np.linspace(-15.0, 8.0, 4001)
    beta = np.exp(u)
    for i, k in enumerate(found.k):
        log_likelihood = naive.log_sum_of_terms(terms(kind, structure, k), beta)
        log_p = log_likelihood + naive.log_prior(beta, 2.0, 10.0) + u
        weight = np.exp(log_p - log_p.max())
        weight /= weight.sum()
        mean = (weight * -2.0 * log_likelihood).sum()
        at_mean = -2.0 * naive.log_sum_of_terms(terms(kind, structure, k), weight @ beta)
        assert_allclose(found.n_effective[i], mean - at_mean, atol=1e-8)
        assert_allclose(found.dic[i], 2.0 * mean - at_mean, atol=1e-8)


def left_out(kind, structure, update, k, i):
    """Class probabilities of row i with its label unknown, for one K."""
    X, z = data(kind)
    if update == "joint":
        model = naive.joint_terms(
            structure, np.delete(X, i, axis=0), np.delete(z, i), X[i], k, N_CLASSES, update
        )
    else:
        every = terms(kind, structure, k)
        model = [[*every[:i], *every[i + 1 :], (every[i][0], c)] for c in range(N_CLASSES)]
    return naive.integrate_densely([model], True, 2.0, 10.0, 401).class_probabilities


@kinds
@structures
@updates
def test_leave_one_out(kind, structure, update):
    _, z = data(kind)
    found = table(kind, structure, update)
    for k in (2, K_MAX):
        p = np.array([left_out(kind, structure, update, k, i) for i in range(len(z))])
        assert_allclose(
            found.loo_log_score[k - 1], np.log(p[np.arange(len(z)), z]).mean(), atol=1e-6
        )
        # Classes can be equally probable; rounding then decides between them on either side.
        others = np.where(np.arange(N_CLASSES) == z[:, None], 0.0, p).max(axis=1)
        ahead = p[np.arange(len(z)), z] - others
        assert (ahead > 1e-9).mean() <= found.loo_accuracy[k - 1] <= (ahead > -1e-9).mean()


def test_the_comparison_sees_the_update():
    # A control: joint and conditional leave-one-out differ by more than the tolerance.
    joint, conditional = (
        table("overlapping", "boltzmann"),
        table("overlapping", "boltzmann", "conditional"),
    )
    assert (np.abs(joint.loo_log_score - conditional.loo_log_score) > 1e-4).all()


@structures
@pytest.mark.parametrize("n", [60, 260])
def test_with_one_k_it_is_the_classifiers_own_leave_one_out(structure, n):
    X, z = make_blobs(n, centers=4, cluster_std=3.0, random_state=0)
    model = KFreeClassifier(k_max=1, structure=structure).fit(X, z)
    p = model.predict_proba(None)
    found = selection_table(model)
    # The classifier takes fewer nodes of beta where these serve.
    assert_allclose(found.loo_log_score[0], np.log(p[np.arange(n), z]).mean(), atol=1e-8)
    # Many classes are equally probable with one neighbor, and rounding decides between them.
    assert_allclose(found.loo_accuracy[0], model.score(None, z), atol=0.02)


@pytest.fixture(scope="module")
def large():
    """Enough rows for reduced rules, and K that the posterior leaves out as hopeless."""
    X, z = make_blobs(300, centers=10, cluster_std=0.7, random_state=2)
    return KFreeClassifier(k_max=40).fit(X, z)


def test_hopeless_k_have_their_row_too(large):
    model = large._model
    k_values, active = large.k_values_.tolist(), model.posterior.rule.candidate
    outside = [k for k in (1, 30, large.k_max_) if k_values.index(k) not in active]
    assert outside
    found = selection_table(large)
    rows = np.arange(len(model.labels))
    u = np.linspace(-3.0, 5.0, 801)
    beta = np.exp(u)
    for k in (*outside, large.k_optimal_):
        i = k_values.index(k)
        curve, only = model.likelihood.curves(np.array([i])), np.zeros(1, dtype=int)
        log_likelihood = curve(beta[None], False, only)[0][0]
        log_p = log_likelihood + model.prior.log_density(beta) + u
        weight = np.exp(log_p - log_p.max())
        weight /= weight.sum()
        mean = (weight * -2.0 * log_likelihood).sum()
        at_mean = curve(np.array([[weight @ beta]]), False, only)[0][0, 0]
        assert_allclose(found.dic[i], 2.0 * mean + 2.0 * at_mean, atol=1e-7)
        values = held_out(PreparedPoints(model), rows, joint=True).at(i).by_label(beta)
        known = values.conditional()
        log_mass = log_p + known.log_total
        mass = np.exp(log_mass - log_mass.max(axis=1, keepdims=True))
        mass /= mass.sum(axis=1, keepdims=True)
        own = known.share.reshape(len(rows), model.n_classes, -1)[rows, model.labels]
        log_score = np.log((mass * own).sum(axis=1)).mean()
        assert_allclose(found.loo_log_score[i], log_score, atol=1e-7)


def test_more_classes_than_are_listed():
    X, z = make_blobs(60, centers=20, cluster_std=4.0, random_state=1)
    model = KFreeClassifier(k_max=1).fit(X, z)
    p = model.predict_proba(None)
    found = selection_table(model)
    assert_allclose(found.loo_log_score[0], np.log(p[np.arange(60), z]).mean(), atol=1e-10)
    assert_allclose(found.loo_accuracy[0], (p.argmax(axis=1) == z).mean())


@pytest.mark.parametrize("inference", ["quadrature", "laplace"])
def test_the_posterior_is_the_estimators_own(inference):
    X, z = data("overlapping")
    model = KFreeClassifier(k_max=K_MAX, inference=inference).fit(X, z)
    found = selection_table(model)
    assert_array_equal(found.posterior, model.k_posterior_)
    assert found.chosen["posterior"] == model.k_optimal_
    # The rest does not depend on it.
    assert_array_equal(found.dic, table("overlapping", "asymmetric").dic)


def test_it_does_not_depend_on_jobs_or_blocks(monkeypatch):
    X, z = data("overlapping")
    monkeypatch.setattr("kfree.selection.BLOCK_NUMBERS", 1)
    found = selection_table(KFreeClassifier(k_max=K_MAX, n_jobs=2).fit(X, z))
    before = table("overlapping", "asymmetric")
    for name, values in found.as_dict().items():
        assert_allclose(values, getattr(before, name), rtol=1e-12)


def test_the_smallest_training_set():
    found = selection_table(KFreeClassifier().fit([[0.0], [1.0]], ["a", "b"]))
    assert found.chosen == dict.fromkeys(CRITERIA, 1)
    assert all(np.isfinite(values).all() for values in found.as_dict().values())


# --- The record ----------------------------------------------------------------------------------


def made_up(**columns):
    values = {name: np.zeros(3) for name in SelectionTable.__dataclass_fields__}
    values |= {"k": np.arange(1, 4), "at_bound": np.array([False, False, True])}
    return SelectionTable(**values | {name: np.array(v) for name, v in columns.items()})


def test_each_criterion_chooses_its_best():
    found = made_up(
        posterior=[0.2, 0.5, 0.3],
        aic=[3.0, 2.0, 1.0],
        bic=[1.0, 2.0, 3.0],
        dic=[2.0, 1.0, 2.0],
        loo_accuracy=[0.5, 0.9, 0.9],
        loo_log_score=[-0.3, -0.2, -0.1],
    )
    assert found.chosen == dict(zip(CRITERIA, [2, 3, 1, 2, 2, 3], strict=True))


def test_rounding_chooses_nothing():
    assert made_up(aic=[2.0 + 1e-13, 2.0, 2.0 - 1e-13]).chosen["aic"] == 1


def test_text():
    found = made_up(posterior=[0.25, 0.75, 0.0], beta=[1.0, 2.0, 120.0])
    lines = found.to_string().splitlines()
    assert lines[0].split()[:2] == ["K", "p(K|z)"]
    assert lines[2].split()[:2] == ["2", "0.7500*"]
    assert ">120.000" in lines[3] and ">" not in lines[1]
    assert len(lines) == 1 + 3 + 2
    assert str(found) == found.to_string()
    assert len(str(table("overlapping", "asymmetric")).splitlines()[0]) <= 100


def test_data_frame():
    found = table("overlapping", "asymmetric")
    frame = pd.DataFrame(found.as_dict()).set_index("k")
    assert list(frame.index) == list(range(1, K_MAX + 1))
    assert frame["posterior"].sum() == pytest.approx(1.0)


def test_the_record_is_frozen():
    with pytest.raises(AttributeError):
        made_up().aic = None


def test_what_it_cannot_use_is_refused():
    with pytest.raises(TypeError, match="needs a KFreeClassifier; got KNeighborsClassifier"):
        selection_table(KNeighborsClassifier())
    with pytest.raises(NotFittedError):
        selection_table(KFreeClassifier())
