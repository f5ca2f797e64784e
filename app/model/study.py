"""The study of a sweep, from the report (the object of `--json`) that it writes whenever a trial has ended. No Qt."""

import csv
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final

import msgspec

from app.model.report import Tree
from pipelines.audio.word_errors import rate_name
from pipelines.config import value_text
from profiler.errors import BadInput
from profiler.export.table import text_cell
from profiler.files import paths
from profiler.files.inputs import MIB, read_struct
from profiler.files.outputs import writing
from profiler.plain import one_line

REPORT: Final = "report.json"  # What makes a folder the study of a sweep
LARGEST: Final = 16 * MIB  # Bytes of a report: 10 000 trials have 6 MB
MOST: Final = 1e15  # No figure of a run is higher, and no number of a setting is further from 0
LONGEST: Final = 4096  # Characters of a setting: a path has no more
MOST_SETTINGS: Final = 200

Figure = Annotated[float, msgspec.Meta(ge=0.0, le=MOST)]
Name = Annotated[str, msgspec.Meta(max_length=LONGEST)]


class Trial(msgspec.Struct, frozen=True):
    """A trial that has ended. `why`: why it failed or was rejected, or which constraint it violates."""

    id: int
    state: str
    settings: dict[Name, bool | int | float | Name]
    rtf: Figure | None
    rtf_ratio: Figure | None
    wer: Figure | None
    memory_bytes: Figure | None
    latency_s: Figure | None
    session: str | None
    host: str | None
    why: str | None
    cer: Figure | None = None

    @property
    def text(self) -> str:
        return " ".join(f"{key}={value_text(value)}" for key, value in self.settings.items())


class Point(msgspec.Struct, frozen=True):
    """A trial on the front: its ratio to the reference by interleaved repeats, where these succeeded."""

    trial: int
    rtf_ratio: Figure | None
    rtf_ratio_ci95: tuple[Figure, Figure] | None
    touches: list[int]
    why: str | None


TIME: Final = "rtf"  # The objective that a ratio to the reference is of


@dataclass(frozen=True)
class Objective:
    """How an objective is shown: `title`, the field of a trial, and the `factor` to `unit`."""

    title: str
    field: str
    factor: float
    unit: str


OBJECTIVES: Final[Mapping[str, Objective]] = {
    TIME: Objective("time / reference", "rtf_ratio", 1.0, ""),
    "wer": Objective("word error rate", "wer", 100.0, "%"),
    "memory": Objective("peak memory", "memory_bytes", 1e-6, "MB"),
    "latency": Objective("latency", "latency_s", 1e3, "ms"),
}


OPTIONS: Final = (  # Of a stranger's `asrscope sweep`: none writes a file or asks a server
    *("--preset", "--config", "--set", "--audio", "--transcripts", "--repeat"),
    *("--over", "--trials", "--objectives", "--constraint"),
)


class Study(msgspec.Struct, frozen=True, dict=True):
    """The report of a sweep. `command`: its arguments but for the folder; `complete`: there is nothing left to do."""

    study: str
    objectives: list[str]
    trials: list[Trial]
    front: list[Point]
    importance: dict[str, dict[str, Figure]]
    command: list[str]
    complete: bool

    def __post_init__(self) -> None:
        ids = {trial.id for trial in self.trials}
        other_options = any(word.startswith("-") and word not in OPTIONS for word in self.command)
        numbers = (value for trial in self.trials for value in trial.settings.values() if not isinstance(value, str))
        for wrong, what in (
            (len(ids) < len(self.trials), "two trials have one number"),
            (not {point.trial for point in self.front} <= ids, "a trial of the front is missing"),
            (not set(self.objectives) <= OBJECTIVES.keys(), "an objective is unknown"),
            (any(abs(number) > MOST for number in numbers), "the number of a setting is too large"),
            (len(self.keys) > MOST_SETTINGS, "it has too many settings"),
            (other_options, "its command has other options"),
        ):
            if wrong:
                raise ValueError(what)

    @cached_property
    def by_id(self) -> Mapping[int | None, Trial]:
        """The trials by their numbers; None is the number of none."""
        return {trial.id: trial for trial in self.trials}

    @cached_property
    def points(self) -> Mapping[int, Point]:
        return {point.trial: point for point in self.front}

    @cached_property
    def keys(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key for trial in self.trials for key in trial.settings))

    def chosen(self, trial: Trial) -> list[int | float | str | None]:
        values = map(trial.settings.get, self.keys)
        return [value_text(value) if isinstance(value, bool) else value for value in values]

    def figure(self, trial: Trial, name: str) -> float | None:
        """What a trial has of an objective, in its unit; a confirmed ratio in place of the first one."""
        value: float | None = getattr(trial, OBJECTIVES[name].field)
        point = self.points.get(trial.id)
        if name == TIME and point is not None and point.rtf_ratio is not None:
            value = point.rtf_ratio
        return None if value is None else OBJECTIVES[name].factor * value

    def figures(self, name: str) -> list[float]:
        """What the trials that have a result have of an objective, in its unit."""
        figures = (self.figure(trial, name) for trial in self.trials if trial.why is None)
        return [figure for figure in figures if figure is not None]

    def title(self, name: str) -> str:
        """Of an objective; errors are those of characters where the references have no spaces between words."""
        measured = [trial for trial in self.trials if trial.wer is not None]
        if name == "wer" and measured and all(rate_name(trial.wer, trial.cer) == "CER" for trial in measured):
            return "character error rate"
        return OBJECTIVES[name].title

    def ends(self, trial: Trial) -> tuple[float, float] | None:
        """The 95 % interval of a trial's ratio, where it was confirmed."""
        return point.rtf_ratio_ci95 if (point := self.points.get(trial.id)) is not None else None

    def fastest(self, name: str, limit: float) -> Trial | None:
        """The trial with the lowest ratio whose figure of objective `name` is at most `limit`, in its unit."""
        found = []
        for trial in self.trials:
            figure, ratio = self.figure(trial, name), self.figure(trial, TIME)
            if trial.why is None and figure is not None and ratio is not None and figure <= limit:
                found.append((ratio, trial.id))
        return self.by_id[min(found)[1]] if found else None


def read(folder: Path) -> Study:
    """The study in `folder`; BadInput, one sentence, where there is none that can be read."""
    shown = one_line(str(folder))
    if os.path.isdir(folder) and not os.path.lexists(folder / REPORT):
        raise BadInput(f"{shown} is a folder without {REPORT}, so it holds no study of a sweep.")
    return read_struct(folder / REPORT, Study, "the report of a sweep", LARGEST)


def study_of(tree: Tree) -> Study:
    return msgspec.convert(tree, Study)


def session_of(trial: Trial, folder: Path) -> Path | None:
    """The session of a trial of the study in `folder`, wherever that was when the trial ran; None without any."""
    return paths.inside(folder, trial.session or "", 3)


def write_csv(study: Study, path: str | os.PathLike[str]) -> None:
    """Write a row for each trial with all its figures (RFC 4180), blank where there is none; OutputError."""
    figures = [name for name in Trial.__struct_fields__ if name not in ("id", "state", "settings", "why")]
    confirmed = ("rtf_ratio_confirmed", "rtf_ratio_low", "rtf_ratio_high")
    with (
        writing(path, "the table of the sweep") as draft,
        draft.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file,
    ):
        table = csv.writer(file)
        header = ("trial", "state", "front", *study.keys, *figures, *confirmed, "why")
        table.writerow(map(text_cell, header))
        for trial in study.trials:
            point = study.points.get(trial.id)
            ends = study.ends(trial) or (None, None)
            row = (
                *(trial.id, trial.state, "no" if point is None else "yes"),
                *study.chosen(trial),
                *(getattr(trial, name) for name in figures),
                *(None if point is None else point.rtf_ratio, *ends, trial.why or (point and point.why)),
            )
            table.writerow([text_cell(value) if isinstance(value, str) else value for value in row])
