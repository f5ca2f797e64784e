"""Devices as torch knows them: streams, events and copies, in the form that `profiler.device_time` reads.

`open_device` gives one object per kind of device; a CPU stands in for a device with the same calls, all of
them synchronous, so that whatever runs on a device can be run and tested without one. `DeviceWork` wraps
what a scorer does on a device (copies with their bytes, work, waits), so that every piece becomes a span.
torch is imported only when a device is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from profiler.clock import now_ns
from profiler.device_clock import DeviceClock
from profiler.device_time import TRANSFER_COST, TRANSFER_WORK, DeviceTimer
from profiler.errors import BadInput
from profiler.spans import Cost, Lane, NullLane, Recorder

COMPUTE, COPY = 0, 1
STREAMS = ("compute", "copy")

UPLOAD = "transfer.to device"
DOWNLOAD = "transfer.to host"

REBASE_NS = 1_000_000_000
"""torch gives times between events as 32-bit milliseconds: over a second that is 60 ns, over an hour 0.2 ms.
So times are counted from an event no longer ago than this."""


class DeviceError(BadInput):
    """A device that this machine or this build of torch does not have, in one sentence."""


@dataclass(frozen=True)
class Availability:
    """Whether torch can use a kind of device here; `reason` names it or says why not."""

    name: str
    available: bool
    reason: str


class Device(DeviceClock, Protocol):
    """A device with numbered streams. `name` is what torch calls it; `can_pin`: page-locked memory helps."""

    name: str
    streams: tuple[str, ...]
    can_pin: bool

    def on(self, stream: int) -> AbstractContextManager[Any]:
        """Work given to torch in the context goes to `stream`."""

    def follow(self, stream: int, event: Any) -> None:
        """What is given to `stream` from now on waits for `event`; the host does not."""

    def tensor(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """An uninitialised tensor on the device."""

    def host_tensor(self, shape: tuple[int, ...], dtype: Any, *, pinned: bool) -> Any:
        """An uninitialised tensor in the host's memory, page-locked where that is asked for and possible."""


class HostDevice:
    """The CPU in a device's place: everything is done when the call returns."""

    name = "cpu"
    synchronous = True
    can_pin = False

    def __init__(self, streams: tuple[str, ...] = STREAMS) -> None:
        self.streams = streams

    def record(self, stream: int) -> int:
        """Now."""
        return now_ns()

    def done(self, event: int) -> bool:
        """All is done."""
        return True

    def wait(self, event: int) -> None:
        """Nothing to wait for."""

    def time_ns(self, event: int) -> int:
        """When `record` was called."""
        return event

    def on(self, stream: int) -> AbstractContextManager[Any]:
        """There is one stream of work."""
        return nullcontext()

    def follow(self, stream: int, event: int) -> None:
        """All before is done."""

    def tensor(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """An uninitialised tensor."""
        import torch

        return torch.empty(shape, dtype=dtype)

    def host_tensor(self, shape: tuple[int, ...], dtype: Any, *, pinned: bool) -> Any:
        """An uninitialised tensor; there is nothing to pin it for."""
        return self.tensor(shape, dtype)


class TorchDevice:
    """A device of torch with streams and timed events.

    `backend`: its module, torch.cuda or torch.xpu (tests bring their own); `empty`: torch.empty.
    """

    synchronous = False
    can_pin = True

    def __init__(
        self,
        name: str,
        backend: Any,
        empty: Callable[..., Any],
        streams: tuple[str, ...] = STREAMS,
    ) -> None:
        self.name = name
        self.streams = streams
        self._backend, self._empty = backend, empty
        self._streams = [backend.Stream() for _ in streams]
        # Work given before this, on torch's own stream, comes first.
        backend.synchronize()
        self._base_ns = 0
        self._base = self.record(0)
        self._base.synchronize()

    def record(self, stream: int) -> Any:
        """Enqueue a timed event."""
        event = self._backend.Event(enable_timing=True)
        event.record(self._streams[stream])
        return event

    def done(self, event: Any) -> bool:
        """Whether the event has happened."""
        return bool(event.query())

    def wait(self, event: Any) -> None:
        """Block the host until the event has happened."""
        event.synchronize()

    def time_ns(self, event: Any) -> int:
        """When the event happened, counted from the device's opening."""
        since = round(self._base.elapsed_time(event) * 1e6)
        at = self._base_ns + since
        if since > REBASE_NS:
            self._base, self._base_ns = event, at
        return at

    def on(self, stream: int) -> AbstractContextManager[Any]:
        """Work given to torch in the context goes to `stream`."""
        context: AbstractContextManager[Any] = self._backend.stream(self._streams[stream])
        return context

    def follow(self, stream: int, event: Any) -> None:
        """What is given to `stream` from now on waits for `event`."""
        self._streams[stream].wait_event(event)

    def tensor(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """An uninitialised tensor on the device."""
        return self._empty(shape, dtype=dtype, device=self.name)

    def host_tensor(self, shape: tuple[int, ...], dtype: Any, *, pinned: bool) -> Any:
        """An uninitialised tensor in the host's memory, page-locked where asked for."""
        return self._empty(shape, dtype=dtype, pin_memory=pinned)


def availability() -> list[Availability]:
    """What torch can use here, the CPU first; imports torch."""
    import torch

    version = f"torch {torch.__version__}"
    found = [Availability("cpu", True, version)]
    cuda = torch.cuda
    if cuda.is_available():
        names = ", ".join(cuda.get_device_name(i) for i in range(cuda.device_count()))
        found.append(Availability("cuda", True, f"{names} ({version})"))
    elif torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        found.append(Availability("cuda", False, f"{version} is a build without CUDA or ROCm"))
    else:
        found.append(Availability("cuda", False, f"{version} finds no CUDA device"))
    xpu = getattr(torch, "xpu", None)
    here = xpu is not None and xpu.is_available()
    found.append(
        Availability("xpu", here, version if here else f"{version} finds no Intel GPU (XPU)")
    )
    mps = torch.backends.mps.is_available()
    reason = "found, but not yet used here" if mps else f"{version} finds no Apple GPU (MPS)"
    found.append(Availability("mps", False, reason))
    return found


def open_device(name: str) -> Device:
    """Open a device by its kind ("cpu", "cuda", "xpu"); DeviceError with the reason where there is none."""
    if name == "cpu":
        return HostDevice()
    known = {found.name: found for found in availability()}
    if name not in known:
        raise DeviceError(f"device: there is no {name!r}; choose one of {', '.join(known)}")
    if not known[name].available:
        raise DeviceError(f"device {name} cannot be used: {known[name].reason}; choose cpu")
    import torch

    return TorchDevice(name, getattr(torch, name), torch.empty)


class DeviceWork:
    """What a run does on a device, recorded: copies, work and waits.

    One object per run; `end_block` is called at the end of each block, before the block's own span. Tensors
    used on both streams must outlive the work on them: allocate them once (torch's allocator may give
    memory away that another stream still reads).
    """

    def __init__(self, device: Device, recorder: Recorder, lane: Lane | NullLane) -> None:
        self.device = device
        self._upload = recorder.stage(UPLOAD, "transfer", TRANSFER_WORK)
        self._download = recorder.stage(DOWNLOAD, "transfer", TRANSFER_WORK)
        names = [f"{device.name} {stream}" for stream in device.streams]
        self.timer = DeviceTimer(recorder, device, lane, names)

    @staticmethod
    def costs() -> dict[str, Cost]:
        """Cost laws of the copies."""
        return {UPLOAD: TRANSFER_COST, DOWNLOAD: TRANSFER_COST}

    @contextmanager
    def work(
        self,
        stage: int,
        first_frame: int,
        frames: int,
        work: tuple[int, int, int] = (0, 0, 0),
        stream: int = COMPUTE,
    ) -> Iterator[None]:
        """What torch is given in the context is one span of `stage` on `stream`."""
        with self.device.on(stream), self.timer.work(stage, stream, first_frame, frames, work):
            yield

    def upload(
        self, target: Any, source: Any, first_frame: int, frames: int, stream: int = COPY
    ) -> None:
        """Copy host → device. From pinned memory it overlaps; otherwise the host waits for it."""
        self._copy(self._upload, target, source, source, first_frame, frames, stream)

    def download(
        self, target: Any, source: Any, first_frame: int, frames: int, stream: int = COPY
    ) -> None:
        """Copy device → host. Into pinned memory it overlaps: `wait_for` it before reading."""
        self._copy(self._download, target, source, target, first_frame, frames, stream)

    def mark(self, stream: int) -> Any:
        """An event behind all that was given to `stream`, for `follow` and `wait_for`."""
        return self.device.record(stream)

    def follow(self, stream: int, event: Any) -> None:
        """What is given to `stream` from now on waits for `event`; call it before `work` or a copy."""
        self.device.follow(stream, event)

    def wait_for(self, event: Any, stream: int) -> None:
        """Block until `event` of `stream` has happened; the time is charged to what the device runs."""
        with self.timer.waiting(stream):
            self.device.wait(event)

    def end_block(self, first_frame: int, frames: int) -> None:
        """Record what is done by now; these are the frames of the block that ends."""
        self.timer.resolve(first_frame, frames)

    def _copy(
        self,
        stage: int,
        target: Any,
        source: Any,
        on_host: Any,
        first_frame: int,
        frames: int,
        stream: int,
    ) -> None:
        pinned = self.device.can_pin and bool(on_host.is_pinned())
        size = source.numel() * source.element_size()
        with (
            self.device.on(stream),
            self.timer.transfer(
                stage, size, pinned, stream, first_frame, frames, blocking=not pinned
            ),
        ):
            # Never blocking here: the timer waits where waiting is due, behind its own event.
            target.copy_(source, non_blocking=True)
