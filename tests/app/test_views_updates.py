"""What an update of a moving view does not do again, and that it is done where something has changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QApplication, QWidget
from sample_session import write_sample
from views_desk import Desk, settle

from app.charts.time_plot import GUTTER, TimePlot
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
        QWidget.render(plot, painter, QPoint())
    return np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), -1).copy()


def move(desk: Desk, columns: int) -> None:
    """Move the range by whole columns of pixels, and paint."""
    first, last = desk.axis.visible
    by = columns * (last - first) / desk.cost.plot.plot_size()[0]
    desk.axis.set_visible(first + by, last + by)
    settle()
    desk.window.grab()


# -- when ------------------------------------------------------------------------------------------


def test_figures_are_made_once_for_all_views_and_drawn_when_they_are_new(
    moving: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the cursor moves by itself, charts follow it, and what is read stays for a quarter of a second."""
    view, playhead, shown = moving.breakdown, moving.playhead, []
    show = view.tree.show_model
    monkeypatch.setattr(view.tree, "show_model", lambda desk: (shown.append(desk), show(desk)))
    monkeypatch.setattr("app.model.playhead.READ_S", 1e9)
    playhead.playing = True
    first = playhead.snapshot()
    assert first is not None
    for frame in (1000, 1001, 1002):
        playhead._position = frame
        snapshot = playhead.snapshot()
        assert snapshot is not None
        assert (snapshot.cursor_frame, snapshot.desk) == (frame, first.desk)
        for each in moving.views:
            each.update_snapshot(snapshot)
    assert not shown
    monkeypatch.setattr("app.model.playhead.READ_S", 0.0)
    playhead._desk_took = 0.0
    snapshot = playhead.snapshot()
    assert snapshot is not None
    assert snapshot.desk.scope.last == 1002
    for each in moving.views:
        each.update_snapshot(snapshot)
    assert shown == [snapshot.desk]
    playhead.playing = False


def test_a_plot_is_painted_once_however_often_it_is_requested(moving: Desk) -> None:
    plot = moving.cost.plot
    paintings = Paintings(plot.viewport())
    for count in (1, 2):
        for _ in range(5):
            plot.repaint_area()
        settle()
        assert paintings.count == count


def test_a_range_that_moves_draws_no_pixels_afresh(moving: Desk) -> None:
    """Of a raster that is shown at another place."""
    item, plot = moving.cost.items.stack, moving.cost.plot
    moving.window.grab()
    drawn, kept = item._pixels, pixels_of(plot)
    plot.box.setXRange(1.0, 3.0, padding=0)
    assert not np.array_equal(kept, pixels_of(plot))
    assert item._pixels is drawn


def test_boundaries_of_utterances_stand_at_their_pixels(moving: Desk) -> None:
    """There is none at the left end itself, nor where they would be too many."""
    overlay, plot = moving.work.overlay, moving.work.plot
    moving.axis.set_visible(0.0, 20.0)
    settle()
    wide, left = plot.plot_size()[0], GUTTER
    first, last = plot.visible
    overlay.set_events((), ())
    nothing = pixels_of(plot)
    frames = [0, 190, 200, 201, 333, 500, 790, 801, 1500]
    overlay.set_events((), frames)
    changed = np.flatnonzero((pixels_of(plot) != nothing).any(axis=0)) - left
    places = [
        round((frame * FRAME_S - first) / (last - first) * wide) for frame in frames if first <= frame * FRAME_S <= last
    ]
    assert changed.tolist() == sorted({at for at in places if 1 <= at < wide})
    assert len(places) > 3
    overlay.set_events((), range(0, 2000, 2))
    assert np.array_equal(pixels_of(plot), nothing)
