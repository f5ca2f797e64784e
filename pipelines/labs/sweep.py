"""Variants of the same work over sizes, timed in turns: how labs of this form measure, and what they keep.

A lab says what each variant does at a size (`Sweep`), reads figures off the `Timings`, and keeps a `SweepResult`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from pipelines.labs import figures
from pipelines.labs.chart import Bars, Line, Mark, Values
from pipelines.labs.declaration import Measured

if TYPE_CHECKING:
    from pipelines.labs.desk import Desk
    from profiler.analysis.comparison.statistics import Ratio
    from profiler.costs import Cost

Work = Callable[[], object]  # What is timed: one call
Figure = Callable[[int, float], float]
"""A figure to draw or report from the seconds of a call at a size: (size, seconds) → figure."""

Cell = tuple[str, int]  # A variant at a size


def milliseconds(_: int, seconds: float) -> float:
    return 1e3 * seconds


def once(variant: str, size: int) -> int:
    """One call in a turn, of what is slow."""
    return 1


def key(name: str) -> str:
    """A name as part of the key of a figure: "8 bit, batches" → "8_bit_batches"."""
    return name.replace(", ", "_").replace(" ", "_")


class Timings(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds per call by round, of each variant at each size it was taken at: {variant: {size: [rounds]}}.

    Where `size` is left out below, the variant was taken at one size alone.
    """

    seconds: dict[str, dict[int, list[float]]]

    @property
    def variants(self) -> list[str]:
        return list(self.seconds)

    def cells(self, variants: Iterable[str] | None = None) -> list[Cell]:
        names = self.variants if variants is None else variants
        return [(variant, size) for variant in names for size in self.seconds[variant]]

    def sizes(self, variant: str | None = None) -> list[int]:
        names = self.variants if variant is None else [variant]
        return sorted({size for name in names for size in self.seconds[name]})

    def size(self, variant: str) -> int:
        if len(self.seconds[variant]) != 1:
            raise LookupError(f"{variant} was taken at {len(self.seconds[variant])} sizes, not one")
        return next(iter(self.seconds[variant]))

    def rounds(self, variant: str, size: int | None = None) -> list[float]:
        """Seconds per call by round; LookupError where there are none."""
        rounds = self.seconds[variant][self.size(variant) if size is None else size]
        if not rounds:
            raise LookupError(f"{variant} has no rounds")
        return rounds

    def time(self, variant: str, size: int | None = None) -> float:
        """Seconds that a call itself takes: the mean of the fastest 40 %."""
        return figures.seconds(self.rounds(variant, size))

    def fastest(self, cells: Iterable[Cell]) -> Cell:
        return min(cells, key=lambda cell: self.time(*cell))

    def ratio(self, of: str, to: str, size: int | None = None, to_size: int | None = None) -> Ratio | None:
        """Time of one over that of another in the same turns; `to_size`: of the other, where it is not `size`."""
        other = self.rounds(to, size if to_size is None else to_size)
        return figures.ratio(self.rounds(of, size), other)

    def per_unit(self, units: Callable[[int], float] = float) -> Timings:
        """Seconds per unit of work: a call at a size does `units` of them, by default as many as the size says."""
        return Timings(
            seconds={
                variant: {size: [s / units(size) for s in row] for size, row in rows.items()}
                for variant, rows in self.seconds.items()
            }
        )

    def table(
        self, name: str, figure: Figure = lambda _, s: s, cells: Iterable[Cell] | None = None
    ) -> dict[str, float | None]:
        """`figure` of every cell under a name with {variant} and {size} in it, as figures of a finding."""
        return {
            name.format(variant=key(variant), size=size): figure(size, self.time(variant, size))
            for variant, size in (self.cells() if cells is None else cells)
        }

    def line(
        self, variant: str, name: str = "", figure: Figure = lambda _, s: s, x: Callable[[int], float] = float
    ) -> Line:
        """`figure` of a variant over the sizes, with intervals; `x`: where a size lies."""
        sizes = self.sizes(variant)
        at = tuple(x(size) for size in sizes)
        return Line(name or variant, at, *self._columns([(variant, n) for n in sizes], figure))

    def across(self, name: str, x: Mapping[str, float], figure: Figure = lambda _, s: s, joined: bool = True) -> Line:
        """`figure` of variants over where each lies, with intervals, as one line; each has one size."""
        return Line(name, tuple(x.values()), *self._columns(self.cells(x), figure), joined=joined)

    def bars(self, name: str, cells: Iterable[Cell], figure: Figure = lambda _, s: s) -> Bars:
        """`figure` of these cells as one series of bars, with intervals, over as many categories."""
        return Bars(name, *self._columns(cells, figure))

    def _columns(self, cells: Iterable[Cell], figure: Figure) -> tuple[Values, Values, Values]:
        """`figure` of these cells, and the ends of the intervals."""
        return figures.columns(
            [figures.between(self.rounds(variant, size), partial(figure, size)) for variant, size in cells]
        )

    def joined(self, other: Timings) -> Timings:
        """Both together; the other's rounds where both have a cell."""
        names = dict.fromkeys([*self.seconds, *other.seconds])
        return Timings(seconds={name: {**self.seconds.get(name, {}), **other.seconds.get(name, {})} for name in names})


class SweepResult(Measured, frozen=True, kw_only=True):
    """Results of a lab of variants and sizes.

    `timings`: the sweep that the verdict is taken from; `more`: further ones by name. `counts`: other numbers by name,
    `by_variant`: by name and variant; `texts`: names of what was measured (a net, a model). `device`: the accelerator,
    "" where there is none. `cache_bytes`: data that each level of cache holds, by level.
    """

    timings: Timings
    more: dict[str, Timings] = msgspec.field(default_factory=dict)
    counts: dict[str, float] = msgspec.field(default_factory=dict)
    by_variant: dict[str, dict[str, float]] = msgspec.field(default_factory=dict)
    texts: dict[str, str] = msgspec.field(default_factory=dict)
    device: str = ""
    cache_bytes: dict[int, int] = msgspec.field(default_factory=dict)

    def cache_marks(self) -> tuple[Mark, ...]:
        """Marks at the size of each cache level, on an axis of bytes: "L1", "L2" …"""
        return tuple(Mark(f"L{level}", float(size), on="x") for level, size in self.cache_bytes.items())


@dataclass(frozen=True)
class Sweep:
    """What is to be timed: variants of the same work over sizes.

    `variants`: at a size, what one call of each variant does; one that is left out has no such size. `label`: the
    name of a cell, which is that of its stage in the session. `what`: said while it is measured; both may have {size}
    in them. `together`: all sizes in the same turns, whose ratios then are of the same rounds; otherwise a size after
    the other, so that only one size's data exist. `calls`: of one turn; None: as many as take some milliseconds.
    `rounds`: at most; None: as many as the time allows. `cost`: what one call does (`desk.per_call`). `share`: of the
    time of all sweeps of a lab.
    """

    variants: Callable[[int], Mapping[str, Work]]
    sizes: Sequence[int]
    what: str
    label: str = "{variant}, {size}"
    together: bool = False
    calls: Callable[[str, int], int | None] = lambda variant, size: None
    rounds: Callable[[int], int | None] = lambda size: None
    cost: Callable[[str, int], Cost] | None = None
    share: float = 1.0

    def run(self, desk: Desk, seconds: float) -> Timings:
        """Time it, in about `seconds`. Raises Cancelled, and what `variants` does."""
        if self.together:
            return self._turns(desk, self.sizes, seconds)
        timings = Timings(seconds={})
        each = 1 / len(self.sizes)
        for place, size in enumerate(self.sizes):
            with desk.part(place * each, (place + 1) * each):
                timings = timings.joined(self._turns(desk, [size], seconds * each))
        return timings

    def _turns(self, desk: Desk, sizes: Sequence[int], seconds: float) -> Timings:
        works: dict[str, Work] = {}
        cells: dict[str, Cell] = {}
        for size in sizes:
            for variant, work in self.variants(size).items():
                name = self.label.format(variant=variant, size=size)
                if name in cells:
                    raise ValueError(f"two cells of a sweep are called {name}")
                works[name], cells[name] = work, (variant, size)
        inner = {name: calls for name, cell in cells.items() if (calls := self.calls(*cell))}
        costs = {name: self.cost(*cell) for name, cell in cells.items()} if self.cost else {}
        taken = desk.turns(
            works,
            seconds=seconds,
            rounds=min((most for size in sizes if (most := self.rounds(size))), default=None),
            inner=inner,
            costs=costs,
            what=self.what.format(size=sizes[0]),
        )
        by_variant: dict[str, dict[int, list[float]]] = {}
        for name, rounds in taken.items():
            variant, size = cells[name]
            by_variant.setdefault(variant, {})[size] = rounds
        return Timings(seconds=by_variant)


def one_size(variants: Mapping[str, Work], size: int, what: str, calls: int | None = None, share: float = 1.0) -> Sweep:
    """Variants that are taken at one size alone: how much a call works on, such as its frames."""
    return Sweep(lambda _: variants, [size], what, label="{variant}", calls=lambda variant, size: calls, share=share)


def run_all(desk: Desk, seconds: float, sweeps: Sequence[Sweep]) -> list[Timings]:
    """Several sweeps one after the other, each in its share of the time."""
    ends = [math.fsum(sweep.share for sweep in sweeps[: n + 1]) for n in range(len(sweeps))]
    timings = []
    for sweep, end in zip(sweeps, ends, strict=True):
        with desk.part((end - sweep.share) / ends[-1], end / ends[-1]):
            timings.append(sweep.run(desk, seconds * sweep.share / ends[-1]))
    return timings
