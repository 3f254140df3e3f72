"""Models in files that run nothing when they are loaded.

A file is a zip archive in the format of skops, with one more member that says what it is. Members
are stored and not compressed, so that an archive can hold no more than its own size. Before skops
sees the file, every type that it names must be on the list below: the estimators of kfree, the
scikit-learn steps that are made of numpy arrays alone, and plain data. Functions, trees and sparse
matrices are not on it.
"""

from __future__ import annotations

import io
import json
import os
import re
import stat
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from sklearn import __version__ as sklearn_version
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from kfree.atomic import replacing
from kfree.model_parts import check_parts
from kfree.plain_text import quoted, shown

# Files of formats 1 and 2 kept tables in other ways, those of 3 to 5 other parts of a field.
FORMAT = 6
# The member that says what the file is, and the one that skops begins with.
HEADER = "kfree.json"
SCHEMA = "schema.json"
# Other members are arrays.
ARRAY = re.compile(r"[0-9]+\.npy")
# How deep a model may be nested; a Pipeline in a Pipeline is about ten.
DEEPEST = 100
# How many names of types an error lists.
MOST_NAMES = 6

CLASSIFIERS = frozenset(
    (
        "kfree.baselines.PKNNClassifier",
        "kfree.baselines.StructuredKNNClassifier",
        "kfree.classifier.KFreeClassifier",
        "kfree.field.estimator.FieldClassifier",
    )
)
TABLE = "kfree.tables.preparation.TablePreparation"
# Steps before the classifier, by the package of scikit-learn that offers them. They are names and
# not types: a file that has none of them is loaded without importing them all.
STEPS = {
    "compose": ("ColumnTransformer",),
    "decomposition": ("PCA", "TruncatedSVD"),
    "discriminant_analysis": ("LinearDiscriminantAnalysis",),
    "feature_selection": ("VarianceThreshold",),
    "impute": ("KNNImputer", "MissingIndicator", "SimpleImputer"),
    "neighbors": ("NeighborhoodComponentsAnalysis",),
    "pipeline": ("FeatureUnion", "Pipeline"),
    "preprocessing": (
        "Binarizer",
        "FunctionTransformer",
        "MaxAbsScaler",
        "MinMaxScaler",
        "Normalizer",
        "OneHotEncoder",
        "OrdinalEncoder",
        "PolynomialFeatures",
        "PowerTransformer",
        "QuantileTransformer",
        "RobustScaler",
        "StandardScaler",
    ),
}
# A type of scikit-learn is named by the private module that it is written in.
STEP = re.compile(r"sklearn\.(?P<package>[a-z_]+)(\._[a-z_]+)?\.(?P<name>\w+)")
SCALAR_NAMES = {
    f"numpy.{kind}"
    for kind in ("bool_", "bool", "float32", "float64", "int8", "int32", "int64", "uint8", "str_")
}
# How skops makes an object, and which types it may make in that way.
OBJECT = "an estimator"
ALLOWED = {
    "CachedNode": {OBJECT, "numpy.ndarray", "builtins.list", "builtins.dict"},
    "DTypeNode": {"numpy.dtype"},
    "DictNode": {"builtins.dict"},
    "JsonNode": {"builtins.str"},
    "ListNode": {"builtins.list"},
    "NdArrayNode": SCALAR_NAMES | {"numpy.ndarray"},
    "ObjectNode": {OBJECT},
    "RandomStateNode": {"numpy.random.mtrand.RandomState"},
    "SliceNode": {"builtins.slice"},
    "TupleNode": {"builtins.tuple"},
    "TypeNode": SCALAR_NAMES
    | {"builtins.bool", "builtins.float", "builtins.int", "builtins.object", "builtins.str"},
}


class ModelFileError(ValueError):
    """A model cannot be saved or loaded; the message is one sentence that says why."""


def save(model: Any, path: str | Path) -> None:
    """Write a fitted model to a file.

    The file holds parameters and arrays, no code, and is written whole or not at all: an
    interrupted save leaves a file that was there before as it was.

    Parameters
    ----------
    model : a classifier of kfree, or a Pipeline that ends with one
        Steps before it may be `kfree.tables.TablePreparation` and scikit-learn's usual scalers,
        encoders and imputers, PCA, LinearDiscriminantAnalysis, NeighborhoodComponentsAnalysis,
        ColumnTransformer and FeatureUnion.
    path : str or Path
        By custom with the ending ``.kfree``.

    Raises
    ------
    ModelFileError
        If the model holds something that cannot be saved, such as a function.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile, pathlib, kfree
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = kfree.KFreeClassifier().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kfree.save(model, pathlib.Path(folder) / "iris.kfree")
    ...     again = kfree.load(pathlib.Path(folder) / "iris.kfree")
    >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    skops = _skops()
    classifier = classifier_of(model)
    if classifier is None:
        raise ModelFileError(
            "save takes a classifier of kfree, or a Pipeline that ends with one; "
            f"got {_description(model)}."
        )
    check_is_fitted(classifier)
    buffer = io.BytesIO()
    try:
        skops.dump(model, buffer)
    except Exception as error:  # many kinds, depending on what skops cannot take
        raise ModelFileError(f"The model cannot be saved: {_sentence(error)}") from None
    header = {
        "format": FORMAT,
        "kfree": _version(),
        "scikit-learn": sklearn_version,
        "columns": _names(model),
        "classes": classifier.classes_.tolist(),
    }
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(HEADER, json.dumps(header, ensure_ascii=False, indent=2, default=str))
        foreign = sorted(
            {kind for kind, fine in _types(json.loads(archive.read(SCHEMA))) if not fine}
        )
    if foreign:
        raise ModelFileError(
            f"The model holds {_listed(foreign)}; that is not among what a model file may hold, "
            "since loading it could run code."
        )
    with replacing(path) as file:
        file.write(buffer.getbuffer())


def load(path: str | Path) -> Any:
    """Read a model that `save` wrote.

    Nothing in the file is run, whoever made it. Its predictions are those of the saved model, to
    the last bit on the same machine with the same versions.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    The classifier or Pipeline that was saved.

    Raises
    ------
    ModelFileError
        If the file is not a model of kfree, is damaged, or names a type that is not trusted.
    OSError
        If the file cannot be read.
    """
    skops = _skops()
    name = quoted(path, 200)
    if not stat.S_ISREG(os.stat(path).st_mode):
        # A device or a pipe may never end.
        raise ModelFileError(f"{name} is not a file, so it is not a model of kfree.")
    with open(path, "rb") as file:
        try:
            model = skops.load(file, trusted=_inspect(file, name))
            classifier = classifier_of(model)
            if classifier is not None:
                check_is_fitted(classifier)
                check_parts(model)
        except ModelFileError:
            raise
        except Exception as error:  # whatever a damaged file may lead to
            raise ModelFileError(_damaged(name, error)) from None
    if classifier is None:
        raise ModelFileError(f"{name} holds no classifier of kfree.")
    return model


def classifier_of(model: Any) -> Any:
    """The classifier of kfree that a model is or ends with; None if there is none."""
    if isinstance(model, Pipeline):
        return classifier_of(model.steps[-1][1]) if model.steps else None
    kind = type(model)
    return model if f"{kind.__module__}.{kind.__qualname__}" in CLASSIFIERS else None


def _inspect(file: BinaryIO, name: str) -> list[str]:
    """The types that a file names.

    Raises unless every member, type and array of the file is one that `save` could have made.
    """
    n_bytes = file.seek(0, io.SEEK_END)
    file.seek(0)
    if not zipfile.is_zipfile(file):
        raise ModelFileError(f"{name} is not a model of kfree, or it is cut off.")
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        names = [member.filename for member in members]
        if HEADER not in names or SCHEMA not in names:
            raise ModelFileError(f"{name} is not a model of kfree.")
        strange = [other for other in names if not ARRAY.fullmatch(other)]
        if sorted(strange) != sorted([HEADER, SCHEMA]) or len(set(names)) < len(names):
            raise ModelFileError(f"{name} holds members that a model of kfree does not have.")
        stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
        if not stored or sum(member.file_size for member in members) > n_bytes:
            raise ModelFileError(f"{name} claims to hold more than its own size.")
        header = json.loads(archive.read(HEADER))
        number = header.get("format")
        if type(number) is not int or number < 1:
            raise ModelFileError(f"{name} is damaged or was altered: its format is no number.")
        if number != FORMAT:
            way = "install a newer kfree" if number > FORMAT else "fit the model again"
            raise ModelFileError(
                f"{name} was written by kfree {shown(header.get('kfree'))}, whose format this "
                f"version, {_version()}, does not know; {way}."
            )
        types = set(_types(json.loads(archive.read(SCHEMA))))
        foreign = _foreign(types)
        if foreign:
            raise ModelFileError(
                f"{name} names types that are not trusted and was not loaded: {_listed(foreign)}."
            )
        for member in members:
            if ARRAY.fullmatch(member.filename):
                _inspect_array(archive.read(member), name)
    file.seek(0)
    return sorted({kind for kind, _ in types})


def _inspect_array(content: bytes, name: str) -> None:
    """Raise unless an array is of plain numbers or texts and as long as it says."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, _, dtype = read[version](stream)
    n_items = 1
    for length in shape:
        n_items *= length
    if dtype.hasobject or dtype.kind not in "biufU" or dtype.names:
        raise ModelFileError(f"{name} holds an array of objects and was not loaded.")
    if n_items * dtype.itemsize != len(content) - stream.tell():
        raise ModelFileError(f"{name} is damaged: an array is not as long as it says.")


def _types(schema: Any, depth: int = 0) -> Iterator[tuple[str, bool]]:
    """The types that a schema names, and whether each is allowed where it stands."""
    if depth > DEEPEST:
        yield "objects nested without end", False
    elif isinstance(schema, list):
        for part in schema:
            yield from _types(part, depth + 1)
    elif isinstance(schema, dict):
        if "__loader__" in schema or "__class__" in schema:
            loader = schema.get("__loader__")
            kind = f"{schema.get('__module__')}.{schema.get('__class__')}"
            allowed = ALLOWED.get(loader, set()) if isinstance(loader, str) else set()
            yield kind, kind in allowed or (OBJECT in allowed and _is_object(kind))
        for part in schema.values():
            yield from _types(part, depth + 1)


def _foreign(types: Iterable[tuple[str, bool]]) -> list[str]:
    return sorted({kind for kind, fine in types if not fine})


def _is_object(kind: str) -> bool:
    """Whether a type is an estimator that a model may hold."""
    step = STEP.fullmatch(kind)
    if step is not None:
        return step["name"] in STEPS.get(step["package"], ())
    return kind in CLASSIFIERS or kind == TABLE


def _damaged(name: str, error: Exception) -> str:
    if isinstance(error, MemoryError | RecursionError):
        return f"{name} is damaged or was altered."
    return f"{name} is damaged or was altered: {_sentence(error)}"


def _sentence(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return shown(lines[0] if lines else type(error).__name__, 200).rstrip(".") + "."


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(shown(name, 100) for name in names[:MOST_NAMES]) + more


def _description(model: Any) -> str:
    if isinstance(model, Pipeline) and model.steps:
        return f"a Pipeline that ends with {type(model.steps[-1][1]).__name__}"
    return f"{type(model).__name__}"


def _names(model: Any) -> list[str] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("kfree")
    except PackageNotFoundError:  # run from its sources
        return "unknown"


def _skops() -> Any:
    try:
        import skops.io
    except ImportError:
        raise ImportError(
            "Saving and loading needs the package skops: pip install 'kfree[files]'."
        ) from None
    return skops.io
