"""The stages of a range of frames, counted a little at a time, once for all views of an axis."""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from PySide6.QtCore import QObject, Signal

from app.model.pace import Slices, single_shot

if TYPE_CHECKING:
    from app.model.playhead import Snapshot
    from app.model.time_axis import TimeAxis
    from profiler.analysis.breakdown import Breakdown

EVERY_S = 0.7  # While live, stages are counted at most this often: counting goes through every span
DUTY = 0.05  # Share of the time that counting the stages of a growing range may take

Span = tuple[int, int]


class StageCount(QObject):
    """The stages of frames [first, last): `found`, of `span`. `changed` says that there are others."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.found: Breakdown | None = None
        self.span: Span | None = None
        self._asked: tuple[Snapshot, Span, bool] | None = None
        self._slices: Slices[Breakdown | None] = Slices(self, self._take)
        self._counting: Span | None = None
        self._at = 0.0
        self._took_s = 0.0
        self._pause_s = EVERY_S
        self._soon = single_shot(self, int(EVERY_S * 1000), self._again)

    def ask(self, snapshot: Snapshot, span: Span, grows: bool) -> None:
        """Count the stages of `span` when they are due; `grows`: the range is one whose end moves by itself."""
        self._asked = snapshot, span, grows
        if span in (self._counting, None if self._slices.busy else self.span):
            return
        if self._slices.busy and snapshot.moving:
            return
        by_itself = grows and self.span is not None and span[0] == self.span[0]
        # A selection being dragged is updated as fast as counting allows, a growing tail from time to time.
        pause = self._pause_s if by_itself else self._took_s
        if (waited := time.monotonic() - self._at) < pause:
            # A moving cursor asks again soon anyway.
            if not (snapshot.moving or self._soon.isActive()):
                self._soon.start(int((pause - waited) * 1000) + 1)
            return
        self._begin(snapshot, span)

    def settle(self) -> None:
        """Compute the requested breakdown now, without waiting for the minimum interval."""
        self._slices.finish()
        self._at = -math.inf
        if self._asked is not None:
            snapshot, span, _ = self._asked
            if span != self.span:
                self._begin(snapshot, span)
            self._slices.finish()

    def forget(self) -> None:
        """Drop everything: the session was closed."""
        self._soon.stop()
        self._slices.drop()
        self.found = self.span = self._asked = self._counting = None
        self._at = 0.0

    def _begin(self, snapshot: Snapshot, span: Span) -> None:
        self._counting = span
        self._slices.start(_counted(snapshot, span))
        if not snapshot.moving:
            self._slices.finish()

    def _take(self, breakdown: Breakdown | None) -> None:
        self.found, self.span, self._counting = breakdown, self._counting, None
        self._at = time.monotonic()
        self._took_s = self._slices.took_s
        self._pause_s = max(EVERY_S, self._took_s / DUTY)
        self.changed.emit()

    def _again(self) -> None:
        if self._asked is not None:
            self._at = -math.inf
            self.ask(*self._asked)


def _counted(snapshot: Snapshot, span: Span) -> Generator[None, None, Breakdown | None]:
    from profiler.analysis.breakdown import breakdown_in_steps

    if span[1] <= span[0]:
        return None
    return (yield from breakdown_in_steps(snapshot.session, snapshot.track, *span))


_counts: WeakKeyDictionary[TimeAxis, StageCount] = WeakKeyDictionary()


def stage_count_of(axis: TimeAxis) -> StageCount:
    """The count that all views of an axis share."""
    found = _counts.get(axis)
    if found is None:
        found = _counts[axis] = StageCount(axis)
    return found
