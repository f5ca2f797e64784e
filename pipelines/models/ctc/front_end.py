"""From sound to the scores of a CTC net: features, then the net, whole utterances or chunk by chunk.

A net may look at all of an utterance, so it is computed here, before the search begins. An utterance's `features` are
its scores, in the first of the frames that an output stands for; `scoring.scorer.CtcScorer` hands them to the search.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pipelines.frontend.kaldi_parameters import take_frames
from pipelines.frontend.mfcc import Piece, check_samples, record, rows_around
from pipelines.frontend.parameters import FeatureParameterError, Target
from pipelines.models.ctc.net import Computing, Ctc, part, windows
from pipelines.models.ctc.operators import NetProfile, profiled
from profiler.arrays import F32
from profiler.clock import now_ns
from profiler.costs import NUMPY_CALL, Cost, Linear
from profiler.spans import Lane, NullLane, Recorder

FBANK = "frontend.fbank"
PIECE_FRAMES = 512  # frames of features for a span


class Sound(NamedTuple):
    """What a front end's parameters say to whoever reads sound for it."""

    target: Target


class CtcFrontEnd:
    """The front end of a model that is a CTC net."""

    adapts, chunk = False, 1  # as `mfcc.Mfcc`

    def __init__(self, net: Ctc) -> None:
        """ModelError if onnxruntime cannot compute the net; FeatureParameterError where its features cannot be made."""
        self.net, fbank = net, net.input.fbank
        if fbank is not None:
            fbank.source()
        self.parameters = Sound(fbank.target if fbank else Target(net.input.rate, net.input.rate / 2))
        self.dimension = len(net.units.symbols)
        self.computing = Computing(net)
        self.stage_ids: dict[str, int] = {}

    @cached_property
    def profile(self) -> NetProfile:
        """What the blocks of the net take, by onnxruntime's own profile of calls that nobody times."""
        return profiled(self.net)

    def n_frames(self, n_samples: int) -> int:
        return self.net.input.n_frames(n_samples)

    @property
    def lookahead(self) -> int:
        """Frames behind the last one of a chunk's outputs that the net hears with it."""
        return self.net.input.chunk - self.net.input.shift

    def start(self, samples: F32) -> CtcUtterance:
        """Begin an utterance of a stream; FeatureParameterError for a net that needs whole utterances."""
        if self.net.whole:
            raise FeatureParameterError(
                f"{self.net.path.name} needs the whole utterance before it gives a score: set stream.chunk_ms=0, or "
                "take a net with states (zipformer2, t-one)."
            )
        return CtcUtterance(self, samples)

    def features(self, samples: F32, first_frame: int = 0, lane: Lane | NullLane | None = None) -> F32:
        """The scores of an utterance, f32 [n_frames, units]: those of a net's output in the first frame that it is for.

        `samples` f32 [n] in -1…1. With a `lane` (after `stages`) each piece is recorded, from `first_frame` of the run.
        """
        utterance = CtcUtterance(self, samples)
        record(utterance.advance(len(samples)), self.stage_ids, first_frame, lane)
        return utterance.features

    def stages(self, recorder: Recorder) -> None:
        """Make the stages known to `recorder`, whose lanes `features` then records on."""
        self.stage_ids = {FBANK: recorder.stage(FBANK, "frontend")}
        for block in self.profile.blocks:
            self.stage_ids[block.stage] = recorder.stage(block.stage, block.group, ("outputs", "pairs"))

    def warm_up(self) -> None:
        self.features(np.zeros(self.parameters.target.rate, np.float32))

    def costs(self) -> dict[str, Cost]:
        """Cost law per stage: of the net from its operators and their shapes; features as `kaldi.KaldiMfcc.costs`."""
        costs, fbank = self.profile.costs(self.net.threads), self.net.input.fbank
        if fbank is None:
            return costs
        window, fft = fbank.rate * 0.025, 1 << (int(fbank.rate * 0.025) - 1).bit_length()
        operations = 6.0 * window + 2.5 * fft * np.log2(fft) + 7.0 * (fft // 2 + 1)
        least = 4.0 * (self.net.input.hop + fbank.bins)
        costs[FBANK] = Cost(
            operations={"scalar": Linear(per_frame=float(operations)), "log": Linear(per_frame=float(fbank.bins))},
            bytes_min=Linear(per_frame=least),
            bytes_max=Linear(per_frame=least + 8.0 * fft),
            working_set_bytes=12.0 * fft + 4.0 * fft,
            calls={NUMPY_CALL: Linear(per_frame=2.0)},
        )
        return costs


class CtcUtterance:
    """One utterance on its way through features and net; `features` f32 [n_frames, units] as `CtcFrontEnd.features`."""

    def __init__(self, front_end: CtcFrontEnd, samples: F32) -> None:
        check_samples(samples)
        net = front_end.net.input
        self._front_end, self._net, self._samples = front_end, net, samples
        self.n_frames = front_end.n_frames(len(samples))
        self.features = np.empty((self.n_frames, front_end.dimension), np.float32)
        self.ready = 0
        """Frames of `features` that `advance` has completed."""
        self._source = None if net.fbank is None else net.fbank.source()
        self._frames = np.empty((self.n_frames, net.fbank.bins if net.fbank else 0), np.float32)
        self._given = self._made = 0
        self._windows = list(windows(net, self.n_frames))
        front_end.computing.begin()

    def rows(self, begin: int, count: int, context: tuple[int, int]) -> F32:
        return rows_around(self.features, begin, count, context)

    def advance(self, n_samples: int) -> Iterator[Piece]:
        """Compute the `ready` frames that the first `n_samples` samples suffice for, yielding after each piece."""
        finished = n_samples >= len(self._samples)
        yield from self._heard(n_samples, finished)
        fbank = self._net.fbank
        x = self._samples if fbank is None else self._frames[: self._made]
        if fbank is not None and finished:
            x = fbank.normalised(x)
        while self._windows and (finished or self._windows[0].end <= self._made):
            window = self._windows.pop(0)
            start = now_ns()
            scores = self._front_end.computing.scores(part(self._net, x, window.begin, window.end))
            took = now_ns() - start
            self.ready, each = min(window.last, self.n_frames), self._net.each
            # Of a window's scores those of its own frames; the last goes on if need be.
            places = np.arange(window.first, self.ready, each)
            self.features[places] = scores[((places - window.begin) // each).clip(0, len(scores) - 1)]
            yield from self._front_end.profile.pieces(took, len(scores), window.first, self.ready - window.first)

    def _heard(self, n_samples: int, finished: bool) -> Iterator[Piece]:
        """Make the features of the samples that have arrived; of a net that takes the sound itself there are none."""
        source, fbank = self._source, self._net.fbank
        if source is None or fbank is None:
            self._made = self.n_frames if finished else n_samples // self._net.hop
            return
        piece = PIECE_FRAMES * self._net.hop
        while self._given < n_samples or (finished and self._made < self.n_frames):
            arrived = self._samples[self._given : min(self._given + piece, n_samples)]
            self._given += len(arrived)
            source.accept_waveform(fbank.rate, arrived * np.float32(fbank.full_scale))
            if finished and self._given == len(self._samples):
                source.input_finished()
            first, self._made = self._made, take_frames(source, self._frames, self._made)
            yield Piece(FBANK, first, self._made - first)
            if not len(arrived) and self._made == first:
                break
