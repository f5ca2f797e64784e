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
    def first_frame(self) -> int: ...  # noqa: D102
    @property
    def n_frames(self) -> int: ...  # noqa: D102


class Utterance(Stretch, Protocol):
    """A stretch of speech, decoded so far."""

    @property
    def audio_s(self) -> float: ...  # noqa: D102


class Recorded(Protocol):
    """Fields as of `profiler.session.reader.Session`."""

    @property
    def stages(self) -> Mapping[int, StageInfo]: ...  # noqa: D102
    @property
    def lanes(self) -> Mapping[int, LaneInfo]: ...  # noqa: D102
    @property
    def costs(self) -> Mapping[tuple[int, int], Cost]: ...  # noqa: D102
    @property
    def calibration(self) -> RoofTable: ...  # noqa: D102
    @property
    def generation(self) -> int: ...  # noqa: D102
    @property
    def meta(self) -> Mapping[str, object]: ...  # noqa: D102
    @property
    def spans(self) -> Array: ...  # noqa: D102
    @property
    def utterances(self) -> Sequence[Utterance]: ...  # noqa: D102
