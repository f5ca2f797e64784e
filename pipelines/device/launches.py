"""What a stage gives to its device: counted where torch dispatches it, while warming up.

Each operation of torch that computes or moves something is taken for one kernel; views and new tensors are none, and
take the host's time all the same. A few operations are several kernels (a sort, a sum in two steps), so that the count
is a lower end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from profiler.costs import Cost, Linear

if TYPE_CHECKING:
    from torch._C import FunctionSchema

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
