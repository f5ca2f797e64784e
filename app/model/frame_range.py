"""What the figures of a chart are of: the frames selected, or else those in view. One rule, said in the same words."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from PySide6.QtCore import QCoreApplication

from profiler.frames import FRAME_S
from profiler.plain import clock

tr = partial(QCoreApplication.translate, "FrameRange")


class FrameRange(NamedTuple):
    """Frames [first, last) that figures are of, none of them after the cursor.

    `selected`: somebody selected them. `whole`: they are all that there is before the cursor.
    """

    first: int
    last: int
    selected: bool
    whole: bool

    @property
    def frames(self) -> int:
        """How many there are."""
        return max(0, self.last - self.first)

    @property
    def extent(self) -> str:
        """Which range, and from when to when: the begin of a sentence."""
        digits = 2 if self.selected else 0
        text = tr("In the selection, {0} to {1},") if self.selected else tr("In view, {0} to {1},")
        return text.format(*(clock(frame * FRAME_S, digits) for frame in self[:2]))

    @property
    def short(self) -> str:
        """Which range, and how long it is, unless that is all."""
        if self.whole:
            return tr("all selected") if self.selected else tr("start to cursor")
        text = tr("selection {0} s") if self.selected else tr("in view {0} s")
        seconds = self.frames * FRAME_S
        return text.format(f"{seconds:.1f}" if seconds >= 1 else f"{seconds:.2f}")


def range_of_figures(left: float, right: float, end: int, selected: tuple[int, int] | None) -> FrameRange:
    """The frames that figures are of, with `left` to `right` (frames) in view and the cursor at frame `end`."""
    first, last = selected or (round(max(left, 0.0)), round(max(right, 0.0)))
    return FrameRange(min(first, end), min(last, end), selected is not None, first <= 0 < end <= last)
