"""The folder of a study: what is swept on which sound, one process at a time, and Optuna's journal after a kill."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from pipelines import config as settings
from pipelines.config import Config, Value
from pipelines.experiments.sweep import trial
from pipelines.experiments.sweep.journal import JOURNAL, NAME, repair
from pipelines.experiments.sweep.space import Axis, Constraint
from pipelines.run.playlist import Item
from profiler.errors import BadInput
from profiler.files import inputs
from profiler.files.paths import alone, refuse_others
from profiler.plain import one_line
from profiler.process import kernel_cache

if TYPE_CHECKING:
    import optuna

SEED: Final = 20020701
ABOUT: Final = "study.json"


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
        """What `study.json` holds."""
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

    def assigned(self, chosen: Mapping[str, Value]) -> list[str]:
        """`chosen` as words of the command line."""
        return [f"{key}={settings.value_text(value)}" for key, value in chosen.items()]


@contextlib.contextmanager
def opened(folder: Path, sweep: Sweep, note: Callable[[str], object] = lambda sentence: None) -> Iterator[optuna.Study]:
    """Open the study in `folder`, or make it. BadInput where it is another one, or another process works on it.

    `note` gets a sentence where the journal is damaged; the trials before that place count.
    """
    try:
        import optuna
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend
    except ImportError as error:
        raise BadInput("asrscope sweep needs the extra sweep: pip install 'asrscope[sweep]'.") from error

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    shown = one_line(str(folder))
    about, file = sweep.about(), folder / ABOUT
    if os.path.lexists(folder) and not os.path.lexists(file) and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{shown} is no study of a sweep; --out takes one, or a folder that is not there yet.")
    folder.mkdir(parents=True, exist_ok=True)
    with alone(folder, "study"):
        if os.path.lexists(file):
            _check_same(inputs.read_struct(file, About, "the study"), about, shown)
        else:
            trial.write_json(file, about)
        journal = folder / JOURNAL
        for left in folder.glob(f"{JOURNAL}.lock*"):  # of a process that was killed
            left.unlink()
        refuse_others(folder, "study")
        if journal.exists():
            repair(journal, sweep.axes, sweep.objectives, note)
        storage = JournalStorage(JournalFileBackend(str(journal)))
        made = optuna.create_study(
            study_name=NAME,
            storage=storage,
            load_if_exists=True,
            directions=["minimize"] * len(sweep.objectives),
        )
        # Another seed each time, or a resumed study would suggest what it has suggested.
        made.sampler = optuna.samplers.TPESampler(seed=SEED + len(made.get_trials(deepcopy=False)))
        yield made


def _check_same(kept: About, now: About, shown: str) -> None:
    """BadInput that names the first difference of two studies."""
    if kept == now:
        return
    if kept.audio != now.audio:
        name = next(name for name in {**kept.audio, **now.audio} if kept.audio.get(name) != now.audio.get(name))
        what = f"a study of other audio ({one_line(name)} differs)"
    elif kept.version != now.version:
        what = f"a study of another version of asrscope ({kept.version.split()[0]})"
        if kept.version.split()[0] == now.version.split()[0]:
            what = f"a study of asrscope {kept.version.split()[0]} with other kernels"
    elif kept.reference != now.reference:
        key = next(key for key in now.reference if kept.reference.get(key) != now.reference[key])
        what = f"a study with another reference ({key} is {one_line(kept.reference.get(key, 'unknown'))} there)"
    else:
        options = {"--over": "over", "--objectives": "objectives", "--constraint": "constraints", "--repeat": "repeat"}
        name = next(name for name, key in options.items() if getattr(kept, key) != getattr(now, key))
        what = f"a study with another {name}"
    raise BadInput(f"{shown} holds {what}; give another --out, or the same arguments.")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
