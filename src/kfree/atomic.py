"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Write beside, then rename: nobody ever reads half a file, and a failure leaves the old one.

    Parameters
    ----------
    path : str or Path
        A link is followed. What is not a file, such as /dev/stdout, is written to directly.

    Raises
    ------
    OSError
        With `path` as its file name, whatever went wrong.
    """
    # Not the link but what it points to is replaced.
    target = Path(os.path.realpath(path))
    try:
        check_writable(path)
        if target.exists() and not target.is_file():
            with open(target, "wb") as file:
                yield file
            return
        part = tempfile.NamedTemporaryFile(  # noqa: SIM115 - closed below
            dir=target.parent, prefix=f".{target.name}.", suffix=".part", delete=False
        )
        try:
            with part:
                yield part  # type: ignore[misc]
                part.flush()
                os.fsync(part.fileno())
            os.chmod(part.name, _mode(target))
            os.replace(part.name, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(part.name)
            raise
    except OSError as error:
        if error.errno is None:
            raise
        raise type(error)(error.errno, os.strerror(error.errno), str(path)) from None


def check_writable(path: str | Path) -> None:
    """Raise early, before long work, if a file cannot be written."""
    target = Path(os.path.realpath(path))
    number = None
    if target.is_dir():
        number = errno.EISDIR
    elif not target.parent.is_dir():
        number = errno.ENOENT
    elif not os.access(target.parent if not target.exists() else target, os.W_OK):
        number = errno.EACCES
    if number is not None:
        raise OSError(number, os.strerror(number), str(path))


def _mode(target: Path) -> int:
    """The rights of the file that is replaced, or those that a new file has."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
