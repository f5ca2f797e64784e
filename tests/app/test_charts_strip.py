"""A strip of pixels: one that has moved is one that is drawn at once, and only what is new in it is drawn."""

import numpy as np
import pytest
from pytestqt.qtbot import QtBot
from views_desk import pixels_of, settle

from app.charts.items import SPARE
from app.charts.raster import Stack
from app.charts.scale import Scale
from app.charts.time_plot import TimePlot
from app.model.time_axis import TimeAxis
from profiler.analysis.categories import CATEGORIES

MOVES = {
    "on": ([0, 1, 4, 9], [None, 1, 3, 5]),
    "back": ([900, 899, 880], [None, 1, 19]),
    "far": ([0, 5000, 3], [None, None, None]),
    "past the room": ([0, SPARE // 2, SPARE // 2 + 9, SPARE // 2], [None, None, None, 9]),
}
"""Numbers of the first column shown one after the other, and columns drawn for each; None: all."""


def stack_on(qtbot: QtBot) -> tuple[TimePlot, Stack]:
    plot = TimePlot(TimeAxis())
    qtbot.addWidget(plot)
    plot.resize(380, 160)
    plot.show()
    plot.set_height_range(0.0, 1.0)
    settle()
    return plot, Stack(plot, CATEGORIES)


def show(plot: TimePlot, stack: Stack, table: np.ndarray, first: int) -> np.ndarray:
    """The pixels of a plot of some columns of a table from number `first` on, one a second."""
    columns = plot.columns
    plot.axis.end = 1e6
    plot.axis.set_visible(float(first), float(first + columns))
    stack.show_layers(table[first : first + columns], Scale(0.0, 10.0), float(first), float(first + columns))
    plot.show_drawing()
    return pixels_of(plot)


@pytest.mark.parametrize("moves", MOVES)
def test_a_strip_that_moved_is_one_that_is_drawn_at_once(qtbot, moves):
    plot, stack = stack_on(qtbot)
    table = np.random.default_rng(3).uniform(0.0, 2.0, (6000, len(CATEGORIES)))
    drawn: list[int] = []
    draw = stack.draw_pixels
    stack.draw_pixels = lambda height, scale, at: drawn.append(at.stop - at.start) or draw(height, scale, at)
    for first, fresh in zip(*MOVES[moves], strict=True):
        del drawn[:]
        kept = show(plot, stack, table, first)
        assert sum(drawn) == (plot.columns if fresh is None else fresh)
        assert np.array_equal(kept, show(*stack_on(qtbot), table, first))


def test_a_column_with_other_values_is_drawn_again(qtbot):
    """That of a block that has grown, or all of them where something else is said of them."""
    plot, stack = stack_on(qtbot)
    table = np.random.default_rng(4).uniform(0.0, 2.0, (400, len(CATEGORIES)))
    before = show(plot, stack, table, 0)
    table[plot.columns - 3 :, 2] += 0.5
    after = show(plot, stack, table, 0)
    assert np.array_equal(after, show(*stack_on(qtbot), table, 0))
    assert not np.array_equal(before, after)
