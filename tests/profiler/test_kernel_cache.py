"""Compiled kernels are kept in a folder that belongs to the sources of each."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from profiler.files import cache, paths
from profiler.process import children, kernel_cache
from tests.each import each
from tests.strangers_folder import plant, ran
from tests.waiting import PATIENCE_S

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


def called(root: Path, cache: Path, before: str = "", **more: Path) -> list[str]:
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(root), "ASRSCOPE_CACHE": str(cache)}
    # Another way to keep them would look at a kernel's own file alone.
    environment |= {"NUMBA_CACHE_LOCATOR_CLASSES": "InTreeCacheLocator"}
    code = f"{before}\nimport runpy; runpy.run_module('pipelines.caller', run_name='__main__')"
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_changed_constant_has_what_depends_on_it_compiled_anew_and_nothing_else(copy, tmp_path):
    here, cache = tmp_path / "here", tmp_path / "cache"
    here.mkdir()
    # Another was compiled before: these are not kept in the current folder for that.
    another = "import profiler, numba, os\nos.environ['NUMBA_DEBUG'] = '0'\nnumba.njit(lambda x: x)(1)"
    assert called(copy, cache, another, cwd=here) == ["3", "7", "0", "0"]
    assert list(here.iterdir()) == []
    assert called(copy, cache) == ["3", "7", "1", "1"]
    number = copy / "pipelines" / "number.py"
    number.write_text("STEP = 5\n")
    assert called(copy, cache) == ["11", "7", "0", "1"]
    # Back again: the kernels of that state are still there.
    number.write_text("STEP = 1\n")
    assert called(copy, cache) == ["3", "7", "1", "1"]
    names = sorted(path.name.partition("-")[0] for path in (cache / paths.KERNELS).iterdir())
    assert names == ["pipelines.apart", *["pipelines.callee"] * 2, *["pipelines.caller"] * 2]


@each(
    "file, within, without",
    [
        (
            "search/kernels/calls",
            ["search/kernels/layout", "search/kernels/history"],
            ["scoring", "frontend", "config"],
        ),
        ("scoring/tied/kernels", ["scoring/simd/instructions", "scoring/blocks"], ["search", "run"]),
        ("scoring/dnn/rows", ["scoring/simd/byte_products"], ["search", "scoring/tied", "config"]),
        ("frontend/_kernels", ["frontend/dynamic"], ["search", "scoring", "run"]),
    ],
)
def test_what_kernels_are_compiled_from(file, within, without):
    path = children.ROOT / f"pipelines/{file}.py"
    found = kernel_cache.sources([path])
    assert {f"pipelines/{name}.py" for name in within} <= set(found)
    assert not [path for path in found if path.startswith(tuple(f"pipelines/{name}/" for name in without))]
    assert kernel_cache.digest([path]) != kernel_cache.digest()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return place


def test_without_a_cache_no_kernel_of_other_sources_is_loaded(copy, tmp_path, temporary, monkeypatch):
    cache = tmp_path / "cache"
    cache.write_text("")  # so no folder can be made there
    assert called(copy, cache) == ["3", "7", "0", "0"]
    assert called(copy, cache) == ["3", "7", "1", "1"]
    (copy / "pipelines" / "number.py").write_text("STEP = 5\n")
    assert called(copy, cache) == ["11", "7", "0", "1"]
    assert not list(copy.rglob("*.nbi"))
    monkeypatch.setenv("ASRSCOPE_CACHE", str(cache))
    made = kernel_cache.place()
    assert made.is_relative_to(temporary)
    # Nor can one be made among temporary files.
    shutil.rmtree(made)
    made.write_text("")
    sentence = r"^compiled kernels cannot be stored in .*/cache/kernels \(.+\), nor .*ASRSCOPE_CACHE"
    with pytest.raises(OSError, match=sentence):
        kernel_cache.place()


KERNELS = children.ROOT / "pipelines" / "search" / "kernels" / "calls.py"


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
@each("which", ["all", "one file's"])
@each("whose", ["group", "link"])
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
    # Half of them as earlier versions named them.
    names = [f"{number:024x}" if number % 2 else f"pipelines.search.kernels.calls-{number:024x}" for number in range(6)]
    others = {"mine", f"pipelines.search.kernels.lattice-{0:024x}"}
    for age, name in enumerate([*names, *others]):
        (place / name).mkdir()
        os.utime(place / name, (1e9 - age, 1e9 - age))
    made = kernel_cache.folder(KERNELS, place)
    kept = {path.name for path in place.iterdir()}
    assert kept == {*others, made.name, *names[: kernel_cache.KEPT]}
    (made / "room").mkdir()
    (made / "room" / "kernel.nbc").write_bytes(b"x" * 1000)
    # They count, and go, with all else in the cache.
    assert {e.path.name for e in cache.entries()} == kept - {"mine"}
    assert cache.empty() == 1000
    assert [path.name for path in place.iterdir()] == ["mine"]


CRASH = "Fatal Python error: Segmentation fault\n\n"
WAITS = '  File "/usr/lib/python3.11/threading.py", line 331 in wait\n'


def started(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = children.python(*arguments)
    how: dict[str, Any] = {"capture_output": True, "encoding": "utf-8", "timeout": PATIENCE_S}
    return subprocess.run(command, check=False, env=children.environment(), cwd=cwd, **how)


def test_a_child_in_a_strangers_folder_finds_this_program_and_nothing_else(tmp_path):
    marks = plant(tmp_path / "folder")
    code = "import json, numpy, pipelines.config, app; print(pipelines.config.__file__)\n"
    # Nor does a child of the child.
    code += "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import json, yaml'])"
    done = started("-c", code, cwd=tmp_path / "folder")
    assert done.stdout.strip() == str(children.ROOT / "pipelines" / "config" / "__init__.py")
    assert done.stderr == ""
    assert ran(marks) == []


@each("value", ["", ".", "here", os.pathsep, f"here{os.pathsep}."])
def test_current_folder_is_dropped(value, tmp_path, monkeypatch):
    kept = str(tmp_path / "kept")
    monkeypatch.setenv("PYTHONPATH", f"{value}{os.pathsep}{kept}")
    entries = children.environment()["PYTHONPATH"].split(os.pathsep)
    assert kept in entries
    assert all(os.path.isabs(entry) for entry in entries)


@pytest.mark.parametrize("first", ["profiler", "pipelines"])
def test_numba_ignores_the_folder(first, tmp_path, monkeypatch):
    plant(tmp_path / "folder")
    # A YAML reader that could read them: the file is one `key: value` a line.
    reader = tmp_path / "reader"
    reader.mkdir()
    read = "    return dict(line.strip().split(': ') for line in file)\n"
    (reader / "yaml.py").write_text(f"def safe_load(file):\n{read}")
    monkeypatch.setenv("PYTHONPATH", str(reader))
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    code = f"import {first}\nfrom numba.core import config\nimport yaml\nprint(config.DISABLE_JIT, config.CACHE_DIR)"
    done = started("-c", code, cwd=tmp_path / "folder")
    assert (done.stdout, done.stderr) == (f"0 {os.environ['NUMBA_CACHE_DIR']}\n", "")


CRASHED = "it crashed (segmentation fault)"
CURRENT = f"{CRASH}Thread 0x1 (most recent call first):\n{WAITS}\nCurrent thread 0x2 (most recent call first):\n"


@each(
    "output, status, words",
    [
        ("", 3, "exit status 3"),
        ("one\ntwo\n\n", 1, "two"),
        ("words of no use", -9, "it was ended by signal SIGKILL"),
        ("", -250, "it was ended by signal 250"),
        ("\x1b[2J", 1, "\\x1b[2J"),
        (f"{CURRENT}  Garbage-collecting\n{WAITS}", -11, f"{CRASHED} in wait, threading.py line 331"),
        (CURRENT.partition("\nCurrent")[0], -11, f"{CRASHED} outside Python code"),
    ],
)
def test_the_last_words_of_a_child(output, status, words):
    assert children.last_words(output, status) == words


def test_a_crash_is_reported_with_its_place():
    code = "import faulthandler\ndef falling(): faulthandler._sigsegv()\nfalling()"
    done = started("-c", code)
    words = children.last_words(done.stderr, done.returncode)
    assert words == f"{CRASHED} in falling, <string> line 2"


def sources() -> Iterator[tuple[str, str]]:
    for package in ("app", "pipelines", "profiler"):
        for file in (children.ROOT / package).rglob("*.py"):
            yield file.relative_to(children.ROOT).as_posix(), file.read_text(encoding="utf-8")


def test_nothing_else_starts_a_python():
    """`sys.executable` is named by `process.children` alone; shells, forks and pools of processes by nobody."""
    forbidden = r"sys\.executable|\bos\.(system|popen|fork|exec|spawn|posix_spawn)|\bshell=|ProcessPoolExecutor"
    forbidden += r"|(import|from) multiprocessing"
    assert [path for path, text in sources() if re.search(forbidden, text)] == ["profiler/process/children.py"]


@pytest.mark.slow
def test_every_child_gets_the_environment_of_children():
    """Who starts a process takes command and environment from `children`, or a program by its full path."""
    careful, careless, of_qt = set(), set(), set()
    for path, text in sources():
        nodes = ast.walk(ast.parse(text)) if re.search("subprocess|QProcess", text) else ()
        for call in (ast.unparse(node) for node in nodes if isinstance(node, ast.Call)):
            if re.match(r"subprocess\.(Popen|run|call|check_call|check_output)\(", call):
                (careful if re.search(r"env=.*environment\(", call) else careless).add(path)
            if call.startswith("QProcess("):
                of_qt.add(path)
    assert careful
    assert careless == {"profiler/machine/describe.py"}
    assert of_qt == {"app/model/processes/command.py"}
