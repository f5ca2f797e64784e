"""One selection drives what the desk says: breakdown and RTF, and word errors, work and words as well."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.model.alignment import errors_within
from app.window.main_window import MainWindow
from profiler.session.reader import Session

UTTERANCE = 600


@pytest.fixture
def opened(window: Callable[..., MainWindow], finished: Path) -> MainWindow:
    made = window()
    made.open_session(finished)
    return made


def wer(window: MainWindow) -> str:
    window._show_figures()
    return window.top.wer.toolTip()


def test_word_errors_of_a_range_are_those_of_its_words(finished: Path) -> None:
    """Five words of each utterance are right, a second apart; the sixth is missing."""
    session = Session.open(finished)

    def count(first: int, last: int) -> tuple[int, int]:
        found = errors_within(session.utterances, first, last)
        return found.errors, found.words

    assert count(0, 2 * UTTERANCE) == (2, 12)
    assert count(0, UTTERANCE) == count(UTTERANCE, 2 * UTTERANCE) == (1, 6)
    assert count(0, 200) == (0, 2)
    assert count(300, 480) == (0, 2)  # the missing word lies after the last one
    parts = [count(first, first + 150) for first in range(0, 2 * UTTERANCE, 150)]
    assert (sum(e for e, _ in parts), sum(w for _, w in parts)) == (2, 12)
    assert count(5000, 6000) == (0, 0)
    session.close()


def test_the_large_figures_are_those_of_the_selection(opened: MainWindow) -> None:
    assert "2 errors in 12 words of the utterances" in wer(opened)
    opened.axis.select(0.0, 6.0)
    assert "1 error in 6 words of the selection" in wer(opened)
    opened.axis.select(0.0, 2.0)
    assert "0 errors in 2 words of the selection" in wer(opened)
    assert opened.top.wer.value == "0.0 %"
    opened.axis.clear()
    assert "2 errors in 12 words of the utterances" in wer(opened)


def test_time_is_selected_by_keys(qtbot: QtBot, opened: MainWindow) -> None:
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
