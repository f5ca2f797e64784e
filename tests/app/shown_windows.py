"""Windows as the tests meet them: shown and active, and on a run by the scripted worker (`window_worker`)."""

from pathlib import Path

from PySide6.QtWidgets import QInputDialog, QPushButton
from pytestqt.qtbot import QtBot

from app.pictures.writers import settle
from app.window.main_window import MainWindow
from app.window.notices import Banner

NOT_READ = b"RIFF\0\0 the scripted worker does not read it"
"""What an audio file has in it, where it matters that it may be one."""


def show(qtbot: QtBot, window: MainWindow) -> None:
    """Show a window, so that keys go to it."""
    qtbot.addWidget(window)
    with qtbot.waitActive(window):
        window.show()
        window.activateWindow()


def errors(window: MainWindow) -> list[str]:
    return texts(window, "error")


def texts(window: MainWindow, kind: str) -> list[str]:
    """What the notices of a kind say."""
    return [banner.text for banner in window.notices.banners if banner.kind == kind]


def press(banner: Banner, text: str) -> None:
    """Press the button of a notice."""
    next(button for button in banner.findChildren(QPushButton) if button.text() == text).click()


def answer(window: MainWindow, text: str) -> str:
    """Answer the question for a text that is open; return what stood there."""
    (dialog,) = (one for one in window.findChildren(QInputDialog) if one.isVisible())
    offered = dialog.textValue()
    dialog.setTextValue(text)
    dialog.accept()
    settle()
    return offered


def start_run(qtbot: QtBot, window: MainWindow, folder: Path) -> None:
    """Start a run, and wait until frames of it are shown."""
    file = folder / "one.wav"
    file.write_bytes(NOT_READ)
    window.files.take_audio([file])
    window.runs.start()
    wait_for_frames(qtbot, window)


def wait_for_frames(qtbot: QtBot, window: MainWindow) -> None:
    """Wait until frames of a run are shown, so that its switches act."""
    run = window.runs.current
    qtbot.waitUntil(lambda: window.when.is_running() and window.playhead.n_frames > 40 and not run.set_up.under_way)


def wait_for_the_recogniser(qtbot: QtBot, window: MainWindow, frames: int) -> None:
    """Wait until the real worker has decoded `frames` frames; it may have to compile its kernels first."""

    def decoded() -> bool:
        errors = [banner.text for banner in window.notices.banners if banner.kind == "error"]
        assert not errors, errors
        return not window.runs.current.stands_in and window.playhead.n_frames > frames

    qtbot.waitUntil(decoded)
