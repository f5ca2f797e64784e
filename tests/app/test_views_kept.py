"""What is drawn once stays drawn: counts of layouts and paintings while a chart scrolls, not times."""

from __future__ import annotations

import itertools
import weakref
from pathlib import Path

import numpy as np
from frame_rows import rows_of
from PySide6.QtWidgets import QApplication
from sample_session import write_sample

from app.model.alignment import Token
from app.model.playhead import Playhead
from app.model.time_axis import TimeAxis
from app.views.breakdown import BreakdownView
from app.views.word_places import GAP, WordPlaces
from app.views.words_model import Spoken
from pipelines.audio.word_errors import SAME, SUBSTITUTED
from profiler.analysis.lod.columns import RunningSums, column_edges

PIXELS_PER_S = 50.0


def test_a_drawing_that_is_due_is_not_brought_forward_by_the_spoken_summary(
    tmp_path: Path, qapp: QApplication
) -> None:
    playhead = Playhead(TimeAxis())
    view = BreakdownView(playhead.axis)
    playhead.changed.connect(view.update_snapshot)
    playhead.open(write_sample(tmp_path / "a.asrs", frames=512, utterance_frames=256))
    view.pace.ask(True)
    assert view.pace._timer.isActive()
    assert "ms" in view.summary()
    assert view.pace._timer.isActive()
    playhead.close()
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


def test_charts_with_columns_of_different_widths_do_not_take_them_from_each_other() -> None:
    sums = RunningSums(1)
    series = np.arange(4000.0)
    sums.follow(rows_of(series))
    computed = []
    means = sums._means

    def counted(edges: np.ndarray, stop: int, series: int | None) -> np.ndarray:
        computed.append(len(edges) - 1)
        return means(edges, stop, series)

    sums._means = counted  # type: ignore[method-assign]
    for start in range(0, 40, 2):
        sums.means(column_edges(start, start + 2000.0, 1000))
        sums.means(column_edges(start, start + 2000.0, 250))
    assert sum(computed) < 1000 + 250 + 20 * 6
