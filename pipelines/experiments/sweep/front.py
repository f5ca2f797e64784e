"""The Pareto front: the points that no other point dominates. All objectives are minimised."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass


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
