"""When an action can be used: small questions about run and session, each with a name and, if not, a reason."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial

from PySide6.QtCore import QCoreApplication

from app.model import audio_choice
from app.model.playhead import Playhead
from app.model.runs import Runs

tr = partial(QCoreApplication.translate, "conditions")


class Condition:
    """A condition to call. `unavailable_reason` returns why it does not hold, in one sentence; None if it does."""

    def __init__(self, unavailable_reason: Callable[[], str | None]) -> None:
        self.unavailable_reason = unavailable_reason

    def __call__(self) -> bool:
        return self.unavailable_reason() is None


def condition(unavailable_reason: Callable[[Conditions], str | None]) -> cached_property[Condition]:
    return cached_property(lambda conditions: Condition(partial(unavailable_reason, conditions)))


class Conditions:
    """Answers for the registry of actions; keeps nothing."""

    def __init__(self, runs: Runs, playhead: Playhead) -> None:
        self._runs, self._playhead = runs, playhead

    def is_idle(self) -> bool:
        return not self._runs.control.busy

    @condition
    def has_session(self) -> str | None:
        return tr("No session is shown; start a run or open one.") if self._playhead.session is None else None

    @condition
    def has_selection(self) -> str | None:
        why = tr("Nothing is selected: drag across a chart, or select an utterance.")
        return why if self._playhead.axis.selected is None else None

    @condition
    def has_baseline(self) -> str | None:
        return tr("No baseline is pinned.") if self._playhead.axis.baseline is None else None

    @condition
    def has_finished_session(self) -> str | None:
        if self._playhead.live:
            return tr("The session shown is still being recorded; stop the run first.")
        return self.has_session.unavailable_reason()

    @condition
    def is_live(self) -> str | None:
        return None if self._playhead.live else tr("No session that is being recorded is shown.")

    @condition
    def may_run(self) -> str | None:
        if self.is_idle():
            return self._runs.unavailable_reason()
        return tr("A run is under way; runs go one at a time.")

    @condition
    def can_start(self) -> str | None:
        return self.has_audio.unavailable_reason() or self.may_run.unavailable_reason()

    @condition
    def is_running(self) -> str | None:
        """A run decodes."""
        return {
            "running": None,
            "starting": tr("The run is still being prepared."),
            "stopping": tr("The run is being stopped."),
            "idle": tr("Nothing runs."),
        }[self._runs.control.state]

    @condition
    def can_stop(self) -> str | None:
        return None if self._runs.control.state == "starting" else self.is_running.unavailable_reason()

    @condition
    def is_elsewhere(self) -> str | None:
        if self._runs.current.is_shown:
            return tr("The session of the run is shown already.")
        return self.is_running.unavailable_reason()

    @condition
    def has_audio(self) -> str | None:
        return tr("There is nothing to decode; choose audio files first.") if self._runs.next.audio is None else None

    @condition
    def has_bundled(self) -> str | None:
        return tr("The bundled voices are missing from this installation.") if audio_choice.bundled() is None else None

    @condition
    def can_demo(self) -> str | None:
        return self.has_bundled.unavailable_reason() or self.may_run.unavailable_reason()
