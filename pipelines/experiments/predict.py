"""What other settings would cost, from the counts and laws of the stages they touch; no run is timed.

The scorer of both configurations runs over a few blocks for its counts; the laws of its stages, the session's roofs
and times do the rest (`profiler.analysis.whatif`). Of fewer tokens in the search its own counts tell
(`fewer_tokens`). Roofs that only the laws of the new settings name are measured
here. Settings without a model are named.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final

from pipelines import config as settings
from pipelines.config import Config
from pipelines.experiments import fewer_tokens, rerun
from pipelines.experiments.fewer_tokens import Searched
from pipelines.run.recogniser import Progress
from profiler.analysis import whatif
from profiler.analysis.breakdown import breakdown
from profiler.analysis.whatif import Prediction
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

NO_MODEL: Final = {
    "search.": "how many tokens survive under another setting is not in a session of one",
    "graph.": "how many tokens another graph keeps alive is not in a session of this one",
}


def changed(
    prediction: Prediction,
    before: Config,
    after: Config,
    roof_table: RoofTable,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    searched: Searched | None = None,
) -> tuple[Prediction, list[str]]:
    """Predict `after` from a session that ran with `before`, which counted `searched` in its search.

    Returns also a sentence for each setting without a model, which leave the whole without a prediction.
    Raises Cancelled.
    """
    keys = [
        option.key
        for option in settings.options()
        if settings.get(before, option.key) != settings.get(after, option.key)
    ]
    uncounted = _not_counted(before) or _not_counted(after)
    uncounted_tokens = fewer_tokens.unknown(searched, before, after)
    without = [
        _no_model(key, uncounted_tokens if key == TOKENS else uncounted)
        for key in keys
        if not _modelled(key, uncounted, uncounted_tokens)
    ]
    if not keys:
        sentence = "The session ran with these settings already."
        return Prediction(
            prediction.audio_s, prediction.lines, (*prediction.assumptions, sentence)
        ), without
    if uncounted is None and any(_starts(key, COUNTED) for key in keys):
        found = rerun.counted({"before": before, "after": after}, roof_table, progress, cancelled)
        if "threads" in keys:
            for recording in found.values():
                recording.calibration = recording.calibration.evenly(before.threads, after.threads)
        rows = {
            name: breakdown(recording).stages  # type: ignore[arg-type]
            for name, recording in found.items()
        }
        prediction = whatif.changed(prediction, rows["before"], rows["after"], "scoring")
        laws = found["after"].costs
        costs = {found["after"].stages[stage].name: cost for (stage, _), cost in laws.items()}
        doubts = whatif.doubts(costs, roof_table)
        if "threads" in keys:
            doubts.append("Threads share evenly what is worth it, and nothing waits.")
        prediction = dataclasses.replace(prediction, assumptions=(*prediction.assumptions, *doubts))
    if TOKENS in keys and searched is not None and uncounted_tokens is None:
        # Of the search alone: the graph stays, whatever else is asked.
        then, now = fewer_tokens.rows(
            searched, before, after, roof_table, progress or _quietly, cancelled
        )
        prediction = whatif.changed(prediction, then, now, "search")
        sentence = fewer_tokens.ASSUMED.format(after.search.max_active)
        prediction = dataclasses.replace(
            prediction, assumptions=(*prediction.assumptions, sentence)
        )
    if "block" in keys:
        prediction = whatif.in_blocks(prediction, before.block / after.block)
    return prediction, without


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
