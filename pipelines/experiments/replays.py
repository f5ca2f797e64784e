"""How blocks of scoring and of the search are repeated to explain a stage.

Scoring is a pure function of its block, so a block is scored again at once with its data hot, after the caches were
flushed, by a scorer whose parameters lie elsewhere in memory, and with one frame more or less (is the cost stepwise in
the rows of a tile?). The search restarts from a copy of its state (`search.replay`): hot, cold, with graph and lists
elsewhere, with half as many tokens, and with one frame less. `run.hot_replay.hot` repeats until the data are hot.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

import numpy as np

from pipelines import config as settings
from pipelines.models.opening import open_model
from pipelines.run.hot_replay import hot
from pipelines.run.recogniser import Progress, Recogniser
from pipelines.scoring import build_scorer
from pipelines.scoring.layered import LayeredScorer
from pipelines.scoring.strategy import Scores
from pipelines.search.replay import SearchReplay
from pipelines.search.viterbi import Viterbi
from profiler.arrays import F32, Array
from profiler.errors import BadInput
from profiler.machine.describe import last_level_caches
from profiler.machine.roofs.cpu import ASSUMED_CACHE_BYTES
from profiler.spans import Lane, NullLane, Recorder

ELSEWHERE: Final = 2  # Other scorers, or searches, whose data lie elsewhere
RUN: Final = "in the run"
HOT: Final = "hot"
COLD: Final = "cold"
PLACED: Final = "other addresses, hot"
LESS: Final = "a row less, hot"
MORE: Final = "a row more, hot"
FRAME_LESS: Final = "a frame less, hot"
HALVED: Final = "half max active, hot"

_AS_RUN: Final = {
    RUN: "decoding the audio, nothing in between, other programs' time taken off",
    HOT: "the same block again at once",
    COLD: "again after the caches were filled with other data",
}

NO_BLOCKS: Final = {
    "frontend": "the front end works on whole utterances, and only blocks can be done again",
    "search.backtrace": "it follows the best path back when words are wanted, and is no part of a block",
}
"""Why a stage, or those of a group, cannot be explained so."""

Features = Callable[[int], "Array | None"]
"""Frames wanted → the features f32 [frames and context, dim] from the block's first on; None where there are none."""


class Replays(ABC):
    """Ways to do blocks of one kind again."""

    variants: Mapping[str, str]  # Description of each variant by its name, the run's first

    def __init__(self, recogniser: Recogniser, stage: int) -> None:
        self._recogniser, self._stage = recogniser, stage
        self._own = Lane(1, "replay", "cpu", decode=False)
        size, _ = last_level_caches() or (ASSUMED_CACHE_BYTES, 1)
        self._filler = np.zeros(2 * size // 8)

    @abstractmethod
    def refuse(self, block: Array) -> None:
        """Raise BadInput if repeating a block would not be the same work; `block`: one to try it on."""

    @abstractmethod
    def prepare(self, recorder: Recorder, progress: Progress, cancelled: Callable[[], bool]) -> None:
        """Make what is needed besides the recogniser. Raises Cancelled."""

    @abstractmethod
    def keep(self) -> None:
        """A block follows that is done again when it has ended."""

    @abstractmethod
    def again(self, rows: Features, scores: Scores, n: int, at: int) -> Iterator[tuple[str, float, int]]:
        """Do the block of `n` frames, from `at` on, again: (way, ns of the stage, frames).

        `scores`: what scoring gave for it, of a lazy scorer by frame. Afterwards scorer and search are as they were.
        """

    def _cold(self) -> None:
        """Push everything out of the caches."""
        self._filler += 1.0


class OfScoring(Replays):
    """Blocks scored again."""

    variants = MappingProxyType(
        _AS_RUN
        | {
            PLACED: "again, by scorers whose parameters lie at other addresses",
            LESS: "again, with one frame less in the block",
            MORE: "again, with one frame more in the block",
        }
    )

    def refuse(self, block: Array) -> None:
        scorer = self._scorer
        scorer.score(block, 0, NullLane())
        if not scorer.replayable:
            raise BadInput(
                "With these settings a block cannot be scored again: scoring goes by what it computed before; choose "
                "no method that follows the last frame."
            )

    def prepare(self, recorder: Recorder, progress: Progress, cancelled: Callable[[], bool]) -> None:
        config = self._recogniser.config
        self._elsewhere: list[LayeredScorer] = []
        for _ in range(ELSEWHERE):
            other = build_scorer(config, open_model(config, progress, cancelled), progress, cancelled)
            other.stages(recorder)
            assert isinstance(other, LayeredScorer)  # as the recogniser's
            self._elsewhere.append(other)

    def keep(self) -> None:
        self._scorer.note()

    def again(self, rows: Features, scores: Scores, n: int, at: int) -> Iterator[tuple[str, float, int]]:
        scorer, first = self._scorer, self._elsewhere[0]
        yield HOT, _hot(lambda: self._once(scorer)), n
        self._cold()
        yield COLD, self._once(scorer), n
        row = scorer.subsampling
        variants = [*((PLACED, other, n) for other in self._elsewhere), (LESS, first, n - row), (MORE, first, n + row)]
        for way, other, frames in variants:
            if scorer.lazy:
                # Nobody knows what the search would ask of a frame more.
                if not 0 < frames <= n:
                    continue
                other.follow(scorer, frames)
            elif (block := rows(frames)) is not None:
                other.score(block, at, NullLane())
            else:
                continue
            yield way, _hot(partial(self._once, other)), frames

    @property
    def _scorer(self) -> LayeredScorer:
        scorer = self._recogniser.scorer
        if self._recogniser.config.model == "ctc":
            raise BadInput("A CTC net is computed before the blocks are searched, and none of them scores it again.")
        if not isinstance(scorer, LayeredScorer):
            raise BadInput("Scoring on a device cannot be replayed; its stages have times of their own.")
        return scorer

    def _once(self, scorer: LayeredScorer) -> int:
        while self._own.waiting:
            self._own.take()
        scorer.again(0, self._own)
        return ns_of(self._stage, self._own.latest(self._own.waiting))


class OfSearch(Replays):
    """Blocks searched again, each time from the state before them."""

    variants = MappingProxyType(
        _AS_RUN
        | {
            PLACED: "again, on a copy of graph and lists at other addresses",
            HALVED: "again, with half as many tokens at most",
            FRAME_LESS: "again, without the block's last frame",
        }
    )

    def refuse(self, block: Array) -> None:
        config = self._recogniser.config
        if not isinstance(self._recogniser.search, Viterbi):
            raise BadInput("The search on a device cannot be replayed; its stages have times of their own.")
        if config.search.adaptive_beam:
            raise BadInput(
                "With search.adaptive_beam a block of the search is not the same work again, since its beam follows "
                "the time; set search.adaptive_beam=false."
            )
        scorer = self._recogniser.scorer
        if not isinstance(scorer.score(block, 0, NullLane()), np.ndarray):
            raise BadInput(
                "With these settings the search takes its scores from a device, so that no block of it can be done "
                "again; choose device=cpu."
            )

    def prepare(self, recorder: Recorder, progress: Progress, cancelled: Callable[[], bool]) -> None:
        self._name = recorder.stages[self._stage].name
        config, search = self._recogniser.config, self._recogniser.search
        assert isinstance(search, Viterbi)
        self._kept = SearchReplay(search)
        self._elsewhere: list[SearchReplay] = []
        for _ in range(ELSEWHERE):
            graph = dataclasses.replace(search.graph, states=search.graph.states.copy(), arcs=search.graph.arcs.copy())
            other = Viterbi(graph, config.search, search.subsampling)
            other.stages(recorder)
            self._elsewhere.append(SearchReplay(other))
        self._usual = config.search
        self._halved = settings.replace(config, "search.max_active", max(config.search.max_active // 2, 1)).search

    def keep(self) -> None:
        self._kept.keep()

    def again(self, rows: Features, scores: Scores, n: int, at: int) -> Iterator[tuple[str, float, int]]:
        """Search the block again, last as the block had left the state; in no way where it collected the history."""
        assert isinstance(scores, np.ndarray | list)
        if not self._kept.repeatable:
            return
        for other in self._elsewhere:
            other.take_over(self._kept)
            yield PLACED, self._hot(other, scores, at), n
        other = self._elsewhere[0]
        # With fewer tokens it may look up what nobody computed, where scores are those that it asked for.
        if self._usual.max_active > 1 and isinstance(scores, np.ndarray):
            other.viterbi.configure(self._halved)
            yield HALVED, self._hot(other, scores, at), n
            other.viterbi.configure(self._usual)
        if len(scores) > 1:
            yield FRAME_LESS, self._hot(other, scores[:-1], at), n - other.viterbi.subsampling
        self._cold()
        yield COLD, self._once(self._kept, scores, at), n
        yield HOT, self._hot(self._kept, scores, at), n

    def _hot(self, replay: SearchReplay, scores: F32 | list[F32], at: int) -> float:
        return _hot(lambda: self._once(replay, scores, at))

    def _once(self, replay: SearchReplay, scores: F32 | list[F32], at: int) -> int:
        return replay.again(scores, at, self._own).get(self._name, 0)


KINDS: Final[Mapping[str, Callable[[Recogniser, int], Replays]]] = MappingProxyType(
    {"scoring": OfScoring, "search": OfSearch}
)
"""By group of the stage."""


def group_of(stage: str, recorder: Recorder) -> str:
    """Return the group, of KINDS, of a stage that can be done again; BadInput says why another cannot."""
    group = {known.name: known.group for known in recorder.stages}.get(stage, "")
    if why := NO_BLOCKS.get(stage) or NO_BLOCKS.get(group):
        raise BadInput(f"{stage} cannot be explained by doing it again: {why}.")
    if group not in KINDS:
        names = [k.name for k in recorder.stages if k.group in KINDS and k.name not in NO_BLOCKS]
        raise BadInput(
            f"{stage!r} is no stage of scoring or search here, which alone can be done again; "
            f"there are {', '.join(names)}."
        )
    return group


def ns_of(stage: int, spans: Array) -> int:
    """Return the time of the spans of `stage`, as a lane's `latest` gives them, ns."""
    mine = spans[spans["stage"] == stage]
    return int((mine["end_ns"] - mine["start_ns"]).sum())


def _hot(once: Callable[[], int]) -> float:
    """ns of `once` with its data hot."""
    found = hot(lambda: {RUN: once()})
    return float(found[RUN])
