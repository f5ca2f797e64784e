"""Charts over time: the trace in a replay, the scale, the crosshair, words at their time."""

from itertools import combinations

import numpy as np
import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication
from sample_session import SAID
from text_geometry import texts
from views_desk import FRAMES, amount, look, mouse, pixels, place, seek, settle

from app.charts.overlay import DIMMED
from app.charts.scale import Holding, Scale, held
from app.style.theme import THEMES, blended
from app.views.cost_model import REALTIME_MS, _wanted
from app.views.word_places import ASIDE, GAP
from pipelines.audio.word_errors import SAME


@pytest.fixture
def desk(same_desk):
    return same_desk


def test_a_replay_keeps_the_whole_trace_and_dims_what_comes(desk):
    whole = desk.cost.model()
    seek(desk.playhead, FRAMES // 2)
    model = desk.cost.model()
    assert np.array_equal(model.mean_ms, whole.mean_ms), "the cursor moves, the trace does not"
    box = desk.cost.plot.box.geometry()
    picture = pixels(desk.cost.plot)
    middle = round(box.left() + box.width() / 2)
    tokens = THEMES["dark"]
    shown, dimmed = picture[:, : middle - 2], picture[:, middle + 2 :]
    for category in ("compute", "memory", "search"):
        assert amount(shown, tokens.category[category]) > 50
        assert amount(dimmed, tokens.category[category]) == 0
        dim = blended(tokens.category[category], tokens.card, DIMMED / 255)
        assert amount(dimmed, dim) > 50
    desk.axis.set_visible(0.0, 5.0)
    seek(desk.playhead, 250)
    assert desk.words.spoken.placed, "words that come are there"


def test_one_crosshair_goes_through_all_charts(desk):
    others = (desk.work, desk.words)
    before = [pixels(view.plot) for view in others]
    mouse(desk.cost.plot, QEvent.Type.MouseMove, place(desk.cost.plot, 3.0))
    settle()
    assert desk.axis.hover == pytest.approx(3.0, abs=0.05)
    for view, was in zip(others, before, strict=True):
        changed = np.flatnonzero((pixels(view.plot) != was).any(axis=(0, 2)))
        box = view.plot.box.geometry()
        x = box.left() + 3.0 / (FRAMES * 0.01) * box.width()
        assert len(changed)
        assert np.abs(changed - x).max() <= 3, "a line at that second, nothing else"
        assert view.plot.hover_s is None, "the read-out is where the mouse is"
    QApplication.sendEvent(desk.cost.plot, QEvent(QEvent.Type.Leave))
    settle()
    assert desk.axis.hover is None
    assert (pixels(desk.work.plot) == before[0]).all()


def test_the_scale_holds_locks_and_becomes_logarithmic(desk):
    def scale() -> Scale:
        return desk.cost.model().scale

    whole = scale()
    look(desk.axis, 15.0, 16.0)
    narrow = scale()
    assert narrow.top < whole.top, "skipping leaves less than half of it"
    desk.cost.set_locked(True)
    desk.axis.fit()
    settle()
    assert scale() == narrow
    desk.cost.set_locked(False)
    settle()
    assert scale() == whole
    desk.cost.set_logarithmic(True)
    settle()
    assert scale().log
    assert 0 < scale().bottom < scale().top == whole.top
    assert "logarithmic" in desk.cost.note
    heights = scale().stacked(np.array([[1.0, 2.0, 0.0]]))
    assert heights.sum() == pytest.approx(scale().place(np.array([3.0]))[0])
    desk.cost.set_logarithmic(False)


@pytest.mark.parametrize("last", [1.6, 5.0, 12.0])
def test_words_stand_at_their_time_and_never_on_each_other(desk, last):
    look(desk.axis, 0.0, last)
    spoken = desk.words.spoken
    assert len(spoken.placed) >= (6 if last < 10 else 3)
    for one in spoken.placed:
        assert abs(one.left - spoken.x_of(one.token.first_s)) <= ASIDE
    for one, other in combinations(spoken.placed, 2):
        apart = one.left >= other.left + other.width + GAP or other.left >= one.left + one.width
        assert one.row != other.row or apart
    if last < 2:
        assert "4 errors in 14 words" in desk.words.note
        wrong = [one for one in spoken.placed if one.token.kind != SAME]
        assert len(wrong) >= 3, "wrong words find their place first"


def test_the_sentence_at_the_cursor_stands_in_its_own_strip(desk):
    seek(desk.playhead, 300)
    assert desk.words.sentence.geometry().top() > desk.words.plot.geometry().bottom(), "below the axis of time"
    written = {text.text for text in texts(desk.words) if text.where == "Sentence"}
    assert {"reference", "hypothesis"} < written
    assert set(SAID.split()[:3]) <= written


def test_the_sentence_is_that_of_a_selection_away_from_the_cursor(desk):
    def current() -> int | None:
        settle()
        return desk.words.model().current

    assert current() > 1
    desk.axis.select(2.56, 5.12)
    assert current() == 1
    desk.playhead.seek(300)
    assert current() == 1
    desk.axis.select(2.0, 6.0)
    desk.playhead.seek(220)
    assert current() == 0, "while the playhead is in it, the one that it is at"
    desk.playhead.seek(900)
    assert current() == 1, "that of which most is selected"


def test_noise_about_a_round_value_moves_no_scale():
    """A chart once jumped between 0–3 and 0–12 whenever its highest column passed 4 ms."""
    scale, tops = None, set()
    for highest in (3.6, 4.2, 3.7, 4.4, 2.9, 4.3):
        totals = np.linspace(1.0, highest, 200)
        scale = held(_wanted(totals, totals * 1.2, False), Holding(before=scale))
        tops.add(scale.top)
    assert max(tops) < REALTIME_MS
    assert len(tops) <= 2, "it opens, and stays open"
    quiet = np.full(200, 0.4)
    assert held(_wanted(quiet, quiet, False), Holding(before=scale)).top < 1.0
    near = held(_wanted(np.full(200, 8.0), np.full(200, 9.0), False), Holding(before=scale))
    assert near.top >= REALTIME_MS
    # A logarithmic one opens at both ends.
    before = Scale(0.1, 10.0, log=True)
    assert held(Scale(0.1, 8.0, log=True), Holding(before, log=True)) == before
    wider = Scale(0.01, 10.0, log=True)
    assert held(wider, Holding(before, log=True)) == wider
    linear = Scale(0.0, 5.0)
    assert held(linear, Holding(before)) == linear, "another kind of scale is not held back"
    assert held(linear, Holding(Scale(0.0, 9.0), locked=True)).top == 9.0
    assert before.ticks() == [0.1, 1.0, 10.0]
    assert Scale(1.0, 12.0, log=True).ticks() == [1.0, 2.0, 5.0, 10.0]
