"""The ends of a dragged selection snap to utterances, words and markers next to them, in every chart alike."""

import pytest
from PySide6.QtCore import Qt
from views_desk import drag, look, view_on

from app.charts.time_plot import SNAP
from app.model.scope import marks, snap_points
from app.model.time_axis import TimeAxis
from app.views.timeline import TimelineView
from profiler.session.reader import Session

UTTERANCE = 2.56  # Second at which the second utterance of the sample begins
WORD = 3.26  # Second at which its fourth word ends; the next begins at 3.28


def test_utterances_words_and_markers_are_snapped_to(recording):
    """Words are 0.8 s long, one a second, the last at 4 s; the second utterance begins at 6 s."""
    made = recording()
    made.write(550)
    made.marker("here", 550)
    made.write(650)
    made.close()
    with Session.open(made.path) as session:
        assert sorted(set(snap_points(session, 3.5, 7.0))) == pytest.approx([3.8, 4.0, 4.8, 5.5, 6.0, 6.8, 7.0])
        assert [snap_points(session, first, 5.9) for first in (4.9, 5.6)] == [[5.5], []]
    axis = TimeAxis()
    assert axis.snapped(1.0, 5.0) == 1.0, "no session, no points"
    axis.snap_points = lambda first, last: [at for at in (1.0, 1.5, 9.0) if first <= at <= last]
    assert [axis.snapped(second, 0.5) for second in (1.2, 1.3, 2.1)] == [1.0, 1.5, 2.1], "the nearest within reach"


def test_a_drag_snaps_unless_alt_is_held(desk):
    look(desk.axis, 1.0, 4.0)
    near = SNAP / 2 * 3.0 / desk.cost.plot.columns
    for plot in (desk.cost.plot, desk.work.plot, desk.words.plot):
        drag(plot, UTTERANCE + near, WORD - near)
        assert desk.axis.selected == pytest.approx((UTTERANCE, WORD), abs=1e-9)
        drag(plot, UTTERANCE + near, WORD - near, keys=Qt.KeyboardModifier.AltModifier)
        assert desk.axis.selected == pytest.approx((UTTERANCE + near, WORD - near), abs=near / 2)
        assert desk.axis.selected != pytest.approx((UTTERANCE, WORD), abs=near / 4)
    far = SNAP * 1.5 * 3.0 / desk.cost.plot.columns
    drag(desk.cost.plot, UTTERANCE + far, WORD)
    assert desk.axis.selected == pytest.approx((UTTERANCE + far, WORD), abs=near / 2)


def test_a_stretch_about_one_boundary_can_be_selected(desk):
    look(desk.axis, 2.4, 2.7)
    near = SNAP * 0.8 * 0.3 / desk.cost.plot.columns
    drag(desk.cost.plot, UTTERANCE - near, UTTERANCE + near)
    assert desk.axis.selected is None, "shorter than half a frame"
    look(desk.axis, 0.0, 20.48)
    near = SNAP * 0.8 * 20.48 / desk.cost.plot.columns
    drag(desk.cost.plot, UTTERANCE - near, UTTERANCE + near)
    first, last = desk.axis.selected
    assert first < UTTERANCE < last


def test_the_timeline_snaps_in_its_own_time(sample, qtbot):
    with view_on(TimelineView, sample, qtbot) as (view, playhead):
        view.run_time.setChecked(True)
        look(playhead.axis, 1.0, 4.0)
        first, last = view.plot.visible
        near = SNAP / 2 * (last - first) / view.plot.columns
        drag(view.plot, view.wall.seconds_at(UTTERANCE) + near, view.wall.seconds_at(3.5))
        assert playhead.axis.selected[0] == pytest.approx(UTTERANCE, abs=1e-6)


def test_of_changes_of_a_setting_at_one_frame_the_last_is_shown(recording):
    made = recording()
    made.write(600)
    for text, frame in (("on", 0), ("off", 0), ("on again", 0), ("off later", 300)):
        made.marker(text, frame, "gmm.selection.enabled", text)
    made.marker("noise", 0)
    made.close()
    with Session.open(made.path) as session:
        assert [mark.text for mark in marks(session, 600, 600)] == ["on again", "noise", "off later"]
