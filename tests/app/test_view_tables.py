"""Views that are tables, which lead to their place; and the table twin of a chart, which is sorted and copied."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot
from views_desk import seek, select, settle, view_on

from app.model.configurations import every
from app.model.playhead import Playhead
from app.model.statistics import stage_ns
from app.views.session_info import SessionView
from app.views.table_twin import TableTwin
from app.views.utterances import STAGES, WORDS, UtterancesView
from app.views.word_costs_model import word_costs
from pipelines.audio import word_errors
from profiler.plain import milliseconds

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
        first, other = ((int(view.rows.cells.row(n)[0]) - 1) * 256 for n in (0, 1))
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


HEADERS = ["part", "ms per frame", "share", "verdict"]
ROWS = [
    ["compute", 0.025, "12 %", "compute-bound"],
    ["search", 0.12, "55 %", None],
    ["memory", 0.009, "4.2 % (3–6 %)", "bandwidth-bound"],
    ["transfer", None, "", None],
]


@pytest.fixture
def table(qtbot):
    made = TableTwin()
    made.cells.replace(HEADERS, ROWS)
    qtbot.addWidget(made)
    made.resize(200, 160)
    made.show()
    return made


def column(table: TableTwin, number: int) -> list[str]:
    model = table.model()
    return [str(model.index(row, number).data()) for row in range(model.rowCount())]


def header_clicked(qtbot: QtBot, table: TableTwin, number: int) -> None:
    header = table.horizontalHeader()
    table.horizontalScrollBar().setValue(header.sectionPosition(number))
    where = QPoint(header.sectionViewportPosition(number) + 5, header.height() // 2)
    qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=where)


def test_the_rows_selected_are_copied_with_headers(qtbot, table):
    table.setFocus()
    table.selectAll()
    qtbot.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = [line.split("\t") for line in QGuiApplication.clipboard().text().splitlines()]
    assert lines == [HEADERS, *([("" if cell is None else str(cell)) for cell in row] for row in ROWS)]
    table.clearSelection()
    table.selectRow(1)
    table.copy_selected()
    assert QGuiApplication.clipboard().text().count("\n") == 2


def test_a_click_on_a_header_sorts_by_its_numbers(qtbot, table):
    for order in ("memory compute search transfer", "search compute memory transfer"):
        header_clicked(qtbot, table, 1)
        assert column(table, 0) == order.split()
    with qtbot.waitSignal(table.model().dataChanged) as changed:
        table.model().replace(HEADERS, [["compute", 0.5, "", ""], *ROWS[1:]])
    assert [(place.row(), place.column()) for place in changed.args[:2]] == [(0, 0), (3, 3)]
    assert column(table, 0)[:2] == ["compute", "search"], "what comes live is sorted, too"
    header_clicked(qtbot, table, 1)
    assert column(table, 0) == ["compute", "search", "memory", "transfer"]
    # Shares with units and intervals are numbers.
    table.model().replace(HEADERS, ROWS)
    table.sortByColumn(2, Qt.SortOrder.DescendingOrder)
    assert column(table, 0) == ["search", "compute", "memory", "transfer"]


def test_the_first_column_stays_in_sight(table):
    assert not table.first.isVisible()
    bar = table.horizontalScrollBar()
    bar.setValue(bar.maximum())
    assert table.first.isVisible()
    assert table.first.geometry().left() == 0
    assert [table.first.isColumnHidden(number) for number in (0, 1)] == [False, True]
    table.verticalScrollBar().setValue(table.verticalScrollBar().maximum())
    assert table.first.verticalScrollBar().value() == table.verticalScrollBar().value()
    assert table.first.rowHeight(0) == table.rowHeight(0)
    bar.setValue(0)
    assert not table.first.isVisible()


def test_sentences_share_the_room_and_are_whole(qtbot):
    words = " ".join(["leisure"] * 60)  # 479 characters
    table = TableTwin()
    table.cells.longest = 1000
    qtbot.addWidget(table)
    table.wrap_columns(1, -1)
    table.cells.replace(["utterance", "A", "B"], [["one", words, "no"], ["two", "yes", words]])
    table.resize(600, 300)
    table.show()
    width = [table.columnWidth(number) for number in range(3)]
    assert abs(width[1] - width[2]) <= 1
    assert sum(width) == table.viewport().width()
    line = table.fontMetrics().lineSpacing()
    least = table.fontMetrics().horizontalAdvance(words) / width[1] * line
    assert all(table.rowHeight(row) >= least for row in (0, 1))
    assert table.cells.text(range(2)).count(words) == 2

    table.resize(200, 300)
    assert [table.columnWidth(number) for number in (1, 2)] == [100, 100]
    table.horizontalScrollBar().setValue(table.horizontalScrollBar().maximum())
    assert [table.first.rowHeight(row) for row in (0, 1)] == [table.rowHeight(row) for row in (0, 1)]
