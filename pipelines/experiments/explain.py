"""What a stage's time consists of, found by doing it again: hot, cold, placed elsewhere, reshaped (`replays`).

The run that is compared with decodes the same audio with nothing in between, in turns with the replays.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from pipelines.audio import loading as audio
from pipelines.config import Config
from pipelines.experiments import replays
from pipelines.experiments.rerun import ArmRecording, Piece, Stretch
from pipelines.run.blocks import Blocks
from pipelines.run.hot_replay import LIMIT
from pipelines.run.recogniser import Progress, Recogniser, build
from pipelines.run.stream import Rows
from pipelines.scoring import MAX_FRAMES, peaks, with_context
from profiler.analysis.attribution import REPLAYED
from profiler.analysis.breakdown import StageRow, breakdown
from profiler.analysis.categories import NOT_ATTRIBUTED
from profiler.analysis.stage_sums import OTHER_COUNT
from profiler.analysis.verdict import MEMORY_PARTS, TOLD_FROM
from profiler.arrays import Array
from profiler.clock import FRAME_S
from profiler.errors import BadInput, Cancelled
from profiler.machine.roofs import calibration
from profiler.machine.roofs.table import RoofTable
from profiler.machine.run_queue import RunQueue
from profiler.recording.drained_lane import DrainedLane
from profiler.spans import SPAN, NullLane, Recorder

ROUNDS: Final = 5
MOST_ROUNDS: Final = 15  # With those that say nothing, on a busy machine
LEAST_OWN: Final = 0.25
"""Part of its time that a block must have had the processor: what remains after taking more off is mostly error."""

UNIT_FRAMES: Final = 100  # Frames by which a time per frame is multiplied, because times are whole nanoseconds
MOST_BLOCKS: Final = 48
"""Blocks of a round that are replayed, evenly spread: pushing everything out of the caches takes 15 ms each time."""


class Variant(NamedTuple):
    """The stage's ns per frame in one way, `shown`: median of the rounds, and the ends of their middle half."""

    name: str
    ns: float
    low: float
    high: float
    shown: str = ""


@dataclass(frozen=True)
class Explanation:
    """What came of it. `row`: the stage in the run of now, with its parts. `ways`: by what was done.

    `waiting`: which part of its time the stage waited for caches and memory, by replay: (least, likely, most).
    """

    row: StageRow
    ways: tuple[Variant, ...]
    waiting: tuple[float, float, float]
    rounds: int
    blocks: int

    @property
    def conclusion(self) -> str:
        """Summarise the replays, and whether the cost law's counts fit them, in one sentence."""
        low, likely, high = self.waiting
        text = f"Replayed hot, it takes {1 - likely:.0%} of its time ({1 - high:.0%} to {1 - low:.0%})"
        parts = self.row.parts
        if parts is None:
            return f"{text}; it has no cost law to say what it waits for."
        beyond, memory = parts.share(NOT_ATTRIBUTED), sum(map(parts.share, MEMORY_PARTS))
        if beyond >= TOLD_FROM:
            return f"{text}; {beyond:.0%} of its time fits neither that nor what its cost law counts."
        return f"{text}; memory takes {memory:.0%}, part of which is also there when its data are hot."


def explain(
    config: Config, stage: str, stretch: Stretch, progress: Progress, cancelled: Callable[[], bool]
) -> Explanation:
    """Run `stretch` with `config` and explain `stage` of scoring or search.

    BadInput when the stage does not run or cannot be replayed; Cancelled; and what `recogniser.build` raises.
    """
    recogniser = build(config, Recorder(), NullLane(), progress, cancelled)
    recorder = Recorder()
    recogniser.register(recorder)
    kind = replays.KINDS[replays.group_of(stage, recorder)](recogniser, recorder.stage_id(stage))
    frontend = recogniser.frontend
    sounds = [audio.load(item.path, item.part, frontend.parameters.target) for item in stretch.items]
    padded = [with_context(frontend.features(sound.samples), recogniser.scorer.context) for sound in sounds]
    kind.refuse(padded[0][: 1 + sum(recogniser.scorer.context)])

    def measuring(what: str, share: float | None) -> None:
        progress(f"measuring the machine: {what}", share)

    table = calibration.load_or_measure(config.threads, measuring, cancelled, kernels=peaks.of(config))
    kind.prepare(recorder, progress, cancelled)
    again = _Again(recogniser, recorder, padded, stage, kind)
    with threadpool_limits(config.threads):
        for number in range(-1, MOST_ROUNDS):
            if cancelled():
                raise Cancelled
            progress(f"replaying {stage}", again.rounds / ROUNDS)
            again.replay(counts=again.decode(counts=number >= 0))
            if again.rounds == ROUNDS:
                break
    return again.explanation(table)


def _middle(values: Sequence[float]) -> tuple[float, float, float]:
    """Median, and the ends of the middle half: a neighbour's burst spoils a round or two."""
    low, mid, high = np.percentile(values, [25, 50, 75])
    return float(mid), float(low), float(high)


class _Again:
    """One recogniser that decodes the same features over and over, and does blocks of them again."""

    def __init__(
        self, recogniser: Recogniser, recorder: Recorder, padded: Sequence[Array], stage: str, replayed: replays.Replays
    ) -> None:
        """`padded`: features of each utterance with their context."""
        self._recogniser, self._stage_name, self._replays = recogniser, stage, replayed
        self._recorder, self._stage = recorder, recorder.stage_id(stage)
        self._tile = recorder.stage("decode.block", "decode", (OTHER_COUNT,))
        for name, cost in recogniser.decoding_costs().items():
            recorder.cost(recorder.stage_id(name), 0, cost)
        self._lane = recorder.lane("decode", decode=True, make=DrainedLane)
        self._decoded, self._silent = Blocks(self._lane, recorder.clock), Blocks(NullLane(), recorder.clock)
        self._padded, self._beyond = padded, sum(recogniser.scorer.context)
        self._lengths = [len(each) - self._beyond for each in padded]
        each = recogniser.scorer.subsampling
        self._block = min(recogniser.block, MAX_FRAMES // each * each)
        places = [(u, at) for u, n in enumerate(self._lengths) for at in range(0, n - self._block, self._block)]
        if not places:
            raise BadInput(f"The audio is shorter than a block of {self._block} frames.")
        step = -(-len(places) // MOST_BLOCKS)
        # Neither the first block, which finds everything cold, nor always the same of a rhythm.
        self._chosen = set(places[step // 2 :: step]) or set(places)
        self._spans: list[Array] = []
        self._pieces: list[Piece] = []
        self._ns: defaultdict[str, list[float]] = defaultdict(list)

    @property
    def rounds(self) -> int:
        return len(self._ns[replays.RUN])

    def decode(self, *, counts: bool) -> bool:
        """The audio as a run decodes it; `counts`: whether this round is kept if it says something.

        Returns whether it was: nothing is known of a round whose chosen blocks were other programs' time mostly.
        """
        taken, frames = 0.0, 0
        clock, lane, search = self._recorder.clock, self._lane, self._recogniser.search
        with RunQueue() as queue:
            for utterance, at, n in self._blocks():
                first = sum(piece.n_frames for piece in self._pieces) + at
                if at == 0:
                    search.start(first)
                    queue.waited_ns()
                start, recorded = clock(), lane.recorded
                self._decoded.decode(self._recogniser, Rows(self._padded[utterance], at, n), first, ahead=False)
                after = lane.recorded
                end, other = clock(), min(queue.waited_ns(), LIMIT)
                lane.put(self._tile, start, end, first, n, other)
                own = 1.0 - other / (end - start)
                if (utterance, at) in self._chosen and own >= LEAST_OWN:
                    spans = lane.latest(lane.recorded - recorded)[: after - recorded]
                    taken += own * replays.ns_of(self._stage, spans)
                    frames += n
                if at + n == self._lengths[utterance]:
                    of_utterance = lane.drain()
                    if counts and frames:
                        self._spans.append(of_utterance)
                        length = self._lengths[utterance]
                        self._pieces.append(Piece(first - at, length, length * FRAME_S))
        if counts and frames:
            self._ns[replays.RUN].append(taken / frames)
        return counts and frames > 0

    def replay(self, *, counts: bool) -> None:
        """Decode once more, and do each chosen block again in every way."""
        sums, frames = defaultdict[str, float](float), Counter[str]()
        for utterance, at, n in self._blocks():
            if at == 0:
                self._recogniser.search.start(at)
            chosen = (utterance, at) in self._chosen
            if chosen:
                self._replays.keep()
            scores = self._silent.decode(self._recogniser, Rows(self._padded[utterance], at, n), at, ahead=False)
            if not chosen:
                continue
            longest = min(self._lengths[utterance] - at, MAX_FRAMES)

            def rows(frames: int, utterance: int = utterance, at: int = at, longest: int = longest) -> Array | None:
                end = at + frames + self._beyond
                return self._padded[utterance][at:end] if 0 < frames <= longest else None

            for way, ns, of in self._replays.again(rows, scores, n, at):
                sums[way] += ns
                frames[way] += of
        if counts:
            for way, ns in sums.items():
                self._ns[way].append(ns / frames[way])

    def explanation(self, table: RoofTable) -> Explanation:
        if not self.rounds:
            raise BadInput(
                "Other programs had the processor for most of the time, so that nothing can be said of the "
                f"stage {self._stage_name}; try again when the machine has less to do."
            )
        number = self._recorder.stage(REPLAYED + self._stage_name, "setup", ("timed_ns",))
        stages = {stage.id: stage for stage in self._recorder.stages}
        costs = {(stage, epoch): cost for stage, epoch, cost in self._recorder.costs}
        recording = ArmRecording(stages, costs, table)
        recording.spans = np.concatenate([*self._spans, self._replayed(number)])
        recording.utterances = self._pieces
        row = next((row for row in breakdown(recording).stages if row.name == self._stage_name), None)
        hot, run = self._ns[replays.HOT], self._ns[replays.RUN]
        if row is None or not hot or not any(run):
            raise BadInput(f"The stage {self._stage_name} did not run with these settings.")
        variants = self._replays.variants.items()
        ways = tuple(Variant(name, *_middle(ns), shown) for name, shown in variants if (ns := self._ns[name]))
        ratios = [max(1.0 - h / r, 0.0) for h, r in zip(hot, run, strict=True) if r]
        likely, low, high = _middle(ratios)
        return Explanation(row, ways, (low, likely, high), len(ratios), len(self._chosen))

    def _replayed(self, number: int) -> Array:
        """Spans of a round, measured by replay of UNIT_FRAMES frames: dtype SPAN [rounds]."""
        found = np.zeros(self.rounds, SPAN)
        found["stage"], found["lane"] = number, self._lane.id
        for column, way in (("duration_ns", replays.HOT), ("work0", replays.RUN)):
            found[column] = np.rint(UNIT_FRAMES * np.array(self._ns[way] or [0.0] * self.rounds))
        return found

    def _blocks(self) -> Iterator[tuple[int, int, int]]:
        for utterance, length in enumerate(self._lengths):
            for at in range(0, length, self._block):
                yield utterance, at, min(self._block, length - at)
