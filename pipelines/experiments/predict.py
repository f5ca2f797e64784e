"""What other settings would cost in a session: both settings decode a few seconds of its speech in turns.

Each stage of the session is then scaled as it changed in the trial; where one cannot be tried, nothing is predicted.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from pipelines import config as settings
from pipelines.config import Config
from pipelines.experiments import rerun
from pipelines.experiments.ab import differences
from pipelines.experiments.rerun import Arm, Stretch
from pipelines.run.recogniser import Progress
from profiler.analysis import whatif
from profiler.analysis.categories import OVERHEAD
from profiler.analysis.comparison.statistics import undisturbed
from profiler.analysis.whatif import Prediction
from profiler.machine.roofs.table import RoofTable

BUDGET_S: Final = 8.0  # Both decode in turns for about so long: at least as many rounds as a comparison has
FREE: Final = ("pace", "loop")  # Settings that change when frames come, and not what they cost
ON_A_DEVICE: Final = ("device", "search.device")
OF_THE_PROCESSOR: Final = "a trial follows the processor alone, and not what a device does meanwhile"

TRIED: Final = "Tried here with both settings in turns: {0}. Each stage of the session changes as it did there."
COUNTED: Final = "{0:.0f} tokens lived in a frame, {1:.0f} with the change."


@dataclass(frozen=True)
class Tried:
    """What one setting took of the speech that both were tried on.

    `groups`: ns by group and stage, "overhead" what lies between the stages; `tokens` in a frame on the mean.
    """

    groups: Mapping[str, Mapping[str, float]]
    tokens: float


class Predictor:
    """Predict the cost of `after` from sessions that ran with `before`; both are tried once, at first use."""

    def __init__(
        self,
        before: Config,
        after: Config,
        roof_table: RoofTable,
        stretch: Stretch,
        progress: Progress = lambda what, share: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """`roof_table`: of the session. `stretch`: speech to try both on."""
        self._before, self._after, self._roof_table = before, after, roof_table
        self._stretch, self._progress, self._cancelled = stretch, progress, cancelled

    def changed(self, prediction: Prediction) -> tuple[Prediction, list[str]]:
        """Predict from the stages of a session; or nothing, with a sentence for each setting that cannot be tried."""
        before, after = self._before, self._after
        keys = differences(before, after)
        if not keys:
            return _assumed(prediction, "The session ran with these settings already."), []
        acting = [key for key in keys if key not in FREE]
        if not acting or _on_a_device(before) or _on_a_device(after):
            return prediction, [f"There is no model of {k}: {OF_THE_PROCESSOR}. Only --check tells." for k in acting]
        then, now = self._tried
        prediction = _assumed(prediction, TRIED.format(self._stretch.note), COUNTED.format(then.tokens, now.tokens))
        for group in dict.fromkeys((*then.groups, *now.groups)):
            old, new = (side.groups.get(group, {}) for side in (then, now))
            prediction = whatif.changed(prediction, old, new, group)
        return prediction, []

    @cached_property
    def _tried(self) -> tuple[Tried, Tried]:
        return tried(self._before, self._after, self._stretch, self._roof_table, self._progress, self._cancelled)


def tried(
    before: Config,
    after: Config,
    stretch: Stretch,
    roof_table: RoofTable,
    progress: Progress,
    cancelled: Callable[[], bool],
) -> tuple[Tried, Tried]:
    """Decode `stretch` with both settings in turns. Raises Cancelled, and what `recogniser.build` raises."""
    then, now = Arm("unchanged", before), Arm("changed", after)
    rerun.decode((then, now), stretch, roof_table, progress, cancelled, BUDGET_S)
    return _of_arm(then), _of_arm(now)


def _of_arm(arm: Arm) -> Tried:
    recording = arm.recording
    assert recording is not None
    group_of = {stage.name: stage.group for stage in recording.stages.values()}
    groups: dict[str, dict[str, float]] = {}
    # A session runs every cell once, and not the fastest of each.
    for name, times in arm.times.whole_repeats().stages.items():
        group = group_of.get(name, OVERHEAD)
        # What lies between the stages is one with what the run does at the ends of its blocks, as in a prediction.
        line = OVERHEAD if group == OVERHEAD else name
        of_group = groups.setdefault(group, {})
        of_group[line] = of_group.get(line, 0.0) + float(undisturbed(times).sum())
    emit = next(stage for stage in recording.stages.values() if stage.name == "search.emit")
    spans = recording.spans[recording.spans["stage"] == emit.id]
    return Tried(groups, float(spans["work0"].sum() / max(spans["frames"].sum(), 1)))


def _on_a_device(config: Config) -> bool:
    return any(
        settings.unavailable_reason(config, key) is None and settings.get(config, key) != "cpu" for key in ON_A_DEVICE
    )


def _assumed(prediction: Prediction, *sentences: str) -> Prediction:
    return dataclasses.replace(prediction, assumptions=(*prediction.assumptions, *sentences))
