"""What a view of lanes draws: curves over the visible range, each lane with the scale of its own unit. No Qt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from app.charts.scale import Scale
from profiler.arrays import F64, I64

if TYPE_CHECKING:
    from profiler.session.model import Marker

NO_SCALES: Final[Mapping[str, Scale]] = MappingProxyType({})


@dataclass(frozen=True)
class Curve:
    """One quantity over the visible range.

    Attributes:
        name: which quantity.
        low: [columns] least value in the block under the column; NaN where there is no frame.
        high: [columns] greatest value.
        mean: [columns] mean.
        average: mean over the frames of the scope, NaN without any.
        whole: what `average` could be at most (all senones of a frame), None where nothing says.
    """

    name: str
    low: F64
    high: F64
    mean: F64
    average: float
    whole: float | None = None


@dataclass(frozen=True)
class Panel:
    """Curves on one scale."""

    curves: tuple[Curve, ...]
    scale: Scale


@dataclass(frozen=True)
class LanesModel:
    """Curves over the visible range, one lane per quantity that was recorded; averages are of the scope."""

    first_s: float
    last_s: float
    cursor_frame: int
    block_frames: int
    panels: tuple[Panel, ...]
    marks: tuple[Marker, ...]
    boundaries: I64

    def column_at(self, second: float) -> int | None:
        """Column over a second of audio, or None outside the range."""
        if not self.panels:
            return None
        columns = len(self.panels[0].curves[0].mean)
        column = int((second - self.first_s) / (self.last_s - self.first_s) * columns)
        return column if 0 <= column < columns else None

    @property
    def scales(self) -> dict[str, Scale]:
        return {panel.curves[0].name: panel.scale for panel in self.panels}

    @property
    def curves(self) -> tuple[Curve, ...]:
        return tuple(curve for panel in self.panels for curve in panel.curves)
