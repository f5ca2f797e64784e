"""Mel-frequency cepstra with differences, equal to those of pocketsphinx 5 but for 2e-5, the rounding of its sums.

Pre-emphasis, Hamming window, power spectrum, triangular mel filters, noise removal, log, DCT, lifter; then the mean of
the utterance is subtracted (batch CMN), if need be variance and gain are normalised, and differences are appended
(`dynamic`). On purpose noise and the gain of `-agc emax` are estimated again in every utterance, where pocketsphinx
carries them on, and the mean of an utterance without any energy is its plain mean (pocketsphinx divides by zero).

The work is done in pieces of a few milliseconds, each of them a span. How it is cut changes no bit of the result.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from pipelines.frontend import _kernels
from pipelines.frontend.dynamic import SECOND, layout
from pipelines.frontend.parameters import FeatureParameterError, FeatureParameters
from profiler.arrays import F32, F64, I64, Array
from profiler.clock import now_ns
from profiler.spans import Cost, Lane, Linear, NullLane, Recorder

MFCC = "frontend.mfcc"
NORMALISE = "frontend.normalise"
STAGES = (MFCC, NORMALISE)  # Names of the stages, both of group `frontend`, that `MfccUtterance.run` goes through

EXPECTED_MAXIMUM, EXPECTED_MAXIMUM_NORMALISED = 10.0, 5.0
"""Of c0, without and with the mean subtracted: where pocketsphinx' `-agc emax` begins (feat.c)."""
FULL_SCALE = 32_768.0  # pocketsphinx' features are those of 16-bit integer samples
PIECE_FRAMES = 512  # frames per piece of `run`: about 5 ms of work
BLOCK_FRAMES = 64  # frames per call of the FFT: its buffers stay in the L2 cache
PRIOR_FRAMES = 200
"""Weight of the mean known before in the running mean of a stream: Kaldi's --global-frames (feat/online-feature)."""


class Piece(NamedTuple):
    """A piece of work just done: `stage` ran over `frames` frames, the first being `first_frame`.

    `work`: its counts, as the stage names them; `took_ns`: where several pieces were one call, 0 until now.
    """

    stage: str
    first_frame: int
    frames: int
    work: tuple[int, ...] = ()
    took_ns: int = 0


def check_samples(samples: F32) -> None:
    if samples.ndim != 1 or samples.dtype != np.float32:
        raise ValueError(
            f"The front end needs one channel of float32 samples, got {samples.dtype} of shape {samples.shape}."
        )


def rows_around(features: F32, begin: int, count: int, context: tuple[int, int]) -> F32:
    """Features of frames begin … begin + count with the `context` around them; the outermost frame is repeated."""
    before, after = context
    found: F32 = features[np.arange(begin - before, begin + count + after).clip(0, len(features) - 1)]
    return found


def record(pieces: Iterator[Piece], stages: Mapping[str, int], first_frame: int, lane: Lane | NullLane | None) -> None:
    """Do the work of `pieces` and put each on the lane, if any; `stages`: their numbers by name."""
    start = now_ns()
    for piece in pieces:
        end = start + piece.took_ns if piece.took_ns else now_ns()
        if lane is not None:
            lane.put(stages[piece.stage], start, end, first_frame + piece.first_frame, piece.frames, *piece.work)
        start = end


class _Buffers(threading.local):
    """What a block of frames goes through, for each thread: made anew, pages would cost as much as the work."""

    def __init__(self, p: FeatureParameters) -> None:
        samples = (BLOCK_FRAMES - 1) * p.hop_samples + p.window_samples
        self.raw: F64 = np.zeros(samples + 1)
        self.emphasised: F64 = np.zeros(samples)
        self.windows: F64 = np.zeros((BLOCK_FRAMES, p.nfft))
        """f64[BLOCK_FRAMES, nfft]: beyond the samples of a window it stays 0."""
        self.spectrum: Array = np.zeros((BLOCK_FRAMES, p.nfft // 2 + 1), np.complex128)


class Mfcc:
    """The front end for one set of parameters: tables that all utterances share."""

    adapts, chunk = False, 1  # Whether features depend on the search; frames that are decoded together

    def __init__(
        self, parameters: FeatureParameters | Mapping[str, str], warp: float = 1.0, transform: Array | None = None
    ) -> None:
        """Take parameters, or the options of a `feat.params` (FeatureParameterError if unfit).

        `warp` scales the frequencies of the mel filters (above 1: a longer vocal tract). `transform` f32 [m, n].
        """
        if isinstance(parameters, Mapping):
            parameters = FeatureParameters.from_mapping(parameters)
        p = parameters
        self.parameters = p
        self.stage_ids: dict[str, int] = {}
        self.layout = layout(p, transform)
        self.dimension = self.layout.outputs
        self.lookahead = max(over + (kind == SECOND) for kind, over, _ in self.layout.columns.tolist())
        self.window = np.zeros(p.nfft)
        """f64[nfft]: 0 beyond the samples of a window."""
        self.window[: p.window_samples] = np.hamming(p.window_samples)
        self.starts, self.offsets, self.weights = mel_filters(p, warp)
        self.transform = cosine_transform(p)
        self.buffers = _Buffers(p)
        self.prior: F64 = np.zeros(p.ncep)
        """f64[ncep]: the mean that the running mean of a stream starts from; a stream that ends leaves its own."""
        self.prior[: len(p.cmninit)] = p.cmninit[: p.ncep]

    def n_frames(self, n_samples: int) -> int:
        """How many frames `n_samples` samples yield; the last, partial window counts as one."""
        if n_samples <= 0:
            return 0
        beyond_first = n_samples - self.parameters.window_samples
        return 1 if beyond_first < 0 else 2 + beyond_first // self.parameters.hop_samples

    def start(self, samples: F32) -> MfccUtterance:
        """Begin an utterance: f32[n] samples in -1…1 at the target's rate, all of it (the mean needs it)."""
        return MfccUtterance(self, samples)

    def features(self, samples: F32, first_frame: int = 0, lane: Lane | NullLane | None = None) -> F32:
        """All features of an utterance, f32[n_frames, dimension]: of `1s_c_d_dd` cepstra, differences, seconds.

        With a `lane` (after `stages`) each piece is recorded; `first_frame` is the utterance's first frame in the run.
        """
        utterance = self.start(samples)
        record(utterance.run(), self.stage_ids, first_frame, lane)
        return utterance.features

    def stages(self, recorder: Recorder) -> None:
        """Make the stages known to `recorder`, whose lanes `features` then records on."""
        self.stage_ids = {name: recorder.stage(name, "frontend") for name in STAGES}

    def warm_up(self) -> None:
        self.features(np.zeros(4 * self.parameters.window_samples, np.float32))

    def costs(self) -> dict[str, Cost]:
        """Cost law per stage: exact operation counts, modelled traffic, all linear in frames.

        A real FFT of n points counts 2.5 n log2 n operations, half the usual count for a complex one. Least traffic:
        samples in, cepstra out. Most: every temporary of a block written and read once.
        """
        p, bins, n = self.parameters, self.parameters.nfft // 2 + 1, self.parameters.nfilt
        fft = 2.5 * p.nfft * math.log2(p.nfft)
        window = 2 * p.hop_samples + p.window_samples  # pre-emphasis per sample, window per frame
        filters = 3 * bins + 2 * len(self.weights)  # power, then weighted sums
        noise = (25 + 2 * _kernels.SMOOTHED_CHANNELS) * n if p.remove_noise else 0
        dct = 2 * p.ncep * n
        spectrum_bytes, frame_bytes = 16 * bins, 8 * p.nfft
        width = 4 * self.dimension
        operations = 5.0 * len(self.layout.columns) / 3 + 2.0 * self.layout.matrix.size
        least = 4 * p.hop_samples + 4 * p.ncep
        most = least + 4 * 8 * p.hop_samples + 2 * frame_bytes + 2 * spectrum_bytes
        tables = 8 * (len(self.weights) + len(self.window) + p.ncep * n)
        return {
            MFCC: Cost(
                operations={
                    "fma": Linear(per_frame=float(window + noise)),
                    "scalar": Linear(per_frame=fft + filters + dct),
                    "log": Linear(per_frame=float(n)),
                },
                bytes_min=Linear(per_frame=float(least)),
                bytes_max=Linear(per_frame=float(most)),
                working_set_bytes=float(BLOCK_FRAMES * (frame_bytes + spectrum_bytes) + tables),
            ),
            NORMALISE: Cost(
                operations={"fma": Linear(per_frame=operations)},
                bytes_min=Linear(per_frame=4.0 * p.ncep + width),
                bytes_max=Linear(per_frame=8.0 * p.ncep + width),
                working_set_bytes=float(PIECE_FRAMES * (4 * p.ncep + width)),
            ),
        }


class MfccUtterance:
    """One utterance on its way through the front end; `features` is complete after `run`."""

    def __init__(self, front_end: Mfcc, samples: F32) -> None:
        check_samples(samples)
        p = front_end.parameters
        self._tables = front_end
        self._samples = samples
        self.n_frames = front_end.n_frames(len(samples))
        self.cepstra = np.empty((self.n_frames, p.ncep), np.float32)
        """f32[n_frames, 13] before mean subtraction: what pocketsphinx logs as MFCC."""
        self.features = np.empty((self.n_frames, front_end.dimension), np.float32)
        self._noise = np.zeros((4, p.nfilt))
        self._sums = np.zeros(p.ncep + 1)
        self._made = 0
        self.ready = 0
        """Frames of `features` that `advance` has completed."""

    def rows(self, begin: int, count: int, context: tuple[int, int]) -> F32:
        return rows_around(self.features, begin, count, context)

    def run(self, piece_frames: int = PIECE_FRAMES) -> Iterator[Piece]:
        """Do the work, yielding after each piece; the result does not depend on `piece_frames`."""
        for first in range(0, self.n_frames, piece_frames):
            last = min(first + piece_frames, self.n_frames)
            for block in range(first, last, BLOCK_FRAMES):
                self._block(block, min(block + BLOCK_FRAMES, last))
            yield Piece(MFCC, first, last - first)
        yield from self._normalised(*self._normal(self.n_frames), 0, self.n_frames, piece_frames)

    def advance(self, n_samples: int) -> Iterator[Piece]:
        """Compute the `ready` frames that the first `n_samples` samples suffice for, yielding after each piece.

        For a stream: the mean is that of the frames so far and of PRIOR_FRAMES frames of the `prior`, so the features
        depend on how the samples are cut into chunks. With the last sample all frames are ready.
        """
        tables, p = self._tables, self._tables.parameters
        finished = n_samples >= len(self._samples)
        whole = (n_samples - p.window_samples) // p.hop_samples + 1 if n_samples >= p.window_samples else 0
        first, self._made = self._made, self.n_frames if finished else min(whole, self.n_frames)
        for block in range(first, self._made, BLOCK_FRAMES):
            last = min(block + BLOCK_FRAMES, self._made)
            self._block(block, last)
            yield Piece(MFCC, block, last - block)
        first, self.ready = self.ready, self._made if finished else max(self._made - tables.lookahead, self.ready)
        if self.ready > first:
            mean, scale = self._normal(self._made, tables.prior)
            yield from self._normalised(mean, scale, first, self.ready, PIECE_FRAMES)
            if finished and p.agc == "none":
                tables.prior = mean.astype(np.float64)

    def _normalised(self, mean: F32, scale: F32, begin: int, end: int, piece_frames: int) -> Iterator[Piece]:
        """Fill `features` of the frames begin … end − 1, yielding after each piece."""
        columns, matrix = self._tables.layout.columns, self._tables.layout.matrix
        for first in range(begin, end, piece_frames):
            last = min(first + piece_frames, end)
            _kernels.normalise(self.cepstra, mean, scale, columns, matrix, first, last, self.features)
            yield Piece(NORMALISE, first, last - first)

    def _block(self, first: int, last: int) -> None:
        """The cepstra of the frames first … last − 1, in order, BLOCK_FRAMES at most."""
        tables = self._tables
        spectrum = tables.buffers.spectrum[: last - first]
        np.fft.rfft(self._windows(first, last), out=spectrum)
        filters = tables.starts, tables.offsets, tables.weights
        denoise, out = tables.parameters.remove_noise, self.cepstra[first:last]
        _kernels.cepstra(spectrum, filters, tables.transform, denoise, self._noise, first > 0, out, self._sums)

    def _windows(self, first: int, last: int) -> F64:
        """The windows of these frames, f64[frames, nfft], filled up with zeros; valid until this thread's next call."""
        tables, p = self._tables, self._tables.parameters
        hop, length = p.hop_samples, p.window_samples
        begin, wanted = first * hop, (last - first - 1) * hop + length
        # One sample before the block feeds the pre-emphasis; silence beyond both ends.
        raw = tables.buffers.raw[: wanted + 1]
        there = self._samples[max(begin - 1, 0) : begin + wanted]
        at = 1 if begin == 0 else 0
        raw[:at] = 0.0
        np.multiply(there, FULL_SCALE, out=raw[at : at + len(there)])
        emphasised = tables.buffers.emphasised[:wanted]
        np.multiply(raw[:-1], float(np.float32(p.alpha)), out=emphasised)
        np.subtract(raw[1:], emphasised, out=emphasised)
        emphasised[len(self._samples) - begin :] = 0.0
        frames = tables.buffers.windows[: last - first]
        windows = np.lib.stride_tricks.sliding_window_view(emphasised, length)[::hop]
        filled = frames[:, :length]
        np.copyto(filled, windows)
        if p.remove_dc:
            np.subtract(filled, windows.mean(axis=1, keepdims=True), out=filled)
        np.multiply(frames, tables.window, out=frames)
        return frames

    def _normal(self, frames: int, prior: F64 | None = None) -> tuple[F32, F32]:
        """What is subtracted from each cepstrum, and what it is multiplied by then, f32 [ncep] each.

        As pocketsphinx' `cmn.c` and `agc.c` have it, of the first `frames` frames; the gain of c0 is one more number
        to subtract. `prior` f64 [ncep]: counts as PRIOR_FRAMES more frames of the mean.
        """
        p, cepstra = self._tables.parameters, self.cepstra[:frames]
        n = cepstra.shape[1]
        mean, scale = np.zeros(n), np.ones(n)
        if frames and p.cmn != "none":
            # Frames without energy, of which pocketsphinx counts none, are all that there is in silence.
            counted = float(self._sums[-1])
            mean = self._sums[:-1] / counted if counted else cepstra.mean(axis=0, dtype=np.float64)
            if prior is not None:
                mean = (mean * counted + prior * PRIOR_FRAMES) / (counted + PRIOR_FRAMES)
            if p.varnorm:
                squares = np.square(cepstra - mean).sum(axis=0)
                np.sqrt(frames / squares, out=scale, where=squares > 0)
        if frames and p.agc != "none":
            mean[0] += gain(p, (cepstra[:, 0] - mean[0]) * scale[0]) / scale[0]
        return mean.astype(np.float32), scale.astype(np.float32)


def gain(p: FeatureParameters, energy: F64) -> float:
    """What automatic gain control subtracts from the normalised c0 of all frames."""
    if p.agc == "max":
        return float(energy.max())
    if p.agc == "emax":
        return EXPECTED_MAXIMUM if p.cmn == "none" else EXPECTED_MAXIMUM_NORMALISED
    quiet = energy[energy < energy.min() + p.agcthresh]
    return float(quiet.mean()) if len(quiet) else 0.0


def mel_filters(p: FeatureParameters, warp: float = 1.0) -> tuple[I64, I64, F64]:
    """Triangular filters on the mel scale 2595 log10(1 + f/700), in flattened form.

    Returns first bin i64[nfilt], offsets i64[nfilt+1] into the weights, and weights f64[…].
    `warp` multiplies every edge.
    """
    bin_hz = p.samprate / p.nfft

    def mel(hz: float) -> float:
        return 2595.0 * math.log10(1.0 + hz / 700.0)

    mels = np.linspace(mel(p.lowerf), mel(p.upperf), p.nfilt + 2)
    edges = warp * 700.0 * (10.0 ** (mels / 2595.0) - 1.0) / bin_hz
    if p.round_filters:
        edges = np.floor(edges + 0.5)
    starts, offsets, weights = [], [0], []
    for left, centre, right in zip(edges[:-2], edges[1:-1], edges[2:], strict=True):
        # The last bin belongs to no filter, as in pocketsphinx.
        bins = np.arange(math.ceil(left), min(math.floor(right) + 1, p.nfft // 2))
        with np.errstate(divide="ignore", invalid="ignore"):
            rising = np.where(centre > left, (bins - left) / (centre - left), np.inf)
            falling = np.where(right > centre, (right - bins) / (right - centre), np.inf)
        triangle = np.minimum(rising, falling)
        if not (len(bins) and np.all(np.isfinite(triangle))):
            raise FeatureParameterError(
                f"A mel filter at {centre * bin_hz:.0f} Hz is narrower than one bin of the "
                f"spectrum: -nfilt {p.nfilt} is too many for -nfft {p.nfft}."
            )
        if p.unit_area:
            triangle = triangle * 2.0 / ((right - left) * bin_hz)
        starts.append(int(bins[0]))
        weights.append(triangle)
        offsets.append(offsets[-1] + len(triangle))
    return np.array(starts), np.array(offsets), np.concatenate(weights)


def cosine_transform(p: FeatureParameters) -> F64:
    """The DCT-II with its scale and the sine lifter folded in, f64[ncep, nfilt]."""
    i, j = np.arange(p.ncep)[:, None], np.arange(p.nfilt)[None, :]
    matrix = np.cos(np.pi / p.nfilt * i * (j + 0.5))
    if p.transform == "legacy":  # the first channel counts half; scaled by 1/nfilt
        matrix[:, 0] /= 2.0
        matrix /= p.nfilt
    else:
        matrix *= math.sqrt(2.0 / p.nfilt)
        if p.transform == "dct":  # orthonormal; `htk` leaves c0 larger by sqrt(2)
            matrix[0] *= math.sqrt(0.5)
    if p.lifter:
        lifter = 1.0 + p.lifter // 2 * np.sin(i * np.pi / p.lifter)
        matrix *= np.asarray(lifter, np.float32)
    return matrix
