"""What the machine did while frames were decoded: readings of load, memory, power, on lanes over audio time. No Qt.

A reading is taken some ten times a second (`profiler.machine.sampler`), whatever number of frames that is. A percentage
or a power is of the time before its reading; an amount holds until the next one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import numpy as np

from app.charts.scale import HEADROOM, Holding, Scale, held, round_up
from app.model.events import boundaries, marks
from app.views.lanes_model import NO_SCALES, Curve, LanesModel, Panel
from profiler.analysis.lod.columns import column_edges
from profiler.analysis.lod.spans import timeline_of
from profiler.arrays import F64
from profiler.clock import FRAME_S
from profiler.machine import energy

if TYPE_CHECKING:
    from profiler.analysis.track import CostTrack
    from profiler.session.reader import Session

CPU: Final = "process.cpu_percent"
"""Of one core: a process on two of them has up to 200 %."""

ALL_CPU: Final = "system.cpu_percent"
"""Recorded as a percentage of all cores; the model has it in percent of one core, as that of the process."""

RSS: Final = "process.rss_bytes"
AVAILABLE: Final = "system.memory_available_bytes"
CLOCK: Final = "system.cpu_mhz"
PACKAGE: Final = "energy.package_watts"
"""Power of all processor packages, from the energies that are recorded."""

BUSY, MEMORY_BUSY, MEMORY_USED, POWER = "busy_percent", "memory_busy_percent", "memory_used_bytes", "power_watts"
"""Readings of a device, after its name ("gpu0.")."""

LANES: Final = ((CPU, ALL_CPU), (RSS,), (AVAILABLE,), (CLOCK,), (PACKAGE,))
DEVICE_LANES: Final = ((BUSY, MEMORY_BUSY), (MEMORY_USED,), (POWER,))

OVER_TIME: Final = frozenset({CPU, ALL_CPU, PACKAGE, BUSY, MEMORY_BUSY})
"""Readings that are of the time since the one before."""

SHARES: Final = frozenset({BUSY, MEMORY_BUSY})
"""Percentages whose lane always reaches up to 100."""

MOST_CORES: Final = 1 << 20
MOST: Final = 1e18
"""Bounds of sensible readings."""

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
    return number if isinstance(number, int) and 0 < number <= MOST_CORES else None


def system_model(
    session: Session,
    track: CostTrack,
    cursor_frame: int,
    visible: tuple[float, float],
    columns: int,
    before: Mapping[str, Scale] = NO_SCALES,
    counted: tuple[int, int] = (0, 0),
    in_blocks: bool = True,
) -> LanesModel:
    """Reduce the readings to `columns` pixel columns over `visible` seconds, up to a frame; arguments: `work_model`.

    Readings are of times and not of blocks, so `in_blocks` makes no difference.
    """
    end = min(int(cursor_frame), int(track.n_frames))
    edges = column_edges(visible[0] / FRAME_S, visible[1] / FRAME_S, max(1, columns))
    panels = []
    for names in _lanes(session):
        found = [(name, held_once(session, name, end)) for name in names]
        curves = tuple(_curve(session, name, one, edges, counted) for name, one in found if one is not None)
        if curves:
            panels.append(Panel(curves, _scale(curves, before)))
    return LanesModel(
        first_s=float(edges[0]) * FRAME_S,
        last_s=float(edges[-1]) * FRAME_S,
        cursor_frame=end,
        block_frames=1,
        panels=tuple(panels),
        marks=marks(session, end, int(track.n_frames)),
        boundaries=boundaries(session, end),
    )


def _lanes(session: Session) -> Iterator[tuple[str, ...]]:
    """The lanes from top to bottom, those of the devices that the run used last; without one, of the first device."""
    yield from LANES
    recorded = {device for name in session.sample_names if (device := of_device(name)[0])}
    known = session.meta.get("devices")
    facts = known.values() if isinstance(known, Mapping) else ()
    used = {str(one.get("nvml")) for one in facts if isinstance(one, Mapping)} & recorded
    for device in sorted(used or sorted(recorded)[:1]):
        yield from (tuple(f"{device}.{name}" for name in names) for names in DEVICE_LANES)


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


_known: WeakKeyDictionary[Session, dict[str, tuple[object, Held | None]]] = WeakKeyDictionary()
"""By name, what was recorded when it was worked out, and what came of it: an hour has tens of thousands of readings."""


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
    """Times (ns, ascending) and values of a quantity; those that are no number are left out."""
    number = cores(session)
    if name == PACKAGE:
        return _power(session)
    if name not in session.sample_names or (name == ALL_CPU and number is None):
        return np.empty(0), np.empty(0)
    times, values = session.samples(name)
    order = np.argsort(times, kind="stable")
    times, values = times[order].astype(np.float64), values[order]
    sound = (values >= 0) & (values < MOST)
    return times[sound], values[sound] * (number or 1 if name == ALL_CPU else 1)


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


def _curve(session: Session, name: str, held: Held, edges: F64, shown: tuple[int, int]) -> Curve:
    low, high, mean = held.columns(edges)
    average = math.nan
    if shown[1] > shown[0]:
        average = float(held.mean(np.array([float(shown[0])]), np.array([float(shown[1])]))[0])
    number = cores(session)
    whole = 100.0 * number if number is not None and name in (CPU, ALL_CPU) else None
    return Curve(name, low, high, mean, average, whole)


def _scale(curves: tuple[Curve, ...], before: Mapping[str, Scale]) -> Scale:
    """From 0 to the greatest reading in view; what it was while that still fits."""
    high = np.concatenate([curve.high for curve in curves])
    there = high[np.isfinite(high)]
    top = round_up(float(there.max()) * HEADROOM) if len(there) else 1.0
    if of_device(curves[0].name)[1] in SHARES:
        top = 100.0
    return held(Scale(0.0, top), Holding(before.get(curves[0].name)))
