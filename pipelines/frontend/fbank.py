"""Log mel energies by the package kaldi-native-fbank, as CTC nets were trained on them.

Defaults are those of icefall and sherpa-onnx (csrc/features.cc there): 80 filters up to 400 Hz below half the rate,
frames around every 10 ms, samples within -1…1. NeMo has another window, other filters and a normalisation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from pipelines.frontend.kaldi_parameters import require_package
from pipelines.frontend.parameters import Target
from profiler.arrays import F32

if TYPE_CHECKING:
    import kaldi_native_fbank

SILENCE = -23.025850929940457  # Of frames behind the last: log 1e-10
LEAST_DEVIATION = 1e-5  # NeMo's, added to the deviation of a filter's energies


@dataclass(frozen=True)
class Fbank:
    """How a frame of energies is made; frequencies in Hz, the upper one from half the rate down if it is not positive.

    `full_scale`: of the samples; `normalise`: of each filter over the utterance, to mean 0 and deviation 1.
    """

    rate: int = 16_000
    bins: int = 80
    low: float = 20.0
    high: float = -400.0
    window: Literal["povey", "hann"] = "povey"
    remove_offset: bool = True
    librosa: bool = False
    full_scale: float = 1.0
    normalise: bool = False

    @property
    def target(self) -> Target:
        return Target(self.rate, self.high if self.high > 0 else self.rate / 2 + self.high)

    def n_frames(self, n_samples: int) -> int:
        hop = self.rate // 100
        return max((n_samples + hop // 2) // hop, 1) if n_samples > 0 else 0

    def source(self) -> kaldi_native_fbank.OnlineFbank:
        """What takes samples and gives frames; FeatureParameterError where the package is missing."""
        require_package()
        import kaldi_native_fbank

        options = kaldi_native_fbank.FbankOptions()
        frame, mel = options.frame_opts, options.mel_opts
        frame.dither, frame.snip_edges, frame.samp_freq = 0.0, False, float(self.rate)
        frame.window_type, frame.remove_dc_offset = self.window, self.remove_offset
        mel.num_bins, mel.low_freq, mel.high_freq = self.bins, self.low, self.high
        mel.is_librosa = self.librosa
        return kaldi_native_fbank.OnlineFbank(options)

    def normalised(self, frames: F32) -> F32:
        """Frames f32 [n, bins] as the net wants them."""
        if not self.normalise or not len(frames):
            return frames
        centred = frames - frames.mean(axis=0)
        scaled: F32 = centred / (frames.std(axis=0, ddof=min(len(frames) - 1, 1)) + np.float32(LEAST_DEVIATION))
        return scaled
