"""Interface of a device for a recogniser: numbered streams, events and copies; and how failures are classified."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from profiler.device.clock import DeviceClock, Event
from profiler.errors import BadInput

if TYPE_CHECKING:
    import torch
    from torch import Tensor

COMPUTE, COPY = 0, 1
STREAMS = ("compute", "copy")
HOST = "torch-cpu"

OUT_OF_MEMORY = re.compile(
    "out of memory|can't allocate memory|not enough memory|(cublas|cudnn)_status_alloc_failed", re.IGNORECASE
)
"""Messages of torch's allocators and of vendor libraries for which torch has no exception type."""

LOST = re.compile(
    "device-side assert|illegal memory access|unspecified launch failure|device.lost|gpu is lost|fallen off the bus|"
    "ecc error|context is destroyed|launch timed out|misaligned address|illegal instruction|invalid program counter|"
    "hardware stack error|nvlink error|cuda error: unknown error",
    re.IGNORECASE,
)
"""After these nothing on the device can be reached any more by this process (CUDA calls them sticky errors)."""


class DeviceError(BadInput):
    """A device that cannot be used, or not for this, in one sentence."""


class DeviceLost(DeviceError):
    """A device that stopped answering while it was used."""


class Device(DeviceClock):
    """A device with numbered streams; the base has one queue, memory of its own and events of the host's clock.

    `name` as the settings call it, `where` as torch does; `can_pin`: page-locked memory helps. `copies_wait`: a copy
    from or to memory that is not page-locked makes the host wait. `can_capture`: `capture` may come to something.
    """

    can_pin = copies_wait = can_capture = blocking = False

    def __init__(self, name: str, where: str, streams: tuple[str, ...]) -> None:
        self.name, self.where, self.streams = name, where, streams
        self.identity: dict[str, str] = {}
        """What tells it from others, and how it multiplies: name, uuid and the like, as far as torch tells."""
        self.notices: list[str] = []
        """Sentences for the person who watches, taken by whoever shows them."""

    def is_complete(self, event: Event) -> bool:
        return bool(event.at_ns > 0)

    def time_ns(self, event: Event) -> int:
        return int(event.at_ns)

    def rebase(self, event: Event) -> None:
        """Times need no base."""

    def recycle(self, event: Event) -> None:
        """An event costs nothing to keep."""

    def run(self, stream: int, work: Callable[[], object]) -> None:
        """Give what `work` asks of torch to `stream`; returns before it is done."""
        raise NotImplementedError

    def follow(self, stream: int, event: Event) -> None:
        """Make later work on `stream` wait for `event`; the host does not wait."""

    def host_tensor(self, shape: tuple[int, ...], dtype: torch.dtype, *, pinned: bool) -> Tensor:
        """An uninitialised tensor in the host's memory, page-locked if `pinned` and where that is possible."""
        import torch

        return torch.empty(shape, dtype=dtype)

    def device_tensor(self, stream: int, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """An uninitialised tensor on the device, in memory of `stream`: that stream may use it at once.

        Any other stream waits for it first, as it would for work.
        """
        raise NotImplementedError

    def free_bytes(self) -> int | None:
        """Memory that is free on the device, or None where nothing tells."""
        return None

    def capture(self, work: Callable[[], object]) -> Callable[[], object] | None:
        """What does `work` again with one launch, given to the compute stream; None where the device cannot.

        `work` has run there before, and its tensors stay where they are. It must not wait for anything.
        """
        return None


def is_out_of_memory(problem: BaseException) -> bool:
    matches = isinstance(problem, RuntimeError) and OUT_OF_MEMORY.search(str(problem)) is not None
    return matches or type(problem).__name__ == "OutOfMemoryError"


def is_lost(problem: BaseException) -> bool:
    """Whether the device does not answer any more, so that only a new process can use it."""
    return isinstance(problem, RuntimeError) and LOST.search(str(problem)) is not None


def first_line(problem: BaseException) -> str:
    """Return the first line of a library's message, without its full stop."""
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0].rstrip(".")
