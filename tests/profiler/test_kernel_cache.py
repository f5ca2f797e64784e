"""Compiled kernels are kept in a folder that belongs to the sources of each."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from profiler.files import cache, paths
from profiler.process import children, kernel_cache

FILES = {
    "__init__": "import profiler\n",
    "number": "STEP = 1\n",
    "constants": "from pipelines.number import (  # of others\n    STEP as ONE,\n)\n\nSTEP = ONE\n",
    "callee": """
from numba import njit

from pipelines import constants

STEP = constants.STEP

@njit(cache=True)
def stepped(x):
    return x + STEP
""",
    "apart": """
from numba import njit

@njit(cache=True)
def same(x):
    return x
""",
    "caller": """
from numba import njit

from pipelines.apart import same
from pipelines.callee import stepped

@njit(cache=True)
def twice(x):
    return stepped(stepped(x))

if __name__ == "__main__":
    print(twice(1), same(7), *(sum(kernel.stats.cache_hits.values()) for kernel in (twice, same)))
""",
}
"""A package with kernels: one calls another, which holds a constant of a third file's; one has no part in that."""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the program's profiler, with these kernels."""
    root = tmp_path / "copy"
    unwanted = shutil.ignore_patterns("__pycache__")
    shutil.copytree(children.ROOT / "profiler", root / "profiler", ignore=unwanted)
    (root / "pipelines").mkdir()
    for name, text in FILES.items():
        (root / "pipelines" / f"{name}.py").write_text(text)
    return root


def called(root: Path, cache: Path) -> list[str]:
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(root), "ASRSCOPE_CACHE": str(cache)}
    # Another way to keep them would look at a kernel's own file alone.
    environment |= {"NUMBA_CACHE_LOCATOR_CLASSES": "InTreeCacheLocator"}
    code = "import runpy; runpy.run_module('pipelines.caller', run_name='__main__')"
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_changed_constant_has_what_depends_on_it_compiled_anew_and_nothing_else(copy, tmp_path):
    cache = tmp_path / "cache"
    assert called(copy, cache) == ["3", "7", "0", "0"]
    assert called(copy, cache) == ["3", "7", "1", "1"]
    number = copy / "pipelines" / "number.py"
    number.write_text("STEP = 5\n")
    assert called(copy, cache) == ["11", "7", "0", "1"]
    # Back again: the kernels of that state are still there.
    number.write_text("STEP = 1\n")
    assert called(copy, cache) == ["3", "7", "1", "1"]
    names = sorted(path.name.partition("-")[0] for path in (cache / paths.KERNELS).iterdir())
    assert names == ["pipelines.apart", *["pipelines.callee"] * 2, *["pipelines.caller"] * 2]


@pytest.mark.parametrize(
    ("file", "within", "without"),
    [
        (
            "pipelines/search/kernels/calls.py",
            ("search/kernels/layout", "search/kernels/pruning", "search/kernels/history"),
            ("scoring/", "frontend/", "config/", "run/"),
        ),
        ("pipelines/scoring/tied/kernels.py", ("scoring/simd/instructions", "scoring/blocks"), ("search/", "run/")),
        ("pipelines/scoring/dnn/rows.py", ("scoring/simd/byte_products",), ("search/", "scoring/tied/", "config/")),
        ("pipelines/frontend/_kernels.py", ("frontend/dynamic",), ("search/", "scoring/", "run/")),
    ],
)
def test_what_kernels_are_compiled_from(file, within, without):
    found = kernel_cache.sources([children.ROOT / file])
    assert {f"pipelines/{name}.py" for name in within} <= set(found)
    assert not [path for path in found for name in without if path.startswith(f"pipelines/{name}")]
    assert kernel_cache.digest([children.ROOT / file]) != kernel_cache.digest()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return place


def test_without_a_cache_no_kernel_of_other_sources_is_loaded(copy, tmp_path, temporary):
    cache = tmp_path / "cache"
    cache.write_text("")  # so no folder can be made there
    assert called(copy, cache) == ["3", "7", "0", "0"]
    assert called(copy, cache) == ["3", "7", "1", "1"]
    (copy / "pipelines" / "number.py").write_text("STEP = 5\n")
    assert called(copy, cache) == ["11", "7", "0", "1"]
    assert not list(copy.rglob("*.nbi"))


def test_folders_that_cannot_be_written(tmp_path, monkeypatch, temporary):
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").write_text("")
    made = kernel_cache.place()
    assert made.is_relative_to(temporary)
    shutil.rmtree(made)
    made.write_text("")
    with pytest.raises(
        OSError, match=r"^compiled kernels cannot be stored in .*/cache/kernels \(.+\), nor .*ASRSCOPE_CACHE"
    ):
        kernel_cache.place()


KERNELS = children.ROOT / "pipelines" / "search" / "kernels" / "calls.py"


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
@pytest.mark.parametrize("whose", ["group", "link"])
@pytest.mark.parametrize("which", ["all", "one file's"])
def test_a_folder_of_others_is_not_used(whose, which, tmp_path, monkeypatch, temporary):
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path))
    place = kernel_cache.place()
    assert place == tmp_path / paths.KERNELS
    own = kernel_cache.folder(KERNELS, place)
    assert own.parent == place
    refused = place if which == "all" else own
    if whose == "group":
        refused.chmod(0o770)
    else:
        refused.rename(tmp_path / "elsewhere")
        refused.symlink_to(tmp_path / "elsewhere")
    assert kernel_cache.folder(KERNELS, kernel_cache.place()).is_relative_to(temporary)


def test_the_latest_folders_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("ASRSCOPE_CACHE", str(tmp_path))
    place = kernel_cache.place()
    others = f"pipelines.search.kernels.lattice-{0:024x}"
    for name in ("mine", others):
        (place / name).mkdir()
    # Half of them as earlier versions named them.
    names = [f"{number:024x}" if number % 2 else f"pipelines.search.kernels.calls-{number:024x}" for number in range(6)]
    for age, name in enumerate(names):
        (place / name).mkdir()
        os.utime(place / name, (1e9 - age, 1e9 - age))
    made = kernel_cache.folder(KERNELS, place)
    kept = {path.name for path in place.iterdir()}
    assert kept == {"mine", others, made.name, *names[: kernel_cache.KEPT]}
    (made / "room").mkdir()
    (made / "room" / "kernel.nbc").write_bytes(b"x" * 1000)
    # They count, and go, with all else in the cache.
    assert {e.path.name for e in cache.entries()} == kept - {"mine"}
    assert cache.empty() == 1000
    assert [path.name for path in place.iterdir()] == ["mine"]
