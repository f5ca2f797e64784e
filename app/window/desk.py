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
    from app.views.breakdown import BreakdownView
    from app.views.faster import FasterView
    from app.views.results import ResultsView
    from app.views.view import View


FORM_FROM = 1100  # Width below which the form is hidden, since the charts would be too narrow to read

WITH, WITHOUT = b"f", b"-"  # First byte of a saved layout: with the form, or without


class Columns(QSplitter):
    """The form next to the rest of the desk; in a narrow desk the form makes room for the charts."""

    def __init__(self, pipeline: Pipeline, desk: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal, desk)
        self._desk = desk
        self.form = PipelineForm(pipeline, self)
        self.rest = QWidget(self)
        self.setStretchFactor(1, 1)
        self._set_handles()
        self._narrow = False
        self.form_gave_way = False  # Whether the form would be shown if there were room
        self._by_hand = False  # Whether the user has resized the form
        self.splitterMoved.connect(self._moved_by_hand)

    def show_form(self, shown: bool) -> None:
        self.form.setVisible(shown and not self._narrow)
        self.form_gave_way = shown and self._narrow

    def save_width(self) -> QByteArray | None:
        return self.saveState() if self._by_hand else None

    def restore_width(self, saved: QByteArray) -> None:
        self._by_hand = self.restoreState(saved)
        self._set_handles()

    def share_width(self) -> None:
        """Give the form its share of the desk, whatever the user has made of it."""
        self._by_hand = False
        form = form_width(self._desk.width())
        self.setSizes([form, max(1, self._desk.width() - 2 * MARGIN - GAP - form)])

    def _set_handles(self) -> None:
        self.setHandleWidth(GAP)
        self.setChildrenCollapsible(False)

    def _moved_by_hand(self, *_: int) -> None:
        self._by_hand = True

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if (narrow := self._desk.width() < FORM_FROM) != self._narrow:
            self._narrow = narrow
            if narrow or self.form_gave_way:
                self.form_gave_way = narrow and not self.form.isHidden()
                self.form.setVisible(not narrow)
        if not self._by_hand:
            self.share_width()


class Desk(QWidget):
    """Form, views and transport over one playhead."""

    exported = Signal(str)  # Somebody wants a picture of this view

    def __init__(self, pipeline: Pipeline, playhead: Playhead, actions: Registry, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("desk")
        self.playhead = playhead
        # Top down: each time that a widget with children gets a parent, Qt styles all of them again.
        self.columns = Columns(pipeline, self)
        self.form, rest = self.columns.form, self.columns.rest
        self.docks = Docks(self._make, rest)
        self.views = MadeOnUse(lambda view_id: self.docks.docks[view_id].view)
        for front in (row.views[0] for column in columns(EXPLORE, VIEWS, False) for row in column):
            self.views[front]  # before the transport, where Tab goes after them
        self.transport = Transport(playhead, actions, rest)
        for dock in self.docks.docks.values():
            dock.woken.connect(self._wake)
        lay_out(QVBoxLayout(rest), (self.docks, 1), self.transport, spacing=GAP, margins=NONE)
        lay_out(QHBoxLayout(self), self.columns, margins=(MARGIN, MARGIN, MARGIN, MARGIN))
        self.arrange(EXPLORE)

    @property
    def breakdown(self) -> BreakdownView:
        return cast("BreakdownView", self.views["breakdown"])

    @property
    def faster(self) -> FasterView:
        return cast("FasterView", self.views["faster"])

    def arrange(self, name: str) -> None:
        self.columns.share_width()
        self.docks.arrange(name)
        self.columns.show_form(name in WITH_FORM)

    def save_layout(self) -> QByteArray:
        """What `restore_layout` takes: where the docks are, and whether the form is shown."""
        form = not self.form.isHidden() or self.columns.form_gave_way
        return QByteArray(WITH if form else WITHOUT).append(self.docks.save())

    def restore_layout(self, saved: QByteArray, begun_with: str = "") -> bool:
        """Take on a saved layout, which began as one that comes with the program; False if it is of no use."""
        mark = bytes(saved.first(1).data())
        if mark not in (WITH, WITHOUT) or not self.docks.restore(saved.sliced(1), begun_with):
            return False
        self.columns.show_form(mark == WITH)
        return True

    def _make(self, view_id: str) -> View:
        view = create(view_id, self.playhead.axis)
        if view_id in PICTURES:
            view.export = partial(self.exported.emit, view_id)
        self.playhead.changed.connect(view.update_snapshot)
        self.playhead.closed.connect(view.clear)
        return view

    def show_result(self, page: QWidget) -> None:
        cast("ResultsView", self.views["results"]).show_result(page)
        self.docks.open("results")

    def _wake(self, view: View) -> None:
        if (snapshot := self.playhead.snapshot()) is not None:
            view.update_snapshot(snapshot)
