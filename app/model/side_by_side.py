"""The A/B switch: one utterance decoded under two settings in turn, until the interval says which is faster.

The settings in force are compared with the last ones before them or, if nothing was changed yet, with the first
toggle's other side. The worker decodes; what it records says when it can go on.
"""

from PySide6.QtCore import QObject, Signal

from app.model import configurations
from app.model.effects import effects_of
from app.model.pipeline import Pipeline
from app.model.playhead import Playhead, Snapshot
from app.model.runs import Runs
from pipelines.config import Value


class SideBySide(QObject):
    """Starts an A/B in the run that is shown, follows it in the session, and ends it once it has decided."""

    changed = Signal()

    def __init__(self, pipeline: Pipeline, runs: Runs, playhead: Playhead, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pipeline, self._runs, self._playhead = pipeline, runs, playhead
        self._asked_frame: int | None = None
        playhead.changed.connect(self._follow)
        playhead.closed.connect(self._over)
        runs.control.refused.connect(lambda *_: self._over())
        runs.control.state_changed.connect(lambda _: self._over())

    @property
    def active(self) -> bool:
        return self._asked_frame is not None

    def unavailable_reason(self) -> str | None:
        """Why none can be started, in one sentence; None if it can, or if one is going on, which can be ended."""
        if self.active:
            return None
        if self._runs.control.state != "running" or not self._runs.current.is_shown:
            return self.tr("An A/B needs a run that is going on and shown.")
        if self.other() is None:
            return self.tr("There is nothing to compare: change a setting during the run first.")
        return None

    def other(self) -> dict[str, Value] | None:
        """The settings to hold against those in force; None if there are none."""
        session = self._playhead.session
        if session is None or self._pipeline.running is None:
            return None
        live = {option.key for option in self._pipeline.options if option.live}
        before = configurations.before(session, self._playhead.n_frames, live)
        if before is not None:
            return before
        acting = [sharing[0] for sharing in self._pipeline.toggles.places()]
        return next((t.other_side() for t in acting if t.unavailable_reason is None), None)

    def switch(self) -> None:
        """Start one, or end the one that is going on."""
        if self.active:
            self._runs.control.compare(None)
            self._over()
            return
        other = self.other()
        if self.unavailable_reason() is None and other is not None:
            self._asked_frame = self._playhead.n_frames
            self._runs.control.compare(other)
            self.changed.emit()

    def _follow(self, snapshot: Snapshot) -> None:
        if self._asked_frame is None or not self._runs.current.is_shown:
            return
        about = snapshot.session.meta.get("ab") or {}
        start = about.get("measured_from")
        if start is None or start < self._asked_frame:
            return  # the utterance under way is not over yet
        if about.get("ended") is not None:
            self._over()
            return
        effect = effects_of(snapshot.session).last_change(snapshot.session, snapshot.track, self._playhead.n_frames)
        if effect is not None and effect.turns and effect.decided:
            self._runs.control.compare(None)
            self._over()

    def _over(self) -> None:
        if self._asked_frame is not None:
            self._asked_frame = None
            self.changed.emit()
