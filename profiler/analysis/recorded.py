"""What the analysis reads: a session, or a run of which nothing was written."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from profiler.arrays import Array
from profiler.costs import Cost
from profiler.machine.roofs.table import RoofTable
from profiler.session.model import LaneInfo, StageInfo


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
