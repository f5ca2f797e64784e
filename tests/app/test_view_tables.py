"""The views that are tables: utterances, their stages and words, which lead to their place, and the session's facts."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot
from views_desk import seek, select, settle, view_on

from app.model.configurations import every
from app.model.playhead import Playhead
from app.model.statistics import stage_ns
from app.views.session_info import SessionView
from app.views.utterances import STAGES, WORDS, UtterancesView
from app.views.word_costs_model import word_costs
from pipelines.audio import word_errors
from profiler.plain import milliseconds
from tests.profiler.profiler_sessions import KEPT

SAMPLE = Path(__file__).parents[2] / "assets/samples/mixtures-on-an-h100.asrs"


def click_row(view: UtterancesView, number: int, qtbot: QtBot) -> None:
    table = view.rows
    at = table.visualRect(table.model().index(number, 1)).center()
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(at))
    settle()


def test_utterances_are_sorted_and_lead_to_their_place(sample, qapp, qtbot):
    with view_on(UtterancesView, sample, qtbot) as (view, playhead):
        headers, rows = view.table()
        assert len(rows) == 8
        wall, slow = playhead.track.own_ns(0, playhead.n_frames), headers.index("highest ms")
        for number, row in enumerate(rows):
            frames = wall[number * 256 : (number + 1) * 256]
            assert float(str(row[slow])) == pytest.approx(frames.max() * 1e-6, rel=0.02)
            assert row[headers.index("at frame")] == number * 256 + int(frames.argmax())
        table = view.rows
        table.sortByColumn(slow, Qt.SortOrder.DescendingOrder)
        first, other = ((int(view._table_model.row(n)[0]) - 1) * 256 for n in (0, 1))
        assert first == 256 * max(range(8), key=lambda n: float(rows[n][slow]))
        click_row(view, 0, qtbot)
        assert playhead.axis.selected_frames == (first, first + 256)
        # The keyboard goes there as well.
        table.setCurrentIndex(table.model().index(1, 1))
        qtbot.keyClick(table, Qt.Key.Key_Return)
        assert playhead.axis.selected_frames == (other, other + 256)
        table.sortByColumn(-1, Qt.SortOrder.AscendingOrder)
        seek(playhead, 300)
        assert [row[0] for row in view.table()[1]] == [1, 2], "not those after the cursor"


def test_a_session_tells_machine_device_settings_and_command(qapp, qtbot):
    with view_on(SessionView, SAMPLE, qtbot) as (view, _):
        known, said = {str(name): str(value) for name, value in view.table()[1]}, view.summary()
    for name, text in (
        ("machine", "Intel(R) Xeon(R)"),
        ("device", "NVIDIA H100 80GB HBM3, 79 GiB, cuda 13.0"),
        ("versions", "torch 2.11.0"),
        ("preset", "gmm"),
        ("audio", "3 files, 18.8 s decoded"),
        ("record it again", "asrscope run --preset gmm --set "),
    ):
        assert text in known[name]
    assert all(known.values())
    assert SAMPLE.name in said


def test_word_errors_are_said_with_how_many_utterances_have_a_transcript(qapp, qtbot):
    with view_on(UtterancesView, KEPT / "v2-0.1.0.asrs", qtbot) as (view, _):
        assert view.summary() == "2 utterances; 1 error in 3 words; 1 of 2 utterances have a transcript."


@pytest.fixture
def page_of(sample, qtbot):
    """The view with one of its pages open, and the playhead."""
    with ExitStack() as stack:

        def make(name: str) -> tuple[UtterancesView, Playhead]:
            view, playhead = stack.enter_context(view_on(UtterancesView, sample, qtbot))
            view.pages[name].click()
            return view, playhead

        yield make


def test_rows_are_means_over_the_frames_of_an_utterance(page_of, qtbot):
    shown, playhead = page_of(STAGES)
    session, track, frames = playhead.session, playhead.track, playhead.n_frames
    own = track.own_ns(0, frames)
    headers, rows = shown.table()
    by_name = {(row[0], row[1]): row for row in rows if row[1]}
    assert len(by_name) == len(session.utterances)
    stage = "search.emit"
    emit, column = stage_ns(session, stage, 0, frames) * 1e-6, headers.index(stage)
    for one, row in zip(session.utterances, by_name.values(), strict=True):
        mine = slice(one.first_frame, one.end_frame)
        share = own[mine].sum() / track.wall_row[:][mine].sum()
        assert row[column] == milliseconds(emit[mine].mean() * share)
        assert row[headers.index("whole frame")] == milliseconds(own[mine].mean() * 1e-6)
    assert headers.index("whole frame") < headers.index("score.gaussians") < headers.index(stage)
    several = every(session)
    assert len(rows) - len(by_name) == (len(several) if len(several) > 1 else 0)
    assert shown.summary().split(" takes most")[0] in {row[0] for row in rows}
    # One level is shown at a time.
    for name, column in ((WORDS, "word"), (WORDS, "#"), (STAGES, headers[0])):
        shown.pages[name].click()
        assert shown.table()[0][0] == column
    click_row(shown, len(rows) - 2, qtbot)
    one = session.utterances[-2]
    assert playhead.axis.selected_frames == (one.first_frame, one.end_frame)
    seek(playhead, one.first_frame)
    assert len(shown.table()[1]) == len(rows) - 2


def test_words_have_the_cost_of_their_frames_and_their_errors(page_of):
    _, playhead = page_of(WORDS)
    session, track = playhead.session, playhead.track
    words, left = word_costs(session, track, playhead.n_frames)
    assert not left
    wall, tokens = track.own_ns(0, track.n_frames), track.work_rows["search tokens"][:]
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


def test_the_longest_word_is_first_and_a_click_goes_to_it(page_of, qtbot):
    words, playhead = page_of(WORDS)
    headers, rows = words.table()
    took = [float(str(row[headers.index("ms")])) for row in rows]
    assert took == sorted(took, reverse=True)
    click_row(words, 0, qtbot)
    assert playhead.axis.pointed_frames[0] == rows[0][-1]
    assert playhead.axis.selected is None, "the scope stays"
    # The other words are still there.
    assert words.table()[1] == rows
    select(playhead.axis, 0.0, 1.0)
    fewer = words.table()[1]
    assert 0 < len(fewer) < len(rows)
    assert f"“{fewer[0][0]}” takes longest" in words.summary()
