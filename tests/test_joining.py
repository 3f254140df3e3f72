"""New points under the symmetric structures: what is known beforehand changes no number."""

import numpy as np
import pytest

from kfree import KFreeClassifier
from kfree.likelihood import joining


@pytest.mark.parametrize("structure", ["boltzmann", "boltzmann2"])
@pytest.mark.parametrize("k", [1, 6, 15])
def test_kinds_are_what_is_evaluated(structure, k):
    random = np.random.default_rng(4)
    X, y, new = (
        random.normal(size=(300, 3)),
        random.integers(0, 4, 300),
        random.normal(size=(40, 3)),
    )
    model = KFreeClassifier(structure=structure, k_max=15).fit(X, y)._model
    visit = model.new_points(new, True, 15, None).visit
    beta = np.array([0.5, 6.0, 800.0])
    slots = joining.edge_slots(model.table, model.labels)
    near = joining.around(model.table, slots, model.labels, 4, k, beta)
    last = model.labels[model.graph.indices[:, k - 1]]
    known = joining.kinds(near, model.labels, last, k, beta)
    found = joining.log_joint(visit, model.labels, near, k, beta, known)
    expected = joining.log_joint(visit, model.labels, near, k, beta)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
    once = structure == "boltzmann2"
    kind = joining._events(visit, model.labels, 4, k, once).kind
    occur = {-1, 0, 1, 3, 4, 5, 6} | (set() if once else {2})
    assert set(kind.tolist()) == occur


def test_kinds_are_made_for_many_rows_only():
    random = np.random.default_rng(4)
    X, y = random.normal(size=(300, 3)), random.integers(0, 4, 300)
    classifier = KFreeClassifier(structure="boltzmann", k_max=15).fit(X, y)
    model = classifier._model
    one = classifier.predict_proba(X[:1] + 0.01)
    assert not model._all_kinds
    many = classifier.predict_proba(X + 0.01)
    assert model._all_kinds
    np.testing.assert_allclose(many[:1], one, rtol=0, atol=1e-12)
    np.testing.assert_allclose(classifier.predict_proba(X[:1] + 0.01), one, rtol=0, atol=1e-12)
