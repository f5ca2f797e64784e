"""What a view of lanes draws: curves over the visible range, each with the scale of its unit, and readings. No Qt."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from app.charts.scale import Holding, Scale, held
from profiler.analysis.lod.spans import timeline_of
from profiler.analysis.resources import CPU, MOST, readings
from profiler.arrays import F64, Bool
from profiler.clock import FRAME_S
from profiler.machine import energy
from profiler.session.reader import Session

TABLE_ROWS: Final = 200


def stretches(visible: tuple[float, float]) -> int:
    """How many rows the table twin of a chart has for seconds in view: a frame each, but at most `TABLE_ROWS`."""
    return min(TABLE_ROWS, max(1, round((visible[1] - visible[0]) / FRAME_S)))


@dataclass(frozen=True)
class TimeColumns:
    """What a chart draws over seconds [first_s, last_s], an entry per pixel column."""

    first_s: float
    last_s: float

    @property
    def known(self) -> Bool:
        """Whether there is anything in each column (override)."""
        raise NotImplementedError

    def column_at(self, second: float) -> int | None:
        known = self.known
        column = int((second - self.first_s) / (self.last_s - self.first_s) * len(known))
        return column if 0 <= column < len(known) and known[column] else None

    def rows(self, cells: Callable[[int], Iterable[object]]) -> list[list[object]]:
        """A row for each column with anything in it: its ends in seconds, and the `cells` of its number."""
        step = (self.last_s - self.first_s) / len(self.known)
        found: list[list[object]] = []
        for column in np.flatnonzero(self.known).tolist():
            begin = self.first_s + column * step
            found.append([f"{begin:.2f}", f"{begin + step:.2f}", *cells(column)])
        return found


@dataclass(frozen=True)
class Curve:
    """One quantity over the visible range."""

    name: str  # Which quantity
    low: F64  # [columns] least value in the block under the column; NaN where there is no frame
    high: F64  # [columns] greatest value
    mean: F64  # [columns] mean
    average: float  # Mean over the frames of the scope, NaN without any
    whole: float | None = None  # What `average` could be at most (all senones of a frame), None where nothing says


@dataclass(frozen=True)
class Panel:
    """Curves on one scale."""

    curves: tuple[Curve, ...]
    scale: Scale


@dataclass(frozen=True)
class LanesModel(TimeColumns):
    """Curves over the visible range, one lane per quantity that was recorded; averages are of the scope."""

    block_frames: int
    panels: tuple[Panel, ...]

    @property
    def known(self) -> Bool:
        return np.atleast_1d(np.logical_or.reduce([np.isfinite(curve.mean) for curve in self.curves]))

    @property
    def scales(self) -> dict[str, Scale]:
        return {panel.curves[0].name: panel.scale for panel in self.panels}

    @property
    def curves(self) -> tuple[Curve, ...]:
        return tuple(curve for panel in self.panels for curve in panel.curves)


def lanes_model(
    edges: F64,
    block_frames: int,
    lanes: Iterable[Sequence[str]],
    curve_of: Callable[[str], Curve | None],
    scale_of: Callable[[Sequence[Curve]], Scale],
    before: Mapping[str, Scale] | None,
) -> LanesModel:
    """The lanes that have any curve, over columns of these edges (frames); scales `before` hold while they fit."""
    panels = []
    for names in lanes:
        if curves := tuple(curve for name in names if (curve := curve_of(name)) is not None):
            holding = Holding((before or {}).get(curves[0].name))
            panels.append(Panel(curves, held(scale_of(curves), holding)))
    return LanesModel(float(edges[0]) * FRAME_S, float(edges[-1]) * FRAME_S, block_frames, tuple(panels))


ALL_CPU: Final = "system.cpu_percent"  # Recorded in percent of all cores, shown in percent of one as the process has it
RSS: Final = "process.rss_bytes"
AVAILABLE: Final = "system.memory_available_bytes"
CLOCK: Final = "system.cpu_mhz"
PACKAGE: Final = "energy.package_watts"  # Power of all processor packages, from the energies that are recorded
BUSY, MEMORY_BUSY, MEMORY_USED, POWER = "busy_percent", "memory_busy_percent", "memory_used_bytes", "power_watts"
OVER_TIME: Final = frozenset({CPU, ALL_CPU, PACKAGE, BUSY, MEMORY_BUSY})  # Since the reading before
_DEVICE: Final = re.compile(r"(gpu\d{1,3})\.(\w+)")


def of_device(name: str) -> tuple[str, str]:
    """The device of a reading ("gpu0") and the reading's name without it; no device: an empty text."""
    found = _DEVICE.fullmatch(name)
    return (found[1], found[2]) if found else ("", name)


def cores(session: Session) -> int | None:
    """Logical cores of the machine that ran the session, None where it does not say."""
    machine = session.meta.get("machine")
    known = machine.get("cores") if isinstance(machine, Mapping) else None
    number = known.get("logical") if isinstance(known, Mapping) else None
    return number if isinstance(number, int) and 0 < number <= 1 << 20 else None


@dataclass(frozen=True)
class Held:
    """Values that hold from one frame (with fractions) to another, in order of time, without gaps."""

    begin: F64
    end: F64
    value: F64

    def columns(self, edges: F64) -> tuple[F64, F64, F64]:
        """Least, greatest and mean value per column of these edges [columns + 1]; NaN where none holds."""
        left, right = edges[:-1], edges[1:]
        first = np.searchsorted(self.end, left, side="right")
        last = np.searchsorted(self.begin, right, side="left")
        there = last > first
        low, high, mean = (np.full(len(left), np.nan) for _ in range(3))
        if there.any():
            ends = np.stack([first[there], last[there]], axis=1).ravel()
            # One more value, so that every end is an index.
            values = np.append(self.value, self.value[-1])
            low[there] = np.minimum.reduceat(values, ends)[::2]
            high[there] = np.maximum.reduceat(values, ends)[::2]
            mean[there] = self.mean(left[there], right[there])
            mean = np.clip(mean, low, high)
        return low, high, mean

    @cached_property
    def _area(self) -> tuple[F64, F64]:
        area = np.append(0.0, np.cumsum(self.value * (self.end - self.begin)))
        return np.append(self.begin, self.end[-1:]), area

    def mean(self, left: F64, right: F64) -> F64:
        """Mean from each frame of `left` to that of `right`; NaN where nothing holds."""
        at, area = self._area
        width = np.clip(right, at[0], at[-1]) - np.clip(left, at[0], at[-1])
        with np.errstate(invalid="ignore", divide="ignore"):
            found: F64 = (np.interp(right, at, area) - np.interp(left, at, area)) / width
        return np.where(width > 0, found, np.nan)


# By name, what was recorded when it was worked out, and what came of it: an hour has tens of thousands of readings.
_known: WeakKeyDictionary[Session, dict[str, tuple[object, Held | None]]] = WeakKeyDictionary()


def held_once(session: Session, name: str, end: int) -> Held | None:
    """`_held`, worked out again only when something has been recorded since."""
    readings = sum(len(session.samples(each)[0]) for each in session.sample_names)
    state = session.generation, len(session.spans), readings, end, cores(session)
    known = _known.setdefault(session, {})
    if name not in known or known[name][0] != state:
        known[name] = state, _held(session, name, end)
    return known[name][1]


def _held(session: Session, name: str, end: int) -> Held | None:
    """The readings of a quantity over frames [0, `end`), None where there are none."""
    times, values = _readings(session, name)
    if not len(times):
        return None
    frames = timeline_of(session).frames_at(times)
    if of_device(name)[1] in OVER_TIME:
        # The first of them is of the time before the first frame, or of some of it.
        begin, until = np.append(0.0, frames[:-1]), frames
    else:
        begin, until = frames, np.append(frames[1:], float(end))
    until = np.minimum(until, end)
    some = until > begin
    return Held(begin[some], until[some], values[some]) if some.any() else None


def _readings(session: Session, name: str) -> tuple[F64, F64]:
    """Times (ns, ascending) and values of a quantity."""
    if name == PACKAGE:
        return _power(session)
    times, values = readings(session, name)
    if name != ALL_CPU:
        return times, values
    number = cores(session)
    return (np.empty(0), np.empty(0)) if number is None else (times, number * values)


def _power(session: Session) -> tuple[F64, F64]:
    """Watts of all packages together, each over the time since the reading before."""
    names = [name for name in session.sample_names if energy.PACKAGE.fullmatch(name)]
    zones = [session.samples(name) for name in names]
    if not zones or any(len(zone[0]) != len(zones[0][0]) for zone in zones):
        return np.empty(0), np.empty(0)
    times, joules = zones[0][0].astype(np.float64), np.sum([zone[1] for zone in zones], axis=0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        watts = np.diff(joules) / (np.diff(times) * 1e-9)
    sound = (watts >= 0) & (watts < MOST) & (np.diff(times) > 0)
    return times[1:][sound], watts[sound]
