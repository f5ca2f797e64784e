"""One selection drives what the desk says: breakdown and RTF, and word errors, work and words as well."""

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from app.model.alignment import errors_in
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
        opened.axis.select(*ends) if ends else opened.axis.clear()
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
