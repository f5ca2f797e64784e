"""The one time range and the one selection, of time and of a stage, that every view of the desk shares.

What is selected is the scope of all figures (`app.model.scope`); without a selection, its kind is chosen here. Time is
seconds of decoded audio: frame number of the run × 10 ms. No view keeps a range of its own: a zoom is one in all.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, NamedTuple

from PySide6.QtCore import QObject, Signal

from profiler.clock import FRAME_S

MINIMUM_SPAN_S = 0.05  # Narrowest visible range: five frames; below that a chart of frames has nothing to say
WINDOW_S = 20.0  # Of the window that follows the cursor: some utterances, and their words have room
AHEAD = 0.2  # Share of that window that lies after the cursor of a replay: what comes is known there
EMPTY_SPAN_S = 10.0  # Range shown before there is any data, and the least that is shown of a run just started
GROWTH_S = (EMPTY_SPAN_S, 15.0, WINDOW_S)  # Ranges of a young run: growing by frames, all would move
Kind = Literal["live", "change", "range", "whole"]  # Of scope: the last seconds, since a change, a range, the run
LIVE: Final = "live"
CHANGE: Final = "change"
RANGE: Final = "range"
WHOLE: Final = "whole"
_Mode = Literal["grow", "fit", "tail"]  # All of a young run, then `WINDOW_S`; everything; a fixed width


class AxisState(NamedTuple):
    """What an axis shows: how it follows, None where it does not, its range, its selection, stage and kind of scope."""

    mode: _Mode | None
    visible: tuple[float, float]  # Of an axis that moves by itself, 0 and its width where that is fixed
    selected: tuple[float, float] | None
    stage: str | None = None
    scope: Kind | None = None


class NamedRange(NamedTuple):
    """Seconds of an axis that are marked, with a name; `outlined`: as the baseline is."""

    first: float
    last: float
    name: str
    outlined: bool = False


class TimeAxis(QObject):
    """Visible range, selection and cursor, in seconds of decoded audio, and the stage that is chosen.

    While it is `following`, it moves by itself to keep the cursor in view; a pan, or a zoom away from the cursor, ends
    that, and `fit` or `follow` starts it again.
    """

    least_s = MINIMUM_SPAN_S  # Narrowest visible range
    empty_s = EMPTY_SPAN_S  # Range shown before there is any data

    visible_changed = Signal(float, float)
    selection_changed = Signal(object)
    scope_changed = Signal()
    stage_changed = Signal()
    cursor_changed = Signal(float)
    windowed_changed = Signal()
    following_changed = Signal()
    hover_changed = Signal()
    named_changed = Signal()
    baseline_changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.visible = (0.0, self.empty_s)  # First and last second in view
        self.selected: tuple[float, float] | None = None  # Selected range in seconds, ascending
        self.scope: Kind | None = None  # Without a selection; None: since the last change, if there is one
        self.stage: str | None = None  # Name of the stage or group that somebody chose
        self.cursor = 0.0  # Second up to which data is shown
        self.end = 0.0  # Length of the session in seconds, as far as it is known
        self.following = True
        self._mode: _Mode = "grow"
        self._chosen = False
        self._was_windowed = self.windowed
        self.hover: float | None = None  # Second under the mouse in any of the charts, None where it is in none
        self.snap_points: Callable[[float, float], Sequence[float]] = lambda first, last: ()  # For a selection
        self._named: tuple[NamedRange, ...] = ()
        self.pointed: tuple[float, float] | None = None  # Where a row of a table leads to: marked, no scope of anything
        self.baseline: tuple[float, float] | None = None  # What figures of the selection are compared with

    def set_hover(self, second: float | None) -> None:
        if second != self.hover:
            self.hover = second
            self.hover_changed.emit()

    def set_named(self, ranges: Iterable[NamedRange]) -> None:
        self._named = tuple(ranges)
        self.named_changed.emit()

    def named_ranges(self) -> Sequence[NamedRange]:
        """The ranges that are marked, in seconds of this axis."""
        baseline = [] if self.baseline is None else [NamedRange(*self.baseline, self.tr("baseline"), outlined=True)]
        pointed = [] if self.pointed is None else [NamedRange(*self.pointed, self.tr("the place chosen in the table"))]
        return [*self._named, *baseline, *pointed]

    def point_at(self, pointed: tuple[float, float] | None, around: float = 0.0) -> None:
        """Mark a place, in view with `around` times its length on both sides; figures stay what they are of."""
        if pointed is not None:
            self.reveal(*pointed, around)
        if pointed != self.pointed:
            self.pointed = pointed
            self.named_changed.emit()

    def pin(self, baseline: tuple[float, float] | None) -> None:
        """Compare the figures of the selection with those of a range; None: with nothing."""
        if baseline != self.baseline:
            self.baseline = baseline
            self.named_changed.emit()
            self.baseline_changed.emit()

    @property
    def windowed(self) -> bool:
        return self.following and self._mode != "fit"

    @property
    def baseline_frames(self) -> tuple[int, int] | None:
        """Baseline as (first frame, exclusive last frame), whole frames, or None; so are the next two."""
        return _frames(self.baseline)

    @property
    def pointed_frames(self) -> tuple[int, int] | None:
        return _frames(self.pointed)

    @property
    def selected_frames(self) -> tuple[int, int] | None:
        return _frames(self.selected)

    @property
    def place(self) -> AxisState:
        """Range, selection, stage and scope; the same one however far an axis that follows has moved."""
        if not self.following:
            return AxisState(None, self.visible, self.selected, self.stage, self.scope)
        width = round(self.visible[1] - self.visible[0], 6) if self._mode == "tail" else 0.0
        return AxisState(self._mode, (0.0, width), self.selected, self.stage, self.scope)

    def go_to(self, place: AxisState) -> None:
        """Take on all of a place."""
        mode, visible, selected, stage, scope = place
        self._follow(mode or "tail", following=mode is not None)
        if mode == "tail":
            visible = self.cursor - visible[1], self.cursor
        if mode in (None, "tail"):
            self._show(*visible)
        if mode is not None:
            self._follow_cursor()
        if selected is None or scope != self.scope:
            self.choose_scope(scope)
        if selected is not None:
            self.select(*selected)
        self.choose_stage(stage)

    def reset(self, end: float = 0.0, *, fit: bool = False) -> None:
        """Forget range, selection and stage: another session of ``end`` seconds is shown."""
        self.end = max(0.0, end)
        self.cursor = self.end
        self._mode = "fit" if fit else "grow"
        self._chosen = False
        self._set_following(True)
        self.choose_scope(None)
        self.choose_stage(None)
        self.point_at(None)
        self.pin(None)
        self._follow_cursor()
        self.cursor_changed.emit(self.cursor)

    def set_data(self, cursor: float, end: float) -> None:
        """Tell the axis how far data is shown (``cursor``) and how long the session is."""
        self.end = max(end, 0.0)
        moved = cursor != self.cursor
        self.cursor = cursor
        if self.following:
            self._follow_cursor()
        if moved:
            self.cursor_changed.emit(cursor)

    def set_visible(self, t0: float, t1: float) -> None:
        self._follow("tail", following=self.following and t0 <= self.cursor <= t1 and t1 >= self.end)
        self._show(t0, t1)

    def zoom(self, factor: float, at: float | None = None) -> None:
        """Widen (``factor`` > 1) or narrow the range about ``at`` (default: cursor or middle)."""
        if not (math.isfinite(factor) and factor > 0):
            raise ValueError(f"zoom factor must be a positive number, not {factor!r}")
        t0, t1 = self.visible
        tail = self.following and at is None
        if at is None:
            at = min(t1, self.cursor) if tail else (t0 + t1) / 2
        new0, new1 = at - (at - t0) * factor, at + (t1 - at) * factor
        if not tail:
            self.set_visible(new0, new1)
        elif new0 <= 0.0 and new1 >= self.end:
            self.fit()
        else:
            self._follow("tail")
            self._show(new0, new1)
            self._follow_cursor()

    def pan(self, fraction: float) -> None:
        """Move the range by ``fraction`` of its width; the user now leads, following ends."""
        t0, t1 = self.visible
        shift = (t1 - t0) * fraction
        self._follow("tail", following=False)
        self._show(t0 + shift, t1 + shift)

    def reveal(self, first: float, last: float, around: float) -> None:
        """Have a range in view: where it is not, show it with `around` times its length on both sides."""
        if not self.visible[0] <= first < last <= self.visible[1]:
            more = around * (last - first)
            self.set_visible(first - more, last + more)

    def go_to_range(self, first: float, last: float, around: float) -> None:
        """Select a range, and have it in view as `reveal` does."""
        self.reveal(first, last, around)
        self.select(first, last)

    def fit(self) -> None:
        self._follow("fit")
        self._follow_cursor()

    def end_growing(self) -> None:
        """Show all of a session that has no more to come, unless somebody chose a range."""
        if self._mode == "grow":
            self._mode = "fit"

    def follow(self) -> None:
        self._set_following(True)
        self._follow_cursor()

    def follow_window(self) -> None:
        """Show a window of `WINDOW_S` about the cursor and move it along."""
        self._mode = "tail"
        self._set_following(True)
        self._show(self.cursor - WINDOW_S, self.cursor)
        self._follow_cursor()

    def follow_replay(self) -> None:
        if not self._chosen and self.end > WINDOW_S:
            self.follow_window()

    def select(self, a: float, b: float) -> None:
        """Select a time range; the order of the ends does not matter."""
        low, high = sorted((max(0.0, a), max(0.0, b)))
        if self.end > 0:
            low, high = min(low, self.end), min(high, self.end)
        selected = (low, high) if high - low >= FRAME_S / 2 else None
        if selected != self.selected:
            self.selected = selected
            self.selection_changed.emit(selected)

    def snapped(self, second: float, reach: float) -> float:
        """The snap point nearest to `second`, at most `reach` seconds away; `second` itself where there is none."""
        near = self.snap_points(second - reach, second + reach)
        return min(near, key=lambda at: abs(at - second), default=second)

    def clear(self) -> None:
        self.select(0.0, 0.0)

    def choose_scope(self, kind: Kind | None) -> None:
        """Have all figures be of this kind of scope, and no longer of a selection; a range: of what is in view."""
        if kind == RANGE:
            self.select(*self.visible)
            return
        changed, self.scope = kind != self.scope, kind
        self.clear()
        if changed:
            self.scope_changed.emit()

    def choose_stage(self, name: str | None) -> None:
        if name != self.stage:
            self.stage = name
            self.stage_changed.emit()

    def _follow(self, mode: _Mode, following: bool = True) -> None:
        self._mode, self._chosen = mode, True
        self._set_following(following)

    def _set_following(self, following: bool) -> None:
        changed, self.following = following != self.following, following
        if changed:
            self.following_changed.emit()
        if self.windowed != self._was_windowed:
            self._was_windowed = self.windowed
            self.windowed_changed.emit()

    def _follow_cursor(self) -> None:
        t0, t1 = self.visible
        if self._mode == "fit":
            self._show(0.0, max(self.end, self.least_s))
        elif self._mode == "grow":
            room = next((s for s in GROWTH_S if s >= self.cursor), WINDOW_S)
            start = max(0.0, self.cursor - WINDOW_S)
            self._show(start, start + room)
        elif self.cursor >= self.end:
            self._show(self.cursor - (t1 - t0), self.cursor)
        else:
            # Forwards it scrolls; a cursor still left of its place, or set back, is only kept in view.
            place = t0 + (1.0 - AHEAD) * (t1 - t0)
            shift = max(0.0, self.cursor - place) - max(0.0, t0 - self.cursor)
            self._show(t0 + shift, t1 + shift)

    def _show(self, t0: float, t1: float) -> None:
        """Show [t0, t1], kept within the session and no narrower than ``self.least_s``."""
        limit = max(self.end, self.least_s if self._mode == "fit" else self.empty_s)
        if self._mode == "grow":
            limit = max(limit, t1)
        span = min(max(t1 - t0, self.least_s), limit)
        middle = (t0 + t1) / 2
        low = min(max(0.0, middle - span / 2), limit - span)
        visible = (low, low + span)
        if visible != self.visible:
            self.visible = visible
            self.visible_changed.emit(*visible)


def _frames(seconds: tuple[float, float] | None) -> tuple[int, int] | None:
    if seconds is None:
        return None
    first = round(seconds[0] / FRAME_S)
    return first, max(first + 1, round(seconds[1] / FRAME_S))
