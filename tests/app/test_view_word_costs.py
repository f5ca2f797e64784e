"""Cost per word: time and counts of each word's frames, right or wrong, and a click that goes there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from views_desk import settle, view_on

from app.model.figures import own_ns
from app.model.playhead import Playhead
from app.views.word_costs import WordCostsView
from app.views.word_costs_model import word_costs
from pipelines.audio import word_errors


@pytest.fixture
def view(sample: Path, qapp: QApplication, qtbot: QtBot) -> Iterator[tuple[WordCostsView, Playhead]]:
    with view_on(WordCostsView, sample, qtbot) as made:
        yield made


def test_words_have_the_cost_of_their_frames_and_their_errors(view: tuple[WordCostsView, Playhead]) -> None:
    _, playhead = view
    session, track = playhead.session, playhead.track
    assert session is not None
    assert track is not None
    words, left = word_costs(session, track, playhead.n_frames)
    assert not left
    wall, tokens = own_ns(track, 0, track.n_frames), track.work["search tokens"]
    spoken = [(word, first, n) for one in session.utterances for word, first, n in one.words]
    assert [(word.word, word.first_frame, word.frames) for word in words] == spoken
    for word in words:
        frames = slice(word.first_frame, word.first_frame + word.frames)
        assert word.ms == pytest.approx(wall[frames].sum() * 1e-6)
        assert word.tokens == pytest.approx(tokens[frames].mean())
    substituted = 0
    for one in session.utterances:
        steps = word_errors.align((one.reference or "").split(), [word for word, _, _ in one.words])
        substituted += sum(step.kind == word_errors.SUBSTITUTED for step in steps)
    assert sum(word.kind == word_errors.SUBSTITUTED for word in words) == substituted
    # A selection has the words whose middle lies in it.
    first, last = words[1].first_frame, words[3].first_frame + words[3].frames
    within, _ = word_costs(session, track, playhead.n_frames, (first, last))
    assert within == words[1:4]
    # A word counts once the cursor has passed its end.
    until, _ = word_costs(session, track, words[3].first_frame + words[3].frames - 1)
    assert until == words[:3]


def test_the_longest_word_is_first_and_a_click_goes_to_it(view: tuple[WordCostsView, Playhead], qtbot: QtBot) -> None:
    words, playhead = view
    headers, rows = words.table()
    took = [float(str(row[headers.index("ms")])) for row in rows]
    assert took == sorted(took, reverse=True)
    at = words.rows.visualRect(words.rows.model().index(0, 1)).center()
    qtbot.mouseClick(words.rows.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(at))
    settle()
    marked = playhead.axis.pointed_frames
    assert marked is not None
    assert marked[0] == rows[0][-1]
    assert playhead.axis.selected is None, "the scope stays"
    # The other words are still there.
    assert words.table()[1] == rows
    playhead.axis.select(0.0, 1.0)
    settle()
    fewer = words.table()[1]
    assert 0 < len(fewer) < len(rows)
    assert f"“{fewer[0][0]}” takes longest" in words.summary()
