"""The charts in the window: actions of their scale, follow window, tables, texts."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint
from PySide6.QtWidgets import QApplication, QMenu, QToolButton

from app.charts.legend import Readout
from app.charts.scale import Scale
from app.model.playhead import Playhead
from app.model.time_axis import WINDOW_S, TimeAxis
from app.pictures.writers import settle
from app.views import VIEWS
from app.views.cost import CostView
from pipelines.config import presets
from tests.app.test_window_hover import send


@pytest.fixture
def opened(window, recording):
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
def test_the_scale_is_locked_and_made_logarithmic_by_actions(opened):
    cost = opened.desk.views["cost"]
    assert isinstance(cost, CostView)
    for key in ("scale.lock", "scale.log"):
        assert opened.actions_.trigger(key)
        opened.actions_.refresh()
        assert opened.actions_[key].isChecked()
    assert cost.holding.locked
    assert cost.holding.log
    button = next(b for b in opened.desk.findChildren(QToolButton) if b.text() == "Scale")
    button.click()
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    menu.close()
    assert menu.actions() == [opened.actions_[f"scale.{name}"] for name in ("others", "lock", "log")]
    assert button in cost.header_controls, "not in a picture"


@pytest.mark.slow
def test_the_95th_percentile_leaves_the_chart_and_does_not_run_along_its_top(opened):
    cost = opened.desk.views["cost"]
    assert isinstance(cost, CostView)
    shown = cost.model()
    assert shown is not None
    p95_ms = np.repeat([0.5, 3.0, 4.0, 3.0, 0.5], len(shown.p95_ms) // 5 + 1)[: len(shown.p95_ms)]
    model = replace(shown, p95_ms=p95_ms, scale=Scale(0.0, 1.0))
    cost.show_model(model)
    path = cost.p95.path()
    points = [path.elementAt(number) for number in range(path.elementCount())]
    lines = [(a.y, b.y) for a, b in pairwise(points) if b.isLineTo()]
    assert lines == [(0.5, 1.0), (1.0, 0.5)]


def test_a_replay_is_followed_by_a_window_until_the_user_says_otherwise(opened):
    axis, playhead = opened.axis, opened.playhead
    assert axis.visible == pytest.approx((0.0, 60.0)), "a finished session is shown whole"
    playhead.play()
    playhead.seek(190)
    first, last = axis.visible
    assert last - first == pytest.approx(WINDOW_S)
    assert (playhead.cursor_frame * 0.01 - first) / (last - first) > 0.05
    assert opened.desk.transport.follow.isChecked()
    assert opened.actions_.trigger("view.window")
    assert axis.visible == pytest.approx((0.0, 60.0))
    assert not opened.desk.transport.follow.isChecked()
    playhead.pause()
    playhead.play()
    assert axis.visible == pytest.approx((0.0, 60.0)), "what the user chose stays"
    playhead.pause()
    opened.desk.transport.follow.click()
    assert axis.windowed


@pytest.mark.slow
def test_no_text_of_a_table_is_cut_however_many_columns_it_has(opened):
    for view_id in VIEWS.keys() - {"results"}:  # whose pages have tables of their own
        opened.desk.docks.open(view_id)
        view = opened.desk.views[view_id]
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


def test_a_menu_of_a_chart_takes_the_place_of_the_box_at_the_mouse(window, finished):
    w = window()
    w.open_session(finished)
    QApplication.processEvents()
    view = w.desk.views["cost"]
    send(view.plot.viewport(), QEvent.Type.MouseMove, QPoint(300, 60))
    assert any(box.isVisible() for box in w.findChildren(Readout))
    view.menu().deleteLater()
    assert not any(box.isVisible() for box in w.findChildren(Readout))


def test_changed_roofs_say_what_that_means(window, sample):
    w = window()
    w.open_session(sample)
    w.playhead.session.meta["drift"] = {"gemm": 2.76}
    w.status.show_snapshot(w.playhead.snapshot())
    assert "roofs as recorded" not in w.status.machine.full
    assert "compute and memory may be off" in w.status.machine.full
