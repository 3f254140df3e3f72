"""Models in files: the same predictions afterwards, and nothing run on the way."""

from __future__ import annotations

import copy
import errno
import io
import json
import os
import pickle
import zipfile
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, QuantileTransformer, StandardScaler

import kfree
from kfree import KFreeClassifier, ModelFileError, PKNNClassifier, StructuredKNNClassifier
from kfree.atomic import replacing
from kfree.persistence import CLASSIFIERS, STEPS, TABLE, _is_object
from kfree.tables import TablePreparation

pytest.importorskip("skops")

X, Y = (values[::2] for values in load_iris(return_X_y=True))
# Rows that the models have not seen, some of them at the same distance from several others.
NEW = np.round(X[::7] + 0.05, 1)
QUICK = {"inference": "metropolis", "n_draws": 40, "n_burn_in": 10, "random_state": 0}


def manhattan(a, b):
    return float(np.abs(a - b).sum())


MODELS = {
    **{
        f"{kind.__name__}, {structure}": kind(structure=structure)
        for kind in (KFreeClassifier, PKNNClassifier, StructuredKNNClassifier)
        for structure in ("asymmetric", "boltzmann", "boltzmann2")
    },
    "laplace": KFreeClassifier(inference="laplace", k_max=4),
    "optimal": KFreeClassifier(average=False),
    "conditional": KFreeClassifier(update="conditional", k_max=10),
    "sampler": KFreeClassifier(**QUICK),
    "sampler, conditional": KFreeClassifier(**QUICK, update="conditional"),
    "tree": KFreeClassifier(algorithm="kd_tree"),
    "weighted": KFreeClassifier(metric_params={"w": [1.0, 2.0, 3.0, 4.0]}),
    "seuclidean": KFreeClassifier(metric="seuclidean"),
    "mahalanobis": KFreeClassifier(metric="mahalanobis"),
    "cosine": KFreeClassifier(metric="cosine"),
    "canberra": PKNNClassifier(metric="canberra"),
    "chebyshev": StructuredKNNClassifier(metric="chebyshev"),
    "pipeline": make_pipeline(
        FeatureUnion(
            [("scaled", StandardScaler()), ("ranks", QuantileTransformer(n_quantiles=20))]
        ),
        PCA(3),
        KFreeClassifier(),
    ),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.kfree"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The bytes of a small saved model."""
    path = tmp_path_factory.mktemp("saved") / "model.kfree"
    kfree.save(KFreeClassifier(k_max=3).fit(X, Y), path)
    return path.read_bytes()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
class TestTheSame:
    @pytest.mark.parametrize("name", MODELS)
    def test_predictions_to_the_last_bit(self, name, path):
        model = copy.deepcopy(MODELS[name]).fit(X, Y)
        kfree.save(model, path)
        again = kfree.load(path)
        assert type(again) is type(model)
        np.testing.assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))
        np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
        if isinstance(model, KFreeClassifier | PKNNClassifier):
            np.testing.assert_array_equal(again.predict_proba(None), model.predict_proba(None))
        if isinstance(model, KFreeClassifier):
            assert again.get_params() == model.get_params()
            np.testing.assert_array_equal(again.k_posterior_, model.k_posterior_)
            beta = np.array([0.5, 5.0])
            np.testing.assert_array_equal(
                again.training_density(beta), model.training_density(beta)
            )
            assert (again.k_optimal_, again.beta_mean_) == (model.k_optimal_, model.beta_mean_)

    def test_with_many_rows_in_a_tree(self, path):
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(700, 3))
        labels = (rows[:, 0] + rng.normal(size=700) > 0).astype(int)
        model = KFreeClassifier().fit(rows, labels)
        kfree.save(model, path)
        new = rng.normal(size=(50, 3))
        np.testing.assert_array_equal(kfree.load(path).predict_proba(new), model.predict_proba(new))

    @pytest.mark.parametrize("metric", ["precomputed", "nan_euclidean", "jaccard"])
    def test_other_inputs(self, metric, path):
        rows = X.mean(axis=0) < X if metric == "jaccard" else X.copy()
        if metric == "precomputed":
            rows = np.abs(X[:, None] - X).sum(axis=2)
        if metric == "nan_euclidean":
            rows[::5, 1] = np.nan
        model = KFreeClassifier(metric=metric, k_max=8).fit(rows, Y)
        kfree.save(model, path)
        new = rows[::9]
        np.testing.assert_array_equal(kfree.load(path).predict_proba(new), model.predict_proba(new))

    @pytest.mark.parametrize("labels", [Y, np.array(["a", "ß", "c"])[Y], Y > 0])
    def test_labels(self, labels, path):
        kfree.save(KFreeClassifier().fit(X, labels), path)
        again = kfree.load(path)
        np.testing.assert_array_equal(again.classes_, np.unique(labels))
        assert again.classes_.dtype == np.unique(labels).dtype

    def test_a_table(self, path):
        pd = pytest.importorskip("pandas")
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(
            {
                "id": range(60),
                "größe": rng.normal(size=60),
                "farbe": rng.choice(["rot", "grün", None], 60),
                "tag": pd.date_range("2024-01-01", periods=60).astype(str),
            }
        )
        frame.loc[3, "größe"] = None
        model = make_pipeline(TablePreparation(drop=["tag"]), KFreeClassifier())
        model.fit(frame, np.where(frame["größe"] > 0, "viel", "wenig"))
        kfree.save(model, path)
        again = kfree.load(path)
        np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
        assert again[0].notes_ == model[0].notes_
        assert again[0].get_params() == model[0].get_params()
        header = json.loads(zipfile.ZipFile(path).read("kfree.json"))
        assert header["columns"] == list(frame.columns)
        assert header["classes"] == ["viel", "wenig"]
        assert header["format"] == 6
        assert header["kfree"]

    def test_saved_again_after_loading(self, path):
        kfree.save(KFreeClassifier().fit(X, Y), path)
        first = kfree.load(path)
        kfree.save(first, path)
        np.testing.assert_array_equal(kfree.load(path).predict_proba(NEW), first.predict_proba(NEW))

    @pytest.mark.parametrize("name", ["optimal", "mahalanobis", "pipeline"])
    def test_pickle(self, name):
        model = copy.deepcopy(MODELS[name]).fit(X, Y)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))

    def test_pickle_of_a_function_as_metric(self):
        model = PKNNClassifier(metric=manhattan).fit(X, Y)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))


class TestSaveRefuses:
    @pytest.mark.parametrize(
        ("model", "expected"),
        [
            (RandomForestClassifier(n_estimators=2), "got RandomForestClassifier"),
            (make_pipeline(StandardScaler(), RandomForestClassifier(2)), "Pipeline that ends with"),
            (GridSearchCV(KFreeClassifier(), {"average": [True]}, cv=2), "got GridSearchCV"),
            (PKNNClassifier(metric=manhattan), "manhattan"),
            (make_pipeline(FunctionTransformer(np.exp), KFreeClassifier()), "numpy.exp"),
        ],
    )
    def test_what_a_file_may_not_hold(self, model, expected, path):
        path.write_text("the old file")
        with pytest.raises(ModelFileError, match=expected) as error:
            kfree.save(model.fit(X, Y), path)
        assert "\n" not in str(error.value)
        assert path.read_text() == "the old file"

    def test_what_is_not_fitted(self, path):
        with pytest.raises(NotFittedError):
            kfree.save(KFreeClassifier(), path)


class TestWriting:
    def test_an_interrupted_save_leaves_the_old_file(self, path, monkeypatch):
        path.write_text("the old file")

        def interrupt(*args):
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            kfree.save(KFreeClassifier().fit(X, Y), path)
        assert path.read_text() == "the old file"
        assert os.listdir(path.parent) == [path.name]

    @pytest.mark.parametrize(
        ("number", "kind"), [(errno.ENOSPC, OSError), (errno.EACCES, PermissionError)]
    )
    def test_no_space_and_no_permission(self, path, monkeypatch, number, kind):
        path.write_text("the old file")

        def fail(*args):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(kind, match=r"model\.kfree") as error:
            kfree.save(KFreeClassifier().fit(X, Y), path)
        assert error.value.errno == number
        assert path.read_text() == "the old file"
        assert os.listdir(path.parent) == [path.name]

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
    def test_a_full_device(self):
        with pytest.raises(OSError, match="/dev/full") as error:
            kfree.save(KFreeClassifier().fit(X, Y), "/dev/full")
        assert error.value.errno == errno.ENOSPC
        assert Path("/dev/full").is_char_device()

    def test_no_such_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="absent"):
            kfree.save(KFreeClassifier().fit(X, Y), tmp_path / "absent" / "model.kfree")

    def test_a_folder(self, tmp_path):
        with pytest.raises(IsADirectoryError):
            kfree.save(KFreeClassifier().fit(X, Y), tmp_path)

    def test_a_link_is_followed(self, tmp_path):
        (tmp_path / "real").write_text("old")
        (tmp_path / "link").symlink_to(tmp_path / "real")
        with replacing(tmp_path / "link") as file:
            file.write(b"new")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "real").read_text() == "new"

    def test_rights_are_kept(self, path):
        path.write_text("old")
        path.chmod(0o640)
        with replacing(path) as file:
            file.write(b"new")
        assert path.stat().st_mode & 0o777 == 0o640


class Trap:
    """Leaves a mark if it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


def rezipped(content: bytes, change=None, compression=zipfile.ZIP_STORED, more=None) -> bytes:
    """The archive anew, with its schema changed and members added."""
    old, buffer = zipfile.ZipFile(io.BytesIO(content)), io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "schema.json" and change is not None:
                schema = json.loads(data)
                change(schema)
                data = json.dumps(schema).encode()
            if name not in (more or {}):
                new.writestr(name, data)
        for name, data in (more or {}).items():
            new.writestr(name, data)
    return buffer.getvalue()


def array(values, **kwargs) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values, **kwargs)
    return buffer.getvalue()


def function_node(schema):
    schema["content"]["content"]["verbose"] = {
        "__class__": "mkdir",
        "__module__": "os",
        "__loader__": "FunctionNode",
        "content": {"module_path": "os", "function": "mkdir"},
    }


def other_class(loader, module, name):
    def change(schema):
        schema.update({"__loader__": loader, "__module__": module, "__class__": name})

    return change


def nested(schema):
    inner: dict = {}
    schema["content"]["content"]["verbose"] = inner
    for _ in range(300):
        inner["content"] = {}
        inner = inner["content"]


# Valid archives with types that must not be made.
HOSTILE = {
    "a function": function_node,
    "a callable": other_class("ConstructorFromReduceNode", "subprocess", "Popen"),
    "a method": other_class("MethodNode", "kfree.classifier", "KFreeClassifier"),
    "a partial": other_class("PartialNode", "functools", "partial"),
    "an operator": other_class("OperatorFuncNode", "operator", "methodcaller"),
    "a tree": other_class("TreeNode", "sklearn.tree._tree", "Tree"),
    "another estimator": other_class("ObjectNode", "sklearn.ensemble._forest", "Random"),
    "a module's attribute": other_class("ObjectNode", "kfree.classifier", "np"),
    "an old loader": other_class("OldNode", "kfree.classifier", "KFreeClassifier"),
    "no end": nested,
}


class TestLoadRefuses:
    @pytest.fixture(autouse=True)
    def keep_away(self, monkeypatch):
        """Nothing may be unpickled or built on the way."""

        def fail(*args, **kwargs):
            pytest.fail("a pickle was read")

        monkeypatch.setattr(pickle, "load", fail)
        monkeypatch.setattr(pickle, "loads", fail)

    def refuse(self, path, content, expected="."):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=expected) as error:
            kfree.load(path)
        assert "\n" not in str(error.value)
        assert str(error.value).endswith(".")

    @pytest.mark.parametrize("what", HOSTILE)
    def test_types_that_are_not_trusted(self, what, saved, path):
        self.refuse(path, rezipped(saved, HOSTILE[what]), "not trusted")

    def test_the_way_of_changing_a_file_is_fair(self, saved, path):
        path.write_bytes(rezipped(saved))
        assert isinstance(kfree.load(path), KFreeClassifier)

    def test_a_pickle_in_disguise(self, path, tmp_path):
        mark = tmp_path / "mark"
        self.refuse(path, pickle.dumps(Trap(mark)), "not a model of kfree")
        assert not mark.exists()

    def test_a_pickle_as_an_array(self, saved, path, tmp_path):
        mark = tmp_path / "mark"
        inside = array(np.array([Trap(mark)], dtype=object), allow_pickle=True)
        name = next(n for n in zipfile.ZipFile(io.BytesIO(saved)).namelist() if ".npy" in n)
        self.refuse(path, rezipped(saved, more={name: inside}), "array of objects")
        assert not mark.exists()

    @pytest.mark.parametrize("name", ["../../evil", "/tmp/evil", "a/b.npy", "x.pkl", "evil.py"])
    def test_strange_members(self, saved, path, name):
        self.refuse(path, rezipped(saved, more={name: b"x"}), "members")

    @pytest.mark.filterwarnings("ignore:Duplicate name")
    def test_a_member_twice(self, saved, path):
        path.write_bytes(saved)
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("schema.json", "{}")
        self.refuse(path, path.read_bytes(), "members")

    def test_an_archive_that_explodes(self, saved, path):
        packed = rezipped(saved, None, zipfile.ZIP_DEFLATED, {"1.npy": bytes(10_000_000)})
        assert len(packed) < 100_000
        self.refuse(path, packed, "more than its own size")

    def test_an_array_that_claims_more_than_it_has(self, saved, path):
        name = next(n for n in zipfile.ZipFile(io.BytesIO(saved)).namelist() if ".npy" in n)
        huge = array(np.zeros(10)).replace(b"(10,), }            ", b"(1000000000000,), } ")
        assert b"1000000000000" in huge
        self.refuse(path, rezipped(saved, more={name: huge}), "not as long as it says")

    @pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.7, 0.99])
    def test_cut_off(self, saved, path, share):
        self.refuse(path, saved[: int(share * len(saved))], "not a model of kfree")

    def test_every_kind_of_altered_byte(self, saved, path):
        expected = None
        for position in np.linspace(0, len(saved) - 1, 80).astype(int):
            altered = bytearray(saved)
            altered[position] ^= 0x55
            path.write_bytes(altered)
            try:
                model = kfree.load(path)
            except ModelFileError:
                continue
            # A byte that no reader looks at, such as the date of a member.
            if expected is None:
                path.write_bytes(saved)
                expected = kfree.load(path).predict_proba(NEW)
            np.testing.assert_array_equal(model.predict_proba(NEW), expected)

    @pytest.mark.parametrize(
        "content",
        [b"", b"hello", b"PK\x03\x04" + bytes(100), b"a,b\n1,2\n"],
        ids=["empty", "text", "half a zip", "csv"],
    )
    def test_foreign_files(self, path, content):
        self.refuse(path, content, "not a model of kfree")

    def test_a_foreign_archive(self, path):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("word/document.xml", "<xml/>")
        self.refuse(path, buffer.getvalue(), "not a model of kfree")

    def test_another_model_of_skops(self, path):
        from skops import io as skops

        skops.dump(StandardScaler().fit(X), path)
        self.refuse(path, path.read_bytes(), "not a model of kfree")

    def test_no_classifier_inside(self, path, saved):
        from skops import io as skops

        skops.dump(StandardScaler().fit(X), path)
        header = zipfile.ZipFile(io.BytesIO(saved)).read("kfree.json")
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("kfree.json", header)
        self.refuse(path, path.read_bytes(), "no classifier")

    def test_a_newer_format(self, saved, path):
        header = json.dumps({"format": 99, "kfree": "7.0"})
        self.refuse(path, rezipped(saved, more={"kfree.json": header}), "written by kfree 7.0")

    @pytest.mark.parametrize("number", [0, -1, True, 1.5, "2", None])
    def test_no_format_number(self, saved, path, number):
        header = json.dumps({"format": number, "kfree": "0.1"})
        self.refuse(path, rezipped(saved, more={"kfree.json": header}), "format is no number")

    def test_an_older_format(self, saved, path):
        header = json.dumps({"format": 1, "kfree": "0.0\x1b[2J"})
        self.refuse(path, rezipped(saved, more={"kfree.json": header}), "fit the model again")

    def test_what_is_no_file(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        for name in ("/dev/zero", tmp_path / "pipe", tmp_path):
            with pytest.raises(ModelFileError, match="is not a file"):
                kfree.load(name)

    def test_a_header_of_another_kind(self, saved, path):
        self.refuse(path, rezipped(saved, more={"kfree.json": "[]"}), "damaged")

    def test_no_such_file(self, path):
        with pytest.raises(FileNotFoundError):
            kfree.load(path)


def table_model():
    """A pipeline with every kind of column."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=80) + y,
            "money": [f"${1000 + i * 37 % 80:,}" for i in range(80)],
            "day": pd.date_range("2024-01-01", periods=80).astype(str),
            "color": rng.choice(["red", "green", "blue"], 80),
            "text": [
                f"{'wrong bill' if label else 'late parcel'} {i}" for i, label in enumerate(y)
            ],
        }
    )
    return make_pipeline(TablePreparation(), StandardScaler(), KFreeClassifier()).fit(
        frame, y
    ), frame


class TestTampered:
    """A file whose arrays were changed fails when it is loaded, never in predict."""

    def test_every_array(self, path):
        pytest.importorskip("skrub")
        model, frame = table_model()
        kfree.save(model, path)
        content = path.read_bytes()
        archive = zipfile.ZipFile(io.BytesIO(content))
        members = [name for name in archive.namelist() if name.endswith(".npy")]
        n_refused = 0
        for name in members:
            values = np.load(io.BytesIO(archive.read(name)))
            changes = [values[..., :-1] if values.ndim else values[None]]
            if values.dtype.kind == "f":
                changes += [values * np.nan, -1.0 - np.abs(values)]
            for changed in changes:
                path.write_bytes(rezipped(content, more={name: array(changed)}))
                try:
                    again = kfree.load(path)
                except ModelFileError:
                    n_refused += 1
                else:
                    assert np.isfinite(again.predict_proba(frame[:3])).all()
        assert n_refused > len(members)

    @pytest.mark.parametrize(
        "change",
        [
            lambda told: told["kinds"][0].update(kind="color"),
            lambda told: told["columns"].append(told["columns"][0]),
            lambda told: told["kinds"][0].update(strange=1),
            lambda told: told["values_"].clear(),
            lambda told: told["values_"].update(color=[1, 2]),
            lambda told: told["terms"].clear(),
            lambda told: told["terms"][0].pop(),
            lambda told: told.update(circles_=[["day", "moon"]]),
            lambda told: told.update(notes_=7),
            lambda told: told["columns"].pop(),
        ],
    )
    def test_what_is_told_of_a_table(self, change):
        pytest.importorskip("skrub")
        prepare = table_model()[0][0]
        state = prepare.__getstate__()
        told = json.loads(state["told"])
        change(told)
        with pytest.raises((ValueError, TypeError, KeyError)):
            TablePreparation().__setstate__({**state, "told": json.dumps(told)})

    def test_steps_that_do_not_fit_together(self, path):
        model, _ = table_model()
        model.steps.pop(1)
        model.steps.insert(0, ("more", StandardScaler().fit(np.ones((2, 3)))))
        kfree.save(model, path)
        with pytest.raises(ModelFileError, match="do not fit together"):
            kfree.load(path)

    def test_a_wide_table_makes_a_small_file(self, path):
        pd = pytest.importorskip("pandas")
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.normal(size=(60, 2000))).rename(columns=lambda j: f"gene {j}")
        model = make_pipeline(TablePreparation(), KFreeClassifier(k_max=5))
        kfree.save(model.fit(frame, np.arange(60) % 2), path)
        assert path.stat().st_size < 2 * frame.to_numpy().nbytes


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("indices", lambda a: a + 1000),
        ("indices", lambda a: a - 1000),
        ("indices", lambda a: a[:, :0]),
        ("indices", lambda a: a.astype(float)),
        ("labels", lambda a: a + 5),
        ("labels", lambda a: a[:-1]),
        ("points", lambda a: a[:-1]),
        ("points", lambda a: a.astype(str)),
        ("radii", lambda a: a * np.nan),
        ("structure", lambda a: "ring"),
        ("prior", lambda a: [0.0, -1.0]),
        ("radii", lambda a: a[:, ::-1]),
        ("k", lambda a: a[::-1]),
        ("log_prior", lambda a: a + 1.0),
        ("curves", lambda a: a | {"beta": a["beta"] * np.nan}),
        ("curves", lambda a: a | {"log_mass": a["log_mass"] * np.nan}),
        ("curves", lambda a: {name: values[:-1] for name, values in a.items()}),
        ("space", lambda a: {"metric": "no such", "params": {}}),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(name, change):
    """Compiled code does not look where an index points, so this must be seen before."""
    state = KFreeClassifier().fit(X, Y).__getstate__()
    state["_fitted"] = state["_fitted"] | {name: change(state["_fitted"][name])}
    with pytest.raises(ValueError, match="do not fit together"):
        KFreeClassifier().__setstate__(state)


def test_a_state_is_parameters_and_plain_arrays():
    def plain(value):
        if isinstance(value, dict):
            return all(plain(part) for part in value.values())
        if isinstance(value, list):
            return all(plain(part) for part in value)
        return value is None or isinstance(value, str | bool | int | float | np.ndarray)

    for model in MODELS.values():
        if not hasattr(model, "steps") and getattr(model, "inference", "") != "metropolis":
            assert plain(copy.deepcopy(model).fit(X, Y).__getstate__())


def test_types_are_trusted_by_name():
    """The list names types without importing them: each must be there, and no other."""
    for package, names in STEPS.items():
        for name in names:
            kind = getattr(import_module(f"sklearn.{package}"), name)
            assert _is_object(f"{kind.__module__}.{kind.__qualname__}")
    for name in [*CLASSIFIERS, TABLE]:
        module, _, kind = name.rpartition(".")
        assert getattr(import_module(module), kind).__module__ == module
        assert _is_object(name)
    for name in (
        "sklearn.preprocessing._function_transformer.partial",
        "sklearn.preprocessing._data.os.StandardScaler",
        "sklearn.utils._testing.StandardScaler",
        "sklearn.ensemble._forest.RandomForestClassifier",
        "sklearnx.pipeline.Pipeline",
        "kfree.persistence.Path",
    ):
        assert not _is_object(name)
