"""A study: the trials of a sweep in a folder, by Optuna's sampler and in its journal.

    study.json        what is swept, on which sound, by which version
    journal.log       Optuna's journal: settings, values and state of every trial
    trials/7-1/       the first attempt of trial 7: the session of the run and of the reference before and after it
    confirmed/7-1/    trial 7 and the reference in turns

A trial counts once `result.json` is in its folder. What was running when the process ended is run again, the rest is
read. Only one process works on a study at a time.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import math
import os
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from pipelines import config as settings
from pipelines.config import ConfigError, Value
from pipelines.experiments.sweep import judge, space, trial
from pipelines.experiments.sweep.folder import FAILURE, FIGURES, Commands, Sweep
from pipelines.experiments.sweep.home import Engine
from pipelines.experiments.sweep.judge import BEFORE, Confirmed, Failed, Figures
from pipelines.experiments.sweep.space import Choice, Point, front, possible, touches
from profiler.errors import BadInput
from profiler.files import paths
from profiler.files.inputs import InputError, read_struct
from profiler.files.paths import demand_room
from profiler.plain import duration_text

if TYPE_CHECKING:
    import optuna

    from pipelines.run.recogniser import Progress

ATTEMPTS: Final = 3  # How often a trial is tried whose reference drifts, or whose process is killed
LEAST_FREE: Final = 100_000_000  # Bytes that must be free on the disk of the study for the next trial
MOST_COPIES: Final = 50  # The sweep ends after that many suggestions in a row that were tried already
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
        for ended in self.trials():
            if ended.figures is None or ended.why is not None:
                continue
            values = {name: ended.figures.objective(name) or 0.0 for name in self.sweep.objectives}
            margins = {name: ended.figures.margin if name in space.TIMES else 0.0 for name in values}
            confirmed = self.confirmations.get(ended.number)
            if isinstance(confirmed, Confirmed) and "rtf" in values:
                values["rtf"], margins["rtf"] = confirmed.ratio, 0.0
            points.append(Point(ended.number, tuple(values.values()), tuple(margins.values())))
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

        done = [frozen for frozen in self.storage.get_trials(deepcopy=False) if frozen.values is not None]
        if len(done) < LEAST_FOR_IMPORTANCE:
            return {}
        shares = {}
        for place, name in enumerate(self.sweep.objectives):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about small studies, and that low values count
                target = partial(lambda place, frozen: frozen.values[place], place)
                shares[name] = optuna.importance.get_param_importances(self.storage, target=target)
        return shares

    def unfinished(self) -> list[optuna.trial.FrozenTrial]:
        from optuna.trial import TrialState

        return self.storage.get_trials(deepcopy=False, states=[TrialState.RUNNING])

    def ended_as_copy(self, proposal: optuna.trial.Trial) -> bool:
        """Whether an earlier trial has the settings of `proposal`, which then ends with the same values."""
        from optuna.trial import TrialState

        chosen = self.chosen(proposal)
        earlier = self.storage.get_trials(deepcopy=False)[: proposal.number]
        same = next((other for other in earlier if space.shortened(other.params) == chosen), None)
        if same is None:
            return False
        if same.values is None:
            self.storage.tell(proposal, state=TrialState.FAIL)
        else:
            for name, excess in same.constraints.items():
                proposal.set_constraint(name, excess)
            self.storage.tell(proposal, same.values)
        return True

    def chosen(self, proposal: optuna.trial.Trial) -> dict[str, Value]:
        """The settings of a trial, suggested by the sampler where they are not known yet."""
        params: dict[str, Value] = {}
        for axis in self.sweep.axes:
            if isinstance(axis, Choice):
                value = proposal.suggest_categorical(axis.key, list(axis.values))
                assert value is not None
                params[axis.key] = value
            elif axis.whole:
                params[axis.key] = proposal.suggest_int(axis.key, int(axis.low), int(axis.high))
            else:
                params[axis.key] = proposal.suggest_float(axis.key, axis.low, axis.high)
        return space.shortened(params)

    def tell(self, proposal: optuna.trial.Trial, outcome: Figures | Failed) -> None:
        """End a trial with what came of it."""
        from optuna.trial import TrialState

        if isinstance(outcome, Failed):
            proposal.set_user_attr(FAILURE, msgspec.to_builtins(outcome))
            self.storage.tell(proposal, state=TrialState.FAIL)
            return
        proposal.set_user_attr(FIGURES, msgspec.to_builtins(outcome))
        noted = self.storage.get_trials(deepcopy=False)[proposal.number].constraints
        for constraint in self.sweep.constraints:
            if (value := outcome.measured(constraint.name)) is not None and constraint.name not in noted:
                proposal.set_constraint(constraint.name, constraint.excess(value))
        self.storage.tell(proposal, [outcome.objective(name) or 0.0 for name in self.sweep.objectives])

    def reference_words(self) -> dict[str, str] | None:
        """What the reference recognised in the first trial that is done."""
        for ended in self.trials():
            if ended.figures is not None:
                session = paths.inside(self.folder, ended.figures.session, 3)
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


@dataclass
class StudyRun:
    """Runs trials of `study` on `engine`; what it does raises Cancelled."""

    study: Study
    engine: Engine
    progress: Progress
    cancelled: Callable[[], bool]

    def run(self, wanted: int) -> None:
        """Try settings until `wanted` trials have ended, then confirm the front."""
        try:
            self._try(wanted)
            self.confirm()
        finally:
            self.engine.close()

    def _try(self, wanted: int) -> None:
        import optuna

        study, slots = self.study, self.engine.slots
        left = [optuna.trial.Trial(study.storage, frozen._trial_id) for frozen in study.unfinished()]
        running: dict[Path, optuna.trial.Trial] = {}
        copies = 0
        while True:
            self._report(wanted)
            while len(running) < slots and copies < MOST_COPIES:
                if not left and len(study.trials()) + len(running) >= wanted:
                    break
                proposal = left.pop(0) if left else study.storage.ask()
                copies = copies + 1 if study.ended_as_copy(proposal) else 0
                if not copies and (folder := self._started(proposal)) is not None:
                    running[folder] = proposal
            if not running:
                return
            folder = self.engine.wait(self.cancelled)
            proposal = running.pop(folder)
            if (next_folder := self._ended(proposal, folder)) is not None:
                running[next_folder] = proposal

    def _started(self, proposal: optuna.trial.Trial) -> Path | None:
        """The folder in which `proposal` runs now; None where it ends at once."""
        study = self.study
        chosen = study.chosen(proposal)
        try:
            settings.check(settings.assign(study.sweep.reference, chosen))
        except ConfigError as problem:
            study.tell(proposal, Failed(str(problem)))
            return None
        folder, done = self._begun("trials", proposal.number, study.sweep.runs(chosen))
        return self._ended(proposal, folder) if done else folder

    def _ended(self, proposal: optuna.trial.Trial, folder: Path) -> Path | None:
        """Keep what came of an attempt; the folder of the next one where it is repeated."""
        study = self.study
        outcome = judge.judged(folder, study.reference_words())
        if isinstance(outcome, Figures):
            missing = [name for name in study.sweep.objectives if outcome.objective(name) is None]
            if missing:
                outcome = Failed(f"The run has no {missing[0]}.")
        if isinstance(outcome, Failed) and self._repeats("trials", proposal.number, folder, outcome):
            return self._attempt("trials", proposal.number, study.sweep.runs(study.chosen(proposal)))
        study.tell(proposal, outcome)
        return None

    def confirm(self, everything: bool = False) -> None:
        """Compare with the reference, in turns, what may be on the front, or `everything`."""
        study, engine = self.study, self.engine
        running: dict[Path, int] = {}
        by_number = {ended.number: ended for ended in study.trials()}
        while True:
            begun = {*study.confirmations, *running.values()}
            points = study.points()
            waiting = [p.trial for p in (points if everything else possible(points)) if p.trial not in begun]
            total = len(study.confirmations) + len(running) + len(waiting)
            self.progress(f"confirming the front, {len(study.confirmations)} of {total} done", None)
            if not running and not waiting:
                return
            while waiting and len(running) < engine.slots:
                number = waiting.pop(0)
                tried = by_number[number]
                folder, done = self._begun("confirmed", number, study.sweep.comparison(tried.chosen))
                if (runs := self._confirmed(tried, folder) if done else folder) is not None:
                    running[runs] = number
            if running:
                number = running.pop(folder := engine.wait(self.cancelled))
                if (runs := self._confirmed(by_number[number], folder)) is not None:
                    running[runs] = number

    def _confirmed(self, tried: Trial, folder: Path) -> Path | None:
        """Keep what came of a comparison; the folder of the next one where it is repeated."""
        assert tried.figures is not None
        outcome = judge.confirmed(folder, tried.figures.wer)
        if isinstance(outcome, Failed) and self._repeats("confirmed", tried.number, folder, outcome):
            return self._attempt("confirmed", tried.number, self.study.sweep.comparison(tried.chosen))
        self.study.confirmations[tried.number] = outcome
        return None

    def _begun(self, kind: str, number: int, commands: Commands) -> tuple[Path, bool]:
        """The folder of the attempt that runs, begun where none does; and whether it has its result already."""
        place = self.study.folder / kind
        folder = place / f"{number}-{_attempts(place, number)}"
        if (folder / trial.RESULT).exists():
            return folder, True
        if folder.is_dir():
            # Of an earlier process; what has no result and does not run any more is removed.
            if self.engine.resume(folder):
                return folder, False
            shutil.rmtree(folder, ignore_errors=True)
        return self._attempt(kind, number, commands), False

    def _attempt(self, kind: str, number: int, commands: Commands) -> Path:
        demand_room(self.study.folder, LEAST_FREE)
        place = self.study.folder / kind
        folder = place / f"{number}-{_attempts(place, number) + 1}"
        folder.mkdir(parents=True)
        plan = {name: [*words, "--out", str(folder / f"{name}.asrs"), "--json"] for name, words in commands.items()}
        trial.write_json(folder / trial.PLAN, plan)
        self.engine.submit(folder)
        return folder

    def _repeats(self, kind: str, number: int, folder: Path, failed: Failed) -> bool:
        """Whether an attempt that `failed` is followed by another one; BadInput where the disk is full."""
        full = os.strerror(errno.ENOSPC).lower() in failed.why.lower()
        try:
            demand_room(self.study.folder, math.inf if full else LEAST_FREE)
        except BadInput:
            (folder / trial.RESULT).unlink(missing_ok=True)
            raise
        return failed.again and _attempts(self.study.folder / kind, number) < ATTEMPTS

    def _report(self, wanted: int) -> None:
        ended, seconds = len(self.study.trials()), list[float]()
        for _, _, folder in paths.numbered(self.study.folder / "trials"):
            with contextlib.suppress(InputError):
                seconds.append(read_struct(folder / trial.RESULT, trial.TrialResult, "the result of a trial").seconds)
        time_left = ""
        if seconds and ended < wanted:
            each_s = sum(seconds) / len(seconds)
            time_left = f", about {duration_text(each_s * (wanted - ended) / self.engine.slots)} left"
        self.progress(f"{min(ended, wanted)} of {wanted} trials done{time_left}", min(ended / wanted, 1.0))


def plan_grid(study: Study, wanted: int) -> int:
    """Queue all combinations if they are at most `wanted`; the number of trials that there will be."""
    if space.size(study.sweep.axes) > wanted:
        return wanted
    combinations = space.grid(study.sweep.axes)
    for chosen in combinations:
        study.storage.enqueue_trial(chosen, skip_if_exists=True)
    return len(combinations)


def _attempts(folder: Path, number: int) -> int:
    return max((attempt for of, attempt, _ in paths.numbered(folder) if of == number), default=0)
