"""The words of an utterance while it is decoded: partial results, and in a stream segments whose words are final.

A segment ends by the five rules of Kaldi's online2/online-endpoint.h.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pipelines.config.audio import Stream
from pipelines.run.control import Control
from pipelines.run.playlist import Item
from pipelines.run.recogniser import Recogniser
from pipelines.run.stream import ArrivingFeatures, WholeFeatures
from pipelines.search.viterbi import Viterbi
from profiler.clock import FRAME_S
from profiler.session.writer import Journal
from profiler.spans import Lane, NullLane

PARTIAL_EVERY_NS: Final = 100_000_000  # how often a partial result is fetched for the person watching
PARTIAL_SHARE: Final = 0.02
"""At most so much of the time goes into partial results: one holds all words so far, hours of them in a long file."""

Word = tuple[str, int, int]  # word, first frame of the run, frames


@dataclass
class Begun:
    """An utterance that has been read. `number`: in the session; `first`: its first frame of the run."""

    item: Item
    number: int
    first: int
    source: WholeFeatures | ArrivingFeatures
    duration_s: float
    notes: tuple[str, ...]  # What was done to the sound
    done: bool = False  # Whether it was decoded to its end


class Transcript:
    """Follows the search block by block.

    `words`: those fetched last, of all segments. `segment`: frame of the run at which the search began; `complete`:
    whether the segments before it are sentences of the grammar.
    """

    def __init__(
        self, begun: Begun, clock: Callable[[], int], lane: Lane | NullLane, journal: Journal, control: Control
    ) -> None:
        self.begun = begun
        self._clock, self._lane, self._journal, self._control = clock, lane, journal, control
        self._due = clock() + PARTIAL_EVERY_NS
        self._final: list[Word] = []  # of the segments before
        self.words: list[Word] = []
        self.segment, self.complete = begun.first, True

    def follow(self, recogniser: Recogniser, begun_ns: int, reached: int, *, last: bool, replayed: bool) -> bool:
        """A block that began at `begun_ns` is decoded up to frame `reached` of the run: fetch words if it is time.

        `replayed`: the block is to be done again. Returns whether the search has gone on since for a partial result, so
        that it no longer can be.
        """
        search, stream = recogniser.search, self.begun.source.stream
        if last:
            partial = False
            self.words = [*self._final, *search.finish(self._lane)]
        elif stream is not None:
            partial = reached - self.begun.first == stream.decodable(recogniser.scorer)
        else:
            partial = begun_ns >= self._due and not replayed
        if partial:
            start = self._clock()
            self.words = [*self._final, *search.partial(self._lane)]
            self._journal.utterance_partial(self.begun.number, text_of(self.words), self.words)
            took = self._clock() - start
            self._due = begun_ns + max(PARTIAL_EVERY_NS, int(took / PARTIAL_SHARE))
        if stream is not None and (last or partial):
            self._show()
            config, rule = recogniser.config, 0
            if not last and config.stream.endpoint and isinstance(search, Viterbi) and not config.search.lattice:
                rule = endpoint(config.stream, search, reached - self.segment)
            if rule:
                self._end_segment(recogniser, rule, reached)
        return partial

    def _show(self) -> None:
        stream = self.begun.source.stream
        assert stream is not None
        if stream.differs(self.words):
            self._control.show(self.begun.item.name, text_of(self.words), len(stream.chunks) - 1)
        stream.show(self._clock(), self.words)

    def _end_segment(self, recogniser: Recogniser, rule: int, reached: int) -> None:
        """The words so far are final, and the search begins anew."""
        search, source = recogniser.search, self.begun.source
        assert isinstance(source, ArrivingFeatures)
        assert source.stream is not None
        self.words = self._final = [*self._final, *search.finish(self._lane)]
        self._show()
        source.stream.end_segment(rule)
        self.complete = self.complete and search.complete
        self.segment = reached
        search.start(reached)
        source.begin_segment(reached - self.begun.first)


def text_of(words: list[Word]) -> str:
    return " ".join(word for word, _, _ in words)


def endpoint(settings: Stream, search: Viterbi, frames: int) -> int:
    """The first rule (1 … 5) that finds an endpoint after `frames` frames of a segment; 0: none does.

    Of the path that `search.partial` returned last.
    """
    length_s, silence_s = frames * FRAME_S, search.silence * FRAME_S
    said = search.silence < frames
    cost = search.relative_cost if said and silence_s >= settings.rule2_silence_s else float("inf")
    rules = (
        silence_s >= settings.rule1_silence_s,
        said and silence_s >= settings.rule2_silence_s and cost <= settings.rule2_cost,
        said and silence_s >= settings.rule3_silence_s and cost <= settings.rule3_cost,
        said and silence_s >= settings.rule4_silence_s,
        length_s >= settings.rule5_length_s,
    )
    return next((number for number, holds in enumerate(rules, 1) if holds), 0)
