"""The raster against areas worked out by hand; what moved or scrolls against what is drawn at once; scales, figures."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from pytestqt.qtbot import QtBot
from sample_session import write_sample
from views_desk import Desk, pixels_of, settle

from app.charts.items import SPARE
from app.charts.raster import HATCH_STRENGTH, Stack, hatch_cell, stacked
from app.charts.scale import Scale, robust_top, round_up
from app.charts.time_plot import GUTTER, TimePlot
from app.model.time_axis import TimeAxis
from app.style.theme import rgb, set_theme, theme
from app.views.chart import AHEAD
from profiler.analysis.categories import CATEGORIES
from profiler.analysis.lod.columns import column_grid
from profiler.plain import clock, count, milliseconds
from tests.each import each

COLORS = ("#4060a0", "#d08020", "#30b080")


def parts(pixels: np.ndarray) -> np.ndarray:
    """Alpha, red, green, blue [4, height, width]."""
    return np.stack([pixels >> shift & 0xFF for shift in (24, 16, 8, 0)]).astype(float)


def test_each_layer_covers_its_share():
    random = np.random.default_rng(4)
    values = random.random((64, 3)) * np.array([0.4, 0.003, 0.5])
    height = 120
    got = parts(stacked(values, height, COLORS, "#000000")).sum(axis=1)
    wanted = np.array([[255.0, *rgb(color)] for color in COLORS])
    exact = (values * height) @ wanted
    # Half a grey level for each of up to six mixed pixels per column.
    assert np.abs(got - exact.T).max() <= 3.5


def test_layers_have_their_colours_from_the_bottom_up_no_data_is_nothing_and_too_much_is_cut():
    pixels = stacked(np.tile([0.25, 0.25, 0.25], (5, 1)), 8, COLORS, "#000000")
    column = [f"#{int(p) & 0xFFFFFF:06x}" for p in pixels[2:, 2]]
    assert column == [color for color in reversed(COLORS) for _ in range(2)]
    assert (pixels[:2] == 0).all()
    pixels = stacked(np.array([[np.nan] * 3, [5.0] * 3]), 10, COLORS, "#000000")
    assert (pixels[:, 0] == 0).all()
    assert {f"#{int(p):08x}" for p in pixels[:, 1]} == {f"#ff{COLORS[0][1:]}"}


def test_hatches_differ_from_each_other_and_stay_quiet():
    names = ("solid", "diagonal", "back", "cross", "dots", "vertical", "horizontal", "dense")
    cells = {name: hatch_cell(name).tobytes() for name in names}
    assert len(set(cells.values())) == len(names)
    pixels = stacked(np.ones((16, 1)), 16, ["#808080"], "#000000", ["diagonal"])[1:]
    assert set((pixels & 0xFF).flat) == {0x80, round(0x80 * (1 - HATCH_STRENGTH))}
    assert 0.1 < np.mean((pixels & 0xFF) != 0x80) < 0.4
    for layers in (0, 17):
        with pytest.raises(ValueError, match="1 to 16 layers"):
            stacked(np.zeros((4, layers)), 4, ["#000000"] * layers, "#ffffff")


def test_figures_as_people_read_them():
    times = [milliseconds(ms) for ms in (0.0612, 0.0002, 0.0, 3.4, 128.2, None)]
    assert times == ["0.061", "<0.001", "0.000", "3.40", "128", "–"]
    assert [clock(61.239, 2), clock(3725), clock(59.999, 1)] == ["1:01.24", "1:02:05", "1:00.0"]
    assert count(135634.2) == "135\u202f634"
    assert (Scale(0.0, 0.3).labels()[1], Scale(0.0, 2.0).labels()[-1]) == ("0.1", "2.0")


def test_scales_are_round_and_robust():
    assert [round_up(top) for top in (0.61, 2.0, 0.0)] == pytest.approx([0.8, 2.0, 1.0])
    quiet = np.full(1000, 0.6)
    assert robust_top(quiet) == pytest.approx(0.8)
    quiet[7] = 40.0
    assert robust_top(quiet) == pytest.approx(0.8)
    quiet[:100] = 40.0
    assert robust_top(quiet) >= 40.0
    assert robust_top(np.full(3, np.nan)) == 1.0


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


@each("moves", MOVES)
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


CHARTS = ("cost", "work", "words")


@pytest.fixture
def desk(desk, monkeypatch):
    """A replay at its seventh second, with a window of 6 s that follows it; figures have a pace of their own."""
    desk.breakdown.hide()  # its texts take more or less room from the charts
    settle()
    monkeypatch.setattr("app.views.cost.realtime_text", lambda _: "")
    monkeypatch.setattr("app.model.playhead.READ_S", 1e9)
    for name in CHARTS:
        view = getattr(desk, name)
        # Where drawing is slow, their time comes between two pictures that are compared.
        monkeypatch.setattr(view, "_renew_texts", lambda: None)
        view._late.stop()
        monkeypatch.setattr(view._late, "start", lambda *_: None)
    follow(desk)
    return desk


def follow(desk: Desk) -> None:
    """Let a window of 6 s follow the cursor, which is where it scrolls."""
    desk.axis.set_visible(2.0, 8.0)
    desk.playhead._position = 680.0
    desk.playhead.playing = True
    desk.playhead._emit()
    desk.axis.follow()
    advance(desk, 40)


def advance(desk: Desk, frames: float) -> None:
    """The cursor moves by itself."""
    desk.playhead._position += frames
    desk.playhead._emit()
    settle()


def reductions(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the charts whose models are made from now on."""
    found: list[str] = []
    for name in CHARTS:
        view = getattr(desk, name)

        def reduce(*of: object, name: str = name, make: Callable = view.reduce) -> object:
            found.append(name)
            return make(*of)

        monkeypatch.setattr(view, "reduce", reduce)
    return found


def grid(desk: Desk) -> tuple[int, float]:
    """Number of the first column of pixels in view and seconds of one."""
    return column_grid(*desk.axis.visible, desk.cost.plot.columns)


def assert_as_drawn_afresh(desk: Desk, scale: float = 1.0) -> None:
    # Of a scale between whole ones each position has pixels of its own, and the faint line may be a pixel off.
    unlike = 0.001 if scale == round(scale) else 0.03
    views = [getattr(desk, name) for name in CHARTS]
    kept = [pixels_of(view.plot, scale) for view in views]
    for view in views:
        view.draw(view.snapshot)
    settle()
    for name, view, before in zip(CHARTS, views, kept, strict=True):
        after = pixels_of(view.plot, scale)
        # The block that the left end cuts has its part of the faint line elsewhere.
        left = round((GUTTER + 30) * scale)
        assert np.mean(before[:, left:] != after[:, left:]) <= unlike, name
        assert np.array_equal(before[:, : GUTTER // 2], after[:, : GUTTER // 2]), name


@pytest.mark.parametrize(("frames", "scale"), [(1.3, 1.0), (3, 1.25), (5, 2.0)])
def test_what_scrolls_is_what_would_be_drawn(desk, monkeypatch, frames, scale):
    made = reductions(desk, monkeypatch)
    rasters = desk.cost.stack, desk.words.wave, desk.work.panels
    first = grid(desk)[0]
    for step in range(1, 6):
        drawn = [item._pixels for item in rasters]
        for _ in range(step % 3 + 1):
            advance(desk, frames)
            pixels_of(desk.cost.plot, scale)
        assert set(made) <= {"words"}, "where another utterance begins"
        assert len(made) <= 1
        if step > 1 and not made and scale == 1.0:
            assert all(item._pixels is kept for item, kept in zip(rasters, drawn, strict=True))
        assert_as_drawn_afresh(desk, scale)
        del made[:]
    assert grid(desk)[0] > first + 5, "it scrolled"


CHANGES: dict[str, Callable[[Desk], object]] = {
    "later": lambda desk: setattr(desk.playhead, "_desk", None),
    "far": lambda desk: advance(desk, 100 * grid(desk)[1] * (AHEAD * desk.cost.plot.columns + 1)),
    "back": lambda desk: desk.axis.pan(-0.1),
    "jump": lambda desk: setattr(desk.playhead, "_position", 1700.0),
    "zoom": lambda desk: desk.axis.zoom(0.5),
    "selection": lambda desk: desk.axis.select(3.0, 5.0),
    "size": lambda desk: desk.window.resize(800, 1500),
    "theme": lambda desk: set_theme("light" if theme().name == "dark" else "dark"),
    "reading": lambda desk: setattr(desk.playhead, "_reading", desk.playhead._reading + 1),
    "pause": lambda desk: setattr(desk.playhead, "playing", False),
    "scale": lambda desk: desk.cost.set_holding(replace(desk.cost.holding, log=True)),
}


def test_what_is_no_longer_right_is_drawn_again(desk, monkeypatch, tmp_path):
    """The charts have scrolled a little when it changes, and scroll on."""
    made = reductions(desk, monkeypatch)
    for change, act in CHANGES.items():
        follow(desk)
        advance(desk, 3)
        del made[:]
        act(desk)
        advance(desk, 2)
        assert set(made) == ({"cost"} if change == "scale" else set(CHARTS)), change
        assert_as_drawn_afresh(desk)
    desk.playhead.open(write_sample(tmp_path / "b.asrs", frames=2048, utterance_frames=128, seed=5))
    follow(desk)
    assert_as_drawn_afresh(desk)
