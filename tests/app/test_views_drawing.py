"""The views as people meet them: drawn offscreen, with real mouse events; the breakdown, its icicle, words, replay."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QModelIndex, QPoint, Qt
from PySide6.QtGui import QContextMenuEvent, QImage, QPainter
from PySide6.QtWidgets import QApplication
from sample_session import SAID
from text_geometry import texts
from views_desk import (
    CTRL,
    FRAMES,
    LEFT,
    MIDDLE,
    NONE,
    SHIFT,
    amount,
    click,
    drag,
    figures_of,
    look,
    mouse,
    opened,
    pixels,
    pixels_of,
    place,
    seek,
    settle,
    view_on,
    wheel,
)

from app.charts.overlay import DIMMED
from app.charts.scale import Holding, Scale, held
from app.charts.time_plot import GUTTER
from app.model.time_axis import WHOLE as WHOLE_RUN
from app.style.plain_text import unbroken
from app.style.theme import THEMES, blended, set_theme, theme
from app.views.breakdown import BreakdownView
from app.views.cost_model import OWN, REALTIME_MS, _wanted
from app.views.icicle import GROUP, PART, STAGE, WHOLE, Block, icicle_model
from app.views.stage_panel import before_text, explanation, sum_text, tip
from app.views.stage_tree import BAR, StageTree
from app.views.word_places import ASIDE, GAP
from pipelines.audio.word_errors import SAME
from profiler.analysis.breakdown import BETWEEN
from profiler.clock import FRAME_S
from profiler.plain import percent
from tests.each import each


@pytest.fixture
def desk(same_desk):
    return same_desk


def test_drag_selects_time_for_all_views_whose_plots_line_up_to_the_pixel(desk):
    boxes = [view.plot.box.geometry() for view in (desk.cost, desk.work, desk.words)]
    assert len({(box.left(), round(box.width())) for box in boxes}) == 1
    drag(desk.cost.plot, 5.0, 9.0, keys=Qt.KeyboardModifier.AltModifier)
    assert desk.axis.selected == pytest.approx((5.0, 9.0), abs=0.05)
    scope = desk.breakdown.model().scope
    assert (scope.first, scope.last) == pytest.approx((500, 900), abs=5)
    click(desk.work.plot, 3.0)
    assert desk.axis.selected is None


@pytest.mark.parametrize(("button", "keys"), [(LEFT, SHIFT), (MIDDLE, NONE)])
def test_shift_drag_and_middle_drag_pan(desk, button, keys):
    look(desk.axis, 5.0, 10.0)
    drag(desk.words.plot, 8.0, 7.0, button, keys)
    assert desk.axis.visible == pytest.approx((6.0, 11.0), abs=0.05)
    assert desk.axis.selected is None


def test_ctrl_wheel_zooms_at_the_cursor_and_wheel_pans(desk):
    look(desk.axis, 4.0, 12.0)
    before = place(desk.cost.plot, 6.0)
    wheel(desk.cost.plot, 6.0, 1, CTRL)
    first, last = desk.axis.visible
    assert last - first == pytest.approx(8.0 / 1.25)
    assert abs(place(desk.cost.plot, 6.0).x() - before.x()) <= 1, "what is under the mouse stays there"
    wheel(desk.cost.plot, 6.0, -1)
    assert desk.axis.visible[0] > first
    assert np.diff(desk.axis.visible) == pytest.approx(last - first)

    look(desk.axis, 4.0, 5.0)
    at = place(desk.cost.plot, 4.5)
    click(desk.cost.plot, 4.5)
    mouse(desk.cost.plot, QEvent.Type.MouseButtonDblClick, at, LEFT, LEFT)
    mouse(desk.cost.plot, QEvent.Type.MouseButtonRelease, at, LEFT)
    settle()
    assert desk.axis.visible == pytest.approx((0.0, FRAMES * 0.01)), "a double click fits"


def test_hover_reads_out_the_values_under_the_mouse(desk):
    mouse(desk.cost.plot, QEvent.Type.MouseMove, place(desk.cost.plot, 3.0))
    second = desk.cost.plot.hover_s
    assert second == pytest.approx(3.0, abs=0.05)
    model = desk.cost.model()
    lines = {line.name: line.value for line in desk.cost.readout(model, 3.0)}
    assert lines["0:03.00"].startswith("RTF ")
    column = model.column_at(3.0)
    assert lines["sum, ms per frame"] == f"{model.mean_ms[column, :OWN].sum():.2f}"
    assert "transfer" not in lines
    before = pixels(desk.cost)
    QApplication.sendEvent(desk.cost.plot, QEvent(QEvent.Type.Leave))
    assert desk.cost.plot.hover_s is None
    assert (pixels(desk.cost) != before).any()


def test_the_stack_has_the_colours_of_its_categories(desk):
    desk.window.resize(900, 2000)  # a layer is a whole number of pixels high
    for name, tokens in THEMES.items():
        set_theme(name)
        settle()
        picture, model = pixels(desk.cost.plot), desk.cost.model()
        data = desk.cost.plot.plot_size[1] - desk.cost.overlay.band
        compute = model.scale.place(model.mean_ms[:, 0]).sum() * data
        assert amount(picture, tokens.category["compute"]) == pytest.approx(compute, rel=0.06)
        assert amount(picture, tokens.category["transfer"]) == 0


def test_every_view_has_a_sentence_and_a_table_and_is_emptied_with_the_session(desk):
    for view in desk.views:
        view.show_table(True)
        text = view.summary()
        assert text.endswith(".")
        assert view.accessibleDescription() == text
        headers, rows = view.table()
        assert rows
        assert all(len(row) == len(headers) for row in rows)
        view.show_table(False)
    assert "RTF" in desk.cost.summary()
    assert len(desk.cost.table()[1]) == 200
    desk.playhead.close()
    settle()
    for view in desk.views:
        assert view.model() is None
        assert view.note == ""
        assert view.table()[1] == []
    assert amount(pixels(desk.cost.plot), THEMES["dark"].category["compute"]) == 0


def row_of(tree: StageTree, name: str) -> QModelIndex:
    """The row of a group or stage in the tree."""
    return tree.indexFromItem(tree._rows[f"stage {name}" if "." in name else name])


def test_a_stage_can_be_explained_and_has_the_menu(desk, monkeypatch):
    tree, panel = desk.breakdown.tree, desk.breakdown.panel
    assert tree.explained() is tree.stages[0]
    line = tree.stages[3]
    desk.axis.choose_stage(line.name)
    settle()
    assert line.sentence in panel.text.replace("\xa0", " ")
    index = row_of(tree, line.name)
    tree.scrollTo(index)
    assert tree.stage_at(tree.visualRect(index).center()) is line
    # By key, too, whatever the mouse points to.
    at = []
    monkeypatch.setattr(desk.breakdown, "menu_at", at.append)
    corner = QPoint(1, 1)
    pressed = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, corner, tree.mapToGlobal(corner))
    QApplication.sendEvent(tree, pressed)
    assert [tree.stage_at(place) for place in at] == [line]
    desk.axis.choose_stage(None)


def test_stages_are_chosen_by_the_keyboard(desk, qtbot):
    tree = desk.breakdown.tree
    tree.setFocus()
    tree.setCurrentIndex(row_of(tree, "scoring"))
    assert desk.axis.stage == "scoring"
    qtbot.keyClick(tree, Qt.Key.Key_Down)
    assert desk.axis.stage == next(line.name for line in tree.stages if line.group == "scoring")
    qtbot.keyClick(tree, Qt.Key.Key_Left)
    qtbot.keyClick(tree, Qt.Key.Key_Left)
    desk.playhead.seek(FRAMES - 200)
    desk.breakdown.settle()
    assert not tree.isExpanded(row_of(tree, "scoring")), "what was closed stays so"
    tree.expandAll()


def test_the_parts_of_stages_and_groups_are_shown_with_their_intervals(desk):
    view = desk.breakdown
    bars, headers = view.tree, view.table()[0]
    assert [line.name for line in bars.groups] == ["scoring", "search", "frontend", "overhead"]
    for line in (*bars.groups, *bars.stages):
        assert not line.parts or sum(part.share for part in line.parts) == pytest.approx(1.0)
        assert all(part.low <= part.share + 1e-9 <= part.high + 2e-9 for part in line.parts)
    emit = next(line for line in bars.stages if line.name == "search.emit")
    assert "memory latency" in tip(emit, bars.stages)
    index = row_of(bars, "search.emit").siblingAtColumn(BAR)
    bars.scrollTo(index)
    image = bars.viewport().grab(bars.visualRect(index)).toImage()
    seen = {image.pixelColor(x, image.height() // 2).name() for x in range(image.width())}
    assert {theme().part[part.name] for part in emit.parts if part.share > 0.1} <= seen
    rows = {row[0]: dict(zip(headers, row, strict=True)) for row in view.table()[1]}
    assert rows["frontend.mfcc"]["memory latency"] is None
    latency = next(part for part in emit.parts if part.name == "latency")
    assert str(rows["search.emit"]["memory latency"]).startswith(percent(latency.share))
    assert str(rows["all scoring"]["memory latency"]).startswith("0.0 %")
    # The sentence of a group names its largest part and goes on with its dearest stage.
    desk.axis.choose_stage("search")
    settle()
    assert bars.explained() is bars.groups[1]
    sentence = explanation(bars.groups[1], bars.stages)
    assert "All stages of search" in sentence
    assert emit.sentence in sentence
    height = view.panel.needed(300)
    desk.axis.choose_stage("frontend.mfcc")
    settle()
    assert view.panel.needed(300) < height, "a stage without parts needs no rows for them"
    desk.axis.choose_stage(None)


def test_breakdown_says_sum_and_reason(desk):
    view = desk.breakdown
    model = view.model()
    assert "RTF" in sum_text(model)
    assert view.note == view.table()[0][1] == "ms per 10 ms frame"
    assert view.summary().startswith("A frame of 10 ms takes ")
    assert unbroken("17 % of 0.61 ms at 3.2 GB/s in 3 steps") == "17\xa0% of 0.61\xa0ms at 3.2\xa0GB/s in 3 steps"
    assert before_text(model) == "before: no comparison yet"
    _, rows = view.table()
    transfer = next(row for row in rows if row[0] == "transfer")
    assert "none: everything runs on the CPU" in transfer


def test_real_time_is_written_next_to_a_cursor_at_the_end(desk):
    """Its ground covered a part of the cursor."""
    desk.playhead.go_live()
    settle()
    item, plot = desk.cost.labels, desk.cost.plot
    drawn = QImage(*plot.plot_size, QImage.Format.Format_ARGB32)
    drawn.fill(Qt.GlobalColor.transparent)
    with QPainter(drawn) as painter:
        item.paint_pixels(painter, item.boundingRect())
    columns = (drawn.copy(drawn.width() - x, 0, 1, drawn.height()) for x in (40, 1))
    left, right = (sum(one.pixelColor(0, y).alpha() > 0 for y in range(one.height())) for one in columns)
    assert left > 10
    assert right <= 1, "but for the line of real time itself"


def test_boundaries_of_utterances_stand_at_their_pixels(desk):
    """There is none at the left end itself, nor where they would be too many."""
    overlay, plot = desk.work.overlay, desk.work.plot
    look(desk.axis, 0.0, 20.0)
    wide, (first, last) = plot.plot_size[0], plot.visible
    overlay.set_events((), ())
    nothing = pixels_of(plot)
    frames = [0, 190, 200, 201, 333, 500, 790, 801, 1500]
    overlay.set_events((), frames)
    changed = np.flatnonzero((pixels_of(plot) != nothing).any(axis=0)) - GUTTER
    seen = (frame * FRAME_S for frame in frames if first <= frame * FRAME_S <= last)
    places = [round((second - first) / (last - first) * wide) for second in seen]
    assert changed.tolist() == sorted({at for at in places if 1 <= at < wide})
    assert len(places) > 3
    overlay.set_events((), range(0, 2000, 2))
    assert np.array_equal(pixels_of(plot), nothing)


def test_a_replay_keeps_the_whole_trace_and_dims_what_comes(desk):
    whole = desk.cost.model()
    seek(desk.playhead, FRAMES // 2)
    model = desk.cost.model()
    assert np.array_equal(model.mean_ms, whole.mean_ms), "the cursor moves, the trace does not"
    box = desk.cost.plot.box.geometry()
    picture = pixels(desk.cost.plot)
    middle = round(box.left() + box.width() / 2)
    tokens = THEMES["dark"]
    shown, dimmed = picture[:, : middle - 2], picture[:, middle + 2 :]
    for category in ("compute", "memory", "search"):
        assert amount(shown, tokens.category[category]) > 50
        assert amount(dimmed, tokens.category[category]) == 0
        dim = blended(tokens.category[category], tokens.card, DIMMED / 255)
        assert amount(dimmed, dim) > 50
    desk.axis.set_visible(0.0, 5.0)
    seek(desk.playhead, 250)
    assert desk.words.spoken.placed, "words that come are there"


def test_one_crosshair_goes_through_all_charts(desk):
    others = (desk.work, desk.words)
    before = [pixels(view.plot) for view in others]
    mouse(desk.cost.plot, QEvent.Type.MouseMove, place(desk.cost.plot, 3.0))
    settle()
    assert desk.axis.hover == pytest.approx(3.0, abs=0.05)
    for view, was in zip(others, before, strict=True):
        changed = np.flatnonzero((pixels(view.plot) != was).any(axis=(0, 2)))
        box = view.plot.box.geometry()
        x = box.left() + 3.0 / (FRAMES * 0.01) * box.width()
        assert len(changed)
        assert np.abs(changed - x).max() <= 3, "a line at that second, nothing else"
        assert view.plot.hover_s is None, "the read-out is where the mouse is"
    QApplication.sendEvent(desk.cost.plot, QEvent(QEvent.Type.Leave))
    settle()
    assert desk.axis.hover is None
    assert (pixels(desk.work.plot) == before[0]).all()


def test_the_scale_holds_locks_and_becomes_logarithmic(desk):
    def scale() -> Scale:
        settle()
        return desk.cost.model().scale

    whole = scale()
    look(desk.axis, 15.0, 16.0)
    narrow = scale()
    assert narrow.top < whole.top, "skipping leaves less than half of it"
    desk.cost.set_holding(replace(desk.cost.holding, locked=True))
    desk.axis.fit()
    assert scale() == narrow
    desk.cost.set_holding(replace(desk.cost.holding, locked=False))
    assert scale() == whole
    desk.cost.set_holding(replace(desk.cost.holding, log=True))
    assert scale().log
    assert 0 < scale().bottom < scale().top == whole.top
    assert "logarithmic" in desk.cost.note
    heights = scale().stacked(np.array([[1.0, 2.0, 0.0]]))
    assert heights.sum() == pytest.approx(scale().place(np.array([3.0]))[0])
    desk.cost.set_holding(replace(desk.cost.holding, log=False))


@each("last", [1.6, 5.0, 12.0])
def test_words_stand_at_their_time_and_never_on_each_other(desk, last):
    look(desk.axis, 0.0, last)
    spoken = desk.words.spoken
    assert len(spoken.placed) >= (6 if last < 10 else 3)
    for one in spoken.placed:
        assert abs(one.left - spoken.x_of(one.token.first_s)) <= ASIDE
    for one, other in combinations(spoken.placed, 2):
        apart = one.left >= other.left + other.width + GAP or other.left >= one.left + one.width
        assert one.row != other.row or apart
    if last < 2:
        assert "4 errors in 14 words" in desk.words.note
        wrong = [one for one in spoken.placed if one.token.kind != SAME]
        assert len(wrong) >= 3, "wrong words find their place first"


def test_the_sentence_in_its_own_strip_is_that_of_a_selection_away_from_the_cursor(desk):
    def current() -> int | None:
        settle()
        return desk.words.model().current

    assert current() > 1
    desk.axis.select(2.56, 5.12)
    assert current() == 1
    desk.playhead.seek(300)
    assert current() == 1
    desk.axis.select(2.0, 6.0)
    desk.playhead.seek(220)
    assert current() == 0, "while the playhead is in it, the one that it is at"
    desk.playhead.seek(900)
    assert current() == 1, "that of which most is selected"
    assert desk.words.sentence.geometry().top() > desk.words.plot.geometry().bottom(), "below the axis of time"
    written = {text.text for text in texts(desk.words) if text.where == "Sentence"}
    assert {"reference", "hypothesis", *SAID.split()[:3]} <= written


def test_noise_about_a_round_value_moves_no_scale():
    """A chart once jumped between 0–3 and 0–12 whenever its highest column passed 4 ms."""
    scale, tops = None, set()
    for highest in (3.6, 4.2, 3.7, 4.4, 2.9, 4.3):
        totals = np.linspace(1.0, highest, 200)
        scale = held(_wanted(totals, totals * 1.2, False), Holding(before=scale))
        tops.add(scale.top)
    assert max(tops) < REALTIME_MS
    assert len(tops) <= 2, "it opens, and stays open"
    quiet = np.full(200, 0.4)
    assert held(_wanted(quiet, quiet, False), Holding(before=scale)).top < 1.0
    near = held(_wanted(np.full(200, 8.0), np.full(200, 9.0), False), Holding(before=scale))
    assert near.top >= REALTIME_MS
    # A logarithmic one opens at both ends.
    before, wider = Scale(0.1, 10.0, log=True), Scale(0.01, 10.0, log=True)
    assert held(Scale(0.1, 8.0, log=True), Holding(before, log=True)) == before
    assert held(wider, Holding(before, log=True)) == wider
    linear = Scale(0.0, 5.0)
    assert held(linear, Holding(before)) == linear, "another kind of scale is not held back"
    assert held(linear, Holding(Scale(0.0, 9.0), locked=True)).top == 9.0
    assert before.ticks() == [0.1, 1.0, 10.0]
    assert Scale(1.0, 12.0, log=True).ticks() == [1.0, 2.0, 5.0, 10.0]


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
        scoring = next(one for one in blocks if one.level == GROUP and one.group == "scoring")
        for block, sentence in (
            (gaussians, "Within scoring, score.gaussians takes"),
            (scoring, "All stages of scoring"),
        ):
            click(block)
            assert view.icicle.marked == block
            assert view.panel.text.startswith(sentence)
        assert view.icicle.accessibleDescription().startswith("whole frame: ")
        playhead.close()
        assert view.icicle.marked is None
