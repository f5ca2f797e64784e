"""Optuna's journal of a study: only lines that a sweep of the same settings and objectives writes are replayed.

Each line is an operation in JSON. Optuna checks nothing, and what a damaged line says fails in the middle of a study.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from pipelines.config import Value
from pipelines.experiments.sweep.judge import Figures
from pipelines.experiments.sweep.space import Axis, Choice
from profiler.files import inputs, outputs
from profiler.plain import one_line

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

NAME: Final = "sweep"
JOURNAL, DAMAGED = "journal.log", "journal.damaged"
FIGURES, FAILURE = "figures", "failure"
LARGEST: Final = 32 * inputs.MIB
"""Bytes of a journal: ten thousand trials have some twenty million."""


class Failure(msgspec.Struct, frozen=True):
    """Why a trial has no figures; `drifted`: the reference changed in each attempt."""

    why: str
    drifted: bool


class _Entry(msgspec.Struct, tag_field="op_code"):
    worker_id: str


class _Study(_Entry, tag=0):
    study_name: Literal["sweep"]
    directions: list[Literal[1]]


class _Fixed(msgspec.Struct):
    fixed_params: dict[str, Value]


class _Begun(_Entry, tag=4):
    study_id: Literal[0]
    datetime_start: str | None
    state: Literal[0, 4] = 0
    value: None = None
    values: None = None
    params: dict[str, None] = {}
    system_attrs: _Fixed | None = None


class _Parameter(_Entry, tag=5):
    trial_id: int
    param_name: str
    param_value_internal: float
    distribution: str


class _Ended(_Entry, tag=6):
    trial_id: int
    state: Literal[0, 1, 2, 3, 4]
    values: list[float] | None


class _Attributes(msgspec.Struct, forbid_unknown_fields=True):
    figures: Figures | None = None
    failure: Failure | None = None


class _Shown(_Entry, tag=8):
    trial_id: int
    user_attr: _Attributes


class _Constraint(_Entry, tag=9):
    trial_id: int
    system_attr: dict[str, float | list[float]]


_ENTRIES: Final = msgspec.json.Decoder(_Study | _Begun | _Parameter | _Ended | _Shown | _Constraint)


def repair(journal: Path, axes: Sequence[Axis], objectives: Sequence[str], note: Callable[[str], object]) -> None:
    """Remove half a line at the end, which a killed process left. Set a damaged line and the rest aside, and `note` it.

    InputError where `journal` is no file that can be read.
    """
    content = inputs.read_bytes(journal, "the journal of a study", LARGEST)
    lines = [line + b"\n" for line in content.split(b"\n")[:-1]]
    good = _sound(lines, axes, objectives)
    if good < len(lines):
        with outputs.writing(journal.with_name(DAMAGED), "the rest of a journal") as draft:
            draft.write_bytes(b"".join(lines[good:]))
        note(
            f"{one_line(str(journal))} is damaged: line {good + 1:,} is none that this sweep writes. The trials before "
            f"it count; it and the lines after it are in {DAMAGED} now."
        )
    os.truncate(journal, sum(map(len, lines[:good])))


def _sound(lines: Sequence[bytes], axes: Sequence[Axis], objectives: Sequence[str]) -> int:
    """How many lines can be replayed, up to the first that cannot."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import BaseJournalBackend

    distributions = {axis.key: _distribution(axis) for axis in axes}

    class Lines(BaseJournalBackend):
        applied = 0

        def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
            for line in lines[log_number_from:]:
                _check(_ENTRIES.decode(line), distributions, objectives)
                yield json.loads(line)
                self.applied += 1  # asked for the next one: Optuna has taken this one

        def append_logs(self, logs: list[dict[str, Any]]) -> None:
            """Nothing is written."""

    backend = Lines()
    with contextlib.suppress(Exception):  # whatever Optuna raises comes from the line that it was given
        JournalStorage(backend)
    return backend.applied


def _check(entry: _Entry, distributions: Mapping[str, BaseDistribution], objectives: Sequence[str]) -> None:
    """ValueError or KeyError for an entry that does not fit this sweep."""
    from optuna.distributions import json_to_distribution

    match entry:
        case _Study():
            fits = len(entry.directions) == len(objectives)
        case _Begun(system_attrs=_Fixed() as given):
            fits = all(
                distributions[k]._contains(distributions[k].to_internal_repr(v)) for k, v in given.fixed_params.items()
            )
        case _Parameter():
            wanted = distributions[entry.param_name]
            fits = json_to_distribution(entry.distribution) == wanted and wanted._contains(entry.param_value_internal)
        case _Ended():
            fits = len(entry.values or objectives) == len(objectives) and (entry.state == 1) == (
                entry.values is not None
            )
        case _Shown(user_attr=_Attributes(figures=Figures() as figures)):
            fits = all(figures.objective(name) is not None for name in objectives)
        case _:
            fits = True
    if not fits:
        raise ValueError(entry)


def _distribution(axis: Axis) -> BaseDistribution:
    """What Optuna is asked to choose from for a setting."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(axis, Choice):
        return CategoricalDistribution(list(axis.values))
    return IntDistribution(int(axis.low), int(axis.high)) if axis.whole else FloatDistribution(axis.low, axis.high)
