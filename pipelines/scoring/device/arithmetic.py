"""What scoring on a device has in common: where, in which number type, a model's arithmetic, and graphs that hold it.

`gmm` and `dnn` hold an arithmetic for each kind of model; `scorer` gives it blocks and decides
what is moved when. It knows nothing of frames that are left out, of transfers or of buffers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, NamedTuple

from pipelines.device import COMPUTE, DeviceWork
from profiler.arrays import Array
from profiler.spans import Cost, Linear

if TYPE_CHECKING:
    from torch import Tensor

NAMES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
"""Number types as the settings call them → as torch does."""
SIZES = {"fp32": 4, "fp16": 2, "bf16": 2}

Counts = tuple[int, int, int]  # Work counts of a stage
Give = Callable[[str, Callable[[], object], int, Counts], None]
"""Lets the device do a step, recorded as this stage: for some frames, with these work counts."""


class Placed(NamedTuple):
    """Where and in which number type to compute."""

    work: DeviceWork
    dtype: str
    threads: int = 1

    @property
    def where(self) -> str:
        return self.work.device.where

    @property
    def roof(self) -> str:
        return "" if self.where == "cpu" else f"@{self.where}"

    @property
    def gemm(self) -> str:
        return f"gemm.torch:{NAMES[self.dtype]}{self.roof}"

    def cost(self, operations: dict[str, Linear], traffic: Linear, working_set: float) -> Cost:
        named = {(k if k == self.gemm else k + self.roof): law for k, law in operations.items()}
        device = self.roof.removeprefix("@")
        return Cost(named, traffic, traffic, working_set, threads=self.threads, device=device)


class Arithmetic(ABC):
    """One model's scoring on a device."""

    n_senones: int
    dim: int  # Features of a frame
    context: tuple[int, int] = (0, 0)  # Frames before and after a frame that belong to it
    stages: dict[str, tuple[str, ...]]
    arrays: dict[str, Array]
    """The parameters. Matrices are uploaded in the number type of the products, vectors as float32, int64 as it is."""

    def fitting(self, name: str, dtype: str) -> Array:
        """The parameters `name` as they go into the number type."""
        return self.arrays[name]

    @abstractmethod
    def score(self, p: dict[str, Tensor], x: Tensor, out: Tensor, on: Placed, give: Give) -> None:
        """Give the stages of `x` to the device, one after the other; `out` f32 [n, senones].

        `p`: the parameters there. `x` f32 [n, frames of context · dim], n ≤ MAX_FRAMES, whose rows may overlap.
        """

    @abstractmethod
    def costs(self, frames: int, on: Placed) -> dict[str, Cost]:
        """Cost laws for calls of about `frames` frames."""


def of_piece(work: DeviceWork, ids: dict[str, int], first_frame: int) -> Give:
    """Gives the stages of one piece of a block to the compute stream, one directly after the other."""
    begun = False

    def give(stage: str, step: Callable[[], object], frames: int, counts: Counts) -> None:
        nonlocal begun
        work.work(ids[stage], step, first_frame, frames, counts, directly=begun)
        begun = True

    return give


class Held:
    """Pieces held as graphs of kernels, one launch a stage, by a name that says where they lie and how long they are.

    A graph has fixed addresses, so that there is one for each pair of buffers and each piece of them. Pieces of other
    sizes (the end of an utterance) are given kernel by kernel.
    """

    def __init__(self) -> None:
        self._pieces: dict[Hashable, list[tuple[str, Callable[[], object], int, Counts]]] = {}

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def hold(self, name: Hashable, on: Placed, score: Callable[[Give], None]) -> None:
        """Hold what `score` gives, unless a stage of it cannot be; it has run before, with the same tensors."""
        steps, failed, device = [], False, on.work.device

        def give(stage: str, step: Callable[[], object], frames: int, counts: Counts) -> None:
            nonlocal failed
            replay = None if failed else device.capture(step)
            failed = replay is None
            if replay is not None:
                steps.append((stage, replay, frames, counts))

        device.wait(device.mark(COMPUTE))
        score(give)
        if not failed:
            self._pieces[name] = steps

    def give(self, name: Hashable, give: Give) -> bool:
        """Give the stages of a piece; False where it is not held."""
        for step in self._pieces.get(name, ()):
            give(*step)
        return name in self._pieces
