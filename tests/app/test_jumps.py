"""Jumps: to the next stretch slower than real time and to the next word error, and what is said of them."""

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QSignalSpy
from views_desk import settle
from window_recording import BLOCK, Recording

from pipelines.audio import word_errors

SHIFT = Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def opened(window, sample):
    made = window()
    made.open_session(sample)
    return made


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
def test_keys_go_through_the_word_errors(qtbot, opened):
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
