"""A block of frames as all scorers see it, and the spans that are recorded of it: stages follow each other."""

from typing import Final

from profiler.spans import Lane, NullLane, Recorder

MAX_FRAMES: Final = 64  # Frames per call of a kernel or a device: bounds the workspace and keeps a call far below 50 ms
FLOAT: Final = 4  # Bytes of a float32

GROUP = "scoring"


class Meter:
    """Closes one leaf span per call; each begins where the one before ended.

    `frames` is what the spans cover on the time axis, also when fewer were computed: cost laws of
    scoring therefore go by work counts, never by frames.
    """

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._lane: Lane | NullLane = NullLane()

    def register(self, recorder: Recorder, stages: dict[str, tuple[str, ...]]) -> None:
        """Make `stages` (name → work counts) known to the recorder."""
        for name, work in stages.items():
            self._ids[name] = recorder.stage(name, GROUP, work)

    def begin(self, first_frame: int, frames: int, lane: Lane | NullLane) -> None:
        self._lane = lane
        lane.begin(first_frame, frames)

    def close(self, stage: str, work0: int = 0, work1: int = 0, work2: int = 0, later_ns: int = 0) -> None:
        """`stage` ran from the end of the one before until now, or until `later_ns` ago.

        With `later_ns` a kernel says how long those of its stages took that are yet to be closed.
        Before `register` nothing is recorded; afterwards an unknown stage is a KeyError.
        """
        if not self._ids:
            return
        if later_ns:
            self._lane.lap_before(later_ns, self._ids[stage], work0, work1, work2)
        else:
            self._lane.lap(self._ids[stage], work0, work1, work2)
