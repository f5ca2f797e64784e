"""A view that is one plot over time: what cost, work and words have in common.

A subclass overrides `reduce` (snapshot → model, pure) and `show_model` (model → items). However many
range changes, resizes and hover moves come together, the model is computed once.
"""

from collections.abc import Sequence
from functools import partial
from typing import Generic, TypeVar

from PySide6.QtWidgets import QMenu

from app.charts.legend import ReadoutLine
from app.charts.overlay import Overlay
from app.charts.time_plot import TimePlot
from app.model.playhead import Snapshot
from app.model.scope import boundaries, marks
from app.model.time_axis import TimeAxis
from app.style.plain_text import add_entry
from app.views.view import View
from profiler.analysis.lod.columns import column_grid
from profiler.arrays import I64
from profiler.session.model import Marker

Model = TypeVar("Model")

AHEAD = 0.2  # Share of the range that is drawn right of it while it scrolls: until the figures are new, all is drawn


class ChartView(View, Generic[Model]):
    """One `TimePlot` with its `Overlay` in a card; `flags` and `margin` as the overlay has them."""

    def __init__(self, axis: TimeAxis, *, flags: int = 0, margin: float = 0.0) -> None:
        super().__init__(axis)
        self.plot = TimePlot(axis)
        self.overlay = Overlay(self.plot, flags, margin)
        self.column = self.set_column((self.plot, 1), spacing=2)
        self._model: Model | None = None
        self._covers = range(0)  # Numbers of the first column of the ranges that lie within what is drawn
        self._drawn_from: tuple[object, ...] | None = None
        axis.visible_changed.connect(self._axis_moved)
        self.plot.hovered.connect(self._hovered)
        self.plot.resized.connect(self._soon.start)

    def reduce(self, snapshot: Snapshot, columns: int, visible: tuple[float, float]) -> Model:
        """Return the model of a snapshot for `columns` pixel columns over seconds `visible` (override)."""
        raise NotImplementedError

    def events(self, snapshot: Snapshot) -> tuple[tuple[Marker, ...], I64 | tuple[()]]:
        """Markers, and first frames of utterances, that lie over the plot (override where there are none)."""
        end = snapshot.end_frame
        return marks(snapshot.session, end, end), boundaries(snapshot.session, end)

    def show_model(self, model: Model | None) -> None:
        raise NotImplementedError

    def show_texts(self, model: Model) -> None:
        """Show note, headings and what else is read rather than watched (override)."""

    def readout(self, model: Model, second: float) -> Sequence[ReadoutLine]:
        return ()

    def menu(self) -> QMenu:
        """The context menu, with what can be done with the time range; the box at the mouse makes room for it."""
        self.plot.hover(None)
        menu, selected = super().menu(), self.axis.selected
        menu.addSeparator()
        zoom = None if selected is None else partial(self.axis.set_visible, *selected)
        add_entry(menu, self.tr("Zoom to the selection"), zoom)
        add_entry(menu, self.tr("Show everything"), self.axis.fit)
        return menu

    def draw(self, snapshot: Snapshot) -> None:
        self._soon.stop()
        columns = self.plot.columns
        ahead = int(AHEAD * columns) if snapshot.moving and self.axis.windowed else 0
        number, width = column_grid(*self.plot.axis.visible, columns)
        self._covers = range(number, number + ahead + 1)
        end = number + columns + ahead
        self._model = self.reduce(snapshot, columns + ahead, (number * width, end * width))
        self.overlay.set_events(*self.events(snapshot))
        self.show_model(self._model)
        self._drawn_from = made_from(snapshot, self.plot)
        self._behind = False
        if not snapshot.moving:
            self.show_texts(self._model)
        self._hovered(self.plot.hover_s)
        self.plot.show_drawing()

    def _draw_snapshot(self, fresh: bool) -> None:
        """Draw a snapshot, or show what is drawn at its new place where it is still right."""
        snapshot = self.snapshot
        if snapshot is None:
            return
        number, _ = column_grid(*self.plot.axis.visible, self.plot.columns)
        same = self._drawn_from is not None and self._drawn_from == made_from(snapshot, self.plot)
        if fresh or not same or number not in self._covers or not self.scroll_drawing(snapshot):
            self.draw(snapshot)
            return
        self._soon.stop()
        self._behind = True
        self._hovered(self.plot.hover_s)
        self.plot.show_drawing()

    def scroll_drawing(self, snapshot: Snapshot) -> bool:
        """Move what does not scroll by itself (extend); whether the drawing is still right."""
        band = self.overlay.band
        self.overlay.lay_out()
        return self.overlay.band == band

    def clear(self) -> None:
        super().clear()
        self._model = self._drawn_from = None
        self.overlay.set_events((), ())
        self.overlay.set_readout(())
        self.show_model(None)
        self.plot.repaint_area()

    def model(self) -> Model | None:
        View.settle(self)
        return self._model

    def _renew_texts(self) -> None:
        # What is spoken twice a second may be of the last drawing; it is no reason for another.
        behind, self._behind = self._behind, False
        super()._renew_texts()
        if self._model is not None:
            self.show_texts(self._model)
        self._behind = behind

    def _axis_moved(self, *_: object) -> None:
        if self.snapshot is None:
            self.plot.show_drawing()
        elif not self.asleep:
            # Once for all changes of the range; what is said of it waits until the hand rests.
            self._soon.start()
            if not self.snapshot.moving:
                self._late.start()

    def _hovered(self, second: float | None) -> None:
        model = self._model
        self.overlay.set_readout(() if model is None or second is None else self.readout(model, second))


def made_from(snapshot: Snapshot, plot: TimePlot) -> tuple[object, ...] | None:
    """What a drawing depends on besides cursor and place of the range; None where it is not to be shown again."""
    if not snapshot.moving or snapshot.reading is None:
        return None
    axis, (_, width) = plot.axis, column_grid(*plot.axis.visible, plot.columns)
    return snapshot.session, snapshot.reading, snapshot.following, axis.selected, plot.plot_size, width
