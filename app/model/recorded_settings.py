"""The settings of the scope of a recording: what form and toggles show while one is looked at, unchangeable.

A session that another process records is a recording, too. A person may ask for the settings of the next run instead,
and goes back to the recording by moving its cursor.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from PySide6.QtCore import QObject, Signal

from app.model.configurations import settings_before
from app.model.pipeline import Pipeline
from app.model.playhead import Playhead
from pipelines import config as settings
from pipelines.config import Config, ConfigError

if TYPE_CHECKING:
    from app.model.current_run import CurrentRun
    from app.model.playhead import Snapshot
    from profiler.session.reader import Session

_read: WeakKeyDictionary[Session, dict[tuple[int, int, int], Config | None]] = WeakKeyDictionary()


def settings_at(session: Session, frame: int) -> Config | None:
    """The settings in force at the last frame before `frame`; None where this version cannot read them."""
    found = settings_before(session, frame)
    if found is None:
        return None
    known = _read.setdefault(session, {})
    key = (found.epoch, found.first_frame, found.applied_ns)
    if key not in known:
        known[key] = None
        with suppress(ConfigError):
            known[key] = settings.from_dict(found.tree)
    return known[key]


class RecordedSettings(QObject):
    """Shows in a pipeline what a recording had at the cursor, until somebody wants to change the next run."""

    changed = Signal()  # `editing` or `offered` is different now

    def __init__(self, pipeline: Pipeline, playhead: Playhead, run: CurrentRun, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pipeline, self._playhead, self._run = pipeline, playhead, run
        self._shown: tuple[bool, bool] | None = None
        self._editing = True
        self._at_end = True
        playhead.opened.connect(self._opened)
        playhead.changed.connect(self._follow)
        playhead.closed.connect(lambda: self._show(None, ""))
        pipeline.editing.connect(lambda: self.edit(True))

    @property
    def editing(self) -> bool:
        return self._pipeline.recorded is None

    @property
    def offered(self) -> bool:
        session = self._playhead.session  # that of a lab has no settings
        return session is not None and bool(session.configs) and not self._of_this_run

    @property
    def _of_this_run(self) -> bool:
        """Whether the session shown is being recorded by our run, not by another process, or stands in for it."""
        return self._run.stands_in or (self._playhead.live and self._run.is_shown)

    def edit(self, wanted: bool) -> None:
        """Show the settings of the next run, or again those at the cursor."""
        self._editing = wanted
        snapshot = self._playhead.snapshot()
        if snapshot is not None:
            self._follow(snapshot)

    def _opened(self, _session: object) -> None:
        self._editing, self._at_end = self._of_this_run, True

    def _follow(self, snapshot: Snapshot) -> None:
        at_end = snapshot.live or snapshot.cursor_frame >= snapshot.track.n_frames
        if self._at_end and not at_end:
            self._editing = False  # looking back ends what was being edited
        self._at_end = at_end
        wanted = not (self._of_this_run or self._editing)
        config = settings_at(snapshot.session, snapshot.desk.scope.last) if wanted else None
        self._show(config, snapshot.session.meta.get("preset") or "")

    def _show(self, config: Config | None, preset: str) -> None:
        self._pipeline.show_recorded(config, preset)
        now = (self.editing, self.offered)
        if now != self._shown:
            self._shown = now
            self.changed.emit()
