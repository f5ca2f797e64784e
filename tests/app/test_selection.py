"""One selection drives what the desk says: breakdown and RTF, and word errors, work and words as well."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from app.model.alignment import errors_in
from app.views.work import work_model
from app.window.main_window import MainWindow
from pipelines.audio.word_errors import ErrorCount
from profiler.session.reader import Session

UTTERANCE = 600


@pytest.fixture
def opened(window, finished):
    made = window()
    made.open_session(finished)
    return made


def wer(window: MainWindow) -> str:
    QApplication.processEvents()
    return window.top.wer.toolTip()


def test_word_errors_of_a_range_are_those_of_its_words(finished):
    """Five words of each utterance are right, a second apart; the sixth is missing."""
    session = Session.open(finished)

    def count(first: int, last: int) -> tuple[int, int]:
        found, _ = errors_in(session, first, last, 2 * UTTERANCE)
        return found.errors, found.words

    assert count(0, 2 * UTTERANCE) == (2, 12)
    assert count(0, UTTERANCE) == count(UTTERANCE, 2 * UTTERANCE) == (1, 6)
    assert count(0, 200) == (0, 2)
    assert count(300, 480) == (0, 2)  # the missing word lies after the last one
    parts = [count(first, first + 150) for first in range(0, 2 * UTTERANCE, 150)]
    assert (sum(e for e, _ in parts), sum(w for _, w in parts)) == (2, 12)
    assert count(5000, 6000) == (0, 0)
    session.close()


def test_the_large_figures_are_those_of_the_selection(opened):
    assert "2 errors in 12 words of finished utterances, whole run" in wer(opened)
    opened.axis.select(0.0, 6.0)
    assert "1 error in 6 words of finished utterances, 0:00.00 – 0:06.00" in wer(opened)
    opened.axis.select(0.0, 2.0)
    assert "0 errors in 2 words of finished utterances, 0:00.00 – 0:02.00" in wer(opened)
    assert opened.top.wer.value == "0.0 %"
    opened.axis.clear()
    assert "2 errors in 12 words of finished utterances, whole run" in wer(opened)


def test_work_and_words_are_those_of_the_selection(opened):
    views = opened.desk.views
    session, track = opened.playhead.session, opened.playhead.track
    whole = work_model(session, track, 1200, (0.0, 12.0), 100, counted=(0, 1200))
    part = work_model(session, track, 1200, (0.0, 12.0), 100, counted=(0, 15))
    assert [c.name for c in whole.curves] == [c.name for c in part.curves]
    assert all((a.mean == b.mean).all() for a, b in zip(whole.curves, part.curves, strict=True))
    values = np.asarray(track.work_rows["search tokens"][:])
    tokens = {c.name: c.average for c in part.curves}["search tokens"]
    assert tokens == pytest.approx(float(values[:15].mean()))
    opened.axis.select(0.0, 2.0)
    QApplication.processEvents()
    work = views["work"].reduce(opened.playhead.snapshot(), 100, opened.axis.visible)
    assert work.curves[0].average == pytest.approx(float(values[:200].mean()))
    assert "(voice-" in views["words"].summary(), "of which utterance"


def test_no_word_yet_is_not_said_to_be_so_far(opened):
    view = opened.desk.views["words"]
    (spoken, *_) = view.model().spoken
    begun = replace(spoken, partial=True)
    assert view._errors(replace(begun, count=ErrorCount(0, 0))) == "no word to compare yet"
    assert view._errors(replace(begun, count=ErrorCount(1, 4))) == "1 error in 4 words so far"


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
    keys = opened
    qtbot.keyClick(keys, Qt.Key.Key_U)
    assert keys.axis.selected == (6.0, 12.0)
    keys.playhead.seek(300)
    qtbot.keyClick(keys, Qt.Key.Key_U)
    assert keys.axis.selected == (0.0, 6.0)
    qtbot.keyClick(keys, Qt.Key.Key_I)
    assert keys.axis.selected == (3.0, 6.0)
    keys.playhead.seek(500)
    qtbot.keyClick(keys, Qt.Key.Key_O)
    assert keys.axis.selected == (3.0, 5.0)
    keys.playhead.seek(800)
    qtbot.keyClick(keys, Qt.Key.Key_I)
    assert keys.axis.selected == (8.0, 12.0)
    qtbot.keyClick(keys, Qt.Key.Key_Escape)
    assert keys.axis.selected is None
    qtbot.keyClick(keys, Qt.Key.Key_O)
    assert keys.axis.selected == (0.0, 8.0)
