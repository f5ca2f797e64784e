"""Running a session's audio again, under its own settings and changed ones, interleaved.

`audio_of` takes a bounded stretch of what a session decoded (or of the bundled voices), `decode` decodes it by several
arms in turns. Nothing is written: each arm ends as a `ArmRecording`, which the analysis reads as it reads a session.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from pipelines import config as settings
from pipelines.audio import loading as audio
from pipelines.audio.writing import write_wav
from pipelines.config import Config, Value
from pipelines.frontend.parameters import Target
from pipelines.run import playlist
from pipelines.run.control import Control
from pipelines.run.decode import Decoder
from pipelines.run.interleave import turns
from pipelines.run.playlist import Item
from pipelines.run.recogniser import Progress, Recogniser, build
from pipelines.scoring import Prepared
from profiler.analysis.comparison.arms import FrameSums, Times, lay_out
from profiler.arrays import Array
from profiler.errors import BadInput, Cancelled
from profiler.files import inputs, paths
from profiler.machine.roofs.table import RoofTable
from profiler.plain import one_line
from profiler.recording.drained_lane import DrainedLane
from profiler.session.model import LaneInfo, StageInfo, Utterance
from profiler.session.writer import NullWriter
from profiler.spans import SPAN, Cost, NullLane, Recorder

STRETCH_S: Final = 12.0  # Audio that an arm decodes per round: half a second to three seconds of work
WARM_UP_ROUNDS: Final = 1
MIN_ROUNDS, MAX_ROUNDS = 4, 12
BUDGET_S: Final = 40.0  # Rounds are taken for about so long, within the two limits
FOLDER_KEY: Final = "model_directory"  # The setting that names a folder; every other text names a file
NO_SETTINGS: Final[Mapping[str, Value]] = {}
AT_ONCE: Final[Mapping[str, Value]] = {"pace": 0, "loop": False}
"""Settings of what is decoded once, as fast as possible."""


@dataclass(frozen=True)
class Stretch:
    """The audio to decode: files of `audio_s` seconds together, and a sentence that describes them."""

    items: tuple[Item, ...]
    audio_s: float
    note: str
    beginning: bool = False  # whether the session decoded just that first, with nothing left out


@dataclass
class ArmRecording:
    """The spans of one arm, with what the analysis reads of a session."""

    stages: dict[int, StageInfo]
    costs: dict[tuple[int, int], Cost]
    calibration: RoofTable
    lanes: dict[int, LaneInfo] = field(default_factory=lambda: {0: LaneInfo(0, "decode", "cpu", True, 0, 0)})
    spans: Array = field(default_factory=lambda: np.empty(0, SPAN))
    generation: int = 0
    meta: dict[str, Any] = field(default_factory=dict)
    configs: list[Any] = field(default_factory=list)
    utterances: list[Piece] = field(default_factory=list)


@dataclass
class Arm:
    """A configuration to decode by; the rest is there after the run.

    `times`: rounds are the repeats. `errors` in `words` of the transcripts, which are those of files decoded whole.
    """

    name: str
    config: Config
    recording: ArmRecording | None = None
    times: Times = field(default_factory=lambda: Times({}, np.empty((0, 0))))
    errors: int = 0
    words: int = 0


def settings_of(configs: Sequence[Any], n_frames: int) -> tuple[Config, int, int]:
    """The settings that ran longest in a session, from which frame, and to before which. BadInput for none."""
    if not configs:
        raise BadInput("The session holds no configuration, so it cannot be run again.")
    ends = [*(config.first_frame for config in configs[1:]), max(n_frames, configs[-1].first_frame)]
    longest, end = max(zip(configs, ends, strict=True), key=lambda each: each[1] - each[0].first_frame)
    return settings.from_dict(longest.tree, "the session's configuration"), longest.first_frame, end


def named_files(config: Config, session: Path, instead: Mapping[str, Value] = NO_SETTINGS) -> tuple[Config, list[str]]:
    """Settings of a session with the files found that they name, and a sentence on these, which running again opens.

    `instead`: settings, of which those are taken whose file is gone. The files may be a stranger's choice: BadInput
    for one that is no regular file (no folder, for a folder) of this machine.
    """
    there = settings.found_again(config, session)
    found = []
    for option in settings.of_files():
        value = str(settings.get(there, option.key))
        if not value or value in option.shipped():
            continue
        folder = option.key == FOLDER_KEY
        if not paths.of_this_machine(value) or not (os.path.isdir(value) if folder else inputs.regular(Path(value))):
            if option.key not in instead:
                kind, tried = "folder" if folder else "file", ""
                if not os.path.isabs(value):
                    tried = ", neither beside the session nor in the current folder"
                raise BadInput(
                    f"{session} names {one_line(value)} as its {option.key}, and no {kind} of this machine is "
                    f"there{tried}; say with --set {option.key}=PATH where it is now."
                )
            there = settings.replace(there, option.key, instead[option.key])
            value = str(instead[option.key])
        found.append(f"{option.key}={one_line(value)}")
    return there, [f"Run again with what the session names: {', '.join(found)}."] if found else []


def items_of(utterances: Iterable[Utterance], session: Path | None = None) -> list[Item]:
    """What utterances of a session were: files or parts of them. BadInput for a part that makes no sense."""
    items = []
    for spoken in utterances:
        try:
            part = msgspec.convert(spoken.part, audio.Part)
        except msgspec.ValidationError as error:
            raise BadInput(
                f"The session says of {one_line(spoken.name)} that it is a part of a file which there cannot be: "
                f"{one_line(str(error))}."
            ) from None
        path = spoken.path if session is None else paths.locate(spoken.path, session)
        items.append(Item(spoken.name, Path(path), spoken.reference, part))
    return items


def audio_of(spoken: Iterable[Item], folder: Path, limit_s: float = STRETCH_S) -> Stretch:
    """The first `limit_s` seconds of what was `spoken`; what is longer is cut into `folder`.

    Files gone, unreadable or none (pipes, devices) are left out; without any, the bundled voices are taken.
    """
    given = list(spoken)
    places = [(item.path, item.part) for item in given]
    wanted: dict[tuple[Path, audio.Part | None], Item] = {}
    for place, item in zip(places, given, strict=True):
        wanted.setdefault(place, item)
    items, seconds, left_out = _gather(wanted.values(), folder, limit_s)
    if items:
        files = f"{len(items)} of its {len(wanted)} files" if len(wanted) > 1 else "its file"
        what = f"{seconds:.1f} s of the session's audio, from {files}"
        beginning = not left_out and places[: len(items)] == [*wanted][: len(items)]
        return Stretch(items, seconds, what, beginning)
    items, seconds, _ = _gather(playlist.build((), None).items, folder, limit_s)
    why = "the session names no audio"
    if wanted:
        others = f" and {len(wanted) - 1} more" if len(wanted) > 1 else ""
        why = f"the session's audio is gone ({one_line(str(places[0][0]))}{others})"
    return Stretch(items, seconds, f"{why}: {seconds:.1f} s of the bundled synthetic voices instead")


def _gather(wanted: Iterable[Item], folder: Path, limit_s: float) -> tuple[tuple[Item, ...], float, bool]:
    """Items, their seconds, and whether a file was left out before the last of them."""
    items: list[Item] = []
    seconds, left_out = 0.0, False
    for item in wanted:
        left = limit_s - seconds
        if left < limit_s / 4 and items:
            break
        try:
            if not (paths.of_this_machine(item.path) and inputs.regular(item.path)):
                raise OSError
            sound = audio.load(item.path, item.part)
            length, rate = sound.duration_s, sound.source_rate
            if length > 1.25 * left:
                cut, length = folder / f"{len(items)}.wav", left
                sound = audio.load(item.path, item.part, Target(rate))
                write_wav(cut, sound.samples[: int(left * rate)], rate, "FLOAT")
                item = Item(cut.stem, cut, None)
        except (audio.AudioError, OSError):
            left_out = True
            continue
        items.append(item)
        seconds += length
    return tuple(items), seconds, left_out


def decode(
    arms: Sequence[Arm],
    stretch: Stretch,
    roof_table: RoofTable,
    progress: Progress,
    cancelled: Callable[[], bool],
    budget_s: float = BUDGET_S,
) -> int:
    """Decode `stretch` by each arm in turns, round after round; how many count. Cancelled, and what `build` raises."""
    made = _runners(arms, roof_table, progress, cancelled)
    counted = 0
    gc.collect()
    gc.freeze()
    try:
        for turn in turns(len(arms), len(stretch.items), _rounds(budget_s, progress)):
            if cancelled():
                raise Cancelled
            made[turn.arm].decode(stretch.items[turn.place])
            counted = turn.round + 1
    finally:
        gc.unfreeze()
    for arm, runner in zip(arms, made, strict=True):
        runner.taken.hand_over(arm, len(stretch.items))
        arm.errors, arm.words = (sum(counts) for counts in zip((0, 0), *runner.words.values(), strict=True))
    return counted


def _rounds(budget_s: float, progress: Progress) -> Iterator[int]:
    """Numbers of the rounds, those that warm up below 0; from how long these take follows how many others there are."""
    started, count = perf_counter(), MIN_ROUNDS
    for number in range(-WARM_UP_ROUNDS, MAX_ROUNDS):
        if number == 0:
            took = (perf_counter() - started) / WARM_UP_ROUNDS
            count = int(np.clip(budget_s / max(took, 1e-3), MIN_ROUNDS, MAX_ROUNDS))
        if number >= count:
            return
        progress("running", (number + WARM_UP_ROUNDS) / (count + WARM_UP_ROUNDS))
        yield number


def _runners(
    arms: Sequence[Arm], roof_table: RoofTable, progress: Progress, cancelled: Callable[[], bool]
) -> list[Runner]:
    """What decodes by each of `arms`; those that differ in live settings alone share a recogniser with its data."""
    live = {option.key: option.default for option in settings.options() if option.live}
    made: list[tuple[Config, Recogniser]] = []
    runners = []
    for arm in arms:
        config = settings.assign(arm.config, AT_ONCE)
        fixed = settings.assign(config, live)
        recogniser = next((r for c, r in made if c == fixed), None)
        if recogniser is None:
            recogniser = build(config, Recorder(), NullLane(), progress, cancelled)
            made.append((fixed, recogniser))
        prepared = recogniser.scorer.make_ready(config, progress, cancelled)
        runners.append(Runner(config, recogniser, prepared, roof_table))
    return runners


class Piece(NamedTuple):
    """One item as it was decoded once: frames first_frame … + n_frames of the arm."""

    first_frame: int
    n_frames: int
    audio_s: float


class Taken:
    """The recording of an arm, decode after decode."""

    def __init__(self, recorder: Recorder, costs: Mapping[tuple[int, int], Cost], roof_table: RoofTable) -> None:
        stages = {stage.id: stage for stage in recorder.stages}
        self.recording = ArmRecording(stages, dict(costs), roof_table)
        self._spans: list[Array] = []
        self._pieces: list[Piece] = []

    def add(self, lane: DrainedLane, piece: Piece) -> None:
        self._spans.append(lane.drain())
        self._pieces.append(piece)

    def hand_over(self, arm: Arm, items: int) -> None:
        """Give the arm the recording and the times of the measured rounds, of `items` items each."""
        warm_up = WARM_UP_ROUNDS * items
        recording = self.recording
        recording.spans = np.concatenate(self._spans[warm_up:])
        recording.utterances = self._pieces[warm_up:]
        decodes = [recording.utterances[item::items] for item in range(items)]
        arm.recording = recording
        arm.times = lay_out(FrameSums(recording), decodes, [one[0].n_frames for one in decodes])


class Runner:
    """Decodes by one arm and takes the spans out each time."""

    def __init__(self, config: Config, recogniser: Recogniser, prepared: Prepared, roof_table: RoofTable) -> None:
        self._config, self._recogniser, self._prepared = config, recogniser, prepared
        self._recorder = Recorder()
        self._lane = self._recorder.lane("decode", decode=True, make=DrainedLane)
        recogniser.configure(config, prepared)
        self._decoder = Decoder(recogniser, self._recorder, self._lane, NullWriter(), Control())
        costs = {(stage, epoch): cost for stage, epoch, cost in self._recorder.costs}
        self.taken = Taken(self._recorder, costs, roof_table)
        self.words: dict[str, tuple[int, int]] = {}
        """Word errors and words of the transcript by file."""

    def decode(self, item: Item) -> None:
        if self._recogniser.config != self._config:
            self._recogniser.configure(self._config, self._prepared)
        # Another arm may have made the shared stages known to its own recorder.
        self._recogniser.register(self._recorder)
        first = self._decoder.frame
        with threadpool_limits(self._config.threads):
            self._decoder.run([item])
        result = self._decoder.result
        if result.refused:
            raise BadInput(result.refused[0])
        decoded = result.utterances[-1]
        self.taken.add(self._lane, Piece(first, self._decoder.frame - first, decoded.audio_s))
        if decoded.errors is not None and decoded.reference_words is not None:
            self.words[item.name] = decoded.errors, decoded.reference_words
