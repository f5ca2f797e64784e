"""The loops of the front end as roofs: each as the front end runs it, on a block of BLOCK_FRAMES frames of noise.

The buffers of a block fit the second-level cache and not the first; so they are here. Units are frames; of `end`,
utterances.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from pipelines.frontend import _kernels, mfcc
from pipelines.frontend.dynamic import layout
from pipelines.frontend.mfcc import BLOCK_FRAMES, Mfcc
from pipelines.frontend.parameters import FeatureParameters
from profiler.machine.roofs.timing import Task, Work, each_after, repeated

Numbers = tuple[int, ...]


def cepstra(size: int, numbers: Numbers) -> Work:
    """All steps of a block in turn, from samples to cepstra, as a run does them: each finds what the others left it.

    Samples of a window and of a hop, points of the FFT, whether the mean is removed; filters, cepstra, whether noise
    is.
    """
    window, hop, nfft, remove_dc, nfilt, ncep, remove_noise = numbers
    rate = hop * FeatureParameters.frate
    p = FeatureParameters(
        wlen=window / rate,
        samprate=rate,
        upperf=min(FeatureParameters.upperf, rate / 2),
        nfft=nfft,
        nfilt=nfilt,
        ncep=ncep,
        remove_dc=bool(remove_dc),
        remove_noise=bool(remove_noise),
    )

    def make() -> Task:
        samples = np.random.default_rng(0).normal(0, 0.1, 3 * BLOCK_FRAMES * p.hop_samples)
        utterance = Mfcc(p).start(samples.astype(np.float32))
        utterance.block(0, BLOCK_FRAMES)
        return repeated(lambda: utterance.block(BLOCK_FRAMES, 2 * BLOCK_FRAMES))

    return Work(float(BLOCK_FRAMES), make)


OTHERS = 8 << 20
"""Bytes of what an utterance decoded in between goes through, at the least: they fill a second cache."""


def end(size: int, numbers: Numbers) -> Work:
    """The end of an utterance of one frame, after OTHERS bytes have been read."""

    def make() -> Task:
        utterance = Mfcc({}).start(np.ones(1, np.float32))
        utterance.block(0, 1)
        others = np.ones(OTHERS // 4, np.float32)
        return each_after(others.sum, lambda: list(utterance.normalise(1)))

    return Work(1.0, make)


def differences(size: int, numbers: Numbers) -> Work:
    """The mean taken off and differences put beside; cepstra of a frame.

    Of other features than `1s_c_d_dd` also their columns and, where they are transformed, what comes out.
    """
    ncep, *other = numbers
    made = layout(FeatureParameters(ncep=ncep))

    def make() -> Task:
        found = np.ones((BLOCK_FRAMES, ncep), np.float32)
        mean, scale = np.ones(ncep, np.float32), np.ones(ncep, np.float32)
        columns, matrix, outputs = made.columns, made.matrix, made.outputs
        if other:
            count, rows = other
            columns = np.resize(columns, (count, 3))
            matrix = np.ones((rows, count if rows else 0), np.float32)
            outputs = rows or count
        out = np.ones((BLOCK_FRAMES, outputs), np.float32)
        arrays = found, mean, scale, columns, matrix
        return repeated(lambda: _kernels.normalise(*arrays, 0, BLOCK_FRAMES, out))

    return Work(float(BLOCK_FRAMES), make)


FAMILIES: Mapping[str, Callable[[int, Numbers], Work]] = MappingProxyType(
    {
        mfcc.CEPSTRA: cepstra,
        mfcc.DIFFERENCES: differences,
        mfcc.END: end,
    }
)
"""Family of roofs → what makes its work from a size and the numbers of its name."""
