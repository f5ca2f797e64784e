"""Stages by utterance and configuration: means over the frames of each row, and a click that goes there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from views_desk import settle, view_on

from app.model.configurations import Configurations
from app.model.figures import own_ns
from app.model.playhead import Playhead
from app.model.statistics import stage_ns
from app.views.pivot import PivotView
from profiler.plain import milliseconds


@pytest.fixture
def view(sample: Path, qapp: QApplication, qtbot: QtBot) -> Iterator[tuple[PivotView, Playhead]]:
    with view_on(PivotView, sample, qtbot) as made:
        yield made


def test_rows_are_means_over_the_frames_of_an_utterance(view: tuple[PivotView, Playhead]) -> None:
    shown, playhead = view
    session, track, frames = playhead.session, playhead.track, playhead.n_frames
    assert session is not None
    assert track is not None
    own = own_ns(track, 0, frames)
    headers, rows = shown.table()
    by_name = {(row[0], row[1]): row for row in rows if row[1]}
    assert len(by_name) == len(session.utterances)
    stage = "search.emit"
    emit, column = stage_ns(session, stage, 0, frames) * 1e-6, headers.index(stage)
    for one, row in zip(session.utterances, by_name.values(), strict=True):
        mine = slice(one.first_frame, one.end_frame)
        share = own[mine].sum() / track.wall_ns[mine].sum()
        assert row[column] == milliseconds(emit[mine].mean() * share)
        assert row[headers.index("whole frame")] == milliseconds(own[mine].mean() * 1e-6)
    assert headers.index("whole frame") < headers.index("score.gaussians") < headers.index(stage)
    several = Configurations().all(session)
    assert len(rows) - len(by_name) == (len(several) if len(several) > 1 else 0)
    assert shown.summary().split(" takes most")[0] in {row[0] for row in rows}


def test_a_click_goes_to_the_utterance(view: tuple[PivotView, Playhead], qtbot: QtBot) -> None:
    shown, playhead = view
    _, rows = shown.table()
    place = len(rows) - 2
    table = shown.rows
    at = table.visualRect(table.model().index(place, 1)).center()
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(at))
    one = playhead.session.utterances[-2]  # type: ignore[union-attr]
    assert playhead.axis.selected_frames == (one.first_frame, one.end_frame)
    playhead.seek(one.first_frame)
    settle()
    assert len(shown.table()[1]) == len(rows) - 2
