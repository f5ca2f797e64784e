"""Sums per frame, kept by stretches of frames that are alike.

A block's time is spread evenly over its frames. The frames are cut wherever a span begins or ends: between two cuts
every frame has one `share`, and the first one the `rest` of a division on top. With blocks of 16 frames that is a tenth
of the memory. All amounts are multiples of a grain whose sums are exact in float64, so a frame's value is the same bit
for bit in whatever order it was summed up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from profiler.arrays import F64, I64, Array
from profiler.session.format.grow import zeros

GRAIN: Final = 1.0 / (1 << 16)  # ns. Sums of multiples are exact in float64 up to 2^37 ns, 137 s for a frame
FIRST_ROOM: Final = 1024  # Stretches there is room for at first
GROUP: Final = 4  # Stretches per prefix sum: with blocks of one frame, one each would double the memory
LONG: Final = 1024  # Groups from which a total is that of their sums


def grains(amounts: Array) -> Array:
    """Return `amounts` rounded down to multiples of GRAIN, so that what is left of a whole is never negative."""
    whole: Array = np.floor(amounts / GRAIN) * GRAIN
    return whole


class Spread:
    """Amounts of spans, to be spread evenly over the frames they name (over one where they name none).

    Spans that name the same frames one after the other make one run. `first`, `frames` [runs]: int64. `share`, `rest`:
    by row, what every frame of a run gets and its first one on top, float64 [runs], multiples of GRAIN.
    """

    def __init__(self, spans: Array) -> None:
        first = spans["first_frame"].astype(np.int64)
        frames = np.maximum(spans["frames"], 1).astype(np.int64)
        begins = np.ones(len(spans), bool)
        np.not_equal(first[1:], first[:-1], out=begins[1:])
        begins[1:] |= frames[1:] != frames[:-1]
        runs = np.flatnonzero(begins)
        self.first, self.frames = first[runs], frames[runs]
        self.share: dict[int, Array] = {}
        self.rest: dict[int, Array] = {}
        self._run_of = np.cumsum(begins) - 1
        self._frames = frames.astype(np.float64)

    def give(self, row: int, amounts: Array, at: Array | None = None) -> None:
        """Add `amounts`, multiples of GRAIN, of the spans `at`, or of all, to what `row` is to get."""
        if not amounts.any():
            return
        frames, run_of = self._frames, self._run_of
        if at is not None:
            frames, run_of = frames[at], run_of[at]
        share = np.floor(amounts / (frames * GRAIN)) * GRAIN
        for sums, parts in ((self.share, share), (self.rest, amounts - share * frames)):
            found = np.bincount(run_of, parts, len(self.first))
            sums[row] = found + sums[row] if row in sums else found

    def give_sum(self, row: int, of: Iterable[int]) -> None:
        """Give `row` the sum of the rows `of`: exact, so it is theirs in every frame."""
        for sums in (self.share, self.rest):
            if some := [sums[number] for number in of if number in sums]:
                sums[row] = np.sum(some, axis=0)


class _Pieces(NamedTuple):
    """Stretches under some frames, how many frames of each, and those of them with their beginning."""

    under: slice[int, int]
    frames: I64
    begun: slice[int, None]


SHARE, REST = range(2)


class _Row:
    """Of each stretch, what every frame has and what its first one has on top: `values` of SHARE and REST.

    `used`: where something is not zero, since pages that nobody has written to take no memory. `before`: sums before
    each group of stretches, known of the first `summed` ones: made when they are read.
    """

    __slots__ = ("before", "summed", "used", "values")

    def __init__(self, room: int) -> None:
        self.values: list[F64] = [zeros(room), zeros(room)]
        self.used = [False, False]
        self.before: F64 = zeros(room // GROUP + 1)
        self.summed = 0

    def widen(self, count: int, room: int) -> None:
        self.values = [_wider(self.values[part], count * self.used[part], room) for part in (SHARE, REST)]
        self.before = _wider(self.before, self.summed + 1, room // GROUP + 1)


class PerFrame:
    """Sums per frame by row, grown by `add`; `frames` of them so far, all zero where nothing was added."""

    def __init__(self, rows: int) -> None:
        self.frames = 0
        self.stretches = 0
        # After the last stretch comes a group of empty ones, which begin where it ends.
        self.begins = np.zeros(FIRST_ROOM, np.int64)
        self.rows: list[_Row] = []
        # From which stretch on rows were added to since they were mixed last.
        self._unmixed = 0
        # What was asked last, as the rows are asked for the same frames one after the other.
        self._asked: tuple[tuple[int, int], _Pieces] | None = None
        for _ in range(rows):
            self.new_row()

    def new_row(self) -> int:
        self.rows.append(_Row(len(self.begins)))
        return len(self.rows) - 1

    def reserve(self, stretches: int) -> None:
        room = stretches + GROUP
        if room > len(self.begins):
            self.begins = _wider(self.begins, self.stretches + GROUP, room)
            for row in self.rows:
                row.widen(self.stretches, room)

    def add(self, spread: Spread) -> None:
        if not len(spread.first):
            return
        first, last = spread.first, spread.first + spread.frames
        begin = self._cut(first, last)
        self._unmixed = min(self._unmixed, begin)
        cuts = self.begins[begin : self.stretches]
        at, after = np.searchsorted(cuts, first), np.searchsorted(cuts, last)
        alone = bool((after == at + 1).all() and (at[1:] > at[:-1]).all())
        for number, share in spread.share.items():
            row, rest = self.rows[number], spread.rest[number]
            row.summed = min(row.summed, begin // GROUP)
            row.used[SHARE] = True
            store = row.values[SHARE][begin : self.stretches]
            if alone:
                store[at] += share
            else:
                # A step up where a run begins and one down where it has ended, summed up.
                steps = np.bincount(at, share, len(cuts) + 1)
                steps -= np.bincount(after, share, len(cuts) + 1)
                store += np.cumsum(steps[:-1])
            if rest.any():
                row.used[REST] = True
                row.values[REST][begin : self.stretches] += np.bincount(at, rest, len(cuts))

    def mix(self, targets: Sequence[int], rest: int, factors: Mapping[int, Sequence[float]], *, anew: bool) -> None:
        """Make `targets` of other rows: of each row of `factors` so much goes to each, and what is left to `rest`.

        Nothing else is ever added to these rows. `anew`: other factors than the last time, so that all of it is made.
        """
        begin, end = 0 if anew else self._unmixed, self.stretches
        self._unmixed = end
        if begin >= end:
            return
        for part in (SHARE, REST):
            some = [(self.rows[number], factors[number]) for number in factors if self.rows[number].used[part]]
            found = np.zeros((len(targets) + 1, end - begin))
            for row, shares in some:
                values = row.values[part][begin:end]
                left = values.copy()
                for place, factor in enumerate(shares):
                    mixed = grains(factor * values)
                    found[place] += mixed
                    left -= mixed
                found[-1] += left
            for number, values in zip((*targets, rest), found, strict=True):
                target = self.rows[number]
                if some or target.used[part]:
                    target.summed = min(target.summed, begin // GROUP)
                    target.values[part][begin:end] = values
                    target.used[part] = True

    def _cut(self, first: I64, last: I64) -> int:
        """Cut where runs begin and end; return the stretch from which on others may have changed."""
        low, end = int(first.min()), max(self.frames, int(last.max()))
        begin = self.stretch(low) if low < self.frames else self.stretches
        known = self.begins[begin : self.stretches]
        # Sorted pieces, which this sort merges.
        cuts = np.sort(np.concatenate([known, [self.frames], first, last]), kind="stable")
        new = np.ones(len(cuts), bool)
        np.not_equal(cuts[1:], cuts[:-1], out=new[1:])
        cuts = cuts[new & (cuts < end)]
        if len(cuts) != len(known):
            self._replace(begin, cuts)
            self.frames = end
            self.begins[self.stretches : self.stretches + GROUP] = end
        return begin

    def _replace(self, begin: int, cuts: I64) -> None:
        """Let the stretches from number `begin` on begin at `cuts`, among which are those where they begin now."""
        known = self.begins[begin : self.stretches].copy()
        count = begin + len(cuts)
        if count + GROUP > len(self.begins):
            self.reserve(max(count, 2 * len(self.begins)))
        for row in self.rows:
            row.summed = min(row.summed, begin // GROUP)
        if len(known):
            parent = np.searchsorted(known, cuts, side="right") - 1
            old = cuts < self.frames
            whole = old & (known[parent] == cuts)
            for row in self.rows:
                for part, kept in ((SHARE, old), (REST, whole)):
                    if row.used[part]:
                        store = row.values[part]
                        store[begin:count] = np.where(kept, store[begin : self.stretches][parent], 0.0)
        self.begins[begin:count] = cuts
        self.stretches = count
        self._asked = None

    def row(self, number: int, frames: int) -> FrameRow:
        """The first `frames` frames of a row, as they are until something is added."""
        return FrameRow(self, number, min(frames, self.frames))

    def stretch(self, frame: int) -> int:
        return int(np.searchsorted(self.begins[: self.stretches], frame, side="right")) - 1

    def pieces(self, first: int, last: int) -> _Pieces:
        """What lies under the frames first … last − 1, one at least."""
        if self._asked is not None and self._asked[0] == (first, last):
            return self._asked[1]
        low = self.stretch(first)
        high = int(np.searchsorted(self.begins[: self.stretches], last))
        edges = np.append(self.begins[low:high], last)
        begun = slice(int(edges[0] != first), None)
        edges[0] = first
        found = _Pieces(slice(low, high), np.diff(edges), begun)
        self._asked = (first, last), found
        return found

    def area(self, numbers: Sequence[int], at: F64) -> F64:
        """Integral of some rows from the first frame to `at` [k], which frames may be cut, [rows, k]."""
        begins = self.begins[: self.stretches]
        stretch = np.searchsorted(begins, np.minimum(at.astype(np.int64), self.frames - 1), "right")
        group = (stretch - 1) // GROUP
        # Of every stretch of the group: how much of it lies before `at`, and of its first frame.
        under = group[:, None] * GROUP + np.arange(GROUP)
        begin = self.begins.take(under)
        into = np.maximum(at[:, None] - begin, 0.0)
        of_first = np.minimum(into, 1.0)
        np.minimum(into, self.begins.take(under + 1) - begin, out=into)
        # All rows in one go, as each by itself takes longer where few frames are asked for.
        shape = (len(numbers), *under.shape)
        share, rest = np.zeros(shape), np.zeros(shape)
        before = np.zeros(shape[:2])
        rested = False
        for i, row in enumerate(self.rows[number] for number in numbers):
            if row.used[SHARE]:
                row.values[SHARE].take(under, out=share[i], mode="clip")
                self.sums(row).take(group, out=before[i], mode="clip")
            if row.used[REST]:
                row.values[REST].take(under, out=rest[i], mode="clip")
                rested = True
        found: F64 = np.einsum("rkg,kg->rk", share, into)
        if rested:
            found += np.einsum("rkg,kg->rk", rest, of_first)
        found += before
        return found

    def sums(self, row: _Row) -> F64:
        """Sum of a row before each group, [groups], strictly in order: the same bits in pieces and at once."""
        known, full = row.summed, self.stretches // GROUP
        before = row.before[: full + 1]
        if known < full:
            new = slice(known * GROUP, full * GROUP)
            sums = row.values[SHARE][new] * np.diff(self.begins[new.start : new.stop + 1])
            if row.used[REST]:
                sums += row.values[REST][new]
            before[known + 1 :] = sums.reshape(-1, GROUP).sum(axis=1)
            np.add.accumulate(before[known:], out=before[known:])
            row.summed = full
        return before


class FrameRow:
    """A row of a `PerFrame` up to a frame; slicing it makes an array."""

    dtype = np.dtype(np.float64)

    def __init__(self, store: PerFrame, number: int, frames: int) -> None:
        self.store = store
        self.number = number
        self._row = store.rows[number]
        self._frames = frames

    def __len__(self) -> int:
        return self._frames

    def __getitem__(self, part: slice[int | None, int | None, None]) -> F64:
        """Values of a slice without a step, [frames]."""
        first, last, _ = part.indices(self._frames)
        if last <= first:
            return np.empty(0)
        under, frames, begun = self.store.pieces(first, last)
        share, rest = (values[under] for values in self._row.values)
        # Where a block has one frame, so has a stretch.
        found: F64 = share.copy() if len(share) == last - first else np.repeat(share, frames)
        if self._row.used[REST]:
            found[self.store.begins[under][begun] - first] += rest[begun]
        return found

    def total(self, first: int, last: int) -> float:
        """Sum over the frames first … last − 1, as far as they are there."""
        first, last = max(0, first), min(last, self._frames)
        if last <= first:
            return 0.0
        low = high = 0
        if last - first > LONG * GROUP:
            low, high = -(-(self.store.stretch(first) + 1) // GROUP), self.store.stretch(last - 1) // GROUP
        if high - low > LONG:
            begin, end = int(self.store.begins[low * GROUP]), int(self.store.begins[high * GROUP])
            within = float(np.diff(self.store.sums(self._row)[[low, high]])[0])
            return self.total(first, begin) + within + self.total(end, last)
        under, frames, begun = self.store.pieces(first, last)
        share, rest = (values[under] for values in self._row.values)
        sums = share * frames
        sums[begun] += rest[begun]
        return float(sums.sum())

    def highest(self, first: int, last: int) -> tuple[int, float]:
        """The first of the highest frames among first … last − 1, one at least, and its value."""
        first = max(0, first)
        under, _, begun = self.store.pieces(first, min(last, self._frames))
        share, rest = (values[under] for values in self._row.values)
        values = share.copy()
        values[begun] += rest[begun]  # none is below zero
        at = int(np.argmax(values))
        return max(first, int(self.store.begins[under.start + at])), float(values[at])


def _wider(values: Array, used: int, room: int) -> Array:
    wider = zeros(room, values.dtype)
    wider[:used] = values[:used]
    return wider
