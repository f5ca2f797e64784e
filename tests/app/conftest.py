"""What the window's tests share: no display, settings of their own, and nothing left behind.

Qt is imported at the top on purpose: where it cannot be, the run fails instead of skipping.
"""

import gc
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

# Offscreen, the screen is 800 × 800, to which the window would shrink.
os.environ["QT_QPA_PLATFORM"] = f"offscreen:configfile={Path(__file__).with_name('screen.json')}"

import pytest
import shiboken6
from PySide6.QtCore import QCoreApplication, QEvent, QProcess, QStandardPaths, QThread, QTimer
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot
from sample_session import write_sample
from shown_windows import show, start_run
from views_desk import FRAMES, Desk, settle
from window_recording import Recording

from app.model.pipeline import Pipeline
from app.model.processes import command, leaving, run_control
from app.style.theme import THEMES, set_theme, theme
from app.window import notices
from app.window.actions import files
from app.window.bars import statusline
from app.window.main_window import MainWindow
from app.window.pictures import drawing
from tests.conftest import set_aside
from tests.waiting import PATIENCE_MS

KEPT = "kept"  # Property of a window that the next test uses too
WORKER = Path(__file__).with_name("window_worker.py")


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qapp: QApplication) -> Path:
    """What the window remembers, and sessions of each test, lie in its own folder."""
    folder = tmp_path / "settings"
    # In test mode Qt has folders of its own in the home folder, which all tests would share.
    QStandardPaths.setTestModeEnabled(sys.platform != "linux")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("ASRSCOPE_SESSIONS", str(tmp_path / "sessions"))
    if theme() is not THEMES["dark"] or not qapp.styleSheet():
        set_theme("dark")
    return folder


class PatientBot(QtBot):
    """A bot that waits as long as every other test does, not for pytest-qt's five seconds."""

    def waitUntil(self, callback: Callable[[], object], *, timeout: int = PATIENCE_MS) -> None:
        """Return once `callback` is true."""
        super().waitUntil(callback, timeout=timeout)

    def waitSignal(self, signal: object, *, timeout: int = PATIENCE_MS, **options: object) -> object:
        """A context that ends once `signal` was emitted."""
        return super().waitSignal(signal, timeout=timeout, **options)


@pytest.fixture
def qtbot(qapp: QApplication, request: pytest.FixtureRequest) -> QtBot:
    """In the place of pytest-qt's own."""
    return PatientBot(request)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the window does after some seconds it does not do here, where seconds may pass before anything happens."""
    for module, *names in (
        (notices, "INFO_MS", "WRITTEN_MS"),
        (statusline, "MESSAGE_MS"),
        (run_control, "STOP_TIMEOUT_MS"),
        (leaving, "PATIENCE_MS", "AT_QUIT_MS"),
        (command, "ENDING_MS"),
        (files, "PATIENCE_MS"),
        (drawing, "PATIENCE_MS"),
    ):
        for name in names:
            monkeypatch.setattr(module, name, PATIENCE_MS)


@pytest.fixture(scope="module")
def short_runs() -> Iterator[None]:
    """Runs in this process measure only what is not known of the machine (`tests.short_runs`)."""
    # Here, since it loads torch and numba, which few of these files need.
    from tests.short_runs import shorten

    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        yield


@pytest.fixture
def window(qtbot: QtBot) -> Iterator[Callable[..., MainWindow]]:
    """Windows whose worker follows a script (`window_worker`), in the modes given."""
    made: list[MainWindow] = []

    def make(*modes: str) -> MainWindow:
        window = MainWindow((sys.executable, str(WORKER), *modes))
        made.append(window)
        show(qtbot, window)
        return window

    yield make
    for one in made:
        one.close()


@pytest.fixture
def live(qtbot: QtBot, window: Callable[..., MainWindow], tmp_path: Path) -> MainWindow:
    """A window on a run of the default preset, under way."""
    made = window()
    start_run(qtbot, made, tmp_path)
    return made


@pytest.fixture
def opened(window: Callable[..., MainWindow], finished: Path) -> MainWindow:
    """A window on a finished session."""
    made = window()
    made.open_session(finished)
    return made


@pytest.fixture
def parent(qtbot: QtBot) -> QWidget:
    """What a task's page lies in."""
    made = QWidget()
    qtbot.addWidget(made)
    made.resize(900, 700)
    made.show()
    return made


@pytest.fixture
def pipeline() -> Pipeline:
    """Settings of the default preset."""
    return Pipeline()


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made-up session of as many frames as the views' tests know of; nobody writes to it."""
    path = tmp_path_factory.mktemp("sample") / "a.asrs"
    return write_sample(path, frames=FRAMES, utterance_frames=256)


@pytest.fixture
def desk(sample: Path, qapp: QApplication) -> Iterator[Desk]:
    """The four views over it."""
    made = Desk(sample)
    yield made
    made.playhead.close()
    made.window.close()


@pytest.fixture(scope="module")
def _same_desk(sample: Path, qapp: QApplication) -> Iterator[Desk]:
    made = Desk(sample)
    made.window.setProperty(KEPT, True)
    yield made
    made.window.close()
    made.window.deleteLater()


@pytest.fixture
def same_desk(_same_desk: Desk, sample: Path) -> Iterator[Desk]:
    """The same desk for all tests of a file, with the session opened anew: for what changes no more than the axis."""
    _same_desk.playhead.open(sample)
    settle()
    yield _same_desk
    _same_desk.playhead.close()


def _kinds(*of: type) -> Iterator[type]:
    """These classes and all that are derived from them."""
    for kind in of:
        yield kind
        yield from _kinds(*kind.__subclasses__())


def _left_behind() -> Iterator[str]:
    # By type: asking an object for its class runs code of deprecated stand-ins (torch has one).
    kinds = set(_kinds(QTimer, QProcess, QThread))
    for found in gc.get_objects():
        if type(found) not in kinds or not shiboken6.isValid(found):
            continue
        if isinstance(found, QTimer) and found.isActive():
            yield f"active timer of {found.parent()}"
        if isinstance(found, QProcess) and found.state() != QProcess.ProcessState.NotRunning:
            yield f"process {found.processId()}"
        if isinstance(found, QThread) and found.isRunning() and found is not QThread.currentThread():
            yield f"thread {found.objectName()}"


@pytest.fixture(autouse=True)
def nothing_left(qapp: QApplication, own_settings: Path) -> Iterator[None]:
    """Fail a test that leaves a timer, a process, a thread or an open window behind."""
    # What is there already is not looked through again: it is half a million objects, once torch is among them.
    gc.collect()
    set_aside()
    threads = set(threading.enumerate())
    yield
    for widget in qapp.topLevelWidgets():
        if not shiboken6.createdByPython(widget) or widget.property(KEPT):
            continue  # Qt's own hidden helper of a shown graphics view: deleting it is a crash
        if shiboken6.isValid(widget):  # closing one may have deleted another
            widget.close()
        if shiboken6.isValid(widget):
            widget.deleteLater()
    for _ in range(3):
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        qapp.processEvents()
    gc.collect()
    more = [t.name for t in threading.enumerate() if t not in threads and not t.daemon]
    left = [*_left_behind(), *(f"thread {name}" for name in more)]
    assert not left, f"left behind: {left}"


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Callable[..., Recording]]:
    """Make sessions; those still being recorded at the end are closed."""
    made: list[Recording] = []

    def make(name: str = "run.asrs", **options: object) -> Recording:
        made.append(Recording(tmp_path / name, **options))
        return made[-1]

    yield make
    for one in made:
        one.close("stopped")


@pytest.fixture(scope="session")
def _finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Recording(tmp_path_factory.mktemp("finished") / "finished.asrs")
    made.write(600)
    made.marker("Gaussian selection on", 600)
    made.write(600)
    made.close()
    return made.path


@pytest.fixture
def finished(_finished: Path, tmp_path: Path) -> Path:
    """A finished session of 12 s: two utterances, one marker at 6 s. A copy that the test may spoil."""
    return Path(shutil.copyfile(_finished, tmp_path / _finished.name))
