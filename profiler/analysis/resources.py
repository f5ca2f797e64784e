"""What a run took of the machine: memory by part and its growth, processor time and energy per hour of audio.

Readings come from `profiler.machine` (`memory`, `sampler`, `energy`). What was not measured is None, never an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from profiler.analysis.lod.spans import timeline_of
from profiler.analysis.recorded import audio_seconds
from profiler.arrays import F64
from profiler.clock import FRAME_S
from profiler.machine.energy import IDLE, PACKAGE
from profiler.machine.memory import PART, PEAK, sample_name

if TYPE_CHECKING:
    from profiler.session.reader import Session

HOUR_S: Final = 3600.0
MOST: Final = 1e18  # Bound of sensible readings
WARM_UP: Final = 0.25  # Part of the audio that says nothing about growth: buffers find their size in it
STRETCHES: Final = 20  # Growth is fitted through the medians of these, so that a sawtooth has none
LEAST_S: Final = 600.0  # Seconds after the warm-up to state growth: one step of 1 MB in them is 6 MB per hour
NORMAL_95: Final = 1.96  # Standard deviations of a normal distribution within which 95 % lie
BUSY_PERCENT: Final = 5.0  # Load of all processors from which the power before the run is not that of an idle machine
CPU: Final = "process.cpu_percent"  # Of one core: a process on two of them has up to 200 %


class Slope(NamedTuple):
    """Growth per audio hour and its 95 % interval."""

    likely: float
    low: float
    high: float


class Series(NamedTuple):
    """Readings in order: times of the session's clock (s), hours of audio decoded until then, values."""

    at_s: F64
    hours: F64
    values: F64


class Energy(NamedTuple):
    """Joules of packages per audio hour beyond idle, powers in watts; None: unknown; `text`: source or reason."""

    joules_per_hour: float | None
    watts: float | None
    idle_watts: float | None
    text: str


def readings(session: Session, name: str) -> tuple[F64, F64]:
    """Times of the session's clock (ns, ascending) and sensible values of a quantity; without any, empty arrays."""
    if name not in session.sample_names:
        return np.empty(0), np.empty(0)
    times, values = session.samples(name)
    order = np.argsort(times, kind="stable")
    times, values = times[order].astype(np.float64), values[order]
    sound = (values >= 0) & (values < MOST)
    return times[sound], values[sound]


def series(session: Session, name: str) -> Series:
    times, values = readings(session, name)
    return Series(times * 1e-9, timeline_of(session).frames_at(times) * FRAME_S / HOUR_S, values)


def parts(session: Session) -> dict[str, Series]:
    """Bytes of each part that was read (`profiler.machine.memory`), in the order in which they were first recorded."""
    names = (PART.fullmatch(name) for name in session.sample_names)
    return {found[1]: series(session, found[0]) for found in names if found and found[1] != PEAK}


def total(of: Iterable[Series]) -> Series:
    known = [*of]
    n = min(len(one.values) for one in known)
    return Series(known[0].at_s[:n], known[0].hours[:n], np.sum([one.values[:n] for one in known], axis=0))


def peaks(session: Session) -> tuple[float, float] | None:
    """The most resident bytes before the first frame and of the whole run; None without readings."""
    values = series(session, sample_name(PEAK)).values
    return (float(values[0]), float(values[-1])) if len(values) else None


def growth(of: Series) -> Slope | None:
    """Growth per audio hour: median slope (Theil 1950), interval (Sen 1968); None where there is too little audio."""
    hours, values = of.hours, of.values
    if not len(hours):
        return None
    begin = hours[0] + WARM_UP * (hours[-1] - hours[0])
    if (hours[-1] - begin) * HOUR_S < LEAST_S:
        return None
    edges = np.linspace(begin, hours[-1], STRETCHES + 1)
    stretch = np.clip(np.searchsorted(edges, hours, side="right") - 1, -1, STRETCHES - 1)
    there = [number for number in range(STRETCHES) if (stretch == number).any()]
    if len(there) < STRETCHES // 2:
        return None
    x, y = (np.array([np.median(of[stretch == number]) for number in there]) for of in (hours, values))
    one, other = np.triu_indices(len(there), 1)
    slopes = np.sort((y[other] - y[one]) / (x[other] - x[one]))
    n = len(there)
    spread = NORMAL_95 * math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    low = max(math.floor((len(slopes) - spread) / 2), 0)
    high = min(math.ceil((len(slopes) + spread) / 2), len(slopes) - 1)
    return Slope(float(np.median(slopes)), float(slopes[low]), float(slopes[high]))


def core_seconds(session: Session) -> float | None:
    """Processor time of the whole process per audio hour, s: recorder and replays included. None without readings."""
    load = series(session, CPU)
    hours = _hours(session, load)
    if not hours:
        return None
    # A percentage is of the time since the reading before.
    return float((load.values[1:] / 100 * np.diff(load.at_s)).sum()) / hours


def energy(session: Session) -> Energy:
    """Energy per audio hour, that of an idle machine subtracted."""
    known = session.meta.get(IDLE)
    about: Mapping[str, object] = known if isinstance(known, Mapping) else {}
    text, idle, busy = about.get("text"), about.get("watts"), about.get("busy_percent")
    zones = [series(session, name) for name in session.sample_names if PACKAGE.fullmatch(name)]
    if not zones or any(len(zone.values) != len(zones[0].values) for zone in zones) or len(zones[0].values) < 2:
        return Energy(None, None, None, str(text or "it was not recorded"))
    hours = _hours(session, zones[0])
    seconds = float(zones[0].at_s[-1] - zones[0].at_s[0])
    joules = float(sum(zone.values[-1] - zone.values[0] for zone in zones))
    watts = joules / seconds if seconds > 0 else None
    if not isinstance(idle, int | float) or not isinstance(busy, int | float):
        return Energy(None, watts, None, "the power of the idle machine was not measured")
    if busy >= BUSY_PERCENT:
        text = f"the machine was not idle before the run: its processors were busy for {busy:.0f} % of the time"
        return Energy(None, watts, None, text)
    if not hours:
        return Energy(None, watts, float(idle), "too little audio was decoded")
    return Energy((joules - float(idle) * seconds) / hours, watts, float(idle), str(text or ""))


def _hours(session: Session, readings: Series) -> float:
    """Hours of audio that were decoded between the first and the last reading."""
    if len(readings.values) < 2:
        return 0.0
    first, last = (round(hour * HOUR_S / FRAME_S) for hour in readings.hours[[0, -1]].tolist())
    return audio_seconds(session.utterances, first, last) / HOUR_S
