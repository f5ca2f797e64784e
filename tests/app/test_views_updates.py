"""What an update of a moving view does not do again, and that it is done where something has changed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtCore import QObject, QPoint, QPointF
from PySide6.QtGui import QImage, QPainter, QPolygonF
from PySide6.QtWidgets import QApplication
from sample_session import write_sample
from views_desk import Desk, settle

from app.style.theme import set_theme, theme
from app.views.blocks import _under, under
from app.views.columns import column_edges
from app.views.events import Boundary
from app.views.pace import AT_NEXT_MS, Pace
from app.views.painting import polyline
from app.views.plot import GUTTER, TimePlot
from app.views.speech import Runs, SpokenItem, covered
from profiler.frames import FRAME_S
from tests.app.paintings import Paintings


@pytest.fixture
def moving(tmp_path: Path, qapp: QApplication) -> Iterator[Desk]:
    """The views over a session of 20 s of which 6 s are in view."""
    desk = Desk(write_sample(tmp_path / "a.asrs", frames=2048, utterance_frames=256))
    desk.axis.set_visible(2.0, 8.0)
    settle()
    yield desk
    desk.playhead.close()
    desk.window.close()
    desk.window.deleteLater()


def pixels_of(plot: TimePlot, scale: float = 1.0) -> np.ndarray:
    size = plot.size() * scale
    image = QImage(size, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(scale)
    with QPainter(image) as painter:
        plot.render(painter, QPoint())
    return np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), -1).copy()


def move(desk: Desk, columns: int) -> None:
    """Move the range by whole columns of pixels, and paint."""
    first, last = desk.axis.visible
    by = columns * (last - first) / desk.cost.plot.plot_size()[0]
    desk.axis.set_visible(first + by, last + by)
    settle()
    desk.window.grab()


@pytest.mark.parametrize("points", [0, 1, 300])
def test_a_polygon_has_the_points_it_is_given(points: int) -> None:
    random = np.random.default_rng(1)
    x, y = random.normal(size=(2, points))
    given = [QPointF(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    assert polyline(x, y) == QPolygonF(given)
    assert polyline(x[::-1], y[::-1]) == QPolygonF(given[::-1])


def test_a_polygon_needs_a_y_for_each_x() -> None:
    with pytest.raises(ValueError, match="3 x and 1 y"):
        polyline(np.arange(3.0), np.zeros(1))


# -- when ------------------------------------------------------------------------------------------


def test_what_is_due_between_two_drawings_is_done_with_the_next_one(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent, told, now = QObject(), [], [100.0]
    monkeypatch.setattr("app.views.pace.time", SimpleNamespace(monotonic=lambda: now[0]))
    pace = Pace(parent, 200, lambda: told.append(None))
    pace.ask(moving=True)
    assert len(told) == 1
    now[0] += 0.16
    pace.ask(moving=True)
    assert pace._timer.interval() in range(40 + AT_NEXT_MS, 45 + AT_NEXT_MS)
    now[0] += 0.038  # timers are of whole milliseconds
    pace.ask(moving=True)
    assert len(told) == 2
    assert not pace._timer.isActive()


def test_what_is_due_is_done_though_nothing_is_drawn_any_more(qtbot) -> None:
    parent, told = QObject(), []
    pace = Pace(parent, 1, lambda: told.append(None))
    pace.ask(moving=True)
    pace.ask(moving=True)
    qtbot.waitUntil(lambda: len(told) == 2)


def test_the_breakdown_is_laid_out_once_where_its_stages_are_counted(
    moving: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    view, shown = moving.breakdown, []
    show = view.bars.show_model
    monkeypatch.setattr(
        view.bars, "show_model", lambda *found: (shown.append(found[0]), show(*found))
    )
    moving.playhead._playing = True
    moving.playhead._position = 1000.0
    snapshot = moving.playhead.snapshot()
    assert snapshot is not None
    view._counted_at = 0.0
    view.draw(snapshot)
    assert view._slices.busy
    assert not shown
    view._slices.finish()
    assert [model.last_frame for model in shown] == [1000]
    # Not due again yet: the categories are shown at once.
    moving.playhead._position = 1010.0
    snapshot = moving.playhead.snapshot()
    assert snapshot is not None
    view._counted_at = time.monotonic() + 1e3
    view.draw(snapshot)
    assert [model.last_frame for model in shown] == [1000, 1010]
    moving.playhead._playing = False


def test_the_area_is_asked_for_once_and_again_after_each_painting(
    moving: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    plot, asked = moving.cost.plot, []
    update = plot.update
    monkeypatch.setattr(plot, "update", lambda *area: (asked.append(area), update(*area)))
    paintings = Paintings(plot)
    for count in (1, 2):
        for _ in range(5):
            plot.box.update()
        assert len(asked) == count
        settle()
        assert paintings.count == count
    # What was asked of a plot that nobody sees is no reason not to ask again.
    plot.hide()
    plot.box.update()
    plot.show()
    settle()
    before = paintings.count
    plot.box.update()
    settle()
    assert paintings.count == before + 1


# -- what ------------------------------------------------------------------------------------------


def test_labels_of_the_left_axis_are_drawn_when_they_look_different(
    moving: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    plot, drawn = moving.work.plot, []
    paint = plot._paint_ticks
    monkeypatch.setattr(plot, "_paint_ticks", lambda within: (drawn.append(None), paint(within)))
    moving.window.grab()
    del drawn[:]
    for _ in range(3):
        move(moving, 5)
    assert not drawn

    def shown_anew() -> None:
        assert drawn
        kept = pixels_of(plot)
        plot._gutter.drop()
        assert np.array_equal(kept, pixels_of(plot))
        moving.window.grab()
        del drawn[:]

    set_theme("light" if theme().name == "dark" else "dark")
    moving.window.grab()
    shown_anew()
    plot.set_ticks([(0.5 * plot._heights[1], "half")])
    moving.window.grab()
    shown_anew()
    plot.set_height_range(0.0, 2 * plot._heights[1])
    moving.window.grab()
    shown_anew()
    moving.window.resize(900, 1700)
    settle()
    moving.window.grab()
    shown_anew()


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_words_that_only_move_are_one_picture(
    moving: Desk, monkeypatch: pytest.MonkeyPatch, scale: float
) -> None:
    speech, drawn = moving.words.speech, []
    paint = SpokenItem._paint_placed

    def counted(self: SpokenItem, *of: object) -> None:
        drawn.append(None)
        paint(self, *of)  # type: ignore[arg-type]

    monkeypatch.setattr(SpokenItem, "_paint_placed", counted)
    pixels_of(moving.words.plot, scale)
    words = steps = 0
    for _ in range(12):
        move(moving, 1)
        words += len(speech.placed)
        kept = pixels_of(moving.words.plot, scale)
        steps += len(drawn)
        speech.words._words.drop()
        assert np.array_equal(kept, pixels_of(moving.words.plot, scale))
        del drawn[:]
    assert words > 12 * 4
    # Painted for a screen and for a finer picture in turn, they are drawn for each.
    assert steps < words or scale > 1.0


def test_words_of_another_theme_or_of_no_session_are_not_those_kept(moving: Desk) -> None:
    plot, speech = moving.words.plot, moving.words.speech
    moving.window.grab()
    for name in ("light", "dark"):
        set_theme(name)
        kept = pixels_of(plot)
        speech.words._words.drop()
        assert np.array_equal(kept, pixels_of(plot)), name
    moving.playhead.close()
    assert speech.words._words._pixels is None
    assert speech._right._known is None


def test_boundaries_of_utterances_stand_at_their_pixels(moving: Desk) -> None:
    """There is none at the left end itself, nor where they would be too many."""
    overlay, plot = moving.work.overlay, moving.work.plot
    moving.axis.set_visible(0.0, 20.0)
    settle()
    wide, left = plot.plot_size()[0], GUTTER
    first, last = plot.box.visible
    overlay.set_events((), ())
    nothing = pixels_of(plot)
    frames = [0, 190, 200, 201, 333, 500, 790, 801, 1500]
    overlay.set_events((), tuple(Boundary(frame, "") for frame in frames))
    changed = np.flatnonzero((pixels_of(plot) != nothing).any(axis=0)) - left
    places = [
        round((frame * FRAME_S - first) / (last - first) * wide)
        for frame in frames
        if first <= frame * FRAME_S <= last
    ]
    assert changed.tolist() == sorted({at for at in places if 1 <= at < wide})
    assert len(places) > 3
    overlay.set_events((), tuple(Boundary(frame, "") for frame in range(0, 2000, 2)))
    assert np.array_equal(pixels_of(plot), nothing)


def test_runs_of_words_that_move_are_those_found_afresh() -> None:
    random = np.random.default_rng(2)
    kept, width = Runs(), 400
    for _ in range(4):
        start = np.sort(random.uniform(0, 30, 60))
        seconds = np.stack([start, start + random.uniform(0, 0.6, 60)], axis=1)
        for scale in (40.0, 40.0, 60.0, 9000.0):
            for first in (0, 3, 4, 250, 900, 5000):
                found = kept.within(seconds, scale, first, width)
                wanted = covered(seconds * scale - first, width)
                assert found.tolist() == wanted.tolist()
    assert kept.within(np.empty((0, 2)), 40.0, 0, width).tolist() == []


def test_runs_of_words_are_found_once_while_they_only_move(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    monkeypatch.setattr(
        "app.views.speech.covered", lambda *of: (asked.append(None), covered(*of))[1]
    )
    kept, seconds = Runs(), np.array([[1.0, 2.0], [3.0, 3.5]])
    for first in range(10):
        kept.within(seconds, 40.0, first, 200)
    assert len(asked) == 1
    kept.within(seconds.copy(), 40.0, 0, 200)
    assert len(asked) == 2


def test_blocks_found_last_are_not_those_of_other_columns() -> None:
    one, two = column_edges(0.0, 900.0, 90), column_edges(30.0, 930.0, 90)
    assert column_edges(0.0, 900.0, 90) is one
    for edges, end, size in (
        (one, 900, 64),
        (two, 900, 64),
        (two, 500, 64),
        (two, 500, 32),
        (two, 500, 0),
        (one, 500, 0),
    ):
        for _ in range(2):
            found, wanted = under(edges, end, size), _under(edges, end, size)
            assert (found.size, found.first) == (wanted.size, wanted.first)
            for name in ("grid", "at", "there"):
                assert np.array_equal(getattr(found, name), getattr(wanted, name)), name
    values = np.arange(float(2 * len(wanted.grid) - 2)).reshape(-1, 2)
    assert np.array_equal(wanted.spread(values).T, wanted.spread_rows(values), equal_nan=True)
