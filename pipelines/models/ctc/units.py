"""The output units of a CTC net."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Units:
    """`symbols`: by output index. `blank`: its index. `boundary`: index of the unit between words, if there is one."""

    symbols: tuple[str, ...]
    blank: int
    boundary: int | None = None
