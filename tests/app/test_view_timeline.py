"""The span timeline: its range goes along with the shared one, spans are found under the mouse, live and replayed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPointF
from PySide6.QtWidgets import QApplication
from views_desk import LEFT, mouse, settle

from app.model.playhead import Playhead
from app.model.time_axis import TimeAxis
from app.views.timeline import TimelineView, duration
from profiler.analysis.lod.spans import KINDS, Shown, timeline_of
from profiler.frames import FRAME_S


@pytest.fixture
def view(finished: Path, qapp: QApplication) -> Iterator[TimelineView]:
    """The timeline of a finished session of 12 s."""
    axis = TimeAxis()
    playhead = Playhead(axis)
    view = TimelineView(axis)
    playhead.changed.connect(view.update_snapshot)
    playhead.closed.connect(view.clear)
    view.resize(900, 260)
    view.show()
    playhead.open(finished)
    settle()
    yield view
    playhead.close()
    view.close()
    view.deleteLater()


def test_lanes_have_the_spans_of_the_session(view: TimelineView) -> None:
    model, snapshot = view.model(), view.snapshot
    assert [lane.title for lane in model.lanes[:3]] == ["utterance", "blocks", "stages"]
    everything = sum(len(lane.row) for lane in model.lanes if lane.row is not None)
    assert everything == len(snapshot.session.spans)
    stages = model.lanes[2]
    assert stages.row is not None
    spans = snapshot.session.spans
    search = [s.id for s in snapshot.session.stages.values() if s.group == "search"]
    view.wall.fit()
    settle()
    model = view.model()
    column_s = (model.last_s - model.first_s) / len(stages.busy)
    drawn_s = model.lanes[2].busy[:, KINDS.index("search")].sum() * column_s
    expected_s = spans["duration_ns"][np.isin(spans["stage"], search)].sum() * 1e-9
    assert drawn_s == pytest.approx(expected_s, rel=0.01)


def test_the_range_is_that_of_the_frames_in_view(view: TimelineView) -> None:
    view.axis.set_visible(3.0, 6.0)
    settle()
    timeline = timeline_of(view.snapshot.session)  # type: ignore[union-attr]
    ends = [float(timeline.frames_at(view.wall.ns_at(s))) * FRAME_S for s in view.wall.visible]
    assert ends == pytest.approx([3.0, 6.0], abs=0.02)


def test_zooming_in_it_moves_the_other_charts(view: TimelineView) -> None:
    view.axis.set_visible(0.0, 12.0)
    settle()
    first, last = view.wall.visible
    view.wall.set_visible(first + 0.25 * (last - first), first + 0.5 * (last - first))
    settle()
    shown = view.wall.visible
    assert view.axis.visible[0] > 1.0
    assert view.axis.visible[1] < 11.0
    # Finer than any frame: the others stay at their narrowest, and do not push back.
    view.wall.set_visible(shown[0], shown[0] + 1e-5)
    settle()
    assert view.wall.visible == pytest.approx((shown[0], shown[0] + 1e-5))


def click_span(view: TimelineView, lane: int) -> tuple[Shown, float]:
    """Click the second span in view of a lane; return it and its middle in seconds."""
    model = view.model()
    row = model.lanes[lane].row
    span = row.within(view.wall.ns_at(model.first_s), view.wall.ns_at(model.last_s))[1]
    middle = view.wall.second_of((span.start_ns + span.end_ns) / 2)
    at = view.plot.in_widget(QPointF(view.names.x_of(middle), view.names.lane_rects()[lane].center().y()))
    mouse(view.plot, QEvent.Type.MouseMove, at)
    mouse(view.plot, QEvent.Type.MouseButtonPress, at, LEFT, LEFT)
    mouse(view.plot, QEvent.Type.MouseButtonRelease, at, LEFT)
    settle()
    return span, middle


def test_a_click_on_a_span_of_a_stage_chooses_the_stage(view: TimelineView) -> None:
    view.axis.set_visible(3.0, 3.4)
    settle()
    span, _ = click_span(view, 2)
    assert view.axis.selected is not None
    assert view.axis.stage == view.snapshot.session.stages[span.stage].name  # type: ignore[union-attr]


def test_a_click_on_a_span_selects_its_time_in_all_charts(view: TimelineView) -> None:
    view.axis.set_visible(3.0, 3.4)
    settle()
    block, middle = click_span(view, 1)
    record = view.snapshot.session.spans[block.number]  # type: ignore[union-attr]
    first = int(record["first_frame"])
    assert view.axis.selected_frames == (first, first + int(record["frames"]))
    assert view.axis.stage is None, "a block has several stages"
    model = view.model()
    assert model is not None
    lines = view.readout(model, middle)
    assert lines[1].name.startswith("decode")
    assert lines[1].value == duration((block.end_ns - block.start_ns) * 1e-9)


def test_a_picture_and_a_table_of_what_is_in_view(view: TimelineView) -> None:
    view.axis.set_visible(3.0, 3.2)
    settle()
    headers, rows = view.table()
    assert list(headers[:2]) == ["lane", "stage"]
    assert {"blocks", "stages"} <= {str(row[0]) for row in rows}
    assert "spans in" in view.summary()
    model = view.model()
    assert model is not None
    view.show_texts(replace(model, spans=1))
    assert view.note.startswith("1 span in ")
    before = view.grab().toImage()
    view.axis.set_visible(6.0, 6.2)
    settle()
    assert view.grab().toImage() != before


@pytest.mark.parametrize(("seconds", "text"), [(1.234, "1.23 s"), (0.00456, "4.56 ms"), (12.3e-6, "12.3 µs")])
def test_a_length_of_time_has_the_unit_that_suits_it(seconds: float, text: str) -> None:
    assert duration(seconds) == text
