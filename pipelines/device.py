"""Devices as torch knows them: streams, events and copies, in the form that `profiler.device.time` reads.

`open_device` gives one object per kind of device. On "torch-cpu" threads stand in for the streams, so that
whatever runs on a device can be run, overlapped and tested without one. `DeviceWork` wraps what a recogniser
does on a device (copies with their bytes, work, waits), so that every piece becomes a span. Which devices a
machine has is told by `pipelines.availability`. torch is imported only when a device is opened.
"""

from __future__ import annotations

import _thread
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol

from pipelines.availability import availability
from profiler.clock import now_ns
from profiler.device.clock import DeviceClock, Event
from profiler.device.time import TRANSFER_COST, TRANSFER_WORK, DeviceTimer
from profiler.errors import BadInput
from profiler.spans import Cost, Lane, NullLane, Recorder

if TYPE_CHECKING:
    import torch
    from torch import Tensor

COMPUTE, COPY = 0, 1
STREAMS = ("compute", "copy")
HOST = "torch-cpu"

UPLOAD = "transfer.to device"
DOWNLOAD = "transfer.to host"

REBASE_NS = 1_000_000_000
"""torch gives times between events as 32-bit milliseconds: over a second that is 60 ns, over an hour 0.2 ms.
So times are counted from an event no longer ago than this."""

OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")
"""What torch's allocators say where they have no exception of their own (MPS, the processor)."""


class DeviceError(BadInput):
    """A device that cannot be used, or not for this, in one sentence."""


class Device(DeviceClock, Protocol):
    """A device with numbered streams.

    `name` as the settings call it, `where` as torch does; `can_pin`: page-locked memory helps.
    """

    name: str
    where: str
    streams: tuple[str, ...]
    can_pin: bool

    def run(self, stream: int, work: Callable[[], object]) -> None:
        """Give what `work` asks of torch to `stream`; returns before it is done."""

    def follow(self, stream: int, event: Event) -> None:
        """What is given to `stream` from now on waits for `event`; the host does not."""

    def host_tensor(self, shape: tuple[int, ...], dtype: torch.dtype, *, pinned: bool) -> Tensor:
        """An uninitialised tensor in the host's memory, page-locked where that is asked for and possible."""

    def free_bytes(self) -> int | None:
        """Memory that is free on the device, or None where nothing tells."""


class _HostEvent:
    """A moment in a thread's work; `at_ns` is 0 until it has come."""

    __slots__ = ("_lock", "at_ns")

    def __init__(self) -> None:
        self.at_ns = 0
        self._lock = _thread.allocate_lock()
        self._lock.acquire()

    def happen(self) -> None:
        self.at_ns = now_ns()
        self._lock.release()

    def wait(self) -> None:
        with self._lock:
            pass


class _HostStream:
    """Work that one thread does in order. After a failure it only lets events happen, until asked why."""

    def __init__(self) -> None:
        self.queue: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self.failure: Exception | None = None

    def serve(self, threads: int) -> None:
        import torch

        # Of this thread's own pool; the host's other threads keep theirs.
        torch.set_num_threads(threads)
        while (work := self.queue.get()) is not None:
            work()

    def guarded(self, work: Callable[[], object]) -> None:
        if self.failure is None:
            try:
                work()
            except Exception as problem:
                self.failure = problem


class HostDevice:
    """The processor in a device's place: a thread for each stream, each computing on `threads` threads."""

    name = HOST
    where = "cpu"
    host_time = True
    can_pin = False

    def __init__(self, threads: int = 1, streams: tuple[str, ...] = STREAMS) -> None:
        self.streams = streams
        self._streams = [_HostStream() for _ in streams]
        for name, stream in zip(streams, self._streams, strict=True):
            serve = threading.Thread(
                target=stream.serve, args=(threads,), name=f"{HOST} {name}", daemon=True
            )
            serve.start()
            weakref.finalize(self, stream.queue.put, None)

    def record(self, stream: int) -> _HostEvent:
        """Enqueue a reading of the clock."""
        event = _HostEvent()
        self._streams[stream].queue.put(event.happen)
        return event

    def done(self, event: _HostEvent) -> bool:
        """Whether the thread has come to it."""
        return event.at_ns > 0

    def wait(self, event: _HostEvent) -> None:
        """Block until the thread has come to it; raises what failed before."""
        event.wait()
        for stream in self._streams:
            failure, stream.failure = stream.failure, None
            if failure is not None:
                raise failure

    def time_ns(self, event: _HostEvent) -> int:
        """When the thread came to it."""
        return event.at_ns

    def run(self, stream: int, work: Callable[[], object]) -> None:
        """Hand `work` to the stream's thread."""
        chosen = self._streams[stream]
        chosen.queue.put(lambda: chosen.guarded(work))

    def follow(self, stream: int, event: _HostEvent) -> None:
        """The stream's thread waits for `event`."""
        self._streams[stream].queue.put(event.wait)

    def host_tensor(self, shape: tuple[int, ...], dtype: torch.dtype, *, pinned: bool) -> Tensor:
        """An uninitialised tensor; there is nothing to pin it for."""
        import torch

        return torch.empty(shape, dtype=dtype)

    def free_bytes(self) -> int | None:
        """Memory that the machine can still give."""
        import psutil

        return int(psutil.virtual_memory().available)


class TorchDevice:
    """A device of torch with timed events.

    `backend`: its module, torch.cuda, torch.xpu or torch.mps (tests bring their own); `empty`: torch.empty.
    Where the backend has no streams (MPS) all work goes to its one queue, in order.
    """

    host_time = False

    def __init__(
        self,
        name: str,
        backend: Any,
        empty: Callable[..., Tensor],
        streams: tuple[str, ...] = STREAMS,
    ) -> None:
        self.name = self.where = name
        self.streams = streams
        self._backend, self._empty = backend, empty
        has_streams = hasattr(backend, "Stream")
        # Where there is one queue, host and device share their memory too (Apple's GPUs).
        self.can_pin = has_streams
        self._streams = [backend.Stream() for _ in streams] if has_streams else None
        # Work given before this, on torch's own stream, comes first.
        backend.synchronize()
        self._base_ns = 0
        self._base = self.record(0)
        self._base.synchronize()

    def record(self, stream: int) -> Event:
        """Enqueue a timed event."""
        event = self._backend.Event(enable_timing=True)
        event.record(*self._queue(stream))
        return event

    def done(self, event: Event) -> bool:
        """Whether the event has happened."""
        return bool(event.query())

    def wait(self, event: Event) -> None:
        """Block the host until the event has happened."""
        event.synchronize()

    def time_ns(self, event: Event) -> int:
        """When the event happened, counted from the device's opening."""
        since = round(self._base.elapsed_time(event) * 1e6)
        at: int = self._base_ns + since
        if since > REBASE_NS:
            self._base, self._base_ns = event, at
        return at

    def run(self, stream: int, work: Callable[[], object]) -> None:
        """Do `work` now: torch gives it to `stream` and does not wait for it."""
        with self._on(stream):
            work()

    def follow(self, stream: int, event: Event) -> None:
        """What is given to `stream` from now on waits for `event`."""
        for queue in self._queue(stream):
            queue.wait_event(event)

    def host_tensor(self, shape: tuple[int, ...], dtype: torch.dtype, *, pinned: bool) -> Tensor:
        """An uninitialised tensor in the host's memory, page-locked where asked for."""
        return self._empty(shape, dtype=dtype, pin_memory=pinned and self.can_pin)

    def free_bytes(self) -> int | None:
        """Memory that the driver can still give, where the backend tells."""
        tell = getattr(self._backend, "mem_get_info", None)
        return int(tell()[0]) if tell is not None else None

    def _on(self, stream: int) -> AbstractContextManager[object]:
        if self._streams is None:
            return nullcontext()
        context: AbstractContextManager[object] = self._backend.stream(self._streams[stream])
        return context

    def _queue(self, stream: int) -> tuple[Any, ...]:
        """The stream itself, or nothing where there is only one."""
        return () if self._streams is None else (self._streams[stream],)


def open_device(name: str, threads: int = 1) -> Device:
    """Open a device by its name in the settings; DeviceError with the reason where it cannot be used.

    `threads`: on the processor, how many each stream computes on.
    """
    if name == HOST:
        return HostDevice(threads)
    known = {found.name: found for found in availability()}
    if name not in known or name == "cpu":
        choices = ", ".join(n for n in known if n != "cpu")
        raise DeviceError(f"device: there is no {name!r}; choose one of {choices}")
    if not known[name].available:
        raise DeviceError(f"device {name} cannot be used: {known[name].reason}; choose cpu")
    import torch

    return TorchDevice(name, getattr(torch, name), torch.empty)


def is_out_of_memory(problem: BaseException) -> bool:
    """Whether torch failed because the device's memory is full."""
    kind = type(problem).__name__ == "OutOfMemoryError"
    text = str(problem).lower()
    return kind or (isinstance(problem, RuntimeError) and any(s in text for s in OUT_OF_MEMORY))


class DeviceWork:
    """What a run does on a device, recorded: copies, work and waits.

    One object per device and run; `end_block` is called at the end of each block, before the block's own
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

    @staticmethod
    def costs() -> dict[str, Cost]:
        """Cost laws of the copies."""
        return {UPLOAD: TRANSFER_COST, DOWNLOAD: TRANSFER_COST}

    @contextmanager
    def launching(self, stage: int, first_frame: int, frames: int) -> Iterator[None]:
        """What the host does in the context is `stage` (of the decode lane), but for its waits."""
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
    ) -> None:
        """Give `work` to `stream`: one span of `stage` there, with these work counts."""
        with self.timer.work(stage, stream, first_frame, frames, counts):
            self.device.run(stream, work)

    def upload(
        self, target: Tensor, source: Tensor, first_frame: int, frames: int, stream: int = COPY
    ) -> None:
        """Copy host → device. From pinned memory it overlaps; otherwise the host waits for it."""
        self._copy(self._upload, target, source, source, first_frame, frames, stream)

    def download(
        self, target: Tensor, source: Tensor, first_frame: int, frames: int, stream: int = COPY
    ) -> None:
        """Copy device → host. Into pinned memory it overlaps: `wait_for` it before reading."""
        self._copy(self._download, target, source, target, first_frame, frames, stream)

    def mark(self, stream: int) -> Event:
        """An event behind all that was given to `stream`, for `follow` and `wait_for`."""
        return self.device.record(stream)

    def follow(self, stream: int, event: Event) -> None:
        """What is given to `stream` from now on waits for `event`; call it before `work` or a copy."""
        self.device.follow(stream, event)

    def then(self, first: int, second: int) -> None:
        """What is given to stream `second` from now on waits for all that was given to `first`."""
        self.device.follow(second, self.device.record(first))

    def wait_for(self, event: Event, stream: int) -> None:
        """Block until `event` of `stream` has happened; the time is charged to what the device runs."""
        self._pause()
        with self.timer.waiting(stream):
            self.device.wait(event)
        self._since = self.now()

    def end_block(self, first_frame: int, frames: int) -> None:
        """Record what is done by now; these are the frames of the block that ends."""
        self.timer.resolve(first_frame, frames)

    def _pause(self) -> None:
        """The host's own work ends here for a wait."""
        if self._launch is not None:
            stage, first_frame, frames = self._launch
            self._lane.put(stage, self._since, self.now(), first_frame, frames)

    def _copy(
        self,
        stage: int,
        target: Tensor,
        source: Tensor,
        on_host: Tensor,
        first_frame: int,
        frames: int,
        stream: int,
    ) -> None:
        pinned = self.device.can_pin and bool(on_host.is_pinned())
        # Without page-locked memory the library waits; a thread in a stream's place never has to.
        blocking = not pinned and not self.device.host_time
        size = source.numel() * source.element_size()
        if blocking:
            self._pause()
        with self.timer.transfer(
            stage, size, pinned, stream, first_frame, frames, blocking=blocking
        ):
            # Never blocking here: the timer waits where waiting is due, behind its own event.
            self.device.run(stream, lambda: target.copy_(source, non_blocking=True))
        if blocking:
            self._since = self.now()
