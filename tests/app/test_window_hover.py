"""The charts in the window: actions of their scale, tables, texts; hovered and clicked over and over in every state."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QHelpEvent, QMouseEvent
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QToolButton, QWidget

from app.charts.legend import Readout
from app.charts.scale import Scale
from app.model.playhead import Playhead
from app.model.time_axis import WINDOW_S, TimeAxis
from app.pictures.writers import settle
from app.style.theme import set_theme
from app.views import VIEWS
from app.window.main_window import MainWindow
from pipelines.config import presets

ACROSS, DOWN = 5, 4
NOTHING, LEFT = Qt.MouseButton.NoButton, Qt.MouseButton.LeftButton
NO_KEY = Qt.KeyboardModifier.NoModifier


def send(widget: QWidget, kind: QEvent.Type, at: QPoint, held: Qt.MouseButton = NOTHING) -> None:
    button = LEFT if kind in (QEvent.Type.MouseButtonPress, QEvent.Type.MouseButtonRelease) else NOTHING
    spot, everywhere = QPointF(at), QPointF(widget.mapToGlobal(at))
    QApplication.sendEvent(widget, QMouseEvent(kind, spot, everywhere, button, held, NO_KEY))


def surfaces(view: QWidget) -> Iterator[QWidget]:
    """What of a view takes the mouse."""
    for child in (view, *view.findChildren(QWidget)):
        if child is not view and child.isWindow():
            continue  # a tool tip
        if child.isVisible() and child.width() > 20 and child.height() > 20:
            yield child.viewport() if isinstance(child, QAbstractScrollArea) else child


def over_and_over(window: MainWindow) -> None:
    """Hover, ask for the tip, and click, on a grid over every view and its table."""
    for view in map(window.desk.views.__getitem__, VIEWS):
        for as_table in (False, True):
            view.show_table(as_table)
            QApplication.processEvents()
            for surface in dict.fromkeys(surfaces(view)):
                boxes = window.findChildren(Readout)
                for row, column in itertools.product(range(DOWN), range(ACROSS)):
                    x, y = (surface.width() - 1) * column / (ACROSS - 1), (surface.height() - 1) * row / (DOWN - 1)
                    at = QPoint(round(x), round(y))
                    send(surface, QEvent.Type.MouseMove, at)
                    for box in boxes:
                        if box.isVisible():
                            box.grab()  # what is under the mouse is looked up as it is painted
                    QApplication.sendEvent(surface, QHelpEvent(QEvent.Type.ToolTip, at, surface.mapToGlobal(at)))
                    if (row + column) % 3 == 0:
                        send(surface, QEvent.Type.MouseButtonPress, at, LEFT)
                        send(surface, QEvent.Type.MouseButtonRelease, at)
                QApplication.sendEvent(surface, QEvent(QEvent.Type.Leave))
            QApplication.processEvents()
        view.show_table(False)
    assert [b.text for b in window.notices.banners if b.kind == "error"] == []


def look_around(window: MainWindow) -> None:
    """The whole range and a part of it, with a selection and without."""
    axis = window.axis
    axis.fit()
    over_and_over(window)
    end = max(axis.end, 1.0)
    axis.set_visible(0.4 * end, 0.45 * end)
    axis.select(0.41 * end, 0.44 * end)
    over_and_over(window)
    window.grab()


@pytest.mark.slow
def test_in_a_replay_at_its_start_within_it_and_after_it_was_closed(opened):
    for frame in (1200, 610, 0):
        opened.playhead.seek(frame)
        over_and_over(opened)
    opened.playhead.seek(700)
    look_around(opened)
    opened.playhead.close()
    over_and_over(opened)


@pytest.mark.slow
def test_while_a_run_is_followed_and_held(live):
    over_and_over(live)
    live.playhead.pause()
    look_around(live)
    assert live.when.is_running()


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_without_a_session_and_in_one_without_a_frame(window, recording, theme):
    w = window()
    set_theme(theme)
    w.show_desk()
    over_and_over(w)
    made = recording("none.asrs")
    made.close()
    w.open_session(made.path)
    over_and_over(w)


def test_the_box_is_of_the_word_whose_text_is_under_the_mouse(opened):
    """A text may reach beyond the time of its word, to where the next one is spoken already."""
    opened.axis.set_visible(0.0, 10.0)
    QApplication.processEvents()
    words = opened.desk.views["words"]
    placed = words.spoken.placed[0]
    plot, (_, rows) = words.plot, words.spoken.areas()
    at = QPointF(placed.left + placed.width - 1, rows.top() + 5)
    far = placed.token.last_s + 0.5
    for place, is_of_it in ((at, True), (QPointF(at.x(), 2.0), False)):
        plot.mouse = place
        lines = words.readout(words.model(), far)
        assert ([line.value for line in lines if line.name == "hypothesis"] == [placed.token.text]) == is_of_it


@pytest.fixture
def long(window, recording):
    """A finished session of 60 s in a window of 1280×800."""
    made = recording("long.asrs")
    made.write(6000)
    made.close()
    desk = window()
    desk.resize(1280, 800)
    assert desk.open_session(made.path)
    settle()
    return desk


@pytest.mark.slow
def test_the_scale_is_locked_and_made_logarithmic_by_actions(long):
    cost = long.desk.views["cost"]
    for key in ("scale.lock", "scale.log"):
        assert long.actions_.trigger(key)
        long.actions_.refresh()
        assert long.actions_[key].isChecked()
    assert (cost.holding.locked, cost.holding.log) == (True, True)
    button = next(b for b in long.desk.findChildren(QToolButton) if b.text() == "Scale")
    button.click()
    menu = QApplication.activePopupWidget()
    menu.close()
    assert menu.actions() == [long.actions_[f"scale.{name}"] for name in ("others", "lock", "log")]
    assert button in cost.header_controls, "not in a picture"


@pytest.mark.slow
def test_the_95th_percentile_leaves_the_chart_and_does_not_run_along_its_top(long):
    cost = long.desk.views["cost"]
    shown = cost.model()
    p95_ms = np.repeat([0.5, 3.0, 4.0, 3.0, 0.5], len(shown.p95_ms) // 5 + 1)[: len(shown.p95_ms)]
    cost.show_model(replace(shown, p95_ms=p95_ms, scale=Scale(0.0, 1.0)))
    path = cost.p95.path()
    points = [path.elementAt(number) for number in range(path.elementCount())]
    lines = [(a.y, b.y) for a, b in pairwise(points) if b.isLineTo()]
    assert lines == [(0.5, 1.0), (1.0, 0.5)]


def test_a_replay_is_followed_by_a_window_until_the_user_says_otherwise(long):
    axis, playhead = long.axis, long.playhead
    assert axis.visible == pytest.approx((0.0, 60.0)), "a finished session is shown whole"
    playhead.play()
    playhead.seek(190)
    first, last = axis.visible
    assert last - first == pytest.approx(WINDOW_S)
    assert (playhead.cursor_frame * 0.01 - first) / (last - first) > 0.05
    assert long.desk.transport.follow.isChecked()
    assert long.actions_.trigger("view.window")
    assert axis.visible == pytest.approx((0.0, 60.0))
    assert not long.desk.transport.follow.isChecked()
    playhead.pause()
    playhead.play()
    assert axis.visible == pytest.approx((0.0, 60.0)), "what the user chose stays"
    playhead.pause()
    long.desk.transport.follow.click()
    assert axis.windowed


@pytest.mark.slow
def test_no_text_of_a_table_is_cut_however_many_columns_it_has(long):
    for view_id in VIEWS.keys() - {"results"}:  # whose pages have tables of their own
        long.desk.docks.open(view_id)
        view = long.desk.views[view_id]
        view.show_table(True)
        settle()
        table = view._table
        header, model = table.horizontalHeader(), table.model()
        assert model.columnCount() >= 2
        for column in range(model.columnCount()):
            widest = max(table.sizeHintForColumn(column), header.sectionSizeHint(column))
            assert header.sectionSize(column) >= widest
        assert header.length() >= table.viewport().width() - model.columnCount()


def test_a_condition_stands_once_under_the_settings_that_wait_for_it(window):
    w = window()
    w.show_desk()
    w.desk.form.search.setText("stream.")
    QApplication.processEvents()
    fields = [field for key, field in w.desk.form.fields.items() if key.startswith("stream.")]
    waiting = [field for field in fields if field.unavailable_reason]
    assert len(waiting) > 5
    assert [field.reason.text() for field in waiting if field.reason.text()] == ["with chunk 1…5000"]


def test_the_end_of_a_modified_preset_is_never_cut(window):
    w = window()
    w.resize(1280, 768)
    w.pipeline.choose(presets.DEMO)
    w.pipeline.set("search.beam", 9.0)
    assert w.top.preset.text().endswith("ified)")
    assert w.top.preset.text() != w.top.preset.full, "or this shows nothing"


def test_a_session_that_has_no_more_to_come_fills_the_axis(recording):
    made = recording()
    made.write(100)
    axis = TimeAxis()
    playhead = Playhead(axis)
    playhead.open(made.path)
    assert axis.visible[1] > 5.0
    made.close()
    while playhead.live:
        playhead.tick()
    assert axis.visible == (0.0, 1.0)
    playhead.close()


def test_a_menu_of_a_chart_takes_the_place_of_the_box_at_the_mouse(opened):
    QApplication.processEvents()
    view = opened.desk.views["cost"]
    send(view.plot.viewport(), QEvent.Type.MouseMove, QPoint(300, 60))
    assert any(box.isVisible() for box in opened.findChildren(Readout))
    view.menu().deleteLater()
    assert not any(box.isVisible() for box in opened.findChildren(Readout))


def test_changed_roofs_say_what_that_means(window, sample):
    w = window()
    w.open_session(sample)
    w.playhead.session.meta["drift"] = {"gemm": 2.76}
    w.status.show_snapshot(w.playhead.snapshot())
    assert "roofs as recorded" not in w.status.machine.full
    assert "compute and memory may be off" in w.status.machine.full
