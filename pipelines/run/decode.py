"""The decode loop: utterance by utterance, block by block, with every nanosecond of wall time accounted for.

Spans of group `decode` tile the decoding time without a gap: one for the work done once per utterance (reading,
features; spread over its frames) and one per block. What their leaves (front end, scoring, search) do not cover is
overhead: the loop's own Python, which takes requests, shows words and measures. Waiting for the pace is `idle`; the
waveform and word errors, which only the user needs, are `setup`. Both lie outside the wall time, as does time in which
the process stood still.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec
import numpy as np

from pipelines import config as settings
from pipelines.audio import loading as audio
from pipelines.audio import word_errors as wer
from pipelines.config import Config
from pipelines.frontend.kaldi import KaldiStream
from pipelines.frontend.mfcc import Utterance, record
from pipelines.frontend.silence_weights import LOOK_BACK
from pipelines.run import compiling
from pipelines.run.blocks import Blocks
from pipelines.run.control import Control, Mark
from pipelines.run.endpoint import endpoint
from pipelines.run.live_changes import LiveChanges, PendingChange
from pipelines.run.measurements import RunMeasurements
from pipelines.run.null_writer import NullWriter
from pipelines.run.pace import Pace
from pipelines.run.playlist import Item
from pipelines.run.recogniser import Recogniser
from pipelines.run.request import Decoded, Result
from pipelines.run.stream import Stream
from pipelines.scoring import with_context
from pipelines.search.viterbi import Viterbi
from profiler.analysis.conditions import COUNTS
from profiler.arrays import Array
from profiler.files import named
from profiler.machine.run_queue import NOTHING, Lost
from profiler.session.facts import STREAM
from profiler.session.writer import SessionWriter
from profiler.spans import Lane, NullLane, Recorder

PARTIAL_EVERY_NS = 100_000_000  # how often a partial result is fetched for the person watching
PARTIAL_SHARE = 0.02
"""At most so much of the time goes into partial results: one holds all words so far, hours of them in a long file."""
TILES = ("decode.utterance", "decode.chunk", "decode.block")
"""Stages that carry what of their time was not their own."""
MS: Final = 1_000_000

Journal = SessionWriter | NullWriter

Word = tuple[str, int, int]  # word, first frame of the run, frames


class _Begun(NamedTuple):
    """An utterance that has been read. `number`: in the session; `features`: f32 [frames, dim]."""

    number: int
    first: int
    """Its first frame."""
    features: Array
    duration_s: float
    wall_ns: int
    """What reading and features took."""
    notes: tuple[str, ...]
    """What was done to the sound."""
    stream: Stream | None
    """Where the audio arrives in chunks: `features` are filled as it does."""
    heard: Utterance | KaldiStream | None
    """What fills `features` while the utterance is decoded, if anything does."""


class Decoder:
    """Decodes a playlist with one recogniser, following a person's requests at block boundaries."""

    def __init__(
        self,
        recogniser: Recogniser,
        recorder: Recorder,
        lane: Lane | NullLane,
        journal: Journal,
        control: Control,
        measurements: RunMeasurements | None = None,
    ) -> None:
        """`measurements`: what a recorded run measures besides its stages."""
        self.recogniser = recogniser
        self._measurements = measurements
        self.result = Result()
        self._recorder, self._lane, self._journal = recorder, lane, journal
        self._control = control
        self._clock = recorder.clock
        self._epoch = self._newest = 0
        self._held = False
        self.configs_met: list[Config] = []
        """Settings that began to act while the last utterance was being decoded, in order."""
        self.features: tuple[Array, ...] = ()
        """Of the utterance being decoded, f32 [frames, dim]: those of the front end, and with the scorer's context."""
        self._epochs: list[int] = []  # of the utterance being decoded, in order
        self._stopped_ns = 0  # for how long the process stood still meanwhile
        self._frame = 0  # frames decoded in this run, over all utterances
        self._live = LiveChanges(compiling.beside)
        self._nets: dict[str, dict[str, list[int]]] = {}  # those that have scored, by name
        recogniser.register(recorder)
        self._stage = {
            name: recorder.stage(name, group, COUNTS if name in TILES else ())
            for name, group in (
                ("frontend.audio", "frontend"),
                ("decode.utterance", "prepare"),
                ("decode.chunk", "prepare"),
                ("decode.block", "decode"),
                ("setup.waveform", "setup"),
                ("setup.errors", "setup"),
            )
        }
        self._blocks = Blocks(lane, recorder.clock)
        self._pace = Pace(recorder, lane, control)
        self._begin_epoch(recogniser.config, 0)

    @property
    def frame(self) -> int:
        return self._frame

    @property
    def epoch(self) -> int:
        return self._epoch

    @property
    def changing(self) -> bool:
        return self._live.waiting

    def new_epochs(self, count: int) -> range:
        """Numbers for `switch` that no configuration has had yet or will be given."""
        first, self._newest = self._newest + 1, self._newest + count
        return range(first, first + count)

    def hold_changes(self, held: bool) -> None:
        self._held = held

    @property
    def _stopping(self) -> bool:
        return self._control.stopping or self._journal.failed is not None

    def switch(self, recogniser: Recogniser, epoch: int) -> None:
        """Decode the utterances that follow with `recogniser` and its settings, as `epoch`.

        Between utterances only. An epoch may come back; all that carry its number ran alike.
        """
        self.recogniser = recogniser
        recogniser.register(self._recorder)
        self._begin_epoch(recogniser.config, epoch)
        self._pace.forget()

    def run(self, items: Iterable[Item]) -> Result:
        """Decode `items` until they end or a stop request."""
        try:
            for item in items:
                if self._stopping:
                    break
                try:
                    self._utterance(item)
                except audio.AudioError as error:
                    if str(error) not in self.result.refused:  # once, however often it comes again
                        self.result.refused.append(str(error))
                        self._journal.marker("error", str(error), self._frame)
        finally:
            self._live.cancel(wait=True)
        return self.result

    def _begin(self, item: Item) -> _Begun:
        clock, lane, stage, recogniser = self._clock, self._lane, self._stage, self.recogniser
        first, self._stopped_ns = self._frame, 0
        if self._measurements is not None:
            self._measurements.forget()
            self._measurements.begin()
        start = clock()
        sound = audio.load(item.path, item.part, recogniser.frontend.parameters.target)
        n_frames = recogniser.frontend.n_frames(len(sound.samples))
        lane.put(stage["frontend.audio"], start, clock(), first, n_frames)
        streams, frontend = recogniser.config.stream.chunk_ms > 0, recogniser.frontend
        heard: Utterance | KaldiStream | None = None
        features = np.empty((0, 0), np.float32)
        if not streams and frontend.adapts:
            heard = frontend.start(sound.samples)
            record(heard.advance(len(sound.samples)), frontend.stage_ids, first, lane)
            features = heard.features
        elif not streams:
            features = frontend.features(sound.samples, first, lane)
        lost = self._lost(clock(), surely=True)
        end = clock()
        wall_ns = self._put_tile("decode.utterance", start, end, first, n_frames, lost)
        notes = [*item.notes, *sound.notes]
        peaks = audio.peaks(sound.samples, n_frames, sound.sample_rate)
        utterance = self._journal.utterance(
            item.name,
            named.kept(str(item.path)),
            first,
            n_frames,
            sound.duration_s,
            item.reference,
            peaks,
            notes,
            msgspec.to_builtins(item.part),
        )
        now = clock()
        lane.put(stage["setup.waveform"], end, now, first, 0)
        stream = None
        if streams:
            stream = Stream(frontend, sound.samples, sound.sample_rate, recogniser.config.stream, now)
            heard, features = stream.utterance, stream.utterance.features
        return _Begun(utterance, first, features, sound.duration_s, wall_ns, tuple(notes), stream, heard)

    def _adapt(self, heard: KaldiStream, begin: int, end: int, decoded: int, now: int) -> tuple[int, int]:
        """Bring the features of frames before `end` of the utterance in line with the search.

        `decoded` rows of scores since the search began, up to frame `begin`; `now`: when this work began. Returns the
        time then, and what it took, ns.
        """
        recogniser = self.recogniser
        assert isinstance(recogniser.search, Viterbi), "nets with i-vectors are searched on the CPU"
        pieces = heard.adapt(end, recogniser.search.silent(LOOK_BACK), decoded)
        record(pieces, recogniser.frontend.stage_ids, self._frame - begin, self._lane)
        lost, done = self._lost(self._clock(), surely=False), self._clock()
        return done, self._put_tile("decode.chunk", now, done, self._frame, 1, lost)

    def _receive(self, stream: Stream, frame: int, now: int) -> tuple[int, int]:
        """Take in chunks until `frame` of the utterance can be decoded; returns the time then, and what it took, ns."""
        clock, lane, recogniser = self._clock, self._lane, self.recogniser
        wall_ns = 0
        while stream.decodable(recogniser.scorer) <= frame:
            while True:
                # A comparison waits for the end of the utterance, and its requests are not taken until then.
                held = self._held or self._control.other is not None
                due = stream.due(now, 0.0 if held else recogniser.config.pace)
                idle_ns = 0 if self._stopping else self._pace.wait(now, due, self._frame)
                if not idle_ns:
                    break
                now += idle_ns
                self.result.idle_ns += idle_ns
                self._follow_requests()
            if self._measurements is not None:
                self._measurements.begin()
            pieces = stream.take(now)
            record(pieces, recogniser.frontend.stage_ids, self._frame - frame, lane)
            frames = max(stream.decodable(recogniser.scorer) - frame, 1)
            lost = self._lost(clock(), surely=True)
            stream.chunks[-1].other_ns += lost.other_ns
            end = clock()
            wall_ns += self._put_tile("decode.chunk", now, end, self._frame, frames, lost)
            now = end
        return now, wall_ns

    def _utterance(self, item: Item) -> None:
        clock, lane, recogniser, control = self._clock, self._lane, self.recogniser, self._control
        begun = self._begin(item)
        utterance, wall_ns, stream, heard = begun.number, begun.wall_ns, begun.stream, begun.heard
        first, n_frames = self._frame, len(begun.features)
        segment, final, complete = first, list[Word](), True  # where a stream's segment began, and the words before
        self._epochs = [self._epoch]
        self.configs_met = []
        recogniser.scorer.reset()
        recogniser.search.start(first)
        context, padded = (0, 0), begun.features
        self.features = (padded,)
        self._pace.begin(first)
        partial_due = clock() + PARTIAL_EVERY_NS
        if self._measurements is not None:
            self._measurements.begin()
        scores_ahead = recogniser.scores_ahead
        block_start_ns = clock()
        while True:
            if stream is not None:
                block_start_ns, took_ns = self._receive(stream, self._frame - first, block_start_ns)
                wall_ns += took_ns
            if control.has_requests or self._live.waiting:
                self._follow_requests()
            begin = at = self._frame - first
            count = min(recogniser.block, n_frames - begin)
            if stream is not None:
                ready = stream.decodable(recogniser.scorer)
                count = min(count, ready - begin)
            if heard is not None:
                each, context = recogniser.scorer.subsampling, recogniser.scorer.context
                if isinstance(heard, KaldiStream) and recogniser.frontend.adapts:
                    decoded = (self._frame - segment) // each
                    ahead = begin + count + context[1]
                    block_start_ns, took_ns = self._adapt(heard, begin, ahead, decoded, block_start_ns)
                    wall_ns += took_ns
                at, padded = 0, heard.rows(begin, count, context)
            elif context != recogniser.scorer.context:
                # At the first block, and where another net takes over.
                context = recogniser.scorer.context
                padded = with_context(begun.features, context)
                self.features = begun.features, padded
            scores = self._blocks.decode(recogniser, padded, at, count, self._frame, scores_ahead)
            done = begin + count == n_frames
            last = done or self._stopping
            wants_partial = not last and block_start_ns >= partial_due
            if stream is not None:
                wants_partial = not last and begin + count == ready
            elif wants_partial and self._measurements is not None:
                # The search goes on for a partial result; a block that is to be done again comes first.
                wants_partial = not self._measurements.chosen
            words = []
            if last:
                words = [*final, *recogniser.search.finish(lane)]
            elif wants_partial:
                partial_ns = clock()
                words = [*final, *recogniser.search.partial(lane)]
            if wants_partial:
                # The search has gone on from where the block ended: it is no longer to be done again.
                scores = None
                self._journal.utterance_partial(utterance, _text(words), words)
                took_ns = clock() - partial_ns
                partial_due = block_start_ns + max(PARTIAL_EVERY_NS, int(took_ns / PARTIAL_SHARE))
            if stream is not None and (last or wants_partial):
                self._show(item, stream, words)
                if rule := 0 if last else self._endpoint(self._frame + count - segment):
                    words = [*final, *recogniser.search.finish(lane)]
                    self._show(item, stream, words)
                    stream.end_segment(rule)
                    final, complete = words, complete and recogniser.search.complete
                    segment = self._frame + count
                    recogniser.search.start(segment)
                    if isinstance(heard, KaldiStream):
                        heard.begin_segment(segment - first)
            # Asked by the time now: what held a block up for long belongs to it.
            lost = self._lost(clock(), surely=last or stream is not None)
            if stream is not None:
                stream.chunks[-1].other_ns += lost.other_ns
            now = clock()
            took_ns = self._put_tile("decode.block", block_start_ns, now, self._frame, count, lost)
            if recogniser.config.search.adaptive_beam:
                self._adapt_beam(now, count, took_ns)
            wall_ns += took_ns
            self._frame += count
            if recogniser.devices:
                for notice in recogniser.take_notices():
                    self._journal.marker("error", notice, self._frame)
            control.frame = self._frame
            block_ns, block_start_ns = now - block_start_ns, now
            if last:
                break
            if self._measurements is not None:
                block_start_ns = self._measurements.between(recogniser, scores, now, self._frame - count, block_ns)
            if recogniser.config.pace > 0 and stream is None:
                idle_ns = self._pace.keep(block_start_ns, self._frame, recogniser.config.pace)
                block_start_ns += idle_ns
                self.result.idle_ns += idle_ns
                if self._measurements is not None:
                    self._measurements.begin()
        self.features = ()
        audio_s = begun.duration_s * (self._frame - first) / n_frames
        if stream is not None:
            stream.end_segment(0)
            self._journal.meta(f"{STREAM}/{utterance}", stream.as_dict())
        self._end_utterance(item, begun, words, wall_ns, audio_s, done, complete)

    def _show(self, item: Item, stream: Stream, words: list[Word]) -> None:
        if stream.differs(words):
            self._control.show(item.name, _text(words), len(stream.chunks) - 1)
        stream.show(self._clock(), words)

    def _endpoint(self, frames: int) -> int:
        """The rule that ends a segment of a stream after `frames` frames; 0: none does."""
        config, search = self.recogniser.config, self.recogniser.search
        if not (config.stream.endpoint and isinstance(search, Viterbi)) or config.search.lattice:
            return 0
        return endpoint(config.stream, search, frames)

    def _lost(self, now: int, *, surely: bool) -> Lost:
        return NOTHING if self._measurements is None else self._measurements.lost(now, surely=surely)

    def _put_tile(self, name: str, start: int, end: int, first: int, frames: int, lost: Lost) -> int:
        """Record a tile; returns its wall time, ns: without that in which the process stood still."""
        other_ns, throttled_ns, stopped_ns = lost
        stopped_ms = min(stopped_ns, end - start) // MS
        self._lane.put(self._stage[name], start, end, first, frames, other_ns, throttled_ns, stopped_ms)
        if stopped_ms:
            self._stopped_ns += stopped_ms * MS
            self.result.stopped_ns += stopped_ms * MS
            self._journal.marker("note", f"The process stood still for {stopped_ms / 1e3:.1f} s", first)
        return end - start - stopped_ms * MS

    def _adapt_beam(self, now: int, frames: int, spent_ns: int) -> None:
        """Adapt the beam to the time of the last block."""
        search = self.recogniser.search
        cutoff = search.cutoff if math.isfinite(search.cutoff) else None
        self._journal.sample(now, {"search.beam": search.beam, "search.cutoff": cutoff})
        search.spent(frames, spent_ns)

    def _end_utterance(
        self, item: Item, begun: _Begun, words: list[Word], wall_ns: int, audio_s: float, done: bool, before: bool
    ) -> None:
        """`before`: whether the segments before the last are sentences of the grammar."""
        start, utterance, search = self._clock(), begun.number, self.recogniser.search
        hypothesis = _text(words)
        epochs = list(self._epochs)
        errors = reference_words = complete = None
        if done and self.recogniser.config.graph.grammar:
            complete = search.complete and before
        # An utterance decoded under more than one configuration says nothing about either.
        count = wer.scored(item.reference, hypothesis) if done and len(epochs) == 1 else None
        if count is not None:
            errors, reference_words = count.errors, count.reference_words
        if done:
            self._journal.utterance_done(
                utterance, hypothesis, words, wall_ns, epochs, errors, reference_words, complete
            )
        else:
            self._journal.utterance_partial(utterance, hypothesis, words)
        if search.lost:
            text = f"{item.name}: no token survived; the hypothesis ends there."
            self._journal.marker("error", text, self._frame)
        alternatives = None
        notes = begun.notes
        if self._stopped_ns:
            notes = (*notes, f"stood still for {self._stopped_ns / 1e9:.1f} s, which do not count")
            self._journal.utterance_notes(utterance, notes)
        if done and self.recogniser.config.search.lattice:
            if narrowed := search.narrowed:
                notes = (*notes, narrowed)
                self._journal.marker("error", f"{item.name}: {narrowed}.", self._frame)
            alternatives = {
                "nbest": [{"hypothesis": " ".join(h.words), "cost": h.cost} for h in search.nbest],
                "confidences": search.confidences,
            }
            self._journal.meta(f"alternatives/{utterance}", alternatives)
        self.result.wall_ns += wall_ns
        self.result.utterances.append(
            Decoded(
                item.name,
                audio_s,
                wall_ns,
                hypothesis,
                item.reference,
                errors,
                reference_words,
                done,
                tuple(epochs),
                complete,
                notes,
                alternatives,
                str(item.path),
                None
                if begun.stream is None
                else {**begun.stream.as_dict(), "words": [(word, at - begun.first, n) for word, at, n in words]},
            )
        )
        self._lane.put(self._stage["setup.errors"], start, self._clock(), self._frame, 0)

    def _follow_requests(self) -> None:
        """Take the requests since the last block; apply those that can act now, as one new configuration."""
        if self._held or not (self._control.has_requests or self._live.waiting):
            return
        asked = []
        for request in self._control.take():
            if isinstance(request, Mark):
                self._journal.marker("user", request.text, request.asked_frame)
            else:
                marker = self._journal.marker("option", request.text, request.asked_frame, request.key, request.value)
                asked.append(PendingChange(request, marker))
        before = self.recogniser.config
        due = self._live.due(before, asked, self.recogniser.scorer)
        for note in self._live.take_notes():
            self._journal.marker("note", note, self._frame)
        for sentence in self._live.take_failures():
            self._journal.marker("error", sentence, self._frame)
            self._control.config = self._live.wanted(before)
        if due is None:
            return
        self.recogniser.configure(due.config, due.prepared)
        if self._measurements is not None:
            self._measurements.changed()
        self._begin_epoch(due.config, self._newest + 1)
        self._epochs.append(self._epoch)
        self.configs_met.append(due.config)
        if due.config.pace != before.pace:
            self._pace.forget()
            self._pace.begin(self._frame)
        for one in due.changes:
            self._journal.marker_applied(one.marker, self._frame, self._epoch)

    def _begin_epoch(self, config: Config, epoch: int) -> None:
        """Note the configuration and its laws."""
        self._lane.epoch = self._epoch = epoch
        self._newest = max(self._newest, epoch)
        for name, cost in self.recogniser.costs().items():
            self._recorder.cost(self._recorder.stage_id(name), self._epoch, cost)
        kept = settings.kept(config)
        self._journal.config(self._epoch, self._frame, settings.to_dict(kept))
        if config.model == "dnn" and kept.dnn.net not in self._nets:
            # What a reader would otherwise have to look up in a file that is named there.
            self._nets[kept.dnn.net] = {"context": list(self.recogniser.scorer.context)}
            self._journal.meta("nets", self._nets)


def _text(words: list[Word]) -> str:
    return " ".join(word for word, _, _ in words)
