"""Live tail and replay cursor over real session files, and the form with the settings applied at the cursor."""

from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from shown_windows import start_run
from window_recording import UTTERANCE

from app.model import pace
from app.model import playhead as module
from app.model.pace import SmoothCursor
from app.model.playhead import Playhead
from app.model.time_axis import TimeAxis
from app.window.main_window import MainWindow
from pipelines import config as settings
from pipelines.config import presets


@pytest.fixture
def playhead(qtbot):
    made = Playhead(TimeAxis())
    yield made
    made.close()


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until the test starts it."""

    standing = SimpleNamespace(now=1000.0)
    standing.monotonic = standing.process_time = lambda: standing.now
    monkeypatch.setattr(module, "time", standing)
    return standing


def test_a_live_session_is_followed_until_the_view_is_paused(qtbot, playhead, recording):
    run = recording()
    run.write(100)
    playhead.open(run.path)
    qtbot.waitUntil(lambda: playhead.cursor_frame == 100)
    assert playhead.live
    assert playhead.following
    run.write(200)
    qtbot.waitUntil(lambda: playhead.cursor_frame == 300)
    assert playhead.axis.cursor == pytest.approx(3.0)
    playhead.toggle()
    run.write(200)
    qtbot.waitUntil(lambda: playhead.n_frames == 500)
    assert playhead.cursor_frame == 300
    playhead.go_live()
    assert playhead.cursor_frame == 500
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


def test_replay_moves_at_audio_time_times_speed_stops_at_the_end_and_starts_over(playhead, finished, clock):
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
    playhead.set_speed(1.0)
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


def test_redraws_keep_their_pace_and_the_process_to_its_share_of_a_core():
    now, kept, seen, spent = 10.0, pace.RedrawClock(), [], 0.0
    for took in (0.002, 0.011, 0.0, 0.009, 0.002, 0.011):
        seen.append(now)
        spent += took
        kept.spent(spent)
        now += took
        now += kept.wait_s(now)
    assert np.diff(seen[1:]) == pytest.approx(pace.FASTEST_S), "the drawing is not added to the interval"
    for cost in (0.002, 0.0125, 0.016, 0.020):
        kept = pace.RedrawClock()
        for beat in range(101):
            kept.spent(beat * cost)
        assert cost / kept.interval_s == pytest.approx(min(pace.SHARE, cost / pace.FASTEST_S))


SELECTION = "gmm.selection.enabled"
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def changed(recording):
    """Twelve seconds: Gaussian selection and another beam from 6 s on."""
    made = recording("changed.asrs")
    made.write(600)
    later = settings.assign(settings.Config(), {SELECTION: True, "search.beam": 9.0})
    made.epoch = made.lane.epoch = 1
    made.writer.config(1, 600, settings.to_dict(later))
    made.write(600)
    made.close()
    return made.path


@pytest.fixture
def opened(window, changed):
    made = window()
    made.open_session(changed)
    return made


def beam(window: MainWindow) -> float:
    return window.desk.form.fields["search.beam"].editor.value()


@pytest.mark.slow
def test_form_and_toggles_follow_the_cursor(opened):
    switch = opened.top.toggles[0].switch
    for frame, on, wide in ((1200, True, 9.0), (600, False, 13.0), (601, True, 9.0)):
        opened.playhead.seek(frame)
        assert beam(opened) == wide
        assert switch.isChecked() == on
        assert opened.actions_[f"toggle.{SELECTION}"].isChecked() == on
        assert opened.desk.form.fields[SELECTION].editor.isChecked() == on


@pytest.mark.slow
def test_nothing_of_a_recording_can_be_changed(qtbot, opened):
    before = opened.pipeline.next
    opened.playhead.seek(300)
    form = opened.desk.form
    assert not any(field.editor.isEnabled() for field in form.fields.values())
    assert not opened.top.toggles[0].switch.isEnabled()
    assert "Recorded" in opened.top.toggles[0].toolTip()
    assert not opened.actions_[f"toggle.{SELECTION}"].isEnabled()
    qtbot.keyClick(opened, Qt.Key.Key_G)
    qtbot.mouseClick(opened.top.toggles[0].switch, LEFT)
    assert not opened.pipeline.set("search.beam", 5.0)
    assert opened.pipeline.next == before
    assert beam(opened) == 13.0


@pytest.mark.slow
def test_the_next_run_is_changed_on_request_and_kept(qtbot, opened):
    opened.playhead.seek(300)
    which, speech = opened.desk.form.which, opened.desk.form.speech
    assert which.recorded.isChecked()
    assert (speech.text(), speech.isEnabled()) == ("voice.wav", False)
    qtbot.mouseClick(which.next, LEFT)
    assert which.next.isChecked()
    assert (speech.text(), speech.isEnabled()) == (f"{opened.runs.next.audio.files} voices", True)
    assert beam(opened) == 9.0, "a session opened is repeated as it ended"
    qtbot.keyClick(opened, Qt.Key.Key_K)
    assert opened.pipeline.next.frames.skip == 2
    qtbot.mouseClick(which.recorded, LEFT)
    assert beam(opened) == 13.0
    assert not opened.top.toggles[1].switch.isChecked()
    assert opened.pipeline.next.frames.skip == 2


@pytest.mark.slow
def test_the_preset_named_is_that_of_the_settings_shown(opened):
    opened.playhead.seek(300)
    form, button = opened.desk.form, opened.top.preset
    for act, of_form, of_button in (
        (lambda: None, "gmm", ""),
        (lambda: opened.runs.choose_preset("dnn"), "dnn", presets.load("dnn").title),
        (form.which.recorded.click, "gmm", "next: "),
        (opened.playhead.close, "dnn", presets.load("dnn").title),
    ):
        act()
        assert form._preset.full == of_form
        assert button.text().startswith(of_button)


@pytest.mark.slow
def test_without_a_recording_there_is_no_choice(qtbot, window, tmp_path):
    w = window()
    w.show_desk()
    form = w.desk.form
    assert form.which.said.full == "settings of the next run"
    assert not form.which.recorded.isVisible()
    start_run(qtbot, w, tmp_path)
    assert form.which.said.full == "settings of this run"
    w.playhead.seek(10)
    assert w.pipeline.recorded is None, "a run under way can be changed wherever one looks"
    w.runs.stop()
    qtbot.waitUntil(lambda: w.when.is_idle() and not w.playhead.live)
    w.playhead.seek(5)
    assert form.which.recorded.isVisible()
    assert form.which.recorded.isChecked()
