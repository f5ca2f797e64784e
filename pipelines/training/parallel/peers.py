"""The other workers, as one of them sees them: torch.distributed, with what it moves counted and timed.

Written against a process group, so that groups of fewer workers, and several workers in one process, take the same.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch.distributed import ProcessGroup, Work

from pipelines.training.parallel.job import Kind, Report, Span
from profiler.clock import now_ns


class Diary:
    """Time by kind, bytes and delays of gradients; spans only where `traced`. `settled` waits for the device."""

    def __init__(self, settled: Callable[[], None] | None = None) -> None:
        self._settled = settled
        self.begin_piece()

    def begin_piece(self, traced: bool = False) -> None:
        self.traced = traced
        self.ns: Counter[str] = Counter()
        self.delays: Counter[int] = Counter()
        self.bytes = 0
        self.spans: list[Span] = []

    @contextmanager
    def doing(self, kind: Kind, batch: int = -1) -> Iterator[None]:
        """Record the time in the context as `kind`, of minibatch `batch`."""
        begin = now_ns()
        yield
        if self._settled is not None:
            self._settled()
        end = now_ns()
        self.ns[kind] += end - begin
        if self.traced:
            self.spans.append(Span(kind, begin, end, batch))

    def report(self, rank: int) -> Report:
        return Report(rank=rank, ns=dict(self.ns), bytes=self.bytes, delays=dict(self.delays), spans=self.spans)


class Peers:
    """`size` workers, of which this one is `rank`. Vectors are contiguous tensors of the group's device."""

    def __init__(self, group: ProcessGroup, diary: Diary) -> None:
        self.group, self.diary = group, diary
        self.rank, self.size = group.rank(), group.size()

    def mean_(self, vector: torch.Tensor) -> None:
        """Make `vector` the mean of all workers' vectors, in every worker."""
        if self.size == 1:
            return
        with self.diary.doing("wait"):
            self.group.allreduce([vector]).wait()
        # As a ring does it: each worker sends and gets the vector once for summing and once for sharing.
        self.diary.bytes += round(4 * _bytes(vector) * (self.size - 1) / self.size)
        vector.div_(self.size)

    def send(self, vector: torch.Tensor, to: int) -> Work:
        """Begin to send; `vector` must stay as it is until the result's `wait` returns."""
        self.diary.bytes += _bytes(vector)
        work: Work = self.group.send([vector], to, 0)
        return work

    def receive(self, vector: torch.Tensor, source: int) -> Work:
        """Begin to receive into `vector`."""
        self.diary.bytes += _bytes(vector)
        work: Work = self.group.recv([vector], source, 0)
        return work

    def receive_any(self, vector: torch.Tensor) -> int:
        """Wait for the first vector from any worker; return its rank (gloo only)."""
        self.diary.bytes += _bytes(vector)
        work = self.group.recv_anysource([vector], 0)
        work.wait()
        return int(work._source_rank())

    def barrier(self) -> None:
        self.group.barrier().wait()

    def share(self, text: bytes) -> bytes:
        """The first worker's `text`, in every worker."""
        size = torch.tensor([len(text)])
        self.group.broadcast(size, 0).wait()
        shared = _tensor(text) if self.rank == 0 else torch.empty(int(size), dtype=torch.uint8)
        self.group.broadcast(shared, 0).wait()
        return shared.numpy().tobytes()

    def gather(self, text: bytes) -> list[bytes]:
        """Each worker's `text` by rank, in the first one; elsewhere nothing."""
        sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(self.size)]
        self.group.allgather(sizes, torch.tensor([len(text)])).wait()
        if self.rank:
            self.group.send([_tensor(text)], 0, 0).wait()
            return []
        found = [text]
        for rank in range(1, self.size):
            part = torch.empty(int(sizes[rank]), dtype=torch.uint8)
            self.group.recv([part], rank, 0).wait()
            found.append(part.numpy().tobytes())
        return found


def _tensor(text: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(text), dtype=torch.uint8)


def _bytes(vector: torch.Tensor) -> int:
    return vector.numel() * vector.element_size()
