"""The icicle: every level adds up to the one above, stages have the time of their spans, a click chooses one."""

import pytest
from PySide6.QtCore import QPoint, Qt
from views_desk import figures_of, opened, settle, view_on

from app.model.time_axis import WHOLE as WHOLE_RUN
from app.views.breakdown import BreakdownView
from app.views.icicle import GROUP, PART, STAGE, WHOLE, Block, icicle_model
from profiler.analysis.breakdown import BETWEEN


def test_every_level_adds_up_and_lies_below_its_own(sample):
    with opened(sample) as (session, track):
        blocks = icicle_model(figures_of(session, track, kind=WHOLE_RUN))
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


def test_a_click_on_a_block_chooses_its_stage(sample, qapp, qtbot):
    with view_on(BreakdownView, sample, qtbot, (600, 700)) as (view, playhead):
        view.pages["icicle"].click()
        settle()
        assert (view.icicle.isVisible(), view.tree.isVisible()) == (True, False)
        marked = view.icicle.marked
        assert marked.stage == view.tree.explained().name == "search.emit", "the longest one since the last change"

        def click(block: Block) -> None:
            view.icicle.settle()
            width, height = view.icicle.width(), min(view.icicle.height() / 4, 160)
            at = QPoint(round((block.first + block.share / 2) * width), round((block.level + 0.5) * height))
            qtbot.mouseClick(view.icicle.viewport(), Qt.MouseButton.LeftButton, pos=at)
            settle()

        blocks = icicle_model(view.model())
        gaussians = next(one for one in blocks if one.stage == "score.gaussians" and one.level == STAGE)
        click(gaussians)
        assert view.icicle.marked == gaussians
        assert view.panel.text.startswith("Within scoring, score.gaussians takes")
        click(next(one for one in blocks if one.level == GROUP and one.group == "scoring"))
        assert view.icicle.marked.group == "scoring"
        assert view.icicle.marked.level == GROUP
        assert view.icicle.accessibleDescription().startswith("whole frame: ")
        playhead.close()
        assert view.icicle.marked is None
        view.pages["icicle"].click()
        assert view.tree.isVisible()
