"""More voices, rooms and levels from the same recordings: speed, noise, level, vocal tract.

Speed changes by resampling, which moves pitch and formants too (Ko et al. 2015, "Audio augmentation for
speech recognition"); the vocal tract by scaling the mel filters (Lee & Rose 1996; as augmentation Jaitly &
Hinton 2013). Speed changes when things are said, so it applies to the teacher's input too; noise, level
and vocal tract change that of the student alone, which is to answer as the teacher did for the clean sound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import soxr

from pipelines.frontend.parameters import SAMPLE_RATE
from profiler.arrays import F32

SPEEDS = (0.9, 1.1)
"""Drawn evenly between; Ko et al. took 0.9, 1.0 and 1.1."""
WARPS = (0.88, 0.92, 0.96, 1.0, 1.04, 1.08, 1.12)
"""Factors of the mel filters: the range that vocal tract length normalisation searches."""
SNR_DB = (8.0, 40.0)
SLOPES = (0.0, 1.5)
"""Amplitude of the noise falls with this power of the frequency: white to brownish."""
LEVEL_DB = (-20.0, 6.0)
CHANGED = 0.6
"""Share of the utterances that each change is applied to; the others keep what they had."""

Samples = F32


@dataclass(frozen=True)
class Change:
    """Changes to one utterance; the defaults make none."""

    speed: float = 1.0
    warp: float = 1.0
    snr_db: float | None = None
    slope: float = 0.0
    level_db: float = 0.0


def draw(rng: np.random.Generator) -> Change:
    """A change by chance."""
    happens = rng.random(4) < CHANGED
    speed, warp = rng.uniform(*SPEEDS), float(rng.choice(WARPS))
    snr_db, slope, level_db = rng.uniform(*SNR_DB), rng.uniform(*SLOPES), rng.uniform(*LEVEL_DB)
    return Change(
        speed=speed if happens[0] else 1.0,
        warp=warp if happens[1] else 1.0,
        snr_db=snr_db if happens[2] else None,
        slope=slope,
        level_db=level_db if happens[3] else 0.0,
    )


def faster(samples: Samples, speed: float) -> Samples:
    """`samples` at `speed` times the speed, pitch and formants with it."""
    if speed == 1.0:
        return samples
    return np.asarray(soxr.resample(samples, SAMPLE_RATE * speed, SAMPLE_RATE), np.float32)


def roughened(samples: Samples, change: Change, rng: np.random.Generator) -> Samples:
    """`samples` with the noise and at the level of `change`; nothing moves in time."""
    result = samples
    if change.snr_db is not None and len(samples) > 1:
        points = 1 << (len(samples) - 1).bit_length()  # other lengths take up to ten times as long
        spectrum = np.fft.rfft(rng.standard_normal(points))
        spectrum *= np.maximum(np.arange(len(spectrum)), 1.0) ** -change.slope
        noise = np.fft.irfft(spectrum)[: len(samples)]
        wanted = np.sqrt(np.mean(samples.astype(np.float64) ** 2)) * 10 ** (-change.snr_db / 20)
        result = samples + noise * (wanted / np.sqrt(np.mean(noise**2)))
    result = result * 10 ** (change.level_db / 20)
    return np.clip(result, -1.0, 1.0).astype(np.float32)
