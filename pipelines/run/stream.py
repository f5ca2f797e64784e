"""Where the features of an utterance come from: a recording read at once, or sound that arrives in chunks on the clock.

Open loop: a chunk arrives when its last sample has been spoken, whether or not the one before is done. Every utterance
starts the clock again. At pace 0 nobody waits: the clock jumps to the arrival of the next chunk.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from pipelines.config.audio import Stream as Settings
from pipelines.frontend.ivector_parameters import LOOK_BACK
from pipelines.frontend.kaldi import KaldiStream
from pipelines.frontend.mfcc import MfccUtterance, Piece, record
from pipelines.models.ctc.front_end import CtcUtterance
from pipelines.models.opening import FrontEnd
from pipelines.run.recogniser import Recogniser
from pipelines.scoring import Scorer, with_context
from pipelines.search.viterbi import Viterbi
from profiler.arrays import F32, Array
from profiler.spans import Lane, NullLane

Word = tuple[str, int, int]


@dataclass
class Chunk:
    """One chunk: how much audio has arrived with it, and when it arrived, began to be decoded and had its words shown.

    Times are ns since the first sample was spoken; `other_ns`: how long other programs had the processor meanwhile.
    """

    audio_ns: int
    arrived_ns: int
    started_ns: int
    shown_ns: int
    other_ns: int = 0


class Stream:
    """The chunks of one utterance, the features that they suffice for, and the words shown after each."""

    def __init__(self, frontend: FrontEnd, samples: F32, rate: int, settings: Settings, now: int) -> None:
        """`samples` f32 [n] at `rate` Hz; `now`: when the first is spoken, on the clock of the run."""
        self._frontend, self.utterance = frontend, frontend.start(samples)
        self._n_samples, self._rate, self._chunk_ms = len(samples), rate, settings.chunk_ms
        self._per_chunk = max(1, rate * settings.chunk_ms // 1000)
        self._origin, self._taken, self._arrival = now, 0, 0.0
        self._waited = False
        self._shown: list[Word] = []
        self.chunks: list[Chunk] = []
        self._changes: list[tuple[int, int, list[Word]]] = []
        self._segments: list[tuple[int, int, int]] = []

    def due(self, now: int, pace: float) -> int:
        """When the next chunk arrives, on the clock of the run: at pace 0 `now` at the latest."""
        samples = min(self._per_chunk, self._n_samples - self._taken)
        self._arrival = (self.chunks[-1].arrived_ns if self.chunks else 0) + samples / self._rate / (pace or 1.0) * 1e9
        due = self._origin + round(self._arrival)
        if not pace and due > now:
            self._origin -= due - now
            return now
        self._waited = self._waited or pace > 0
        return due

    def take(self, now: int) -> Iterator[Piece]:
        """Take in the next chunk: the work of the front end, which yields after each piece."""
        self._taken = min(self._taken + self._per_chunk, self._n_samples)
        at = now - self._origin
        self.chunks.append(Chunk(round(self._taken / self._rate * 1e9), round(self._arrival), at, at))
        return self.utterance.advance(self._taken)

    def decodable(self, scorer: Scorer) -> int:
        ready, each = self.utterance.ready, max(scorer.subsampling, self._frontend.chunk)
        return ready if ready == self.utterance.n_frames else max(ready - scorer.context[1], 0) // each * each

    def differs(self, words: Sequence[Word]) -> bool:
        """Whether the text of `words` is another one than what is shown."""
        return [word for word, _, _ in words] != [word for word, _, _ in self._shown]

    def show(self, now: int, words: Sequence[Word]) -> None:
        """The words so far are shown `now`: all that the chunks taken in so far suffice for is decoded."""
        self.chunks[-1].shown_ns = now - self._origin
        pairs = zip(words, self._shown, strict=False)
        kept = sum(1 for _ in takewhile(lambda pair: pair[0][0] == pair[1][0], pairs))
        if kept < max(len(words), len(self._shown)):
            self._changes.append((len(self.chunks) - 1, kept, list(words[kept:])))
        self._shown = list(words)

    def end_segment(self, rule: int) -> None:
        """The words shown last are final, by this rule of the endpoint; 0: the utterance ends."""
        self._segments.append((len(self.chunks) - 1, len(self._shown), rule))

    def as_dict(self) -> dict[str, object]:
        """What the session keeps: docs/session-format.md."""
        times = ("audio_ns", "arrived_ns", "started_ns", "shown_ns", "other_ns")
        return {
            "chunk_ms": self._chunk_ms,
            "lookahead_frames": self._frontend.lookahead,
            "waited": self._waited,
            "origin_ns": self._origin if self._waited else 0,
            **{name: [getattr(chunk, name) for chunk in self.chunks] for name in times},
            "changes": self._changes,
            "segments": self._segments,
        }


class Rows(NamedTuple):
    """Frames that are decoded together: `frames` from row `first` of `padded`, f32 [rows, dim] with context around."""

    padded: Array
    first: int
    frames: int


class WholeFeatures:
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


class ArrivingFeatures:
    """Features that come as the sound arrives (`stream`), or whose i-vectors follow the search."""

    def __init__(self, heard: MfccUtterance | KaldiStream | CtcUtterance, stream: Stream | None = None) -> None:
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
