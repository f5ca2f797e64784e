"""Pixels kept from one painting to the next are those of a chart drawn afresh, whatever happened in between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from frame_rows import rows_of
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QApplication, QWidget
from sample_session import write_sample

from app.model.playhead import Playhead
from app.model.time_axis import TimeAxis
from app.style.theme import set_theme
from app.views.chart import ChartView
from app.views.columns import Extremes, RunningSums, column_edges
from app.views.cost import CostView
from app.views.raster import StackRaster
from app.views.strips import Strips, between, different, opaque, uprights
from app.views.words import WordsView
from app.views.work import WorkView

FRAMES = 2048


def test_only_columns_that_changed_are_drawn() -> None:
    strips = Strips()
    rows = np.arange(100.0)[:, None]
    asked: list[tuple[int, int]] = []

    def draw(begin: int, end: int) -> np.ndarray:
        asked.append((begin, end))
        return np.zeros((4, end - begin), np.uint32)

    strips.update("key", 7, rows, 4, 1, draw)
    strips.update("key", 7, rows, 4, 1, draw)
    strips.update("key", 10, np.arange(3.0, 103.0)[:, None], 4, 1, draw)
    assert sum(end - begin for begin, end in asked) == 100 + 3
    assert strips.drawn == 103
    strips.update("another", 10, np.arange(3.0, 103.0)[:, None], 4, 1, draw)
    assert strips.drawn == 203


@given(
    st.integers(5, 40),
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 2), st.integers(0, 9)), min_size=1),
)
def test_pixels_are_those_drawn_afresh(
    columns: int, scale: int, steps: list[tuple[int, int, int]]
) -> None:
    """Moves either way, other values here and there, another key."""
    strips, first = Strips(), 0
    for moved, key, seed in steps:
        first += moved
        numbers = first + np.arange(columns)
        rows = np.stack([np.sin(numbers), np.where(numbers % 7 == seed, seed, 0.0)], axis=1)
        rows[numbers % 11 == seed] = np.nan

        def draw(
            begin: int, end: int, rows: np.ndarray = rows, first: int = first, key: int = key
        ) -> np.ndarray:
            number = np.repeat(first + np.arange(begin, end), scale)
            value = np.nan_to_num(np.repeat(rows[begin:end], scale, axis=0)).sum(axis=1)
            look = (1000 * value).astype(np.int64) + 7 * (number % 8) + key
            return np.tile(look.astype(np.uint32), (3, 1))

        strips.update(key, first, rows, 3, scale, draw)
        assert np.array_equal(strips.whole(), draw(0, columns))


def test_a_stroke_is_at_least_a_pixel_and_nothing_where_there_is_no_value() -> None:
    top, bottom = between(np.array([5.0, 2.0, np.nan]), np.array([1.0, 2.0, 3.0]), 2)
    pixels = np.zeros((12, 6), np.uint32)
    uprights(pixels, top, bottom, opaque("#102030"), 2)
    assert (pixels != 0).sum(axis=0).tolist() == [9, 9, 2, 2, 0, 0]
    assert pixels.max() == 0xFF102030


def test_a_stretch_across_the_end_of_the_ring_is_drawn_in_one_go() -> None:
    strips = Strips()
    asked: list[tuple[int, int]] = []

    def draw(begin: int, end: int) -> np.ndarray:
        asked.append((begin, end))
        return np.tile(np.arange(begin, end, dtype=np.uint32), (2, 1))

    strips.update("key", 7, np.arange(20.0)[:, None], 2, 1, draw)
    assert asked == [(0, 20)]
    assert strips.whole().tolist() == [list(range(20))] * 2


def test_a_block_drawn_once_looks_as_each_of_its_columns() -> None:
    raster = StackRaster(("#102030", "#405060"), ("solid",) * 2, ink="#000000")
    rows = np.array([[0.1, 0.2], [0.3, 0.33], [np.nan, np.nan], [0.3, 0.33]])
    columns = np.repeat(rows, [3, 1, 2, 4], axis=0)
    new = different(columns)
    assert np.flatnonzero(new).tolist() == [0, 3, 4, 6]
    afresh = raster.draw(columns, 1.0, 17).copy()
    assert np.array_equal(raster.draw(columns[new], 1.0, 17)[:, np.cumsum(new) - 1], afresh)


@given(
    st.lists(
        st.tuples(st.integers(0, 400), st.floats(-200, 200), st.integers(0, 300), st.booleans()),
        min_size=1,
        max_size=12,
    )
)
def test_columns_taken_over_have_the_bits_of_those_computed(
    steps: list[tuple[int, float, int, bool]],
) -> None:
    """Frames added, the newest changed, the range moved, the playhead put back."""
    series = np.random.default_rng(3).uniform(0, 1e6, 6000)
    sums, extremes = RunningSums(1), Extremes()
    length, start = 0, 0.0
    for more, moved, back, changed in steps:
        same = length
        if changed and length > 5:
            same = length - 5
            series[same:length] += 1.0
        length = min(len(series), length + more)
        rows = rows_of(series[:length])
        sums.follow(rows, same)
        extremes.follow(series[:length], same=same)
        start = max(0.0, start + moved)
        edges, end = column_edges(start, start + 900.0, 60), max(0, length - back)
        fresh_sums, fresh_extremes = RunningSums(1), Extremes()
        fresh_sums.follow(rows)
        fresh_extremes.follow(series[:length])
        for got, wanted in zip(
            (sums.means(edges, end), *extremes.columns(edges, end)),
            (fresh_sums.means(edges, end), *fresh_extremes.columns(edges, end)),
            strict=True,
        ):
            assert np.array_equal(got, wanted, equal_nan=True)
        # Asked twice: the second one is kept.
        for _ in range(2):
            assert np.array_equal(sums.total(2, 90), fresh_sums.total(2, 90))


# -- the charts ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("strips")
    return write_sample(folder / "a.asrs", frames=FRAMES, utterance_frames=256)


class Charts:
    """The three charts over one playhead, in a window of their own."""

    def __init__(self, path: Path) -> None:
        self.axis = TimeAxis()
        self.playhead = Playhead(self.axis)
        self.cost, self.work = CostView(self.axis), WorkView(self.axis)
        self.views: list[ChartView] = [self.cost, self.work, WordsView(self.axis)]
        self.window = QWidget()
        for row, view in enumerate(self.views):
            view.setParent(self.window)
            view.setGeometry(0, 260 * row, 700, 250)
            self.playhead.changed.connect(view.update_snapshot)
        self.window.resize(700, 780)
        self.window.show()
        self.playhead.open(path)
        settle()

    def pictures(self) -> list[np.ndarray]:
        settle()
        for view in self.views:
            view.settle()  # texts follow a hand that moves the range a little later
        settle()
        found = []
        for view in self.views:
            image = view.plot.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
            pixels = np.frombuffer(image.constBits(), np.uint32)
            found.append(pixels.reshape(image.height(), -1).copy())
        return found

    def resize(self, width: int, height: int) -> None:
        for row, view in enumerate(self.views):
            view.setGeometry(0, 260 * row, width, height)
        settle()

    def paint_finer(self) -> None:
        """As for a picture of double scale: what is kept is then drawn for other pixels."""
        for view in self.views:
            image = QImage(view.plot.size() * 2, QImage.Format.Format_RGB32)
            image.setDevicePixelRatio(2)
            with QPainter(image) as painter:
                view.plot.render(painter, QPoint())

    def take_scales(self, other: Charts) -> None:
        """Draw on the scales of `other`: what a scale holds depends on what was seen before."""
        self.cost.holding = other.cost.holding
        self.work._scales = dict(other.work._scales)
        for view in self.views:
            view.draw(view.snapshot)

    def close(self) -> None:
        self.playhead.close()
        self.window.close()
        self.window.deleteLater()


def settle() -> None:
    for _ in range(3):
        QApplication.processEvents()


@pytest.fixture
def charts(path: Path, qapp: QApplication) -> Iterator[Charts]:
    made = Charts(path)
    yield made
    made.close()


@pytest.mark.parametrize("seed", range(4))
def test_charts_scrolled_and_scrubbed_are_those_drawn_afresh(
    charts: Charts, path: Path, seed: int
) -> None:
    random = np.random.default_rng(seed)
    axis, playhead = charts.axis, charts.playhead
    axis.set_visible(0.0, 8.0)
    size = 700, 250
    for step in range(30):
        match int(random.integers(8)):
            case 0:
                axis.pan(float(random.uniform(-0.2, 0.2)))
            case 1:
                axis.zoom(float(random.uniform(0.6, 1.6)), float(random.uniform(0, 15)))
            case 2:
                set_theme(str(random.choice(["dark", "light"])))
            case 3:
                size = int(random.integers(500, 700)), int(random.integers(180, 250))
                charts.resize(*size)
            case 4:
                charts.paint_finer()
            case _:
                playhead.seek(playhead.cursor_frame + int(random.integers(-40, 80)))
        charts.pictures()
        if step % 10 == 9:
            fresh = Charts(path)
            fresh.resize(*size)
            fresh.playhead.seek(playhead.cursor_frame)
            fresh.axis.set_visible(*axis.visible)
            settle()
            fresh.take_scales(charts)
            for kept, anew in zip(charts.pictures(), fresh.pictures(), strict=True):
                assert np.array_equal(kept, anew)
            fresh.close()
