"""What other settings would cost, from the counts and laws of the stages they touch; no run is timed.

The scorer of both configurations runs over a few blocks for its counts; the laws of its stages, the session's roofs
and times do the rest (`profiler.analysis.whatif`). Of fewer tokens in the search its own counts tell
(`fewer_tokens`). Roofs that only the laws of the new settings name are measured
here. Settings without a model are named.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from pipelines import config as settings
from pipelines.config import Config
from pipelines.experiments import fewer_tokens, rerun
from pipelines.experiments.fewer_tokens import Searched
from pipelines.run.recogniser import Progress
from profiler.analysis import whatif
from profiler.analysis.breakdown import StageRow, breakdown
from profiler.analysis.whatif import Prediction
from profiler.costs import Cost
from profiler.machine.roofs.table import RoofTable

COUNTED: Final = ("block", "threads", "frames.", "gmm.", "dnn.")
"""Settings whose effect on scoring follows from counting; a dot ends the name of a whole branch."""

FREE: Final = ("pace", "loop")
"""Settings that change when frames come, and not what they cost."""

NOT_COUNTED: Final = (
    (
        "gmm.senones",
        ("active", "ci", "active-ci"),
        "which senones are left out depends on what is said",
    ),
    (
        "dnn.senones",
        ("active", "active-ahead"),
        "which outputs are left out depends on what is said",
    ),
    ("frames.rule", ("conditional",), "which frames are skipped depends on what is said"),
)
"""Choices whose work is not that on the noise which is counted: (setting, choices, why)."""

TOKENS: Final = "search.max_active"

EVENLY: Final = (
    "Threads share evenly what is worth it; handing over is counted, other waiting is not."
)

NO_MODEL: Final = {
    "search.": "how many tokens survive under another setting is not in a session of one",
    "graph.": "how many tokens another graph keeps alive is not in a session of this one",
}


class Scoring(NamedTuple):
    """What was counted of both settings: stages of the scorer, and the cost laws of the new ones by stage."""

    before: Sequence[StageRow]
    after: Sequence[StageRow]
    costs: Mapping[str, Cost]


class Predictor:
    """What `after` would cost, from sessions that ran with `before`; what must be measured is measured once."""

    def __init__(
        self,
        before: Config,
        after: Config,
        roof_table: RoofTable,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """`roof_table`: of the session."""
        self._before, self._after, self._roof_table = before, after, roof_table
        self._progress, self._cancelled = progress, cancelled
        self._keys = [
            option.key
            for option in settings.options()
            if settings.get(before, option.key) != settings.get(after, option.key)
        ]
        self._uncounted = _not_counted(before) or _not_counted(after)

    def changed(
        self, prediction: Prediction, searched: Searched | None = None
    ) -> tuple[Prediction, list[str]]:
        """Predict from the stages of a session, which counted `searched` in its search.

        Returns also a sentence for each setting without a model, which leave the whole without a prediction.
        Raises Cancelled.
        """
        before, after, keys = self._before, self._after, self._keys
        uncounted_tokens = fewer_tokens.unknown(searched, before, after)
        without = [
            _no_model(key, uncounted_tokens if key == TOKENS else self._uncounted)
            for key in keys
            if not _modelled(key, self._uncounted, uncounted_tokens)
        ]
        if not keys:
            return _assumed(prediction, "The session ran with these settings already."), without
        if self._uncounted is None and any(_starts(key, COUNTED) for key in keys):
            scoring = self._scoring
            prediction = whatif.changed(prediction, scoring.before, scoring.after, "scoring")
            prediction = _assumed(prediction, *whatif.doubts(scoring.costs, self._roof_table))
            if "threads" in keys:
                prediction = _assumed(prediction, EVENLY)
        if TOKENS in keys and searched is not None and uncounted_tokens is None:
            # Of the search alone: the graph stays, whatever else is asked.
            then, now = fewer_tokens.rows(
                searched,
                before,
                after,
                self._roof_table,
                self._progress or _quietly,
                self._cancelled,
            )
            prediction = whatif.changed(prediction, then, now, "search")
            prediction = _assumed(prediction, fewer_tokens.ASSUMED.format(after.search.max_active))
        if "block" in keys:
            prediction = whatif.in_blocks(prediction, before.block / after.block)
        return prediction, without

    @cached_property
    def _scoring(self) -> Scoring:
        found = rerun.counted(
            {"before": self._before, "after": self._after},
            self._roof_table,
            self._progress,
            self._cancelled,
        )
        if "threads" in self._keys:
            counts = self._before.threads, self._after.threads
            for recording in found.values():
                recording.calibration = recording.calibration.evenly(*counts)
        then, now = (breakdown(found[name]).stages for name in ("before", "after"))  # type: ignore[arg-type]
        after = found["after"]
        costs = {after.stages[stage].name: cost for (stage, _), cost in after.costs.items()}
        return Scoring(then, now, costs)


def _assumed(prediction: Prediction, *sentences: str) -> Prediction:
    return dataclasses.replace(prediction, assumptions=(*prediction.assumptions, *sentences))


def _starts(key: str, names: tuple[str, ...]) -> bool:
    return any(key == name or (name.endswith(".") and key.startswith(name)) for name in names)


def _not_counted(config: Config) -> str | None:
    """Why counting on noise says nothing of `config`; None where it does."""
    for key, choices, why in NOT_COUNTED:
        acts = settings.obstacle(config, key) is None
        skips = key != "frames.rule" or config.frames.skip > 1
        if acts and skips and settings.get(config, key) in choices:
            return why
    return None


def _modelled(key: str, uncounted: str | None, uncounted_tokens: str | None) -> bool:
    counted = uncounted is None and _starts(key, COUNTED)
    tokens = uncounted_tokens is None and key == TOKENS
    return counted or tokens or _starts(key, FREE)


def _quietly(what: str, share: float | None) -> None:
    """Progress that nobody sees."""


def _no_model(key: str, uncounted: str | None) -> str:
    reasons = (why for branch, why in NO_MODEL.items() if key.startswith(branch) and key != TOKENS)
    default = uncounted if uncounted and (key == TOKENS or _starts(key, COUNTED)) else None
    why = next(reasons, default or "its effect on cost is known only by running it")
    return f"There is no model of {key}: {why}. Only --check tells."
