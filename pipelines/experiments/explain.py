"""What a stage's time consists of, found by doing it again: hot, cold, placed elsewhere, with a row more or less.

Scoring is a pure function of its block, so a block can be scored again at once with its data hot (what it took longer
in the run, it waited for), after everything has been pushed out of the caches, by a scorer whose parameters lie at
other places in memory, and with one frame more or less (whether cost is stepwise in the rows of a tile). The run that
is compared with decodes the same audio with nothing in between, in turns with the replays. Search is replayed on a
copy of its state (`search.replay`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from threadpoolctl import threadpool_limits

from pipelines.audio import loading as audio
from pipelines.config import Config
from pipelines.experiments.rerun import Piece, Recording, Stretch, drained
from pipelines.kernel_roofs import work_of
from pipelines.models.opening import open_model
from pipelines.run.recogniser import Progress, Recogniser, build
from pipelines.scoring import MAX_FRAMES, Scorer, build_scorer, roofs, with_context
from pipelines.scoring.layered import LayeredScorer
from profiler.analysis.breakdown import StageRow, breakdown
from profiler.analysis.conditions import OTHER_COUNT
from profiler.analysis.law import needed
from profiler.analysis.parts import MEMORY_PARTS
from profiler.arrays import Array
from profiler.errors import BadInput, Cancelled
from profiler.machine.describe import last_level_caches
from profiler.machine.roofs import calibration
from profiler.machine.roofs.table import RoofTable
from profiler.machine.run_queue import RunQueue
from profiler.session.model import FRAME_S
from profiler.spans import Lane, NullLane, Recorder

ROUNDS: Final = 5
MOST_BLOCKS: Final = 48
"""Blocks of a round that are replayed, evenly spread: pushing everything out of the caches takes 15 ms each time."""
ELSEWHERE: Final = 2
"""Other scorers, whose parameters lie elsewhere."""
ASSUMED_CACHE_BYTES: Final = 32 << 20

RUN, HOT, COLD, PLACED, LESS, MORE = (
    "in the run",
    "hot",
    "cold",
    "placed elsewhere, hot",
    "one row less, hot",
    "one row more, hot",
)
WAYS: Final = {
    RUN: "decoding the audio, nothing in between",
    HOT: "the same block again at once",
    COLD: "again after the caches were filled with other data",
    PLACED: "again, by scorers whose parameters lie at other addresses",
    LESS: "again, with one frame less in the block",
    MORE: "again, with one frame more in the block",
}


@dataclass(frozen=True)
class Way:
    """The stage's ns per frame in one way: median of the rounds, and the ends of their middle half."""

    name: str
    ns: float
    low: float
    high: float

    @property
    def shown(self) -> str:
        """What was done, in words."""
        return WAYS[self.name]


@dataclass(frozen=True)
class Explanation:
    """What came of it. `row`: the stage in the run of now, with the law's parts. `ways`: by what was done.

    `waiting`: which part of its time the stage waited for caches and memory, by replay: (least, likely, most).
    """

    row: StageRow
    ways: tuple[Way, ...]
    waiting: tuple[float, float, float]
    rounds: int
    blocks: int

    @property
    def modelled(self) -> tuple[float, float, float] | None:
        """The same by the cost law: memory bandwidth and latency as parts of the time; None without terms."""
        parts = self.row.parts
        if parts is None:
            return None
        time = self.row.time_ns
        return (
            sum(parts.low[name] for name in MEMORY_PARTS) / time,
            sum(parts.likely[name] for name in MEMORY_PARTS) / time,
            min(sum(parts.high[name] for name in MEMORY_PARTS) / time, 1.0),
        )

    @property
    def conclusion(self) -> str:
        """Whether the two witnesses agree, in one sentence."""
        low, likely, high = self.waiting
        text = (
            f"Replayed hot, it takes {1 - likely:.0%} of its time ({1 - high:.0%} to {1 - low:.0%})"
        )
        modelled = self.modelled
        if modelled is None:
            return f"{text}; its cost law names no terms to compare that with."
        apart = max(low - modelled[2], 0.0)
        law = f"the law gives memory {modelled[1]:.0%} ({modelled[0]:.0%} to {modelled[2]:.0%})"
        if apart:
            return f"{text}, so it waits for more than the law explains: {law}, {apart:.0%} of its time is beyond it."
        return f"{text}; {law}, part of which is also there when its data are hot: the two agree."


def explain(
    config: Config,
    stage: str,
    stretch: Stretch,
    progress: Progress,
    cancelled: Callable[[], bool],
) -> Explanation:
    """Run `stretch` with `config` and explain `stage` of scoring.

    BadInput when the stage does not run or cannot be replayed; Cancelled; and what `recogniser.build` raises.
    """
    recogniser = build(config, Recorder(), NullLane(), progress, cancelled)
    table = _roofs(config, recogniser, progress, cancelled)
    features = [
        recogniser.frontend.features(audio.load(item.path).samples) for item in stretch.items
    ]
    others = []
    for _ in range(ELSEWHERE):
        # The same parameters once more: what is read and packed again lies elsewhere.
        model = open_model(config, progress, cancelled)
        others.append(build_scorer(config, model, progress, cancelled))
    again = _Again(config, recogniser, features, stage, others)
    again.refuse_what_cannot_be()
    with threadpool_limits(config.threads):
        for number in range(-1, ROUNDS):
            if cancelled():
                raise Cancelled
            progress(f"replaying {stage}", max(number, 0) / ROUNDS)
            again.decode(counts=number >= 0)
            again.replay(counts=number >= 0)
    return again.explanation(table)


def _roofs(
    config: Config, recogniser: Recogniser, progress: Progress, cancelled: Callable[[], bool]
) -> RoofTable:
    def told(what: str, share: float) -> None:
        progress(f"measuring the machine: {what}", share)

    calibration.load_or_measure(config.threads, told, cancelled, kernels=roofs.KERNELS)
    return calibration.measure_terms(needed(recogniser.costs().values()), work_of, told, cancelled)


def _middle(values: Sequence[float]) -> tuple[float, float, float]:
    """Median, and the ends of the middle half: a neighbour's burst spoils a round or two."""
    low, mid, high = np.percentile(values, [25, 50, 75])
    return float(mid), float(low), float(high)


class _Again:
    """One recogniser that decodes the same features over and over, and replays blocks of them."""

    def __init__(
        self,
        config: Config,
        recogniser: Recogniser,
        features: Sequence[Array],
        stage: str,
        others: Sequence[Scorer],
    ) -> None:
        self._recogniser, self._stage_name = recogniser, stage
        self._recorder = recorder = Recorder()
        recogniser.register(recorder)
        self._elsewhere = [other for other in others if isinstance(other, LayeredScorer)]
        for other in others:
            other.stages(recorder)
        names = [known.name for known in recorder.stages if known.group == "scoring"]
        if stage not in names:
            raise BadInput(
                f"{stage!r} is no stage of scoring here, which alone can be scored again; "
                f"there are {', '.join(names)}."
            )
        self._stage = recorder.stage_id(stage)
        self._tile = recorder.stage("decode.block", "decode", (OTHER_COUNT,))
        for name, cost in recogniser.scorer.costs().items():
            recorder.cost(recorder.stage_id(name), 0, cost)
        self._lane = recorder.lane("decode", decode=True)
        self._own = Lane(1, "replay", "cpu", decode=False)
        context = recogniser.scorer.context
        self._padded = [with_context(x, context) for x in features]
        self._beyond, self._block = sum(context), min(config.block, MAX_FRAMES)
        places = [
            (u, at)
            for u, x in enumerate(features)
            for at in range(0, len(x) - self._block, self._block)
        ]
        if not places:
            raise BadInput(f"The audio is shorter than a block of {self._block} frames.")
        step = -(-len(places) // MOST_BLOCKS)
        # Neither the first block, which finds everything cold, nor always the same of a rhythm.
        self._chosen = set(places[step // 2 :: step]) or set(places)
        self._lengths = [len(x) for x in features]
        self._spans: list[Array] = []
        self._pieces: list[Piece] = []
        self._ns: dict[str, list[float]] = {}
        size, _ = last_level_caches() or (ASSUMED_CACHE_BYTES, 1)
        self._filler = np.zeros(2 * size // 8)

    def refuse_what_cannot_be(self) -> None:
        """BadInput where scoring a block again would not be the same work."""
        scorer = self._recogniser.scorer
        if not isinstance(scorer, LayeredScorer):
            raise BadInput(
                "Scoring on a device cannot be replayed; its stages have times of their own."
            )
        scorer.score(self._padded[0][: self._block + self._beyond], 0, NullLane())
        if not scorer.replayable:
            raise BadInput(
                "With these settings a block cannot be scored again: scoring goes by what it computed before, "
                "or takes turns with the search; choose gmm.senones=all or dnn.senones=all and no method that "
                "follows the last frame."
            )

    def decode(self, *, counts: bool) -> None:
        """The audio as a run decodes it; `counts`: whether this round is kept."""
        taken = {True: 0.0, False: 0.0}
        frames = 0
        clock, lane, search = self._recorder.clock, self._lane, self._recogniser.search
        with RunQueue() as queue:
            for utterance, at, n in self._blocks():
                first = self._pieces_end + at
                if at == 0:
                    search.start(first)
                    queue.waited_ns()
                start, recorded = clock(), lane.recorded
                scores = self._recogniser.scorer.score(self._of(utterance, at, n), first, lane)
                after = lane.recorded
                search.advance(scores, first, lane)
                lane.put(self._tile, start, clock(), first, n, queue.waited_ns())
                if (utterance, at) in self._chosen:
                    spans = lane.latest(lane.recorded - recorded)[: after - recorded]
                    taken[True] += self._of_stage(spans)
                    frames += n
                if at + n == self._lengths[utterance]:
                    self._keep(utterance, counts)
        if counts:
            self._note(RUN, taken[True] / frames)

    def replay(self, *, counts: bool) -> None:
        """Decode once more, and after each chosen block score it again in every way."""
        sums: dict[str, float] = {}
        frames: dict[str, int] = {}
        scorer, search = self._recogniser.scorer, self._recogniser.search
        assert isinstance(scorer, LayeredScorer)
        elsewhere = self._elsewhere

        def add(way: str, ns: float, n: int) -> None:
            sums[way] = sums.get(way, 0.0) + ns
            frames[way] = frames.get(way, 0) + n

        for utterance, at, n in self._blocks():
            if at == 0:
                search.start(at)
            block = self._of(utterance, at, n)
            scores = scorer.score(block, at, NullLane())
            search.advance(scores, at, NullLane())
            if (utterance, at) not in self._chosen:
                continue
            add(HOT, self._hot(scorer), n)
            self._filler += 1.0
            add(COLD, self._once(scorer), n)
            for other in elsewhere:
                other.score(block, at, NullLane())
                add(PLACED, self._hot(other), n)
            for way, rows in ((LESS, n - 1), (MORE, n + 1)):
                if rows and at + rows <= self._lengths[utterance] and rows <= MAX_FRAMES:
                    elsewhere[0].score(self._of(utterance, at, rows), at, NullLane())
                    add(way, self._hot(elsewhere[0]), rows)
        if counts:
            for way, ns in sums.items():
                self._note(way, ns / frames[way])

    def explanation(self, table: RoofTable) -> Explanation:
        """What the rounds gave."""
        stages = {stage.id: stage for stage in self._recorder.stages}
        costs = {(stage, epoch): cost for stage, epoch, cost in self._recorder.costs}
        recording = Recording(stages, costs, table)
        recording.spans, recording.utterances = np.concatenate(self._spans), self._pieces
        rows = breakdown(recording).stages  # type: ignore[arg-type]
        row = next((row for row in rows if row.name == self._stage_name), None)
        if row is None:
            raise BadInput(f"The stage {self._stage_name} did not run with these settings.")
        ways = tuple(Way(name, *_middle(ns)) for name in WAYS if (ns := self._ns.get(name)))
        ratios = [
            max(1.0 - hot / run, 0.0) for hot, run in zip(self._ns[HOT], self._ns[RUN], strict=True)
        ]
        likely, low, high = _middle(ratios)
        waiting = low, likely, high
        return Explanation(row, ways, waiting, len(ratios), len(self._chosen))

    @property
    def _pieces_end(self) -> int:
        return sum(piece.n_frames for piece in self._pieces)

    def _blocks(self) -> Iterator[tuple[int, int, int]]:
        for utterance, length in enumerate(self._lengths):
            for at in range(0, length, self._block):
                yield utterance, at, min(self._block, length - at)

    def _of(self, utterance: int, at: int, n: int) -> Array:
        block: Array = self._padded[utterance][at : at + n + self._beyond]
        return block

    def _keep(self, utterance: int, counts: bool) -> None:
        spans = drained(self._lane)
        if counts:
            self._spans.append(spans)
            length = self._lengths[utterance]
            self._pieces.append(Piece(self._pieces_end, length, length * FRAME_S))

    def _note(self, way: str, ns: float) -> None:
        self._ns.setdefault(way, []).append(ns)

    def _hot(self, scorer: LayeredScorer) -> float:
        scorer.again(0, self._own)
        return self._once(scorer)

    def _once(self, scorer: LayeredScorer) -> float:
        while self._own.waiting:
            self._own.take()
        scorer.again(0, self._own)
        return self._of_stage(self._own.latest(self._own.waiting))

    def _of_stage(self, spans: Array) -> float:
        mine = spans[spans["stage"] == self._stage]
        return float((mine["end_ns"] - mine["start_ns"]).sum())
