"""The window where there is no display, or one that does not answer: a sentence, and no abort by Qt."""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import asrscope

from app.cli import main, open
from app.cli.open import OF_DISPLAY, install_line

pytestmark = pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="there Qt needs no display of a name")
VARIABLES = ("QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET", "XDG_RUNTIME_DIR")


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """An environment that names no display, and a folder without sockets."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(open, "X_SOCKETS", str(tmp_path / "X"))
    monkeypatch.chdir(tmp_path)
    return monkeypatch


@contextmanager
def listening(address: str) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        yield


@pytest.mark.parametrize(("words", "variable"), [([], "DISPLAY"), (["open", "run.asrs"], "WAYLAND_DISPLAY")])
def test_a_display_that_does_not_answer_is_a_sentence(words, variable, tmp_path):
    nobody = str(tmp_path / "socket")  # a number might be that of somebody's display
    done = asrscope(*words, without=VARIABLES, **{variable: nobody})
    assert done.returncode == main.USAGE_ERROR
    (line,) = done.stderr.splitlines()
    assert f"{variable}={nobody}" in line
    assert "asrscope run" in line


def test_what_qt_cannot_start_on_is_a_sentence():
    done = asrscope("open", without=VARIABLES, QT_QPA_PLATFORM="nonsense")
    assert done.returncode == main.USAGE_ERROR
    (line,) = done.stderr.splitlines()
    assert "Qt cannot open a window here" in line
    assert "nonsense" in line


def test_the_demo_runs_without_a_window_then(bare, tmp_path):
    bare.setenv("DISPLAY", str(tmp_path / "socket"))
    asked: list[list[str]] = []
    real = main.main
    bare.setattr(main, "main", lambda words: asked.append(words) or 0)
    assert real(["demo", "--folder", str(tmp_path / "demo")]) == 0
    assert [words[0] for words in asked] == ["run", "export"]


@pytest.mark.parametrize(
    "name",
    ["", ":", ":77.0", "localhost:9999", ":99999", "/no/such/socket", "\udcff:0", "é" * 300 + ":0", ":" + "9" * 5000],
)
def test_names_under_which_nothing_answers(bare, name):
    def nobody(address: tuple[str, int], seconds: float) -> socket.socket:
        host, port = address
        host.encode("idna")
        assert port < 65536
        raise ConnectionRefusedError

    bare.setattr(socket, "create_connection", nobody)
    for variable in ("DISPLAY", "WAYLAND_DISPLAY"):
        bare.setenv(variable, name)
    bare.setenv("XDG_RUNTIME_DIR", "/no/such/folder")
    assert not open.has_display()


@pytest.mark.parametrize("name", [":3", ":3.0", "unix:3"])
def test_a_local_display_answers(bare, tmp_path, name):
    bare.setenv("DISPLAY", name)
    assert not open.has_display()
    with listening("X3"):
        bare.setattr(open, "X_SOCKETS", "X")
        assert open.has_display()
    if sys.platform == "linux":
        place = f"asrscope-test-{os.getpid()}-X"
        bare.setattr(open, "X_SOCKETS", place)
        with listening(f"\0{place}3"):
            assert open.has_display()


def test_a_display_of_another_machine_answers(bare):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        bare.setattr(open, "X_PORT", port - 10)
        bare.setenv("DISPLAY", "127.0.0.1:10.0")
        assert open.has_display()


def test_a_wayland_display_answers_in_its_own_folder_only(bare, tmp_path):
    bare.setenv("WAYLAND_DISPLAY", "w")
    with listening("w"):
        assert not open.has_display()
        bare.setattr(os.path, "isabs", lambda path: True)  # sockets have short names: ./w stands for one
        bare.setenv("XDG_RUNTIME_DIR", ".")
        assert open.has_display()


def test_what_a_window_lacks_of_the_system_is_one_line_to_run():
    lacking = {"libm.so.6": "libc6", "libnobody-has.so.9": "libnobody-has9", "libnor.so.1": "libnor1"}
    assert install_line(lacking) == (
        "on Debian, run: sudo apt-get install -y --no-install-recommends libnobody-has9 libnor1; "
    )
    assert install_line({"libm.so.6": "libc6"}) == ""


def test_the_libraries_of_a_window_are_those_that_make_looks_for():
    listed = (Path(__file__).parents[2] / ".ci" / "system-libraries").read_text()
    wanted = listed.partition('display="')[2].partition('"')[0].split()
    assert dict(pair.split("=") for pair in wanted) == OF_DISPLAY
