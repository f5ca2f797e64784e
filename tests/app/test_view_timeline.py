"""The span timeline: its range is the shared one, or goes along with it; spans are found under the mouse."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF
from views_desk import LEFT, look, mouse, settle, view_on
from window_recording import Recording

from app.views.timeline import TimelineView, duration
from app.views.timeline_model import Ruler
from profiler.analysis.lod.spans import KINDS, Shown, timeline_of
from profiler.clock import FRAME_S

SETUP_S = 2.5


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """A finished session of 12 s, with what came before its first frame."""
    made = Recording(tmp_path_factory.mktemp("timeline") / "a.asrs", begins_ns=int(SETUP_S * 1e9))
    made.lane.put(made.recorder.stage("setup.graph", "setup"), 0, int(1e9), 0, 0)
    made.write(1200)
    made.close()
    return made.path


@pytest.fixture
def view(session, qapp, qtbot):
    """The timeline of it."""
    with view_on(TimelineView, session, qtbot, (900, 260)) as (made, _):
        yield made


def test_lanes_have_the_spans_of_the_session(view):
    model, snapshot = view.model(), view.snapshot
    assert [lane.title for lane in model.lanes[:3]] == ["utterance", "blocks", "stages"]
    everything = sum(len(lane.row) for lane in model.lanes if lane.row is not None)
    assert everything == len(snapshot.session.spans)
    spans = snapshot.session.spans
    search = [s.id for s in snapshot.session.stages.values() if s.group == "search"]
    view.run_time.setChecked(True)
    view.wall.fit()
    settle()
    model = view.model()
    drawn_s = model.lanes[2].busy[:, KINDS.index("search")].mean() * (model.last_s - model.first_s)
    expected_s = spans["duration_ns"][np.isin(spans["stage"], search)].sum() * 1e-9
    assert drawn_s == pytest.approx(expected_s, rel=0.01)


def test_frames_lie_where_the_other_charts_have_them(view):
    """Each block is drawn over its own frames, and what came before the first one is folded."""
    look(view.axis, 0.0, 0.8)
    assert view.plot.axis is view.axis
    model = view.model()
    blocks = [named for named in model.lanes[1].named if named.name != "prepare"]
    assert len(blocks) > 2
    for named in blocks[:-1]:
        first, last = (int(part) for part in named.name.split("–"))
        assert named.first_s == pytest.approx(first * FRAME_S)
        assert first * FRAME_S < named.last_s <= (last + 1) * FRAME_S + 1e-9
    assert model.setup_s == pytest.approx(SETUP_S)
    look(view.axis, 3.0, 6.0)
    assert view.model().setup_s == 0.0, "nothing of it lies between these seconds"


def click_at(view: TimelineView, at: QPoint) -> None:
    mouse(view.plot, QEvent.Type.MouseMove, at)
    mouse(view.plot, QEvent.Type.MouseButtonPress, at, LEFT, LEFT)
    mouse(view.plot, QEvent.Type.MouseButtonRelease, at, LEFT)
    settle()


def test_what_is_folded_unfolds_into_the_time_of_the_run(view):
    look(view.axis, 0.0, 6.0)
    at = view.plot.in_widget(view.names.setup_rect().center())
    click_at(view, at)
    assert view.run_time.isChecked()
    assert view.plot.axis is view.wall
    assert view.model().first_s == 0.0
    assert not view.names.setup_rect()
    view.run_time.setChecked(False)
    settle()
    assert view.plot.axis is view.axis
    assert view.model().last_s == pytest.approx(view.axis.visible[1], abs=0.05)


def test_its_range_is_that_of_the_frames_in_view_and_zooming_in_it_moves_the_other_charts(view):
    view.run_time.setChecked(True)
    look(view.axis, 3.0, 6.0)
    ruler = Ruler(timeline_of(view.snapshot.session), run_time=True)
    ends = [float(ruler.timeline.frames_at(ruler.ns_at(s))) * FRAME_S for s in view.wall.visible]
    assert ends == pytest.approx([3.0, 6.0], abs=0.02)
    look(view.axis, 0.0, 12.0)
    first, last = view.wall.visible
    look(view.wall, first + 0.25 * (last - first), first + 0.5 * (last - first))
    shown = view.wall.visible
    assert view.axis.visible[0] > 1.0
    assert view.axis.visible[1] < 11.0
    # Finer than any frame: the others stay at their narrowest, and do not push back.
    look(view.wall, shown[0], shown[0] + 1e-5)
    assert view.wall.visible == pytest.approx((shown[0], shown[0] + 1e-5))


def click_span(view: TimelineView, lane: int) -> tuple[Shown, float]:
    """Click the second span in view of a lane; return it and its middle in seconds."""
    model = view.model()
    row, ruler = model.lanes[lane].row, Ruler(timeline_of(view.snapshot.session), view.run_time.isChecked())
    span = row.within(*ruler.ns_at(np.array([model.first_s, model.last_s])))[1]
    middle = float(ruler.seconds_at((span.start_ns + span.end_ns) / 2))
    at = view.plot.in_widget(QPointF(view.names.x_of(middle), view.names.lane_rects()[lane].center().y()))
    click_at(view, at)
    return span, middle


@pytest.mark.parametrize("run_time", [False, True])
def test_a_click_on_a_span_selects_its_time_in_all_charts(view, run_time):
    view.run_time.setChecked(run_time)
    look(view.axis, 3.0, 3.4)
    block, middle = click_span(view, 1)
    record = view.snapshot.session.spans[block.number]
    first = int(record["first_frame"])
    assert view.axis.selected_frames == (first, first + int(record["frames"]))
    assert view.axis.stage is None, "a block has several stages"
    lines = view.readout(view.model(), middle)
    assert lines[1].name.startswith("decode")
    assert lines[1].value == duration((block.end_ns - block.start_ns) * 1e-9)
    span, _ = click_span(view, 2)
    assert view.axis.selected is not None
    assert view.axis.stage == view.snapshot.session.stages[span.stage].name


def test_a_picture_and_a_table_of_what_is_in_view(view):
    look(view.axis, 3.0, 3.2)
    headers, rows = view.table()
    assert list(headers[:2]) == ["lane", "stage"]
    assert {"blocks", "stages"} <= {str(row[0]) for row in rows}
    assert "spans in" in view.summary()
    view.show_texts(replace(view.model(), spans=1))
    assert view.note.startswith("1 span in ")
    assert [duration(s) for s in (1.234, 0.00456, 12.3e-6)] == ["1.23 s", "4.56 ms", "12.3 µs"]
    before = view.grab().toImage()
    look(view.axis, 6.0, 6.2)
    assert view.grab().toImage() != before
