"""What a lab measures with: variants in turns, spans and lanes of the session, the machine's roofs, speech, progress.

Everything timed is a span of the session too, so that a lab's run opens like any other. `Desk()` records nothing.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pipelines.run.interleave import turns
from profiler.clock import now_ns
from profiler.costs import Cost, Linear
from profiler.errors import Cancelled
from profiler.session.writer import NullWriter
from profiler.spans import Lane, NullLane, Recorder

if TYPE_CHECKING:
    from pipelines.device import Device
    from pipelines.run.playlist import Item
    from profiler.session.writer import SessionWriter

TURN_S: Final = 0.004
"""A turn repeats a short call for so long: the clock and two Python calls are then below 0.01 % of it."""

OPENMP: Final = "OMP_NUM_THREADS"  # What torch takes its number of threads from when it is imported
LONGEST_INNER: Final = 1 << 20
LEAST_ROUNDS: Final = 7  # At least, whatever the time: from fewer, the noise between rounds cannot be estimated
MOST_ROUNDS: Final = 400
ACCELERATORS: Final = ("cuda", "xpu", "mps")
CALLS: Final = ("calls",)  # The work count of a stage
Times = dict[str, list[float]]
"""Seconds per call by variant, in order of the rounds; row r of all variants is of one round."""


def per_call(operations: Mapping[str, float], moved: float = 0.0, working_set_bytes: float = 0.0) -> Cost:
    """The cost law of a stage by what one call does: operations by class ("gemm", "fma", "scalar", "exp"), bytes moved.

    Spans of a desk count their calls as the first work count.
    """

    def law(value: float) -> Linear:
        return Linear(per_work=(value, 0.0, 0.0))

    counts = {name: law(count) for name, count in operations.items()}
    return Cost(counts, law(moved), law(moved), working_set_bytes)


class Desk:
    """Handed to `Lab.measure`. Times are seconds; every method that measures raises Cancelled after a stop request.

    `lane`: the lane whose wall time counts, for labs that record by themselves. `audio`: what --audio named.
    """

    def __init__(
        self,
        recorder: Recorder | None = None,
        lane: Lane | NullLane | None = None,
        journal: SessionWriter | NullWriter | None = None,
        progress: Callable[[str, float | None], None] = lambda what, share: None,
        stopping: Callable[[], bool] = lambda: False,
        audio: Sequence[str] = (),
        transcripts: str | None = None,
    ) -> None:
        self.recorder = recorder or Recorder()
        self.lane: Lane | NullLane = lane or NullLane()
        self.journal = journal or NullWriter()
        self.audio, self.transcripts = tuple(audio), transcripts
        self._say, self.stopping = progress, stopping
        self._first, self._share = 0.0, 1.0
        self._tile = self.recorder.stage("lab", "decode")
        self._tiles = 0

    def progress(self, what: str, share: float | None = None) -> None:
        """Say what is being done and how much of it is done (0…1, None: unknown), or raise Cancelled, as `check`."""
        self.check()
        self._say(what, None if share is None else self._first + self._share * min(share, 1.0))

    @contextmanager
    def part(self, first: float, last: float) -> Iterator[None]:
        """Within it, progress from 0 to 1 is that part of the whole."""
        before = self._first, self._share
        self._first, self._share = before[0] + before[1] * first, before[1] * (last - first)
        try:
            yield
        finally:
            self._first, self._share = before

    def check(self) -> None:
        if self.stopping():
            raise Cancelled

    def turns(
        self,
        variants: Mapping[str, Callable[[], object]],
        *,
        seconds: float = 5.0,
        rounds: int | None = None,
        inner: Mapping[str, int] = MappingProxyType({}),
        costs: Mapping[str, Cost] = MappingProxyType({}),
        what: str = "measuring in turns",
    ) -> Times:
        """Seconds per call of each variant, in turns (`pipelines.run.interleave`), first calls left out.

        Rounds are taken until `seconds` are over (at least LEAST_ROUNDS, at most `rounds` or MOST_ROUNDS). `inner`:
        calls per turn; by default as many as last TURN_S. Each turn is one span of the stage named as its variant;
        `costs`: by stage, what one call does (`per_call`).
        """
        stages = {name: self.stage(name, "scoring", costs.get(name), CALLS) for name in variants}
        calls = {name: self._calls(function, inner.get(name)) for name, function in variants.items()}
        times: Times = {name: [] for name in variants}
        by_number = list(variants)
        most = MOST_ROUNDS if rounds is None else rounds
        begin = time.monotonic()

        def numbers() -> Iterator[int]:
            for number in range(most):
                spent = time.monotonic() - begin
                if number >= LEAST_ROUNDS and spent >= seconds:
                    return
                self.progress(what, max(spent / seconds, number / most) if seconds else None)
                yield number

        for turn in turns(len(by_number), 1, numbers()):
            self.check()
            name = by_number[turn.arm]
            function, count = variants[name], calls[name]
            start = now_ns()
            for _ in range(count):
                function()
            end = now_ns()
            self._record(stages[name], start, end, count)
            times[name].append((end - start) / count / 1e9)
        return times

    def once(self, name: str, function: Callable[[], object]) -> float:
        """Seconds of one call of `function`, a span of the stage `name`: first (cold) calls, steps of a training."""
        self.check()
        stage, start = self.stage(name, "scoring", work=CALLS), now_ns()
        function()
        end = now_ns()
        self._record(stage, start, end, 1)
        return (end - start) / 1e9

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """The work within it is one span of the stage `name`, for what times itself."""
        stage, start = self.stage(name, "scoring", work=CALLS), now_ns()
        yield
        self._record(stage, start, now_ns(), 1)

    def _calls(self, function: Callable[[], object], inner: int | None) -> int:
        """Choose the number of calls of a turn; makes the first calls here, which compile or touch memory."""
        self.check()
        function()
        if inner is not None:
            return inner
        count = 1
        while count < LONGEST_INNER:
            start = now_ns()
            for _ in range(count):
                function()
            taken = (now_ns() - start) / 1e9
            if taken >= TURN_S / 2:
                return max(1, round(count * TURN_S / taken))
            count *= 4
        return count

    def _record(self, stage: int, start: int, end: int, calls: int) -> None:
        self.lane.put(stage, start, end, self._tiles, 1, calls)
        self.lane.put(self._tile, start, end, self._tiles, 1)
        self._tiles += 1

    def stage(self, name: str, group: str, cost: Cost | None = None, work: tuple[str, ...] = ()) -> int:
        """The number of a stage of the session (groups: `profiler.spans.GROUPS`), for `lane.put` and `hand_over`."""
        number = self.recorder.stage(name, group, work)
        if cost is not None:
            self.recorder.cost(number, 0, cost)
        return number

    @contextmanager
    def step(self) -> Iterator[int]:
        """A stretch of the wall time, one number of the time axis (which it gives): around spans that a lab records."""
        number, start = self._tiles, now_ns()
        self._tiles += 1
        try:
            yield number
        finally:
            self.lane.put(self._tile, start, now_ns(), number, 1)

    def hand_over(self, lane: str, spans: Iterable[tuple[str, int, int]], groups: Mapping[str, str]) -> None:
        """Put spans (stage, start_ns, end_ns by `profiler.clock`) of another process on a new lane, in order of time.

        `groups`: of each stage. On Linux the clock is the same for all processes of a machine.
        """
        target = self.recorder.lane(lane, "cpu")
        for number, (stage, start, end) in enumerate(spans):
            while target.waiting > 1 << 14 and not isinstance(self.journal, NullWriter):
                time.sleep(0.01)  # the writer empties the ring every 50 ms
            target.put(self.stage(stage, groups[stage]), start, end, number, 1)

    @cached_property
    def device(self) -> str | None:
        """The accelerator as torch and the settings name it ("cuda"), None without one. Imports torch."""
        from pipelines.availability import availability

        usable = [each.name for each in availability() if each.available]
        return next((name for name in ACCELERATORS if name in usable), None)

    def speech(self) -> list[Item]:
        from pipelines.run import playlist

        return playlist.build(self.audio, self.transcripts).items


@contextmanager
def computing_on(threads: int) -> Iterator[None]:
    """Within it BLAS, OpenMP and torch compute on `threads` threads, torch also where it is imported within."""
    from threadpoolctl import threadpool_limits

    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch is not None else 0
    environment = dict(os.environ)
    os.environ[OPENMP] = str(threads)
    with threadpool_limits(threads):
        if torch is not None:
            torch.set_num_threads(threads)
        try:
            yield
        finally:
            if torch is not None:
                torch.set_num_threads(before)
            del os.environ[OPENMP]
            os.environ.update(environment)


def cache_bytes() -> dict[int, int]:
    """Bytes of data that each level of cache holds, by level; empty where nothing is known."""
    from profiler.machine.describe import describe

    levels = describe().get("caches")
    rows = levels if isinstance(levels, list) else []
    return {int(r["level"]): int(r["bytes"]) for r in rows if r.get("type") != "instruction"}


def why_no_accelerator() -> str:
    """For each kind of accelerator a phrase why it cannot be used, joined by semicolons."""
    from pipelines.availability import availability

    return "; ".join(each.reason for each in availability() if each.name in ACCELERATORS)


NONE: Final = "There is no accelerator here"
HALF: Final = f"{NONE}, so only the processor's half was run"


def opened(desk: Desk) -> tuple[Device, bool]:
    """Return the accelerator and True; without one, torch on the processor's threads and False."""
    from pipelines.device import HOST, open_device

    name = desk.device
    return open_device(name or HOST), name is not None
