"""How many kernels a stage gives to its device: counted where torch dispatches them, while warming up.

Each operation of torch that computes or moves something is taken for one kernel; views and new tensors are none. A few
operations are several kernels (a sort, a sum in two steps), so that the count is a lower end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from profiler.costs import CALL, STREAM, Cost, Linear, Term

FREE = frozenset(
    f"aten.{name}" for name in ("empty", "empty_like", "empty_strided", "new_empty", "_unsafe_view")
)
"""What torch dispatches without any kernel, beside views."""


class _Alias(Protocol):
    is_write: bool


class _Result(Protocol):
    alias_info: _Alias | None


class _Schema(Protocol):
    returns: Sequence[_Result]


class _Operation(Protocol):
    """An operation as torch dispatches it (torch._ops.OpOverload)."""

    _schema: _Schema
    overloadpacket: object

    def __call__(self, *args: object, **kwargs: object) -> object: ...


class Launches:
    """Kernels by stage, of the pieces of work that ran counted."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[int, int, int]] = {}

    def counted(self, stage: int, frames: int, work: Callable[[], object]) -> Callable[[], object]:
        """`work` on so many frames, whose kernels are counted for `stage` when it runs, in whichever thread."""

        def run() -> None:
            kernels = kernels_of(work)
            pieces, over, before = self._found.get(stage, (0, 0, 0))
            self._found[stage] = pieces + 1, over + frames, before + kernels

        return run

    def each(self, stage: int) -> float:
        """Kernels of a piece of work of `stage`; 0 where none was counted."""
        pieces, _, kernels = self._found.get(stage, (0, 0, 0))
        return kernels / pieces if pieces else 0.0

    def a_frame(self, stage: int) -> float:
        """Kernels of a frame of `stage`; 0 where none was counted."""
        _, frames, kernels = self._found.get(stage, (0, 0, 0))
        return kernels / frames if frames else 0.0

    def forget(self, stages: Iterable[int]) -> None:
        """Count these stages anew."""
        for stage in stages:
            self._found.pop(stage, None)


def kernels_of(work: Callable[[], object]) -> int:
    """Do `work` and count its kernels."""
    from torch.utils._python_dispatch import TorchDispatchMode

    found = 0

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
            nonlocal found
            found += not _is_free(func)
            return func(*args, **(kwargs or {}))

    with Counting():
        work()
    return found


def _is_free(operation: _Operation) -> bool:
    aliases = (r.alias_info for r in operation._schema.returns)
    views = any(alias is not None and not alias.is_write for alias in aliases)
    return views or str(operation.overloadpacket) in FREE


def launched(cost: Cost, launches: Linear) -> Cost:
    """`cost` with so many kernels that the host gives to the device; the processor launches none."""
    if not cost.device or launches == Linear():
        return cost
    most = None if cost.bytes_max == cost.bytes_min else cost.bytes_max
    moved = Term(STREAM, "read", cost.bytes_min, cost.working_set_bytes, most)
    return replace(cost, terms=(moved, Term(CALL, f"launch@{cost.device}", launches)))
