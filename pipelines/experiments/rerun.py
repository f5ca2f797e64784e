"""Running a session's audio again, under its own settings and changed ones, interleaved.

`audio_of` takes a bounded stretch of what a session decoded (or of the bundled voices), `interleave` decodes it by
several arms in turns, so that drift hits all alike, `counted` runs the scorer alone for its work counts. Nothing is
written: each arm ends as a `Recording`, which the analysis reads as it reads a session.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import numpy as np
import soundfile
from threadpoolctl import threadpool_limits

from pipelines import config as settings
from pipelines.audio import loading as audio
from pipelines.config import Config
from pipelines.frontend.parameters import SAMPLE_RATE
from pipelines.models import opening
from pipelines.run import playlist
from pipelines.run.control import Control
from pipelines.run.decode import Decoder
from pipelines.run.null_writer import Unrecorded
from pipelines.run.playlist import Item
from pipelines.run.recogniser import Progress, Recogniser, build
from pipelines.scoring import Prepared, build_scorer, with_context
from profiler.analysis.statistics import Ratio, alternated
from profiler.arrays import Array
from profiler.errors import BadInput, Cancelled
from profiler.files import inputs
from profiler.machine.roofs.peaks import Peaks
from profiler.plain import one_line
from profiler.session.model import LaneInfo, StageInfo
from profiler.spans import SPAN, TILING, Cost, Lane, NullLane, Recorder

STRETCH_S: Final = 12.0
"""Audio that an arm decodes per round: half a second to three seconds of work."""

WARM_UP_ROUNDS: Final = 1
LEAST_ROUNDS, MOST_ROUNDS = 4, 12
BUDGET_S: Final = 40.0
"""Rounds are taken for about so long, within the two limits."""

FOLDER_KEY: Final = "model_directory"
"""The setting that names a folder; every other text names a file."""

COUNTED_FRAMES: Final = 64
CELL_FRAMES: Final = 64

Cells = dict[str, Array]


@dataclass(frozen=True)
class Stretch:
    """What is decoded: files of `audio_s` seconds together, and a sentence that says what they are."""

    items: tuple[Item, ...]
    audio_s: float
    note: str


@dataclass
class Recording:
    """The spans of one arm, with what the analysis reads of a session."""

    stages: dict[int, StageInfo]
    costs: dict[tuple[int, int], Cost]
    calibration: Peaks
    lanes: dict[int, LaneInfo] = field(
        default_factory=lambda: {0: LaneInfo(0, "decode", "cpu", True, 0, 0)}
    )
    spans: Array = field(default_factory=lambda: np.empty(0, SPAN))
    generation: int = 0
    meta: dict[str, Any] = field(default_factory=dict)
    configs: list[Any] = field(default_factory=list)
    utterances: list[Any] = field(default_factory=list)


@dataclass
class Arm:
    """A configuration to decode by; `recording` and times (ns [rounds, cells]) are there after the run.

    A cell is a stretch of CELL_FRAMES of one file, so that a burst of noise spoils little.
    """

    name: str
    config: Config
    recording: Recording | None = None
    wall_ns: Array = field(default_factory=lambda: np.empty((0, 0)))
    stage_ns: dict[str, Array] = field(default_factory=dict)


def settings_of(configs: Sequence[Any], n_frames: int) -> tuple[Config, int, int]:
    """The settings that ran longest in a session: (settings, first frame, frame after the last).

    `configs`: `Session.configs`. BadInput when there are none, or they are not this program's.
    """
    if not configs:
        raise BadInput("The session holds no configuration, so it cannot be run again.")
    begins = [config.first_frame for config in configs]
    spans = list(pairwise([*begins, max(n_frames, begins[-1])]))
    longest = max(range(len(spans)), key=lambda i: spans[i][1] - spans[i][0])
    config = settings.from_dict(configs[longest].tree, "the session's configuration")
    return config, *spans[longest]


def named_files(config: Config, session: Path) -> list[str]:
    """A sentence on the files that settings of a session name, which running them again opens.

    They may be a stranger's choice: BadInput for one that is no regular file (no folder, for a folder) of this
    machine.
    """
    named = []
    for option in settings.options():
        value = settings.get(config, option.key)
        if option.type != "text" or not value or str(value) in option.shipped():
            continue
        path = Path(str(value))
        folder = option.key == FOLDER_KEY
        if not _of_this_machine(path) or not (path.is_dir() if folder else inputs.regular(path)):
            raise BadInput(
                f"{session} names {one_line(str(value))} as its {option.key}, and no {'folder' if folder else 'file'} "
                "of this machine is there; it cannot be run again."
            )
        named.append(f"{option.key}={one_line(str(value))}")
    return [f"Run again with what the session names: {', '.join(named)}."] if named else []


def _of_this_machine(path: Path) -> bool:
    """Whether a path leads to no other computer by its form: \\\\server\\share would tell it who asks."""
    return not (os.name == "nt" and path.drive.startswith("\\\\"))


def audio_of(paths: Iterable[str], folder: Path, limit_s: float = STRETCH_S) -> Stretch:
    """The first `limit_s` seconds of the files at `paths`; a longer file is cut into `folder`.

    Files that are gone, unreadable or none (pipes, devices) are left out; without any, the bundled voices are taken.
    """
    wanted = list(dict.fromkeys(paths))
    items, seconds = _gather([Path(path) for path in wanted], folder, limit_s)
    if items:
        files = f"{len(items)} of its {len(wanted)} files" if len(wanted) > 1 else "its file"
        return Stretch(items, seconds, f"{seconds:.1f} s of the session's audio, from {files}")
    voices = [item.path for item in playlist.build((), None)]
    items, seconds = _gather(voices, folder, limit_s)
    why = "the session's audio is gone" if wanted else "the session names no audio"
    return Stretch(
        items, seconds, f"{why}: {seconds:.1f} s of the bundled synthetic voices instead"
    )


def _gather(paths: list[Path], folder: Path, limit_s: float) -> tuple[tuple[Item, ...], float]:
    items: list[Item] = []
    seconds = 0.0
    for path in paths:
        left = limit_s - seconds
        if left < limit_s / 4 and items:
            break
        if not (_of_this_machine(path) and inputs.regular(path)):
            continue
        try:
            length = audio.load(path).duration_s
            if length > 1.25 * left:
                path, length = _cut(path, left, folder / f"{len(items)}.wav"), left
        except (audio.AudioError, OSError):
            continue
        items.append(Item(path.stem, path, None))
        seconds += length
    return tuple(items), seconds


def _cut(path: Path, seconds: float, target: Path) -> Path:
    samples = audio.load(path).samples[: int(seconds * SAMPLE_RATE)]
    soundfile.write(target, samples, SAMPLE_RATE, subtype="FLOAT")
    return target


def interleave(
    arms: Sequence[Arm],
    stretch: Stretch,
    peaks: Peaks,
    progress: Progress,
    cancelled: Callable[[], bool],
    budget_s: float = BUDGET_S,
) -> int:
    """Decode `stretch` by each arm in turns, round after round; returns how many rounds count.

    Which arm begins changes from item to item and from round to round. Raises Cancelled, and
    what `recogniser.build` raises.
    """
    runners = _runners(arms, peaks, progress, cancelled)
    times: list[list[list[Cells]]] = [[] for _ in arms]
    gc.collect()
    gc.freeze()
    try:
        rounds, done, started = LEAST_ROUNDS, -WARM_UP_ROUNDS, perf_counter()
        while done < rounds:
            if done == 0:
                took = (perf_counter() - started) / WARM_UP_ROUNDS
                rounds = int(np.clip(budget_s / max(took, 1e-3), LEAST_ROUNDS, MOST_ROUNDS))
            progress("running", (done + WARM_UP_ROUNDS) / (rounds + WARM_UP_ROUNDS))
            for turn in times:
                turn.append([{} for _ in stretch.items])
            for place, item in enumerate(stretch.items):
                for i in range(len(arms)):
                    number = (i + place + done) % len(arms)
                    if cancelled():
                        raise Cancelled
                    times[number][-1][place] = runners[number].decode(item, keep=done >= 0)
            done += 1
    finally:
        gc.unfreeze()
    for arm, runner, turns in zip(arms, runners, times, strict=True):
        runner.finish(arm, turns[WARM_UP_ROUNDS:])
    return rounds


def _runners(
    arms: Sequence[Arm], peaks: Peaks, progress: Progress, cancelled: Callable[[], bool]
) -> list[_Runner]:
    """Arms that differ in live settings alone share a recogniser, and with it the places of its data."""
    made: list[tuple[Config, Recogniser]] = []
    runners = []
    for arm in arms:
        config = settings.replace(settings.replace(arm.config, "pace", 0), "loop", False)
        fixed = _without_live(config)
        recogniser = next((r for c, r in made if c == fixed), None)
        if recogniser is None:
            recogniser = build(config, Recorder(), NullLane(), progress, cancelled)
            made.append((fixed, recogniser))
        prepared = recogniser.scorer.make_ready(config, progress, cancelled)
        runners.append(_Runner(config, recogniser, prepared, peaks))
    return runners


def _without_live(config: Config) -> Config:
    for option in settings.options():
        if option.live:
            config = settings.replace(config, option.key, option.default)
    return config


class _Runner:
    """Decodes by one arm and takes the spans out after each file."""

    def __init__(
        self, config: Config, recogniser: Recogniser, prepared: Prepared, peaks: Peaks
    ) -> None:
        self._config, self._recogniser, self._prepared = config, recogniser, prepared
        self._recorder = Recorder()
        self._lane = self._recorder.lane("decode", decode=True)
        recogniser.configure(config, prepared)
        self._decoder = Decoder(recogniser, self._recorder, self._lane, Unrecorded(), Control())
        self._recording = Recording(
            {stage.id: stage for stage in self._recorder.stages},
            {(stage, epoch): cost for stage, epoch, cost in self._recorder.costs},
            peaks,
        )
        self._kept: list[Array] = []

    def decode(self, item: Item, keep: bool) -> Cells:
        """Decode one file; returns ns by stage and cell, and the wall time under the name ""."""
        if self._recogniser.config != self._config:
            self._recogniser.configure(self._config, self._prepared)
        # Another arm may have made the shared stages known to its own recorder.
        self._recogniser.register(self._recorder)
        first = self._decoder.frame
        with threadpool_limits(self._config.threads):
            self._decoder.run([item])
        spans = drained(self._lane)
        if refused := self._decoder.result.refused:
            raise BadInput(refused[0])
        if keep:
            self._kept.append(spans)
        return _cells(spans, self._recording.stages, first, self._decoder.frame)

    def finish(self, arm: Arm, turns: list[list[Cells]]) -> None:
        """Hand the times and the spans of the rounds that count to the arm."""
        self._recording.spans = np.concatenate(self._kept)
        _hand_over(arm, self._recording, turns)


def _cells(spans: Array, stages: Mapping[int, StageInfo], first: int, after: int) -> Cells:
    """Sum up the spans of the frames first … after − 1 by stage and cell; "" is the wall time."""
    cells = -(-(after - first) // CELL_FRAMES)
    # A span counts where it begins: cells are compared with the same cells of other rounds.
    cell = np.minimum((spans["first_frame"] - np.uint32(first)) // CELL_FRAMES, cells - 1)
    times: Cells = {"": np.zeros(cells)}
    for number in np.unique(spans["stage"]):
        stage, mine = stages[int(number)], spans["stage"] == number
        taken = np.bincount(cell[mine], spans["duration_ns"][mine], cells)
        if stage.group in TILING:
            times[""] += taken
        elif stage.group not in {"idle", "setup"}:
            times[stage.name] = taken
    return times


def _hand_over(arm: Arm, recording: Recording, turns: list[list[Cells]]) -> None:
    arm.recording = recording
    for name in {name for turn in turns for times in turn for name in times}:
        table = [
            np.concatenate([times.get(name, np.zeros(len(times[""]))) for times in turn])
            for turn in turns
        ]
        arm.stage_ns[name] = np.array(table)
    arm.wall_ns = arm.stage_ns.pop("")


def ratio(before: Array, after: Array) -> Ratio | None:
    """Ratio of times after / before, both ns [rounds, cells] of the same rounds; None where one is zero."""
    return alternated(before, after).ratio()


def drained(lane: Lane) -> Array:
    """Take all spans out of a lane; BadInput when the ring was too small for them."""
    if lane.dropped:
        raise BadInput("More spans were recorded than fit the ring; take shorter audio.")
    parts = []
    while lane.waiting:
        parts.append(np.frombuffer(lane.take(), SPAN))
    return np.concatenate(parts) if parts else np.empty(0, SPAN)


class Alone:
    """A scorer without front end and search before and after it."""

    def __init__(self, config: Config, model: Any, peaks: Peaks) -> None:
        """`model`: an AcousticModel, or what `pipelines.scoring` reads of one."""
        self._recorder, self._block = Recorder(), config.block
        self._lane = self._recorder.lane("decode", decode=True)
        self._scorer = build_scorer(config, model)
        self._scorer.stages(self._recorder)
        self._tile = self._recorder.stage("decode.block", "decode")
        self.recording = Recording(
            {stage.id: stage for stage in self._recorder.stages},
            {
                (self._recorder.stage_id(stage), 0): cost
                for stage, cost in self._scorer.costs().items()
            },
            peaks,
        )

    def score(self, features: Array) -> Cells:
        """Score f32 [frames, 39] block by block; the spans are added to the recording."""
        clock, lane = self._recorder.clock, self._lane
        self._scorer.reset()
        beyond = sum(self._scorer.context)
        padded = with_context(features, self._scorer.context)
        for at in range(0, len(features), self._block):
            n = min(self._block, len(features) - at)
            start = clock()
            self._scorer.score(padded[at : at + n + beyond], at, lane)
            lane.put(self._tile, start, clock(), at, n)
        spans = drained(lane)
        self.recording.spans = np.concatenate([self.recording.spans, spans])
        return _cells(spans, self.recording.stages, 0, len(features))


def counted(
    configs: Mapping[str, Config], peaks: Peaks, cancelled: Callable[[], bool] = lambda: False
) -> dict[str, Recording]:
    """Run the scorer of each configuration over a few blocks of noise, for its counts and laws.

    The times of these recordings say nothing; the number of frames is the same for all.
    """
    features = np.random.default_rng(0).standard_normal((4 * COUNTED_FRAMES, 39)).astype(np.float32)
    found = {}
    for name, config in configs.items():
        model = opening.open_model(config, cancelled=cancelled)
        alone = Alone(config, model, peaks)
        alone.score(features)
        found[name] = alone.recording
    return found


def alternate(arms: Sequence[tuple[Arm, Any]], features: Array, peaks: Peaks) -> int:
    """Score `features` f32 [frames, 39] by arms of (arm, model) in turns; returns how many rounds count."""
    scorers = [Alone(arm.config, model, peaks) for arm, model in arms]
    turns: list[list[list[Cells]]] = [[] for _ in arms]
    for done in range(-WARM_UP_ROUNDS, MOST_ROUNDS):
        if done == 0:
            for scorer in scorers:
                scorer.recording.spans = np.empty(0, SPAN)
        for i in range(len(arms)):
            number = (i + done) % len(arms)
            times = scorers[number].score(features)
            if done >= 0:
                turns[number].append([times])
    for (arm, _), scorer, turn in zip(arms, scorers, turns, strict=True):
        _hand_over(arm, scorer.recording, turn)
    return MOST_ROUNDS
