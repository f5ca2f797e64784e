"""Fixtures of the profiler's tests."""

import shutil
from pathlib import Path

import pytest
from profiler_sessions import record


@pytest.fixture(scope="session")
def _recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "small.asrs"
    record(path).close()
    return path


@pytest.fixture
def small(_recorded: Path, tmp_path: Path) -> Path:
    """A closed session of 12 blocks, a copy that the test may spoil."""
    path = tmp_path / "small.asrs"
    shutil.copyfile(_recorded, path)
    return path
