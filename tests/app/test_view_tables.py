"""The views that are tables: utterances, which lead to their place, and what a session says of itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from views_desk import settle

from app.model.figures import own_ns
from app.model.playhead import Playhead
from app.model.time_axis import TimeAxis
from app.views.session_info import SessionView, facts
from app.views.table_view import TableView
from app.views.utterances import UtterancesView
from profiler.session.reader import Session
from tests.profiler.profiler_sessions import KEPT

SAMPLE = Path(__file__).parents[2] / "assets/samples/mixtures-on-an-h100.asrs"


@pytest.fixture
def playhead(sample: Path, qapp: QApplication) -> Iterator[Playhead]:
    made = Playhead(TimeAxis())
    yield made
    made.close()


def show_session(view: TableView, playhead: Playhead, path: Path) -> None:
    playhead.changed.connect(view.update_snapshot)
    playhead.closed.connect(view.clear)
    view.resize(900, 300)
    view.show()
    playhead.open(path)
    settle()


def test_utterances_are_sorted_and_lead_to_their_place(playhead: Playhead, sample: Path, qtbot: QtBot) -> None:
    view = UtterancesView(playhead.axis)
    qtbot.addWidget(view)
    show_session(view, playhead, sample)
    headers, rows = view.table()
    assert len(rows) == 8
    wall, slow = own_ns(playhead.track, 0, playhead.n_frames), headers.index("highest ms")  # type: ignore[union-attr]
    for number, row in enumerate(rows):
        frames = wall[number * 256 : (number + 1) * 256]
        assert float(str(row[slow])) == pytest.approx(frames.max() * 1e-6, rel=0.02)
        assert row[headers.index("at frame")] == number * 256 + int(frames.argmax())
    table = view.rows
    table.sortByColumn(slow, Qt.SortOrder.DescendingOrder)
    slowest = max(rows, key=lambda row: float(str(row[slow])))
    assert view._table_model.row(0)[0] == slowest[0]
    at = table.visualRect(table.model().index(0, 1)).center()
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(at))
    first = (int(str(slowest[0])) - 1) * 256
    assert playhead.axis.selected_frames == (first, first + 256)
    # The keyboard goes there as well.
    table.setCurrentIndex(table.model().index(1, 1))
    qtbot.keyClick(table, Qt.Key.Key_Return)
    other = (int(str(view._table_model.row(1)[0])) - 1) * 256
    assert playhead.axis.selected_frames == (other, other + 256)


def test_an_utterance_after_the_cursor_is_not_listed(playhead: Playhead, sample: Path, qtbot: QtBot) -> None:
    view = UtterancesView(playhead.axis)
    qtbot.addWidget(view)
    show_session(view, playhead, sample)
    playhead.seek(300)
    settle()
    assert [row[0] for row in view.table()[1]] == [1, 2]


def test_a_session_tells_machine_device_settings_and_command(playhead: Playhead, qtbot: QtBot) -> None:
    view = SessionView(playhead.axis)
    qtbot.addWidget(view)
    show_session(view, playhead, SAMPLE)
    known = {str(name): str(value) for name, value in view.table()[1]}
    assert known["machine"].startswith("Intel(R) Xeon(R)")
    assert known["device"] == "NVIDIA H100 80GB HBM3, 79 GiB, cuda 13.0"
    assert "torch 2.11.0" in known["versions"]
    assert known["preset"] == "gmm"
    assert known["audio"].startswith("3 files, 18.8 s decoded")
    assert known["record it again"].startswith("asrscope run --preset gmm --set ")
    assert SAMPLE.name in view.summary()


def test_every_fact_has_a_name_and_a_value(sample: Path) -> None:
    with Session.open(sample) as session:
        found = list(facts(session))
    assert all(name and value for name, value in found)


def test_word_errors_are_said_with_how_many_utterances_have_a_transcript(playhead: Playhead, qtbot: QtBot) -> None:
    view = UtterancesView(playhead.axis)
    qtbot.addWidget(view)
    show_session(view, playhead, KEPT / "v2-0.1.0.asrs")
    expected = "2 utterances; 1 error in 3 words; 1 of 2 utterances have a transcript."
    assert view.summary() == expected
