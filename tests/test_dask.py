"""kfree.dask on a cluster of processes: one machine's answers, whatever happens to the workers."""

from __future__ import annotations

import dataclasses
import itertools
import os
import pickle
import re
import signal
import threading
import time
from pathlib import Path

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kfree
import kfree.dask
from kfree.dask.engine import task
from kfree.neighbors.threads import run
from kfree.shards import flow, posteriors
from kfree.training import KnownPosteriors

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")

K_MAX = 12
CLOSE = {"rtol": 0.0, "atol": 1e-9}


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=3,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=":0",
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster) as client:
        yield client


def grid(n=300, n_classes=3, seed=0):
    """Integers: ties everywhere, and rows that are there many times."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (n, 3)).astype(float)
    return X, (X.sum(axis=1).astype(int) + rng.integers(0, 2, n)) % n_classes


def arrays(X, y, rows=100):
    return da.from_array(X, chunks=(rows, X.shape[1])), da.from_array(y, chunks=rows)


def model(**parameters):
    return kfree.dask.KFreeClassifier(**{"k_max": K_MAX, "n_shards": 3, **parameters})


@pytest.fixture(scope="module")
def one():
    return kfree.KFreeClassifier(k_max=K_MAX).fit(*grid())


@pytest.fixture(scope="module")
def fitted(client):
    return model().fit(*arrays(*grid()))


NEW = grid(40, seed=1)[0]


# Before the first test that has a client.
def test_without_a_client():
    with pytest.raises(ValueError, match="none is running; start one"):
        model().fit(*arrays(*grid()))


@pytest.mark.parametrize(("n_shards", "partition"), [(2, "space"), (5, "rows"), (8, "space")])
def test_the_answers_of_one_machine(client, one, n_shards, partition):
    found = model(n_shards=n_shards, partition=partition).fit(*arrays(*grid()))
    np.testing.assert_array_equal(found.k_posterior_, one.k_posterior_)
    np.testing.assert_array_equal(found.k_values_, one.k_values_)
    assert found.k_optimal_ == one.k_optimal_ and found.k_max_ == K_MAX
    assert found.beta_mean_ == one.beta_mean_ and found.beta_std_ == one.beta_std_
    assert len(found.n_rows_) == n_shards and found.n_rows_.sum() == 300
    lazy = found.predict_proba(da.from_array(NEW, chunks=(25, 3)))
    assert lazy.chunks == ((25, 15), (3,))
    np.testing.assert_allclose(lazy.compute(), one.predict_proba(NEW), **CLOSE)
    local = found.to_local()
    np.testing.assert_array_equal(local._model.graph.indices, one._model.graph.indices)
    np.testing.assert_array_equal(local._model.graph.radii, one._model.graph.radii)
    np.testing.assert_array_equal(local.predict_proba(NEW), one.predict_proba(NEW))


@pytest.mark.parametrize(
    "parameters",
    [
        {"structure": "boltzmann"},
        {"structure": "boltzmann2", "update": "conditional"},
        {"average": False},
        {"k_values": [1, 5, 9], "k_max": "auto", "metric": "manhattan"},
        {"metric": "canberra", "partition": "rows"},
    ],
    ids=str,
)
def test_settings(client, parameters):
    X, y = grid()
    found = model(**parameters).fit(*arrays(X, y))
    own = {name: value for name, value in parameters.items() if name != "partition"}
    one = kfree.KFreeClassifier(**{"k_max": K_MAX, **own}).fit(X, y)
    np.testing.assert_array_equal(found.k_posterior_, one.k_posterior_)
    new = da.from_array(NEW, chunks=(40, 3))
    np.testing.assert_allclose(found.predict_proba(new), one.predict_proba(NEW), **CLOSE)
    np.testing.assert_allclose(found.predict_proba(None), one.predict_proba(None), **CLOSE)


@pytest.mark.parametrize(
    ("n_classes", "limits"),
    [
        (3, {"FEW_NEIGHBORS": 0}),
        (3, {"FEW_NEIGHBORS": 0, "FEW_PATTERNS": 200}),
        (100, {}),
        (100, {"FEW_NEIGHBORS": 0}),
        (100, {"FEW_NEIGHBORS": 0, "FEW_PATTERNS": 200}),
    ],
    ids=str,
)
def test_where_the_training_sum_is_made(client, monkeypatch, n_classes, limits):
    # In one place, or from patterns, all or some candidates at a time.
    for name, value in limits.items():
        monkeypatch.setattr(posteriors, name, value)
    X, y = grid(300)
    if n_classes == 100:
        y = np.random.default_rng(0).permutation(300) % 100
    found = model().fit(*arrays(X, y))
    one = kfree.KFreeClassifier(k_max=K_MAX).fit(X, y)
    np.testing.assert_array_equal(found.k_posterior_, one.k_posterior_)
    new = da.from_array(NEW, chunks=(40, 3))
    np.testing.assert_allclose(found.predict_proba(new), one.predict_proba(NEW), **CLOSE)


def test_a_row_beyond_every_posterior_is_refused():
    # The control of posteriors that travel in place of the likelihood.
    X, y = grid(60)
    curves = kfree.KFreeClassifier(k_max=3).fit(X, y)._model.posterior.curves
    known, every = KnownPosteriors((curves,)), np.arange(3)
    np.testing.assert_array_equal(known.allowing(np.full(3, 1.0), every).beta, curves.beta)
    narrow = dataclasses.replace(curves, bounded=np.zeros(3, dtype=bool))
    with pytest.raises(ValueError, match="predict it on one machine"):
        KnownPosteriors((narrow,)).allowing(np.full(3, 1e6), every)


def test_k_max_is_found_as_on_one_machine(client):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 4.0, size=(1200, 2))
    y = np.floor(X).sum(axis=1).astype(int) % 2  # a chessboard: only near neighbors agree
    one = kfree.KFreeClassifier().fit(X, y)
    found = model(k_max="auto").fit(*arrays(X, y, 400))
    np.testing.assert_array_equal(found.k_values_, one.k_values_)
    np.testing.assert_array_equal(found.k_posterior_, one.k_posterior_)


def test_the_rest_of_the_estimator(fitted, one):
    X, y = grid()
    new = da.from_array(NEW, chunks=(25, 3))
    np.testing.assert_array_equal(fitted.predict(new).compute(), one.predict(NEW))
    np.testing.assert_array_equal(fitted.predict(None).compute(), one.predict(None))
    np.testing.assert_allclose(fitted.predict_log_proba(new), one.predict_log_proba(NEW), **CLOSE)
    assert fitted.score(None, da.from_array(y, chunks=100)) == one.score(None, y)
    dx, dy = arrays(X, y)
    assert fitted.score(dx, dy) == one.score(X, y)
    lazy, known = fitted.posterior(new), one.posterior(NEW)
    for field in dataclasses.fields(lazy):
        computed = np.asarray(getattr(lazy, field.name))
        np.testing.assert_allclose(computed, getattr(known, field.name), **CLOSE)


def test_dataframes(client):
    X, y = grid(90)
    names = np.array(["ape", "bee", "cat"])[y]
    names[77] = "dog"  # a label of one partition only
    names[78] = "dog"
    table = pd.DataFrame(X, columns=list("abc"), index=np.arange(90) * 2)
    bounds = [0, 1, 40, 40, 90]  # one row, and no rows
    pairs = list(itertools.pairwise(bounds))
    dX = dd.from_delayed([dask.delayed(table.iloc[a:b]) for a, b in pairs], meta=table.iloc[:0])
    labels = [pd.Series(pd.Categorical(names[a:b]), index=table.index[a:b]) for a, b in pairs]
    meta = labels[0].iloc[:0]
    dy = dd.from_delayed([dask.delayed(part) for part in labels], meta=meta, verify_meta=False)
    found = model().fit(dX, dy)
    one = kfree.KFreeClassifier(k_max=K_MAX).fit(table, names)
    assert list(found.classes_) == ["ape", "bee", "cat", "dog"]
    assert list(found.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(found.k_posterior_, one.k_posterior_)
    frame = found.predict_proba(dX).compute()
    assert list(frame.columns) == list(found.classes_)
    assert list(frame.index) == list(table.index)
    np.testing.assert_allclose(frame.to_numpy(), one.predict_proba(table), **CLOSE)
    assert list(found.predict(dX).compute()) == list(one.predict(table))
    log = found.predict_log_proba(dX).compute()
    pd.testing.assert_frame_equal(log, np.log(frame))
    with pytest.raises(ValueError, match="feature names"):
        found.predict_proba(dX.rename(columns={"a": "z"}))


def test_unknown_lengths_and_features_in_several_chunks(client, one):
    X, y = grid()
    dX = da.from_array(X, chunks=(70, 2))
    dy = da.from_array(y, chunks=70)
    mask = da.from_array(np.ones(300, dtype=bool), chunks=70)
    found = model().fit(dX[mask], dy[mask])
    np.testing.assert_array_equal(found.k_posterior_, one.k_posterior_)
    lazy = found.predict_proba(dX[mask])
    np.testing.assert_allclose(lazy.compute(), one.predict_proba(X), **CLOSE)
    # Known lengths that differ are no obstacle.
    again = model().fit(da.from_array(X, chunks=(100, 3)), da.from_array(y, chunks=64))
    np.testing.assert_array_equal(again.k_posterior_, one.k_posterior_)


def test_bad_input_is_named(client):
    X, y = grid()
    dX, dy = arrays(X, y)
    holes = X.copy()
    holes[230, 1] = np.nan
    with pytest.raises(ValueError, match=r"Partition 2: .*NaN in column 1 \(first in row 30\)"):
        model().fit(da.from_array(holes, chunks=(100, 3)), dy)
    mask = da.from_array(np.arange(300) != 150, chunks=100)
    with pytest.raises(ValueError, match="Partition 1: X has 100 rows but y has 99 labels"):
        model().fit(dX, dy[mask])
    with pytest.raises(ValueError, match="X has 3 partitions but y has 2"):
        model().fit(dX, da.from_array(y[:200], chunks=100))
    with pytest.raises(ValueError, match="only one class"):
        model().fit(dX, da.zeros(300, chunks=100, dtype=int))
    with pytest.raises(TypeError, match="dask array or dataframe; got ndarray"):
        model().fit(X, y)
    with pytest.raises(ValueError, match="k_max=300 is more than the 299"):
        model(k_max=300).fit(dX, dy)
    found = model().fit(dX, dy)
    with pytest.raises(ValueError, match="X has 2 features, but KFreeClassifier"):
        found.predict_proba(dX[:, :2])
    with pytest.raises(ValueError, match="Partition 2: Input X contains NaN"):
        found.predict_proba(da.from_array(holes, chunks=(100, 3))).compute()


def test_sparse_chunks_are_refused(client, fitted, one):
    X, y = grid()
    dense, dy = arrays(X, y)
    known = dense.map_blocks(sparse.csr_array)
    told = dense.map_blocks(sparse.csr_array, meta=np.empty((0, 3)))  # only a worker finds out
    with pytest.raises(ValueError, match="X has sparse chunks"):
        model().fit(known, dy)
    with pytest.raises(ValueError, match="Partition 0: X has sparse chunks"):
        model().fit(told, dy)
    with pytest.raises(ValueError, match="X has sparse chunks"):
        fitted.predict_proba(known)
    with pytest.raises(ValueError, match="Partition 0: X has sparse chunks"):
        fitted.predict_proba(told[:100]).compute()
    # One machine's model takes them.
    found = kfree.dask.predict_proba(one, known).compute()
    np.testing.assert_allclose(found, one.predict_proba(X), **CLOSE)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"inference": "laplace"}, "inference='laplace' is not offered on Dask"),
        ({"inference": "metropolis"}, "inference='metropolis' is not offered on Dask"),
        ({"metric": "precomputed"}, "metric='precomputed' is not offered on Dask"),
        ({"metric": "seuclidean"}, "metric='seuclidean' needs the variances of all rows"),
        ({"metric": "mahalanobis"}, "metric='mahalanobis' needs the variances of all rows"),
        ({"metric": "canberra"}, "partition='space' cannot cut"),
        ({"n_jobs": 2}, "n_jobs=2 is not offered on Dask"),
        ({"n_shards": 0}, "n_shards must be None or"),
        ({"partition": "time"}, "partition must be one of"),
        ({"structure": "ring"}, "structure must be one of"),
    ],
    ids=str,
)
def test_what_is_not_offered_is_refused_by_name(client, parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        model(**parameters).fit(*arrays(*grid()))


def test_parameters_are_those_of_one_machine():
    own = kfree.dask.KFreeClassifier().get_params()
    for name in ("client", "n_shards", "partition"):
        own.pop(name)
    assert own == kfree.KFreeClassifier().get_params()


def test_pickling_and_cloning(fitted, client):
    given = model(client=client)
    assert clone(given).client is client
    assert pickle.loads(pickle.dumps(given)).client is None
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.k_posterior_, fitted.k_posterior_)
    with pytest.raises(NotFittedError, match="to_local"):
        copy.predict_proba(da.from_array(NEW, chunks=(40, 3)))
    with pytest.raises(NotFittedError):
        model().predict(da.from_array(NEW, chunks=(40, 3)))


def test_a_second_fit_leaves_pending_predictions_alone(client, one):
    found = model().fit(*arrays(*grid()))
    pending = found.predict_proba(da.from_array(NEW, chunks=(40, 3)))
    found.fit(*arrays(*grid(seed=5)))
    np.testing.assert_allclose(pending.compute(), one.predict_proba(NEW), **CLOSE)


def kfree_tasks(dask_scheduler=None):
    return [str(key) for key in dask_scheduler.tasks if str(key).startswith("kfree-")]


def until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_nothing_stays_on_the_workers(cluster, monkeypatch):
    with distributed.Client(cluster) as mine:
        before = set(mine.run_on_scheduler(kfree_tasks))

        def left():
            return set(mine.run_on_scheduler(kfree_tasks)) - before

        def interrupted(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(flow, "training_posterior", interrupted)
            with pytest.raises(KeyboardInterrupt):
                model(client=mine).fit(*arrays(*grid()))
        until(lambda: not left())
        with model(client=mine).fit(*arrays(*grid())) as found:
            assert left()
        until(lambda: not left())
        with pytest.raises(NotFittedError, match="closed"):
            found.predict(None)
        found.fit(*arrays(*grid()))
    with pytest.raises(RuntimeError, match="client was closed"):
        found.predict(None)


def longest(value) -> int:
    """The longest array anywhere in a value."""
    if isinstance(value, np.ndarray):
        return max(value.shape, default=0)
    if dataclasses.is_dataclass(value):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return max([len(value), *map(longest, value)], default=0)
    return 0


def test_nothing_as_long_as_the_rows_reaches_the_client(client, monkeypatch):
    monkeypatch.setattr(posteriors, "FEW_NEIGHBORS", 0)  # as for large data
    seen = []
    gather = distributed.Client.gather

    def spied(self, futures, *args, **kwargs):
        result = gather(self, futures, *args, **kwargs)
        seen.append(longest(result))
        return result

    monkeypatch.setattr(distributed.Client, "gather", spied)
    dX = da.random.default_rng(0).normal(size=(4000, 2), chunks=(1000, 2))
    dy = (dX[:, 0] > 0).astype(int)
    found = kfree.dask.KFreeClassifier(k_max=4, n_shards=4).fit(dX, dy)
    assert seen and max(seen) < 900
    found.to_local()  # which does bring them here: the control
    assert max(seen) >= 1000


def read(path):
    return np.load(path)


def files(folder, X, y, n_parts):
    """Rows that are read from files by tasks."""
    bounds = np.linspace(0, len(X), n_parts + 1).astype(int)
    dX, dy = [], []
    for i, (a, b) in enumerate(itertools.pairwise(bounds)):
        np.save(folder / f"X{i}.npy", X[a:b])
        np.save(folder / f"y{i}.npy", y[a:b])
        rows, labels = (dask.delayed(read)(folder / f"{name}{i}.npy") for name in "Xy")
        dX.append(da.from_delayed(rows, (b - a, X.shape[1]), dtype=X.dtype))
        dy.append(da.from_delayed(labels, (b - a,), dtype=y.dtype))
    return da.concatenate(dX), da.concatenate(dy)


def kill_a_worker(client):
    """The worker that holds most, with SIGKILL."""
    held = client.has_what()
    address = max(held, key=lambda worker: len(held[worker]))
    pid = client.run(os.getpid, workers=[address])[address]
    os.kill(pid, signal.SIGKILL)


def test_a_killed_worker_changes_nothing(client, tmp_path, monkeypatch):
    X, y = grid()
    dX, dy = files(tmp_path, X, y, 4)
    calm = model(structure="boltzmann").fit(dX, dy)
    expected = calm.predict_proba(dX).compute()
    find = flow.find_neighbors

    def kill_then_find(work, shards, *args):
        kill_a_worker(client)  # all shards are on the workers now
        return find(work, shards, *args)

    monkeypatch.setattr(flow, "find_neighbors", kill_then_find)
    found = model(structure="boltzmann").fit(dX, dy)
    np.testing.assert_array_equal(found.k_posterior_, calm.k_posterior_)
    future = client.compute(found.predict_proba(dX))
    kill_a_worker(client)
    np.testing.assert_array_equal(future.result(timeout=60), expected)


def test_data_that_cannot_be_read_again(client, monkeypatch):
    X, y = grid()
    until(lambda: len(client.nthreads()) > 1)
    worker = next(iter(client.scheduler_info(n_workers=-1)["workers"]))
    held = [client.scatter(X[a : a + 100], workers=[worker], hash=False) for a in (0, 100, 200)]
    dX = da.concatenate([da.from_delayed(f, (100, 3), dtype=float) for f in held])
    dy = da.from_array(y, chunks=100)
    spread = flow.spread

    def kill_then_spread(*args):
        pid = client.run(os.getpid, workers=[worker])[worker]
        os.kill(pid, signal.SIGKILL)
        return spread(*args)

    monkeypatch.setattr(flow, "spread", kill_then_spread)
    with pytest.raises(RuntimeError, match="cannot be computed again"):
        model().fit(dX, dy)


def test_a_model_of_one_machine_on_many_rows(client, one):
    X, y = grid()
    new = da.from_array(NEW, chunks=(25, 2))
    np.testing.assert_array_equal(kfree.dask.predict_proba(one, new), one.predict_proba(NEW))
    np.testing.assert_array_equal(kfree.dask.predict(one, new), one.predict(NEW))
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    frame = dd.from_pandas(pd.DataFrame(NEW), npartitions=2)
    found = kfree.dask.predict_proba(pipeline, frame).compute()
    np.testing.assert_allclose(found.to_numpy(), pipeline.predict_proba(NEW))
    assert list(kfree.dask.predict(pipeline, frame).compute()) == list(pipeline.predict(NEW))
    with pytest.raises(TypeError, match="got ndarray"):
        kfree.dask.predict(one, NEW)
    with pytest.raises(NotFittedError):
        kfree.dask.predict(kfree.KFreeClassifier(), new)


@pytest.mark.parametrize("backend", ["loky", "dask"])
def test_n_jobs_is_threads_of_the_caller(client, backend):
    def where(_):
        time.sleep(0.02)
        return os.getpid(), threading.get_ident()

    # Neither the workers nor their number: what n_jobs says, and one thread if it says nothing.
    with joblib.parallel_config(backend=backend):
        for n_jobs, n_threads in ((None, 1), (2, 2)):
            found = run(where, range(8), n_jobs)
            assert {pid for pid, _ in found} == {os.getpid()}
            assert len({thread for _, thread in found}) == n_threads


def test_what_is_said_on_the_way(client, capsys):
    model(verbose=1).fit(*arrays(*grid()))
    said = capsys.readouterr().out
    assert "300 rows into 3 shards" in said and "nearest neighbors" in said


def test_the_number_of_workers_does_not_matter(cluster, client, one):
    for n_workers in (2, 1):
        cluster.scale(n_workers)
        until(lambda n=n_workers: len(client.nthreads()) == n)
        found = model().fit(*arrays(*grid()))
        np.testing.assert_array_equal(found.k_posterior_, one.k_posterior_)


def test_the_dashboard_shows_names_that_people_understand():
    from distributed.utils import key_split

    package = Path(kfree.__file__).parent
    names = {
        name
        for path in [*package.glob("dask/*.py"), *package.glob("shards/*.py")]
        for name in re.findall(
            r'(?:task\(|_each\(engine,)\s*"([^"]+)"', path.read_text(encoding="utf-8")
        )
    }
    assert {"own-lists", "visit", "average", "around-points"} <= names
    for name in names:
        assert key_split(task(name, len, ()).key) == f"kfree-{name}"
