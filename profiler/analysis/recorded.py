"""What the analysis reads: a session, or a run of which nothing was written; and what its utterances add up to.

It is the one place that says what a real-time factor is taken of.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from profiler.arrays import F64, I64, Array
from profiler.clock import FRAME_S
from profiler.costs import Cost
from profiler.machine.roofs.table import RoofTable
from profiler.session.model import LaneInfo, StageInfo, Utterances


class Stretch(Protocol):
    """Frames first_frame … + n_frames."""

    @property
    def first_frame(self) -> int: ...
    @property
    def n_frames(self) -> int: ...


class Utterance(Stretch, Protocol):
    """A stretch of speech, decoded so far."""

    @property
    def audio_s(self) -> float: ...


class Recorded(Protocol):
    """Fields as of `profiler.session.reader.Session`."""

    @property
    def stages(self) -> Mapping[int, StageInfo]: ...
    @property
    def lanes(self) -> Mapping[int, LaneInfo]: ...
    @property
    def costs(self) -> Mapping[tuple[int, int], Cost]: ...
    @property
    def calibration(self) -> RoofTable: ...
    @property
    def generation(self) -> int: ...
    @property
    def meta(self) -> Mapping[str, object]: ...
    @property
    def spans(self) -> Array: ...
    @property
    def utterances(self) -> Sequence[Utterance]: ...


def counts_steps(session: Recorded) -> bool:
    return "lab" in session.meta and not session.utterances


def audio_seconds(utterances: Iterable[Utterance], first: int, last: int) -> float:
    """Return seconds of audio of the frames first … last − 1, by their part of each utterance's frames."""
    begin, end, audio_s = _places(utterances)
    inside = np.maximum(np.minimum(end, last) - np.maximum(begin, first), 0)
    share = inside / np.maximum(end - begin, 1)
    # Added up one after the other: the sum of whole utterances has the bits of their plain sum.
    seconds = float(np.cumsum(audio_s * share)[-1]) if len(begin) else 0.0
    # A frame of no utterance stands for the hop.
    return seconds + max(last - first - int(inside.sum()), 0) * FRAME_S


def _places(utterances: Iterable[Utterance]) -> tuple[I64, I64, F64]:
    """First frames, the frames after the last, and seconds [n]."""
    if isinstance(utterances, Utterances):
        return utterances.first, utterances.end, utterances.audio_s
    rows = [(one.first_frame, one.n_frames, one.audio_s) for one in utterances]
    first, frames, seconds = np.array(rows, np.float64).reshape(-1, 3).T
    return first.astype(np.int64), (first + frames).astype(np.int64), seconds


def real_time_factor(wall_ns: float, audio_s: float) -> float | None:
    """Return processing time / audio time, None without audio."""
    return wall_ns / 1e9 / audio_s if audio_s > 0 else None
