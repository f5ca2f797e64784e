"""The desk itself: form at the left, views in two columns, transport below them.

It places cards and hands them snapshots; which views there are is the registry's business, and what
happens on a click is the actions'. It can stand without a window, as a picture of it does.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtWidgets import QHBoxLayout, QSplitter, QVBoxLayout, QWidget

from app.actions import Registry
from app.form import PipelineForm
from app.pipeline import Pipeline
from app.playhead import Playhead
from app.transport import Transport
from app.views import VIEWS, create

if TYPE_CHECKING:
    from app.playhead import Snapshot
    from app.views.view import View

GAP = 8
"""Pixels between cards, which are also the handles that move them."""

FORM_SHARE, MIDDLE_SHARE, RIGHT_SHARE = 262, 880, 400
"""Widths of the three columns at 1600 pixels; the middle one takes what there is beyond."""

MINIMUM_VIEW = 96
"""Least height of a view; a lower window scrolls nothing away, it only makes charts flat."""


def _splitter(orientation: Qt.Orientation) -> QSplitter:
    splitter = QSplitter(orientation)
    splitter.setHandleWidth(GAP)
    splitter.setChildrenCollapsible(False)
    return splitter


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
            view.setMinimumHeight(MINIMUM_VIEW)
            stack = self._stacks[entry.column]
            stack.addWidget(view)
            stack.setStretchFactor(stack.count() - 1, entry.stretch)
            self.views[view_id] = view
            playhead.changed.connect(partial(self._update, view))
            playhead.closed.connect(view.clear)
        middle = QWidget()
        column = QVBoxLayout(middle)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(GAP)
        column.addWidget(self._stacks["middle"], 1)
        column.addWidget(self.transport)
        self.columns.addWidget(self.form)
        self.columns.addWidget(middle)
        self.columns.addWidget(self._stacks["right"])
        self.columns.setStretchFactor(1, 1)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(10, 10, 10, 10)
        layout.addWidget(self.columns)
        self.reset_layout()

    def reset_layout(self) -> None:
        """Bring back the shipped sizes, with every view shown."""
        self.columns.setSizes([FORM_SHARE, MIDDLE_SHARE, RIGHT_SHARE])
        for name, stack in self._stacks.items():
            shares = [entry.stretch for entry in VIEWS.values() if entry.column == name]
            stack.setSizes([share * 100 for share in shares])
        self.form.show()
        for view in self.views.values():
            view.show()

    def show_view(self, view_id: str, shown: bool) -> None:
        """Show or hide one view; one that is hidden costs nothing."""
        view = self.views[view_id]
        view.setVisible(shown)
        snapshot = self.playhead.snapshot()
        if shown and snapshot is not None:
            view.update_snapshot(snapshot)

    def is_shown(self, view_id: str) -> bool:
        """Tell whether a view is shown."""
        return not self.views[view_id].isHidden()

    def save_layout(self) -> dict[str, QByteArray]:
        """Return the sizes of columns and cards, to be remembered."""
        parts = {"columns": self.columns, **self._stacks}
        return {f"layout/{name}/{part.count()}": part.saveState() for name, part in parts.items()}

    def layout_keys(self) -> list[str]:
        """Return the names under which ``save_layout`` keeps its parts."""
        return list(self.save_layout())

    def restore_layout(self, saved: dict[str, QByteArray]) -> None:
        """Take up remembered sizes; what does not fit any more is left as shipped."""
        parts = {"columns": self.columns, **self._stacks}
        for name, part in parts.items():
            state = saved.get(f"layout/{name}/{part.count()}")
            if state is not None:
                part.restoreState(state)
                part.setHandleWidth(GAP)
                part.setChildrenCollapsible(False)

    @staticmethod
    def _update(view: View, snapshot: Snapshot) -> None:
        if not view.isHidden():
            view.update_snapshot(snapshot)
