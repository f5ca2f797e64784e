"""Words that are aligned already are taken over: the same models as if all were aligned afresh."""

import itertools
from dataclasses import replace

import numpy as np

from app.model.alignment import Token
from app.views.word_places import GAP, Sentence, WordPlaces, tokens_of
from app.views.words_model import Spoken, WordsModel, words_model
from pipelines.audio.word_errors import SAME, SUBSTITUTED
from profiler.analysis.track import CostTrack
from profiler.session.model import Utterance, Utterances
from tests.app.text_geometry import texts
from tests.app.views_desk import SpokenSession, look, settle

FRAMES = 100


def utterance(number: int, hypothesis: str, done: bool = True) -> Utterance:
    words = tuple((word, (number - 1) * FRAMES + 10 * i, 10) for i, word in enumerate(hypothesis.split()))
    said = "one two three four", hypothesis, words
    about = number, f"u{number}", "", (number - 1) * FRAMES, FRAMES, 1.0, *said, 1, (0,), None, None
    return Utterance(*about, done, np.zeros((FRAMES, 2), np.int8))


def model(session: SpokenSession, end: int, visible: tuple[float, float]) -> WordsModel:
    return words_model(session, CostTrack(), end, visible, 100)


def test_an_utterance_that_changes_is_aligned_again():
    session = SpokenSession(utterance(1, "one two"), utterance(2, "one"))
    for _ in range(2):
        assert [len(one.heard) for one in model(session, 200, (0.0, 2.0)).spoken] == [2, 1]
    session.utterances = Utterances([utterance(1, "one two three"), session.utterances[1]])
    assert [len(one.heard) for one in model(session, 200, (0.0, 2.0)).spoken] == [3, 1]

    session = SpokenSession(utterance(1, "one two three four", done=False))

    def spoken_at(end: int) -> Spoken:
        (spoken,) = model(session, end, (0.0, 1.0)).spoken
        return spoken

    # Of one under way, the words are those begun before the playhead.
    assert [len(spoken_at(end).heard) for end in (15, 20, 21, 15)] == [2, 2, 3, 2]
    session.utterances = Utterances([replace(session.utterances[0], hypothesis="", words=())])
    assert spoken_at(15).heard == ()
    session.utterances = Utterances([utterance(1, "one two", done=True)])
    assert spoken_at(99).partial
    assert not spoken_at(100).partial


def test_the_note_of_the_words_comes_with_them(desk, monkeypatch):
    """While the cursor moves, texts are renewed less often than charts, but never contradict them."""
    session = SpokenSession(utterance(1, "one uh three", done=False))
    view, snapshot = desk.words, replace(desk.playhead.snapshot(), moving=True)
    for end, note in ((5, "no error in 1 word so far"), (15, "1 error in 2 words so far")):
        spoken = model(session, end, (0.0, 1.0))
        monkeypatch.setattr(view, "reduce", lambda *_, spoken=spoken: spoken)
        view.draw(snapshot)
        assert view.note.endswith(note)


def test_an_utterance_without_a_reference_has_no_row_named_after_one(qtbot):
    """The two in the middle have no hypothesis yet: but for the names of their rows they look the same."""
    strip = Sentence()
    qtbot.addWidget(strip)
    strip.resize(600, strip.sizeHint().height())
    strip.show()
    for reference, heard in (("one two", "one"), (None, ""), ("one", ""), (None, "one")):
        session = SpokenSession(replace(utterance(1, heard, done=False), reference=reference))
        (spoken,) = model(session, FRAMES, (0.0, 1.0)).spoken
        strip.show_spoken(spoken, 1.0)
        rows = {text.text for text in texts(strip)} & {"reference", "hypothesis"}
        assert rows == ({"hypothesis"} if reference is None else {"reference", "hypothesis"})


def test_the_note_counts_the_words_that_have_no_room(desk):
    view = desk.words
    look(desk.axis, 0.0, 2.0)
    # Wholly in view, with the places of deleted words as they are drawn.
    tokens = [token for one in view.model().spoken for token in tokens_of(one)]
    for width in (900, 330):
        desk.window.resize(width, 1300)
        settle()
        view.settle()
        first, last = view.plot.visible
        inside = [token for token in tokens if token.first_s >= first and token.last_s <= last]
        drawn = sum(placed.token in inside for placed in view.spoken.placed)
        assert (drawn == len(inside) > 8) is (width > 500)
        assert view.note.endswith(f"{drawn} of {len(inside)} words shown") is (width < 500)
    desk.axis.fit()
    settle()
    view.settle()
    assert not view.spoken.placed, "too far out for any"
    assert f" · 0 of {sum(len(tokens_of(one)) for one in view.model().spoken)} words shown" in view.note


def spoken_from(first_s: float, *words: str, wrong: int = -1) -> Spoken:
    tokens = tuple(
        Token(word, SUBSTITUTED if i == wrong else SAME, first_s + 0.4 * i, first_s + 0.4 * i + 0.3)
        for i, word in enumerate(words)
    )
    nothing = np.empty((0, 2))
    return Spoken("a", 1, first_s, first_s + 3.0, False, None, tokens, None, None, nothing, nothing)


def test_places_do_not_depend_on_where_the_range_begins():
    """The texts of one utterance reach into the next; they keep off each other and stay where they are."""
    long = ("quick", "brownish", "fox", "jumping", "over", "lazier", "dogs", "today")
    spoken = [spoken_from(0.0, *long, wrong=2), spoken_from(3.0, *long), spoken_from(6.0, *long, wrong=7)]
    places = WordPlaces(lambda text: 7.3 * len(text))
    whole = places.place(spoken, 50.0, 0, 600, 2)
    assert "fox" in {one.text for one in whole if one.token.kind == SUBSTITUTED}
    for row in range(2):
        here = sorted((one for one in whole if one.row == row), key=lambda one: one.left)
        for one, after in itertools.pairwise(here):
            assert one.left + one.width + GAP <= after.left
    for first in (1, 40, 90):
        moved = places.place(spoken, 50.0, first, 400, 2)
        at = {(one.token, one.row): one.left for one in whole}
        inside = [one for one in moved if one.left > 12 and one.left + one.width < 388]
        assert inside
        assert all(one.left + first == at[one.token, one.row] for one in inside)
        assert all(one.left >= 0 and one.left + one.width <= 400 for one in moved)
