"""Many classes against the slow twin: counts, terms, probabilities; ties among them."""

from functools import cache

import numpy as np
import pytest

import naive
from kfree import KFreeClassifier
from kfree.blocks import PreparedPoints, held_out, new_points
from kfree.likelihood import conditional, exchange, few_classes
from kfree.likelihood.counts import RisingCounts
from kfree.likelihood.few_classes import FEW_CLASSES
from kfree.likelihood.training_sum import count_patterns

N_CLASSES = FEW_CLASSES + 6
K_VALUES = (4, 12)
TOLERANCE = 1e-6  # as in test_against_naive

structures = pytest.mark.parametrize("structure", naive.STRUCTURES)
kinds = pytest.mark.parametrize("kind", ["continuous", "tied"])


@cache
def rows_of(kind):
    """80 rows, most classes in one or two of them, and four new rows."""
    rng = np.random.default_rng(8)
    z = np.concatenate([np.arange(N_CLASSES), rng.integers(0, 9, 80 - N_CLASSES)])
    X = np.column_stack([z % 7, z // 7]) + rng.normal(size=(len(z), 2))
    new = X[[0, 5, 40, 66]] + 0.3
    if kind == "tied":  # whole numbers: many distances, and whole rows, are equal
        X, new = X.round(), new.round()
    new[3] += 50.0
    return X, z, new


@cache
def fitted(kind, structure, **options):
    X, z, _ = rows_of(kind)
    return KFreeClassifier(structure=structure, k_values=list(K_VALUES), **options).fit(X, z)


def assert_equal(posterior, row, expected):
    for name in ("class_probabilities", "k_probabilities"):
        found = getattr(posterior, name)[row]
        np.testing.assert_allclose(found, getattr(expected, name), rtol=0, atol=TOLERANCE)


# --- The whole way -------------------------------------------------------------------------------


@structures
@kinds
@pytest.mark.parametrize("update", ["joint", "conditional"])
def test_new_rows(kind, structure, update):
    X, z, new = rows_of(kind)
    posterior = fitted(kind, structure, update=update).posterior(new)
    for i in (1, 3) if structure == "asymmetric" else (1,):
        expected = naive.dense_quadrature(
            structure, X, z, new[i], None, N_CLASSES, update, k_values=K_VALUES, n_nodes=401
        )
        assert_equal(posterior, i, expected)


@structures
@pytest.mark.parametrize(
    ("kind", "update"),
    # In ties a row that comes back as a new one loses its place; conditionally the graph stays.
    [("continuous", "joint"), ("continuous", "conditional"), ("tied", "conditional")],
)
def test_held_out_rows(kind, structure, update):
    X, z, _ = rows_of(kind)
    posterior = fitted(kind, structure, update=update).posterior(None)
    i = 65 if update == "joint" else 30  # one of a common class, or the only one of its own
    assert ((z == z[i]).sum() == 1) == (i == 30)
    expected = naive.leave_one_out(
        naive.dense_quadrature,
        structure,
        X,
        z,
        i,
        None,
        N_CLASSES,
        update,
        k_values=K_VALUES,
        n_nodes=401,
    )
    assert_equal(posterior, i, expected)


@kinds
def test_rows_in_doubt_are_done_again(monkeypatch, kind):
    """What is known of some rows alone adds up as that of all rows does."""
    _, _, new = rows_of(kind)
    model = fitted(kind, "asymmetric")
    found = model.predict_proba(new)
    monkeypatch.setattr("kfree.averaging.DOUBT", -1.0)
    np.testing.assert_allclose(model.predict_proba(new), found, atol=1e-7)


# --- Its parts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("most_dense", [16, N_CLASSES])
@structures
@kinds
def test_counts_around_points(monkeypatch, kind, structure, most_dense):
    monkeypatch.setattr("kfree.likelihood.counts.DENSE_CLASSES", most_dense)
    X, z, _ = rows_of(kind)
    model = fitted(kind, structure)._model
    terms = count_patterns(model.table, model.labels, model.labels, N_CLASSES, by_point=True)
    rising = RisingCounts(model.table, model.labels, model.labels, N_CLASSES)
    for i, k in enumerate(model.table.k):
        counts = terms[i].counts
        by_class = rising.by_class(i)
        members, denominators = naive.neighborhood(structure, X, int(k))
        np.testing.assert_array_equal(counts.divisor, denominators)
        for p, around in enumerate(members):
            expected = naive.counts(around, z, N_CLASSES)
            there = slice(counts.indptr[p], counts.indptr[p + 1])
            assert sorted(counts.value[there]) == sorted(expected[expected > 0])
            assert counts.n_absent[p] == (expected == 0).sum()
            assert counts.own[p] == expected[z[p]]
            np.testing.assert_array_equal(by_class[p], expected)


def of_every_class(values):
    """log p(z, z' = c) - log p(z) of every class: (n_rows, n_classes, n_beta)."""
    return values.slots.table(values.value)


BETA = np.array([1e-3, 0.7, 4.0, 6.9])


@kinds
def test_terms_of_new_rows(kind):
    X, z, new = rows_of(kind)
    model = fitted(kind, "asymmetric")._model
    rows = new_points(PreparedPoints(model), new, True, None)
    for i, k in enumerate(model.table.k):
        found = of_every_class(rows.at(i).by_label(BETA))
        training = naive.log_pseudo_likelihood("asymmetric", X, z, BETA, int(k), N_CLASSES)
        for row, x in enumerate(new):
            log_p = naive.log_joint("asymmetric", X, z, x, BETA, int(k), N_CLASSES)
            np.testing.assert_allclose(found[row], log_p - training, atol=1e-9)


@kinds
def test_terms_of_held_out_rows(kind):
    X, z, _ = rows_of(kind)
    model = fitted(kind, "asymmetric")._model
    some = np.array([0, 3, 41, 65])
    rows = held_out(PreparedPoints(model), some, True)
    for i, k in enumerate(model.table.k):
        found = of_every_class(rows.at(i).by_label(BETA))
        graph = naive.neighborhood("asymmetric", X, int(k))  # stays, whatever the label is
        training = naive.log_sum_of_terms(naive.terms_of(graph, z, N_CLASSES), BETA)
        for row, n in enumerate(some):
            labels = [[*z[:n], c, *z[n + 1 :]] for c in range(N_CLASSES)]
            log_p = naive.log_sums([naive.terms_of(graph, z, N_CLASSES) for z in labels], BETA)
            np.testing.assert_allclose(found[row], log_p - training, atol=1e-9)


# --- Few classes: up to twice as many as neighbors ------------------------------------------------


@structures
@pytest.mark.parametrize("held_out_rows", [False, True])
def test_either_way_gives_the_same(monkeypatch, structure, held_out_rows):
    X, z, new = rows_of("continuous")
    rows = None if held_out_rows else new
    found = []
    for most in (few_classes.MOST_CLASSES, 1):
        monkeypatch.setattr(few_classes, "MOST_CLASSES", most)
        model = KFreeClassifier(structure=structure, k_values=[5, N_CLASSES // 2]).fit(X, z)
        found.append(model.posterior(rows))
    for name in ("k_probabilities", "class_probabilities", "beta_mean"):
        few, general = (getattr(each, name) for each in found)
        np.testing.assert_allclose(few, general, rtol=1e-6, atol=1e-8, err_msg=name)


def test_states_in_parts_give_the_same(monkeypatch):
    X, z, new = rows_of("continuous")
    for structure in naive.STRUCTURES:
        model = KFreeClassifier(structure=structure, k_values=[5, N_CLASSES // 2]).fit(X, z)
        found = []
        for numbers in (few_classes.STATE_NUMBERS, 1):
            monkeypatch.setattr(few_classes, "STATE_NUMBERS", numbers)
            found += [model.predict_proba(new), model.predict_proba(None)]
        for one, other in zip(found[:2], found[2:], strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-12)


def test_which_of_several_equal_classes_goes_does_not_matter():
    """Points that lose a neighbor of a class: one state for all classes of as many neighbors."""
    count = np.array([[3, 2, 2, 0, 2], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [0, 5, 0, 0, 0]])
    label, b = np.array([1, 4, 0, 2]), np.array([[0.3, 2.0]])
    point, gone = np.nonzero(count)
    shown_by, one, state = exchange.states_of_pairs(count, label, point, gone)
    assert len(shown_by) == 3 + 2 + 2 + 1  # of 4 + 5 + 5 + 1
    value = exchange.exchanged_for_any(count[shown_by], label[shown_by], one, b)
    for pair, (n, lost) in enumerate(zip(point, gone, strict=True)):
        present = b[0] * count[n, label[n]] - np.log(np.exp(np.outer(b[0], count[n])).sum(axis=1))
        for c in set(range(5)) - {lost}:  # where the one that went comes back nothing changes
            m = count[n].copy()
            m[lost] -= 1
            m[c] += 1
            then = b[0] * m[label[n]] - np.log(np.exp(np.outer(b[0], m)).sum(axis=1))
            np.testing.assert_allclose(value[state[pair], c], then - present, atol=1e-13)


@pytest.mark.parametrize(
    ("n_classes", "k_max", "few"),
    [(32, 1, True), (33, 16, False), (34, 17, True), (1024, 512, True), (1025, 2000, False)],
)
def test_what_few_classes_are(n_classes, k_max, few):
    assert few_classes.are_few(n_classes, k_max) is few


# --- Controls ------------------------------------------------------------------------------------


def test_this_way_is_taken(monkeypatch):
    """Otherwise the comparisons above would be about that of few classes."""
    monkeypatch.setattr(conditional, "FewClasses", None)
    fitted("continuous", "asymmetric").predict_proba(rows_of("continuous")[2])
    monkeypatch.setattr("kfree.likelihood.few_classes.FEW_CLASSES", N_CLASSES)
    with pytest.raises(TypeError):
        fitted("continuous", "asymmetric").predict_proba(rows_of("continuous")[2])
