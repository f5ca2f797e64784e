"""Where the features of an utterance come from: a recording that was read at once, or sound that is still heard."""

from __future__ import annotations

from typing import NamedTuple

from pipelines.frontend.kaldi import KaldiStream
from pipelines.frontend.mfcc import Utterance, record
from pipelines.frontend.silence_weights import LOOK_BACK
from pipelines.models.ctc.front_end import CtcUtterance
from pipelines.run.recogniser import Recogniser
from pipelines.run.stream import Stream
from pipelines.scoring import with_context
from pipelines.search.viterbi import Viterbi
from profiler.arrays import Array
from profiler.spans import Lane, NullLane


class Rows(NamedTuple):
    """Frames that are decoded together: `frames` from row `first` of `padded`, f32 [rows, dim] with context around."""

    padded: Array
    first: int
    frames: int


class Recording:
    """All features are there before the first block."""

    stream = None

    def __init__(self, features: Array) -> None:
        """`features`: f32 [frames, dim]."""
        self.n_frames = len(features)
        self._features = self._padded = features
        self._context = (0, 0)

    @property
    def features(self) -> tuple[Array, ...]:
        """What lies in memory."""
        return self._features, self._padded

    def next_count(self, recogniser: Recogniser, begin: int) -> int:
        """How many frames from `begin` on are decoded together."""
        return min(recogniser.block, self.n_frames - begin)

    def rows(self, recogniser: Recogniser, begin: int, count: int) -> Rows:
        context = recogniser.scorer.context
        if context != self._context:  # at the first block, and where another net takes over
            self._context, self._padded = context, with_context(self._features, context)
        return Rows(self._padded, begin, count)


class Heard:
    """Features that come as the sound arrives (`stream`), or whose i-vectors follow the search."""

    def __init__(self, heard: Utterance | KaldiStream | CtcUtterance, stream: Stream | None = None) -> None:
        self.stream, self._heard = stream, heard
        self.n_frames = len(heard.features)
        self.features: tuple[Array, ...] = (heard.features,)

    def next_count(self, recogniser: Recogniser, begin: int) -> int:
        """How many frames from `begin` on are decoded together."""
        ready = self.n_frames if self.stream is None else self.stream.decodable(recogniser.scorer)
        return min(recogniser.block, ready - begin)

    def adapts(self, recogniser: Recogniser) -> bool:
        return isinstance(self._heard, KaldiStream) and recogniser.frontend.adapts

    def adapt(
        self, recogniser: Recogniser, begin: int, count: int, segment: int, lane: Lane | NullLane, first: int
    ) -> None:
        """Bring the features of the next block in line with the search, which began at frame `segment`.

        `begin`, `segment`: frames of the utterance; `first`: the frame of the run that `begin` is.
        """
        heard, search = self._heard, recogniser.search
        assert isinstance(heard, KaldiStream)
        assert isinstance(search, Viterbi), "nets with i-vectors are searched on the CPU"
        ahead = begin + count + recogniser.scorer.context[1]
        decoded = (begin - segment) // recogniser.scorer.subsampling
        pieces = heard.adapt(ahead, search.silent(LOOK_BACK), decoded)
        record(pieces, recogniser.frontend.stage_ids, first - begin, lane)

    def begin_segment(self, frame: int) -> None:
        """The search has begun anew at a frame of the utterance."""
        if isinstance(self._heard, KaldiStream):
            self._heard.begin_segment(frame)

    def rows(self, recogniser: Recogniser, begin: int, count: int) -> Rows:
        return Rows(self._heard.rows(begin, count, recogniser.scorer.context), 0, count)
