"""What a run does on a device, recorded: every copy, piece of work and wait becomes a span.

What a stage gives to its device is counted where torch dispatches it, while warming up. Each operation that computes or
moves something is taken for one kernel; views and new tensors are none, and take the host's time all the same. A few
operations are several kernels (a sort, a sum in two steps), so that the count is a lower end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from pipelines.device.base import COMPUTE, COPY, Device
from profiler.costs import Cost, Linear
from profiler.device.clock import Event
from profiler.device.time import TRANSFER_COST, TRANSFER_WORK, DeviceTimer, Part
from profiler.spans import Lane, NullLane, Recorder

if TYPE_CHECKING:
    from torch import Tensor
    from torch._C import FunctionSchema

Result = TypeVar("Result")

UPLOAD = "transfer.to device"
DOWNLOAD = "transfer.to host"
PREPARING = "device.prepare"
PREPARES = Cost(unmodelled="memory is taken on the device, and graphs of kernels are made")

FREE = frozenset(f"aten.{name}" for name in ("empty", "empty_like", "empty_strided", "new_empty", "_unsafe_view"))
"""Operations, apart from views, that torch dispatches without a kernel."""


class _Operation(Protocol):
    """An operation as torch dispatches it (torch._ops.OpOverload)."""

    _schema: FunctionSchema
    overloadpacket: object

    def __call__(self, *args: object, **kwargs: object) -> object: ...


class Dispatched(NamedTuple):
    """Operations that a piece of work dispatches in torch: kernels, and others (views, new tensors)."""

    kernels: float = 0.0
    others: float = 0.0


class Launches:
    """Kernels by stage, of the pieces of work of one owner that ran counted."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[int, int, Dispatched]] = {}

    def counted(self, stage: int, frames: int, work: Callable[[], object]) -> Callable[[], object]:
        """Wrap `work` on `frames` frames: when it runs, in any thread, its kernels are counted for `stage`."""

        def run() -> None:
            more = dispatched_by(work)
            pieces, over, before = self._found.get(stage, (0, 0, Dispatched()))
            both = Dispatched(before.kernels + more.kernels, before.others + more.others)
            self._found[stage] = pieces + 1, over + frames, both

        return run

    def each(self, stage: int, of_a_frame: bool = False) -> Dispatched:
        """Operations of a piece of work of `stage`, or of one of its frames; none if none were counted."""
        pieces, frames, work = self._found.get(stage, (0, 0, Dispatched()))
        number = max(frames if of_a_frame else pieces, 1)
        return Dispatched(work.kernels / number, work.others / number)

    def renumber(self, before: Mapping[str, int], after: Mapping[str, int]) -> None:
        numbers = {before[name]: after[name] for name in before.keys() & after.keys()}
        self._found = {numbers.get(stage, stage): each for stage, each in self._found.items()}

    def forget(self, stages: Iterable[int]) -> None:
        for stage in stages:
            self._found.pop(stage, None)


def dispatched_by(work: Callable[[], object]) -> Dispatched:
    """Do `work` and count what it asks of torch."""
    from torch.utils._python_dispatch import TorchDispatchMode

    kernels = others = 0

    class Counting(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]

        def __torch_dispatch__(
            self,
            func: _Operation,
            types: object,
            args: tuple[object, ...] = (),
            kwargs: Mapping[str, object] | None = None,
        ) -> object:
            nonlocal kernels, others
            free = _is_free(func)
            kernels, others = kernels + (not free), others + free
            return func(*args, **(kwargs or {}))

    with Counting():
        work()
    return Dispatched(kernels, others)


def _is_free(operation: _Operation) -> bool:
    aliases = (r.alias_info for r in operation._schema.returns)
    views = any(alias is not None and not alias.is_write for alias in aliases)
    return views or str(operation.overloadpacket) in FREE


def launched(cost: Cost, dispatched: Dispatched, held: bool, of: Callable[[float], Linear]) -> Cost:
    """Return `cost` with the launches that the host makes for it; on a processor there are none.

    `held`: all kernels are one graph, launched at once, and each waits for the one before it. `of`: the law of a number
    per piece or per frame. Every piece begins and ends with an event on its stream.
    """
    if not cost.device or not dispatched.kernels:
        return cost
    counts = {"launch": dispatched.kernels, "view": dispatched.others}
    if held:
        counts = {"launch": 1.0, "held": dispatched.kernels}
    calls = {f"{name}@{cost.device}": of(count) for name, count in counts.items() if count}
    return replace(cost, calls={**calls, f"piece@{cost.device}": Linear(fixed=1.0)})


class DeviceWork:
    """One object per device and run; `end_block` is called at the end of each block, before the block's own
    span. Tensors used on both streams must outlive the work on them: allocate them once (torch's allocator
    may give memory away that another stream still reads).
    """

    def __init__(self, device: Device, recorder: Recorder, lane: Lane | NullLane) -> None:
        self.device = device
        self.now = recorder.clock
        self._lane = lane
        self._upload = recorder.stage(UPLOAD, "transfer", TRANSFER_WORK)
        self._download = recorder.stage(DOWNLOAD, "transfer", TRANSFER_WORK)
        self._launch: tuple[int, int, int] | None = None
        self._since = 0
        names = [f"{device.name} {stream}" for stream in device.streams]
        self.timer = DeviceTimer(recorder, device, lane, names)
        self._counting: Launches | None = None
        self._preparing = recorder.stage(PREPARING, "overhead")

    @staticmethod
    def costs() -> dict[str, Cost]:
        return {UPLOAD: TRANSFER_COST, DOWNLOAD: TRANSFER_COST, PREPARING: PREPARES}

    @contextmanager
    def warming(self, launches: Launches) -> Iterator[None]:
        """Make a context in which nothing is recorded, and kernels are counted by stage in `launches`."""
        self._counting = launches
        try:
            with self.timer.silent():
                yield
        finally:
            self._counting = None

    @contextmanager
    def launching(self, stage: int, first_frame: int, frames: int) -> Iterator[None]:
        """Record the host's time in the context, without its waits, as `stage` of the decode lane."""
        self._launch, self._since = (stage, first_frame, frames), self.now()
        try:
            yield
        finally:
            self._pause()
            self._launch = None

    def work(
        self,
        stage: int,
        work: Callable[[], object],
        first_frame: int,
        frames: int,
        counts: tuple[int, int, int] = (0, 0, 0),
        stream: int = COMPUTE,
        directly: bool = False,
        parts: Sequence[Part] = (),
    ) -> None:
        """Give `work` to `stream`: one span of `stage` there, with these work counts.

        `directly`: nothing was given to the stream since the piece before, not even a wait for another stream.
        `parts`: what the device timed within it, which may be filled until `end_block`.
        """
        if self._counting is not None:
            work = self._counting.counted(stage, frames, work)
        timer = self.timer
        if not timer.recording:
            self.device.run(stream, work)
            return
        if self.device.blocking:
            self._pause()
        given, began = timer.begin(stream, directly)
        self.device.run(stream, work)
        timer.end(given, began, stage, stream, first_frame, frames, counts, parts=parts)
        if self.device.blocking:
            self._since = self.now()

    def upload(self, target: Tensor, source: Tensor, first_frame: int, frames: int, directly: bool = False) -> None:
        """Copy host → device. From pinned memory it overlaps; otherwise the host waits for it."""
        self._copy(self._upload, target, source, source, first_frame, frames, directly)

    def download(self, target: Tensor, source: Tensor, first_frame: int, frames: int, directly: bool = False) -> None:
        """Copy device → host. Into pinned memory it overlaps: `wait_for` it before reading."""
        self._copy(self._download, target, source, target, first_frame, frames, directly)

    def mark(self, stream: int) -> Event:
        """An event behind all that was given to `stream`, for `wait_for`."""
        return self.device.mark(stream)

    def then(self, first: int, second: int) -> None:
        """Make later work on stream `second` wait for all earlier work on `first`."""
        self.device.follow(second, self.device.mark(first))

    def wait_for(self, event: Event, stream: int) -> None:
        """Block until `event` of `stream` has happened; the time is charged to what the device runs."""
        self._pause()
        with self.timer.waiting(stream):
            self.device.wait(event)
        self._since = self.now()

    def at_once(self, work: Callable[[], Result]) -> Result:
        """Do `work` on the compute stream, wait for it and return its result: what a block needs and has not, under a
        name of its own.

        It is part of the wall time, as the words wait for it, and no stage's of scoring or search.
        """
        self._pause()
        start, results = self.now(), list[Result]()
        self.device.run(COMPUTE, lambda: results.append(work()))
        self.device.wait(self.device.mark(COMPUTE))
        if self._launch is not None and self.timer.recording:
            _, first_frame, frames = self._launch
            self._lane.put(self._preparing, start, self.now(), first_frame, frames)
        self._since = self.now()
        return results[0]

    def take_notices(self) -> list[str]:
        """New messages on the device for the user, each once."""
        notices = list(dict.fromkeys(self.device.notices))
        self.device.notices.clear()
        return notices

    def end_block(self, first_frame: int, frames: int) -> None:
        self.timer.resolve(first_frame, frames)

    def _pause(self) -> None:
        """The host's own work ends here for a wait."""
        if self._launch is not None:
            stage, first_frame, frames = self._launch
            self._lane.put(stage, self._since, self.now(), first_frame, frames)

    def _copy(
        self, stage: int, target: Tensor, source: Tensor, on_host: Tensor, first_frame: int, frames: int, directly: bool
    ) -> None:
        pinned = self.device.can_pin and bool(on_host.is_pinned())
        # Without page-locked memory the library waits; a thread in a stream's place never has to.
        waits = not pinned and self.device.copies_wait
        size = source.numel() * source.element_size()
        idle = waits or (self.device.blocking and self.timer.recording)
        if idle:
            self._pause()
        with self.timer.transfer(stage, size, pinned, COPY, first_frame, frames, blocking=waits, directly=directly):
            # Never blocking here: the timer waits where waiting is due, behind its own event.
            self.device.run(COPY, lambda: target.copy_(source, non_blocking=True))
        if idle:
            self._since = self.now()
