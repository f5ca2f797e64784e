"""Open the window: on a session, or where you left off.

asrscope
asrscope run.asrs
asrscope beams/
"""

import argparse
import contextlib
import ctypes
import os
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from app.cli import _output
from profiler.errors import BadInput
from profiler.plain import printable


def arguments(parser: argparse.ArgumentParser) -> None:
    help = "a session file (.asrs), or the folder of a study that `asrscope sweep` has made"
    parser.add_argument("session", metavar="SESSION", nargs="?", help=help)


def run(arguments: argparse.Namespace) -> int:
    """Show the window. BadInput if none can be shown."""
    if not has_display():
        named = [f"{v}={os.environ[v]}" for v in ("DISPLAY", "WAYLAND_DISPLAY") if os.environ.get(v)]
        what = f"No display answers under {' and '.join(named)}" if named else "There is no display"
        raise BadInput(f"{what} to open a window on; {INSTEAD}")
    return show_window(arguments.session, demo=False)


INSTEAD: Final = "`asrscope run` works without one, and `asrscope export` makes pictures."
ANSWER_SECONDS: Final = 3.0  # How long to wait for a display on another machine
OF_DISPLAY: Final = {  # What Qt loads for a window on X, with Debian's packages: as in `.ci/system-libraries`
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libX11.so.6": "libx11-6",
}

X_PORT: Final = 6000  # Of display 0 (X(7)); local sockets are in X_SOCKETS, on Linux also without a file
X_SOCKETS: Final = "/tmp/.X11-unix/X"
_X_NAME: Final = re.compile(r"(?:\w+/)?(?P<host>.*):(?P<number>\d{1,4})(?:\.\d+)?")


def has_display() -> bool:
    """True if a display answers (or Qt's platform is set explicitly)."""
    if os.environ.get("QT_QPA_PLATFORM") or sys.platform in ("win32", "darwin"):
        return True
    return _wayland_answers() or _x_answers(os.environ.get("DISPLAY", ""))


def show_window(session: str | None, demo: bool) -> int:
    """Show the window until it is closed."""
    from app import gui
    from app.application import application
    from profiler.process import signals

    with _answering_for_qt():
        application()
    with signals.usual():
        return gui.open_window(session, demo)


def _wayland_answers() -> bool:
    if os.environ.get("WAYLAND_SOCKET"):  # a connection opened for us by another process
        return True
    name = os.environ.get("WAYLAND_DISPLAY", "")
    place = os.path.join(os.environ.get("XDG_RUNTIME_DIR", ""), name)
    return bool(name) and os.path.isabs(place) and _answers(socket.AF_UNIX, place)


def _x_answers(name: str) -> bool:
    if name.startswith("/"):
        return _answers(socket.AF_UNIX, name)
    found = _X_NAME.fullmatch(name)
    if found is None:
        return False
    if found["host"] in ("", "unix"):
        place = f"{X_SOCKETS}{found['number']}"
        return _answers(socket.AF_UNIX, place) or _answers(socket.AF_UNIX, f"\0{place}")
    with contextlib.suppress(OSError, UnicodeError):
        address = (found["host"].strip("[]"), X_PORT + int(found["number"]))
        socket.create_connection(address, ANSWER_SECONDS).close()
        return True
    return False


def _answers(family: int, address: str) -> bool:
    with socket.socket(family) as asked, contextlib.suppress(OSError, ValueError):
        asked.settimeout(ANSWER_SECONDS)
        asked.connect(address)
        return True
    return False


def install_line(libraries: Mapping[str, str] = OF_DISPLAY) -> str:
    """The command that installs what a window lacks of the system; empty where nothing is lacking."""
    lacking = []
    for library, package in libraries.items():
        try:
            ctypes.CDLL(library)
        except OSError:
            lacking.append(package)
    if not lacking or not sys.platform.startswith("linux"):
        return ""
    line = f"apt-get install -y --no-install-recommends {' '.join(lacking)}"
    return f"on Debian, run: sudo {line}; "


@contextmanager
def _answering_for_qt() -> Iterator[None]:
    """If Qt cannot start (for example, a library is missing), it aborts: end with a sentence before that."""
    from PySide6.QtCore import QtMsgType, qInstallMessageHandler

    from app.cli.main import USAGE_ERROR

    heard: list[str] = []

    def tell(kind: QtMsgType, context: object, text: str) -> None:
        if kind == QtMsgType.QtFatalMsg:
            said = " ".join(heard or [text])
            # What Qt says names one library, which may be there while another is not.
            reason = (install_line() if '"xcb"' in said else "") or said.rstrip(".") + "; "
            _output.complain(f"Qt cannot open a window here: {reason}{INSTEAD}")
            sys.stderr.flush()
            os._exit(USAGE_ERROR)
        heard.append(" ".join(text.split()))

    before = qInstallMessageHandler(tell)
    try:
        yield
    finally:
        qInstallMessageHandler(before)
        for text in heard:
            print(printable(text), file=sys.stderr)
