"""The bandwidth ladder as people read it: plateaus, labelled by the sizes over which they hold.

A plateau is named by its sizes and not by a cache, as in the Empirical Roofline Tool's own warning: the
first level that a sweep sees need not be L1. Cache sizes are shown next to it if the system reports them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from profiler.machine.roofs.table import Roof, size_text

FLAT: Final = 0.12
"""Rungs of one plateau are within this fraction of its mean; levels of a memory differ by more."""

MIN_RUNGS: Final = 2


@dataclass(frozen=True, slots=True)
class Plateau:
    """Neighbouring rungs with the same bandwidth: smallest and largest working set, bytes/s."""

    first_bytes: int
    last_bytes: int
    rate: float

    @property
    def label(self) -> str:
        """The sizes it holds for: "16 KiB … 512 KiB"."""
        return f"{size_text(self.first_bytes)} … {size_text(self.last_bytes)}"


def plateaus(rungs: Sequence[Roof]) -> list[Plateau]:
    """Return the plateaus of a ladder (rungs by growing size); slopes between them belong to none."""
    found: list[Plateau] = []
    group: list[Roof] = []
    for rung in [*rungs, None]:
        if rung is not None and group and _fits(group, rung):
            group.append(rung)
            continue
        if len(group) >= MIN_RUNGS:
            rates = sorted(r.median for r in group)
            found.append(Plateau(group[0].bytes, group[-1].bytes, rates[len(rates) // 2]))
        group = [rung] if rung is not None else []
    return found


def _fits(group: Sequence[Roof], rung: Roof) -> bool:
    mean = sum(r.median for r in group) / len(group)
    return abs(rung.median / mean - 1.0) <= FLAT
