"""The decode loop: utterance by utterance, block by block, with every nanosecond of wall time accounted for.

Spans of group `decode` tile the time spent on decoding without a gap: one for what is done once for an
utterance (reading audio, features, spread over all its frames) and one for each block. What their
leaves (front end, scoring, search) do not cover is overhead. Waiting for the pace is `idle`; what is
done for the person and not for the recogniser (waveform, word errors) is `setup`. Both lie outside.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pipelines import audio, wer
from pipelines import config as settings
from pipelines.config import Config
from pipelines.control import Control, Mark
from pipelines.playlist import Item
from pipelines.recogniser import Recogniser
from pipelines.unrecorded import Unrecorded
from profiler.session.writer import SessionWriter
from profiler.spans import Lane, NullLane, Recorder

FRAME_S = 0.01  # hop of the front end
PARTIAL_EVERY_NS = 100_000_000  # how often a partial result is fetched for the person watching

Word = tuple[str, int, int]  # word, first frame of the run, frames


@dataclass
class Decoded:
    """What came of one utterance. `errors` is None where nothing can be said about word errors."""

    name: str
    audio_s: float
    wall_ns: int
    hypothesis: str
    reference: str | None
    errors: int | None
    reference_words: int | None
    complete: bool


@dataclass
class Result:
    """What came of a run."""

    utterances: list[Decoded] = field(default_factory=list)
    wall_ns: int = 0
    idle_ns: int = 0
    refused: list[str] = field(default_factory=list)  # a sentence for each file that cannot be read


class Decoder:
    """Decodes a playlist with one recogniser, following a person's requests at block boundaries."""

    def __init__(
        self,
        recogniser: Recogniser,
        recorder: Recorder,
        lane: Lane | NullLane,
        journal: SessionWriter | Unrecorded,
        control: Control,
    ) -> None:
        self.recogniser = recogniser
        self.result = Result()
        self._recorder, self._lane, self._journal = recorder, lane, journal
        self._control = control
        self._clock = recorder.clock
        self._epoch = 0
        self._epochs: list[int] = []  # of the utterance being decoded, in order
        self._frame = 0  # frames decoded in this run, over all utterances
        self._pace_start: tuple[int, int] | None = None
        recogniser.register(recorder)
        self._stage = {
            name: recorder.stage(name, group)
            for name, group in (
                ("frontend.audio", "frontend"),
                ("decode.utterance", "prepare"),
                ("decode.block", "decode"),
                ("idle.pace", "idle"),
                ("setup.waveform", "setup"),
                ("setup.errors", "setup"),
            )
        }
        self._begin_epoch(recogniser.config, 0)

    @property
    def frame(self) -> int:
        """Frames decoded so far, over all utterances."""
        return self._frame

    @property
    def _stopping(self) -> bool:
        """Somebody asked to stop, or there is no place left to record to."""
        return self._control.stopping or self._journal.failed is not None

    def switch(self, recogniser: Recogniser, epoch: int) -> None:
        """Decode the utterances that follow with `recogniser` and its settings, as `epoch`.

        Between utterances only. An epoch may come back; all that carry its number ran alike.
        """
        self.recogniser = recogniser
        recogniser.register(self._recorder)
        self._begin_epoch(recogniser.config, epoch)

    def run(self, items: Iterable[Item]) -> Result:
        """Decode `items` until they end or somebody asks to stop."""
        for item in items:
            if self._stopping:
                break
            try:
                self._utterance(item)
            except audio.AudioError as error:
                self.result.refused.append(str(error))
                self._journal.marker("error", str(error), self._frame)
        return self.result

    def _utterance(self, item: Item) -> None:
        clock, lane, stage, recogniser = self._clock, self._lane, self._stage, self.recogniser
        first = self._frame
        start = clock()
        sound = audio.load(item.path)
        n_frames = recogniser.frontend.n_frames(len(sound.samples))
        lane.put(stage["frontend.audio"], start, clock(), first, n_frames)
        features = recogniser.frontend.features(sound.samples, first, lane)
        end = clock()
        lane.put(stage["decode.utterance"], start, end, first, n_frames)
        wall_ns = end - start

        peaks = audio.peaks(sound.samples, n_frames)
        utterance = self._journal.utterance(
            item.name,
            str(item.path),
            first,
            n_frames,
            sound.duration_s,
            item.reference,
            peaks,
        )
        lane.put(stage["setup.waveform"], end, clock(), first, 0)

        self._epochs = [self._epoch]
        recogniser.scorer.reset()
        recogniser.search.start(first)
        if self._pace_start is None:
            self._pace_start = (clock(), first)
        partial_due = clock() + PARTIAL_EVERY_NS
        tile = clock()
        while True:
            self._follow_requests()
            begin = self._frame - first
            count = min(recogniser.config.block, n_frames - begin)
            scores = recogniser.scorer.score(features[begin : begin + count], self._frame, lane)
            recogniser.search.advance(scores, self._frame, lane)
            complete = begin + count == n_frames
            last = complete or self._stopping
            words = []
            if last:
                words = recogniser.search.finish(lane)
            elif tile >= partial_due:
                words = recogniser.search.partial(lane)
                self._journal.utterance_partial(utterance, _text(words), words)
                partial_due = tile + PARTIAL_EVERY_NS
            now = clock()
            lane.put(stage["decode.block"], tile, now, self._frame, count)
            wall_ns += now - tile
            self._frame += count
            self._control.frame = self._frame
            tile = now
            if last:
                break
            if recogniser.config.pace > 0:
                tile = self._keep_pace(now)
        self._done(item, utterance, words, wall_ns, first, complete)

    def _done(
        self,
        item: Item,
        utterance: int,
        words: list[Word],
        wall_ns: int,
        first: int,
        complete: bool,
    ) -> None:
        start = self._clock()
        hypothesis = _text(words)
        epochs = list(self._epochs)
        errors = reference_words = None
        # An utterance decoded under more than one configuration says nothing about either.
        if complete and item.reference and len(epochs) == 1:
            count = wer.count(item.reference, hypothesis)
            errors, reference_words = count.errors, count.reference_words
        if complete:
            self._journal.utterance_done(
                utterance, hypothesis, words, wall_ns, epochs, errors, reference_words
            )
        else:
            self._journal.utterance_partial(utterance, hypothesis, words)
        self.result.wall_ns += wall_ns
        self.result.utterances.append(
            Decoded(
                item.name,
                (self._frame - first) * FRAME_S,
                wall_ns,
                hypothesis,
                item.reference,
                errors,
                reference_words,
                complete,
            )
        )
        self._lane.put(self._stage["setup.errors"], start, self._clock(), self._frame, 0)

    def _follow_requests(self) -> None:
        """Apply what was asked for since the last block, as one new configuration."""
        changes = []
        for request in self._control.take():
            if isinstance(request, Mark):
                self._journal.marker("user", request.text, request.asked_frame)
            else:
                changes.append(request)
        if not changes:
            return
        before = config = self.recogniser.config
        for change in changes:
            config = settings.replace(config, change.key, change.value)
        self.recogniser.configure(config)
        self._begin_epoch(config, self._epoch + 1)
        self._epochs.append(self._epoch)
        if config.pace != before.pace:
            self._pace_start = (self._clock(), self._frame)
        for change in changes:
            text = f"{settings.option(change.key).title}: {_shown(change.value)}"
            marker = self._journal.marker(
                "option", text, change.asked_frame, change.key, change.value
            )
            self._journal.marker_applied(marker, self._frame, self._epoch)

    def _begin_epoch(self, config: Config, epoch: int) -> None:
        self._lane.epoch = self._epoch = epoch
        for name, cost in self.recogniser.costs().items():
            self._recorder.cost(self._recorder.stage_id(name), self._epoch, cost)
        self._journal.config(self._epoch, self._frame, settings.to_dict(config))

    def _keep_pace(self, now: int) -> int:
        """Wait until the audio decoded so far would have been spoken at the wished pace."""
        assert self._pace_start is not None
        start, start_frame = self._pace_start
        spoken_s = (self._frame - start_frame) * FRAME_S / self.recogniser.config.pace
        deadline = start + int(spoken_s * 1e9)
        if deadline <= now:
            return now
        self._control.sleep_until(deadline)
        awake = self._clock()
        self._lane.put(self._stage["idle.pace"], now, awake, self._frame, 0)
        self.result.idle_ns += awake - now
        return awake


def _text(words: list[Word]) -> str:
    return " ".join(word for word, _, _ in words)


def _shown(value: settings.Value) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)
