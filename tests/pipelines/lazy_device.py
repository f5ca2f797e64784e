"""A device that does its work as late, or in as odd an order, as streams and events allow.

Everything given to a stream is queued. Work runs only when somebody on the host waits for it, or when a schedule takes
a liking to it; an event happens when its stream comes to it; a stream that follows an event stands still until then.
What is right under every schedule is right on a device whatever its timing; what reads a buffer too early, or writes
one too early, comes out wrong under some. torch computes on the processor, so that nothing else differs.
"""

import random
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pipelines.device.base import COMPUTE, COPY, STREAMS
from profiler.clock import now_ns

LATE, EAGER, COPIES_FIRST, WORK_FIRST = "late", "eager", "copies first", "work first"
SCHEDULES = (LATE, COPIES_FIRST, WORK_FIRST, "random 1")


class Moment:
    """An event; `at_ns` is 0 until its stream has come to it."""

    def __init__(self, stream: int) -> None:
        self.stream, self.at_ns = stream, 0


class LazyDevice:
    """`follows_left_out`: numbers of the calls of `follow` that do nothing (planted)."""

    name = "torch-cpu"
    where = "cpu"
    host_time = True
    can_pin = copies_wait = blocking = False
    can_capture = True
    streams = STREAMS

    def __init__(self, schedule: str, follows_left_out: frozenset[int] = frozenset()) -> None:
        self._queues: list[deque[tuple[Moment | None, Callable[[], object]]]] = [deque() for _ in STREAMS]
        self._chance = random.Random(schedule)
        self._schedule = schedule
        self._left_out, self.follows, self.captured = follows_left_out, 0, 0
        self.works = False
        self.identity: dict[str, str] = {}
        self.notices: list[str] = []

    def record(self, stream: int) -> Moment:
        event = Moment(stream)

        def happen() -> None:
            event.at_ns = now_ns()

        self._give(stream, None, happen)
        return event

    mark = record

    def run(self, stream: int, work: Callable[[], object]) -> None:
        self._give(stream, None, work)

    def follow(self, stream: int, event: Moment) -> None:
        self.follows += 1
        if self.follows not in self._left_out:
            self._give(stream, event, lambda: None)

    def wait(self, event: Moment) -> None:
        """Do what `event` needs, and nothing else."""
        while not event.at_ns:
            if not self._step(event.stream):
                queue = self._queues[event.stream]
                assert queue, "somebody waits for what no stream will ever come to"
                after, _ = queue[0]
                assert after is not None
                self.wait(after)

    def is_complete(self, event: Moment) -> bool:
        return event.at_ns > 0

    def time_ns(self, event: Moment) -> int:
        assert event.at_ns, "the time of an event that has not happened"
        return event.at_ns

    def rebase(self, event: Moment) -> None:
        assert event.at_ns

    def recycle(self, event: Moment) -> None:
        assert event.at_ns

    def host_tensor(self, shape: tuple[int, ...], dtype: Any, *, pinned: bool) -> Any:
        import torch

        # What nobody has written yet is no number, and shows wherever it is read.
        fill = float("nan") if dtype.is_floating_point else -(1 << 20)
        return torch.full(shape, fill, dtype=dtype)

    def device_tensor(self, stream: int, shape: tuple[int, ...], dtype: Any) -> Any:
        with self._working():
            return self.host_tensor(shape, dtype, pinned=False)

    def free_bytes(self) -> int | None:
        return None

    def capture(self, work: Callable[[], object]) -> Callable[[], object] | None:
        self.captured += 1
        return work

    def _give(self, stream: int, after: Moment | None, work: Callable[[], object]) -> None:
        self._queues[stream].append((after, work))
        if self._schedule == EAGER:
            while any(self._step(each) for each in (COMPUTE, COPY)):
                pass
        elif self._schedule == COPIES_FIRST:
            while self._step(COPY):
                pass
        elif self._schedule == WORK_FIRST:
            while self._step(COMPUTE):
                pass
        elif self._schedule != LATE and self._chance.random() < 0.5:
            self._step(self._chance.choice((COMPUTE, COPY)))

    def _step(self, stream: int) -> bool:
        """Do the next piece of the stream, if there is one and nothing holds it back."""
        queue = self._queues[stream]
        if not queue:
            return False
        after, work = queue[0]
        if after is not None and not after.at_ns:
            return False
        queue.popleft()
        with self._working():
            work()
        return True

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Operations of torch within the context belong to a stream."""
        before, self.works = self.works, True
        try:
            yield
        finally:
            self.works = before
