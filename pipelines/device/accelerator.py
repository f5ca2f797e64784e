"""Torch's devices: with streams and timed events (CUDA, ROCm, XPU), or with one queue (MPS).

Events that are timed come from a pool, those that only order are not timed: making one costs the host some
microseconds. A device with one queue is timed by the host's clock: its events would do, but waiting for an event and
asking for its time afterwards is a deadlock of torch there.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from pipelines.availability import availability
from pipelines.device import base
from pipelines.device.base import COMPUTE, HOST, STREAMS, Device, DeviceError, is_lost
from pipelines.device.host import HostDevice
from profiler.clock import now_ns
from profiler.device.clock import Event
from profiler.machine import accelerator
from profiler.machine.roofs.device import free_memory

if TYPE_CHECKING:
    import torch
    from torch import Tensor

P = ParamSpec("P")
Result = TypeVar("Result")
Own = TypeVar("Own", bound="_Torch")

REBASE_NS = 1_000_000_000
"""torch gives times between events as 32-bit milliseconds: over a second that is 60 ns, over an hour 0.2 ms.
So times are counted from an event no longer ago than this."""


def _translating_losses(method: Callable[Concatenate[Own, P], Result]) -> Callable[Concatenate[Own, P], Result]:
    """`method`; where the device is lost, which any call may be the first to notice, DeviceLost in one sentence."""

    @functools.wraps(method)
    def guarded(self: Own, *args: P.args, **kwargs: P.kwargs) -> Result:
        try:
            return method(self, *args, **kwargs)
        except RuntimeError as problem:
            raise self._translated(problem) from None

    return guarded


class _Torch(Device):
    """What torch's devices have in common. `backend`: the module, torch.cuda, torch.xpu or torch.mps."""

    copies_wait = True

    def __init__(self, name: str, backend: Any, empty: Callable[..., Tensor]) -> None:
        super().__init__(name, name, STREAMS)
        self._backend, self._empty = backend, empty

    def free_bytes(self) -> int | None:
        """Memory that the driver can still give, and what torch holds of it unused; None where nothing tells."""
        free = free_memory(self._backend)
        if free is None:
            return None
        reserved, used = (getattr(self._backend, f"memory_{kind}", lambda: 0) for kind in ("reserved", "allocated"))
        return free + max(int(reserved()) - int(used()), 0)

    def _translated(self, problem: RuntimeError) -> Exception:
        """Return a failure of the device as one sentence, and any other unchanged."""
        if not is_lost(problem):
            return problem
        lost = base.DeviceLost(
            f"The device {self.name} stopped answering ({base.first_line(problem)}); what was recorded so far is "
            "kept. Start again, and choose device = cpu if it happens again."
        )
        lost.__cause__ = problem
        return lost

    @_translating_losses
    def run(self, stream: int, work: Callable[[], object]) -> None:
        with self._on(stream):
            work()

    def host_tensor(self, shape: tuple[int, ...], dtype: torch.dtype, *, pinned: bool) -> Tensor:
        return self._empty(shape, dtype=dtype, pin_memory=pinned and self.can_pin)

    @_translating_losses
    def device_tensor(self, stream: int, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """An uninitialised tensor in the stream's own memory; that of torch's own stream no other stream waits for."""
        with self._on(stream):
            return self._empty(shape, dtype=dtype, device=self.where)

    def _on(self, stream: int) -> AbstractContextManager[object]:
        """Make a context in which torch queues its work on `stream`."""
        return nullcontext()


class TorchDevice(_Torch):
    """A device of torch with streams and timed events (tests bring a `backend` of their own). `empty`: torch.empty."""

    host_time = False
    can_pin = True

    def __init__(self, name: str, backend: Any, empty: Callable[..., Tensor]) -> None:
        super().__init__(name, backend, empty)
        self._streams = [backend.Stream() for _ in STREAMS]
        self.can_capture = hasattr(backend, "CUDAGraph")
        self._spare: list[Event] = []
        self._pool: Any = None
        self._graphs: weakref.WeakSet[Any] = weakref.WeakSet()
        # Work given before this, on torch's own stream, comes first.
        backend.synchronize()
        # Nobody else asks for the base any more: it may be used again when it is none.
        self._base, self._base_ns, self._base_is_spare = self.record(0), 0, True
        self._base.synchronize()

    @_translating_losses
    def record(self, stream: int) -> Event:
        event = self._spare.pop() if self._spare else self._backend.Event(enable_timing=True)
        event.record(self._streams[stream])
        return event

    @_translating_losses
    def mark(self, stream: int) -> Event:
        event = self._backend.Event()
        event.record(self._streams[stream])
        return event

    @_translating_losses
    def is_complete(self, event: Event) -> bool:
        return bool(event.query())

    @_translating_losses
    def wait(self, event: Event) -> None:
        event.synchronize()

    @_translating_losses
    def time_ns(self, event: Event) -> int:
        """When the event happened, counted from the device's opening."""
        return self._base_ns + round(float(self._base.elapsed_time(event)) * 1e6)

    def rebase(self, event: Event) -> None:
        """Count times from `event` on if the base is long ago; times of earlier events are no longer needed."""
        at = self.time_ns(event)
        if at - self._base_ns > REBASE_NS:
            if self._base_is_spare:
                self._spare.append(self._base)
            self._base, self._base_ns, self._base_is_spare = event, at, False

    def recycle(self, event: Event) -> None:
        """Take back a timed event that is no longer needed."""
        if event is self._base:
            self._base_is_spare = True
        else:
            self._spare.append(event)

    @_translating_losses
    def follow(self, stream: int, event: Event) -> None:
        self._streams[stream].wait_event(event)

    def capture(self, work: Callable[[], object]) -> Callable[[], object] | None:
        """A graph of CUDA; all graphs share one pool of memory, as they run one after the other.

        A pool ends with its last graph: torch refuses to capture into it again. After a capture that failed no other
        is tried: before 2.12 torch takes it for one that is still under way.
        """
        if not self.can_capture:
            return None
        if not self._graphs:
            self._pool = self._backend.graph_pool_handle()
        graph = self._backend.CUDAGraph()
        try:
            on = {"pool": self._pool, "stream": self._streams[COMPUTE], "capture_error_mode": "thread_local"}
            with self._on(COMPUTE), self._backend.graph(graph, **on):
                work()
        except RuntimeError as problem:
            if base.is_out_of_memory(problem) or is_lost(problem):
                raise self._translated(problem) from None
            self.can_capture = False
            self.notices.append(
                f"{self.name} launches each kernel by itself, since they cannot be held as a graph: "
                f"{base.first_line(problem)}."
            )
            return None
        self._graphs.add(graph)
        return graph.replay  # type: ignore[no-any-return]

    def _on(self, stream: int) -> AbstractContextManager[object]:
        return self._backend.stream(self._streams[stream])  # type: ignore[no-any-return]


@dataclass(slots=True)
class _QueueEvent:
    """A moment of the one queue; `at_ns` is 0 until the host has seen it."""

    at_ns: int = 0


class QueueDevice(_Torch):
    """A device with one queue that works in order (MPS), timed by the host's clock around waiting for all of it.

    So recorded work is waited for piece by piece; without a recorder nothing waits. It shares the host's memory:
    there is nothing to pin.
    """

    host_time = True
    blocking = True

    def __init__(
        self, name: str, backend: Any, empty: Callable[..., Tensor], clock: Callable[[], int] = now_ns
    ) -> None:
        super().__init__(name, backend, empty)
        self._clock = clock
        backend.synchronize()

    def record(self, stream: int) -> _QueueEvent:
        self._synchronize()
        return _QueueEvent(self._clock())

    def mark(self, stream: int) -> _QueueEvent:
        return _QueueEvent()

    def wait(self, event: _QueueEvent) -> None:
        if not event.at_ns:
            self._synchronize()
            event.at_ns = self._clock()

    @_translating_losses
    def _synchronize(self) -> None:
        self._backend.synchronize()


def open_device(name: str, threads: int = 1) -> Device:
    """Open a device by its name in the settings; DeviceError with the reason where it cannot be used.

    `threads`: on the processor, how many each stream computes on. Products of float32 are computed in float32 from
    then on, whatever the environment says (NVIDIA's containers set TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1): the roofs
    are those of float32.
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

    exact_products()
    backend = getattr(torch, name)
    made = TorchDevice if hasattr(backend, "Stream") else QueueDevice
    device = made(name, backend, torch.empty)
    device.identity = identity(name)
    return device


def identity(name: str) -> dict[str, str]:
    """What torch tells of its present device `name`: name, uuid, capability, memory, how float32 is multiplied.

    `nvml`: the number by which NVML, and so a session's `gpuN` samples, knows it; CUDA counts in another order.
    """
    import torch

    with _older_settings():
        found = {"products": torch.get_float32_matmul_precision()}
    if version := torch.version.cuda or getattr(torch.version, "hip", None):
        found["runtime"] = str(version)
    tell = getattr(getattr(torch, name), "get_device_properties", None)
    about = tell(torch.accelerator.current_accelerator()) if tell is not None else None
    for key in ("name", "uuid", "total_memory", "driver_version"):
        if (value := getattr(about, key, None)) is not None:
            found[key] = str(value)
    if (major := getattr(about, "major", None)) is not None:
        found["capability"] = f"{major}.{getattr(about, 'minor', 0)}"
    place = accelerator.place_of(found.get("uuid", ""), [each.get("uuid", "") for each in accelerator.gpus()])
    if place is not None:
        found["nvml"] = f"gpu{place}"
    return found


def exact_products() -> None:
    """Let torch multiply float32 in float32, not in TF32."""
    import torch

    with _older_settings():
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.set_float32_matmul_precision("highest")


@contextmanager
def _older_settings() -> Iterator[None]:
    """Without the warning of torch 2.9 to 2.12 that there are newer settings for this, which older ones lack."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Please use the new API settings", UserWarning)
        yield
