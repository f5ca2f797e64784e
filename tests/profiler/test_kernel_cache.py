"""Compiled kernels are kept in a folder that belongs to the sources of all of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from profiler.files import cache, paths
from profiler.process import children, kernel_cache

CALLEE = """
from numba import njit

STEP = {step}

@njit(cache=True)
def stepped(x):
    return x + STEP
"""
CALLER = """
from numba import njit

from pipelines.callee import stepped

@njit(cache=True)
def twice(x):
    return stepped(stepped(x))

if __name__ == "__main__":
    print(twice(1), sum(twice.stats.cache_hits.values()))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the program's profiler, with two kernels of which one calls the other."""
    root = tmp_path / "copy"
    unwanted = shutil.ignore_patterns("__pycache__")
    shutil.copytree(children.ROOT / "profiler", root / "profiler", ignore=unwanted)
    (root / "pipelines").mkdir()
    (root / "pipelines" / "__init__.py").write_text("import profiler\n")
    (root / "pipelines" / "callee.py").write_text(CALLEE.format(step=1))
    (root / "pipelines" / "caller.py").write_text(CALLER)
    return root


def called(root: Path, cache: Path) -> list[str]:
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(root), "ASRSCOPE_CACHE": str(cache)}
    code = "import runpy; runpy.run_module('pipelines.caller', run_name='__main__')"
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_change_in_a_called_file_has_its_caller_compiled_anew(copy: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert called(copy, cache) == ["3", "0"]
    assert called(copy, cache) == ["3", "1"]
    (copy / "pipelines" / "callee.py").write_text(CALLEE.format(step=5))
    assert called(copy, cache) == ["11", "0"]
    # Back again: the kernels of that state are still there, though numba looks at the file's time.
    assert len(list((cache / paths.KERNELS).iterdir())) == 2


def test_constants_that_kernels_hold_count_as_sources() -> None:
    found = kernel_cache.sources()
    assert "pipelines/search/kernels/token_passing.py" in found
    assert "pipelines/search/kernels/layout.py" in found
    assert "profiler/recording/layout.py" in found
    assert "pipelines/config/tree.py" not in found
    assert "pipelines/run/decode.py" not in found


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return place


def test_without_a_cache_no_kernel_of_other_sources_is_loaded(copy: Path, tmp_path: Path, temporary: Path) -> None:
    cache = tmp_path / "cache"
    cache.write_text("")  # so no folder can be made there
    assert called(copy, cache) == ["3", "0"]
    assert called(copy, cache) == ["3", "1"]
    (copy / "pipelines" / "callee.py").write_text(CALLEE.format(step=5))
    assert called(copy, cache) == ["11", "0"]
    assert not list(copy.rglob("*.nbi"))


def test_folders_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, temporary: Path) -> None:
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").write_text("")
    made = kernel_cache.folder()
    assert made.is_relative_to(temporary)
    shutil.rmtree(made.parent)
    made.parent.write_text("")
    with pytest.raises(
        OSError, match=r"^compiled kernels cannot be stored in .*/cache/kernels \(.+\), nor .*ASRSCOPE_CACHE"
    ):
        kernel_cache.folder()


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
@pytest.mark.parametrize("whose", ["group", "link"])
def test_a_folder_of_others_is_not_used(
    whose: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, temporary: Path
) -> None:
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path))
    own = kernel_cache.folder()
    assert own.is_relative_to(tmp_path / paths.KERNELS)
    if whose == "group":
        own.parent.chmod(0o770)
    else:
        own.parent.rename(tmp_path / "elsewhere")
        own.parent.symlink_to(tmp_path / "elsewhere")
    assert kernel_cache.folder().is_relative_to(temporary)


def test_the_latest_folders_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path))
    place = tmp_path / paths.KERNELS
    (place / "mine").mkdir(parents=True)
    names = [f"{number:024x}" for number in range(6)]
    for age, name in enumerate(names):
        (place / name).mkdir()
        os.utime(place / name, (1e9 - age, 1e9 - age))
    made = kernel_cache.folder()
    kept = {path.name for path in place.iterdir()}
    assert kept == {"mine", made.name, *names[: kernel_cache.KEPT]}
    (made / "room").mkdir()
    (made / "room" / "kernel.nbc").write_bytes(b"x" * 1000)
    # They count, and go, with all else in the cache.
    assert {e.path.name for e in cache.entries()} == kept - {"mine"}
    assert cache.empty() == 1000
    assert [path.name for path in place.iterdir()] == ["mine"]
