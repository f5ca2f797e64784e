"""A run of a study: trials on an engine until as many as wanted have ended, then the confirmation of the front.

A trial counts once `result.json` is in its folder. What was running when the process ended is run again, the rest is
read.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipelines import config as settings
from pipelines.config import ConfigError
from pipelines.experiments.sweep import judge, trial
from pipelines.experiments.sweep.folder import Commands
from pipelines.experiments.sweep.home import Engine
from pipelines.experiments.sweep.judge import Failed, Figures
from pipelines.experiments.sweep.space import possible
from pipelines.experiments.sweep.study import Study, Trial
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
        left = [optuna.trial.Trial(study.storage, one._trial_id) for one in study.unfinished()]
        running: dict[Path, optuna.trial.Trial] = {}
        copies = 0
        while True:
            self._report(wanted)
            while len(running) < slots and copies < MOST_COPIES:
                if not left and len(study.trials()) + len(running) >= wanted:
                    break
                one = left.pop(0) if left else study.storage.ask()
                copies = copies + 1 if study.ended_as_copy(one) else 0
                if not copies and (folder := self._started(one)) is not None:
                    running[folder] = one
            if not running:
                return
            folder = self.engine.wait(self.cancelled)
            one = running.pop(folder)
            if (next_folder := self._ended(one, folder)) is not None:
                running[next_folder] = one

    def _started(self, one: optuna.trial.Trial) -> Path | None:
        """The folder in which `one` runs now; None where it ends at once."""
        study = self.study
        chosen = study.chosen(one)
        try:
            settings.check(settings.assign(study.sweep.reference, chosen))
        except ConfigError as problem:
            study.tell(one, Failed(str(problem)))
            return None
        folder, done = self._begun("trials", one.number, study.sweep.runs(chosen))
        return self._ended(one, folder) if done else folder

    def _ended(self, one: optuna.trial.Trial, folder: Path) -> Path | None:
        """Keep what came of an attempt; the folder of the next one where it is repeated."""
        study = self.study
        outcome = judge.judged(folder, study.reference_words())
        if isinstance(outcome, Figures):
            missing = [name for name in study.sweep.objectives if outcome.objective(name) is None]
            if missing:
                outcome = Failed(f"The run has no {missing[0]}.")
        if isinstance(outcome, Failed) and self._repeats("trials", one.number, folder, outcome):
            return self._attempt("trials", one.number, study.sweep.runs(study.chosen(one)))
        study.tell(one, outcome)
        return None

    def confirm(self, everything: bool = False) -> None:
        """Compare with the reference, in turns, what may be on the front, or `everything`."""
        study, engine = self.study, self.engine
        running: dict[Path, int] = {}
        by_number = {one.number: one for one in study.trials()}
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
                one = by_number[number]
                folder, done = self._begun("confirmed", number, study.sweep.comparison(one.chosen))
                if (runs := self._confirmed(one, folder) if done else folder) is not None:
                    running[runs] = number
            if running:
                number = running.pop(folder := engine.wait(self.cancelled))
                if (runs := self._confirmed(by_number[number], folder)) is not None:
                    running[runs] = number

    def _confirmed(self, one: Trial, folder: Path) -> Path | None:
        """Keep what came of a comparison; the folder of the next one where it is repeated."""
        assert one.figures is not None
        outcome = judge.confirmed(folder, one.figures.wer)
        if isinstance(outcome, Failed) and self._repeats("confirmed", one.number, folder, outcome):
            return self._attempt("confirmed", one.number, self.study.sweep.comparison(one.chosen))
        self.study.confirmations[one.number] = outcome
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


def _attempts(folder: Path, number: int) -> int:
    return max((attempt for of, attempt, _ in paths.numbered(folder) if of == number), default=0)
