"""The steps of the front end as roofs: each as the front end runs it, on a block of BLOCK_FRAMES frames of noise.

The buffers of a block fit the second-level cache and not the first; so they are here. Units are frames.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from pipelines.frontend import _kernels, mfcc
from pipelines.frontend.mfcc import BLOCK_FRAMES, Mfcc, Utterance
from pipelines.frontend.parameters import SAMPLE_RATE, STREAMS, FeatureParameters
from profiler.machine.roofs.timing import Task, Work

Numbers = tuple[int, ...]


def _repeated(once: Callable[[], object]) -> Task:
    def task(repeats: int) -> None:
        for _ in range(repeats):
            once()

    return task


def _utterance(p: FeatureParameters) -> Utterance:
    """Noise of three blocks."""
    samples = np.random.default_rng(0).normal(0, 0.1, 3 * BLOCK_FRAMES * p.hop_samples)
    return Mfcc(p).start(samples.astype(np.float32))


def windows(size: int, numbers: Numbers) -> Work:
    """Pre-emphasis and window; samples of a window and of a hop, points of the FFT, whether the mean is removed."""
    window, hop, nfft, remove_dc = numbers
    p = FeatureParameters(
        wlen=window / SAMPLE_RATE,
        frate=SAMPLE_RATE // hop,
        nfft=nfft,
        remove_dc=bool(remove_dc),
    )

    def make() -> Task:
        utterance = _utterance(p)
        return _repeated(lambda: utterance.windows(BLOCK_FRAMES, 2 * BLOCK_FRAMES))

    return Work(float(BLOCK_FRAMES), make)


def spectra(size: int, numbers: Numbers) -> Work:
    """The library's FFT of so many points."""
    (nfft,) = numbers

    def make() -> Task:
        frames = np.random.default_rng(0).normal(0, 1000, (BLOCK_FRAMES, nfft))
        return _repeated(lambda: np.fft.rfft(frames))

    return Work(float(BLOCK_FRAMES), make)


def cepstra(size: int, numbers: Numbers) -> Work:
    """Filters, logarithm and cosine transform; points of the FFT, filters, cepstra, whether noise is removed."""
    nfft, nfilt, ncep, remove_noise = numbers
    p = FeatureParameters(nfft=nfft, nfilt=nfilt, ncep=ncep, remove_noise=bool(remove_noise))

    def make() -> Task:
        utterance = _utterance(p)
        spectrum = np.fft.rfft(utterance.windows(BLOCK_FRAMES, 2 * BLOCK_FRAMES))
        utterance.transform(spectrum, 0, BLOCK_FRAMES)
        return _repeated(lambda: utterance.transform(spectrum, BLOCK_FRAMES, 2 * BLOCK_FRAMES))

    return Work(float(BLOCK_FRAMES), make)


def differences(size: int, numbers: Numbers) -> Work:
    """The mean taken off and both differences; cepstra of a frame."""
    (ncep,) = numbers

    def make() -> Task:
        found = np.ones((BLOCK_FRAMES, ncep), np.float32)
        mean, out = np.ones(ncep, np.float32), np.ones((BLOCK_FRAMES, STREAMS * ncep), np.float32)
        return _repeated(lambda: _kernels.normalise(found, mean, 0, BLOCK_FRAMES, out))

    return Work(float(BLOCK_FRAMES), make)


FAMILIES: Mapping[str, Callable[[int, Numbers], Work]] = MappingProxyType(
    {
        mfcc.WINDOWS: windows,
        mfcc.SPECTRA: spectra,
        mfcc.CEPSTRA: cepstra,
        mfcc.DIFFERENCES: differences,
    }
)
"""Family of roofs → what makes its work from a size and the numbers of its name."""
