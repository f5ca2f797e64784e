"""Small things on the window that a newcomer stumbled over."""

from pathlib import Path

from PySide6.QtCore import QEvent, QPoint
from PySide6.QtWidgets import QApplication

from app.charts.legend import Readout
from app.model.playhead import Playhead
from app.model.time_axis import TimeAxis
from pipelines.config import presets
from tests.app.test_window_hover import send

READABLE = Path(__file__).parents[2] / "README.md"


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
