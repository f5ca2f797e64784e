"""What a sweep tries and by what it is judged, as the command line says it: settings, objectives, constraints.

Also the Pareto front: the points that no other point dominates. All objectives are minimised.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from pipelines import config as settings
from pipelines.config import ConfigError, Value
from profiler.errors import BadInput
from profiler.plain import one_line

OBJECTIVES: Final = ("rtf", "wer", "memory", "latency")
"""All are minimised. rtf and latency: ratio to the reference; wer: a share; memory: bytes of resident memory."""

TIMES: Final = ("rtf", "latency")  # What depends on the machine, and is compared as ratio alone
DIGITS: Final = 4  # Significant digits of a value from a range of numbers that are not whole
_RANGE: Final = re.compile(r"([^,]+?)\.\.([^,]+)")


@dataclass(frozen=True)
class Choice:
    """A setting that takes one of some values."""

    key: str
    values: tuple[Value, ...]

    @property
    def text(self) -> str:
        return f"{self.key}={','.join(map(settings.value_text, self.values))}"

    def every(self) -> Sequence[Value]:
        return self.values


@dataclass(frozen=True)
class Range:
    """A setting that takes any number from `low` to `high`; `whole`: whole numbers alone."""

    key: str
    low: float
    high: float
    whole: bool

    @property
    def text(self) -> str:
        return f"{self.key}={settings.value_text(self.low)}..{settings.value_text(self.high)}"

    def every(self) -> Sequence[Value] | None:
        """All values; None where they cannot be counted."""
        return range(int(self.low), int(self.high) + 1) if self.whole else None


Axis = Choice | Range


@dataclass(frozen=True)
class Constraint:
    """A trial may be on the front where objective `name` is at most `limit` (seconds, bytes or a share)."""

    name: str
    limit: float

    def excess(self, value: float) -> float:
        """How far `value` is above the limit; 0 or below where it holds."""
        return value - self.limit


def parse_over(text: str) -> Axis:
    """Read `KEY=a,b,c` or `KEY=lo..hi`; BadInput with one sentence otherwise."""
    key, equals, values = text.partition("=")
    if not equals or not values.strip():
        raise ConfigError(
            f"--over must be KEY=a,b,c or KEY=lo..hi, for example search.beam=8..14, not '{one_line(text)}'."
        )
    option = settings.option(key.strip())
    if option.key in (*settings.COURSE, *settings.SOUND):
        raise ConfigError(f"--over {option.key}: this setting does not change how speech is decoded.")
    span = _RANGE.fullmatch(values.strip())
    if span and option.type in ("int", "float"):
        low, high = (float(settings.parse_assignment(f"{option.key}={end}", "--over")[1]) for end in span.groups())
        if not low < high:
            raise ConfigError(f"--over {one_line(text)} is an empty range; the lower end comes first.")
        return Range(option.key, low, high, option.type == "int")
    if span and option.type != "text":
        raise ConfigError(f"--over {option.key} has no range; list its values, separated by commas.")
    chosen = [settings.parse_assignment(f"{option.key}={value}", "--over")[1] for value in values.split(",")]
    distinct = tuple(dict.fromkeys(chosen))
    if len(distinct) < 2:
        raise ConfigError(f"--over {one_line(text)} has one value; a sweep needs at least two to choose from.")
    return Choice(option.key, distinct)


def parse_axes(texts: Sequence[str]) -> tuple[Axis, ...]:
    """Read every --over; BadInput where there is none, or a setting is named twice."""
    if not texts:
        raise BadInput("Give --over KEY=a,b,c or --over KEY=lo..hi, otherwise there is nothing to try.")
    axes = tuple(map(parse_over, texts))
    [(key, times)] = Counter(axis.key for axis in axes).most_common(1)
    if times > 1:
        raise ConfigError(f"--over names {key} twice; give all its values at once.")
    return axes


def parse_objectives(text: str) -> tuple[str, ...]:
    """Read `rtf,wer`; BadInput for an unknown name or one named twice."""
    names = tuple(name.strip() for name in text.split(","))
    if unknown := next((name for name in names if name not in OBJECTIVES), None):
        raise BadInput(f"--objectives takes {', '.join(OBJECTIVES)}, separated by commas, not '{one_line(unknown)}'.")
    if len(set(names)) < len(names):
        raise BadInput(f"--objectives {one_line(text)} names an objective twice.")
    return names


def parse_constraint(text: str) -> Constraint:
    """Read `wer<=0.2`; BadInput otherwise."""
    name, less, number = map(str.strip, text.partition("<="))
    with suppress(ValueError):
        if less and name in OBJECTIVES and math.isfinite(limit := float(number)):
            return Constraint(name, limit)
    raise BadInput(
        f"--constraint must be NAME<=NUMBER with one of {', '.join(OBJECTIVES)}, for example 'wer<=0.2', "
        f"not '{one_line(text)}'."
    )


def size(axes: Sequence[Axis]) -> float:
    values = [axis.every() for axis in axes]
    return math.inf if None in values else math.prod(len(each) for each in values if each)


def grid(axes: Sequence[Axis]) -> list[dict[str, Value]]:
    """All combinations of axes of finite `size`."""
    keys, values = [axis.key for axis in axes], [axis.every() or () for axis in axes]
    return [dict(zip(keys, combination, strict=True)) for combination in itertools.product(*values)]


def shortened(params: Mapping[str, Value]) -> dict[str, Value]:
    return {key: float(f"{v:.{DIGITS}g}") if isinstance(v, float) else v for key, v in params.items()}


@dataclass(frozen=True)
class Point:
    """A trial by its number and its objectives; `margins`: by which share each value may be too high or too low."""

    trial: int
    values: tuple[float, ...]
    margins: tuple[float, ...]

    def lowest(self) -> tuple[float, ...]:
        return tuple(value * (1 - margin) for value, margin in zip(self.values, self.margins, strict=True))

    def highest(self) -> tuple[float, ...]:
        return tuple(value * (1 + margin) for value, margin in zip(self.values, self.margins, strict=True))


def dominates(a: Sequence[float], b: Sequence[float]) -> bool:
    """Whether `a` is nowhere above `b`, and somewhere below."""
    return all(x <= y for x, y in zip(a, b, strict=True)) and tuple(a) != tuple(b)


def front(points: Collection[Point]) -> list[Point]:
    """The points that none dominates, in the order of their values; of equal points the first."""
    kept: dict[tuple[float, ...], Point] = {}
    for point in points:
        if not any(dominates(other.values, point.values) for other in points):
            kept.setdefault(point.values, point)
    return sorted(kept.values(), key=lambda point: point.values)


def possible(points: Collection[Point]) -> list[Point]:
    return [p for p in points if not any(dominates(other.highest(), p.lowest()) for other in points if other is not p)]


def touches(a: tuple[float, float], b: tuple[float, float]) -> bool:
    return a[0] <= b[1] and b[0] <= a[1]
