"""Arrays between walls, and the list of exercises: which kernel is run by which of them.

The exercises stand in `kernel_walls` and `search_walls`.
"""

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from profiler.arrays import Array
from tests.conftest import KEPT
from tests.fences import PATTERN, Fenced, Side

ROOT = Path(__file__).parents[1]
ROOMS = (
    "pipelines/search",
    "pipelines/frontend",
    "pipelines/labs",
    "pipelines/models",
    "pipelines/training",
    "profiler",
)
SIZES = (0, 1, 2, 7, 33)
CHECKED = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(KEPT / "cache" / "checked-kernels")}
"""The environment of a process whose kernels check the index of each axis: what stays within an array hits no wall."""


class Walls:
    """Puts arrays next to walls, or with `side` None leaves them as they are."""

    def __init__(self, side: Side | None) -> None:
        self._side, self._made = side, list[Fenced]()

    def __call__(self, array: Any, dtype: Any = None) -> Array:
        """A copy of `array` next to a wall."""
        copy = np.array(array, dtype, order="C")
        if self._side is None:
            return copy
        self._made.append(Fenced(copy, self._side))
        return self._made[-1].array

    def empty(self, shape: Any, dtype: Any) -> Array:
        """As `np.empty`, full of what must not be used."""
        made = self(np.zeros(shape, dtype))
        if made.size:
            made.reshape(-1).view(np.uint8)[:] = PATTERN
        return made

    def intact(self) -> bool:
        """Whether nothing was written around the arrays."""
        return all(fence.intact() for fence in self._made)


Exercise = Callable[[Walls], None]
EXERCISES: dict[str, Exercise] = {}
NAMED: dict[str, list[str]] = {}  # Kernel → the exercises that run it


def runs(module: Any, *kernels: str) -> Callable[[Exercise], Exercise]:
    """Enter an exercise of these kernels of a module."""

    def enter(exercise: Exercise) -> Exercise:
        EXERCISES[exercise.__name__] = exercise
        for kernel in kernels:
            name = module if isinstance(module, str) else module.__name__
            NAMED.setdefault(f"{name}.{kernel}", []).append(exercise.__name__)
        return exercise

    return enter


def kernels() -> set[str]:
    """All compiled functions of the rooms."""
    found = set()
    for file in [file for room in ROOMS for file in (ROOT / room).rglob("*.py")]:
        if re.search(r"^ *@(numba\.)?njit", file.read_text(encoding="utf-8"), re.MULTILINE):
            name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            values = vars(importlib.import_module(name)).items()
            own = {key for key, value in values if isinstance(value, Dispatcher) and value.py_func.__module__ == name}
            found |= {f"{name}.{key}" for key in own}
    return found
