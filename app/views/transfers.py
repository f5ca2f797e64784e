"""Transfers between host and device: how much, how long, how fast, and what the link was measured to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPen

from app.charts.scale import steps
from app.charts.still import LINE, StillPlot, small_metrics
from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.style.plain_text import AT_LEFT, AT_RIGHT, describe, fitting
from app.style.theme import font, theme
from app.views.table_twin import Table
from app.views.timeline import duration
from app.views.view import View
from profiler.analysis.device import TO_DEVICE, Transfers, transfers
from profiler.device.time import DEVICE
from profiler.machine.roofs.table import size_text
from profiler.plain import count, one_line, percent, prefixed, speed

if TYPE_CHECKING:
    from profiler.analysis.track import CostTrack
    from profiler.session.reader import Session


UP, DOWN = "host → device", "device → host"

TO_HOST = "to host"  # Ending of the stages whose copies go down


@dataclass(frozen=True)
class Copies:
    """One kind of copy over a stretch.

    Attributes:
        kind: UP, DOWN or, of a stage with another name, that name.
        copies: how many.
        bytes: of all of them.
        seconds: of all of them, on the device's own lane.
        rate: bytes per second achieved; None where no time was measured.
        reach: bytes per second that copies of these sizes reach; None where that was not measured.
        link: bytes per second of the fastest copy measured in this direction, None likewise.
        least_s: what the smallest copy measured takes, seconds, None likewise.
        least_bytes: its size.
        share: their time as a share of the wall time of the stretch.
        overlapped: which part of it lay under other work, None where no time was measured.
    """

    kind: str
    copies: int
    bytes: int
    seconds: float
    rate: float | None
    reach: float | None
    link: float | None
    least_s: float | None
    least_bytes: int
    share: float
    overlapped: float | None


@dataclass(frozen=True)
class TransfersModel:
    """The kinds of copies over a stretch; `on_device`: whether the session has any device."""

    on_device: bool
    rows: tuple[Copies, ...]

    @property
    def waited(self) -> float:
        return sum(row.share * (1.0 - (row.overlapped or 0.0)) for row in self.rows)


def transfers_model(session: Session, track: CostTrack, first: int, last: int) -> TransfersModel:
    """The copies that begin in frames [first, last)."""
    wall_ns = float(track.total_ns(first, last).sum())
    found = transfers(session, first, last)
    return TransfersModel(
        on_device=any(lane.kind == DEVICE for lane in session.lanes.values()),
        rows=tuple(_copies(session, row, wall_ns) for row in found),
    )


def _copies(session: Session, row: Transfers, wall_ns: float) -> Copies:
    up, pinned = row.stage.endswith(TO_DEVICE), 2 * row.pinned_bytes >= row.bytes
    name = f"{'to' if up else 'from'}_device.{'pinned' if pinned else 'pageable'}"
    rungs = session.calibration.ladder(name, 1, row.lane.partition(" ")[0])
    smallest = rungs[0] if rungs else None
    return Copies(
        kind=UP if up else DOWN if row.stage.endswith(TO_HOST) else one_line(row.stage),
        copies=row.copies,
        bytes=row.bytes,
        seconds=row.time_ns * 1e-9,
        rate=row.bytes_per_s,
        reach=row.bytes / row.least_ns * 1e9 if row.least_ns else None,
        link=max((rung.median for rung in rungs), default=None),
        least_s=smallest.bytes / smallest.median if smallest else None,
        least_bytes=smallest.bytes if smallest else 0,
        share=row.time_ns / wall_ns if wall_ns else 0.0,
        overlapped=row.overlapped,
    )


LEFT, RIGHT, TOP, BOTTOM = 8.0, 14.0, LINE + 4, LINE + 6  # Pixels around the bars: the legend above, GB/s below
BAR = 12.0  # Height of a bar in pixels
ROW = 2 * LINE + BAR + 10  # Pixels that a kind of copy takes at least: a line above its bar and one below
HIGHEST = 2.0  # What it takes at most, in times of that
AIR = 1.05  # The axis reaches so far beyond the highest rate


class Bars(StillPlot):
    """A bar of the achieved rate for each kind of copy, with the rate that such copies reach and that of the link."""

    def __init__(self) -> None:
        super().__init__()
        self._model: TransfersModel | None = None
        self._nothing = ""
        self.setMinimumHeight(int(TOP + 2 * ROW + BOTTOM))

    def show_model(self, model: TransfersModel | None, nothing: str) -> None:
        if (model, nothing) != (self._model, self._nothing):
            self._model, self._nothing = model, nothing
            self.rebuild()

    def build(self) -> None:
        rows = self._model.rows if self._model is not None else ()
        whole = QRectF(self.rect())
        area = whole.adjusted(LEFT, TOP, -RIGHT, -BOTTOM)
        if not rows:
            self.frame(whole, (), ())
            self.text(self._nothing, whole.adjusted(8, 0, -8, 0), WRAPPED, face=font())
            return
        rows = rows[: max(1, int(area.height() / ROW))]
        each = min(max(area.height() / len(rows), ROW), HIGHEST * ROW)
        area.setHeight(min(area.height(), each * len(rows)))
        top = AIR * max(rate for row in rows for rate in (row.rate, row.reach, row.link, 1.0) if rate)
        scale = area.width() / top
        ticks = steps(0.0, top, 6)
        units = [""] * (len(ticks) - 1) + [" GB/s"]
        labels = [(area.left() + v * scale, f"{v * 1e-9:g}{unit}") for v, unit in zip(ticks, units, strict=True)]
        self.frame(area, (), labels)
        self._draw_legend(area)
        for number, row in enumerate(rows):
            place = QRectF(area.left(), area.top() + number * each, area.width(), each)
            self._draw_row(row, place, scale)

    def _draw_legend(self, area: QRectF) -> None:
        texts = self.tr("copies of these sizes reach"), self.tr("the link at its fastest")
        x = area.left()
        for text, pen in zip(texts, self._pens(), strict=True):
            self.curve([QPointF(x + 3, 2), QPointF(x + 3, LINE - 1)], pen)
            width = small_metrics().horizontalAdvance(text) + 2
            if x + 9 + width > area.right():
                return
            self.text(text, QRectF(x + 9, 0, width, LINE), AT_LEFT)
            x += 24 + width

    @staticmethod
    def _pens() -> tuple[QPen, QPen]:
        return QPen(theme().color("text"), 2), QPen(theme().color("muted"), 1, Qt.PenStyle.DashLine)

    def _draw_row(self, row: Copies, place: QRectF, scale: float) -> None:
        metrics, left, width = small_metrics(), place.left(), place.width()
        name, face = self.tr(row.kind), font(0.9, strong=True)
        used = QFontMetricsF(face).horizontalAdvance(name) + 16
        head = QRectF(left, place.top() + 2, width, LINE)
        self.text(name, head, AT_LEFT, "text", face=face)
        self.text(fitting(metrics, width - used, *self.amounts(row)), head, AT_RIGHT)
        bar = QRectF(left, head.bottom() + 5, (row.rate or 0.0) * scale, BAR + (place.height() - ROW) * 0.5)
        self.bars([bar], theme().color("transfer"), theme().hatch_brush("transfer"))
        for rate, pen in zip((row.reach, row.link), self._pens(), strict=True):
            if rate is not None:
                x = left + rate * scale
                self.curve([QPointF(x, bar.top() - 3), QPointF(x, bar.bottom() + 3)], pen)
        below = QRectF(left, bar.bottom() + 3, width, LINE)
        self.text(fitting(metrics, width, *self.rates(row)), below, AT_LEFT, "text", ground=200)
        self.spot(place, f"{name}: {self.amounts(row)[0]}; {self.rates(row)[0]}")

    def amounts(self, row: Copies) -> tuple[str, ...]:
        """How many, how much, how long, in fewer and fewer words."""
        copies = self.tr("1 copy") if row.copies == 1 else self.tr("{0} copies").format(count(row.copies))
        parts = [copies, f"{prefixed(row.bytes)}B", duration(row.seconds)]
        share = self.tr("{0} of the wall time").format(percent(row.share))
        overlapped = self.tr("{0} overlapped").format(percent(row.overlapped))
        return (
            " · ".join((*parts, share, overlapped)),
            " · ".join((*parts, overlapped)),
            " · ".join(parts),
            " · ".join(parts[:2]),
            copies,
        )

    def rates(self, row: Copies) -> tuple[str, ...]:
        """How fast, and what is possible, in fewer and fewer words."""
        short = speed(row.rate)
        if row.rate is None or row.reach is None:
            return (short,)
        of = self.tr("{0}, {1} of what copies of these sizes reach ({2})")
        known = of.format(short, percent(row.rate / row.reach), speed(row.reach))
        few = self.tr("{0} of {1}").format(short, speed(row.reach))
        if row.link is None or row.least_s is None:
            return known, few, short
        smallest = self.tr("a copy of {0} takes {1}").format(size_text(row.least_bytes), duration(row.least_s))
        link = self.tr("{0}; link {1}").format(known, speed(row.link))
        return f"{link}, {smallest}", link, known, few, short


WRAPPED = Qt.AlignmentFlag(Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap)


class TransfersView(View):
    """What was copied between host and device."""

    id = "transfers"
    title = "Transfers"

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self.plot = Bars()
        self.set_body(self.plot)
        self._model: TransfersModel | None = None

    @classmethod
    def concerns(cls, session: Session) -> bool:
        return bool(session.meta.get("devices"))

    def draw(self, snapshot: Snapshot) -> None:
        scope = snapshot.desk.scope
        self._model = transfers_model(snapshot.session, snapshot.track, scope.first, scope.last)
        self.plot.show_model(self._model, self._nothing())
        describe(self.plot, self.tr("Transfers"), self.summary())
        text = self.tr("waited for {0} of the wall time").format(percent(self._model.waited))
        self.set_note(text if self._model.rows else "")

    def clear(self) -> None:
        super().clear()
        self._model = None
        self.plot.show_model(None, "")

    def model(self) -> TransfersModel | None:
        return self._model

    def _nothing(self) -> str:
        if self._model is None or self._model.on_device:
            return self.tr("Nothing was copied between host and device here.")
        return self.tr("This session ran on the CPU alone: nothing was copied.")

    def summary(self) -> str:
        model = self._model
        if model is None or not model.rows:
            return self._nothing()
        parts = [f"{self.tr(r.kind)}: {self.plot.amounts(r)[0]} · {self.plot.rates(r)[0]}" for r in model.rows]
        return "; ".join(parts) + "."

    def table(self) -> Table:
        headers = [
            *("copies from → to", "copies", "bytes", "mean bytes", "time ms", "mean time µs", "GB/s"),
            *("reachable GB/s", "link GB/s", "smallest copy µs", "share of wall time", "overlapped by other work"),
        ]
        rows: list[list[object]] = []
        for row in self._model.rows if self._model is not None else ():
            figures = [None if rate is None else f"{rate * 1e-9:.3g}" for rate in (row.rate, row.reach, row.link)]
            rows.append(
                [
                    self.tr(row.kind),
                    row.copies,
                    row.bytes,
                    f"{row.bytes / row.copies:.0f}",
                    f"{row.seconds * 1e3:.3f}",
                    f"{row.seconds / row.copies * 1e6:.1f}",
                    *figures,
                    None if row.least_s is None else f"{row.least_s * 1e6:.1f}",
                    percent(row.share),
                    percent(row.overlapped),
                ]
            )
        return [self.tr(text) for text in headers], rows
