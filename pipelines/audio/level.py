"""How loud sound is: whether it is clipped or silent, and whether its channels cancel each other when mixed."""

import math
from typing import Final

import numpy as np

from profiler.arrays import F32, F64

FULL_SCALE_16: Final = 32_767 / 32_768
FULL_SCALE: Final = {"PCM_S8": 127 / 128, "PCM_U8": 127 / 128, "ULAW": 32_124 / 32_768, "ALAW": 32_256 / 32_768}
"""The largest sample of a subtype, where that is not the one of 16 bits."""
CLIPPED_SHARE: Final = 1e-3  # Samples at full scale of all: fewer lie there in loud recordings that are not clipped
SILENT: Final = 1e-3  # 60 dB below full scale: speech at -50 dB is still recognised
CANCELLED: Final = 0.1
"""Of the power that the mean of channels has where they have nothing in common. Channels that are alike have more."""


class Level:
    """Sums over the sound that is added to it, of all channels and of what is decoded."""

    def __init__(self) -> None:
        self.n = 0
        self._peak = 0.0
        self._full = self._counted = 0
        self._sums: F64 = np.zeros((2, 1))
        """Of samples and of their squares, by channel; the last is the mean of all."""

    def add(self, block: F32, channel: int | None, full_scale: float) -> F32:
        """Take f32[n, channels] in and return what is decoded of it: a channel, or the mean of all, f32[n]."""
        n = block.shape[1]
        if n == 1:
            used = mono = block[:, 0]
        elif channel is None:
            used = block
            mono = block.mean(axis=1, dtype=np.float32)
            columns = [*block.T, mono]
            if len(columns) != self._sums.shape[1]:  # joined recordings differ in their channels
                self._sums = np.zeros((2, len(columns)))
            for at, column in enumerate(columns):
                self._sums[0, at] += column.sum(dtype=np.float64)
                self._sums[1, at] += np.dot(column, column)
        else:
            used = mono = block[:, min(channel, n - 1)]
        self.n += len(mono)
        self._peak = max(self._peak, _peak(mono))
        if _peak(used) >= full_scale:
            self._full += int(np.count_nonzero(np.abs(used) >= full_scale))
        self._counted += used.size
        return np.ascontiguousarray(mono)

    @property
    def _variances(self) -> F64:
        mean = self._sums / max(self.n, 1)
        return np.asarray(np.maximum(mean[1] - mean[0] ** 2, 0.0))

    @property
    def channels_cancel(self) -> bool:
        *single, mixed = self._variances
        n = len(single)
        return n > 1 and max(single) > 0 and mixed < CANCELLED * sum(single) / n**2

    @property
    def loudest(self) -> int:
        return int(np.argmax(self._variances[:-1]))

    def notes(self) -> list[str]:
        notes = []
        share = self._full / max(self._counted, 1)
        if share >= CLIPPED_SHARE:
            notes.append(f"clipped: {100 * share:.1f} % of its samples are at full scale")
        if self._peak == 0:
            notes.append("silent: every sample is 0")
        elif self._peak < SILENT:
            notes.append(f"almost silent: at most {20 * math.log10(self._peak):.0f} dB of full scale")
        return notes


def _peak(samples: F32) -> float:
    return max(float(samples.max()), -float(samples.min()))
