"""Named parts of a window, each made when it is first asked for: most are never looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class MadeOnUse(dict[str, T]):
    """Holds the parts made so far."""

    def __init__(self, make: Callable[[str], T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: str) -> T:
        self[name] = made = self._make(name)
        return made
