"""What scoring on a device has in common: where, in which number type, a model's arithmetic, and graphs that hold it.

`gmm` and `dnn` hold an arithmetic for each kind of model; `scorer` gives it blocks and decides
what is moved when. It knows nothing of frames that are left out, of transfers or of buffers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pipelines.device import COMPUTE, DeviceWork
from profiler.arrays import Array
from profiler.spans import Cost, Linear

if TYPE_CHECKING:
    from torch import Tensor

NAMES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
"""Number types as the settings call them → as torch does."""
SIZES = {"fp32": 4, "fp16": 2, "bf16": 2}


@dataclass(frozen=True)
class Placed:
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


@dataclass
class Stages(ABC):
    """Takes the stages of a block's arithmetic, one after the other, for the device and number type `on`."""

    on: Placed

    @abstractmethod
    def give(self, stage: str, step: Callable[[], object], frames: int, work: int, more: int = 0) -> None:
        """Let the device do `step`, recorded as `stage`: for `frames` frames, with two work counts."""


@dataclass
class PieceStages(Stages):
    """Submits the stages of one piece of a block to the device's compute stream, one directly after the other."""

    ids: dict[str, int]
    first_frame: int
    begun: bool = False

    def give(self, stage: str, step: Callable[[], object], frames: int, work: int, more: int = 0) -> None:
        counts = work, more, 0
        directly, self.begun = self.begun, True
        self.on.work.work(self.ids[stage], step, self.first_frame, frames, counts, directly=directly)


class Arithmetic(ABC):
    """One model's scoring on a device."""

    n_senones: int
    dim: int
    """Features of a frame."""
    context: tuple[int, int] = (0, 0)
    """Frames before and after a frame that belong to it."""
    stages: dict[str, tuple[str, ...]]
    arrays: dict[str, Array]
    """The parameters. Matrices are uploaded in the number type of the products, vectors as float32, int64 as it is."""

    def fitting(self, name: str, dtype: str) -> Array:
        """The parameters `name` as they go into the number type."""
        return self.arrays[name]

    @abstractmethod
    def score(self, p: dict[str, Tensor], x: Tensor, out: Tensor, stages: Stages) -> None:
        """Give the stages of `x` to the device; `out` f32 [n, senones].

        `p`: the parameters there. `x` f32 [n, frames of context · dim], n ≤ MAX_FRAMES, whose rows may overlap.
        """

    @abstractmethod
    def costs(self, frames: int, on: Placed) -> dict[str, Cost]:
        """Cost laws for calls of about `frames` frames."""


class _Step(NamedTuple):
    """A stage of a piece: what does it again, frames and work counts."""

    stage: str
    replay: Callable[[], object]
    frames: int
    work: int
    more: int


@dataclass
class _Holding(Stages):
    """Takes the stages of a piece as graphs; `failed` where one could not be."""

    steps: list[_Step] = field(default_factory=list)
    failed: bool = False

    def give(self, stage: str, step: Callable[[], object], frames: int, work: int, more: int = 0) -> None:
        replay = None if self.failed else self.on.work.device.capture(step)
        if replay is None:
            self.failed = True
            return
        self.steps.append(_Step(stage, replay, frames, work, more))


class Held:
    """Pieces held as graphs of kernels, one launch a stage, by a name that says where they lie and how long they are.

    A graph has fixed addresses, so that there is one for each pair of buffers and each piece of them. Pieces of other
    sizes (the end of an utterance) are given kernel by kernel.
    """

    def __init__(self) -> None:
        self._pieces: dict[Hashable, list[_Step]] = {}

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def hold(self, name: Hashable, on: Placed, score: Callable[[Stages], None]) -> None:
        """Hold what `score` gives; it has run before, with the same tensors."""
        holding = _Holding(on)
        device = on.work.device
        device.wait(device.mark(COMPUTE))
        score(holding)
        if not holding.failed:
            self._pieces[name] = holding.steps

    def give(self, name: Hashable, stages: Stages) -> bool:
        """Let `stages` have those of a piece; False where it is not held."""
        steps = self._pieces.get(name)
        for step in steps or ():
            stages.give(step.stage, step.replay, step.frames, step.work, step.more)
        return steps is not None
