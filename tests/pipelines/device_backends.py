"""What torch.cuda, torch.xpu and torch.mps demand of their callers, on a clock that a test owns.

Each refuses what its original refuses or hangs on, and each launch, event and synchronous copy costs the host its
price. Work runs in order on its stream; times between events are 32-bit milliseconds, as torch gives them.
"""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tests.fake_clock import FakeClock

MS = 1_000_000
SYNCHRONISING_NS = 1_000


class Streams:
    """A backend with streams and events: torch.cuda, unless a subclass says otherwise.

    `launch_ns`, `event_ns`: what giving a kernel and recording a timed event take the host. `launches`, `events`
    (timed ones that were made), `waits`: counted.
    """

    def __init__(self, clock: FakeClock, launch_ns: int = 0, event_ns: int = 0) -> None:
        self.clock = clock
        self.launch_ns = launch_ns
        self.current: Any = None
        self.launches = self.events = self.waits = 0
        backend = self

        class Stream:
            def __init__(self) -> None:
                self.free = 0

            def wait_event(self, event: Any) -> None:
                assert event.at >= 0, "a stream follows an event that was never recorded"
                self.free = max(self.free, event.at)

        class Event:
            def __init__(self, enable_timing: bool = False) -> None:
                self.timed, self.at = enable_timing, -1
                backend.events += enable_timing

            def record(self, stream: Any) -> None:
                backend.clock.advance(event_ns if self.timed else 0)
                self.at = max(backend.clock(), stream.free)

            def query(self) -> bool:
                return self.at <= backend.clock()

            def synchronize(self) -> None:
                backend.waits += 1
                backend.clock.advance(max(self.at - backend.clock(), 0) + SYNCHRONISING_NS)

            def elapsed_time(self, other: Any) -> float:
                return backend.between(self, other)

        self.Stream, self.Event = Stream, Event
        self.default = Stream()

    def between(self, begin: Any, end: Any) -> float:
        """Milliseconds; cudaEventElapsedTime refuses events without times, and unfinished ones."""
        if not (begin.timed and end.timed):
            raise RuntimeError("CUDA error: invalid resource handle")
        if not (begin.query() and end.query()):
            raise RuntimeError("CUDA error: device not ready")
        return float(np.float32((end.at - begin.at) / 1e6))

    def synchronize(self) -> None:
        self.clock.advance(max(self.default.free - self.clock(), 0))

    @contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        before, self.current = self.current, stream
        yield
        self.current = before

    def run(self, ns: int) -> None:
        """A kernel or a copy of `ns` on the current stream."""
        self.launches += 1
        self.clock.advance(self.launch_ns)
        stream = self.current or self.default
        stream.free = max(self.clock(), stream.free) + ns


class Cuda(Streams):
    """torch.cuda with graphs. A pool ends with its last graph, and none is captured into it again; after a capture
    that failed torch (before 2.12) takes it for one still under way."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.replays = 0
        self.handles = 0
        self.broken = False
        self._pools: dict[int, list[weakref.ref[Any]]] = {}
        backend = self

        class CUDAGraph:
            def replay(self) -> None:
                backend.replays += 1

        self.CUDAGraph = CUDAGraph

    def graph_pool_handle(self) -> int:
        self.handles += 1
        return self.handles

    @contextmanager
    def graph(self, made: Any, pool: int, stream: Any, capture_error_mode: str) -> Iterator[None]:
        assert stream is self.current
        assert capture_error_mode == "thread_local"
        if self.broken:
            raise RuntimeError("captures_underway.empty() INTERNAL ASSERT FAILED")
        known = self._pools.setdefault(pool, [])
        if known and not any(each() for each in known):
            raise RuntimeError("it->second->use_count > 0 INTERNAL ASSERT FAILED")
        try:
            yield
        except RuntimeError:
            self.broken = True
            raise
        known.append(weakref.ref(made))


class Xpu(Streams):
    """torch.xpu: events must be complete before the time between them is read."""

    def between(self, begin: Any, end: Any) -> float:
        if not (begin.timed and end.timed):
            raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
        if not (begin.query() and end.query()):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        return float(np.float32((end.at - begin.at) / 1e6))


class Mps:
    """torch.mps: one queue, whose events are of no use (`pipelines.device.accelerator` says why)."""

    def __init__(self, clock: FakeClock, launch_ns: int = 0) -> None:
        self.clock, self.launch_ns = clock, launch_ns
        self.free = 0
        self.launches = self.waits = 0

    def synchronize(self) -> None:
        self.waits += 1
        self.clock.advance(max(self.free - self.clock(), 0) + SYNCHRONISING_NS)

    def run(self, ns: int) -> None:
        self.launches += 1
        self.clock.advance(self.launch_ns)
        self.free = max(self.clock(), self.free) + ns


class FakeTensor:
    """A tensor whose copy takes `ns`; one to or from pageable memory makes the host wait, whatever it asks for."""

    def __init__(self, backend: Any, shape: tuple[int, ...], pinned: bool, ns: int) -> None:
        self.backend, self.shape, self.pinned, self.ns = backend, shape, pinned, ns

    def is_pinned(self) -> bool:
        return self.pinned

    def numel(self) -> int:
        return int(np.prod(self.shape))

    def element_size(self) -> int:
        return 4

    def copy_(self, source: Any, non_blocking: bool) -> None:
        assert non_blocking
        self.backend.run(max(self.ns, source.ns))
