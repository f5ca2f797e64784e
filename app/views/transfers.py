"""Transfers between host and device: how much, how long, how fast, and what the link was measured to do."""

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPen

from app.charts.scale import steps
from app.charts.still import LINE, Spot, StillPlot, small_metrics
from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.style.plain_text import AT_LEFT, AT_RIGHT, describe, fitting
from app.style.theme import font, theme
from app.views.table_twin import Table
from app.views.timeline import duration
from app.views.view import View
from profiler.analysis.device import TO_DEVICE, Transfers, copies_roof, transfers
from profiler.analysis.track import CostTrack
from profiler.device.time import DEVICE
from profiler.machine.roofs.table import Roof, size_text
from profiler.plain import count, one_line, percent, prefixed, speed
from profiler.session.reader import Session

UP, DOWN = "host → device", "device → host"


@dataclass(frozen=True)
class Copies:
    """One kind of copy over a stretch, and what was measured of the link in this direction."""

    kind: str  # UP, DOWN or, of a stage with another name, that name
    of: Transfers
    share: float  # Their time, of the wall time of the stretch
    rungs: tuple[Roof, ...]  # Rates of copies, the smallest first

    @property
    def reach(self) -> float | None:
        """Bytes per second that copies of these sizes reach; None where that was not measured."""
        return self.of.bytes / self.of.least_ns * 1e9 if self.of.least_ns else None

    @property
    def link(self) -> float | None:
        """Bytes per second of the fastest copy measured, None likewise."""
        return max((rung.median for rung in self.rungs), default=None)

    @property
    def rates(self) -> tuple[float | None, float | None, float | None]:
        """Bytes per second that were achieved, that such copies reach, that the link has."""
        return self.of.bytes_per_s, self.reach, self.link


def copies_of(session: Session, track: CostTrack, first: int, last: int) -> tuple[Copies, ...]:
    """The copies that begin in frames [first, last)."""
    wall_ns, found = float(track.total_ns(first, last).sum()), []
    for row in transfers(session, first, last):
        up, name = row.stage.endswith(TO_DEVICE), copies_roof(row.stage, 2 * row.pinned_bytes >= row.bytes)
        rungs = session.calibration.ladder(name, 1, row.lane.partition(" ")[0])
        kind = UP if up else DOWN if row.stage.endswith("to host") else one_line(row.stage)
        found.append(Copies(kind, row, row.time_ns / wall_ns if wall_ns else 0.0, tuple(rungs)))
    return tuple(found)


LEFT, RIGHT, TOP, BOTTOM = 8.0, 14.0, LINE + 4, LINE + 6  # Pixels around the bars: the legend above, GB/s below
BAR = 12.0  # Height of a bar in pixels
ROW = 2 * LINE + BAR + 10  # Pixels that a kind of copy takes at least: a line above its bar and one below
HIGHEST = 2.0  # What it takes at most, in times of that
AIR = 1.05  # The axis reaches so far beyond the highest rate


class Bars(StillPlot):
    """A bar of the achieved rate for each kind of copy, with the rate that such copies reach and that of the link."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: tuple[Copies, ...] = ()
        self._nothing = ""
        self.setMinimumHeight(int(TOP + 2 * ROW + BOTTOM))

    def show_rows(self, rows: tuple[Copies, ...], nothing: str) -> None:
        if (rows, nothing) != (self._rows, self._nothing):
            self._rows, self._nothing = rows, nothing
            self.rebuild()

    def build(self) -> None:
        rows, whole = self._rows, QRectF(self.rect())
        area = whole.adjusted(LEFT, TOP, -RIGHT, -BOTTOM)
        if not rows:
            self.canvas.frame(whole, (), ())
            self.canvas.text(self._nothing, whole.adjusted(8, 0, -8, 0), WRAPPED, face=font())
            return
        rows = rows[: max(1, int(area.height() / ROW))]
        each = min(max(area.height() / len(rows), ROW), HIGHEST * ROW)
        area.setHeight(min(area.height(), each * len(rows)))
        top = AIR * max(rate for row in rows for rate in (*row.rates, 1.0) if rate)
        scale = area.width() / top
        ticks = steps(0.0, top, 6)
        units = [""] * (len(ticks) - 1) + [" GB/s"]
        labels = [(area.left() + v * scale, f"{v * 1e-9:g}{unit}") for v, unit in zip(ticks, units, strict=True)]
        self.canvas.frame(area, (), labels)
        self._draw_legend(area)
        for number, row in enumerate(rows):
            place = QRectF(area.left(), area.top() + number * each, area.width(), each)
            self._draw_row(row, place, scale)

    def _draw_legend(self, area: QRectF) -> None:
        texts = self.tr("copies of these sizes reach"), self.tr("the link at its fastest")
        x = area.left()
        for text, pen in zip(texts, self._pens(), strict=True):
            self.canvas.curve([QPointF(x + 3, 2), QPointF(x + 3, LINE - 1)], pen)
            width = small_metrics().horizontalAdvance(text) + 2
            if x + 9 + width > area.right():
                return
            self.canvas.text(text, QRectF(x + 9, 0, width, LINE), AT_LEFT)
            x += 24 + width

    @staticmethod
    def _pens() -> tuple[QPen, QPen]:
        return QPen(theme().color("text"), 2), QPen(theme().color("muted"), 1, Qt.PenStyle.DashLine)

    def _draw_row(self, row: Copies, place: QRectF, scale: float) -> None:
        metrics, left, width = small_metrics(), place.left(), place.width()
        name, face = self.tr(row.kind), font(0.9, strong=True)
        used = QFontMetricsF(face).horizontalAdvance(name) + 16
        head = QRectF(left, place.top() + 2, width, LINE)
        self.canvas.text(name, head, AT_LEFT, "text", face=face)
        self.canvas.text(fitting(metrics, width - used, *self.amounts(row)), head, AT_RIGHT)
        bar = QRectF(left, head.bottom() + 5, (row.rates[0] or 0.0) * scale, BAR + (place.height() - ROW) * 0.5)
        self.canvas.bars([bar], theme().color("transfer"), theme().hatch_brush("transfer"))
        for rate, pen in zip(row.rates[1:], self._pens(), strict=True):
            if rate is not None:
                x = left + rate * scale
                self.canvas.curve([QPointF(x, bar.top() - 3), QPointF(x, bar.bottom() + 3)], pen)
        below = QRectF(left, bar.bottom() + 3, width, LINE)
        self.canvas.text(fitting(metrics, width, *self.rates(row)), below, AT_LEFT, "text", ground=200)
        self.canvas.spots.append(Spot(place, f"{name}: {self.amounts(row)[0]}; {self.rates(row)[0]}"))

    def amounts(self, row: Copies) -> tuple[str, ...]:
        """How many, how much, how long, in fewer and fewer words."""
        number = row.of.copies
        copies = self.tr("1 copy") if number == 1 else self.tr("{0} copies").format(count(number))
        parts = [copies, f"{prefixed(row.of.bytes)}B", duration(row.of.time_ns * 1e-9)]
        share = self.tr("{0} of the wall time").format(percent(row.share))
        overlapped = self.tr("{0} overlapped").format(percent(row.of.overlapped))
        fewer = [*parts, share, overlapped], [*parts, overlapped], parts, parts[:2], parts[:1]
        return tuple(map(" · ".join, fewer))

    def rates(self, row: Copies) -> tuple[str, ...]:
        """How fast, and what is possible, in fewer and fewer words."""
        rate, reach, link = row.rates
        short = speed(rate)
        if rate is None or reach is None:
            return (short,)
        of = self.tr("{0}, {1} of what copies of these sizes reach ({2})")
        known = of.format(short, percent(rate / reach), speed(reach))
        few = self.tr("{0} of {1}").format(short, speed(reach))
        if link is None:
            return known, few, short
        least = row.rungs[0]
        smallest = self.tr("a copy of {0} takes {1}").format(
            size_text(least.bytes), duration(least.bytes / least.median)
        )
        linked = self.tr("{0}; link {1}").format(known, speed(link))
        return f"{linked}, {smallest}", linked, known, few, short


WRAPPED = Qt.AlignmentFlag(Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap)


class TransfersView(View):
    """What was copied between host and device."""

    id = "transfers"
    title = "Transfers"

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self.plot = Bars()
        self.set_body(self.plot)
        self._model: tuple[Copies, ...] = ()

    @classmethod
    def concerns(cls, session: Session) -> bool:
        return bool(session.meta.get("devices"))

    def draw(self, snapshot: Snapshot) -> None:
        scope = snapshot.desk.scope
        rows = self._model = copies_of(snapshot.session, snapshot.track, scope.first, scope.last)
        self.plot.show_rows(rows, self._nothing())
        describe(self.plot, self.tr("Transfers"), self.summary())
        waited = sum(row.share * (1.0 - (row.of.overlapped or 0.0)) for row in rows)
        self.set_note(self.tr("waited for {0} of the wall time").format(percent(waited)) if rows else "")

    def clear(self) -> None:
        super().clear()
        self._model = ()
        self.plot.show_rows((), "")

    def _nothing(self) -> str:
        lanes = () if self.snapshot is None else self.snapshot.session.lanes.values()
        if self.snapshot is None or any(lane.kind == DEVICE for lane in lanes):
            return self.tr("Nothing was copied between host and device here.")
        return self.tr("This session ran on the CPU alone: nothing was copied.")

    def summary(self) -> str:
        parts = [f"{self.tr(r.kind)}: {self.plot.amounts(r)[0]} · {self.plot.rates(r)[0]}" for r in self._model]
        return "; ".join(parts) + "." if parts else self._nothing()

    def table(self) -> Table:
        headers = [
            *("copies from → to", "copies", "bytes", "mean bytes", "time ms", "mean time µs", "GB/s"),
            *("reachable GB/s", "link GB/s", "smallest copy µs", "share of wall time", "overlapped by other work"),
        ]
        rows: list[list[object]] = []
        for row in self._model:
            of = row.of
            least: list[str | None] = [f"{rung.bytes / rung.median * 1e6:.1f}" for rung in row.rungs[:1]] or [None]
            mean = f"{of.time_ns * 1e-6:.3f}", f"{of.time_ns * 1e-3 / of.copies:.1f}"
            rates = [None if rate is None else f"{rate * 1e-9:.3g}" for rate in row.rates]
            shares = percent(row.share), percent(of.overlapped)
            amounts = self.tr(row.kind), of.copies, of.bytes, f"{of.bytes / of.copies:.0f}"
            rows.append([*amounts, *mean, *rates, *least, *shares])
        return [self.tr(text) for text in headers], rows
