"""The processor in a device's place: a thread for each stream, so that all can be run and tested without a device."""

from __future__ import annotations

import _thread
import atexit
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING

from pipelines.device.base import HOST, STREAMS, Device
from profiler.clock import now_ns

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class _HostEvent:
    """A moment in a thread's work; `at_ns` is 0 until it has come."""

    __slots__ = ("_lock", "at_ns")

    def __init__(self) -> None:
        self.at_ns, self._lock = 0, _thread.allocate_lock()
        self._lock.acquire()

    def happen(self) -> None:
        self.at_ns = now_ns()
        self._lock.release()

    def wait(self) -> None:
        with self._lock:
            pass


class _HostStream:
    """A queue of work for one thread. After a failure it only completes events until the error is read."""

    def __init__(self, name: str, threads: int) -> None:
        self.queue: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self.failure: Exception | None = None
        self.is_over = False
        self.thread = threading.Thread(target=self._serve, args=(threads,), name=name, daemon=True)
        _serving.add(self)
        self.thread.start()

    def _serve(self, threads: int) -> None:
        import torch

        # Of this thread's own pool; the host's other threads keep theirs.
        torch.set_num_threads(threads)
        while (work := self.queue.get()) is not None:
            work()

    def guarded(self, work: Callable[[], object]) -> None:
        if self.failure is None and not self.is_over:
            try:
                work()
            except Exception as problem:  # whatever it is, `wait` raises it
                self.failure = problem


_serving: weakref.WeakSet[_HostStream] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """Leave what is still to do, and wait for what is being done.

    A thread that comes out of torch while the interpreter ends is ended inside C++, which aborts the process.
    """
    streams = list(_serving)
    for stream in streams:
        stream.is_over = True
        stream.queue.put(None)
    for stream in streams:
        stream.thread.join()


class HostDevice(Device):
    """The processor in a device's place: a thread for each stream, each computing on `threads` threads."""

    host_time = True

    def __init__(self, threads: int = 1, streams: tuple[str, ...] = STREAMS) -> None:
        super().__init__(HOST, "cpu", streams)
        self._streams = [_HostStream(f"{HOST} {name}", threads) for name in streams]
        for stream in self._streams:
            # A device that nobody has any more ends behind its work; at exit all of them end together.
            weakref.finalize(self, stream.queue.put, None).atexit = False

    def record(self, stream: int) -> _HostEvent:
        event = _HostEvent()
        self._streams[stream].queue.put(event.happen)
        return event

    mark = record

    def wait(self, event: _HostEvent) -> None:
        """Block until the thread has come to it; raises what failed before."""
        event.wait()
        for stream in self._streams:
            failure, stream.failure = stream.failure, None
            if failure is not None:
                raise failure

    def run(self, stream: int, work: Callable[[], object]) -> None:
        chosen = self._streams[stream]
        chosen.queue.put(lambda: chosen.guarded(work))

    def follow(self, stream: int, event: _HostEvent) -> None:
        self._streams[stream].queue.put(event.wait)

    def device_tensor(self, stream: int, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        return self.host_tensor(shape, dtype, pinned=False)

    def free_bytes(self) -> int | None:
        import psutil

        return int(psutil.virtual_memory().available)
