"""When an action can be used: small questions about run and session, each with a name and, if not, a reason."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication

from app.model import audio_choice
from app.model.playhead import Playhead
from app.model.runs import Runs


def tr(text: str) -> str:
    """Translate a text of this module."""
    return QCoreApplication.translate("conditions", text)


class Condition:
    """Asked by calling it. `obstacle`: why it does not hold, in one sentence; None if it does."""

    def __init__(self, obstacle: Callable[[], str | None]) -> None:
        self.obstacle = obstacle

    def __call__(self) -> bool:
        """Whether it holds."""
        return self.obstacle() is None


class Conditions:
    """Answers for the registry of actions; keeps nothing."""

    def __init__(self, runs: Runs, playhead: Playhead) -> None:
        self._runs, self._playhead = runs, playhead
        self.has_session = Condition(self._no_session)
        """A session is shown."""
        self.has_finished_session = Condition(self._unfinished)
        """A session is shown that nobody writes any more."""
        self.is_live = Condition(self._over)
        """The session shown is being recorded."""
        self.may_run = Condition(self._disturbed)
        """No run is under way, and nothing that one would disturb."""
        self.is_running = Condition(self._not_decoding)
        """A run decodes."""
        self.can_start = Condition(self._cannot_start)
        """Nothing runs and there is something to decode."""
        self.can_stop = Condition(self._cannot_stop)
        """A run is under way that was not stopped yet."""
        self.is_elsewhere = Condition(self._not_elsewhere)
        """A run is under way, and another session is shown."""
        self.has_bundled = Condition(self._without_voices)
        """The synthetic voices are there."""
        self.can_demo = Condition(lambda: self._without_voices() or self._disturbed())
        """The demo can be started now."""

    def is_idle(self) -> bool:
        """No run is under way."""
        return not self._runs.control.busy

    # -- why not ---------------------------------------------------------------------------

    def _no_session(self) -> str | None:
        if self._playhead.session is not None:
            return None
        return tr("No session is shown; start a run or open one.")

    def _unfinished(self) -> str | None:
        if self._playhead.live:
            return tr("The session shown is still being recorded; stop the run first.")
        return self._no_session()

    def _over(self) -> str | None:
        return None if self._playhead.live else tr("No session that is being recorded is shown.")

    def _disturbed(self) -> str | None:
        if self.is_idle():
            return self._runs.hindrance()
        return tr("A run is under way; runs go one at a time.")

    def _cannot_start(self) -> str | None:
        if self._runs.audio is None:
            return tr("There is nothing to decode; choose audio files first.")
        return self._disturbed()

    def _not_decoding(self) -> str | None:
        state = self._runs.control.state
        if state == "running":
            return None
        if state == "starting":
            return tr("The run is still being prepared.")
        return tr("The run is being stopped.") if state == "stopping" else tr("Nothing runs.")

    def _cannot_stop(self) -> str | None:
        return None if self._runs.control.state == "starting" else self._not_decoding()

    def _not_elsewhere(self) -> str | None:
        if self._runs.showing_run:
            return tr("The session of the run is shown already.")
        return self._not_decoding()

    def _without_voices(self) -> str | None:
        if audio_choice.bundled() is not None:
            return None
        return tr("The bundled voices are missing from this installation.")
