"""Confusion pairs: which words stand for which, how often and for how long, in the view and in the report."""

from collections import Counter

import pytest
from command_line import answer, here
from PySide6.QtCore import QPoint, Qt
from views_desk import opened, settle, view_on

from app.model.time_axis import WHOLE
from app.views.word_costs_model import confusions
from app.views.words import WordsView
from pipelines.audio import word_errors
from profiler.session.reader import Session


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
        assert table.isVisible()
        model = table.model()
        cells = [[model.index(row, column).data() for column in range(5)] for row in range(model.rowCount())]
        known = counted(session)
        assert {(row[0], row[1]): int(row[2]) for row in cells} == {
            (above or "–", below or "–"): number for (above, below), number in known.items()
        }
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
