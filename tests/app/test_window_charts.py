"""The charts' actions in the window: scale, follow window, roofline; and the table twin."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication, QMenu, QToolButton

from app.charts.scale import Scale
from app.model.time_axis import WINDOW_S
from app.pictures.writers import settle
from app.views import VIEWS
from app.views.cost import CostView


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


def test_the_speech_of_a_session_says_what_the_clock_counts(opened):
    """The line said 83.0 s of audio where the clock ended at 1:22.8, without a word of why."""
    transport, frames = opened.desk.transport, opened.playhead.n_frames
    assert f"s of audio in {frames} frames" in transport.note.full
    assert "frames of 10 ms" in transport.clock.toolTip()
