"""The folder of a study: what is swept on which sound, one process at a time, and Optuna's journal after a kill.

Only lines of the journal that a sweep of the same settings and objectives writes are replayed. Each line is an
operation in JSON; Optuna checks little of it, and fails on the rest in the middle of a study.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from pipelines import config as settings
from pipelines.config import Config, Value
from pipelines.experiments.sweep.judge import AB, AFTER, BEFORE, TRIED, Failed, Figures
from pipelines.experiments.sweep.space import Axis, Choice, Constraint
from pipelines.run.playlist import Item
from profiler.errors import BadInput
from profiler.files import inputs, outputs
from profiler.files.paths import alone, refuse_others
from profiler.plain import one_line
from profiler.process import kernel_cache

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

SEED: Final = 20020701
ABOUT: Final = "study.json"
NAME: Final = "sweep"
JOURNAL, DAMAGED = "journal.log", "journal.damaged"
FIGURES, FAILURE, FIXED = "figures", "failure", "fixed_params"
LARGEST: Final = 32 * inputs.MIB  # Bytes of a journal: ten thousand trials have some twenty million
BEGUN: Final = 4
WRITTEN: Final = (0, BEGUN, 5, 6, 8, 9)
"""Operations of a sweep: a study, a trial, its parameters, its end, and what is noted of it."""


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
    numbers = all(isinstance(excess, float | int) for excess in one.constraints.values())
    same = all(known[key] == of for key, of in one.distributions.items())
    figures = msgspec.convert(one.user_attrs.get(FIGURES), Figures | None)
    missing = figures is not None and any(figures.objective(name) is None for name in objectives)
    if missing or not (same and numbers) or len(one.values or objectives) != len(objectives):
        raise ValueError(one)
    msgspec.convert(one.user_attrs.get(FAILURE), Failed | None)


def _distribution(axis: Axis) -> BaseDistribution:
    """What Optuna chooses from for a setting."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(axis, Choice):
        return CategoricalDistribution(list(axis.values))
    return IntDistribution(int(axis.low), int(axis.high)) if axis.whole else FloatDistribution(axis.low, axis.high)


CONFIRM_REPEATS: Final = 10  # Enough to find 5 % (tests/bench/ab_validation.py)
Commands = Mapping[str, Sequence[str]]
"""Those of a trial by name; each writes its session into the folder of the attempt."""
Kept = TypeVar("Kept", bound=msgspec.Struct)


class About(msgspec.Struct, frozen=True):
    """What makes two studies the same. Settings as text by key, audio as digest by name of the utterance."""

    version: str
    over: list[str]
    objectives: list[str]
    constraints: list[str]
    repeat: int
    reference: dict[str, str]
    audio: dict[str, str]


@dataclass(frozen=True)
class Sweep:
    """What is swept: the reference, the settings to vary, and the words of `asrscope run` and `ab` for the reference.

    `program`: the command that runs asrscope. `words`: its arguments for preset, settings and audio.
    """

    reference: Config
    axes: tuple[Axis, ...]
    objectives: tuple[str, ...]
    constraints: tuple[Constraint, ...]
    items: tuple[Item, ...]
    program: tuple[str, ...]
    words: tuple[str, ...]
    repeat: int

    def about(self) -> About:
        digests = {path: _digest(path) for path in {item.path for item in self.items}}
        return About(
            version=f"{importlib.metadata.version('asrscope')} {kernel_cache.digest()}",
            over=[axis.text for axis in self.axes],
            objectives=list(self.objectives),
            constraints=[f"{c.name}<={c.limit:g}" for c in self.constraints],
            repeat=self.repeat,
            reference={
                option.key: settings.value_text(settings.get(self.reference, option.key))
                for option in settings.options()
            },
            audio={item.name: f"{digests[item.path]} {item.part} {item.reference}" for item in self.items},
        )

    def runs(self, chosen: Mapping[str, Value]) -> Commands:
        """A run with the settings `chosen` between two of the reference."""
        run = [*self.program, "run", *self.words, "--repeat", str(self.repeat)]
        return {BEFORE: run, TRIED: [*run, *_assigned("--set", chosen)], AFTER: run}

    def comparison(self, chosen: Mapping[str, Value]) -> Commands:
        """The settings `chosen` and the reference in turns."""
        words = [*self.program, "ab", *self.words, "--repeat", str(CONFIRM_REPEATS)]
        return {AB: [*words, *_assigned("--b", chosen)]}


def _assigned(option: str, chosen: Mapping[str, Value]) -> list[str]:
    """`chosen` as words of the command line, each after `option`."""
    return [word for key, each in chosen.items() for word in (option, f"{key}={settings.value_text(each)}")]


@contextlib.contextmanager
def opened(folder: Path, sweep: Sweep, note: Callable[[str], object] = lambda sentence: None) -> Iterator[optuna.Study]:
    """Open the study in `folder` as `held`; `note` gets a sentence where its journal is damaged behind what counts."""
    try:
        import optuna
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend
    except ImportError as error:
        raise BadInput("asrscope sweep needs the extra sweep: pip install 'asrscope[sweep]'.") from error

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with held(folder, sweep.about(), "sweep", _difference):
        journal = folder / JOURNAL
        if journal.exists():
            repair(journal, sweep.axes, sweep.objectives, note)
        storage = JournalStorage(JournalFileBackend(str(journal)))
        made = optuna.create_study(
            study_name=NAME, storage=storage, load_if_exists=True, directions=["minimize"] * len(sweep.objectives)
        )
        # Another seed each time, or a resumed study would suggest what it has suggested.
        made.sampler = optuna.samplers.TPESampler(seed=SEED + len(made.get_trials(deepcopy=False)))
        yield made


@contextlib.contextmanager
def held(folder: Path, about: Kept, what: str, difference: Callable[[Kept, Kept], str]) -> Iterator[None]:
    """Hold the study of a `what` in `folder`, or make it: `about` says what makes two studies the same.

    BadInput where another process works on it, or it is another one; `difference` (of kept and now) says which.
    """
    shown, file = one_line(str(folder)), folder / ABOUT
    if os.path.lexists(folder) and not os.path.lexists(file) and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{shown} is no study of a {what}; --out takes one, or a folder that is not there yet.")
    folder.mkdir(parents=True, exist_ok=True)
    with alone(folder, "study"):
        for left in folder.glob(f"{JOURNAL}.lock*"):  # of a process that was killed
            left.unlink()
        refuse_others(folder, "study")
        if not file.exists():
            with outputs.writing(file, "the study") as draft:
                draft.write_bytes(msgspec.json.encode(about))
        elif (kept := inputs.read_struct(file, type(about), "the study")) != about:
            raise BadInput(f"{shown} holds {difference(kept, about)}; give another --out, or the same arguments.")
        yield


def _difference(kept: About, now: About) -> str:
    if kept.audio != now.audio:
        name = next(name for name in {**kept.audio, **now.audio} if kept.audio.get(name) != now.audio.get(name))
        return f"a study of other audio ({one_line(name)} differs)"
    if kept.version != now.version:
        version = kept.version.split()[0]
        if version == now.version.split()[0]:
            return f"a study of asrscope {version} with other kernels"
        return f"a study of another version of asrscope ({version})"
    if kept.reference != now.reference:
        key = next(key for key in now.reference if kept.reference.get(key) != now.reference[key])
        return f"a study with another reference ({key} is {one_line(kept.reference.get(key, 'unknown'))} there)"
    options = {"--over": "over", "--objectives": "objectives", "--constraint": "constraints", "--repeat": "repeat"}
    name = next(name for name, key in options.items() if getattr(kept, key) != getattr(now, key))
    return f"a study with another {name}"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
