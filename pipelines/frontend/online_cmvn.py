"""Kaldi's online normalisation of cepstra (OnlineCmvn in feat/online-feature): mean, and variance, of the last frames.

The statistics of a frame are those of the window that ends with it. Until the window is full, global statistics stand
in for up to `global_frames` frames. Earlier utterances of a speaker are left out.
"""

from dataclasses import dataclass, field

import numpy as np

from profiler.arrays import F32, F64

VARIANCE_FLOOR = 1e-20  # Kaldi's, of a cepstrum (transform/cmvn)
LONGEST_WINDOW = 100_000  # Frames; Kaldi's default is 600


@dataclass(frozen=True)
class CmvnOptions:
    """Named as the options of Kaldi's apply-cmvn-online, with its defaults; frames are those of 10 ms.

    `skip_dims`: cepstra that stay as they are, as in 0:1:2.
    """

    cmn_window: int = 600
    speaker_frames: int = 600
    global_frames: int = 200
    norm_means: bool = True
    norm_vars: bool = False
    skip_dims: str = ""

    @property
    def skipped(self) -> list[int]:
        """The cepstra of `skip_dims`; ValueError where it is no such list."""
        return [int(number) for number in self.skip_dims.split(":") if number]


@dataclass(frozen=True, eq=False)
class OnlineCmvn:
    """Options, and global statistics f64 [2, n + 1]: sums and count, sums of squares."""

    statistics: F64
    options: CmvnOptions = field(default_factory=CmvnOptions)

    @property
    def dimension(self) -> int:
        return int(self.statistics.shape[1]) - 1

    def apply(self, cepstra: F32, first: int, last: int) -> F32:
        """The normalised frames first … last − 1 of `cepstra` f32 [frames, n], which need none behind them."""
        options, frames = self.options, cepstra[first:last]
        if not options.norm_means:
            return frames
        mean, square, n = self._statistics(cepstra, first, last)
        mean /= n
        scale = np.ones_like(mean)
        if options.norm_vars:
            scale = 1.0 / np.sqrt(np.maximum(square / n - mean**2, VARIANCE_FLOOR))
        for column in options.skipped:
            mean[:, column], scale[:, column] = 0.0, 1.0
        normalised: F32 = ((frames - mean) * scale).astype(np.float32)
        return normalised

    def _statistics(self, cepstra: F32, first: int, last: int) -> tuple[F64, F64, F64]:
        """Sums and sums of squares f64 [frames, n], counts f64 [frames, 1] that stand for these frames."""
        window = self.options.cmn_window
        begin = max(first + 1 - window, 0)
        values = cepstra[begin:last].astype(np.float64)
        ends = np.arange(first, last) + 1
        starts = np.maximum(ends - window, 0)
        count = (ends - starts).astype(np.float64)[:, None]
        borrowed = np.minimum(window - count, self.options.global_frames) / self.statistics[0, -1]

        def summed(power: F64, row: int) -> F64:
            total = np.concatenate([np.zeros((1, power.shape[1])), np.cumsum(power, axis=0)])
            sums: F64 = total[ends - begin] - total[starts - begin] + borrowed * self.statistics[row, :-1]
            return sums

        squares = summed(values**2, 1) if self.options.norm_vars else np.zeros((1, 1))
        return summed(values, 0), squares, count + borrowed * self.statistics[0, -1]
