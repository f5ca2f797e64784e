"""What a reader hands out: small immutable records, one per row of the session's tables."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from profiler.arrays import F64, I64, Array, Bool
from profiler.spans import Stage

StageInfo = Stage


@dataclass(frozen=True, slots=True)
class LaneInfo:
    """A thread of work; `recorded` spans are in the file, `dropped` were lost to a full ring."""

    id: int
    name: str
    kind: str
    decode: bool
    recorded: int
    dropped: int


@dataclass(frozen=True, slots=True)
class ConfigEpoch:
    """The configuration (`tree`) as run from `first_frame` on."""

    epoch: int
    first_frame: int
    tree: dict[str, Any]
    applied_ns: int


@dataclass(frozen=True, slots=True)
class Marker:
    """A moment of interest; kind: option, user, error or note. Frames are run-global."""

    id: int
    kind: str
    text: str
    t_ns: int
    asked_frame: int
    applied_frame: int | None
    epoch: int | None
    key: str | None
    value: Any

    @property
    def frame(self) -> int:
        """The frame where it was applied, otherwise where it was requested."""
        return self.asked_frame if self.applied_frame is None else self.applied_frame


@dataclass(frozen=True, slots=True)
class CounterTotal:
    """What a counter added up to for one stage under one epoch, on one lane.

    `name` is a key of profiler.machine.counters.EVENTS (cycles, page_faults, …), or `counted_ns`: the time
    between the readings that the others cover. `source` says how: "perf_event" is exact.
    """

    lane: int
    stage: int
    epoch: int
    name: str
    value: int
    source: str


@dataclass(frozen=True, slots=True)
class Utterance:
    """A stretch of audio and what was recognised in it: frames first_frame … + n_frames, run-global.

    `peaks`: int8 [n, 2], lowest and highest sample of each frame. `words`: (word, first_frame, n_frames).
    `complete`: whether the words are a sentence of the grammar, None without one. `notes`: what was done to the
    sound or left out of it. `part`: which part of the file at `path` it is, as the recogniser names it (empty: all).
    """

    id: int
    name: str
    path: str
    first_frame: int
    n_frames: int
    audio_s: float
    reference: str | None
    hypothesis: str | None
    words: tuple[tuple[str, int, int], ...]
    wall_ns: int | None
    epochs: tuple[int, ...]
    errors: int | None
    reference_words: int | None
    done: bool
    peaks: Array = field(repr=False, compare=False)
    complete: bool | None = None
    notes: tuple[str, ...] = ()
    part: Mapping[str, int | float | str | None] = field(default_factory=dict)

    @property
    def end_frame(self) -> int:
        return self.first_frame + self.n_frames


class Utterances(list[Utterance]):
    """Utterances in order of their beginning, with their places as arrays: an hour has thousands. Not to be changed.

    By utterance [n]: first frames, frames after the last, seconds of audio, and whether they are decoded to their end.
    """

    @cached_property
    def first(self) -> I64:
        return np.array([one.first_frame for one in self], np.int64)

    @cached_property
    def end(self) -> I64:
        return np.array([one.end_frame for one in self], np.int64)

    @cached_property
    def audio_s(self) -> F64:
        return np.array([one.audio_s for one in self], np.float64)

    @cached_property
    def done(self) -> Bool:
        return np.array([one.done for one in self], bool)

    @cached_property
    def in_time(self) -> "Utterances":
        if bool((np.diff(self.first) >= 0).all()):
            return self
        return Utterances(sorted(self, key=lambda one: one.first_frame))
