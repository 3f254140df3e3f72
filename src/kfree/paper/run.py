"""From settings to a folder: work that is kept, pictures, CSV files and the page."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from kfree.evaluation.data import Dataset
from kfree.evaluation.store import (
    PACKAGE,
    Store,
    digest,
    digest_evaluation,
    digest_files,
    digest_model,
    write,
)
from kfree.page import Picture
from kfree.paper import choices, densities, exactness, scores, similarity, times
from kfree.paper.chapters import choices as about_choices
from kfree.paper.chapters import densities as about_densities
from kfree.paper.chapters import exactness as about_exactness
from kfree.paper.chapters import scores as about_scores
from kfree.paper.chapters import similarity as about_similarity
from kfree.paper.chapters import times as about_times
from kfree.paper.chapters.blocks import Chapter
from kfree.paper.chapters.page import render
from kfree.paper.datasets import Found, find
from kfree.paper.settings import Settings
from kfree.paper.unit import Unit

TITLE = "The number of neighbors, estimated: the paper's experiments made anew"


@dataclass(frozen=True)
class Part:
    """A part of the experiments. One that is timed does not share the machine."""

    units: Callable[..., list[Unit]]
    chapter: Callable[..., Chapter]
    timed: bool = False


# In the order of the page.
PARTS = {
    scores.NAME: Part(scores.units, about_scores.chapter),
    times.NAME: Part(times.units, about_times.chapter, timed=True),
    densities.NAME: Part(densities.units, about_densities.chapter),
    similarity.NAME: Part(similarity.units, about_similarity.chapter),
    exactness.NAME: Part(exactness.units, about_exactness.chapter),
    choices.NAME: Part(choices.units, about_choices.chapter),
}


class PaperError(Exception):
    """Something went wrong, said in one sentence."""


class Progress(Protocol):
    """Who is told how far the work has come."""

    def begin(self, n_units: int, n_kept: int) -> None: ...

    def done(self, name: str, seconds: float) -> None: ...


@dataclass(frozen=True)
class Made:
    """What a run has left behind."""

    page: Path
    files: tuple[Path, ...]
    missing: dict[str, str]
    n_done: int
    n_kept: int


def make(
    output: Path,
    settings: Settings,
    parts: tuple[str, ...],
    folder: Path | None,
    n_jobs: int,
    progress: Progress,
) -> Made:
    """Do the work of the parts that is not there yet, then write everything that is known."""
    _require_packages()
    found = find(settings.data, folder)
    if not found.datasets:
        raise PaperError(" ".join(found.missing.values()))
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PaperError(f"The folder {output} cannot be made: {error.strerror}.") from error
    store = Store(output / ".parts")
    conditions = _Conditions(settings, found)
    everything = {
        name: [unit for data in found.datasets.values() for unit in part.units(settings, data)]
        for name, part in PARTS.items()
    }
    wanted = [unit for name in parts for unit in everything[name]]
    pending = [unit for unit in wanted if store.get(unit.name, conditions.of(unit)) is None]
    n_kept = len(wanted) - len(pending)
    progress.begin(len(wanted), n_kept)
    for unit, value, seconds in _work(pending, n_jobs):
        store.put(unit.name, conditions.of(unit), value)
        progress.done(unit.name, seconds)

    # Also what an earlier run has left of the parts that were not asked for.
    chapters = {}
    for name, part in PARTS.items():
        known = {
            unit.labels: value
            for unit in everything[name]
            if (value := store.get(unit.name, conditions.of(unit))) is not None
        }
        if known:
            chapters[name] = part.chapter(settings, found.datasets, known)
    files = _write(output, settings, found, chapters)
    return Made(output / "index.html", files, found.missing, len(pending), n_kept)


class _Conditions:
    """All that a result depends on."""

    def __init__(self, settings: Settings, found: Found) -> None:
        values = asdict(settings)
        # Which other data sets and structures are asked for changes no result.
        self._settings = {k: v for k, v in values.items() if k not in ("data", "structures")}
        self._data = {
            name: digest([dataset.X.tobytes(), repr(dataset.y.tolist()).encode()])
            for name, dataset in found.datasets.items()
        }
        self._code = {
            name: digest_files(PACKAGE / "paper" / f"{file}.py" for file in (name, "unit"))
            for name in PARTS
        }
        self._everywhere = {
            "model": digest_model(),
            "evaluation": digest_evaluation(),
            "versions": [version(name) for name in ("numpy", "scipy", "scikit-learn")],
        }

    def of(self, unit: Unit) -> dict[str, Any]:
        return self._everywhere | {
            "unit": [unit.part, *unit.labels],
            "settings": self._settings,
            "data": self._data[unit.labels[0]],
            "code": self._code[unit.part],
        }


def _work(units: list[Unit], n_jobs: int) -> Iterator[tuple[Unit, Any, float]]:
    """Do the units as they come, first those that can share the machine, then the timed ones."""
    together = [unit for unit in units if not PARTS[unit.part].timed]
    alone = [unit for unit in units if PARTS[unit.part].timed]
    if min(n_jobs, len(together)) > 1:
        # One at a time to a worker: pieces differ much in size.
        pool = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
        for i, value, seconds in pool(delayed(_do)(i, unit) for i, unit in enumerate(together)):
            yield together[i], value, seconds
    else:
        alone = together + alone
    for i, unit in enumerate(alone):
        _, value, seconds = _do(i, unit)
        yield unit, value, seconds


def _do(i: int, unit: Unit) -> tuple[int, Any, float]:
    start = time.perf_counter()
    try:
        with threadpool_limits(1):
            value = unit.work()
    except Exception as error:
        raise PaperError(f"{unit.name}: {type(error).__name__}: {error}") from error
    return i, value, time.perf_counter() - start


def _write(
    output: Path, settings: Settings, found: Found, chapters: dict[str, Chapter]
) -> tuple[Path, ...]:
    contents: dict[str, str | bytes] = {}
    for chapter in chapters.values():
        contents |= {numbers.file: numbers.text() for numbers in chapter.numbers}
        contents |= {
            block.file: block.png for block in chapter.blocks if isinstance(block, Picture)
        }
    contents["index.html"] = render(
        TITLE, _lead(found), _notices(settings, found, chapters), chapters, _end(settings)
    )
    try:
        for name, content in contents.items():
            write(output / name, content)
    except OSError as error:
        raise PaperError(f"Nothing can be written to {output}: {error.strerror}.") from error
    return tuple(output / name for name in contents)


def _lead(found: Found) -> list[str]:
    return [
        "J. W. Yoon and N. Friel, in “Efficient estimation of the number of neighbours in "
        "probabilistic K nearest neighbour classification”, average a nearest-neighbor "
        "classifier over the number of neighbors K and the strength beta of their pull, by a fast "
        "approximation that they call KOREA. This page makes the tables and figures of their "
        "section “Simulation Results” anew, with the paper's own figures beside them, and adds "
        "the exact answer wherever the paper has an approximation.",
        f"Data sets: {', '.join(_described(dataset) for dataset in found.datasets.values())}.",
    ]


def _described(dataset: Dataset) -> str:
    n_samples, n_features = dataset.X.shape
    return f"{dataset.name} ({n_samples} rows, {n_features} features)"


def _notices(settings: Settings, found: Found, chapters: dict[str, Chapter]) -> list[str]:
    notices = list(found.missing.values())
    if settings.quick:
        notices.append(
            "This is the quick version: fewer data sets, structures, K and draws. Its numbers "
            "are for a first look only."
        )
    absent = [name for name in PARTS if name not in chapters]
    if absent:
        notices.append(
            f"Not made yet: {', '.join(absent)}. kfree paper without --only makes everything."
        )
    return notices


def _end(settings: Settings) -> list[str]:
    return [
        f"Seed {settings.random_state}. kfree {version('kfree')}, numpy {version('numpy')}, scipy "
        f"{version('scipy')}, scikit-learn {version('scikit-learn')}, Python "
        f"{platform.python_version()}."
    ]


def _require_packages() -> None:
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
        import skimage  # noqa: F401
    except ImportError as error:
        raise PaperError(
            f"The package {error.name} is missing; pip install 'kfree[paper]' brings all that "
            "kfree paper needs."
        ) from error
