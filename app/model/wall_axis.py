"""The time at which frames were decoded, as a range that moves together with that of the decoded audio.

One frame may take a thousandth of another's time, and set-up has no frames at all. Selection, cursor and crosshair are
those of the audio axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from app.model.time_axis import NamedRange, TimeAxis
from profiler.clock import FRAME_S

if TYPE_CHECKING:
    from profiler.analysis.lod.spans import Timeline

Range = tuple[float, float]  # First and last second

HELD = 0.05
"""A window that follows the cursor keeps its width while that of its frames differs by less than this share: blocks do
not all take the same time, and of another width every column of pixels would be another."""


class WallAxis(TimeAxis):
    """Seconds since the first span of the session."""

    least_s = 2e-6
    empty_s = 1e-3

    def __init__(self, shared: TimeAxis) -> None:
        super().__init__()
        self._shared = shared
        self._timeline: Timeline | None = None
        self._passing_on = False
        self._origin_ns = 0
        self.snap_points = lambda first, last: [
            self.seconds_at(point) for point in shared.snap_points(self.audio_at(first), self.audio_at(last))
        ]
        shared.visible_changed.connect(self._shared_moved)
        shared.selection_changed.connect(self._shared_selected)
        shared.cursor_changed.connect(self._shared_cursor)
        shared.hover_changed.connect(self._shared_hovered)
        shared.named_changed.connect(self.named_changed)
        self.visible_changed.connect(self._moved)
        self.selection_changed.connect(self._selected_here)
        self.hover_changed.connect(self._hovered_here)

    def set_timeline(self, timeline: Timeline | None) -> None:
        """Take over how far the session has come; None: it was closed."""
        new = timeline is not self._timeline
        self._timeline = timeline
        if timeline is None:
            return
        self._origin_ns, end_ns = timeline.extent_ns
        self.end = max((end_ns - self._origin_ns) * 1e-9, self.least_s)
        self.following = False
        self._mode = "tail"
        self._shared_cursor(self._shared.cursor)
        if new or self._shared.following:
            self._shared_moved(*self._shared.visible)
        self._shared_selected(self._shared.selected)

    def seconds_at(self, audio_s: float) -> float:
        """When a second of audio was decoded; beyond what is there, at the mean speed so far."""
        timeline = self._timeline
        if timeline is None or not timeline.reached:
            return 0.0
        frames = audio_s / FRAME_S
        more = max(0.0, frames - timeline.reached) + min(0.0, frames)
        first, last = timeline.ns_at(np.array([0.0, timeline.reached]))
        per_frame = (last - first) / timeline.reached
        ns = float(timeline.ns_at(frames)) + more * float(per_frame)
        return (ns - self._origin_ns) * 1e-9

    def audio_at(self, second: float) -> float:
        """Which second of audio was decoded then."""
        if self._timeline is None:
            return 0.0
        return float(self._timeline.frames_at(self.ns_at(second))) * FRAME_S

    def ns_at(self, second: float) -> float:
        """The session's clock at a second of this axis."""
        return self._origin_ns + second * 1e9

    def named_ranges(self) -> Sequence[NamedRange]:
        """The ranges that are marked on the shared axis."""
        convert = self.seconds_at
        return [
            NamedRange(convert(one.first), convert(one.last), one.name, one.outlined)
            for one in self._shared.named_ranges()
        ]

    def fit(self) -> None:
        self._show(0.0, self.end)

    # -- each axis moves the other, which does not move it back --------------------------------

    def _pass_on(self, change: Callable[[], None]) -> None:
        if self._passing_on or self._timeline is None:
            return
        self._passing_on = True
        try:
            change()
        finally:
            self._passing_on = False

    def _shared_moved(self, first: float, last: float) -> None:
        begin, end = self.seconds_at(first), self.seconds_at(last)
        width = self.visible[1] - self.visible[0]
        if self._shared.windowed and abs(end - begin - width) < HELD * width:
            begin = end - width
        self._pass_on(lambda: self._show(begin, end))

    def _moved(self, first: float, last: float) -> None:
        self._pass_on(lambda: self._shared.set_visible(self.audio_at(first), self.audio_at(last)))

    def _shared_selected(self, selected: Range | None) -> None:
        self._pass_on(lambda: _select(self, selected, self.seconds_at))

    def _selected_here(self, selected: Range | None) -> None:
        self._pass_on(lambda: _select(self._shared, selected, self.audio_at))

    def _shared_cursor(self, audio_s: float) -> None:
        # What is recorded after the last frame is no future.
        self.cursor = self.end if audio_s >= self._shared.end else self.seconds_at(audio_s)
        self.cursor_changed.emit(self.cursor)

    def _shared_hovered(self) -> None:
        audio_s = self._shared.hover
        self._pass_on(lambda: self.set_hover(None if audio_s is None else self.seconds_at(audio_s)))

    def _hovered_here(self) -> None:
        second = self.hover
        self._pass_on(lambda: self._shared.set_hover(None if second is None else self.audio_at(second)))


def _select(axis: TimeAxis, selected: Range | None, convert: Callable[[float], float]) -> None:
    """Select on `axis` what is selected on the other, whose seconds `convert` turns into those of `axis`."""
    if selected is None:
        axis.clear()
    else:
        axis.select(*map(convert, selected))
