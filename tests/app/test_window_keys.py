"""What keys do: Space pauses and plays whatever was clicked before, and no button is pressed that nobody tabbed to."""

import pytest
import shiboken6
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QAbstractSpinBox, QApplication, QComboBox, QFileDialog, QScrollArea

from tests.app.worker_process import process_id

Key, LEFT, BY_TAB = Qt.Key, Qt.MouseButton.LeftButton, Qt.FocusReason.TabFocusReason


def press(window, *keys):
    """Press keys as a person does: they go to whatever has the focus."""
    for key in keys:
        QTest.keyClick(QApplication.focusWidget() or window, key)


def click_all(window):
    """Click everything, apart from what starts, stops or closes something; yields what was clicked."""
    apart = (window.top.run, window.top.stop, window.top.preset, window.desk.form.speech)
    found = [w for kind in (QAbstractButton, QComboBox, QAbstractSpinBox) for w in window.findChildren(kind)]
    for control in [w for w in found if w.isVisible() and w.isEnabled()]:
        if not shiboken6.isValid(control) or control in apart or control.objectName() == "dock-button":
            continue  # or the notice that it was on has gone
        if isinstance(control, QAbstractButton) and control.text() in ("Export…", "Mark", "…"):
            continue
        QTest.mouseClick(control, LEFT)
        QApplication.processEvents()
        if isinstance(control, QComboBox):
            control.hidePopup()
        if (popup := QApplication.activePopupWidget()) is not None:
            popup.close()
        QApplication.processEvents()
        yield control


@pytest.mark.slow
def test_space_pauses_a_run_whatever_was_clicked_before(live):
    process = process_id(live.runs.control)
    for control in click_all(live):
        settings = live.pipeline.next
        live.playhead.go_live()
        for following in (False, True):
            press(live, Key.Key_Space)
            assert live.playhead.following == following, control.accessibleName()
        assert live.pipeline.next == settings, control.accessibleName()
    assert live.when.is_running()
    assert process_id(live.runs.control) == process


@pytest.mark.slow
def test_space_plays_a_saved_session_and_never_starts_a_run(opened):
    for control in click_all(opened):
        opened.playhead.seek(300)
        opened.playhead.pause()
        settings, session = opened.pipeline.next, opened.playhead.path
        for playing in (True, False):
            press(opened, Key.Key_Space)
            assert opened.playhead.playing == playing, control.accessibleName()
        assert opened.pipeline.next == settings, control.accessibleName()
        assert opened.playhead.path == session
    assert opened.when.is_idle()
    assert process_id(opened.runs.control) == 0


@pytest.mark.slow
def test_a_button_reached_by_tab_is_pressed_by_enter_and_not_by_space(live):
    live.top.toggles[1].switch.setFocus(BY_TAB)
    press(live, Key.Key_Space)
    assert live.pipeline.next.frames.skip == 1
    assert not live.playhead.following
    press(live, Key.Key_Return)
    assert live.pipeline.next.frames.skip == 2
    live.top.stop.setFocus(BY_TAB)
    press(live, Key.Key_Space)
    assert live.when.is_running()


@pytest.mark.slow
def test_the_focus_does_not_slip_from_run_to_stop(qtbot, window):
    w = window()
    w.show_desk()
    qtbot.mouseClick(w.desk.form.fields["loop"].editor, LEFT)
    assert not isinstance(QApplication.focusWidget(), QAbstractButton), "a click gives no focus"
    w.top.run.setFocus(BY_TAB)
    press(w, Key.Key_Return)
    qtbot.waitUntil(lambda: w.playhead.n_frames > 40)
    assert not w.top.run.isEnabled()
    assert not isinstance(QApplication.focusWidget(), QAbstractButton)
    press(w, Key.Key_Return, Key.Key_Space, Key.Key_Return)
    assert w.when.is_running()
    w.top.toggles[0].switch.setFocus(BY_TAB)
    w.top.hide()
    assert not isinstance(QApplication.focusWidget(), QAbstractButton)


def test_without_a_session_space_presses_nothing(window, monkeypatch):
    w = window()
    assert not isinstance(QApplication.focusWidget(), QAbstractButton)
    for ask in ("getOpenFileName", "getOpenFileNames"):
        monkeypatch.setattr(QFileDialog, ask, lambda *_: pytest.fail("a button was pressed"))
    for button in w.welcome.findChildren(QAbstractButton):
        if button.isVisible() and button.isEnabled():
            button.setFocus(BY_TAB)
            press(w, Key.Key_Space)
    assert w.when.is_idle()


@pytest.mark.slow
def test_the_button_of_a_path_types_nothing_into_it(live):
    """It lies in the field, which took every key that the button left."""
    live.desk.form.reveal("graph.grammar")
    box = live.desk.form.fields["graph.grammar"].editor
    box.button.setFocus(BY_TAB)
    press(live, Key.Key_Space)
    assert not live.playhead.following
    press(live, Key.Key_K)
    assert live.pipeline.next.frames.skip == 2
    assert (box.text(), box.path) == ("", "")
    box.setFocus()
    press(live, Key.Key_K, Key.Key_Space, Key.Key_K)
    assert box.text().lower() == "k k"
    assert live.pipeline.next.frames.skip == 2


@pytest.mark.slow
def test_what_is_being_edited_swallows_letters_and_leaves_commands_once_it_is_entered(live):
    form, before = live.desk.form, live.pipeline.next
    form.reveal("frames.rule")
    for key, letters in (("frames.rule", (Key.Key_K,)), ("search.beam", (Key.Key_K, Key.Key_G, Key.Key_B, Key.Key_A))):
        form.fields[key].editor.setFocus()
        press(live, *letters)
    box = form.fields["search.beam"].editor
    assert (live.pipeline.next, live.side_by_side.active, live.playhead.following) == (before, False, True)
    assert box.text() == "13 nat"
    box.selectAll()
    press(live, Key.Key_1, Key.Key_1, Key.Key_Period, Key.Key_5, Key.Key_Return)
    assert live.pipeline.next.search.beam == 11.5
    press(live, Key.Key_K, Key.Key_Space)
    assert live.pipeline.next.frames.skip == 2
    assert not live.playhead.following
    assert live.pipeline.next.search.beam == 11.5


@pytest.mark.slow
@pytest.mark.parametrize("key", [Key.Key_Return, Key.Key_Enter, Key.Key_Escape])
def test_a_number_that_is_entered_or_given_up_gives_the_keys_back(opened, key):
    opened.pipeline.edit()
    opened.axis.select(1.0, 2.0)
    box = opened.desk.form.fields["search.beam"].editor
    box.setFocus()
    box.selectAll()
    press(opened, Key.Key_9, Key.Key_Period, Key.Key_5, key)
    wanted = 13.0 if key == Key.Key_Escape else 9.5
    assert opened.pipeline.next.search.beam == wanted
    assert box.text() == f"{wanted:g} nat"
    assert opened.axis.selected is not None, "Escape was the field's"
    for step, there in ((Key.Key_Comma, 600), (Key.Key_Period, 1200)):
        press(opened, step)
        assert opened.playhead.cursor_frame == there
    assert opened.pipeline.next.search.beam == wanted
    press(opened, Key.Key_Escape)
    assert opened.axis.selected is None


def test_tab_goes_on_from_a_number_that_was_entered(window):
    w = window()
    w.show_desk()
    fields = w.desk.form.fields
    fields["search.beam"].editor.setFocus()
    press(w, Key.Key_Return)
    assert QApplication.focusWidget() is w
    press(w, Key.Key_Tab)
    assert QApplication.focusWidget() is fields["search.max_active"].editor


def test_keys_held_down_zoom_on_but_switch_once(window):
    w = window()
    again = {a.id for a in w.actions_ if w.actions_[a.id].autoRepeat()}
    assert {"view.zoom_in", "view.left", "view.next"} <= again
    assert again.isdisjoint({"view.pause", "run.start", "run.stop", "toggle.frames.skip"})


def test_tab_stops_at_nothing_out_of_sight_and_gets_to_export_soon(window, finished):
    """Nor at an area that only scrolls what one can go to, nor at the bar of tabs that Qt keeps in reserve.

    With the buttons of every dock it took some forty to get to Export; floating and closing have actions of their own.
    """
    w = window()
    for show_page in (w.show_welcome, w.show_lab, lambda: w.open_session(finished)):
        show_page()
        QApplication.processEvents()
        w.setFocus()
        stops = []
        while (stop := QApplication.focusWidget() or w) not in stops:
            stops.append(stop)
            assert not isinstance(stop, QScrollArea)
            assert w.rect().contains(stop.mapTo(w, stop.rect().center())), stop
            press(w, Key.Key_Tab)
            QApplication.processEvents()
        assert len(stops) > 10
    assert stops.index(w.desk.transport.export) < 36
    assert {"view.float", "view.close"} <= {action.id for action in w.actions_}
