"""The decode loop: utterance by utterance, block by block, with every nanosecond of wall time accounted for.

Spans of group `decode` tile the decoding time without a gap: one for the work done once per utterance (reading,
features) and one per block. What their leaves (front end, scoring, search) do not cover is overhead: the loop's own
Python. Outside the wall time lie waiting for the pace (`idle`), the waveform and word errors (`setup`), and time in
which the process stood still.
"""

import math
from collections.abc import Iterable

import msgspec

from pipelines import config as settings
from pipelines.audio import loading as audio
from pipelines.audio import word_errors as wer
from pipelines.config import Config
from pipelines.frontend.mfcc import record
from pipelines.run import compiling
from pipelines.run.blocks import Blocks
from pipelines.run.control import Control, Mark
from pipelines.run.live_changes import LiveChanges, PendingChange
from pipelines.run.measurements import RunMeasurements
from pipelines.run.playlist import Item
from pipelines.run.recogniser import Recogniser
from pipelines.run.request import Decoded, RunResult
from pipelines.run.stream import ArrivingFeatures, Stream, WholeFeatures
from pipelines.run.tiles import BLOCK, CHUNK, UTTERANCE, Pace, Tiles
from pipelines.run.transcript import Begun, Transcript, text_of
from profiler.arrays import Array
from profiler.files import paths
from profiler.session.facts import STREAM
from profiler.session.writer import Journal
from profiler.spans import Lane, NullLane, Recorder


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
        self.result = RunResult()
        self._recorder, self._lane, self._journal = recorder, lane, journal
        self._tiles = Tiles(recorder, lane, journal, self.result, measurements)
        self._control = control
        self._clock = recorder.clock
        self.epoch = self._newest = 0
        self.held = False
        """Whether requests wait."""
        self.configs_met: list[Config] = []
        """Settings that began to act while the last utterance was being decoded, in order."""
        self._source: WholeFeatures | ArrivingFeatures | None = None
        self._epochs: list[int] = []  # of the utterance being decoded, in order
        self.frame = 0
        """Frames decoded in this run, over all utterances."""
        self._live = LiveChanges(compiling.beside)
        self._nets: dict[str, dict[str, list[int]]] = {}  # those that have scored, by name
        recogniser.register(recorder)
        self._audio = recorder.stage("frontend.audio", "frontend")
        self._waveform = recorder.stage("setup.waveform", "setup")
        self._errors = recorder.stage("setup.errors", "setup")
        self._blocks = Blocks(lane, recorder.clock)
        self._pace = Pace(recorder, lane, control, self._tiles)
        self._begin_epoch(recogniser.config, 0)

    @property
    def features(self) -> tuple[Array, ...]:
        """Of the utterance being decoded, f32 [frames, dim]: those of the front end, and with the scorer's context."""
        return () if self._source is None else self._source.features

    @property
    def changing(self) -> bool:
        return self._live.waiting

    def new_epochs(self, count: int) -> range:
        """Numbers for `switch` that no configuration has had yet or will be given."""
        first, self._newest = self._newest + 1, self._newest + count
        return range(first, first + count)

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

    def run(self, items: Iterable[Item]) -> RunResult:
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
                        self._journal.marker("error", str(error), self.frame)
        finally:
            self._live.cancel(wait=True)
        return self.result

    def _utterance(self, item: Item) -> None:
        """Decode one utterance: block by block features, scores, words."""
        transcript = self._begin(item)
        begun, measurements = transcript.begun, self._measurements
        source = begun.source
        while True:
            at = self.frame - begun.first
            if source.stream is not None:
                self._receive(source.stream, at)
            self._follow_requests()
            recogniser = self.recogniser
            count = source.next_count(recogniser, at)
            if isinstance(source, ArrivingFeatures) and source.adapts(recogniser):
                segment = transcript.segment - begun.first
                source.adapt(recogniser, at, count, segment, self._lane, self.frame)
                self._tiles.end(CHUNK, self.frame, 1, surely=False)
            rows = source.rows(recogniser, at, count)

            scores = self._blocks.decode(recogniser, rows, self.frame)
            begun.done = at + count == source.n_frames
            last = begun.done or self._stopping
            replayed = measurements is not None and measurements.replay.chosen
            reached = self.frame + count
            if transcript.follow(recogniser, self._tiles.at, reached, last=last, replayed=replayed):
                scores = None

            began = self._tiles.at
            self._end_block(count, source.stream, last)
            if last:
                break
            if measurements is not None:
                now = self._tiles.at
                self._tiles.at = measurements.between(recogniser, scores, now, self.frame - count, now - began)
            if recogniser.config.pace > 0 and source.stream is None:
                self._pace.keep(self.frame, recogniser.config.pace)
        self._source = None
        self._end_utterance(transcript)

    def _begin(self, item: Item) -> Transcript:
        """Read an utterance, and have its features computed as far as they do not follow the sound or the search."""
        lane, recogniser, first = self._lane, self.recogniser, self.frame
        frontend = recogniser.frontend
        if self._measurements is not None:
            self._measurements.replay.forget_search()
        self._tiles.own()
        self._tiles.begin()
        sound = audio.load(item.path, item.part, frontend.parameters.target)
        n_frames = frontend.n_frames(len(sound.samples))
        lane.put(self._audio, self._tiles.at, self._clock(), first, n_frames)
        streams = recogniser.config.stream.chunk_ms > 0
        source: WholeFeatures | ArrivingFeatures | None = None
        if not streams and frontend.adapts:
            heard = frontend.start(sound.samples)
            record(heard.advance(len(sound.samples)), frontend.stage_ids, first, lane)
            source = ArrivingFeatures(heard)
        elif not streams:
            source = WholeFeatures(frontend.features(sound.samples, first, lane))
        self._tiles.end(UTTERANCE, first, n_frames, surely=True)
        notes = (*item.notes, *sound.notes)
        path, part = paths.kept(str(item.path)), msgspec.to_builtins(item.part)
        peaks = audio.peaks(sound.samples, n_frames, sound.sample_rate)
        number = self._journal.utterance(
            item.name, path, first, n_frames, sound.duration_s, item.reference, peaks, notes, part
        )
        now = self._clock()
        lane.put(self._waveform, self._tiles.at, now, first, 0)
        if source is None:
            stream = Stream(frontend, sound.samples, sound.sample_rate, recogniser.config.stream, now)
            source = ArrivingFeatures(stream.utterance, stream)
        self._source = source
        self._epochs, self.configs_met = [self.epoch], []
        recogniser.scorer.reset()
        recogniser.search.start(first)
        self._pace.begin(first)
        begun = Begun(item, number, first, source, sound.duration_s, notes)
        transcript = Transcript(begun, self._clock, lane, self._journal, self._control)
        self._tiles.own()
        self._tiles.at = self._clock()
        return transcript

    def _receive(self, stream: Stream, frame: int) -> None:
        """Take in chunks until `frame` of the utterance can be decoded."""
        lane, recogniser, tiles = self._lane, self.recogniser, self._tiles
        while stream.decodable(recogniser.scorer) <= frame:
            while True:
                # A comparison waits for the end of the utterance, and its requests are not taken until then.
                held = self.held or self._control.other is not None
                due = stream.due(tiles.at, 0.0 if held else recogniser.config.pace)
                if self._stopping or not self._pace.wait(due, self.frame):
                    break
                self._follow_requests()
            record(stream.take(tiles.at), recogniser.frontend.stage_ids, self.frame - frame, lane)
            frames = max(stream.decodable(recogniser.scorer) - frame, 1)
            _, lost = tiles.end(CHUNK, self.frame, frames, surely=True)
            stream.chunks[-1].other_ns += lost.other_ns

    def _end_block(self, count: int, stream: Stream | None, last: bool) -> None:
        """A block of `count` frames has been decoded: record it, and what the recogniser has to say of it."""
        recogniser = self.recogniser
        took_ns, lost = self._tiles.end(BLOCK, self.frame, count, surely=last or stream is not None)
        if stream is not None:
            stream.chunks[-1].other_ns += lost.other_ns
        if recogniser.config.search.adaptive_beam:
            search = recogniser.search
            cutoff = search.cutoff if math.isfinite(search.cutoff) else None
            self._journal.sample(self._tiles.at, {"search.beam": search.beam, "search.cutoff": cutoff})
            search.spent(count, took_ns)
        self.frame += count
        if recogniser.devices:
            for notice in recogniser.take_notices():
                self._journal.marker("error", notice, self.frame)
        self._control.frame = self.frame

    def _end_utterance(self, transcript: Transcript) -> None:
        """Judge the words of an utterance, and hand over what came of it."""
        start, begun, journal, search = self._clock(), transcript.begun, self._journal, self.recogniser.search
        item, number, done, notes, words = begun.item, begun.number, begun.done, begun.notes, transcript.words
        stream, config, wall_ns = begun.source.stream, self.recogniser.config, self._tiles.wall_ns
        hypothesis, epochs = text_of(words), list(self._epochs)
        heard: dict[str, object] | None = None
        if stream is not None:
            stream.end_segment(0)
            heard = stream.as_dict()
            journal.meta(f"{STREAM}/{number}", heard)
            heard = {**heard, "words": [(word, at - begun.first, n) for word, at, n in words]}
        complete = search.complete and transcript.complete if done and config.graph.grammar else None
        # An utterance decoded under more than one configuration says nothing about either.
        count = wer.scored(item.reference, hypothesis) if done and len(epochs) == 1 else None
        errors, reference_words = (None, None) if count is None else (count.errors, count.reference_words)
        if done:
            journal.utterance_done(number, hypothesis, words, wall_ns, epochs, errors, reference_words, complete)
        else:
            journal.utterance_partial(number, hypothesis, words)
        if search.lost:
            journal.marker("error", f"{item.name}: no token survived; the hypothesis ends there.", self.frame)
        if self._tiles.stopped_ns:
            notes = (*notes, f"stood still for {self._tiles.stopped_ns / 1e9:.1f} s, which do not count")
            journal.utterance_notes(number, notes)
        alternatives: dict[str, object] | None = None
        if done and config.search.lattice:
            if narrowed := search.narrowed:
                notes = (*notes, narrowed)
                journal.marker("error", f"{item.name}: {narrowed}.", self.frame)
            alternatives = {
                "nbest": [{"hypothesis": " ".join(h.words), "cost": h.cost} for h in search.nbest],
                "confidences": search.confidences,
            }
            journal.meta(f"alternatives/{number}", alternatives)
        audio_s = begun.duration_s * (self.frame - begun.first) / begun.source.n_frames
        self.result.wall_ns += wall_ns
        self.result.utterances.append(
            Decoded(
                item.name, audio_s, wall_ns, hypothesis, item.reference, errors, reference_words, done, tuple(epochs),
                complete, notes, alternatives, str(item.path), heard,
            )
        )  # fmt: skip
        self._lane.put(self._errors, start, self._clock(), self.frame, 0)

    def _follow_requests(self) -> None:
        """Take the requests since the last block; apply those that can act now, as one new configuration."""
        if self.held or not (self._control.has_requests or self._live.waiting):
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
        for kind, text in self._live.take_messages():
            self._journal.marker(kind, text, self.frame)
            if kind == "error":
                self._control.config = self._live.wanted(before)
        if due is None:
            return
        self.recogniser.configure(due.config, due.prepared)
        if self._measurements is not None:
            self._measurements.changed()
        self._begin_epoch(due.config, self._newest + 1)
        self._epochs.append(self.epoch)
        self.configs_met.append(due.config)
        if due.config.pace != before.pace:
            self._pace.forget()
            self._pace.begin(self.frame)
        for one in due.changes:
            self._journal.marker_applied(one.marker, self.frame, self.epoch)

    def _begin_epoch(self, config: Config, epoch: int) -> None:
        self._lane.epoch = self.epoch = epoch
        self._newest = max(self._newest, epoch)
        for name, cost in self.recogniser.costs().items():
            self._recorder.cost(self._recorder.stage_id(name), self.epoch, cost)
        kept = settings.kept(config)
        self._journal.config(self.epoch, self.frame, settings.to_dict(kept))
        if config.model == "dnn" and kept.dnn.net not in self._nets:
            # What a reader would otherwise have to look up in a file that is named there.
            self._nets[kept.dnn.net] = {"context": list(self.recogniser.scorer.context)}
            self._journal.meta("nets", self._nets)
