"""A person at the keyboard alone, on a real run: run, toggle, pause, select, export."""

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QFileDialog
from pytestqt.qtbot import QtBot
from shown_windows import show, wait_for_the_recogniser

from app.model.recorded_settings import settings_at
from app.window.main_window import MainWindow
from app.window.palette import Palette
from app.window.pictures.dialog import PictureDialog
from pipelines.config import presets
from profiler.export import formats
from tests.pipelines.whole_runs import compiled

pytestmark = pytest.mark.slow

CONTROL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


class Keyboard:
    """Types where the focus is, as a keyboard does."""

    def __init__(self, qtbot: QtBot, window: MainWindow) -> None:
        self._qtbot, self._window = qtbot, window

    def press(self, key: Qt.Key, held: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        to = QApplication.activePopupWidget() or QApplication.focusWidget() or self._window
        if isinstance(to, Palette):
            to = to.line
        self._qtbot.keyClick(to, key, held)
        QApplication.processEvents()

    def type(self, text: str) -> None:
        for letter in text:
            self._qtbot.keyClicks(QApplication.focusWidget() or self._window, letter)

    def back_in_the_window(self) -> None:
        """Offscreen, nobody manages windows: the one below a closed dialog is not made active again."""
        self._window.activateWindow()
        self._qtbot.waitUntil(self._window.isActiveWindow)

    def answer_the_next_dialog(self, name: str) -> None:
        """Type the name of a file into the dialog that asks for one, and enter it."""

        def answer() -> None:
            dialog = QApplication.activeModalWidget()
            if not isinstance(dialog, QFileDialog):
                self._timer.start()
                return
            self.press(Qt.Key.Key_A, CONTROL)
            self.type(name)
            self.press(Qt.Key.Key_Return)

        self._timer = QTimer(self._window, singleShot=True, interval=50)
        self._timer.timeout.connect(answer)
        self._timer.start()

    def command(self, words: str) -> None:
        """Find something in the palette and do it."""
        self.press(Qt.Key.Key_P, CONTROL | SHIFT)
        palette = self._window.findChild(Palette)
        self._qtbot.keyClicks(palette.line, words)
        self._qtbot.keyClick(palette.line, Qt.Key.Key_Return)


def test_run_toggle_pause_select_export(qtbot, tmp_path):
    window = MainWindow()
    show(qtbot, window)
    compiled(presets.load("digits").config, {"gmm.selection.enabled": True})
    keys = Keyboard(qtbot, window)
    keys.command("gmm, digits")  # its graph is built in two seconds
    assert window.pipeline.preset.name == "digits"
    keys.command("pace")
    pace = window.desk.form.fields["pace"].editor
    assert pace.hasFocus()
    keys.press(Qt.Key.Key_A, CONTROL)
    keys.type("4")
    keys.press(Qt.Key.Key_Return)
    assert window.pipeline.next.pace == 4.0
    # In a field of numbers a comma is part of one.
    while isinstance(QApplication.focusWidget(), QAbstractSpinBox):
        keys.press(Qt.Key.Key_Tab)

    # Run.
    keys.press(Qt.Key.Key_R, CONTROL)
    wait_for_the_recogniser(qtbot, window, 100)
    assert window.when.is_running()

    # Toggle: Gaussian selection takes effect and leaves its marker.
    keys.press(Qt.Key.Key_G)
    qtbot.waitUntil(lambda: any(m.applied_frame for m in window.playhead.session.markers))
    applied = next(m.applied_frame for m in window.playhead.session.markers if m.applied_frame)
    qtbot.waitUntil(lambda: window.playhead.cursor_frame > applied + 100)

    # Pause: the view stands, the run goes on.
    keys.press(Qt.Key.Key_Space)
    held = window.playhead.cursor_frame
    assert not window.playhead.following
    qtbot.waitUntil(lambda: window.playhead.n_frames > held + 50)
    assert window.playhead.cursor_frame == held
    assert window.when.is_running()

    # Select what came after the change.
    for _ in window.playhead.stops():
        if window.playhead.cursor_frame > applied:
            keys.press(Qt.Key.Key_Comma)
    assert window.playhead.cursor_frame == applied
    keys.press(Qt.Key.Key_I)
    assert window.axis.selected[0] == pytest.approx(applied / 100)
    qtbot.waitUntil(lambda: window.desk.breakdown.model().scope.first == applied)

    # Stop: the session is whole, and the form shows what was in force at the cursor.
    keys.press(Qt.Key.Key_Period, CONTROL)
    qtbot.waitUntil(lambda: window.when.is_idle() and not window.playhead.live)
    assert window.playhead.cursor_frame == applied  # it ends where the change begins to act
    assert window.pipeline.recorded is settings_at(window.playhead.session, applied)
    assert not window.top.toggles[0].switch.isChecked()
    keys.press(Qt.Key.Key_Period)
    assert window.top.toggles[0].switch.isChecked()

    # Export, through the menu.
    table = tmp_path / "table.csv"
    (form,) = [form for form in formats() if form.suffix == ".csv"]
    keys.answer_the_next_dialog(str(table))
    keys.press(Qt.Key.Key_E, CONTROL)
    menu = QApplication.activePopupWidget()
    wanted = next(a for a in menu.actions() if a.text().startswith(form.title))
    for _ in menu.actions():
        keys.press(Qt.Key.Key_Down)
        if menu.activeAction() is wanted:
            break
    keys.press(Qt.Key.Key_Return)
    qtbot.waitUntil(table.exists)
    assert table.read_text(encoding="utf-8").startswith("stage")

    # A picture: its dialog has the focus, and Enter saves.
    keys.back_in_the_window()
    picture = tmp_path / "desk.png"
    keys.command("Picture of all views")
    (dialog,) = window.findChildren(PictureDialog)
    qtbot.waitUntil(lambda: dialog.preview.image is not None)
    keys.answer_the_next_dialog(str(picture))
    keys.press(Qt.Key.Key_Return)
    qtbot.waitUntil(picture.exists)
    # It stays for another picture; Escape closes it.
    qtbot.waitUntil(lambda: dialog.saved.full.endswith("desk.png"))
    dialog.activateWindow()
    qtbot.waitUntil(dialog.isActiveWindow)
    keys.press(Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not window.findChildren(PictureDialog))
