"""A view that is one plot over time: what cost, work and words have in common.

A subclass overrides `reduce` (snapshot → model, pure) and `show_model` (model → items). However many
range changes, resizes and hover moves come together, the model is computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.style.theme import Tokens
from app.views.overlay import Overlay
from app.views.pace import Pace
from app.views.plot import TimePlot
from app.views.readout import Line
from app.views.view import View

Model = TypeVar("Model")

TEXTS_MS = 200
"""While the cursor moves by itself, or a hand moves the range, texts are renewed this often."""


class ChartView(View, Generic[Model]):
    """One `TimePlot` with its `Overlay` in a card.

    Args:
        axis: the desk's shared range, selection and cursor.
        parent: Qt parent.
        flags: most rows of marker labels above the plot; 0 draws the lines only.
        margin: least pixels kept free above the plot.
    """

    def __init__(
        self,
        axis: TimeAxis,
        parent: QWidget | None = None,
        *,
        flags: int = 0,
        margin: float = 0.0,
    ) -> None:
        super().__init__(axis, parent)
        body = QWidget()
        self.column = QVBoxLayout(body)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(2)
        self.plot = TimePlot(axis)
        self.overlay = Overlay(self.plot, flags, margin)
        self.column.addWidget(self.plot, 1)
        self.set_body(body)
        self._model: Model | None = None
        self._range = axis.visible
        self._texts = Pace(self, TEXTS_MS, self._renew_labels)
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(0)
        self._soon.timeout.connect(self._redraw)
        self.plot.hovered.connect(self._hovered)
        self.plot.box.resized.connect(self._resized)

    def reduce(self, snapshot: Snapshot, columns: int) -> Model:
        """Return the model of a snapshot for this number of pixel columns (override)."""
        raise NotImplementedError

    def show_model(self, model: Model | None) -> None:
        """Hand a model to the items; None empties the plot (override)."""
        raise NotImplementedError

    def show_texts(self, model: Model) -> None:
        """Show note, headings and what else is read rather than watched (override)."""

    def readout(self, model: Model, second: float) -> Sequence[Line]:
        """Return the read-out at a time in the audio (seconds)."""
        return ()

    def draw(self, snapshot: Snapshot) -> None:
        """Reduce to the plot's pixel columns and hand over."""
        self._soon.stop()
        self._model = self.reduce(snapshot, self.plot.plot_size()[0])
        self.show_model(self._model)
        moved, self._range = self.axis.visible != self._range, self.axis.visible
        self._texts.ask(snapshot.moving or moved)
        self._hovered(self.plot.hover_s)
        self.plot.show_drawing()

    def axis_changed(self) -> None:
        """Redraw once for all pending changes."""
        self._soon.start()

    def clear(self) -> None:
        """Show an empty plot."""
        super().clear()
        self._soon.stop()
        self._texts.drop()
        self._model = None
        self.overlay.set_events((), ())
        self.overlay.set_readout(())
        self.show_model(None)
        self.set_note("")
        self.plot.box.update()

    def apply_theme(self, tokens: Tokens) -> None:
        """Take over colours."""
        self.plot.apply_theme(tokens)
        self.overlay.apply_theme(tokens)

    def model(self) -> Model | None:
        """Return the updated model; None without a session."""
        if self._soon.isActive():
            self._redraw()
        return self._model

    def settle(self) -> None:
        """Bring texts up to date with the drawing."""
        super().settle()
        self._texts.flush()

    def _renew_labels(self) -> None:
        if self._model is not None:
            self.show_texts(self._model)

    def _redraw(self) -> None:
        self._soon.stop()
        if self.snapshot is not None:
            self.draw(self.snapshot)
        else:
            self.plot.show_drawing()

    def _resized(self, *_: object) -> None:
        if self.snapshot is not None:
            self._soon.start()

    def _hovered(self, second: float | None) -> None:
        model = self._model
        nothing = model is None or second is None
        self.overlay.set_readout(() if nothing else self.readout(model, second))  # type: ignore[arg-type]
