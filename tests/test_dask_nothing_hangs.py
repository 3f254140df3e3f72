"""Whatever goes away under a fit on Dask, it ends, with a sentence, and in bounded time."""

from __future__ import annotations

import contextlib
import threading
import time

import numpy as np
import pytest

import kfree.dask
from kfree.shards import flow

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

PATIENCE = 30.0  # seconds; on a quiet machine each ends within two


@contextlib.contextmanager
def threads(n_workers=1):
    """A cluster whose workers are threads of this process, and a client."""
    settings = {"threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with (
        dask.config.set({"distributed.scheduler.no-workers-timeout": "1s"}),
        distributed.LocalCluster(n_workers=n_workers, **settings) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield cluster, client


def at_once(part):
    return part


def rows(read=at_once):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    parts = [dask.delayed(read)(part) for part in np.split(X, 2)]
    dX = da.concatenate([da.from_delayed(part, (100, 2), dtype=float) for part in parts])
    return dX, da.from_array(y, chunks=100)


def what_ends(fit):
    """The exception that ends a fit in another thread."""
    found = []

    def work():
        try:
            found.append(fit())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), "the fit hangs"
    assert isinstance(found[0], Exception), "the fit succeeded"
    return found[0]


def model(client):
    return kfree.dask.KFreeClassifier(client=client, k_max=5, n_shards=2)


def test_no_workers():
    # Dask waits for workers, which may be on their way, as long as its own setting says.
    with threads(n_workers=0) as (_, client):
        error = what_ends(lambda: model(client).fit(*rows()))
    assert "without any running workers" in str(error)


def test_workers_that_leave(monkeypatch):
    with threads() as (cluster, client):

        def leave_then_spread(*args):
            cluster.scale(0)
            return spread(*args)

        spread = flow.spread
        monkeypatch.setattr(flow, "spread", leave_then_spread)
        error = what_ends(lambda: model(client).fit(*rows()))
    assert "without any running workers" in str(error)


@pytest.mark.parametrize("who", ["cluster", "client"])
def test_closed_between_two_stages(monkeypatch, who):
    with threads() as (cluster, client):

        def close_then_find(*args):
            (cluster if who == "cluster" else client).close()
            return find(*args)

        find = flow.find_neighbors
        monkeypatch.setattr(flow, "find_neighbors", close_then_find)
        error = what_ends(lambda: model(client).fit(*rows()))
    assert "client was closed or lost its scheduler" in str(error)


READING = threading.Event()


def slowly(part):
    READING.set()
    time.sleep(1.0)
    return part


@pytest.mark.parametrize("who", ["cluster", "client"])
def test_closed_while_workers_work(who):
    READING.clear()
    with threads() as (cluster, client):

        def close():
            assert READING.wait(PATIENCE)
            (cluster if who == "cluster" else client).close()

        closing = threading.Thread(target=close, daemon=True)
        closing.start()
        error = what_ends(lambda: model(client).fit(*rows(slowly)))
        closing.join(PATIENCE)
    assert "client was closed or lost its scheduler" in str(error)


def test_the_patience_can_end():
    # The control: a fit that waits for nobody is found out.
    with pytest.MonkeyPatch.context() as patch, pytest.raises(AssertionError, match="hangs"):
        patch.setitem(globals(), "PATIENCE", 0.1)
        what_ends(lambda: time.sleep(1.0))
