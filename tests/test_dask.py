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
from test_shards import longest

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
    # Lengths that are known and differ are no obstacle.
    again = model().fit(da.from_array(X, chunks=(100, 3)), da.from_array(y, chunks=64))
    np.testing.assert_array_equal(again.k_posterior_, one.k_posterior_)


def read_and_note(path, notes):
    with notes.open("a") as file:
        file.write(f"{path.name}\n")
    return np.load(path)


def test_rows_of_unknown_number_are_read_once(client, one, tmp_path):
    X, y = grid()
    notes = tmp_path / "notes"
    dX, dy = files(tmp_path, X, y, 4, read_and_note, notes, length=np.nan)
    found = model().fit(dX, dy)
    np.testing.assert_array_equal(found.k_posterior_, one.k_posterior_)
    assert sorted(notes.read_text().split()) == sorted(
        f"{c}{i}.npy" for c in "Xy" for i in range(4)
    )


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
    with pytest.raises(ValueError, match="does not say how many features"):
        model().fit(da.from_delayed(dask.delayed(X), (np.nan, np.nan), dtype=float), dy)
    with pytest.raises(TypeError, match="not asynchronous; got LocalCluster"):
        model(client=client.cluster).fit(dX, dy)
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
    X = arrays(*grid())[0]
    new = da.from_array(NEW, chunks=(40, 3))
    begun = client.compute(found.predict_proba(X))
    lazy = found.predict_proba(new), found.predict_proba(None)
    for part in lazy:  # they hold on to all that they need
        held = {future.key for future in distributed.futures_of(part)}
        kept = [*found._fitted.shards.shards, *found._fitted.neighbors.graphs]
        assert {task.key for task in kept} <= held
    found.fit(*arrays(*grid(seed=5)))
    np.testing.assert_allclose(lazy[0].compute(), one.predict_proba(NEW), **CLOSE)
    np.testing.assert_allclose(lazy[1].compute(), one.predict_proba(None), **CLOSE)
    np.testing.assert_allclose(begun.result(timeout=60), one.predict_proba(grid()[0]), **CLOSE)


def kfree_tasks(dask_scheduler=None):
    return [str(key) for key in dask_scheduler.tasks if str(key).startswith("kfree-")]


def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def have_three_workers(client):
    """As at first; on a busy machine Dask may give up on starting a killed worker again."""
    try:
        until(lambda: len(client.nthreads()) == 3, 15.0)
    except AssertionError:
        for n_workers in (0, 3):
            client.cluster.scale(n_workers)
            until(lambda n=n_workers: len(client.nthreads()) == n)


def test_nothing_stays_on_the_workers(cluster, monkeypatch):
    with distributed.Client(cluster) as mine:
        before = set(mine.run_on_scheduler(kfree_tasks))

        def left():
            return set(mine.run_on_scheduler(kfree_tasks)) - before

        def interrupted(*_):
            raise KeyboardInterrupt

        # Between two stages, and while workers work: at the last thing that comes from them.
        for where, name in ((flow, "training_posterior"), (type(mine), "gather")):
            with monkeypatch.context() as patch:
                if name == "gather":
                    number = itertools.count()
                    gather = mine.gather

                    def third(self, futures, gather=gather, number=number):
                        return interrupted() if next(number) == 2 else gather(futures)

                    patch.setattr(where, name, third)
                else:
                    patch.setattr(where, name, interrupted)
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
    with pytest.raises(RuntimeError, match="client was closed"):
        model(client=mine).fit(*arrays(*grid()))


N_SEEN = 12_000


@pytest.mark.parametrize(
    ("n_classes", "parameters"),
    [(2, {}), (2, {"k_max": 4, "structure": "boltzmann"}), (20, {"k_max": 4})],
    ids=str,
)
def test_nothing_as_long_as_the_rows_reaches_the_client(client, monkeypatch, n_classes, parameters):
    monkeypatch.setattr(posteriors, "FEW_NEIGHBORS", 0)  # as for large data
    seen, gather = [], distributed.Client._gather

    async def spied(self, *args, **kwargs):
        result = await gather(self, *args, **kwargs)
        seen.append(longest(result))
        return result

    monkeypatch.setattr(distributed.Client, "_gather", spied)  # all that comes passes here
    dX = da.random.default_rng(0).normal(size=(N_SEEN, 2), chunks=(N_SEEN // 4, 2))
    dy = da.floor(4.0 * dX).sum(axis=1).astype(int) % n_classes  # a chessboard: k is small
    found = kfree.dask.KFreeClassifier(n_shards=4, **parameters).fit(dX, dy)
    found.score(None, dy)
    assert seen and max(seen) < N_SEEN // 5
    found.to_local()  # which does bring them here: the control
    assert max(seen) >= N_SEEN // 5


def read(path):
    return np.load(path)


def read_when_told(path, told, last):
    """The last of the files is read when the file `told` is there."""
    end = time.monotonic() + 60.0
    while path.name == last and not told.exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    return np.load(path)


def files(folder, X, y, n_parts, read=read, *args, length=None):
    """Rows that are read from files by tasks."""
    bounds = np.linspace(0, len(X), n_parts + 1).astype(int)
    dX, dy = [], []
    for i, (a, b) in enumerate(itertools.pairwise(bounds)):
        np.save(folder / f"X{i}.npy", X[a:b])
        np.save(folder / f"y{i}.npy", y[a:b])
        rows, labels = (dask.delayed(read)(folder / f"{name}{i}.npy", *args) for name in "Xy")
        n = b - a if length is None else length
        dX.append(da.from_delayed(rows, (n, X.shape[1]), dtype=X.dtype))
        dy.append(da.from_delayed(labels, (n,), dtype=y.dtype))
    known = {"allow_unknown_chunksizes": length is not None}
    return da.concatenate(dX, **known), da.concatenate(dy, **known)


def kill(client, address):
    pid = client.run(os.getpid, workers=[address])[address]
    os.kill(pid, signal.SIGKILL)


def kill_a_worker(client):
    """The worker that holds most, with SIGKILL."""
    held = client.has_what()
    kill(client, max(held, key=lambda worker: len(held[worker])))


def killing(client, function):
    """The function, once a worker was killed."""

    def kill_then_call(*args, **kwargs):
        kill_a_worker(client)
        return function(*args, **kwargs)

    return kill_then_call


# While neighbors are searched for, and while beta is integrated.
@pytest.mark.parametrize(
    ("where", "stage"),
    [(flow, "find_posteriors"), (posteriors, "integrate")],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_worker_killed_in_fit_changes_nothing(client, tmp_path, monkeypatch, where, stage):
    have_three_workers(client)
    monkeypatch.setattr(posteriors, "FEW_NEIGHBORS", 0)  # as for large data
    monkeypatch.setattr(posteriors, "FEW_PATTERNS", 200)
    X, y = grid()
    dX, dy = files(tmp_path, X, y, 4)
    calm = model(structure="boltzmann").fit(dX, dy)
    workers = set(client.nthreads())
    monkeypatch.setattr(where, stage, killing(client, getattr(where, stage)))
    found = model(structure="boltzmann").fit(dX, dy)
    until(lambda: set(client.nthreads()) != workers)
    np.testing.assert_array_equal(found.k_posterior_, calm.k_posterior_)
    local, right = found.to_local()._model.graph, calm.to_local()._model.graph
    np.testing.assert_array_equal(local.indices, right.indices)
    np.testing.assert_array_equal(local.radii, right.radii)


def in_memory(dask_scheduler=None):
    """How many meetings of new rows with shards are done."""
    tasks = dask_scheduler.tasks.items()
    return sum(t.state == "memory" for key, t in tasks if str(key).startswith("kfree-meet"))


def test_a_worker_killed_in_a_prediction_changes_nothing(client, tmp_path):
    have_three_workers(client)
    X, y = grid()
    found = model().fit(*files(tmp_path, X, y, 4))
    told, new = tmp_path / "told", tmp_path / "new"
    new.mkdir()
    lazy = found.predict_proba(files(new, X, y, 4, read_when_told, told, "X3.npy")[0])
    future = client.compute(lazy)
    until(lambda: client.run_on_scheduler(in_memory) > 0)
    kill_a_worker(client)
    assert not future.done()  # one part is still to be read
    told.touch()
    again = found.predict_proba(da.from_array(X, chunks=(75, 3)))  # calmly
    np.testing.assert_array_equal(future.result(timeout=60), again)


@pytest.mark.parametrize("stage", ["spread", "find_neighbors"])
def test_data_that_cannot_be_read_again(client, monkeypatch, stage):
    X, y = grid()
    have_three_workers(client)
    worker = sorted(client.nthreads())[0]
    held = [client.scatter(X[a : a + 100], workers=[worker], hash=False) for a in (0, 100, 200)]
    dX = da.concatenate([da.from_delayed(f, (100, 3), dtype=float) for f in held])
    dy = da.from_array(y, chunks=100)
    which, carry_on = [0, 1, 2], getattr(flow, stage)

    def kill_then_go_on(engine, shards, *args):
        if stage == "find_neighbors":  # those that no other worker has
            who = [client.who_has(distributed.futures_of(shard)) for shard in shards.shards]
            which[:] = [i for i, held in enumerate(who) if list(*held.values()) == [worker]]
        kill(client, worker)
        return carry_on(engine, shards, *args)

    monkeypatch.setattr(flow, stage, kill_then_go_on)
    with pytest.raises(RuntimeError, match="went with a lost worker and cannot be") as caught:
        model().fit(dX, dy)
    numbers = re.match(r"Shards? ([\d, ]+) went", str(caught.value))[1]
    assert [int(number) for number in numbers.split(",")] == which


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


def test_the_number_of_workers_does_not_matter(cluster, client, one, monkeypatch):
    have_three_workers(client)
    for n_workers in (2, 1, 3):
        cluster.scale(n_workers)
        until(lambda n=n_workers: len(client.nthreads()) == n)
        for limit in (0, posteriors.FEW_NEIGHBORS):  # from patterns, as for large data; or whole
            with monkeypatch.context() as patch:
                patch.setattr(posteriors, "FEW_NEIGHBORS", limit)
                found = model(n_shards=5).fit(*arrays(*grid()))
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
