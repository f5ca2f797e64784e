"""The desk: form on the left, the views as docks to its right, transport below them.

It places cards and passes them snapshots. The registry defines the views, the actions define what a
click does. The desk also works without a window, for a picture of it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QByteArray, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSplitter, QVBoxLayout, QWidget

from app.layout import NONE, MadeOnUse, lay_out
from app.model.pipeline import Pipeline
from app.model.playhead import Playhead
from app.views import PICTURES, VIEWS, create
from app.window.actions.actions import Registry
from app.window.bars.transport import Transport
from app.window.docks import Docks
from app.window.first_window import GAP, MARGIN, form_width
from app.window.form.form import PipelineForm
from app.window.layouts import EXPLORE, WITH_FORM, columns

if TYPE_CHECKING:
    from app.model.playhead import Snapshot
    from app.views.breakdown import BreakdownView
    from app.views.faster import FasterView
    from app.views.results import ResultsView
    from app.views.view import View


FORM_FROM = 1100  # Width below which the form is hidden, since the charts would be too narrow to read

WITH, WITHOUT = b"f", b"-"  # First byte of a saved layout: with the form, or without


class Desk(QWidget):
    """Form, views and transport over one playhead."""

    exported = Signal(str)  # Somebody wants a picture of this view

    def __init__(self, pipeline: Pipeline, playhead: Playhead, actions: Registry, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("desk")
        self.playhead = playhead
        # Top down: each time that a widget with children gets a parent, Qt styles all of them again.
        self.columns = QSplitter(Qt.Orientation.Horizontal, self)
        self.form = PipelineForm(pipeline, self.columns)
        beside = QWidget(self.columns)
        self.docks = Docks(self._make, beside)
        self.views = MadeOnUse(lambda view_id: self.docks.docks[view_id].view)
        for front in (row.views[0] for column in columns(EXPLORE, VIEWS, False) for row in column):
            self.views[front]  # before the transport, where Tab goes after them
        self.transport = Transport(playhead, actions, beside)
        for dock in self.docks.docks.values():
            dock.woken.connect(self._wake)
        lay_out(QVBoxLayout(beside), (self.docks, 1), self.transport, spacing=GAP, margins=NONE)
        self.columns.setStretchFactor(1, 1)
        self._set_handles()
        self.columns.splitterMoved.connect(self._moved_by_hand)
        self._by_hand = self._narrow = self._form_gave_way = False
        lay_out(QHBoxLayout(self), self.columns, margins=(MARGIN, MARGIN, MARGIN, MARGIN))
        self.arrange(EXPLORE)

    @property
    def breakdown(self) -> BreakdownView:
        return cast("BreakdownView", self.views["breakdown"])

    @property
    def faster(self) -> FasterView:
        return cast("FasterView", self.views["faster"])

    def arrange(self, name: str) -> None:
        self._by_hand = False
        self._share_width()
        self.docks.arrange(name)
        self._show_form(name in WITH_FORM)

    def save_layout(self) -> QByteArray:
        """What `restore_layout` takes: where the docks are, and whether the form is shown."""
        form = not self.form.isHidden() or self._form_gave_way
        return QByteArray(WITH if form else WITHOUT).append(self.docks.save())

    def restore_layout(self, saved: QByteArray, begun_with: str = "") -> bool:
        """Take on a saved layout, which began as one that comes with the program; False if it is of no use."""
        mark = bytes(saved.first(1).data())
        if mark not in (WITH, WITHOUT) or not self.docks.restore(saved.sliced(1), begun_with):
            return False
        self._show_form(mark == WITH)
        return True

    def save_width(self) -> QByteArray | None:
        return self.columns.saveState() if self._by_hand else None

    def restore_width(self, saved: QByteArray) -> None:
        self._by_hand = self.columns.restoreState(saved)
        self._set_handles()

    def _set_handles(self) -> None:
        self.columns.setHandleWidth(GAP)
        self.columns.setChildrenCollapsible(False)

    def _show_form(self, shown: bool) -> None:
        self.form.setVisible(shown and not self._narrow)
        self._form_gave_way = shown and self._narrow

    def _moved_by_hand(self, *_: int) -> None:
        self._by_hand = True

    def _share_width(self) -> None:
        form = form_width(self.width())
        self.columns.setSizes([form, max(1, self.width() - 2 * MARGIN - GAP - form)])

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Redistribute the width, unless the user has resized the form; it makes room for the charts."""
        super().resizeEvent(event)
        if (narrow := self.width() < FORM_FROM) != self._narrow:
            self._narrow = narrow
            if narrow or self._form_gave_way:
                self._form_gave_way = narrow and not self.form.isHidden()
                self.form.setVisible(not narrow)
        if not self._by_hand:
            self._share_width()

    def _make(self, view_id: str) -> View:
        view = create(view_id, self.playhead.axis)
        if view_id in PICTURES:
            view.export = partial(self.exported.emit, view_id)
        self.playhead.changed.connect(partial(self._update, view))
        self.playhead.closed.connect(view.clear)
        return view

    def show_result(self, page: QWidget) -> None:
        cast("ResultsView", self.views["results"]).show_result(page)
        self.docks.open("results")

    @staticmethod
    def _update(view: View, snapshot: Snapshot) -> None:
        if not view.asleep:
            view.update_snapshot(snapshot)

    def _wake(self, view: View) -> None:
        if (snapshot := self.playhead.snapshot()) is not None:
            view.update_snapshot(snapshot)
