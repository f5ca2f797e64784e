"""The icicle: every level adds up to the one above, stages have the time of their spans, a click chooses one."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from views_desk import FRAMES, figures_of, settle, view_on

from app.model.desk_snapshot import DeskSnapshot
from app.model.time_axis import WHOLE as WHOLE_RUN
from app.views.icicle import IcicleView
from app.views.icicle_model import GROUP, PART, STAGE, WHOLE, Block, icicle_model
from profiler.analysis.breakdown import BETWEEN, breakdown
from profiler.analysis.track import CostTrack
from profiler.session.reader import Session


def desk_of(session: Session) -> DeskSnapshot:
    track = CostTrack()
    track.update(session)
    return figures_of(session, track, kind=WHOLE_RUN)


def test_every_level_adds_up_and_lies_below_its_own(sample: Path) -> None:
    with Session.open(sample) as session:
        blocks = icicle_model(desk_of(session))
    whole, groups, stages, parts = ([one for one in blocks if one.level == n] for n in (WHOLE, GROUP, STAGE, PART))
    assert [one.share for one in whole] == [1.0]
    assert [one.group for one in groups] == ["scoring", "search", "frontend", "overhead"]
    for level in (groups, stages):
        assert sum(one.share for one in level) == pytest.approx(1.0)
        assert level[0].first == 0.0
        ends = [one.first + one.share for one in level]
        assert [one.first for one in level[1:]] == pytest.approx(ends[:-1])
    for stage in stages:
        own = [one for one in parts if one.stage == stage.stage]
        assert not own or sum(one.share for one in own) == pytest.approx(stage.share)
    assert {one.stage for one in parts} >= {"score.gaussians", "search.emit"}
    assert BETWEEN in {stage.stage for stage in stages}


def test_a_stage_has_the_time_of_its_spans(sample: Path) -> None:
    with Session.open(sample) as session:
        blocks = icicle_model(desk_of(session))
        for name in ("score.gaussians", "search.prune"):
            (number,) = (n for n, stage in session.stages.items() if stage.name == name)
            mine = session.spans[session.spans["stage"] == number]
            (block,) = (one for one in blocks if one.level == STAGE and one.stage == name)
            (row,) = (one for one in breakdown(session).stages if one.name == name)
            assert row.time_ns == pytest.approx(int(mine["duration_ns"].sum()))
            assert block.ms == pytest.approx(row.own_ns / FRAMES * 1e-6)


def test_a_click_on_a_block_chooses_its_stage(sample: Path, qapp: QApplication, qtbot: QtBot) -> None:
    with view_on(IcicleView, sample, qtbot) as (view, playhead):
        view.settle()
        assert view.plot.marked is not None
        assert view.plot.marked.stage == "search.emit", "the longest one since the last change"

        def click(block: Block) -> None:
            width, height = view.plot.width(), view.plot.height() - 20
            at = QPoint(round((block.first + block.share / 2) * width), round((block.level + 0.5) * height / 4))
            qtbot.mouseClick(view.plot.viewport(), Qt.MouseButton.LeftButton, pos=at)
            settle()

        gaussians = next(one for one in view.model() if one.stage == "score.gaussians" and one.level == STAGE)
        click(gaussians)
        assert view.plot.marked == gaussians
        assert "score.gaussians: " in view.summary()
        click(next(one for one in view.model() if one.level == GROUP and one.group == "scoring"))
        assert view.plot.marked.group == "scoring"
        assert view.plot.marked.level == GROUP
        _, rows = view.table()
        assert rows[0][:3] == ["whole frame", "", ""]
        assert len(rows) == len(view.model())
        playhead.close()
        assert view.summary() == "No frames in range yet."
        assert view.table()[1] == []
