"""One scope: every figure of the desk is of the same frames, and exports and commands give the same for these."""

from contextlib import ExitStack
from dataclasses import replace

import pytest
import tangled_session
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_session import write_sample
from views_desk import figures_of, opened, settle

from app.model.desk_snapshot import DeskSnapshot
from app.model.faster import candidates, unchanged
from app.model.report import Selected, report
from app.model.scope import Scope, scope_of
from app.model.time_axis import CHANGE, LIVE, RANGE, WHOLE
from app.views.icicle import GROUP, STAGE, icicle_model
from app.views.stage_panel import sum_text
from app.window.main_window import MainWindow
from app.window.welcome import sample_sessions
from profiler.analysis.categories import OTHER_PROGRAMS, OVERHEAD, PARTS
from profiler.analysis.track import CostTrack
from profiler.analysis.verdict import Evidence, Parts, judge
from profiler.session.reader import Session

MS = 1e-3


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """A session with toggles and other programs, one of a device, and one in which everything is unusual."""
    folder = tmp_path_factory.mktemp("scopes")
    made = write_sample(folder / "a.asrs", frames=640, utterance_frames=160)
    with ExitStack() as stack:
        paths = [made, *sample_sessions(), tangled_session.write(folder / "tangled.asrs")]
        yield [stack.enter_context(opened(path)) for path in paths]


def adds_up(desk: DeskSnapshot) -> None:
    """Stages are their group, groups the header; other programs are next to them, and a device's work is in none."""
    for group in desk.groups:
        mine = [line for line in desk.stages if line.group == group.name and line.share is not None]
        assert sum(line.ms for line in mine) == pytest.approx(group.ms, rel=1e-9)
        assert sum(line.share or 0.0 for line in mine) == pytest.approx(group.share or 0.0, rel=1e-9)
    assert sum(group.ms for group in desk.groups) == pytest.approx(desk.own_ms, rel=1e-9, abs=1e-15)
    own = sum(ms for name, ms in desk.categories.items() if name != OTHER_PROGRAMS)
    assert own == pytest.approx(desk.own_ms, rel=1e-6, abs=1e-12)
    assert desk.own_ms + desk.categories[OTHER_PROGRAMS] == pytest.approx(desk.wall_ms)
    by_name = {group.name: group.ms for group in desk.groups}
    for name in ("search", "frontend", "transfer", OVERHEAD):
        assert by_name.get(name, 0.0) == pytest.approx(desk.categories[name], rel=1e-6, abs=1e-12)


def agrees(session: Session, track: CostTrack, desk: DeskSnapshot) -> None:
    """Views, report, and Python say the same of the frames of a scope."""
    scope = desk.scope
    tree = report(session, track, Selected((scope.first, scope.last)))
    assert desk.rtf_with == (None if tree["rtf"] is None else pytest.approx(tree["rtf"]))
    assert desk.wall_ms * desk.frames * MS == pytest.approx(tree["wall_s"])
    if scope.end == track.n_frames:  # of an utterance that the cursor is in, the desk does not know the words yet
        words = (desk.errors.errors, desk.errors.words) if desk.errors.words else (None, None)
        assert words == (tree["wer_errors"], tree["wer_words"])
    times = {(row["name"], row["lane"]): row["time_s"] for row in tree["stages"]}
    for line in desk.stages:
        if line.lane and line.group != OVERHEAD:
            whole = (line.ms + line.other_ms) * desk.frames * MS
            assert whole == pytest.approx(times[line.name, line.lane], abs=1e-12), line.name
    blocks = icicle_model(desk)
    shown = {one.group: one.ms for one in blocks if one.level == GROUP}
    assert shown == {group.name: group.ms for group in desk.groups}
    assert {one.stage: one.ms for one in blocks if one.level == STAGE} == {
        line.name: line.ms for line in desk.stages if line.share is not None
    }
    assert unchanged(desk).wall_ns == pytest.approx(desk.own_ms * desk.frames * 1e6)
    assert unchanged(desk).rtf == (None if desk.rtf is None else pytest.approx(desk.rtf))
    lines = {line.name: line for line in desk.stages}
    for one in candidates(desk, None):
        assert (one.ms, one.share) == (lines[one.name].ms, lines[one.name].share)
        assert one.group != OVERHEAD, "the run's own bookkeeping is nobody's to make faster"


@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_all_that_shows_figures_of_a_scope_shows_the_same(recordings, data):
    session, track = data.draw(st.sampled_from(recordings))
    end = data.draw(st.integers(1, track.n_frames) | st.just(track.n_frames))
    first, last = sorted(data.draw(st.tuples(st.integers(0, end), st.integers(0, end))))
    kind = data.draw(st.sampled_from((None, LIVE, CHANGE, WHOLE, RANGE)))
    selected = (first, max(last, first + 1)) if kind == RANGE else None
    desk = figures_of(session, track, end, selected, kind=kind)
    assert 0 <= desk.scope.first <= desk.scope.last <= end
    if desk.frames:
        adds_up(desk)
        agrees(session, track, desk)


def test_a_frame_is_one_of_10_ms_whether_it_was_scored_or_copied():
    """With every 2nd frame skipped, the table said 2.04 ms and the sentence below it 4.08."""
    likely = {**dict.fromkeys(PARTS, 0.0), "bandwidth": 408e6}
    parts = Parts(likely, likely, likely)
    evidence = Evidence(408e6, 100, 100, parts, bytes_min=7e9, replayed=True, all_frames=200)
    assert "Moves 35 MB per frame at 17.2 GB/s; 2.04 ms per frame: " in judge(evidence).sentence
    assert "4.08 ms per block" in judge(replace(evidence, frames=1600.0, all_frames=3200)).sentence


def test_the_scope_is_chosen_said_and_left(sample):
    with Session.open(sample) as session:
        for end, kind, selected, chosen, text in (
            (2048, None, None, CHANGE, "since skip ×2"),
            (500, None, None, WHOLE, "whole run"),
            (2048, WHOLE, None, WHOLE, "whole run · 3 settings"),
            (2048, LIVE, None, LIVE, "last 3 s"),
            (2048, WHOLE, (100, 250), RANGE, "0:01.00 – 0:02.50"),
            (2048, None, (100, 1500), RANGE, "0:01.0 – 0:15.0 · 3 settings"),
        ):
            scope = scope_of(session, end, kind, selected)
            assert (scope.kind, scope.text) == (chosen, text)
        assert scope_of(session, 200, None, (100, 250)) == Scope(RANGE, 100, 200, 200)


def test_all_views_change_scope_together(desk):
    """Esc left the stages of the old range below the sum of the new one."""
    for selected in ((5.0, 9.0), (15.0, 16.0), None):
        if selected:
            desk.axis.select(*selected)
        else:
            desk.axis.clear()
        settle()
        shown = desk.playhead.snapshot()
        assert all(view.snapshot is not None and view.snapshot.desk is shown.desk for view in desk.views)
        assert desk.breakdown.tree.stages == shown.desk.stages
        assert desk.breakdown.sum.text().startswith(sum_text(shown.desk))
        assert desk.breakdown.tree.explained() in shown.desk.stages


def test_the_chip_says_the_scope_and_leads_back(window, sample, qtbot):
    made: MainWindow = window()
    made.open_session(sample)
    chip = made.top.scope
    qtbot.waitUntil(lambda: chip.button.full == "since skip ×2")
    assert chip.away.isHidden()
    made.axis.set_visible(8.0, 12.0)
    made.axis.select(1.0, 3.0)
    qtbot.waitUntil(lambda: chip.button.full == "◂ 0:01.00 – 0:03.00")
    assert not chip.away.isHidden()
    for act, text in (
        (lambda: made.axis.set_visible(0.0, 4.0), "0:01.00 – 0:03.00"),
        (made.escape, "since skip ×2 ▸"),
        (lambda: made.actions_.trigger("scope.whole"), "whole run · 3 settings"),
        (chip.away.click, "since skip ×2 ▸"),
        (lambda: made.actions_.trigger("scope.range"), "0:00.00 – 0:04.00"),
    ):
        act()
        qtbot.waitUntil(lambda text=text: chip.button.full == text)
        assert made.top.rtf.value == f"{made.playhead.snapshot().desk.rtf:.3f}"


def test_other_programs_are_named_when_they_took_much(window, qtbot):
    made: MainWindow = window()
    for share, named in ((0.1, False), (0.21, True), (0.17, True), (0.1, False)):
        made.others.show_share(share)
        assert made.others.isHidden() is not named
    made.others.show_share(0.34)
    assert made.others.taken.text() == "Other programs took 34 % of the processor."
