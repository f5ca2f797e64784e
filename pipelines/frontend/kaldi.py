"""Kaldi's features: MFCC by the package kaldi-native-fbank, then mean, differences, splicing and a transform.

As in Kaldi's feat/: apply-cmvn, then add-deltas or splice-feats, then transform-feats. Mean and variance are those of
the utterance, or of the last frames (online CMVN); dither is left out. Beyond both ends the outermost frame is
repeated. A sound shorter than a window is filled up with zeros to one frame.

For a net with i-vectors each frame ends with that of its chunk, as in Kaldi's online decoding: the latest when the
chunk's first frame is needed. It depends on the search's best path so far (`KaldiStream.adapt`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pipelines.frontend import mfcc
from pipelines.frontend.ivector import IVECTOR, WORK, IvectorExtractor, Speaker
from pipelines.frontend.ivector_parameters import PLAIN, IvectorModel, Pacing, SilenceWeights
from pipelines.frontend.kaldi_parameters import KaldiFeatures, require_package, take_frames
from pipelines.frontend.mfcc import MFCC, NORMALISE, Piece
from pipelines.frontend.online_cmvn import VARIANCE_FLOOR, OnlineCmvn
from pipelines.frontend.parameters import FeatureParameterError
from profiler.arrays import F32, F64, Array, Bool, check
from profiler.costs import NUMPY_CALL
from profiler.plain import one_line
from profiler.spans import Cost, Lane, Linear, NullLane, Recorder

if TYPE_CHECKING:
    import kaldi_native_fbank

PIECE_S = 0.2  # Vosk takes in sound in pieces of this length, whatever it is given


class KaldiMfcc:
    """The front end of a Kaldi model."""

    def __init__(
        self,
        parameters: KaldiFeatures,
        transform: Array | None = None,
        ivectors: IvectorModel | None = None,
        cmvn: OnlineCmvn | None = None,
        pacing: Pacing = PLAIN,
    ) -> None:
        """`transform` f32 [m, n] of n spliced values, or [m, n + 1] with what is added; FeatureParameterError.

        `ivectors`: what extracts those behind the features; `cmvn`: of the cepstra, i-vectors are of plain ones;
        `pacing`: when there is an i-vector.
        """
        self.parameters, self.cmvn, self.pacing = parameters, cmvn, pacing
        self.ivectors = None if ivectors is None else IvectorExtractor(ivectors)
        self.adapts = ivectors is not None
        """Whether features depend on the search: those of an utterance are then to be had from `start`."""
        self.chunk = pacing.chunk if self.adapts else 1
        self.options = _options(parameters)
        self.stage_ids: dict[str, int] = {}
        width = parameters.spliced
        self._matrix: F32 | None = None
        self._offset: F32 | float = 0.0
        if transform is not None:
            columns = width + 1 if transform.shape[1] == width + 1 else width
            check("transform", transform, np.float32, (None, columns))
            self._matrix = np.ascontiguousarray(transform[:, :width].T)
            if columns > width:
                self._offset = transform[:, width].copy()
        self.width = width if self._matrix is None else self._matrix.shape[1]
        """Values of a frame before the i-vector."""
        self.dimension = self.width + (0 if ivectors is None else ivectors.dimension)
        self._weights = difference_weights(parameters)
        self.around = max((len(weights) - 1) // 2 for weights in self._weights)
        """Frames on either side that differences are taken over."""
        self.lookahead = max(self.around, parameters.right_context)
        self.prior: F64 | None = None
        """f64 [num_ceps]: the mean that the running mean of a stream starts from; a stream that ends leaves its own."""

    def n_frames(self, n_samples: int) -> int:
        """How many frames `n_samples` samples yield; any non-empty signal yields one at least."""
        p = self.parameters
        if n_samples <= 0:
            return 0
        if not p.snip_edges:
            return max((n_samples + p.hop_samples // 2) // p.hop_samples, 1)
        return 1 + max(n_samples - p.window_samples, 0) // p.hop_samples

    def features(self, samples: F32, first_frame: int = 0, lane: Lane | NullLane | None = None) -> F32:
        """All features of an utterance f32 [n_frames, dimension]: `samples` f32 [n] in -1…1, at the target's rate.

        I-vectors are those without a search: all frames count alike. With a `lane` (after `stages`) each piece is
        recorded; `first_frame` is the utterance's first frame in the run.
        """
        heard = KaldiStream(self, samples, replace(self.pacing, silence_weight=1.0))
        mfcc.record(heard.whole(), self.stage_ids, first_frame, lane)
        return heard.features

    def normalised(self, cepstra: F32, normal: tuple[F32, F32], first: int, last: int) -> F32:
        """Features f32 [last − first, width] from cepstra f32 [n, num_ceps] and `mean_and_scale`, without i-vectors."""
        p, n = self.parameters, len(cepstra)
        before, after = max(self.around, p.left_context), max(self.around, p.right_context)
        rows = np.clip(np.arange(first - before, last + after), 0, n - 1)
        if self.cmvn is None:
            mean, scale = normal
            plain = (cepstra[rows] - mean) * scale
        else:
            plain = self.cmvn.apply(cepstra, rows[0], rows[-1] + 1)[rows - rows[0]]
        count = last - first
        if p.left_context or p.right_context:
            parts = [plain[before + at :][:count] for at in range(-p.left_context, p.right_context + 1)]
        else:
            parts = [
                sum(weight * plain[before + i - len(weights) // 2 :][:count] for i, weight in enumerate(weights))
                for weights in self._weights
            ]
        frames: F32 = np.concatenate(parts, axis=1)
        return frames if self._matrix is None else frames @ self._matrix + self._offset

    def start(self, samples: F32) -> KaldiStream:
        """Begin an utterance of a stream: f32 [n] samples in -1…1."""
        return KaldiStream(self, samples, self.pacing)

    def stages(self, recorder: Recorder) -> None:
        """Make the stages known to `recorder`, whose lanes `features` then records on."""
        self.stage_ids = {name: recorder.stage(name, "frontend") for name in mfcc.STAGES}
        if self.ivectors is not None:
            self.stage_ids[IVECTOR] = recorder.stage(IVECTOR, "frontend", WORK)

    def warm_up(self) -> None:
        self.features(np.zeros(4 * self.parameters.window_samples, np.float32))

    def costs(self) -> dict[str, Cost]:
        """Cost law per stage, linear in frames: operations as `mfcc.Mfcc.costs` counts them.

        Calls: a sample and a frame cross from Python to the library one by one.
        """
        p = self.parameters
        bins = p.fft_samples // 2 + 1
        fft = 2.5 * p.fft_samples * math.log2(p.fft_samples)
        # Offset, pre-emphasis and window; power, then weighted sums of about two filters a bin.
        window, filters, dct = 6.0 * p.window_samples, 3.0 * bins + 4.0 * bins, 2.0 * p.num_ceps * p.num_mel_bins
        width, weights = 4.0 * self.width, sum(map(len, self._weights))
        operations = 2.0 * p.num_ceps * (1 + weights) + (0.0 if self._matrix is None else 2.0 * self._matrix.size)
        least = 4.0 * p.hop_samples + 4.0 * p.num_ceps
        ivectors = {} if self.ivectors is None else {IVECTOR: self.ivectors.cost()}
        return ivectors | {
            MFCC: Cost(
                operations={
                    "scalar": Linear(per_frame=window + fft + filters + dct),
                    "log": Linear(per_frame=float(p.num_mel_bins)),
                },
                bytes_min=Linear(per_frame=least),
                bytes_max=Linear(per_frame=least + 8.0 * p.fft_samples),
                working_set_bytes=float(12 * p.fft_samples + 4 * p.num_ceps * p.num_mel_bins),
                calls={NUMPY_CALL: Linear(per_frame=2.0)},
            ),
            NORMALISE: Cost(
                operations={"fma": Linear(per_frame=operations)},
                bytes_min=Linear(per_frame=4.0 * p.num_ceps + width),
                bytes_max=Linear(per_frame=12.0 * p.num_ceps * weights + 8.0 * p.spliced + width),
                working_set_bytes=float(mfcc.PIECE_FRAMES * (4 * p.spliced + width)),
                calls={NUMPY_CALL: Linear(fixed=8.0 + 2.0 * weights)},
            ),
        }


class KaldiStream:
    """One utterance whose samples arrive in chunks, as `mfcc.MfccUtterance`."""

    def __init__(self, front_end: KaldiMfcc, samples: F32, pacing: Pacing) -> None:
        import kaldi_native_fbank

        mfcc.check_samples(samples)
        p = front_end.parameters
        self._tables, self._samples, self._pacing = front_end, samples, pacing
        self.n_frames = front_end.n_frames(len(samples))
        self.features = np.empty((self.n_frames, front_end.dimension), np.float32)
        self.ready = 0
        """Frames of `features` that `advance` has completed."""
        self._cepstra = np.empty((self.n_frames, p.num_ceps), np.float32)
        self._source = kaldi_native_fbank.OnlineMfcc(front_end.options)
        self._given = self._made = 0
        self._speaker = None if front_end.ivectors is None else Speaker(front_end.ivectors)
        self._weights = SilenceWeights(pacing, 0)
        self._waiting: dict[int, float] = {}  # changes of weights, by frame
        self._known = 0  # frames that count in the last i-vector
        self._ivectors: list[F32] = []  # of each chunk

    def advance(self, n_samples: int) -> Iterator[Piece]:
        """Compute the `ready` frames that the first `n_samples` samples suffice for, yielding after each piece."""
        tables, p = self._tables, self._tables.parameters
        yield from self._hear(n_samples)
        finished = self._given == len(self._samples)
        first, self.ready = self.ready, self._made if finished else max(self._made - tables.lookahead, self.ready)
        if self.ready > first:
            normal = mean_and_scale(self._cepstra[: self._made], p, tables.prior)
            plain = tables.normalised(self._cepstra, normal, first, self.ready)
            self.features[first : self.ready, : plain.shape[1]] = plain
            if finished:
                tables.prior = normal[0].astype(np.float64)
            yield Piece(NORMALISE, first, self.ready - first)

    def _hear(self, n_samples: int) -> Iterator[Piece]:
        """Compute the cepstra that the first `n_samples` samples suffice for, yielding after each piece."""
        p, source = self._tables.parameters, self._source
        while self._given < min(n_samples, len(self._samples)):
            arrived = self._samples[self._given : min(self._given + mfcc.PIECE_FRAMES * p.hop_samples, n_samples)]
            self._given += len(arrived)
            source.accept_waveform(p.sample_frequency, arrived * np.float32(mfcc.FULL_SCALE))
            if self._given == len(self._samples):
                lacking = p.window_samples - len(self._samples) if p.snip_edges else 0
                if lacking > 0:
                    source.accept_waveform(p.sample_frequency, np.zeros(lacking, np.float32))
                source.input_finished()
            first, self._made = self._made, take_frames(source, self._cepstra, self._made)
            if self._made > first:
                yield Piece(MFCC, first, self._made - first)

    def whole(self) -> Iterator[Piece]:
        """Compute all features at once, with the mean of the utterance alone."""
        if self._speaker is not None:
            yield from self.advance(len(self._samples))
            for first in range(0, self.n_frames, self._pacing.chunk):
                yield from self.adapt(first + self._pacing.chunk, np.zeros(0, bool), 0)
            return
        yield from self._hear(len(self._samples))
        normal = mean_and_scale(self._cepstra, self._tables.parameters)
        for first in range(0, self.n_frames, mfcc.PIECE_FRAMES):
            last = min(first + mfcc.PIECE_FRAMES, self.n_frames)
            self.features[first:last] = self._tables.normalised(self._cepstra, normal, first, last)
            yield Piece(NORMALISE, first, last - first)

    def begin_segment(self, frame: int) -> None:
        self._weights = SilenceWeights(self._pacing, frame)

    def adapt(self, end: int, silent: Bool, decoded: int) -> Iterator[Piece]:
        """Estimate the i-vector of the chunks before frame `end`, which may lie behind the last, that have none yet.

        `silent`, `decoded`: of the search's best path, as `SilenceWeights.changes` takes them.
        """
        lacking = -(-end // self._pacing.chunk) - len(self._ivectors)
        if self._speaker is None or lacking <= 0:
            return
        tables = self._tables
        vector = self._ivectors[-1] if self._ivectors else np.zeros(tables.dimension - tables.width, np.float32)
        first, (known, before) = self._known, self._arrived(end)
        if known > first:
            for frame, change in zip(*self._weights.changes(known, before, silent, decoded), strict=True):
                self._waiting[int(frame)] = self._waiting.get(int(frame), 0.0) + float(change)
            frames = sorted(frame for frame in self._waiting if frame < known)
            changes = np.array([self._waiting.pop(frame) for frame in frames])
            self._known = known
            vector, work = self._speaker.estimate(self._cepstra[: self._made], np.array(frames, np.int64), changes)
            yield Piece(IVECTOR, first, known - first, work)
        begin = len(self._ivectors) * self._pacing.chunk
        self._ivectors += [vector] * lacking
        self.features[begin : len(self._ivectors) * self._pacing.chunk, tables.width :] = vector

    def _arrived(self, end: int) -> tuple[int, int]:
        """Frames whose i-vector could be known when frame `end` − 1 first is there, and a piece of sound before."""
        tables, p = self._tables, self._tables.parameters
        assert tables.ivectors is not None
        behind = tables.ivectors.model.right_context
        if end > self.n_frames:
            return self.n_frames, self.n_frames - behind
        piece = int(p.sample_frequency * PIECE_S)
        pieces = -(-((end - 1) * p.hop_samples + p.window_samples) // piece)
        known, before = (min(tables.n_frames(n * piece), self._made) - behind for n in (pieces, pieces - 1))
        return max(known, 0), max(before, 0)

    def rows(self, begin: int, count: int, context: tuple[int, int]) -> F32:
        """As `mfcc.MfccUtterance.rows`; behind the last frame i-vectors go on."""
        found = mfcc.rows_around(self.features, begin, count, context)
        if self._ivectors:
            rows = np.arange(begin - context[0], begin + count + context[1]).clip(0)
            of = rows // self._pacing.chunk
            found[:, self._tables.width :] = np.array(self._ivectors[of[0] : of[-1] + 1])[of - of[0]]
        return found


def difference_weights(p: KaldiFeatures) -> list[F32]:
    """Of the frames around it in each difference, f32 [2·order·window + 1]: of the values, the first, the second …"""
    ramp = np.arange(-p.delta_window, p.delta_window + 1, dtype=np.float64)
    weights = [np.ones(1)]
    for _ in range(p.delta_order):
        weights.append(np.convolve(weights[-1], ramp / np.square(ramp).sum()))
    return [np.asarray(each, np.float32) for each in weights]


def mean_and_scale(cepstra: F32, p: KaldiFeatures, prior: F64 | None = None) -> tuple[F32, F32]:
    """What is subtracted from each cepstrum and what it is multiplied by then, f32 [num_ceps] each.

    `prior` f64 [num_ceps]: counts as PRIOR_FRAMES more frames of the mean.
    """
    mean, scale = np.zeros(p.num_ceps), np.ones(p.num_ceps)
    if len(cepstra) and p.norm_means:
        mean = cepstra.mean(axis=0, dtype=np.float64)
        if prior is not None:
            mean = (mean * len(cepstra) + prior * mfcc.PRIOR_FRAMES) / (len(cepstra) + mfcc.PRIOR_FRAMES)
        if p.norm_vars:
            variance = np.square(cepstra - mean).mean(axis=0)
            np.sqrt(1 / np.maximum(variance, VARIANCE_FLOOR), out=scale)
    return mean.astype(np.float32), scale.astype(np.float32)


def _options(p: KaldiFeatures) -> kaldi_native_fbank.MfccOptions:
    """The options of the library; FeatureParameterError where it is missing or refuses them."""
    require_package()
    import kaldi_native_fbank

    options = kaldi_native_fbank.MfccOptions()
    frame, mel = options.frame_opts, options.mel_opts
    frame.dither = 0.0
    frame.samp_freq, frame.frame_shift_ms, frame.frame_length_ms = p.sample_frequency, p.frame_shift, p.frame_length
    frame.preemph_coeff, frame.remove_dc_offset = p.preemphasis_coefficient, p.remove_dc_offset
    frame.window_type, frame.blackman_coeff = p.window_type, p.blackman_coeff
    frame.round_to_power_of_two, frame.snip_edges = p.round_to_power_of_two, p.snip_edges
    mel.num_bins, mel.low_freq, mel.high_freq = p.num_mel_bins, p.low_freq, p.high_freq
    options.num_ceps, options.use_energy, options.energy_floor = p.num_ceps, p.use_energy, p.energy_floor
    options.raw_energy, options.cepstral_lifter = p.raw_energy, p.cepstral_lifter
    options.htk_compat = p.htk_compat
    try:
        kaldi_native_fbank.OnlineMfcc(options)
    except ValueError as error:
        raise FeatureParameterError(f"The features of the model cannot be computed: {one_line(str(error))}") from None
    return options
