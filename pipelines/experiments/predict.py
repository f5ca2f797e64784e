"""What other settings would cost, from a session of one: its stages change as those of a rehearsal do (`rehearse`).

Settings without a model are named, and nothing is predicted then.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property
from typing import Final

from pipelines import config as settings
from pipelines.config import Config
from pipelines.experiments.rehearse import Rehearsed, rehearse
from pipelines.experiments.rerun import Stretch
from pipelines.run.recogniser import Progress
from profiler.analysis import whatif
from profiler.analysis.categories import OVERHEAD
from profiler.analysis.whatif import Prediction
from profiler.machine.roofs.table import RoofTable

REHEARSED: Final = (
    "block", "threads", "model", "frames.", "gmm.", "dnn.", "graph.",
    "search.beam", "search.max_active", "search.min_active", "search.acoustic_scale", "search.insertion_penalty",
)  # fmt: skip
"""Settings of which a rehearsal tells; a dot ends the name of a whole branch."""

FREE: Final = ("pace", "loop")
"""Settings that change when frames come, and not what they cost."""

OF_THE_PROCESSOR: Final = "a rehearsal is one of the processor and its caches"
ASKS: Final = "scoring that asks the search frame by frame what it wants cannot be timed alone"
HINDRANCES: Final[tuple[tuple[str, Callable[[settings.Value], bool], str], ...]] = (
    ("device", lambda device: device != "cpu", OF_THE_PROCESSOR),
    ("search.device", lambda device: device != "cpu", OF_THE_PROCESSOR),
    ("gmm.senones", lambda rule: rule in ("active", "active-ci"), ASKS),
    ("dnn.senones", lambda rule: rule in ("active", "active-ahead"), ASKS),
    ("search.adaptive_beam", bool, "a beam that follows the time has other tokens in every run"),
)
"""What cannot be rehearsed: (setting, whether a value of it hinders, why). Either side may have it."""

ONLY_RUNNING: Final = "its effect on cost is known only by running it"

TRIED: Final = "Tried here with both settings: {0}."
TIMED: Final = (
    "Scoring changes as it does alone, timed in turns, with as much memory gone through between two blocks as the "
    "search goes through."
)
COUNTED: Final = (
    "The search changes by its counts and cost laws: {0:.0f} tokens lived in a frame, "
    "{1:.0f} with the change."
)
BETWEEN: Final = (
    "What lies between the stages changes as it did when that was decoded once with either."
)


class Predictor:
    """What `after` would cost, from sessions that ran with `before`; both are rehearsed once, when first asked."""

    def __init__(
        self,
        before: Config,
        after: Config,
        roof_table: RoofTable,
        stretch: Stretch,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """`roof_table`: of the session. `stretch`: speech to try both on."""
        self._before, self._after, self._roof_table = before, after, roof_table
        self._stretch, self._progress, self._cancelled = stretch, progress or _quietly, cancelled

    def changed(self, prediction: Prediction) -> tuple[Prediction, list[str]]:
        """Predict from the stages of a session.

        Returns also a sentence for each setting without a model; nothing is predicted then. Raises Cancelled, and what
        `recogniser.build` raises.
        """
        before, after = self._before, self._after
        keys = [
            option.key
            for option in settings.options()
            if settings.get(before, option.key) != settings.get(after, option.key)
        ]
        if not keys:
            return _assumed(prediction, "The session ran with these settings already."), []
        acting = [key for key in keys if key not in FREE]
        hindrance = _hindrance(before) or _hindrance(after)
        without = [
            f"There is no model of {key}: {hindrance or ONLY_RUNNING}. Only --check tells."
            for key in acting
            if hindrance or not _rehearsed(key)
        ]
        if without or not acting:
            return prediction, without
        then, now = self._rehearsal.before, self._rehearsal.after
        prediction = _assumed(prediction, TRIED.format(self._stretch.note))
        for group, old, new, sentence in (
            ("scoring", then.scoring, now.scoring, TIMED),
            ("search", then.search, now.search, COUNTED.format(then.tokens, now.tokens)),
            (OVERHEAD, then.overhead, now.overhead, BETWEEN),
        ):
            prediction = whatif.changed(prediction, old, new, group, sentence)
        return whatif.waits(prediction, "search", self._rehearsal.waiting), without

    @cached_property
    def _rehearsal(self) -> Rehearsed:
        return rehearse(
            self._before,
            self._after,
            self._stretch,
            self._roof_table,
            self._progress,
            self._cancelled,
        )


def _assumed(prediction: Prediction, *sentences: str) -> Prediction:
    return dataclasses.replace(prediction, assumptions=(*prediction.assumptions, *sentences))


def _rehearsed(key: str) -> bool:
    return any(key == name or (name.endswith(".") and key.startswith(name)) for name in REHEARSED)


def _hindrance(config: Config) -> str | None:
    """Why `config` cannot be rehearsed; None where it can."""
    for key, hinders, why in HINDRANCES:
        if settings.obstacle(config, key) is None and hinders(settings.get(config, key)):
            return why
    return None


def _quietly(what: str, share: float | None) -> None:
    """Progress that nobody sees."""
