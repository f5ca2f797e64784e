"""A study: the trials of a sweep in a folder, by Optuna's sampler and in its journal.

    study.json        what is swept, on which sound, by which version
    journal.log       Optuna's journal: settings, values and state of every trial
    trials/7-1/       the first attempt of trial 7: the session of the run and of the reference before and after it
    confirmed/7-1/    trial 7 and the reference in turns

Only one process works on a study at a time (`running`).
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from pipelines.config import Value
from pipelines.experiments.sweep import judge, space
from pipelines.experiments.sweep.folder import FAILURE, FIGURES, Sweep
from pipelines.experiments.sweep.judge import BEFORE, Confirmed, Failed, Figures
from pipelines.experiments.sweep.space import Choice, Point, front, touches
from profiler.errors import BadInput
from profiler.files import paths

if TYPE_CHECKING:
    import optuna

LEAST_FOR_IMPORTANCE: Final = 10  # Trials: PED-ANOVA looks at the best tenth


@dataclass(frozen=True)
class Trial:
    """A trial that has ended. `why`: why it failed or was rejected, or which constraint it violates."""

    number: int
    chosen: dict[str, Value]
    state: str
    figures: Figures | None
    why: str | None


@dataclass
class Study:
    """The study in `folder`, which `storage` was opened from (`folder.opened`)."""

    folder: Path
    sweep: Sweep
    storage: optuna.Study
    confirmations: dict[int, Confirmed | Failed] = field(default_factory=dict)

    def trials(self) -> list[Trial]:
        """The trials that have ended, without those whose settings were tried before."""
        ended = []
        for frozen in self.storage.get_trials(deepcopy=False):
            if not frozen.state.is_finished():
                continue
            chosen = space.shortened(frozen.params)
            if FIGURES in frozen.user_attrs:
                figures = msgspec.convert(frozen.user_attrs[FIGURES], Figures)
                ended.append(Trial(frozen.number, chosen, "done", figures, self._violation(figures)))
            elif FAILURE in frozen.user_attrs:
                failure = msgspec.convert(frozen.user_attrs[FAILURE], Failed)
                state = "rejected" if failure.drifted else "failed"
                ended.append(Trial(frozen.number, chosen, state, None, failure.why))
        return ended

    def points(self) -> list[Point]:
        """The trials that may be on the front, confirmed ratios in place of first ones; others carry the noise."""
        points = []
        for one in self.trials():
            if one.figures is None or one.why is not None:
                continue
            values = {name: one.figures.objective(name) or 0.0 for name in self.sweep.objectives}
            margins = {name: one.figures.margin if name in space.TIMES else 0.0 for name in values}
            confirmed = self.confirmations.get(one.number)
            if isinstance(confirmed, Confirmed) and "rtf" in values:
                values["rtf"], margins["rtf"] = confirmed.ratio, 0.0
            points.append(Point(one.number, tuple(values.values()), tuple(margins.values())))
        return points

    def front(self) -> list[Point]:
        return front(self.points())

    def touching(self) -> dict[int, list[int]]:
        """The neighbours on the front whose intervals touch that of a trial, by number of the trial."""
        numbers = [point.trial for point in self.front()]
        neighbours: dict[int, list[int]] = {number: [] for number in numbers}
        for a, b in itertools.pairwise(numbers):
            of_a, of_b = self.confirmations.get(a), self.confirmations.get(b)
            if isinstance(of_a, Confirmed) and isinstance(of_b, Confirmed) and touches(of_a.ci95, of_b.ci95):
                neighbours[a].append(b)
                neighbours[b].append(a)
        return neighbours

    def importance(self) -> dict[str, dict[str, float]]:
        """How much each setting matters for each objective (PED-ANOVA), shares of 1; empty for few trials."""
        import optuna

        done = [one for one in self.storage.get_trials(deepcopy=False) if one.values is not None]
        if len(done) < LEAST_FOR_IMPORTANCE:
            return {}
        shares = {}
        for place, name in enumerate(self.sweep.objectives):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about small studies, and that low values count
                target = partial(lambda place, one: one.values[place], place)
                shares[name] = optuna.importance.get_param_importances(self.storage, target=target)
        return shares

    def unfinished(self) -> list[optuna.trial.FrozenTrial]:
        from optuna.trial import TrialState

        return self.storage.get_trials(deepcopy=False, states=[TrialState.RUNNING])

    def ended_as_copy(self, one: optuna.trial.Trial) -> bool:
        """Whether an earlier trial has the settings of `one`, which then ends with the same values."""
        from optuna.trial import TrialState

        chosen = self.chosen(one)
        earlier = self.storage.get_trials(deepcopy=False)[: one.number]
        same = next((other for other in earlier if space.shortened(other.params) == chosen), None)
        if same is None:
            return False
        if same.values is None:
            self.storage.tell(one, state=TrialState.FAIL)
        else:
            for name, excess in same.constraints.items():
                one.set_constraint(name, excess)
            self.storage.tell(one, same.values)
        return True

    def chosen(self, one: optuna.trial.Trial) -> dict[str, Value]:
        """The settings of a trial, suggested by the sampler where they are not known yet."""
        params: dict[str, Value] = {}
        for axis in self.sweep.axes:
            if isinstance(axis, Choice):
                value = one.suggest_categorical(axis.key, list(axis.values))
                assert value is not None
                params[axis.key] = value
            elif axis.whole:
                params[axis.key] = one.suggest_int(axis.key, int(axis.low), int(axis.high))
            else:
                params[axis.key] = one.suggest_float(axis.key, axis.low, axis.high)
        return space.shortened(params)

    def tell(self, one: optuna.trial.Trial, outcome: Figures | Failed) -> None:
        """End a trial with what came of it."""
        from optuna.trial import TrialState

        if isinstance(outcome, Failed):
            one.set_user_attr(FAILURE, msgspec.to_builtins(outcome))
            self.storage.tell(one, state=TrialState.FAIL)
            return
        one.set_user_attr(FIGURES, msgspec.to_builtins(outcome))
        noted = self.storage.get_trials(deepcopy=False)[one.number].constraints
        for constraint in self.sweep.constraints:
            if (value := outcome.measured(constraint.name)) is not None and constraint.name not in noted:
                one.set_constraint(constraint.name, constraint.excess(value))
        self.storage.tell(one, [outcome.objective(name) or 0.0 for name in self.sweep.objectives])

    def reference_words(self) -> dict[str, str] | None:
        """What the reference recognised in the first trial that is done."""
        for one in self.trials():
            if one.figures is not None:
                session = paths.inside(self.folder, one.figures.session, 3)
                if session is not None:
                    with contextlib.suppress(BadInput):
                        return judge.read_report(session.with_name(f"{BEFORE}.json")).words()
        return None

    def _violation(self, figures: Figures) -> str | None:
        for constraint in self.sweep.constraints:
            value = figures.measured(constraint.name)
            if value is None or constraint.excess(value) > 0:
                return f"{constraint.name} is {value if value is None else f'{value:g}'}, over {constraint.limit:g}."
        return None


def plan_grid(study: Study, wanted: int) -> int:
    """Queue all combinations if they are at most `wanted`; the number of trials that there will be."""
    if space.size(study.sweep.axes) > wanted:
        return wanted
    combinations = space.grid(study.sweep.axes)
    for chosen in combinations:
        study.storage.enqueue_trial(chosen, skip_if_exists=True)
    return len(combinations)
