"""What is drawn once stays drawn: counts of layouts and paintings while a chart scrolls, not times."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication
from sample_session import write_sample

from app.model.alignment import Token
from app.model.playhead import Playhead
from app.model.time_axis import TimeAxis
from app.views.breakdown import BreakdownView
from app.views.stage_tree import _Delegate
from app.views.word_places import GAP, WordPlaces
from app.views.words import WordsView
from app.views.words_model import Spoken
from pipelines.audio.word_errors import SAME, SUBSTITUTED
from tests.app.paintings import Paintings

PIXELS_PER_S = 50.0


@pytest.fixture
def words(tmp_path: Path, qapp: QApplication) -> Iterator[tuple[WordsView, Playhead]]:
    axis = TimeAxis()
    playhead = Playhead(axis)
    view = WordsView(axis)
    playhead.changed.connect(view.update_snapshot)
    view.resize(800, 260)
    view.show()
    playhead.open(write_sample(tmp_path / "a.asrs", frames=2048, utterance_frames=256))
    axis.set_visible(2.0, 8.0)
    settle()
    yield view, playhead
    playhead.close()
    view.close()
    view.deleteLater()


def settle() -> None:
    for _ in range(3):
        QApplication.processEvents()


def test_the_sentence_is_painted_when_it_looks_different(
    words: tuple[WordsView, Playhead],
) -> None:
    view, playhead = words
    playhead.seek(300)
    settle()
    paintings = Paintings(view.sentence)
    changes, before = 0, view.sentence._looks
    for frame in range(301, 331):
        playhead.seek(frame)
        settle()
        changes += view.sentence._looks != before
        before = view.sentence._looks
    assert paintings.count == changes < 10


def test_the_tree_paints_cells_with_other_figures_alone(
    tmp_path: Path, qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    playhead = Playhead(TimeAxis())
    view = BreakdownView(playhead.axis)
    playhead.changed.connect(view.update_snapshot)
    playhead.closed.connect(view.clear)
    view.resize(420, 700)
    view.show()
    playhead.open(write_sample(tmp_path / "a.asrs", frames=512, utterance_frames=256))
    playhead.seek(500)
    view.settle()
    settle()
    names: list[str] = []
    paint = _Delegate._paint_name
    monkeypatch.setattr(_Delegate, "_paint_name", lambda *of: names.append(of[3].name) or paint(*of))
    paintings = Paintings(view.tree.viewport())
    playhead.seek(504)
    view.settle()
    settle()
    assert paintings.count
    assert not names
    view.tree.viewport().update()
    settle()
    assert "compute" in names
    playhead.close()
    view.close()
    view.deleteLater()


def utterance(first_s: float, *words: str, wrong: int = -1) -> Spoken:
    tokens = tuple(
        Token(word, SUBSTITUTED if i == wrong else SAME, first_s + 0.4 * i, first_s + 0.4 * i + 0.3)
        for i, word in enumerate(words)
    )
    nothing = np.empty((0, 2))
    return Spoken("a", 1, first_s, first_s + 3.0, False, None, tokens, None, None, nothing, nothing)


def test_places_do_not_depend_on_where_the_range_begins() -> None:
    """The texts of one utterance reach into the next; they keep off each other and stay where they are."""
    long = ("quick", "brownish", "fox", "jumping", "over", "lazier", "dogs", "today")
    spoken = [utterance(0.0, *long, wrong=2), utterance(3.0, *long), utterance(6.0, *long, wrong=7)]
    places = WordPlaces(lambda text: 7.3 * len(text))
    whole = places.place(spoken, PIXELS_PER_S, 0, 600, 2)
    assert "fox" in {one.text for one in whole if one.token.kind == SUBSTITUTED}
    for row in range(2):
        here = sorted((one for one in whole if one.row == row), key=lambda one: one.left)
        for one, after in itertools.pairwise(here):
            assert one.left + one.width + GAP <= after.left
    for first in (1, 40, 90):
        moved = places.place(spoken, PIXELS_PER_S, first, 400, 2)
        at = {(one.token, one.row): one.left for one in whole}
        inside = [one for one in moved if one.left > 12 and one.left + one.width < 388]
        assert inside
        assert all(one.left + first == at[one.token, one.row] for one in inside)
        assert all(one.left >= 0 and one.left + one.width <= 400 for one in moved)


def test_words_of_a_closed_session_are_not_kept(qapp: QApplication) -> None:

    places = WordPlaces(lambda text: 7.3 * len(text))
    spoken = utterance(0.0, "quick", "fox")
    places.place([spoken], PIXELS_PER_S, 0, 600, 2)
    gone = weakref.ref(spoken)
    places.forget()
    del spoken
    assert gone() is None
