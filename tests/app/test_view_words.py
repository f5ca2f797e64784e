"""The words view: words aligned before are taken over, each has its place; and its page of confusion pairs."""

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from command_line import answer, here
from PySide6.QtCore import QPoint, Qt
from text_geometry import texts
from views_desk import SpokenSession, look, opened, settle, view_on

from app.model.alignment import Token
from app.model.time_axis import WHOLE
from app.views.word_costs_model import confusions
from app.views.word_places import GAP, Sentence, WordPlaces, tokens_of
from app.views.words import WordsView
from app.views.words_model import Spoken, WordsModel, words_model
from pipelines.audio import word_errors
from pipelines.audio.word_errors import SAME, SUBSTITUTED
from profiler.analysis.track import CostTrack
from profiler.session.model import Utterance, Utterances
from profiler.session.reader import Session

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
    for end, note in (
        (0, "no word to compare yet"),
        (5, "no error in 1 word so far"),
        (15, "1 error in 2 words so far"),
    ):
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


def counted(session: Session) -> Counter[tuple[str | None, str | None]]:
    """The pairs by the alignment itself."""
    return Counter(
        (step.reference, step.hypothesis)
        for one in session.utterances
        for step in word_errors.align((one.reference or "").split(), [word for word, _, _ in one.words])
        if step.kind != word_errors.SAME
    )


def test_pairs_are_those_of_the_alignment_with_the_time_of_their_frames(sample):
    with opened(sample) as (session, track):
        found, left = confusions(session, track, track.n_frames)
        assert not left
        assert {(one.reference, one.hypothesis): one.count for one in found} == counted(session)
        assert [one.count for one in found] == sorted((one.count for one in found), reverse=True)
        words = [(word, first, first + n) for u in session.utterances for word, first, n in u.words]
        for one in found:
            if one.hypothesis is None:
                assert one.wall_s is None
                continue
            assert {(one.hypothesis, *place) for place in one.places} <= set(words)
            seconds = sum(float(track.own_ns(first, last).sum()) for first, last in one.places) * 1e-9
            assert one.wall_s == pytest.approx(seconds)
        first, second = session.utterances[:2]
        within, _ = confusions(session, track, track.n_frames, (second.first_frame, second.end_frame))
        assert sum(one.count for one in within) == len(within) == second.errors
        until, _ = confusions(session, track, second.first_frame)
        assert sum(one.count for one in until) == first.errors


def test_the_page_of_the_words_view_sorts_and_goes_to_each_occurrence(sample, qtbot):
    with view_on(WordsView, sample, qtbot) as (view, playhead):
        playhead.axis.choose_scope(WHOLE)
        view.shows_confusions.click()
        settle()
        table, session = view.confusions, playhead.session
        model, known = table.model(), counted(session)
        cells = [[model.index(row, column).data() for column in range(3)] for row in range(model.rowCount())]
        shown = {(above or "–", below or "–"): number for (above, below), number in known.items()}
        assert {(above, below): int(number) for above, below, number in cells} == shown
        errors, pairs = sum(known.values()), len(known)
        assert table.accessibleDescription().startswith(f"{errors} word errors in {pairs} pairs; the most frequent is ")
        # A click goes to the first occurrence, then to the next ones, and from the last to the first.
        row = next(number for number, cell in enumerate(cells) if cell[1] == "uh")
        starts = [first for one in session.utterances for word, first, _ in one.words if word == "uh"]
        at = table.visualRect(model.index(row, 1)).center()
        for first in [*starts, starts[0]]:
            qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(at))
            assert playhead.axis.pointed_frames[0] == first
        settle()
        assert model.rowCount() == pairs, "going to a pair hides no other"
        table.sortByColumn(3, Qt.SortOrder.DescendingOrder)
        seconds = [model.index(row, 3).data() for row in range(pairs)]
        timed = [float(text) for text in seconds if text]
        assert timed == sorted(timed, reverse=True)
        assert seconds[-1] == "", "of a deletion, last"
        # One of chart, table and page is there.
        view.show_table(True)
        assert (table.isVisible(), view.shows_confusions.isChecked()) == (False, False)
        view.shows_confusions.click()
        assert (table.isVisible(), view._toggle.isChecked()) == (True, False)
        view.shows_confusions.click()
        assert view.plot.isVisible()
        playhead.close()
        assert model.rowCount() == 0


def test_the_report_lists_the_most_frequent(sample):
    with_json = answer("report", sample)["sessions"][0]["confusions"]
    with Session.open(sample) as session:
        known = counted(session)
    assert (with_json["of"], with_json["errors"]) == (len(known), sum(known.values()))
    assert {(row["reference"], row["hypothesis"]): row["count"] for row in with_json["rows"]} == known
    page = here("report", sample).stdout
    assert f"## Confusion pairs, {len(known)} of {len(known)}" in page
    first = with_json["rows"][0]
    assert f"| {first['reference'] or '–'} | {first['hypothesis'] or '–'} | {first['count']} |" in page
