"""The views as people meet them: drawn offscreen, with real mouse events."""

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QModelIndex, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QApplication
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
    look,
    mouse,
    pixels,
    pixels_of,
    place,
    settle,
    wheel,
)

from app.charts.time_plot import GUTTER
from app.style.plain_text import unbroken
from app.style.theme import THEMES, set_theme, theme
from app.views.cost_model import OWN
from app.views.stage_panel import before_text, explanation, sum_text, tip
from app.views.stage_tree import BAR, StageTree
from profiler.clock import FRAME_S
from profiler.plain import percent


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
        data = desk.cost.plot.plot_size()[1] - desk.cost.overlay.band
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
    """The row of a stage in the tree."""
    return tree.indexFromItem(tree._rows[f"stage {name}"])


def test_a_stage_can_be_explained(desk, qtbot):
    tree, panel = desk.breakdown.tree, desk.breakdown.panel
    assert tree.explained() is tree.stages[0]
    desk.axis.choose_stage(tree.stages[2].name)
    assert tree.explained() is tree.stages[2]
    index = row_of(tree, tree.stages[3].name)
    tree.scrollTo(index)
    middle = tree.visualRect(index).center()
    assert tree.stage_at(middle) is tree.stages[3]
    qtbot.mouseClick(tree.viewport(), LEFT, pos=middle)
    settle()
    assert tree.explained() is tree.stages[3]
    assert tree.stages[3].sentence in panel.text.replace("\xa0", " ")
    desk.axis.choose_stage(None)
    assert tree.explained() is tree.stages[0]


def test_stages_are_chosen_by_the_keyboard(desk, qtbot):
    tree = desk.breakdown.tree
    scoring = tree.indexFromItem(tree._rows["scoring"])
    tree.setFocus()
    tree.setCurrentIndex(scoring)
    assert desk.axis.stage == "scoring"
    qtbot.keyClick(tree, Qt.Key.Key_Down)
    assert desk.axis.stage == next(line.name for line in tree.stages if line.group == "scoring")
    qtbot.keyClick(tree, Qt.Key.Key_Left)
    qtbot.keyClick(tree, Qt.Key.Key_Left)
    desk.playhead.seek(FRAMES - 200)
    desk.breakdown.settle()
    assert not tree.isExpanded(tree.indexFromItem(tree._rows["scoring"])), "what was closed stays so"
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


def test_the_bar_of_a_stage_has_the_colours_of_its_parts(desk):
    tree = desk.breakdown.tree
    emit = next(line for line in tree.stages if line.name == "search.emit")
    index = row_of(tree, "search.emit").siblingAtColumn(BAR)
    tree.scrollTo(index)
    image = tree.viewport().grab(tree.visualRect(index)).toImage()
    seen = {image.pixelColor(x, image.height() // 2).name() for x in range(image.width())}
    for part in emit.parts:
        if part.share > 0.1:
            assert theme().part[part.name] in seen, part.name


def test_breakdown_says_sum_and_reason(desk):
    view = desk.breakdown
    model = view.model()
    assert sum_text(model).startswith("sum ")
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
    drawn = QImage(*plot.plot_size(), QImage.Format.Format_ARGB32)
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
    wide, (first, last) = plot.plot_size()[0], plot.visible
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
