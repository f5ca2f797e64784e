"""A view of the stages of a stretch: of the selection, else since the last change, else of all shown.

All such views of an axis share one count of the stages.
"""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QCoreApplication

from app.model.playhead import Snapshot
from app.model.stages import stage_count_of
from app.model.time_axis import TimeAxis
from app.views.breakdown_model import SELECTION, SINCE_CHANGE, Stretch
from app.views.view import View


def scope_text(stretch: Stretch) -> str:
    """Of what the figures of a stretch are, in some words."""
    tr = partial(QCoreApplication.translate, "StageView")
    texts = {SELECTION: tr("selection"), SINCE_CHANGE: tr("since the last change")}
    return texts.get(stretch.scope, tr("start to cursor"))


class StageView(View):
    """A subclass overrides `draw`, which calls `ask`, and `show_stages`, which shows `count.found`."""

    drawn_every_ms = 400

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self.count = stage_count_of(axis)
        self.count.changed.connect(self.show_stages)
        self._drawn: tuple[tuple[float, float] | None, str | None] = None, None
        axis.stage_changed.connect(self._axis_moved)

    def ask(self, snapshot: Snapshot, stretch: Stretch) -> bool:
        """Have the stages of a stretch counted when they are due; whether they were shown at once."""
        self._soon.stop()
        self._drawn = self.axis.selected, self.axis.stage
        before = self.count.span
        grows = stretch.scope != SELECTION
        self.count.ask(snapshot, (stretch.first, stretch.last), grows=grows)
        return self.count.span != before

    def show_stages(self) -> None:
        """Show the stages counted last (override)."""
        raise NotImplementedError

    def axis_changed(self) -> None:
        """Only the selection of time and stage matters here."""
        if (self.axis.selected, self.axis.stage) != self._drawn:
            super().axis_changed()

    def clear(self) -> None:
        """Forget the stages."""
        super().clear()
        self.count.forget()

    def settle(self) -> None:
        """Complete the stages at once."""
        super().settle()
        self.count.settle()
