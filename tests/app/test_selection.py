"""One selection drives what the desk says; how it is dragged, how keys move it, and how jumps to what is wrong do."""

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QSignalSpy
from PySide6.QtWidgets import QApplication
from views_desk import drag, look, settle, view_on
from window_recording import BLOCK, Recording

from app.charts.time_plot import SNAP
from app.model.alignment import errors_in
from app.model.scope import marks, snap_points
from app.model.time_axis import TimeAxis
from app.views.timeline import TimelineView
from pipelines.audio import word_errors
from profiler.session.reader import Session

UTTERANCE = 600


def test_word_errors_of_a_range_are_those_of_its_words(finished):
    """Five words of each utterance are right, a second apart; the sixth, after the last one, is missing."""
    with Session.open(finished) as session:

        def count(first: int, last: int) -> tuple[int, int]:
            found, _ = errors_in(session, first, last, 2 * UTTERANCE)
            return found.errors, found.words

        assert count(0, UTTERANCE) == count(UTTERANCE, 2 * UTTERANCE) == (1, 6)
        assert count(0, 200) == count(300, 480) == (0, 2)
        assert count(5000, 6000) == (0, 0)
        parts = [count(first, first + 150) for first in range(0, 2 * UTTERANCE, 150)]
        assert np.sum(parts, axis=0).tolist() == [2, 12]


def test_the_large_figures_are_those_of_the_selection(opened):
    for ends, text in (
        ((0.0, 6.0), "1 error in 6 words of finished utterances, 0:00.00 – 0:06.00"),
        ((0.0, 2.0), "0 errors in 2 words of finished utterances, 0:00.00 – 0:02.00"),
        (None, "2 errors in 12 words of finished utterances, whole run"),
    ):
        opened.axis.clear()
        if ends:
            opened.axis.select(*ends)
        QApplication.processEvents()
        assert text in opened.top.wer.toolTip()


def test_work_and_words_are_those_of_the_selection(opened):
    views = opened.desk.views
    values = np.asarray(opened.playhead.track.work_rows["search tokens"][:])
    opened.axis.select(0.0, 2.0)
    QApplication.processEvents()
    work = views["work"].reduce(opened.playhead.snapshot(), 100, opened.axis.visible)
    assert work.curves[0].average == pytest.approx(float(values[:200].mean()))
    assert "(voice-" in views["words"].summary(), "of which utterance"


def test_figures_of_charts_are_those_of_the_scope(opened):
    """In the sentences, the headings and the top bar alike, and no chart has a range of its own for them."""
    opened.desk.docks.float_or_dock("work")  # it lay behind the cost
    opened.desk.docks.go_to("cost")
    cost, work = opened.desk.views["cost"], opened.desk.views["work"]

    def texts() -> list[str]:
        QApplication.processEvents()
        return [view.summary() for view in (cost, work)]

    assert all(text.startswith("From 0:00.00 to 0:12.00,") for text in texts())
    lanes = len(work.model().panels)
    opened.axis.set_visible(2.0, 8.0)
    assert all(text.startswith("From 0:00.00 to 0:12.00,") for text in texts()), "a zoom is no other scope"
    opened.axis.fit()
    opened.axis.select(0.5, 2.0)
    assert all(text.startswith("From 0:00.50 to 0:02.00,") for text in texts())
    track, desk = opened.playhead.track, cost.snapshot.desk
    assert desk.wall_ms == pytest.approx(float(track.wall_row[:][50:200].mean()) * 1e-6)
    opened.playhead.seek(100)
    assert "0:00.50 to 0:01.00" in texts()[0], "nothing is counted after the cursor"
    opened.axis.clear()
    opened.playhead.seek(0)
    assert texts()[0] == "No frames in range yet."
    assert len(work.model().panels) == lanes, "no lane goes because nothing is counted"


@pytest.mark.slow
def test_time_is_selected_by_keys(qtbot, opened):
    for cursor, key, selected in (
        (None, Qt.Key.Key_U, (6.0, 12.0)),
        (300, Qt.Key.Key_U, (0.0, 6.0)),
        (300, Qt.Key.Key_I, (3.0, 6.0)),
        (500, Qt.Key.Key_O, (3.0, 5.0)),
        (800, Qt.Key.Key_I, (8.0, 12.0)),
        (800, Qt.Key.Key_Escape, None),
        (800, Qt.Key.Key_O, (0.0, 8.0)),
    ):
        if cursor is not None:
            opened.playhead.seek(cursor)
        qtbot.keyClick(opened, key)
        assert opened.axis.selected == selected


UTTERANCE_S = 2.56  # Second at which the second utterance of the sample begins
WORD_S = 3.26  # Second at which its fourth word ends; the next begins at 3.28


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
        drag(plot, UTTERANCE_S + near, WORD_S - near)
        assert desk.axis.selected == pytest.approx((UTTERANCE_S, WORD_S), abs=1e-9)
        drag(plot, UTTERANCE_S + near, WORD_S - near, keys=Qt.KeyboardModifier.AltModifier)
        assert desk.axis.selected == pytest.approx((UTTERANCE_S + near, WORD_S - near), abs=near / 2)
        assert desk.axis.selected != pytest.approx((UTTERANCE_S, WORD_S), abs=near / 4)
    far = SNAP * 1.5 * 3.0 / desk.cost.plot.columns
    drag(desk.cost.plot, UTTERANCE_S + far, WORD_S)
    assert desk.axis.selected == pytest.approx((UTTERANCE_S + far, WORD_S), abs=near / 2)


def test_a_stretch_about_one_boundary_can_be_selected(desk):
    look(desk.axis, 2.4, 2.7)
    near = SNAP * 0.8 * 0.3 / desk.cost.plot.columns
    drag(desk.cost.plot, UTTERANCE_S - near, UTTERANCE_S + near)
    assert desk.axis.selected is None, "shorter than half a frame"
    look(desk.axis, 0.0, 20.48)
    near = SNAP * 0.8 * 20.48 / desk.cost.plot.columns
    drag(desk.cost.plot, UTTERANCE_S - near, UTTERANCE_S + near)
    first, last = desk.axis.selected
    assert first < UTTERANCE_S < last


def test_the_timeline_snaps_in_its_own_time(sample, qtbot):
    with view_on(TimelineView, sample, qtbot) as (view, playhead):
        view.run_time.setChecked(True)
        look(playhead.axis, 1.0, 4.0)
        first, last = view.plot.visible
        near = SNAP / 2 * (last - first) / view.plot.columns
        drag(view.plot, view.wall.seconds_at(UTTERANCE_S) + near, view.wall.seconds_at(3.5))
        assert playhead.axis.selected[0] == pytest.approx(UTTERANCE_S, abs=1e-6)


def test_of_changes_of_a_setting_at_one_frame_the_last_is_shown(recording):
    made = recording()
    made.write(600)
    for text, frame in (("on", 0), ("off", 0), ("on again", 0), ("off later", 300)):
        made.marker(text, frame, "gmm.selection.enabled", text)
    made.marker("noise", 0)
    made.close()
    with Session.open(made.path) as session:
        assert [mark.text for mark in marks(session, 600, 600)] == ["on again", "noise", "off later"]


SHIFT = Qt.KeyboardModifier.ShiftModifier


class Paced(Recording):
    """Blocks of which every frame takes `ms`."""

    ms = 1

    def _block(self, first: int) -> None:
        start = first * 100_000_000
        self.lane.put(self._decode, start, start + self.ms * 1_000_000 * BLOCK, first, BLOCK)


def test_keys_go_through_the_stretches_slower_than_real_time(qtbot, window, tmp_path):
    made = Paced(tmp_path / "paced.asrs")
    for frames, ms in ((100, 1), (20, 12), (30, 15), (50, 10), (10, 40), (2690, 9)):
        made.ms = ms
        made.write(frames)
    made.close()
    w = window()
    w.open_session(made.path)
    axis, cursor = w.axis, lambda: w.playhead.cursor_frame
    first = (100, 150), "real-time violation 1 of 2: 50 frames at RTF 1.38 · 0:01.00"
    second = (200, 210), "real-time violation 2 of 2: 10 frames at RTF 4.00 · 0:02.00"
    # A finished session is opened at its end: from there on, the first one.
    for stretch, text in (first, second, first):
        axis.fit()
        qtbot.keyClick(w, Qt.Key.Key_V)
        assert (axis.selected_frames, cursor(), w.status.message.full) == (stretch, stretch[1], text)
        # Of 29 s, half a second can be seen; a tenth is zoomed in to.
        assert axis.visible == pytest.approx((0.0, 29.0) if stretch == first[0] else (1.0, 3.1))
    for stretch, text in (second, first):
        qtbot.keyClick(w, Qt.Key.Key_V, SHIFT)
        assert (axis.selected_frames, w.status.message.full) == (stretch, text)
    for keys, stretch in ((Qt.KeyboardModifier.NoModifier, second), (SHIFT, first)):
        w.playhead.seek(180)
        qtbot.keyClick(w, Qt.Key.Key_V, keys)
        assert axis.selected_frames == stretch[0], "from where the cursor was put"


def test_without_a_violation_the_status_line_says_so(qtbot, window, finished):
    w = window()
    assert not w.actions_.trigger("jump.violation"), "no session is shown"
    w.open_session(finished)
    qtbot.keyClick(w, Qt.Key.Key_V)
    assert w.axis.selected is None
    assert w.status.message.full == "No real-time violation: every block so far took less time than its audio."
    assert (w.status.message.isVisible(), w.status.machine.isVisible()) == (True, False)
    w.status._over.timeout.emit()
    assert (w.status.message.isVisible(), w.status.machine.isVisible()) == (False, w.status.hint.isHidden())
    w.close_session()
    assert not w.status.message.full


@pytest.mark.slow
def test_keys_go_through_the_word_errors(qtbot, window, sample):
    opened = window()
    opened.open_session(sample)
    session, axis = opened.playhead.session, opened.axis
    # By the alignment itself: where each wrong recognised word is.
    expected, deleted = [], 0
    for one in session.utterances:
        for step in word_errors.align((one.reference or "").split(), [word for word, _, _ in one.words]):
            deleted += step.kind == word_errors.DELETED
            if step.kind != word_errors.SAME and step.hypothesis_index is not None:
                _, first, frames = one.words[step.hypothesis_index]
                expected.append((first, first + frames))
    assert deleted == len(session.utterances)
    axis.set_visible(0.0, 0.5)
    opened.jumps.to_word_error(-1)
    assert axis.visible[0] < axis.selected[0] < axis.selected[1] < axis.visible[1], "it comes into view"
    opened.playhead.seek(0)
    found, said = [], []
    for _ in range(len(expected) + deleted):
        qtbot.keyClick(opened, Qt.Key.Key_X)
        found.append(axis.selected_frames)
        said.append(opened.status.message.full)
    assert found == sorted(set(found)), "forwards, each once"
    assert set(expected) < set(found)
    assert said[0] == "word error: “guess” inserted · 0:00.56"
    assert said[1].startswith("word error: “would” in place of “dashwood” · 0:0")
    assert sum("“to” deleted" in text for text in said) == deleted
    assert sum("“uh” inserted" in text for text in said) == len(session.utterances)
    for place in found[-2::-1]:
        qtbot.keyClick(opened, Qt.Key.Key_X, SHIFT)
        assert axis.selected_frames == place
    qtbot.keyClick(opened, Qt.Key.Key_X, SHIFT)
    assert axis.selected_frames == found[-1], "before the first comes the last"


@pytest.mark.slow
def test_without_word_errors_or_references_that_is_said(opened, recording, tmp_path):
    says = QSignalSpy(opened.jumps.arrived)
    for reference, errors, sentence in (
        ("word0 word1", 0, "No word error: every word so far was recognised as in the reference."),
        (None, None, "No utterance so far has a reference, so its errors are not known."),
    ):
        made = recording(f"{errors}.asrs")
        made.frames = 10  # none of its own utterances begins
        number = made.writer.utterance("one", "one.wav", 10, 100, 1.0, reference, np.zeros((100, 2), np.int8))
        made.write(100)
        words = [("word0", 10, 50), ("word1", 60, 50)]
        made.writer.utterance_done(number, "word0 word1", words, 10**9, [0], errors, 2 if reference else None)
        made.close()
        opened.open_session(made.path)
        settle()
        opened.jumps.to_word_error(1)
        assert says.at(says.count() - 1) == [sentence]
