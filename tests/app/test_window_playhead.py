"""Live tail and replay cursor over real session files."""

import numpy as np
import pytest
from window_recording import UTTERANCE

from app.model import pace
from app.model import playhead as module
from app.model.pace import SmoothCursor
from app.model.playhead import Playhead
from app.model.time_axis import TimeAxis


@pytest.fixture
def playhead(qtbot):
    made = Playhead(TimeAxis())
    yield made
    made.close()


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until the test starts it."""

    class Clock:
        now = 1000.0

        def monotonic(self) -> float:
            return self.now

        def process_time(self) -> float:
            return self.now

    standing = Clock()
    monkeypatch.setattr(module, "time", standing)
    return standing


def test_a_live_session_is_followed_to_its_newest_frame(qtbot, playhead, recording):
    run = recording()
    run.write(100)
    qtbot.waitUntil(lambda: _opened_with(playhead, run.path, 100))
    assert playhead.live
    assert playhead.following
    run.write(200)
    qtbot.waitUntil(lambda: playhead.cursor_frame == 300)
    assert playhead.axis.cursor == pytest.approx(3.0)


def _opened_with(playhead, path, frames):
    playhead.open(path)
    return playhead.n_frames == frames


def test_pausing_the_view_leaves_the_run_alone(qtbot, playhead, recording):
    run = recording()
    run.write(100)
    qtbot.waitUntil(lambda: _opened_with(playhead, run.path, 100))
    playhead.toggle()
    run.write(200)
    qtbot.waitUntil(lambda: playhead.n_frames == 300)
    assert playhead.cursor_frame == 100
    playhead.toggle()
    qtbot.waitUntil(lambda: playhead.cursor_frame == 300 or playhead.playing)
    playhead.go_live()
    assert playhead.cursor_frame == 300
    assert playhead.following


def test_the_end_of_a_run_is_reported_once(qtbot, playhead, recording):
    run = recording()
    run.write(100)
    playhead.open(run.path)
    reported = []
    playhead.ended.connect(reported.append)
    run.close()
    qtbot.waitUntil(lambda: not playhead.live)
    qtbot.wait(150)
    assert reported == ["closed"]
    assert not playhead._timer.isActive()


def test_replay_moves_at_audio_time_times_speed(playhead, finished, clock):
    playhead.open(finished)
    assert not playhead.live
    playhead.seek(100)
    playhead.play()
    clock.now += 0.5
    playhead.tick()
    assert playhead.cursor_frame == 150
    playhead.set_speed(4.0)
    clock.now += 0.5
    playhead.tick()
    assert playhead.cursor_frame == 350
    playhead.pause()
    clock.now += 60
    playhead.tick()
    assert playhead.cursor_frame == 350


def test_replay_stops_at_the_end_and_starts_over(playhead, finished, clock):
    playhead.open(finished)
    playhead.seek(1150)
    playhead.play()
    clock.now += 5
    playhead.tick()
    assert playhead.cursor_frame == 1200
    assert not playhead.playing
    playhead.play()
    assert playhead.cursor_frame == 0


def test_stepping_visits_utterances_and_markers(playhead, recording):
    run = recording()
    run.write(600)
    run.marker("skip", 250)
    run.write(600)
    run.close()
    playhead.open(run.path)
    visited = []
    for _ in range(4):
        playhead.step(-1)
        visited.append(playhead.cursor_frame)
    assert visited == [UTTERANCE, 250, 0, 0]
    playhead.step(1)
    assert playhead.cursor_frame == 250


def test_nothing_is_delivered_after_closing(qtbot, playhead, recording):
    run = recording()
    run.write(100)
    playhead.open(run.path)
    reported = []
    playhead.changed.connect(reported.append)
    playhead.close()
    run.write(200)
    qtbot.wait(200)
    playhead.tick()
    assert reported == []
    assert playhead.snapshot() is None


def test_frames_that_come_in_bursts_are_shown_evenly():
    follow, position, newest = SmoothCursor(), 0.0, 0.0
    steps = []
    for tick in range(300):
        if tick % 5 == 0:
            newest += 16.0
            follow.arrived(tick * 0.033, newest - position)
        before = position
        position = follow.moved(position, newest, 0.033)
        steps.append(position - before)
        assert position <= newest
    settled = steps[100:]
    assert min(settled) > 2.0
    assert max(settled) < 4.5
    assert newest - position < 20.0, "behind by one burst"


def test_redraws_keep_their_pace_whatever_the_drawing_takes():
    """Timed from the end of each drawing, the drawing would be added to every interval."""
    now, kept, seen = 10.0, pace.RedrawClock(), []
    spent = 0.0
    for took in (0.002, 0.011, 0.0, 0.009, 0.002, 0.011):
        seen.append(now)
        spent += took
        kept.spent(spent)
        now += took
        now += kept.wait_s(now)
    assert np.diff(seen[1:]) == pytest.approx(pace.FASTEST_S)


def test_the_process_keeps_to_its_share_of_a_core_whatever_an_update_costs():
    for cost in (0.002, 0.0125, 0.016, 0.020):
        kept = pace.RedrawClock()
        for beat in range(101):
            kept.spent(beat * cost)
        assert cost / kept.interval_s == pytest.approx(min(pace.SHARE, cost / pace.FASTEST_S))


def test_reopening_keeps_cursor_range_and_selection(playhead, finished):
    playhead.open(finished)
    playhead.axis.set_visible(2.0, 6.0)
    playhead.axis.select(3.0, 4.0)
    playhead.seek(500)
    playhead.reopen()
    assert playhead.cursor_frame == 500
    assert playhead.axis.visible == pytest.approx((2.0, 6.0))
    assert playhead.axis.selected == (3.0, 4.0)
