"""Live tail or replay cursor over one session file; the views cannot tell the two apart.

A timer follows the file (``Session.refresh``), feeds what is new into a ``CostTrack`` and hands the views a frozen
``Snapshot``. Its cursor is the newest frame of a live session, or where a person put it. Figures are worked out once
for all views, after each reading, and whenever somebody wants them of another scope. Slow drawing slows the timer.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal

from app.model.pace import RedrawClock, SmoothCursor, single_shot
from app.model.time_axis import TimeAxis
from profiler.clock import FRAME_S

if TYPE_CHECKING:
    from app.model.desk_snapshot import DeskSnapshot
    from profiler.analysis.track import CostTrack
    from profiler.session.reader import Session

READ_S = 0.25  # The file is read, and the figures are renewed, this often; the cursor runs on meanwhile
DUTY = 0.1  # Share of the time that figures of a moving cursor may take
SPEEDS = (0.5, 1.0, 2.0, 4.0, 8.0)  # Replay speeds, relative to audio time


@dataclass(frozen=True)
class Snapshot:
    """What a view may draw: the figures of `desk`; charts over time up to the cursor, and what follows, dimmed."""

    session: Session
    track: CostTrack
    cursor_frame: int
    live: bool
    following: bool
    axis: TimeAxis
    desk: DeskSnapshot
    moving: bool = False  # Whether the cursor moves by itself
    reading: int | None = None  # Number of the reading of the file: with the same one the data are the same

    @property
    def end_frame(self) -> int:
        return int(self.track.n_frames)


class Playhead(QObject):
    """Follows one session at a time and emits ``changed(Snapshot)`` when there is more to show."""

    changed = Signal(object)
    opened = Signal(object)
    closed = Signal()
    ended = Signal(str)
    mode_changed = Signal()
    failed = Signal(str)

    def __init__(self, axis: TimeAxis, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.axis = axis
        self.session: Session | None = None
        self.track: CostTrack | None = None
        self.live = False  # Whether the session is being recorded
        self.following = False  # Whether the cursor is the newest frame of a live session
        self.playing = False  # Whether a replay moves the cursor
        self.speed = 1.0  # Replay speed relative to audio time
        self._position = 0.0
        self._reading = 0
        self._last_tick = self._last_read = 0.0
        self._fresh = False
        self._counted = False  # Whether the last turn worked out the figures
        self._desk: DeskSnapshot | None = None
        self._desk_key: tuple[tuple[object, ...], tuple[int, int]] = ((), (0, 0))
        self._desk_made = self._desk_took = 0.0
        self._smooth, self._redraws = SmoothCursor(), RedrawClock()
        self._again = single_shot(self, 0, self._emit)
        for signal in (axis.selection_changed, axis.scope_changed, axis.baseline_changed):
            signal.connect(self._again.start)
        self._timer = single_shot(self, 0, self._redraw)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)

        def snap_points(first_s: float, last_s: float) -> list[float]:
            from app.model.scope import snap_points

            return [] if self.session is None else snap_points(self.session, first_s, last_s)

        axis.snap_points = snap_points

    @property
    def n_frames(self) -> int:
        return 0 if self.track is None else int(self.track.n_frames)

    @property
    def cursor_frame(self) -> int:
        return min(int(self._position), self.n_frames)

    @property
    def path(self) -> Path | None:
        return None if self.session is None else Path(self.session.path)

    def snapshot(self) -> Snapshot | None:
        """Return what is to be drawn now, or None when no session is open."""
        if self.session is None or self.track is None:
            return None
        desk, moving = self._figures(self.session, self.track), self.following or self.playing
        of_now = self.cursor_frame, self.live, self.following
        return Snapshot(self.session, self.track, *of_now, self.axis, desk, moving, self._reading)

    def _figures(self, session: Session, track: CostTrack) -> DeskSnapshot:
        """The figures of the scope; while the cursor moves by itself, those worked out last may do."""
        from app.model.desk_snapshot import desk_snapshot
        from app.model.scope import scope_of

        axis = self.axis
        wanted = axis.scope, axis.selected_frames, axis.baseline_frames
        state = self.cursor_frame, self._reading
        if self._desk is not None and wanted == self._desk_key[0]:
            moving = self.following or self.playing
            if state == self._desk_key[1] or (moving and not self._figures_due()):
                return self._desk
        now = time.monotonic()
        scope = scope_of(session, self.cursor_frame, axis.scope, axis.selected_frames)
        self._desk = desk_snapshot(session, track, scope, axis.baseline_frames)
        self._desk_key = wanted, state
        self._desk_made, self._desk_took = now, time.monotonic() - now
        return self._desk

    def _figures_due(self) -> bool:
        age = time.monotonic() - self._desk_made
        old = self._reading != self._desk_key[1][1] if self.live else age >= READ_S
        return old and age >= self._desk_took / DUTY

    def open(self, path: str | Path) -> None:
        """Show a session, recorded or being recorded; SessionError when it cannot be read: what was shown stays."""
        from profiler.analysis.track import CostTrack
        from profiler.session.errors import SessionError
        from profiler.session.reader import Session

        session = Session.open(Path(path))
        track = CostTrack()
        try:
            track.update(session)
        except MemoryError as error:
            session.close()
            raise SessionError(f"{path}: there is not enough memory for this session") from error
        except Exception:  # whatever it was, nobody else would close the file
            session.close()
            raise
        self.close()
        self.session, self.track, self._desk = session, track, None
        self.live = self.following = session.state == "recording"
        self.playing = False
        self._position = float(track.n_frames)
        self.axis.reset(self.n_frames * FRAME_S, fit=not self.live)
        self._last_tick = self._last_read = time.monotonic()
        self._fresh = False
        self._reading += 1
        self._smooth, self._redraws = SmoothCursor(), RedrawClock()
        if self.live:
            self._timer.start(0)
        self.opened.emit(session)
        self.mode_changed.emit()
        self._emit()

    def close(self) -> None:
        """Let go of the session; anything still under way for it is dropped."""
        self._timer.stop()
        self._again.stop()
        if self.session is None:
            return
        session, self.session, self.track, self._desk = self.session, None, None, None
        self.live = self.following = self.playing = False
        self._position = 0.0
        session.close()
        self.closed.emit()

    def reopen(self) -> None:
        """Read the file afresh, keeping cursor, range, selection and stage (its writer is gone)."""
        path = self.path
        if path is None:
            return
        axis, was_following, position = self.axis, self.following, self._position
        place, visible, baseline = axis.place, axis.visible, axis.baseline
        self.open(path)
        if not was_following:
            self._position = min(position, float(self.n_frames))
        if place.mode is None:
            axis.set_visible(*visible)
        axis.choose_scope(place.scope)
        if place.selected is not None:
            axis.select(*place.selected)
        axis.choose_stage(place.stage)
        axis.pin(baseline)
        self._emit()

    def rename(self, path: Path) -> None:
        if self.session is not None:
            self.session.path = path
            self.mode_changed.emit()

    def go_live(self) -> None:
        """Return to the newest frame (of a finished session: to its end)."""
        self.playing = False
        self.following = self.live
        self._position = float(self.n_frames)
        self.axis.follow()
        self._moved()

    def toggle(self) -> None:
        """Space: pause or resume the view. The run itself goes on either way."""
        if self.following or self.playing:
            self.pause()
        else:
            self.play()

    def pause(self) -> None:
        self.following = self.playing = False
        self._moved()

    def play(self) -> None:
        """Move the cursor on at ``speed``; from the start when it stands at the end."""
        if self.session is None:
            return
        if self.live and self._position >= self.n_frames - 1:
            self.go_live()
            return
        if self._position >= self.n_frames:
            self._position = 0.0
        self.following, self.playing = False, True
        self.axis.follow_replay()
        self._last_tick = time.monotonic()
        self._timer.start(0)
        self._moved()

    def set_speed(self, speed: float) -> None:
        self.speed = speed
        self.mode_changed.emit()

    def seek(self, frame: float) -> None:
        """Put the cursor on ``frame``; a live view stops following, the run goes on."""
        self.following = False
        self._position = float(min(max(frame, 0.0), self.n_frames))
        self._moved()

    def stops(self) -> list[int]:
        """Return the frames that ``step`` visits: utterance starts, markers and both ends."""
        if self.session is None:
            return []
        starts = (u.first_frame for u in self.session.utterances)
        frames = {0, self.n_frames, *starts, *(m.frame for m in self.session.markers)}
        return sorted(f for f in frames if 0 <= f <= self.n_frames)

    def select_from(self, first: bool) -> None:
        """Let the selection begin (``first``) or end at the cursor; its other end stays, or is that of the data."""
        here = self.cursor_frame * FRAME_S
        begin, end = self.axis.selected or (0.0, self.n_frames * FRAME_S)
        if first:
            self.axis.select(here, end if end > here else self.n_frames * FRAME_S)
        else:
            self.axis.select(begin if begin < here else 0.0, here)

    def utterance_frames(self) -> tuple[int, int] | None:
        """The frames [first, last) of the utterance at the cursor; None where there is none."""
        at = max(self.cursor_frame - 1, 0)  # the last frame shown
        for utterance in self.session.utterances if self.session is not None else ():
            if utterance.first_frame <= at < utterance.end_frame:
                return utterance.first_frame, utterance.end_frame
        return None

    def select_utterance(self) -> None:
        if (frames := self.utterance_frames()) is not None:
            self.axis.select(frames[0] * FRAME_S, frames[1] * FRAME_S)

    def step(self, direction: int) -> None:
        """Seek the previous (−1) or next (+1) utterance start or marker."""
        stops = self.stops()
        if not stops:
            return
        here = self.cursor_frame
        at = bisect_left(stops, here) - 1 if direction < 0 else bisect_right(stops, here)
        self.playing = False
        self.seek(stops[min(max(at, 0), len(stops) - 1)])

    def tick(self) -> None:
        """Read what is new, move the cursor all the way, and draw if anything changed."""
        session = self.session
        self._read()
        if self.session is session:
            self._move(evenly=False)

    def _redraw(self) -> None:
        due = time.monotonic() - self._last_read >= READ_S
        if due and not self._fresh and self._read() and self.live:
            # Reading, figures and drawing have a turn of the event loop each: together they hold the window up.
            self._timer.start(0)
            return
        self._counted = not self._counted and (self.following or self.playing) and self._figures_due()
        if self._counted:
            self.snapshot()
            self._timer.start(0)
            return
        self._redraws.spent(time.process_time())
        self._move(evenly=True)
        if self.live or self.playing:
            self._timer.start(round(1e3 * self._redraws.wait_s(time.monotonic())))

    def _read(self) -> bool:
        """Read what is new; whether anything is."""
        session, track = self.session, self.track
        if session is None or track is None or not self.live:
            return False
        self._last_read = time.monotonic()
        try:
            fresh = session.refresh()
            if fresh:
                track.update(session)
        except (OSError, ValueError) as error:
            self.pause()
            self.live = False
            self.failed.emit(str(error))
            return False
        if session.state != "recording":
            end = float(track.n_frames)
            self._position = end if self.following else min(self._position, end)
            self.live = self.following = False
            self.axis.end_growing()
            self.mode_changed.emit()
            self.ended.emit(session.state)
            fresh = True
        # Whoever heard that the run is over may have opened another session.
        self._fresh |= fresh and self.session is session
        self._reading += fresh
        return fresh

    def _move(self, evenly: bool) -> None:
        track = self.track
        fresh, self._fresh = self._fresh, False
        if self.session is None or track is None:
            self._timer.stop()
            return
        now = time.monotonic()
        elapsed, self._last_tick = now - self._last_tick, now
        before = self.cursor_frame
        if self.following:
            if fresh:
                self._smooth.arrived(now, track.n_frames - self._position)
            ahead = self._smooth.moved(self._position, float(track.n_frames), elapsed)
            self._position = ahead if evenly else float(track.n_frames)
        elif self.playing:
            self._position += elapsed * self.speed / FRAME_S
            if self._position >= track.n_frames:
                self._position = float(track.n_frames)
                self.playing, self.following = False, self.live
                self.mode_changed.emit()
        if fresh or self.cursor_frame != before:
            self._emit()
        if not (self.live or self.playing):
            self._timer.stop()

    def _moved(self) -> None:
        self.mode_changed.emit()
        self._emit()

    def _emit(self) -> None:
        self._again.stop()
        snapshot = self.snapshot()
        if snapshot is None:
            return
        cursor_s = snapshot.cursor_frame * FRAME_S
        # What was read and is not shown yet is not there for a view that follows.
        self.axis.set_data(cursor_s, cursor_s if self.following else self.n_frames * FRAME_S)
        self.changed.emit(snapshot)
