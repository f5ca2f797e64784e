"""The desk: form on the left, views in two columns, transport below them.

It places cards and passes them snapshots. The registry defines the views, the actions define what a
click does. The desk also works without a window, for a picture of it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QSplitter, QVBoxLayout, QWidget

from app.model.pipeline import Pipeline
from app.model.playhead import Playhead
from app.views import VIEWS, create
from app.window.actions.actions import Registry
from app.window.actions.charts import SCALE
from app.window.bars.transport import Transport
from app.window.form.form import PipelineForm
from app.window.skeleton import GAP, MARGIN, RIGHT_BOUNDS, column_widths

if TYPE_CHECKING:
    from app.model.playhead import Snapshot
    from app.views.breakdown import BreakdownView
    from app.views.view import View


FORM_FROM = 940
"""Width below which charts beside form and breakdown would be too narrow to read: the form waits in *Panels* then."""


def _splitter(orientation: Qt.Orientation) -> QSplitter:
    splitter = QSplitter(orientation)
    splitter.setHandleWidth(GAP)
    splitter.setChildrenCollapsible(False)
    return splitter


def _scrolled(widget: QWidget) -> QScrollArea:
    """Let a column scroll if the window is too low for its charts, instead of flattening them."""
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setFrameShape(QScrollArea.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.viewport().setAutoFillBackground(False)
    area.setWidget(widget)
    return area


class Desk(QWidget):
    """Form, views and transport over one playhead."""

    def __init__(
        self,
        pipeline: Pipeline,
        playhead: Playhead,
        actions: Registry,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("desk")
        self.playhead = playhead
        self.form = PipelineForm(pipeline)
        self.transport = Transport(playhead, actions)
        self.views: dict[str, View] = {}
        self.columns = _splitter(Qt.Orientation.Horizontal)
        self._stacks = {
            "middle": _splitter(Qt.Orientation.Vertical),
            "right": _splitter(Qt.Orientation.Vertical),
        }
        for view_id, entry in VIEWS.items():
            view = create(view_id, playhead.axis)
            view.setMinimumHeight(entry.height)
            stack = self._stacks[entry.column]
            stack.addWidget(view)
            stack.setStretchFactor(stack.count() - 1, entry.stretch)
            self.views[view_id] = view
            playhead.changed.connect(partial(self._update, view))
            playhead.closed.connect(view.clear)
        self.views["cost"].add_menu(self.tr("Scale"), [actions[id] for id in SCALE])
        middle = QWidget()
        column = QVBoxLayout(middle)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(GAP)
        column.addWidget(_scrolled(self._stacks["middle"]), 1)
        column.addWidget(self.transport)
        self.columns.addWidget(self.form)
        self.columns.addWidget(middle)
        right = _scrolled(self._stacks["right"])
        right.setMinimumWidth(RIGHT_BOUNDS[0])
        self.columns.addWidget(right)
        self.columns.setStretchFactor(1, 1)
        self.columns.splitterMoved.connect(self._moved_by_hand)
        self._by_hand = self._narrow = self._form_gave_way = False
        layout = QHBoxLayout(self)
        layout.setContentsMargins(MARGIN, MARGIN, MARGIN, MARGIN)
        layout.addWidget(self.columns)
        self.reset_layout()

    def reset_layout(self) -> None:
        """Restore the default sizes, with every view shown."""
        self._by_hand = False
        self._share_width()
        for name, stack in self._stacks.items():
            shares = [entry.stretch for entry in VIEWS.values() if entry.column == name]
            stack.setSizes([share * 100 for share in shares])
        self.form.setVisible(not self._narrow)
        self._form_gave_way = self._narrow
        for view in self.views.values():
            view.show()

    def _moved_by_hand(self, *_: int) -> None:
        self._by_hand = True

    def _share_width(self) -> None:
        self.columns.setSizes(column_widths(self.width()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Redistribute the width, unless the user has resized the columns; the form makes room for the charts."""
        super().resizeEvent(event)
        if (narrow := self.width() < FORM_FROM) != self._narrow:
            self._narrow = narrow
            if narrow or self._form_gave_way:
                self._form_gave_way = narrow and not self.form.isHidden()
                self.form.setVisible(not narrow)
        if not self._by_hand:
            self._share_width()

    @property
    def breakdown(self) -> BreakdownView:
        """The view whose stages can be explained."""
        from app.views.breakdown import BreakdownView

        view = self.views["breakdown"]
        assert isinstance(view, BreakdownView)
        return view

    def show_view(self, view_id: str, shown: bool) -> None:
        """Show or hide one view; a hidden view costs nothing."""
        view = self.views[view_id]
        view.setVisible(shown)
        snapshot = self.playhead.snapshot()
        if shown and snapshot is not None:
            view.update_snapshot(snapshot)

    def is_shown(self, view_id: str) -> bool:
        """Whether a view is shown."""
        return not self.views[view_id].isHidden()

    def save_layout(self) -> dict[str, QByteArray]:
        """Return the sizes of columns and cards, for saving."""
        parts = dict(self._stacks)
        if self._by_hand:
            parts["columns"] = self.columns
        return {f"layout/{name}/{part.count()}": part.saveState() for name, part in parts.items()}

    def layout_keys(self) -> list[str]:
        """Return the names under which ``save_layout`` may store its parts."""
        parts = {"columns": self.columns, **self._stacks}
        return [f"layout/{name}/{part.count()}" for name, part in parts.items()]

    def restore_layout(self, saved: dict[str, QByteArray]) -> None:
        """Restore saved sizes; those that no longer fit keep their defaults."""
        parts = {"columns": self.columns, **self._stacks}
        for name, part in parts.items():
            state = saved.get(f"layout/{name}/{part.count()}")
            if state is not None:
                part.restoreState(state)
                self._by_hand = self._by_hand or part is self.columns
                part.setHandleWidth(GAP)
                part.setChildrenCollapsible(False)

    @staticmethod
    def _update(view: View, snapshot: Snapshot) -> None:
        if not view.isHidden():
            view.update_snapshot(snapshot)
