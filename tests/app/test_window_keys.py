"""What keys do: Space pauses and plays whatever was clicked before, and no button is pressed that nobody tabbed to."""

import pytest
import shiboken6
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QFileDialog,
    QScrollArea,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.window.main_window import MainWindow
from tests.app.worker_process import process_id

LEFT = Qt.MouseButton.LeftButton


def press(qtbot: QtBot, window: MainWindow, key: Qt.Key) -> None:
    """Press a key as a person does: it goes to whatever has the focus."""
    qtbot.keyClick(QApplication.focusWidget() or window, key)


def controls(window: MainWindow) -> list[QWidget]:
    """What can be clicked, apart from what starts, stops or closes something."""
    apart = (window.top.run, window.top.stop, window.top.preset, window.desk.form.speech)
    found = [w for kind in (QAbstractButton, QComboBox, QAbstractSpinBox) for w in window.findChildren(kind)]
    names = ("Export…", "Mark", "…")
    found = [w for w in found if w.objectName() != "dock-button"]
    return [
        w
        for w in found
        if w.isVisible() and w.isEnabled() and w not in apart
        if not (isinstance(w, QAbstractButton) and w.text() in names)
    ]


def click(qtbot: QtBot, control: QWidget) -> None:
    qtbot.mouseClick(control, LEFT)
    QApplication.processEvents()
    if isinstance(control, QComboBox):
        control.hidePopup()
    popup = QApplication.activePopupWidget()
    if popup is not None:
        popup.close()
    QApplication.processEvents()


@pytest.mark.slow
def test_space_pauses_a_run_whatever_was_clicked_before(qtbot, live):
    process = process_id(live.runs.control)
    for control in controls(live):
        if not shiboken6.isValid(control):
            continue  # the notice that it was on has gone
        click(qtbot, control)
        settings = live.pipeline.next
        live.playhead.go_live()
        for following in (False, True):
            press(qtbot, live, Qt.Key.Key_Space)
            assert live.playhead.following == following, control.accessibleName()
        assert live.pipeline.next == settings, control.accessibleName()
    assert live.when.is_running()
    assert process_id(live.runs.control) == process


@pytest.mark.slow
def test_space_plays_a_saved_session_and_never_starts_a_run(qtbot, window, finished):
    w = window()
    w.open_session(finished)
    for control in controls(w):
        if not shiboken6.isValid(control):
            continue  # the notice that it was on has gone
        click(qtbot, control)
        w.playhead.seek(300)
        w.playhead.pause()
        settings, session = w.pipeline.next, w.playhead.path
        for playing in (True, False):
            press(qtbot, w, Qt.Key.Key_Space)
            assert w.playhead.playing == playing, control.accessibleName()
        assert w.pipeline.next == settings, control.accessibleName()
        assert w.playhead.path == session
    assert w.when.is_idle()
    assert process_id(w.runs.control) == 0


@pytest.mark.slow
def test_a_button_reached_by_tab_is_pressed_by_enter_and_not_by_space(qtbot, live):
    switch = live.top.toggles[1].switch
    switch.setFocus(Qt.FocusReason.TabFocusReason)
    press(qtbot, live, Qt.Key.Key_Space)
    assert live.pipeline.next.frames.skip == 1
    assert not live.playhead.following
    press(qtbot, live, Qt.Key.Key_Return)
    assert live.pipeline.next.frames.skip == 2
    live.top.stop.setFocus(Qt.FocusReason.TabFocusReason)
    press(qtbot, live, Qt.Key.Key_Space)
    assert live.when.is_running()


def test_nothing_has_the_focus_that_was_not_tabbed_to(qtbot, window):
    w = window()
    assert not isinstance(QApplication.focusWidget(), QAbstractButton)
    w.show_desk()
    assert not isinstance(QApplication.focusWidget(), QAbstractButton)
    qtbot.mouseClick(w.desk.form.fields["loop"].editor, LEFT)
    assert not isinstance(QApplication.focusWidget(), QAbstractButton)


@pytest.mark.slow
def test_the_focus_does_not_slip_from_run_to_stop(qtbot, window, tmp_path):
    w = window()
    w.show_desk()
    w.top.run.setFocus(Qt.FocusReason.TabFocusReason)
    press(qtbot, w, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: w.playhead.n_frames > 40)
    assert not w.top.run.isEnabled()
    assert not isinstance(QApplication.focusWidget(), QAbstractButton)
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Space, Qt.Key.Key_Return):
        press(qtbot, w, key)
    assert w.when.is_running()
    w.top.toggles[0].switch.setFocus(Qt.FocusReason.TabFocusReason)
    w.top.hide()
    assert not isinstance(QApplication.focusWidget(), QAbstractButton)


def test_without_a_session_space_presses_nothing(qtbot, window, monkeypatch):
    w = window()
    for ask in ("getOpenFileName", "getOpenFileNames"):
        monkeypatch.setattr(QFileDialog, ask, lambda *_: pytest.fail("a button was pressed"))
    for button in w.welcome.findChildren(QAbstractButton):
        if button.isVisible() and button.isEnabled():
            button.setFocus(Qt.FocusReason.TabFocusReason)
            press(qtbot, w, Qt.Key.Key_Space)
    assert w.when.is_idle()


@pytest.mark.slow
def test_the_button_of_a_path_types_nothing_into_it(qtbot, live):
    """It lies in the field, which took every key that the button left."""
    live.desk.form.reveal("graph.grammar")
    box = live.desk.form.fields["graph.grammar"].editor
    box.button.setFocus(Qt.FocusReason.TabFocusReason)
    press(qtbot, live, Qt.Key.Key_Space)
    assert not live.playhead.following
    press(qtbot, live, Qt.Key.Key_K)
    assert live.pipeline.next.frames.skip == 2
    assert (box.text(), box.path) == ("", "")
    box.setFocus()
    for key in (Qt.Key.Key_K, Qt.Key.Key_Space, Qt.Key.Key_K):
        press(qtbot, live, key)
    assert box.text().lower() == "k k"
    assert live.pipeline.next.frames.skip == 2


@pytest.mark.slow
def test_a_number_being_typed_swallows_letters(qtbot, live):
    box = live.desk.form.fields["search.beam"].editor
    before, following = live.pipeline.next, live.playhead.following
    box.setFocus()
    for key in (Qt.Key.Key_K, Qt.Key.Key_G, Qt.Key.Key_B, Qt.Key.Key_A):
        press(qtbot, live, key)
    assert live.pipeline.next == before
    assert not live.side_by_side.active
    assert live.playhead.following == following
    assert box.text() == "13 nat"


@pytest.mark.slow
def test_a_list_of_choices_swallows_letters(qtbot, live):
    choice = live.desk.form.fields["frames.rule"].editor
    live.desk.form.reveal("frames.rule")
    choice.setFocus()
    press(qtbot, live, Qt.Key.Key_K)
    assert live.pipeline.next.frames.skip == 1


@pytest.mark.slow
def test_a_number_takes_digits_and_leaves_commands_to_the_window(qtbot, live):
    box = live.desk.form.fields["search.beam"].editor
    box.setFocus()
    box.selectAll()
    for key in (Qt.Key.Key_1, Qt.Key.Key_1, Qt.Key.Key_Period, Qt.Key.Key_5, Qt.Key.Key_Return):
        press(qtbot, live, key)
    assert live.pipeline.next.search.beam == 11.5
    press(qtbot, live, Qt.Key.Key_K)
    assert live.pipeline.next.frames.skip == 2
    press(qtbot, live, Qt.Key.Key_Space)
    assert not live.playhead.following
    assert live.pipeline.next.search.beam == 11.5


@pytest.mark.slow
@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Escape])
def test_a_number_that_is_entered_or_given_up_gives_the_keys_back(qtbot, window, finished, key):
    w = window()
    w.open_session(finished)
    w.pipeline.edit()
    w.axis.select(1.0, 2.0)
    form = w.desk.form
    box = form.fields["search.beam"].editor
    box.setFocus()
    box.selectAll()
    for typed in (Qt.Key.Key_9, Qt.Key.Key_Period, Qt.Key.Key_5):
        press(qtbot, w, typed)
    press(qtbot, w, key)
    given_up = key == Qt.Key.Key_Escape
    assert w.pipeline.next.search.beam == (13.0 if given_up else 9.5)
    assert box.text() == ("13 nat" if given_up else "9.5 nat")
    assert w.axis.selected is not None, "Escape was the field's"
    for step, there in ((Qt.Key.Key_Comma, 600), (Qt.Key.Key_Period, 1200)):
        press(qtbot, w, step)
        assert w.playhead.cursor_frame == there
    assert w.pipeline.next.search.beam == (13.0 if given_up else 9.5)
    press(qtbot, w, Qt.Key.Key_Escape)
    assert w.axis.selected is None


def test_tab_goes_on_from_a_number_that_was_entered(qtbot, window):
    w = window()
    w.show_desk()
    fields = w.desk.form.fields
    fields["search.beam"].editor.setFocus()
    press(qtbot, w, Qt.Key.Key_Return)
    assert QApplication.focusWidget() is w
    press(qtbot, w, Qt.Key.Key_Tab)
    assert QApplication.focusWidget() is fields["search.max_active"].editor


def test_keys_held_down_zoom_on_but_switch_once(window):
    w = window()
    again = {a.id for a in w.actions_ if w.actions_[a.id].autoRepeat()}
    assert {"view.zoom_in", "view.left", "view.next"} <= again
    assert again.isdisjoint({"view.pause", "run.start", "run.stop", "toggle.frames.skip"})


@pytest.mark.slow
def test_what_is_dropped_is_copied_and_not_moved(window, finished):
    w = window()
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(finished))])
    move, shift = Qt.DropAction.MoveAction, Qt.KeyboardModifier.ShiftModifier
    both = move | Qt.DropAction.CopyAction
    entered = QDragEnterEvent(QPoint(200, 200), both, data, LEFT, shift)
    dropped = QDropEvent(QPointF(200, 200), both, data, LEFT, shift)
    for event in (entered, dropped):
        assert event.proposedAction() == move
        QApplication.sendEvent(w, event)
        assert event.isAccepted()
        assert event.dropAction() == Qt.DropAction.CopyAction
    assert w.playhead.path == finished


def test_tab_stops_at_nothing_out_of_sight(qtbot, window, finished):
    """Nor at an area that only scrolls what one can go to, nor at the bar of tabs that Qt keeps in reserve."""
    w = window()
    for show_page in (w.show_welcome, w.show_lab, lambda: w.open_session(finished)):
        show_page()
        QApplication.processEvents()
        w.setFocus()
        stops: list[QWidget] = []
        while (stop := QApplication.focusWidget() or w) not in stops:
            stops.append(stop)
            assert not isinstance(stop, QScrollArea)
            assert w.rect().contains(stop.mapTo(w, stop.rect().center())), stop
            press(qtbot, w, Qt.Key.Key_Tab)
            QApplication.processEvents()
        assert len(stops) > 10


def test_tab_does_not_stop_at_what_every_dock_has(qtbot, window, finished):
    """It took some forty to get to Export; floating and closing have actions of their own."""
    w = window()
    w.open_session(finished)
    QApplication.processEvents()
    w.setFocus()
    stops = 0
    while QApplication.focusWidget() is not w.desk.transport.export:
        press(qtbot, w, Qt.Key.Key_Tab)
        stops += 1
        assert stops < 36
    assert {"view.float", "view.close"} <= {action.id for action in w.actions_}
