"""What has been computed, kept on disk, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kfree.atomic import replacing

PACKAGE = Path(__file__).resolve().parent.parent

# Parts of the package that cannot change a prediction: an edit there keeps what was computed.
NOT_THE_MODEL = {
    "atomic.py",
    "audit.py",
    "cli.py",
    "commands",
    "displays",
    "evaluation",
    "fitted_state.py",
    "label_noise.py",
    "model_parts.py",
    "page",
    "paper",
    "persistence.py",
    "plain_text.py",
    "progress.py",
    "report",
    "tables",
}


def write(path: Path, content: str | bytes) -> None:
    """Write a file whole, and the folders that it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


def digest(parts: Iterable[bytes]) -> str:
    """A short fingerprint of some bytes, in their order."""
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(8, "big") + part)
    return total.hexdigest()[:16]


def digest_files(paths: Iterable[Path]) -> str:
    """A fingerprint of the names and contents of files."""
    return digest(part for path in paths for part in (path.name.encode(), path.read_bytes()))


def digest_model() -> str:
    """A fingerprint of all source files that a prediction depends on."""
    return digest_files(
        path
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] not in NOT_THE_MODEL
    )


def digest_evaluation() -> str:
    """A fingerprint of the protocol and the scores."""
    return digest_files(PACKAGE / "evaluation" / name for name in ("protocol.py", "scores.py"))


class Store:
    """Values that JSON can hold, each under a name and the conditions it was computed under.

    Parameters
    ----------
    folder : Path
        Made when the first value is put.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, name: str, conditions: dict[str, Any]) -> Any:
        """The value under this name and these conditions; None if there is none."""
        try:
            kept = json.loads(self._path(name, conditions).read_text(encoding="utf-8"))
            return kept["value"] if kept["conditions"] == _plain(conditions) else None
        except (OSError, ValueError, KeyError, TypeError):
            # Absent, or damaged by something other than us: to be computed anew.
            return None

    def put(self, name: str, conditions: dict[str, Any], value: Any) -> None:
        """Keep a value."""
        kept = {"conditions": conditions, "value": value}
        write(self._path(name, conditions), json.dumps(kept))

    def _path(self, name: str, conditions: dict[str, Any]) -> Path:
        mark = digest([json.dumps(_plain(conditions), sort_keys=True).encode()])
        return self.folder / f"{re.sub(r'[^A-Za-z0-9]+', '-', name)}-{mark}.json"


def _plain(conditions: dict[str, Any]) -> dict[str, Any]:
    """The conditions as they come back from JSON: tuples are lists there."""
    return json.loads(json.dumps(conditions))
