"""`.ci/system-libraries`: every library that Qt loads is looked for by itself, and the line that it prints names it."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from profiler.process import children
from profiler.process.children import ROOT, read_arguments
from tests.conftest import CHECKOUT
from tests.each import each
from tests.waiting import PATIENCE_S

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="a script for Linux")

SCRIPT = CHECKOUT / ".ci" / "system-libraries"
LIBRARY = re.compile(r"\b(lib[\w.+-]+\.so\.\d+)=(\S+)")


def probed() -> dict[str, str]:
    """Library → package, as the script has them."""
    return {name: package.strip('"') for name, package in LIBRARY.findall(SCRIPT.read_text())}


def run_script(folder: Path, lacking: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the script where `lacking` cannot be loaded and nothing can be installed."""
    folder.joinpath("sitecustomize.py").write_text(
        "import ctypes\n"
        "class Lacking(ctypes.CDLL):\n"
        "    def __init__(self, name, *more, **named):\n"
        f"        if name == {lacking!r}: raise OSError(name)\n"
        "        super().__init__('libc.so.6')\n"
        "ctypes.CDLL = Lacking\n"
    )
    tools = folder / "tools"
    tools.mkdir()
    for tool in ("sh", "id", "uname", "basename", "readlink"):
        found = shutil.which(tool)
        assert found
        (tools / tool).symlink_to(found)
    return subprocess.run(
        [SCRIPT, sys.executable],
        env={"PATH": str(tools), "PYTHONPATH": str(folder), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


@on_linux
@each("library", sorted(probed())[::4])
def test_the_line_names_the_package_of_the_library_that_lacks(library, tmp_path):
    done = run_script(tmp_path, library, DISPLAY=":0")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert re.search(rf"missing\. Install .*: {re.escape(probed()[library])}$", line), line


@on_linux
def test_without_a_display_windows_libraries_are_not_required(tmp_path):
    done = run_script(tmp_path, "libxcb-icccm.so.4")
    assert (done.returncode, done.stderr) == (0, "")


@on_linux
def test_a_python_that_makes_no_environments_is_named_in_the_same_line(tmp_path):
    (tmp_path / "ensurepip.py").write_text("raise ImportError")
    done = run_script(tmp_path, "libEGL.so.1")
    assert done.returncode == 1
    assert re.search(r": python3[.\d]*-venv libegl1$", done.stderr.strip()), done.stderr


@on_linux
@pytest.mark.skipif(shutil.which("ldd") is None, reason="ldd is not installed")
def test_all_that_the_x11_plugin_of_qt_loads_is_probed():
    pyside = pytest.importorskip("PySide6")
    qt = Path(pyside.__file__).parent / "Qt"
    files = [qt / "plugins/platforms/libqxcb.so", *(qt / "lib").glob("libQt6XcbQpa.so.6")]
    ldd = subprocess.run(["ldd", *map(os.fspath, files)], capture_output=True, text=True, check=False).stdout
    loaded = set(re.findall(r"\b(lib(?:xcb-|xkbcommon-|X11-)[\w-]+\.so\.\d+)", ldd))
    assert len(loaded) >= 9
    # libxcb-util comes with libxcb-cursor, which depends on it.
    assert loaded - {"libxcb-util.so.1"} <= set(probed())


def started_modules() -> list[str]:
    """The modules of the program that do something when they are started, as `python -m` names them."""
    found = []
    for package in ("app", "pipelines", "profiler", "assets"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if '__name__ == "__main__":' in path.read_text("utf-8"):
                parts = path.relative_to(ROOT).with_suffix("").parts
                found.append(".".join(parts).removesuffix(".__main__"))
    return found


@pytest.mark.parametrize("module", sorted({*started_modules()}))
def test_help_prints_the_usage_of_a_module_and_ends(module, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))  # what builds with other programs finds none
    monkeypatch.setattr(sys, "argv", [module, "--help"])
    for loaded in (module, f"{module}.__main__"):
        monkeypatch.delitem(sys.modules, loaded, raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(module, run_name="__main__")
    shown = capsys.readouterr()
    assert ended.value.code in {0, None}
    assert shown.out.startswith("usage: ")
    assert shown.err == ""
    assert not list(tmp_path.iterdir())


def test_the_modules_are_found():
    assert {"assets.speech.build", "pipelines.worker", "pipelines.labs"} <= {*started_modules()}


def test_what_a_module_is_given_comes_in_the_order_of_its_names():
    names = ("TARGET", "RECIPE")
    assert read_arguments("m", "", *names, arguments=["a/b", '{"c": -1}']) == ["a/b", '{"c": -1}']
    assert read_arguments("m", "", "JOB?", "RESULTS?", arguments=[]) == []
    assert read_arguments("m", "", "JOB?", "RESULTS?", arguments=["job", "results"]) == ["job", "results"]
    assert read_arguments("m", "", "PART+", arguments=["cpu", "1"]) == ["cpu", "1"]


@pytest.mark.parametrize(
    ("names", "arguments"),
    [((), ["x"]), (("A",), []), (("A",), ["x", "y"]), (("PART+",), []), (("A",), ["--loud", "x"])],
)
def test_what_a_module_does_not_take_is_refused(names, arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        read_arguments("pipelines.some", "", *names, arguments=arguments)
    assert ended.value.code == 2
    assert "usage: python -m pipelines.some" in capsys.readouterr().err


LIGHT = {
    "import profiler.spans": "numba torch psutil sqlite3 msgspec scipy PySide6 statistics",
    "import pipelines.frontend.mfcc": "torch soundfile pocketsphinx kaldifst PySide6",
    "import pipelines.device, pipelines.availability as a; a.probe()": "torch",
    "from pipelines.audio import word_errors as wer; wer.count('a b', 'b c')": "jiwer torch numba scipy",
    "from pipelines import labs; from pipelines.labs import record; labs.every()": "numba torch scipy",
}
"""What is loaded before the first frame, by the window or on the hot path: none of these comes with it."""


@each("code, heavy", list(LIGHT.items()))
def test_what_must_start_quickly_loads_nothing_heavy(code, heavy):
    names = f"import sys; {code}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(children.python("-c", names), capture_output=True, text=True, check=True)
    assert not {*heavy.split()} & {*done.stdout.split()}
