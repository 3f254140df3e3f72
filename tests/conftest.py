from __future__ import annotations

from pathlib import Path

import pytest

from kfree.evaluation import DataNotFound, data


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of data sets. Where there is none, tests that need it are skipped and say why."""
    try:
        return data.folder()
    except DataNotFound as notice:
        pytest.skip(str(notice))
