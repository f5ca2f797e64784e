"""The adaptive beam: holds a target real-time factor by moving the beam, as Kaldi's OnlineFasterDecoder does.

After each block it looks at processing time / audio time over the last second. The time grows about exponentially with
the beam, so a step proportional to log(time / target time) corrects at the same pace everywhere.
"""

import math
from collections import deque

from profiler.clock import FRAME_S

MIN_BEAM = 4.0  # Narrower than this hardly anything but the best path is left, and words are lost without a gain
WINDOW = 100  # Frames that are looked back on: a second
GROWTH = 0.3  # d ln(time) / d beam: 5 000 words, beams 10 to 13 (`python -m tests.bench.constants --only speech`)
SHARE = 0.5  # Of the correction that is due, what is made per window, so that late readings do not make it swing


class AdaptiveBeam:
    """Beam to use from now on, given how long each block took."""

    def __init__(self) -> None:
        self.beam = math.inf
        self._blocks: deque[tuple[int, int]] = deque()
        self._frames = self._spent_ns = 0

    def after(self, frames: int, spent_ns: int, target_rtf: float, widest: float) -> float:
        """Take note of a block of `frames` that took `spent_ns`; the beam for the next one.

        It moves between `MIN_BEAM` and `widest`, from `widest` on.
        """
        self._blocks.append((frames, spent_ns))
        self._frames += frames
        self._spent_ns += spent_ns
        while self._frames - self._blocks[0][0] >= WINDOW:
            old_frames, old_ns = self._blocks.popleft()
            self._frames -= old_frames
            self._spent_ns -= old_ns
        beam = min(self.beam, widest)
        if self._spent_ns > 0 and frames > 0:
            rtf = self._spent_ns / 1e9 / (self._frames * FRAME_S)
            due = math.log(rtf / target_rtf) / GROWTH
            beam -= SHARE * min(frames / WINDOW, 1.0) * due
        self.beam = min(max(beam, min(MIN_BEAM, widest)), widest)
        return self.beam
