"""`.ci/system-libraries`: every library that Qt loads is looked for by itself, and the line that it prints names it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.each import each
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a script for Linux")

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


@each("library", sorted(probed())[::4])
def test_the_line_names_the_package_of_the_library_that_lacks(library, tmp_path):
    done = run_script(tmp_path, library, DISPLAY=":0")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert re.search(rf"missing\. Install .*: {re.escape(probed()[library])}$", line), line


def test_without_a_display_windows_libraries_are_not_required(tmp_path):
    done = run_script(tmp_path, "libxcb-icccm.so.4")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_python_that_makes_no_environments_is_named_in_the_same_line(tmp_path):
    (tmp_path / "ensurepip.py").write_text("raise ImportError")
    done = run_script(tmp_path, "libEGL.so.1")
    assert done.returncode == 1
    assert re.search(r": python3[.\d]*-venv libegl1$", done.stderr.strip()), done.stderr


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
