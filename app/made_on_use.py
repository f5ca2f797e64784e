"""Named parts in a fixed order, each made when it is first asked for: most of a window is never looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

T = TypeVar("T")


class MadeOnUse(Mapping[str, T]):
    """`made` has those that have been asked for; to go through all of them makes all of them."""

    def __init__(self, names: Iterable[str], make: Callable[[str], T]) -> None:
        self._names = dict.fromkeys(names)
        self._make = make
        self.made: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self.made:
            if name not in self._names:
                raise KeyError(name)
            self.made[name] = self._make(name)
        return self.made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
