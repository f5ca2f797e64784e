"""Hot replay: a block is repeated at once with its data in the caches, which measures how long it waits for memory.

Replays run between two blocks and outside the wall time. A block is scored or searched again until it gets no faster;
the time that it took longer is waiting for data that other work had evicted. The result is recorded as spans of the
stages "replay.…" in the group `setup`: their duration is the hot time, their work count the time the block had taken.

Scoring and search share the time equally. Scoring must be a pure function of the block (`LayeredScorer.again`); the
search restarts from a saved state (`SearchReplay`). The first EARLY replays of both may take EARLY_SHARE of the time,
all of them at most `share` of it in the long run.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Final, TypeVar

import numpy as np

from pipelines.scoring.layered import LayeredScorer
from pipelines.scoring.strategy import Scorer, Scores
from pipelines.search.device.viterbi import DeviceViterbi
from pipelines.search.replay import SearchReplay
from pipelines.search.viterbi import Viterbi
from profiler.analysis.attribution import REPLAYED
from profiler.arrays import F32
from profiler.machine.run_queue import RunQueue
from profiler.recording.lanes import Lane
from profiler.spans import Recorder

LIMIT = (1 << 32) - 1
MOST_TIMES: Final = 8
GAIN: Final = 0.03
IN_VAIN: Final = 2
"""After this number of passes in a row that gain no more than the part GAIN, the data count as hot. Data evicted from a
large last cache need more than one pass to return, and a pass may gain nothing before the next one does
(`python -m tests.bench.constants --only system`)."""

USUAL_TIMES: Final = 4  # A first replay is planned to take this multiple of what its half of a block takes
PAUSE: Final = 16  # The time between two blocks earns at most as much as this number of blocks: a run may be paused
TURNS: Final = 4  # A later replay is planned with the mean of about this number of the latest
BLOCKS: Final = 32  # Number of blocks over which the time of a block is averaged

LEAST_OWN: Final = 0.25
"""Share of its time for which a block, or a pass over it, must have had the processor to be compared. The time of other
programs is subtracted; with a smaller share, the remainder would be mostly error."""

FRAMES: Final = 16
"""Frames of the search that are done again together, at least. A single frame that is repeated at once is faster
because its branches are predicted, which is no waiting for data: `search.prune` took 14.9 µs over one frame, and 20.0
to 20.8 over sixteen, over a whole block of sixteen, and in runs of such blocks."""

EARLY: Final = 16
"""Early replays of scoring and of the search: with sixteen 9 % of verdicts are *mixed*, with four 40 %."""
EARLY_SHARE: Final = 0.1
"""Until then they may take this share of the time. With three times as much, the replays absorb so much of the time
that other programs take that their effect on the stages is no longer visible."""


Stage = TypeVar("Stage")


def hot(once: Callable[[], dict[Stage, int]]) -> dict[Stage, int]:
    """Repeat `once` until it gets no faster; returns the ns by stage of the fastest pass. Empty passes do not count."""
    least: dict[Stage, int] = {}
    times = in_vain = 0
    while times < MOST_TIMES and in_vain < IN_VAIN:
        found, times = once(), times + 1
        before, after = sum(least.values()), sum(found.values())
        if before:
            in_vain = in_vain + 1 if after > (1.0 - GAIN) * before else 0
        if found and (not least or after < before):
            least = found
    return least


SCORING, SEARCH = range(2)


def _frames(scores: Scores) -> int:
    """Frames of a block, or of several blocks and single frames."""
    if isinstance(scores, list):
        return sum(1 if part.ndim == 1 else len(part) for part in scores)
    return len(scores) if isinstance(scores, np.ndarray) else 0


@dataclass
class _Half:
    """Scoring or search; `blocks`: how long its replay takes, in blocks, as a mean over the latest of its `turns`."""

    group: str
    turns: int = 0
    blocks: float = 0.0
    early: int = EARLY  # How often it may still be replayed at EARLY_SHARE of the time

    def took(self, blocks: float) -> None:
        """Count one more, which took as long as `blocks` blocks."""
        self.turns += 1
        self.blocks += (blocks - self.blocks) / min(self.turns, TURNS)


class HotReplay:
    """Replays a block's scoring or its search now and then."""

    def __init__(self, recorder: Recorder, lane: Lane, queue: RunQueue, share: float) -> None:
        """`queue`: of the thread that decodes. `share`: of the time that may go into it, 0…1."""
        self._queue, self._recorder, self._lane, self._share = queue, recorder, lane, share
        self._clock = recorder.clock
        self._own = Lane(0, "replay", "cpu", decode=False, capacity=1 << 12)
        self._blocks = 0
        self._each_ns = self._left_ns = 0.0
        self._since: int | None = None
        """Since when time has been earned; what replays took in between is taken off."""
        self._waits_for: _Half | None = None
        self._wait = self._kept_ns = 0
        self._stage = recorder.stage("setup.replay", "setup")
        self._halves = _Half("scoring"), _Half("search")
        self._possible: tuple[_Half, ...] = self._halves
        """Those that could be done again when it was last looked at."""
        self._next = SCORING
        self._in_turn = 0.0
        """Blocks that the half whose turn it is has taken of it."""
        self._chosen: _Half | None = None
        self._search: SearchReplay | None = None
        self._scores: list[F32] = []
        """Of the blocks chosen so far, fewer frames than FRAMES: copies of [frames, senones], or of single frames."""
        self._timed: dict[int, int] = {}
        """What the stages of the search took of them, in ns."""

    @property
    def _rate(self) -> float:
        """The share of the time that replays may take now."""
        early = any(half.early > 0 for half in self._possible)
        return max(self._share, EARLY_SHARE) if early else self._share

    def begin_again(self) -> None:
        for half in self._halves:
            half.early = EARLY

    @property
    def chosen(self) -> bool:
        return self._chosen is not None

    def forget(self) -> None:
        """The block that was chosen is not to be done again; the same half of another is, when there is one.

        What keeping its state took is earned first: there may never be a block that can be done again.
        """
        self._scores, self._timed = [], {}
        if self._chosen is not None:
            self._chosen = None
            self._wait = ceil(self._kept_ns / max(self._each_ns, 1.0) / self._rate)

    def forget_search(self) -> None:
        if self._chosen is self._halves[SEARCH]:
            self.forget()

    def waits(self, now: int, took_ns: int) -> bool:
        """Count a block that ended `now` and took `took_ns`, if that is all there is to do; else False."""
        if self._share and (self._wait <= 2 or self._chosen or self._scores or self._since is None):
            return False
        if self._share:
            self._earn(now, took_ns)
            self._wait -= 1
        return True

    def _earn(self, now: int, took_ns: int) -> None:
        """The time since the last block earns replays, as a block of it."""
        assert self._since is not None
        earned, self._since = min(now - self._since, (1 + PAUSE) * took_ns), now
        self._left_ns += self._rate * earned
        if not self._scores:
            self._blocks += 1
            self._each_ns += (earned - self._each_ns) / min(self._blocks, BLOCKS)

    def plan(self, scorer: Scorer, search: Viterbi | DeviceViterbi | None, recorded: int, took_ns: int) -> int:
        """Choose the block that comes next, if there is time; returns when its state was kept, 0 if it is not chosen.

        `recorded`: spans that the lane had before the last block, which took `took_ns`. `search`: None where it would
        not do the same again.
        """
        if not self._share:
            return 0
        start = self._clock()
        if self._since is None:
            self._since = start  # with the first block: what was prepared before it earned no time
            return 0
        self._earn(start, took_ns)
        if self._scores:  # the block that comes next is done again with those before it
            return 0
        self._chosen = None
        if self._wait > 1:  # most blocks: what can be replayed is looked at when it is time
            self._wait -= 1
            return 0
        possible = (isinstance(scorer, LayeredScorer) and scorer.replayable, isinstance(search, Viterbi))
        self._possible = tuple(half for half, can in zip(self._halves, possible, strict=True) if can)
        if not any(possible):
            return 0
        turn = self._next if possible[self._next] else 1 - self._next
        half = self._halves[turn]
        if half is not self._waits_for:
            self._waits_for, self._wait = half, self._blocks_until(half, recorded, took_ns)
        else:
            self._wait -= 1
        if self._wait > 0:
            return 0
        if turn != self._next:
            self._next, self._in_turn = turn, 0.0
        self._chosen = half
        half.early -= 1
        if turn == SCORING:
            assert isinstance(scorer, LayeredScorer)
            scorer.note()
        else:
            assert isinstance(search, Viterbi)
            if self._search is None or self._search.viterbi is not search:
                self._search = SearchReplay(search)
            self._search.keep()
        end = self._clock()
        self._lane.put(self._stage, start, end)
        self._kept_ns = self._spend(start, end)
        return end

    def take(self, scorer: Scorer, scores: Scores | None, recorded: int, frame: int, own: float = 1.0) -> int:
        """Do the chosen block again, from `frame` on, that was decoded last; returns when that ended, 0 without one.

        `scores`: of the block, as the search had them; None where there are none any more, or it went on since.
        `recorded`: spans that the lane had before it. `own`: part of its time in which it had the processor.
        """
        if scores is None or own < LEAST_OWN:
            self.forget()
        half, self._chosen = self._chosen, None
        if half is None or scores is None:
            return 0
        start = self._clock()
        timed = self._sums(self._lane, self._lane.recorded - recorded, half.group)
        timed = {stage: round(own * ns) for stage, ns in timed.items()}
        if half is self._halves[SEARCH]:
            if isinstance(scores, np.ndarray | list):
                self._scores += [scores.copy()] if isinstance(scores, np.ndarray) else map(np.copy, scores)
            for stage, ns in timed.items():
                self._timed[stage] = self._timed.get(stage, 0) + ns
            if self._scores and _frames(self._scores) < FRAMES:  # done again together with those that follow
                self._chosen = half
                return self._clock()
            frame -= _frames(self._scores) - _frames(scores)
            scores, timed = self._scores, self._timed
            self._scores, self._timed = [], {}
        self._waits_for = None
        given = None if half is self._halves[SCORING] else scores
        found = hot(lambda: self._once_more(scorer, given, frame))
        at = end = self._clock()
        for stage, ns in found.items():
            if timed.get(stage):
                # One after another and to the end, so that all of set-up's spans together are its time.
                name, at = REPLAYED + self._recorder.stages[stage].name, at - ns
                replayed = self._recorder.stage(name, "setup", ("timed_ns",))
                self._lane.put(replayed, at, at + ns, frame, 0, min(timed[stage], LIMIT))
        self._lane.put(self._stage, start, max(at, start), frame, 0)
        spent = (self._kept_ns + self._spend(start, end)) / max(self._each_ns, 1.0)
        if found:
            half.took(spent)
            self._in_turn += spent
        if not found or self._in_turn >= self._halves[1 - self._next].blocks:
            self._next, self._in_turn = 1 - self._next, 0.0
        return end

    def _spend(self, start: int, end: int) -> int:
        """That time went into a replay, and earned none; returns how much it was."""
        assert self._since is not None
        self._since += end - start
        self._left_ns -= end - start
        return end - start

    def _blocks_until(self, half: _Half, recorded: int, took_ns: int) -> int:
        """Return after how many blocks there is time for a replay.

        Counted ahead: were the time that has been earned compared after each block, those after a long one would be
        chosen, and silence as soon as it comes, of which the search has little to do.
        """
        blocks = half.blocks
        if not half.turns:
            found = self._sums(self._lane, self._lane.recorded - recorded, half.group)
            # All of the block where that is not known.
            blocks = USUAL_TIMES * (min(sum(found.values()) / took_ns, 1.0) if found and took_ns else 1.0)
        # What was earned while nothing could be done is not made up for.
        self._left_ns = min(self._left_ns, blocks * self._each_ns)
        return ceil((blocks - self._left_ns / max(self._each_ns, 1.0)) / self._rate)

    def _once_more(self, scorer: Scorer, scores: Scores | None, frame: int) -> dict[int, int]:
        """A pass over the block's scoring, or with `scores` over its search; the ns of its stages.

        Without time that other programs took; {} if that was most of it, or where the block cannot be done again.
        """
        self._queue.waited_ns()
        start, found = self._clock(), dict[int, int]()
        if scores is None:
            self._own.take()
            if isinstance(scorer, LayeredScorer) and scorer.replayable and scorer.again(frame, self._own):
                found = self._sums(self._own, self._own.waiting, "scoring")
        elif self._search is not None and isinstance(scores, np.ndarray | list):
            again = self._search.again(scores, frame, self._own)
            found = {self._recorder.stage_id(name): ns for name, ns in again.items()}
        waited, took = self._queue.waited_ns(), self._clock() - start
        own = 1.0 - waited / max(took, 1)
        return {stage: round(own * ns) for stage, ns in found.items()} if own >= LEAST_OWN else {}

    def _sums(self, lane: Lane, count: int, group: str) -> dict[int, int]:
        """The ns by stage of `group` of the lane's last `count` spans."""
        found: dict[int, int] = {}
        for span in lane.latest(count):
            stage = int(span["stage"])
            if self._recorder.stages[stage].group == group:
                found[stage] = found.get(stage, 0) + int(span["end_ns"] - span["start_ns"])
        return found
