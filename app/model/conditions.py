"""When an action can be used: small questions about run and session, each with a name."""

from __future__ import annotations

from app.model import audio_choice
from app.model.playhead import Playhead
from app.model.runs import Runs


class Conditions:
    """Answers for the registry of actions; keeps nothing."""

    def __init__(self, runs: Runs, playhead: Playhead) -> None:
        self._runs, self._playhead = runs, playhead

    def has_session(self) -> bool:
        """A session is shown."""
        return self._playhead.session is not None

    def has_finished_session(self) -> bool:
        """A session is shown that nobody writes any more."""
        return self.has_session() and not self._playhead.live

    def is_live(self) -> bool:
        """The session shown is being recorded."""
        return self._playhead.live

    def is_idle(self) -> bool:
        """No run is under way."""
        return not self._runs.control.busy

    def may_run(self) -> bool:
        """No run is under way, and nothing that one would disturb."""
        return self.is_idle() and self._runs.hindrance() is None

    def is_running(self) -> bool:
        """A run decodes."""
        return self._runs.control.state == "running"

    def can_start(self) -> bool:
        """Nothing runs and there is something to decode."""
        return self._runs.can_start

    def can_stop(self) -> bool:
        """A run is under way that was not stopped yet."""
        return self._runs.control.state in ("starting", "running")

    def is_elsewhere(self) -> bool:
        """A run is under way, and another session is shown."""
        return self.is_running() and not self._runs.showing_run

    def has_bundled(self) -> bool:
        """The synthetic voices are there."""
        return audio_choice.bundled() is not None

    def can_demo(self) -> bool:
        """The demo can be started now."""
        return self.has_bundled() and self.may_run()
