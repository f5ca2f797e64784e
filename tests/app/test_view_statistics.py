"""Statistics: how the time of single frames is spread, and the way through the slowest of them."""

from itertools import product

import numpy as np
import pytest
from PySide6.QtCore import Qt
from views_desk import select, settle, view_on

from app.model.statistics import BINS, WHOLE, ends, stage_names, stage_ns, statistics
from app.model.statistics import spread as spread_of
from app.views.statistics import StatisticsView
from profiler.session.reader import Session


@pytest.fixture
def view(sample, qapp, qtbot):
    with view_on(StatisticsView, sample, qtbot, (500, 360)) as made:
        made[1].axis.choose_scope("whole")
        settle()
        yield made


def spread(session: Session, name: str, frames: int) -> list[float]:
    """Time of a stage per frame, ns, span by span."""
    decode = {lane.id for lane in session.lanes.values() if lane.decode}
    found = [0.0] * frames
    for span in session.spans:
        if session.stages[int(span["stage"])].name == name and int(span["lane"]) in decode:
            for frame in range(int(span["frames"])):
                found[int(span["first_frame"]) + frame] += span["duration_ns"] / span["frames"]
    return found


def test_every_stage_has_its_time_per_frame_and_its_percentiles(view):
    _, playhead = view
    session, track, frames = playhead.session, playhead.track, playhead.n_frames
    own = track.own_ns(0, frames)
    names = stage_names(session, track)
    assert names[0] == WHOLE
    assert len(names) > 3
    for name in names[1:]:
        known = np.array(spread(session, name, frames))
        assert stage_ns(session, name, 0, frames) == pytest.approx(known, abs=0.01)
        ran = (known * own / track.wall_row[:])[known > 0] * 1e-6
        found = statistics(session, track, name, 0, frames)
        assert (found.frames, int(found.counts.sum())) == (len(ran), len(ran))
        assert found.quantiles == pytest.approx(tuple(np.percentile(ran, (50, 90, 99))))
        assert found.mean == pytest.approx(ran.mean())
        assert found.slowest_ms[0] == pytest.approx(ran.max())
    whole = statistics(session, track, WHOLE, 100, 200)
    assert whole.mean == pytest.approx(own[100:200].mean() * 1e-6)
    assert int(whole.slowest[0]) == 100 + int(own[100:200].argmax())
    assert statistics(session, track, "no such stage", 0, frames) is None


def test_times_that_differ_by_their_last_digits_have_a_histogram():
    for exponent, digits in product((-6, 0, 5, 12), range(1, 17)):
        first = 3.2069089143466665 * 10.0**exponent
        ms = np.array([first, first * (1 + 10.0**-digits)])
        found = spread_of(WHOLE, np.arange(2), ms, ends(ms))
        assert len(found.counts) == BINS
        assert int(found.counts.sum()) == 2
        assert (np.diff(found.edges) > 0).all()


def test_the_slowest_frames_are_gone_to_one_after_the_other(view, qtbot):
    shown, playhead = view
    wall = playhead.track.own_ns(0, playhead.n_frames)
    ranked = np.argsort(-wall, kind="stable")
    for place in range(3):
        qtbot.mouseClick(shown.next, Qt.MouseButton.LeftButton)
        settle()
        frame = int(ranked[place])
        assert playhead.axis.pointed_frames == (frame, frame + 1)
        assert playhead.axis.selected is None, "the scope stays"
        assert shown.model().frames == len(wall), "and so does what is counted"
    shown.stage.setCurrentIndex(shown.stage.findData("search.emit"))
    model = shown.model()
    assert model.name == "search.emit"
    qtbot.mouseClick(shown.next, Qt.MouseButton.LeftButton)
    settle()
    assert playhead.axis.pointed_frames == (int(model.slowest[0]), int(model.slowest[0]) + 1)
    select(playhead.axis, 1.0, 2.0)
    model = shown.model()
    assert model.frames <= 100
