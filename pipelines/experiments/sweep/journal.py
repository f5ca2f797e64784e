"""Optuna's journal of a study: only what a sweep of the same settings and objectives writes is replayed.

Each line is an operation in JSON. Optuna checks little of it, and fails on the rest in the middle of a study.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from pipelines.experiments.sweep.judge import Figures
from pipelines.experiments.sweep.space import Axis, Choice
from profiler.files import inputs, outputs
from profiler.plain import one_line

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

NAME: Final = "sweep"
JOURNAL, DAMAGED = "journal.log", "journal.damaged"
FIGURES, FAILURE, FIXED = "figures", "failure", "fixed_params"
LARGEST: Final = 32 * inputs.MIB
"""Bytes of a journal: ten thousand trials have some twenty million."""
BEGUN: Final = 4
WRITTEN: Final = (0, BEGUN, 5, 6, 8, 9)
"""Operations of a sweep: a study, a trial, its parameters, its end, and what is noted of it."""


class Failure(msgspec.Struct, frozen=True):
    """Why a trial has no figures; `drifted`: the reference changed in each attempt."""

    why: str
    drifted: bool


def repair(journal: Path, axes: Sequence[Axis], objectives: Sequence[str], note: Callable[[str], object]) -> None:
    """Remove half a line at the end, which a killed process left. Set a damaged line and the rest aside, and `note` it.

    InputError where `journal` is no file that can be read.
    """
    content = inputs.read_bytes(journal, "the journal of a study", LARGEST)
    lines = [line + b"\n" for line in content.split(b"\n")[:-1]]
    good = _sound(lines, {axis.key: _distribution(axis) for axis in axes}, objectives)
    if good < len(lines):
        with outputs.writing(journal.with_name(DAMAGED), "the rest of a journal") as draft:
            draft.write_bytes(b"".join(lines[good:]))
        note(
            f"{one_line(str(journal))} is damaged: line {good + 1:,} is none that this sweep writes. The trials before "
            f"it count; it and the lines after it are in {DAMAGED} now."
        )
    os.truncate(journal, sum(map(len, lines[:good])))


def _sound(lines: Sequence[bytes], known: Mapping[str, BaseDistribution], objectives: Sequence[str]) -> int:
    """How many lines can be replayed, up to the first that cannot."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import BaseJournalBackend

    waiting = list[dict[str, object]]()

    class Replayed(BaseJournalBackend):
        def read_logs(self, log_number_from: int) -> Iterator[dict[str, object]]:
            while waiting:
                yield waiting.pop()

        def append_logs(self, logs: list[dict[str, object]]) -> None:
            """Nothing is written."""

    storage, trials = JournalStorage(Replayed()), 0
    for number, line in enumerate(lines):
        try:
            entry = msgspec.convert(inputs.json_tree(line, JOURNAL), dict[str, object])
            if entry["op_code"] not in WRITTEN or entry.get("study_name", NAME) != NAME:
                return number
            waiting.append(entry)
            begins = entry["op_code"] == BEGUN
            trials += begins
            if begins or "trial_id" in entry:
                trial = trials - 1 if begins else msgspec.convert(entry["trial_id"], int)
                _check(storage.get_trial(trial), known, objectives)
            elif len(storage.get_study_directions(0)) != len(objectives):
                return number
        except Exception:  # whatever it is, it comes of this line
            return number
    return len(lines)


def _check(one: FrozenTrial, known: Mapping[str, BaseDistribution], objectives: Sequence[str]) -> None:
    """Raise what comes first where a trial is none of this sweep."""
    one._validate()
    for key, value in {**one.system_attrs.get(FIXED, {}), **one.params}.items():
        if not known[key]._contains(known[key].to_internal_repr(value)):
            raise ValueError(key)
    if len(one.values or objectives) != len(objectives) or any(
        known[key] != of for key, of in one.distributions.items()
    ):
        raise ValueError(objectives)
    if not all(isinstance(excess, float | int) for excess in one.constraints.values()):
        raise ValueError(one.constraints)
    if FIGURES in one.user_attrs:
        figures = msgspec.convert(one.user_attrs[FIGURES], Figures)
        if any(figures.objective(name) is None for name in objectives):
            raise ValueError(figures)
    msgspec.convert(one.user_attrs.get(FAILURE), Failure | None)


def _distribution(axis: Axis) -> BaseDistribution:
    """What Optuna chooses from for a setting."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(axis, Choice):
        return CategoricalDistribution(list(axis.values))
    return IntDistribution(int(axis.low), int(axis.high)) if axis.whole else FloatDistribution(axis.low, axis.high)
